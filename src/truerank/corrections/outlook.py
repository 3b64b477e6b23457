"""What can be expected of corrections before any data are seen, if ranks follow the reference law of `brackets`."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.base import Case
from truerank.corrections.bias_variance import BiasVariance
from truerank.corrections.bounds import Bound
from truerank.corrections.brackets import Setting, reference, setting
from truerank.metrics.base import Term
from truerank.sampling.laws import Law

_GAMMAS = (1.0, 0.1, 0.01, 0.001)
# beyond a quarter of the candidates sampling is not worth its while
_SHARE = 4


@lru_cache(maxsize=1024)
def is_determined(term: Term, law: Law, case: Case) -> bool:
    """Return whether a large sample would tell the metric: its upper bound is at most three times its lower one.

    Examples
    --------
    >>> from truerank.metrics import Recall
    >>> from truerank.sampling.laws import HYPERGEOMETRIC
    >>> [is_determined(Recall(10), HYPERGEOMETRIC, Case(1, 1, 3_541, m)) for m in (100, 1_000)]
    [False, True]
    """
    shown = _setting(law, case).shown
    low, high = (float(shown @ Bound(upper).tables(term, law, [case])[0]) for upper in (False, True))
    return high - low <= abs(high + low) / 2


def enough_draws(term: Term, law: Law, case: Case) -> int | None:
    """Return about how many draws would tell the metric; None if it takes a good part of the candidates."""
    m = 2 * case.m
    while m <= case.N // _SHARE:
        if is_determined(term, law, case._replace(m=m)):
            return m
        m *= 2
    return None


def best_gamma(term: Term, law: Law, case: Case, instances: int) -> float:
    """Return the gamma with the least mean squared error of the mean over so many instances, of some powers of ten."""
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
    return setting(case.N, case.m, law)
