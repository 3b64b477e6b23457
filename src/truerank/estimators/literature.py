"""Two estimators from the literature, for comparison: maximum entropy, and the multinomial least-squares table.

With p(h) the share of relevant items with the sampled count h, P(h | a) the law of the design and n = m + 1,

MES
    takes the law of the ranks that minimises n sum_h p(h) (sum_a pi(a) P(h | a) - p(h))^2 - eta H(pi), H being the
    entropy (Jin et al., "On Estimating Recommendation Evaluation Metrics under Sampling", AAAI 2021).
MN
    takes the table x = (A' D A - A' A / M + diag(A' 1) / M)^-1 A' D f, where A has the rows P(. | a), D is the prior of
    the counts and M the number of instances: the least squared bias over the prior plus the variances of all counts
    over M (Li et al., "Towards Reliable Item Sampling for Recommendation Evaluation", AAAI 2023).

Published results take their prior from 100 samples of the same users together, which no study has; here it is learned
from the only sample at hand, as `truerank.estimators.learn_prior` does.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from truerank.core.caching import cached
from truerank.core.checks import Floats, InputError, Ints, as_number
from truerank.core.ranks import Ranks
from truerank.estimators import corrected
from truerank.estimators.corrected import Case, Correction, CorrectionTable, Estimator, fitted, require_design
from truerank.estimators.least_squares import Prior, learn_prior, prior_counts
from truerank.estimators.pooled import Pooled
from truerank.estimators.rank_laws import Cells, RankLaws, cells, observed, uniform_law
from truerank.metrics.definitions import Term, Terms
from truerank.sampling.laws import Law

# catalogue sizes that represent all in a group of relevant items: this many for a factor of e, and at most
_PER_FACTOR, _SIZES = 20, 16
# catalogue sizes for which tables are solved
_GRID = 24
_MOST_STEPS, _TOLERANCE = 200, 1e-12


@dataclass(frozen=True)
class MaximumEntropy(Pooled):
    """Estimate by the law of the ranks that fits the sampled counts with the largest entropy (MES in the literature).

    The estimate is the mean of the metric under that law. Values of single instances are posterior means, all shifted
    by the same amount so that their mean is the estimate.

    Parameters
    ----------
    eta : float
        Weight of the entropy; 0.01 in the paper.
    """

    name = "mes"
    eta: float = 0.01

    def __post_init__(self) -> None:
        if not 0.0 < as_number(self.eta) < np.inf:
            raise InputError(f"the eta of ~mes(eta) must be above 0, got {self.eta}.")

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        require_design(ranks, name).law(name)
        if np.unique(ranks.draws[ranks.n_relevant > 0]).size > 1:
            raise InputError(f"{name} needs the same number of draws for each instance; use ~em.")
        laws = self.laws(ranks)
        return tuple(
            given._replace(term=_Shifted(given.term, laws, _shifts(part, given, laws, ranks)))
            for part, given in zip(parts, super().terms(parts, ranks, name), strict=True)
        )

    @fitted
    def laws(self, ranks: Ranks) -> RankLaws:
        law, untied = require_design(ranks, str(self)).law(str(self)), ranks.break_ties("random", rng=0)
        groups = observed(ranks)
        return RankLaws(groups, tuple(self._law_of(untied, group.items, group.seen.cells, law) for group in groups))

    def _law_of(self, ranks: Ranks, items: Ints, within: Cells, law: Law) -> Floats:
        m = int(ranks.item_draws[items[0]])
        shares = np.bincount(ranks.above[items], minlength=m + 1) / items.size
        sizes, weights = _typical(ranks.item_irrelevant[items])
        chances = np.zeros((len(within), m + 1))
        for N, weight in zip(sizes.tolist(), weights.tolist(), strict=True):
            chances += weight * law.rows(np.minimum(within.middles, N), m, N)
        return maximum_entropy_law(chances, shares, within, self.eta)


@dataclass(frozen=True)
class Multinomial(Estimator):
    """Estimate by the table of least squared bias over a learned prior plus variance over the instances (MN)."""

    name = "mn"

    pools_instances = True

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        require_design(ranks, name).law(name)
        table = MultinomialTable(_learned_prior(ranks), int((ranks.n_relevant > 0).sum()))
        return table.terms(parts, ranks, name)

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        return (f"{name} rests on a prior that is learned from the same sample",)


corrected.CORRECTIONS.add_built_in(MaximumEntropy, Multinomial)
_learned_prior = fitted(learn_prior)


@dataclass(frozen=True, eq=False)
class _Shifted(Term):
    """Posterior means, shifted by one number for each group of relevant items."""

    base: Term
    laws: RankLaws
    shifts: Floats

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return self.base.term(rank, i, n_relevant, n) + self.shifts[self.laws.group[n]]


def _shifts(part: Terms, posterior: Terms, laws: RankLaws, ranks: Ranks) -> Floats:
    """Return by how much the mean of a term under the law of each group exceeds the mean of its posterior means."""
    found = []
    for group, law in zip(laws.groups, laws.laws, strict=True):
        means, case = group.cell_means(part.term, ranks)
        at = (ranks.rank[group.items], ranks.i[group.items], ranks.item_n_relevant[group.items])
        under_law = (means @ law)[case] @ group.seen.weight / group.items.size
        found.append(float(under_law - posterior.term.term(*at, posterior.n[group.items]).mean()))
    return np.array(found)


def _typical(sizes: Ints) -> tuple[Ints, Floats]:
    """Return sizes that represent all, more of them if they differ more, and the share of each."""
    number = int(np.clip(np.ceil(_PER_FACTOR * np.log(sizes.max() / sizes.min())), 1, _SIZES))
    middles = (np.arange(number) + 0.5) / number
    chosen = np.sort(sizes)[(middles * sizes.size).astype(np.int64)]
    distinct, counts = np.unique(chosen, return_counts=True)
    return distinct, counts / number


def maximum_entropy_law(chances: Floats, shares: Floats, within: Cells, eta: float) -> Floats:
    """Return the law of MES by Newton's method; the entropy acts as a barrier.

    Parameters
    ----------
    chances : array of shape (cells, m + 1)
        Chance of each sampled count in each cell.
    shares : array of float, m + 1
        Shares of the sampled counts.
    within : Cells
    eta : float
    """
    root = np.sqrt(shares.size * shares)
    fit = (chances * root).T
    target = root * shares
    law = uniform_law(within)

    def goal(at: Floats) -> float:
        return float(np.square(fit @ at - target).sum() + eta * (at @ np.log(at / within.sizes)))

    for _ in range(_MOST_STEPS):
        slope = 2 * fit.T @ (fit @ law - target) + eta * (np.log(law / within.sizes) + 1)
        step = _newton_step(2 * fit.T @ fit + np.diag(eta / law), slope)
        drop = float(-slope @ step)
        if drop < _TOLERANCE:
            break
        size = min(1.0, 0.95 / max(float((-step / law).max()), 1e-300))
        while goal(law + size * step) > goal(law) - 0.25 * size * drop and size > 1e-12:
            size /= 2
        law = law + size * step
    return np.asarray(law / law.sum(), dtype=np.float64)


def _newton_step(curvature: Floats, slope: Floats) -> Floats:
    """Return the step that keeps the sum unchanged."""
    both = np.linalg.solve(curvature, np.stack([slope, np.ones_like(slope)], axis=1))
    return np.asarray(-both[:, 0] + both[:, 1] * (both[:, 0].sum() / both[:, 1].sum()), dtype=np.float64)


@dataclass(frozen=True)
class MultinomialTable(Correction):
    """The table of MN for a known prior and number of instances."""

    name = "mn-table"
    prior: Prior
    instances: int

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return CorrectionTable(self.tables(term, law, [case])[0])

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Solve for some numbers of candidates, and interpolate between them if there are many."""
        grid = {m: _grid(np.array([case.N for case in cases if case.m == m])) for m in {case.m for case in cases}}
        return [self._table(term, law, case, grid[case.m]) for case in cases]

    def _table(self, term: Term, law: Law, case: Case, sizes: Ints) -> Floats:
        after = int(np.searchsorted(sizes, case.N))
        high, low = int(sizes[after]), int(sizes[max(after - 1, 0)])
        if high == case.N:
            return self._solved(term, law, case, high)
        share = (case.N - low) / (high - low)
        return (1 - share) * self._solved(term, law, case, low) + share * self._solved(term, law, case, high)

    def _solved(self, term: Term, law: Law, case: Case, N: int) -> Floats:
        means = case.count_term(term)(cells(N).points.astype(np.float64)).mean(axis=1)
        return multinomial_map(self.prior, self.instances, N, case.m, law) @ means


def _grid(sizes: Ints) -> Ints:
    """Return the numbers of candidates to solve for: all, or some from the least to the largest."""
    distinct = np.unique(sizes)
    if distinct.size <= _GRID:
        return distinct
    return np.unique(np.round(np.geomspace(distinct[0], distinct[-1], _GRID)).astype(np.int64))


@cached
def multinomial_map(prior: Prior, instances: int, N: int, m: int, law: Law) -> Floats:
    """Return the matrix that turns the values of a term in the cells into the table of MN."""
    within = cells(N)
    weight = np.add.reduceat(prior_counts(prior, N), within.starts)
    weight = weight / weight.sum()
    chances = law.rows(within.middles, m, N)
    variance = np.diag(within.sizes @ chances) - (chances.T * within.sizes) @ chances
    weighted = chances.T * weight
    return np.asarray(np.linalg.solve(weighted @ chances + variance / instances, weighted), dtype=np.float64)
