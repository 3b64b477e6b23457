"""Draw sampled counts from exact counts alone, without scores."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Ints
from truerank.sampling.laws import Law


def draw_counts(
    above: Ints, tied: Ints, indptr: Ints, n_irrelevant: Ints, m: Ints, law: Law, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return the sampled counts above and tied of each relevant item.

    The relevant items of an instance share one sample. They and their ties cut the irrelevant
    candidates into stretches; going down from the top, the number sampled from a stretch is
    hypergeometric (binomial with replacement) in what is left of the sample and of the candidates.

    Parameters
    ----------
    above, tied : arrays of int, one per relevant item
        Irrelevant candidates above and tied, from the top within an instance.
    indptr : array of int
        Boundaries of the instances.
    n_irrelevant : array of int, one per instance
    m : array of int, one per instance
        Candidates sampled.
    law : Law
        Of sampling with or without replacement.
    rng : numpy.random.Generator
    """
    sizes = np.diff(indptr)
    sampled_above, sampled_tied = np.zeros_like(above), np.zeros_like(tied)
    passed = np.zeros_like(n_irrelevant)
    hit = np.zeros_like(n_irrelevant)

    def stretch(users: Ints, until: Ints) -> Ints:
        """Draw from the stretch that ends where so many candidates have been passed."""
        drawn = law.draw(until - passed[users], n_irrelevant[users] - until, m[users] - hit[users], rng)
        passed[users] = until
        hit[users] += drawn
        return drawn

    for place in range(int(sizes.max(initial=0))):
        users = np.flatnonzero(sizes > place)
        at = indptr[users] + place
        # relevant items in one tied block have the same counts as the one before
        same = (above[at] < passed[users]) if place else np.zeros(at.size, dtype=np.bool_)
        sampled_above[at[same]] = sampled_above[at[same] - 1]
        sampled_tied[at[same]] = sampled_tied[at[same] - 1]
        users, at = users[~same], at[~same]
        stretch(users, above[at])
        sampled_above[at] = hit[users]
        sampled_tied[at] = stretch(users, above[at] + tied[at])
    return sampled_above, sampled_tied


def draw_until(
    above: Ints,
    indptr: Ints,
    n_irrelevant: Ints,
    hits: int,
    most: int | None,
    rng: np.random.Generator,
    ends: Ints | None = None,
) -> tuple[Ints, Ints]:
    """Return how many candidates are drawn for each relevant item until `hits` stand above it, and how many do.

    The relevant items of an instance share their draws. Only draws above the lowest item that is still open matter;
    how many others come before the next of them is beta-binomial, so the others are never drawn one by one.

    Parameters
    ----------
    above : array of int, one per relevant item
        Irrelevant candidates above, from the top within an instance; there are no ties.
    indptr : array of int
        Boundaries of the instances.
    n_irrelevant : array of int, one per instance
    hits : int
        Number of candidates above that ends the draws for an item.
    most : int, optional
        Largest number of draws.
    rng : numpy.random.Generator
    ends : array of int, optional
        Numbers of draws, increasing, at which draws can end; any by default.
    """
    drawn, seen = np.zeros_like(above), np.zeros_like(above)
    sizes = np.diff(indptr)
    for size in np.unique(sizes[sizes > 0]):
        users = np.flatnonzero(sizes == size)
        items = indptr[users][:, None] + np.arange(size)
        limit = n_irrelevant[users] if most is None else np.minimum(n_irrelevant[users], most)
        drawn[items], seen[items] = _until(above[items], n_irrelevant[users], hits, limit, rng, ends)
    return drawn, seen


def _until(
    above: Ints, n_irrelevant: Ints, hits: int, limit: Ints, rng: np.random.Generator, ends: Ints | None
) -> tuple[Ints, Ints]:
    """Draw for instances with equally many relevant items: a row each, and all arrays are theirs."""
    left = above.copy()  # candidates above each item that have not been drawn
    drawn, seen = np.repeat(limit[:, None], above.shape[1], axis=1), np.zeros_like(above)
    time = np.zeros_like(limit)
    lowest = np.full(limit.size, above.shape[1] - 1)  # the last item that is still open
    rows = np.arange(limit.size)
    while rows.size:
        rows = rows[left[rows, lowest[rows]] > 0]
        inside = left[rows, lowest[rows]]
        # the first of `inside` uniform keys, and how many of the other candidates have smaller ones
        first = rng.beta(1.0, inside)
        time[rows] += 1 + rng.binomial(n_irrelevant[rows] - time[rows] - inside, first)
        rows, inside = rows[time[rows] <= limit[rows]], inside[time[rows] <= limit[rows]]
        place = rng.integers(0, inside)
        if ends is not None:
            still = np.isin(rows, _close(rows, time - 1, drawn, seen, lowest, hits))
            rows, place = rows[still], place[still]
        open_ = np.arange(above.shape[1]) <= lowest[rows][:, None]
        counts = (place[:, None] < left[rows]) & open_
        left[rows] -= counts
        seen[rows] += counts
        at = time[rows] if ends is None else np.minimum(ends[np.searchsorted(ends, time[rows])], limit[rows])
        drawn[rows] = np.where(counts & (seen[rows] == hits), at[:, None], drawn[rows])
        rows = _close(rows, time, drawn, seen, lowest, hits)
    return drawn, seen


def _close(rows: Ints, time: Ints, drawn: Ints, seen: Ints, lowest: Ints, hits: int) -> Ints:
    """Close items whose draws have ended, and return the rows in which some are left."""
    open_ = rows
    while open_.size:
        last = lowest[open_]
        open_ = open_[(seen[open_, last] >= hits) & (drawn[open_, last] <= time[open_])]
        lowest[open_] -= 1
        open_ = open_[lowest[open_] >= 0]
    return rows[lowest[rows] >= 0]
