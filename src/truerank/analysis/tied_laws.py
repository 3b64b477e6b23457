"""The law of the sampled count of items that tie with others, over all orders of the ties and all samples."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.caching import cached
from truerank.corrections.nodes import interval_nodes
from truerank.errors import InputError
from truerank.ranking.ranks import Ranks
from truerank.ranking.ties import chance
from truerank.sampling.expectations import ItemLaws
from truerank.sampling.laws import HYPERGEOMETRIC, Law


class TiedItemLaws(ItemLaws):
    """The laws of all relevant items of exact ranks, each averaged over the orders of its ties."""

    def __init__(self, law: Law, ranks: Ranks, m: int) -> None:
        super().__init__(law, ranks.above, m, ranks.item_n - ranks.item_n_relevant)
        self.tied, (self.place, self.block) = ranks.tied, ranks.blocks()

    def rows(self, part: slice) -> Floats:
        """Return the probabilities of h = 0..m, a row for each item of a part."""
        rows = super().rows(part)
        tied = np.arange(*part.indices(len(self)))[self.tied[part] > 0]
        alone = (self.block[tied] == 1) & (self.law is HYPERGEOMETRIC)
        single = tied[alone]
        if single.size:
            rows[single - part.start] = HYPERGEOMETRIC.tied_rows(
                self.g[single], self.tied[single], self.m, self.N[single]
            )
        for item in tied[~alone]:
            rows[item - part.start] = self._mixed(item)
        return rows

    def _mixed(self, item: int) -> Floats:
        """Average over the number of lost ties, by few weighted counts that stand for all."""
        above, tied, block = int(self.g[item]), int(self.tied[item]), int(self.block[item])
        counts = interval_nodes(above, above + tied, int(self.N[item]), self.m, self.law, longest=8 * tied / block)
        lost = chance(counts.g - above, self.tied[item], self.place[item], self.block[item])
        return (counts.weight * lost) @ self.law.rows(counts.g, self.m, self.N[item])


def joint_tied_moments(tables: Sequence[Floats], instance: Ranks, m: int, law: Law) -> tuple[float, float]:
    """Mean and variance of the metric of an instance whose relevant items share a sample and tie with others.

    Where no candidate is drawn twice, ordering the ties and sampling may change places: first the sampled candidates
    above a block of ties and those in it are drawn, then the latter are put in order with the block's relevant items.
    Both are Markov chains, so one backward pass gives both moments exactly.

    Parameters
    ----------
    tables : sequence of arrays of shape (m + 1,)
        What each relevant item adds when h of the sample stand above it.
    instance : Ranks
        One instance.
    m : int
    law : Law
    """
    if not law.distinct:
        raise InputError(
            "the variance of several relevant items with ties is known only for sampling without replacement; break "
            "the ties first."
        )
    n_irrelevant = int(instance.draws[0])
    place, size = instance.blocks()
    mean, variance = np.zeros((2, m + 1))
    starts = np.flatnonzero(place == 1)
    passed = [0, *(int(instance.above[at] + instance.tied[at]) for at in starts[:-1])]
    for at, before in zip(starts[::-1], passed[::-1], strict=True):
        block = tables[at : at + size[at]]
        above, tied = int(instance.above[at]), int(instance.tied[at])
        mean, variance = _through_block(block, mean, variance, above, tied, m, n_irrelevant, law)
        mean, variance = _down_to(before, above, mean, variance, m, n_irrelevant, law)
    return float(mean[0]), float(variance[0])


def _down_to(start: int, stop: int, mean: Floats, variance: Floats, m: int, N: int, law: Law) -> tuple[Floats, Floats]:
    """From h sampled among the first `stop` candidates, back to h sampled among the first `start`."""
    if start == stop:
        return mean, variance
    step = _steps(stop - start, N - start, m, law)
    further = np.minimum(np.arange(m + 1)[:, None] + np.arange(m + 1), m)
    return _average(step, mean[further], variance[further])


def _through_block(
    tables: Sequence[Floats], mean: Floats, variance: Floats, above: int, tied: int, m: int, N: int, law: Law
) -> tuple[Floats, Floats]:
    """From h sampled before the end of a block, back to h sampled above it.

    Within the block the state is how many are sampled before its end (rows) and how many of these are still to come
    (columns).
    """
    before_end, to_come = np.arange(m + 1)[:, None], np.arange(m + 1)
    sampled_above = np.maximum(before_end - to_come, 0)
    means, variances = np.repeat(mean[:, None], m + 1, axis=1), np.repeat(variance[:, None], m + 1, axis=1)
    for left, table in enumerate(reversed(tables), start=1):
        order = _next_relevant(m, left)
        landed = table[sampled_above] + means
        means = landed @ order.T
        variances = np.maximum((variances + landed**2) @ order.T - means**2, 0.0)
    if tied == 0:
        return means[:, 0], variances[:, 0]
    end = np.minimum(before_end + to_come, m)
    return _average(_steps(tied, N - above, m, law), means[end, to_come], variances[end, to_come])


def _steps(inside: int, left: int, m: int, law: Law) -> Floats:
    """Probability that h' of the m - h draws that are left fall on the next `inside` of `left` candidates: (h, h')."""
    draws = np.minimum(m - np.arange(m + 1), left)
    rows = law.rows(np.full(m + 1, inside), draws, left)
    return np.pad(rows, ((0, 0), (0, m + 1 - rows.shape[1])))


def _average(step: Floats, mean: Floats, variance: Floats) -> tuple[Floats, Floats]:
    """Mean and variance after a step, by the law of total variance; row h holds what follows each h'."""
    average = np.einsum("ij,ij->i", step, mean)
    spread = np.einsum("ij,ij->i", step, variance + (mean - average[:, None]) ** 2)
    return average, spread


@cached
def _next_relevant(m: int, left: int) -> Floats:
    """Probability that s of r tied candidates come after the next of `left` tied relevant items: (r, s)."""
    from scipy import special

    rest: Ints = np.arange(m + 1)
    ways = special.binom(rest + left - 1.0, left - 1.0) / special.binom(rest + float(left), left)[:, None]
    return np.tril(ways)
