"""The bias-variance trade-off, with a given gamma or one chosen for the data."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Literal, NamedTuple

import numpy as np

from truerank.core.caching import cached
from truerank.core.checks import Floats, InputError, as_number, frozen
from truerank.core.csr import bounds, places
from truerank.core.ranks import Ranks
from truerank.estimators import corrected, solvers
from truerank.estimators.corrected import Case, Correction, CorrectionTable, SumsBySize
from truerank.estimators.least_squares import Prior, prior_notes, problem_of
from truerank.estimators.pooled import Smooth
from truerank.estimators.rank_laws import Observed, cell_means
from truerank.metrics.definitions import Term, Terms
from truerank.sampling.expectations import pooled_laws
from truerank.sampling.laws import HYPERGEOMETRIC, Law

LARGEST = 4_096
"""Most draws for which the polynomials are computed: within some three seconds."""


GAMMAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
# relevant items of each group that represent the others
_TYPICAL = 3


def least_risk(corrections: list[BiasVariance], parts: tuple[Terms, ...], ranks: Ranks, name: str) -> BiasVariance:
    """Return the correction with the least estimated risk: squared bias plus variance of the mean over instances.

    Bias and variance are computed as if the ranks of each group of relevant items followed the law that `Smooth` fits.
    Some items represent their group, and covariances of items of one instance are left out.
    """
    law = corrected.require_design(ranks, name).law(name)
    cases = [case for part in parts for case in _cases(part, ranks, law)]
    risks = []
    for correction in corrections:
        tables = [correction.tables(case.part.term, law, [case.case])[0] for case in cases]
        bias, variance = np.sum([case.moments(table) for case, table in zip(cases, tables, strict=True)], axis=0)
        risks.append(bias**2 + variance)
    return corrections[int(np.argmin(risks))]


class _Typical(NamedTuple):
    """A relevant item that represents others: the chances of its exact and sampled counts, and what it adds."""

    part: Terms
    case: Case
    law: Floats
    shown: Floats
    exact: Floats
    weight: float
    """Weight of its group in the mean over instances."""
    single: float
    """Weight of one item."""

    def moments(self, table: Floats) -> tuple[float, float]:
        """Return what a table adds to the bias and to the variance of the mean."""
        mean, square = self.shown @ table, self.shown @ table**2
        bias, variance = self.law @ (mean - self.exact), self.law @ (square - mean**2)
        return self.weight * float(bias), self.weight * self.single * float(variance)


def _cases(part: Terms, ranks: Ranks, law: Law) -> list[_Typical]:
    fits = Smooth().laws(ranks)
    groups = (_of_group(part, ranks, law, *each) for each in zip(fits.groups, fits.laws, strict=True))
    return list(chain.from_iterable(groups))


def _of_group(part: Terms, ranks: Ranks, law: Law, group: Observed, chances: Floats) -> list[_Typical]:
    by_size = group.items[np.argsort(ranks.item_irrelevant[group.items], kind="stable")]
    shares = (np.arange(_TYPICAL) + 0.5) / _TYPICAL
    chosen = by_size[(shares * by_size.size).astype(np.int64)]
    means, which = cell_means(part.term, ranks, chosen, group.seen.cells)
    mean_weight = 1.0 if part.weight is None else float(part.weight[group.items].mean())
    single = mean_weight / int((ranks.n_relevant > 0).sum())
    found = []
    for item, row in zip(chosen.tolist(), which.tolist(), strict=True):
        N, m = int(ranks.item_irrelevant[item]), int(ranks.item_draws[item])
        case = Case(int(ranks.i[item]), int(ranks.item_n_relevant[item]), N + int(ranks.item_n_relevant[item]), m)
        shown = law.rows(np.minimum(group.seen.cells.middles, N), m, N)
        weight = single * by_size.size / _TYPICAL
        found.append(_Typical(part, case, chances, shown, means[row], weight, single))
    return found


# cases times sampled counts held at once: 32 MB, several times
_MOST_COUNTS = 1 << 22


@dataclass(frozen=True)
class BiasVariance(Correction):
    """Correction with the least sum of squared bias and gamma times the variance (eq. 24 to 26).

    Parameters
    ----------
    gamma : float, or "auto"
        From 0 to 1: the larger, the smaller the variance and the larger the bias. "auto" chooses among 1, 0.3, 0.1,
        ..., 0.0001 the one with the least squared bias plus variance of the mean, if ranks follow the law that
        ``~smooth`` fits to these very ranks; a note names it.
    prior : tuple of float, optional
        Prior weights of the ranks; None: all are equally likely.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([1, 2, 5, 20, 100, 400] * 200, n=1_000)
    >>> tr.estimate(tr.UniformSampling(100).draw(exact, rng=1), "ap~bv(auto)").notes[0]
    'the gamma of ap~bv(auto) is 0.0001, which has the least risk if ranks follow the law of ap~smooth'
    """

    name = "bv"
    gamma: float | Literal["auto"] = field(default="auto", metadata={"words": ("auto",), "always_written": True})
    prior: Prior | None = field(default=None, metadata={"only_in_code": True})

    def __post_init__(self) -> None:
        if self.gamma != "auto" and not 0.0 < as_number(self.gamma) <= 1.0:
            raise InputError(f"the gamma of ~bv(gamma) must lie in (0, 1], or be auto, got {self.gamma}.")

    @property
    def pools_instances(self) -> bool:
        return self.gamma == "auto"

    def chosen(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> BiasVariance:
        """Return the correction with the gamma that is used for these ranks."""
        if self.gamma != "auto":
            return self
        choices = [replace(self, gamma=gamma) for gamma in GAMMAS]
        return ranks.fits.get((self, name), lambda: least_risk(choices, parts, ranks, name))

    def terms(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[Terms, ...]:
        return super(BiasVariance, self.chosen(parts, ranks, name)).terms(parts, ranks, name)

    def caveats(self, parts: tuple[Terms, ...], ranks: Ranks, name: str) -> tuple[str, ...]:
        used = self.chosen(parts, ranks, name)
        notes = () if self.prior is None else prior_notes(used, replace(used, prior=None), parts, ranks, name)
        if self.gamma != "auto":
            return notes
        law = f"the law of {name.partition('~')[0]}~smooth"
        return (f"the gamma of {name} is {used._number:g}, which has the least risk if ranks follow {law}", *notes)

    def solve(self, term: Term, law: Law, case: Case) -> CorrectionTable:
        return solvers.bias_variance(problem_of(term, law, case, self.prior), self._number)

    @property
    def _number(self) -> float:
        if isinstance(self.gamma, str):
            raise InputError("the gamma of ~bv(auto) is chosen for the ranks of an evaluation; give a number here.")
        return self.gamma

    def tables(self, term: Term, law: Law, cases: list[Case]) -> list[Floats]:
        """Solve all cases with the same m at once in closed form, where the prior is uniform and the law has one."""
        if self.prior is not None or law not in solvers.SPECTRA:
            return super().tables(term, law, cases)
        gamma = self._number
        return solvers.solved_together(term, cases, lambda batch: solvers.bias_variance_tables(batch, gamma, law))

    def expected_sums(self, term: Term, law: Law, items: corrected.CountedItems, largest: int) -> SumsBySize | None:
        if self.prior is not None or law is not HYPERGEOMETRIC:
            return None
        gamma = self._number
        if largest <= LARGEST and len(items.cases) * (largest + 1) <= _MOST_COUNTS:
            metric = _metric_shown(term, tuple(items.cases), largest)
            return _sums_by_size(items.shown(largest), metric, items.cases, gamma)
        if items.tied.any():
            return None
        batch, counts = solvers.Batch.of(term, items.cases, m=0), _side_by_side(items)
        return lambda sizes: solvers.bias_variance_sums(batch, counts, sizes, gamma)


def _sums_by_size(shown: Floats, metric: Floats, cases: list[Case], gamma: float) -> SumsBySize:
    """Return the sums of the expected table values of all items, from the counts in the largest samples.

    `shown` is what M draws show about the items of each case, and `metric` what they show about the metric, both of
    shape (cases, M + 1). In polynomials, neither depends on a smaller sample size m.
    """
    M, spectrum = shown.shape[1] - 1, solvers.Gram()
    polynomials = solvers.sampled_polynomials(M)
    both = (shown @ polynomials) * (metric @ polynomials)
    to_all = spectrum.singular_values(np.array([case.N for case in cases]), M) ** 2

    def at(m: int) -> float:
        squares = spectrum.singular_values(M, m) ** 2
        own = to_all[:, : m + 1] * squares
        return float(np.sum(both[:, : m + 1] * squares / ((1 - gamma) * own + gamma)))

    return lambda sizes: np.array([at(m) for m in sizes.tolist()])


@cached
def _metric_shown(term: Term, cases: tuple[Case, ...], m: int) -> Floats:
    """Return what samples of m draws show about the metric; recommenders that are compared share their cases."""
    batch = solvers.Batch.of(term, list(cases), m)
    g, mass = batch.mass(np.arange(len(cases)), HYPERGEOMETRIC)
    row, place = np.nonzero(mass)
    counts, N, weight = g[row, place], batch.N[row], mass[row, place]
    return frozen(pooled_laws(HYPERGEOMETRIC, counts, m, N, weight=weight, group=row, n_groups=len(cases)))


def _side_by_side(items: corrected.CountedItems) -> tuple[Floats, Floats]:
    """Return the counts and weights of the items of each case as a row, padded with 0."""
    order = np.argsort(items.which, kind="stable")
    sizes = np.bincount(items.which, minlength=len(items.cases))
    row = items.which[order]
    column = places(bounds(sizes)) - 1
    counts, weights = np.zeros((2, sizes.size, int(sizes.max())))
    counts[row, column], weights[row, column] = items.above[order], items.weight[order]
    return counts, weights


corrected.CORRECTIONS.add_built_in(BiasVariance)
