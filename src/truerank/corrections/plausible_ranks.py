"""Sampled ranks -> exact ranks that could have given them, and what other samples of these would have shown."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections.base import require_design
from truerank.corrections.pooled import Smooth
from truerank.corrections.posteriors import Observed
from truerank.ranking.ranks import Ranks
from truerank.sampling.drawing import draw_counts

# chances that are looked at at once: 64 MB
_CHUNK = 8_000_000


def plausible_ranks(ranks: Ranks, *, rng: np.random.Generator) -> Iterator[Ranks]:
    """Yield exact ranks, again and again, each drawn from what the sampled ones leave open.

    Each relevant item gets a count among all candidates from its posterior, given its own sampled count and a smooth
    law that is fitted to all instances (``~smooth``). Single ranks mean nothing. Means over the instances of anything
    that varies little between neighbouring ranks, such as the variance over samples, come close to the exact ones. The
    relevant items of an instance are drawn at one level of their posteriors, which keeps their order.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([3, 40, 500] * 100, n=1_000)
    >>> drawn = next(plausible_ranks(tr.UniformSampling(100).draw(exact, rng=0), rng=np.random.default_rng(1)))
    >>> drawn.design is None, len(drawn), bool(abs(drawn.rank.mean() / exact.rank.mean() - 1) < 0.05)
    (True, 300, True)
    """
    untied = ranks.break_ties("random", rng=0) if ranks.tied.any() else ranks
    laws = Smooth().laws(untied)
    cumulative = [np.cumsum(posterior, axis=1) for posterior in laws.posteriors]
    n = untied.n_candidates if untied.n_catalogue is None else untied.n_catalogue
    while True:
        level, counts = rng.random(len(untied))[untied.instance], np.empty_like(untied.above)
        for group, chances in zip(laws.groups, cumulative, strict=True):
            counts[group.items] = _counts_at(untied, group, chances, level[group.items])
        above = counts[np.lexsort((counts, untied.instance))]
        yield dataclasses.replace(
            untied, above=above, n_candidates=n, design=None, n_catalogue=None, drawn=None, scored=None
        )


def _counts_at(ranks: Ranks, group: Observed, cumulative: Floats, level: Floats) -> Ints:
    """Return the quantile of each item's posterior at its level: a cell, and then a count of it that is possible."""
    within = group.seen.cells
    cell, inside = _quantiles(cumulative, group.which, level)
    observed = (numbers[group.items] for numbers in (ranks.above, ranks.item_draws, ranks.item_irrelevant))
    least, most = require_design(ranks, "the draw").possible_counts(*observed)
    first = np.maximum(within.starts[cell], least)
    last = np.minimum(within.starts[cell] + within.sizes[cell] - 1, most)
    return first + np.minimum((inside * (last - first + 1)).astype(np.int64), last - first)


def _quantiles(cumulative: Floats, which: Ints, level: Floats) -> tuple[Ints, Floats]:
    """Return the column in which the cumulative chances of each item's row reach its level, and how far into it."""
    column, inside = np.empty(which.size, dtype=np.int64), np.empty(which.size)
    step = max(_CHUNK // cumulative.shape[1], 1)
    for start in range(0, which.size, step):
        part = slice(start, start + step)
        rows = cumulative[which[part]]
        wanted = level[part] * rows[:, -1]
        column[part] = (rows <= wanted[:, None]).sum(axis=1)
        at = np.arange(len(rows))
        before = np.where(column[part] > 0, rows[at, column[part] - 1], 0.0)
        inside[part] = (wanted - before) / (rows[at, column[part]] - before)
    return column, inside


def sampled_again(exact: Ranks, sampled: Ranks, *, rng: np.random.Generator) -> Ranks:
    """Return another sample of exact ranks, by the design of sampled ones and with as many draws.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([3, 40], n=100)
    >>> sampled = tr.Ranks.from_sampled([1, 5], m=[10, 20], n=100)
    >>> sampled_again(exact, sampled, rng=np.random.default_rng(0)).draws.tolist()
    [10, 20]
    """
    design = require_design(sampled, "sampling again")
    if sampled.drawn is not None:
        return design.draw(exact, rng=rng)
    counts = (exact.above, exact.tied, exact.indptr, exact.draws, sampled.draws)
    above, tied = draw_counts(*counts, design.law("sampling again"), rng)
    return exact.sampled(design, sampled.draws, above=above, tied=tied)
