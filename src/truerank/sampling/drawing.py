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
