"""The gamma of the bias-variance correction with the least estimated risk, if the ranks follow a smooth law."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.base import Case, require_design
from truerank.corrections.pooled import Smooth
from truerank.corrections.posteriors import Observed, cell_means
from truerank.metrics.base import Terms
from truerank.ranking.ranks import Ranks
from truerank.sampling.laws import Law

if TYPE_CHECKING:
    from truerank.corrections.bias_variance import BiasVariance

GAMMAS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003, 0.0001)
# relevant items of each group that stand for the others
_TYPICAL = 3


def least_risk(corrections: list[BiasVariance], parts: tuple[Terms, ...], ranks: Ranks, name: str) -> BiasVariance:
    """Return the correction with the least estimated risk: squared bias plus variance of the mean over instances.

    Bias and variance are those that it would have if the ranks of each group of relevant items followed the law that
    `Smooth` fits. Some items stand for their group, and covariances of items of one instance are left out.
    """
    law = require_design(ranks, name).law(name)
    cases = [case for part in parts for case in _cases(part, ranks, law)]
    risks = []
    for correction in corrections:
        tables = [correction.tables(case.part.term, law, [case.case])[0] for case in cases]
        bias, variance = np.sum([case.moments(table) for case, table in zip(cases, tables, strict=True)], axis=0)
        risks.append(bias**2 + variance)
    return corrections[int(np.argmin(risks))]


class _Typical(NamedTuple):
    """A relevant item that stands for others: the chances of its exact and sampled counts, and what it adds."""

    part: Terms
    case: Case
    law: Floats
    shown: Floats
    exact: Floats
    weight: float
    """Of its group in the mean over instances."""
    single: float
    """Of one item."""

    def moments(self, table: Floats) -> tuple[float, float]:
        """Return what a table adds to the bias and to the variance of the mean."""
        mean, square = self.shown @ table, self.shown @ table**2
        bias, variance = self.law @ (mean - self.exact), self.law @ (square - mean**2)
        return self.weight * float(bias), self.weight * self.single * float(variance)


def _cases(part: Terms, ranks: Ranks, law: Law) -> list[_Typical]:
    fits = Smooth().laws(ranks)
    return [
        one
        for group, chances in zip(fits.groups, fits.laws, strict=True)
        for one in _of_group(part, ranks, law, group, chances)
    ]


def _of_group(part: Terms, ranks: Ranks, law: Law, group: Observed, chances: Floats) -> list[_Typical]:
    by_size = group.items[np.argsort(ranks.item_irrelevant[group.items], kind="stable")]
    shares = (np.arange(_TYPICAL) + 0.5) / _TYPICAL
    chosen = by_size[(shares * by_size.size).astype(np.int64)]
    means, which = cell_means(part.term, ranks, chosen, group.seen.cells)
    single = (1.0 if part.weight is None else float(part.weight[group.items].mean())) / int(
        (ranks.n_relevant > 0).sum()
    )
    found = []
    for item, row in zip(chosen.tolist(), which.tolist(), strict=True):
        N, m = int(ranks.item_irrelevant[item]), int(ranks.item_draws[item])
        case = Case(int(ranks.i[item]), int(ranks.item_n_relevant[item]), N + int(ranks.item_n_relevant[item]), m)
        shown = law.rows(np.minimum(group.seen.cells.middles, N), m, N)
        weight = single * by_size.size / _TYPICAL
        found.append(_Typical(part, case, chances, shown, means[row], weight, single))
    return found
