"""What can be expected of corrections before any data are seen, if ranks follow the reference law of `brackets`."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats
from truerank.caching import cached
from truerank.corrections.base import Case
from truerank.corrections.bias_variance import BiasVariance
from truerank.corrections.bounds import Bound
from truerank.corrections.brackets import FixedDraws, Setting, reference, setting
from truerank.metrics.base import Term
from truerank.sampling.laws import Law

_GAMMAS = (1.0, 0.1, 0.01, 0.001)
# beyond half of the candidates, or so many, sampling is not worth its while
_SHARE = 2
_LARGEST = 4_096
# upper over lower bound for endlessly many instances; leaves room for the error of some thousand, up to the factor of
# three from which a metric counts as not determined
_FACTOR = 1.75


@cached
def is_determined(term: Term, law: Law, case: Case) -> bool:
    """Return whether some thousand instances can be expected to tell the metric within a factor of three.

    Examples
    --------
    >>> from truerank.metrics import Recall
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> [is_determined(Recall(10), HYPERGEOMETRIC, Case(1, 1, 3_541, m)) for m in (100, 1_000)]
    [False, True]
    """
    shown = _setting(law, case).shown
    low, high = (float(shown @ Bound(upper).tables(term, law, [case])[0]) for upper in (False, True))
    return max(abs(low), abs(high)) <= _FACTOR * min(abs(low), abs(high)) and low * high >= 0


def enough_draws(term: Term, law: Law, case: Case) -> int | None:
    """Return about how many draws would tell the metric; None if it takes a good part of the candidates."""
    m = 2 * case.m
    while m <= min(case.N // _SHARE, _LARGEST):
        if is_determined(term, law, case._replace(m=m)):
            return m
        m *= 2
    return None


def best_gamma(term: Term, law: Law, case: Case, instances: int) -> float:
    """Return the gamma with the least mean squared error of the mean over this many instances, among powers of ten."""
    shared = _setting(law, case)
    exact = float(
        reference(shared.g) @ np.broadcast_to(case.count_term(term)(shared.g.astype(np.float64)), shared.g.shape)
    )

    def error(gamma: float) -> float:
        return _squared_error(BiasVariance(gamma).tables(term, law, [case])[0], shared.shown, exact, instances)

    return min(_GAMMAS, key=error)


def _squared_error(table: Floats, shown: Floats, exact: float, instances: int) -> float:
    mean = float(shown @ table)
    return (mean - exact) ** 2 + float(shown @ np.square(table - mean)) / max(instances, 1)


def _setting(law: Law, case: Case) -> Setting:
    return setting(FixedDraws(case.N, case.m, law))
