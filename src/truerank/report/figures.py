"""The numbers of each figure, computed in one place for `tr.plots`, the report and the reproduction of the paper."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

import numpy as np

import truerank as tr
from truerank.analysis.consistencies import order_check
from truerank.analysis.plans import first_good
from truerank.core.checks import Floats
from truerank.estimators.corrected import AnyMetric, correction_table
from truerank.sampling.designs import AnyDesign


def every_rank(n: int, *, first: int = 20, points: int = 200) -> tr.Ranks:
    """Return ranks 1..n, thinned out after the first ones, one instance each."""
    thinned = np.geomspace(1, n, points).round()
    return tr.Ranks.from_ranks(np.unique(np.append(np.arange(1, min(n, first) + 1), thinned)).astype(np.int64), n=n)


def metric_by_rank(
    ranks: tr.Ranks,
    metric: AnyMetric,
    sampled: Mapping[str, tuple[AnyMetric, tr.SamplingDesign]],
    *,
    exact: str = "exact",
) -> dict[str, Floats]:
    """Return the metric at each rank and, by name, its expectation in samples, corrected or not."""
    return {
        exact: tr.values(ranks, metric),
        **{name: tr.risk(ranks, shown, design).expected for name, (shown, design) in sampled.items()},
    }


def metric_by_sampled_rank(
    metric: AnyMetric,
    corrected: Mapping[str, str],
    design: tr.SamplingDesign,
    n: int,
    *,
    uncorrected: str = "uncorrected",
) -> dict[str, Floats]:
    """Return the metric at each sampled rank 1..m + 1 and, by name, with each correction, given by its text form."""
    tables = {name: correction_table(text, design, n=n) for name, text in corrected.items()}
    sampled = tr.Ranks.from_ranks(np.arange(1, design.size + 2), n=design.size + 1)
    return {uncorrected: tr.values(sampled, metric), **tables}


def metric_by_size(
    ranks: Mapping[str, tr.Ranks], metric: AnyMetric, sizes: Iterable[int], design: AnyDesign = "uniform"
) -> tr.Consistency:
    """Return expected metrics at some sample sizes; the size from which the order is correct may lie between them."""
    found = tr.consistency(ranks, metric, design, sizes=sizes)
    wrong = found.sizes[found.sizes < (found.settled or 0)]
    if found.settled is None or wrong.size == 0:
        return found
    is_right = order_check(ranks, metric, design, found)
    return dataclasses.replace(found, settled=first_good(is_right, int(wrong[-1]), found.settled))


def rank_distribution(ranks: Mapping[str, tr.Ranks], lasts: Sequence[int] = ()) -> tuple[list[str], dict[str, Floats]]:
    """Return the names of ranges of ranks, and how many relevant items of each recommender are in each.

    The ranges end at the given ranks, and one more holds all ranks below. By default they end at 1, 3, 10, 30, ..., and
    only cut lists have one more.

    Examples
    --------
    >>> names, counts = rank_distribution({"A": tr.Ranks.from_ranks([1, 7], n=50)})
    >>> names, counts["A"].round(9).tolist()
    (['1', '2–3', '4–10', '11–30', '31–50'], [1.0, 0.0, 1.0, 0.0, 0.0])
    """
    depth = min((one.depth for one in ranks.values() if one.depth is not None), default=None)
    whole = not lasts and depth is None
    ends = lasts or _ends(depth or max(int(one.n_candidates.max()) for one in ranks.values()))
    starts = [1, *(end + 1 for end in ends)]
    names = [f"{start:,}" if start == end else f"{start:,}–{end:,}" for start, end in zip(starts, ends, strict=False)]
    if not whole:
        names.append(f"below {ends[-1]:,}")
    return names, {name: rank_counts(one, ends)[: len(names)] for name, one in ranks.items()}


def _ends(last: int) -> list[int]:
    steps = [step * 10**power for power in range(len(str(last))) for step in (1, 3)]
    return [*(step for step in steps if step < last), last]


def rank_counts(ranks: tr.Ranks, lasts: Sequence[int]) -> Floats:
    """Return how many relevant items have ranks up to each bound and beyond the one before; the rest comes last.

    Tied items count at each rank with their chance of having it in a random order.

    Examples
    --------
    >>> rank_counts(tr.Ranks.from_ranks([1, 2, 7, 40], n=50), [1, 3, 10]).round(9).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    within = [last * float(np.nansum(tr.values(ranks, f"precision@{last}"))) for last in lasts]
    return np.diff([0.0, *within, float(ranks.above.size)])
