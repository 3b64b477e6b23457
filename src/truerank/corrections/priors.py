"""What is known of the ranks before sampling: a prior over the places in a catalogue of any size.

A prior is a tuple of weights that divide the catalogue into equal parts from the top: with as many weights as there
are counts it is a weight per count, with fewer it is a step function. So one prior serves instances whose numbers of
candidates differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import Floats, distinct_columns
from truerank.corrections.base import Correction, require_design
from truerank.corrections.rank_laws import Cells, cells, cells_at, expectation_maximisation
from truerank.errors import InputError
from truerank.metrics.base import Terms
from truerank.ranking.ranks import Ranks

Prior = tuple[float, ...]

# counts at which each of a number of equal parts is looked at
_POINTS = 8


def as_prior(weights: ArrayLike) -> Prior:
    """Return weights as a prior that sums to 1.

    Examples
    --------
    >>> as_prior([3, 1])
    (0.75, 0.25)
    """
    array = np.asarray(weights, dtype=np.float64)
    if array.ndim != 1 or array.size == 0 or not np.all(np.isfinite(array)) or np.any(array < 0) or not array.sum():
        raise InputError("a prior must be a list of weights, none negative and not all zero.")
    return tuple((array / array.sum()).tolist())


def prior_counts(prior: Prior, n_irrelevant: int) -> Floats:
    """Return the weight of each count 0..n_irrelevant."""
    places = (np.arange(n_irrelevant + 1) + 0.5) / (n_irrelevant + 1)
    return np.array(prior)[(places * len(prior)).astype(np.int64)]


def prior_notes(
    used: Correction, plain: Correction, parts: tuple[Terms, ...], ranks: Ranks, name: str
) -> tuple[str, ...]:
    """Return a note if a correction gives something else without its prior, by more than twice the error of either."""
    (mean, error), (other, without) = (_mean_and_error(one, parts, ranks, name) for one in (used, plain))
    if abs(mean - other) <= 2 * max(error, without):
        return ()
    return (f"the prior drives {name}: without it the result is {other:.4f}, more than twice its error away",)


def _mean_and_error(correction: Correction, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[float, float]:
    """Return the mean over instances, ties in favour of relevant items, and its standard error."""
    added = np.zeros(ranks.above.size)
    for part in correction.terms(parts, ranks, name):
        values = part.term.term(ranks.rank, ranks.i, ranks.item_n_relevant, part.n)
        added += values if part.weight is None else values * part.weight
    sums = np.bincount(ranks.instance, added, minlength=len(ranks))[ranks.n_relevant > 0]
    return float(sums.mean()), float(sums.std() / np.sqrt(sums.size))


def learn_prior(ranks: Ranks, *, parts: int | None = None, iterations: int = 100) -> Prior:
    """Return a prior learned from ranks, exact or sampled, of this recommender or a similar one.

    From exact ranks it is the share of relevant items in each part of the catalogue, one added to
    every part. From sampled ones it is the maximum-likelihood distribution, found by EM and stopped
    early (Jin et al., AAAI 2021).

    Parameters
    ----------
    ranks : Ranks
        All relevant items count, whichever of an instance they are.
    parts : int, optional
        Equal parts into which the catalogue is divided. None: single ranks at the top, then parts that grow with the
        rank, and the prior has a weight for each count of the largest catalogue.
    iterations : int
        Steps of EM; more of them fit the sample more closely, and its noise.

    Examples
    --------
    >>> import truerank as tr
    >>> prior = tr.learn_prior(tr.Ranks.from_ranks([1, 2, 90], n=100), parts=2)
    >>> [round(share, 2) for share in prior]
    [0.6, 0.4]
    """
    largest = int(ranks.item_irrelevant.max(initial=0))
    if parts is None:
        size, within = largest + 1, cells(largest)
    else:
        size = parts * _POINTS
        within = cells_at(np.arange(parts) * _POINTS, size - 1)
    exact = ranks.design is None
    shares = _shares(ranks, within, size) if exact else _learned(ranks, within, size, iterations)
    return as_prior(shares if parts is not None else np.repeat(shares / within.sizes, within.sizes))


def _shares(ranks: Ranks, within: Cells, size: int) -> Floats:
    place = (ranks.above + ranks.tied / 2 + 0.5) / (ranks.item_irrelevant + 1)
    part = np.searchsorted(within.starts, np.floor(place * size), side="right") - 1
    return np.bincount(part, minlength=len(within)).astype(np.float64) + 1.0


def _learned(ranks: Ranks, within: Cells, size: int, iterations: int) -> Floats:
    """EM from equal shares; the likelihood of a part is its mean over some counts in it."""
    design = require_design(ranks, "learning a prior")
    columns = (ranks.above, ranks.item_draws, ranks.item_irrelevant)
    first, which = distinct_columns(*columns)
    above, drawn, n_irrelevant = (column[first, None, None] for column in columns)
    # the counts of each catalogue at the places of the points, which are those of a catalogue with `size` counts
    counts = np.floor((within.points + 0.5) / size * (n_irrelevant + 1)).astype(np.int64)
    log = design.log_likelihood(above, drawn, counts, n_irrelevant)
    likelihood = np.exp(log - log.max(axis=(1, 2), keepdims=True)).mean(axis=2)
    weight = np.bincount(which, minlength=first.size).astype(np.float64)
    return expectation_maximisation(likelihood, weight, within.sizes / size, iterations)
