"""What is known of the ranks before sampling: a prior over the places in a catalogue of any size.

A prior is a tuple of weights that divide the catalogue into equal parts from the top: with as many weights as there
are counts it is a weight per count, with fewer it is a step function. So one prior serves instances whose numbers of
candidates differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import Floats
from truerank.errors import InputError
from truerank.ranking.ranks import Ranks

Prior = tuple[float, ...]


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


def learn_prior(ranks: Ranks, *, parts: int = 50, iterations: int = 100) -> Prior:
    """Return a prior learned from ranks, exact or sampled, of this recommender or a similar one.

    From exact ranks it is the share of relevant items in each part of the catalogue, one added to
    every part. From sampled ones it is the maximum-likelihood distribution, found by EM and stopped
    early (Jin et al., AAAI 2021).

    Parameters
    ----------
    ranks : Ranks
        All relevant items count, whichever of an instance they are.
    parts : int
        Equal parts into which the catalogue is divided.
    iterations : int
        Steps of EM; more of them fit the sample more closely, and its noise.

    Examples
    --------
    >>> import truerank as tr
    >>> prior = tr.learn_prior(tr.Ranks.from_ranks([1, 2, 90], n=100), parts=2)
    >>> [round(share, 2) for share in prior]
    [0.6, 0.4]
    """
    n = ranks.n_candidates if ranks.n_catalogue is None else ranks.n_catalogue
    irrelevant = (n - ranks.n_relevant)[ranks.instance]
    if ranks.design is None:
        place = (ranks.above + ranks.tied / 2 + 0.5) / (irrelevant + 1)
        return as_prior(np.bincount((place * parts).astype(np.int64), minlength=parts) + 1.0)
    law, draws = ranks.design.law("learning a prior"), ranks.draws[ranks.instance]
    likelihood = np.empty((ranks.above.size, parts))
    for size, m in np.unique(np.stack([irrelevant, draws]), axis=1).T:
        mine = (irrelevant == size) & (draws == m)
        rows = law.rows(np.arange(size + 1), m, size)
        part = ((np.arange(size + 1) + 0.5) / (size + 1) * parts).astype(np.int64)
        counts = np.bincount(part, minlength=parts)
        mean = np.stack([np.bincount(part, weights=column, minlength=parts) for column in rows.T])
        likelihood[mine] = (mean / np.maximum(counts, 1))[ranks.above[mine]]
    shares = np.full(parts, 1.0 / parts)
    for _ in range(iterations):
        joint = likelihood * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return as_prior(shares)
