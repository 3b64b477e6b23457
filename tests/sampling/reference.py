"""Slow, obvious definitions: fifty digits, and the enumeration of every sample."""

from collections.abc import Callable, Iterator, Sequence
from functools import lru_cache
from itertools import combinations, product
from typing import Any

import mpmath as mp  # type: ignore[import-untyped]
import numpy as np

from tests.arrays import Floats

_DIGITS = 50

TERMS: dict[str, Callable[[int], Any]] = {
    "ap": lambda g: mp.mpf(1) / (g + 1),
    "recall@10": lambda g: mp.mpf(g < 10),
    "ndcg": lambda g: 1 / mp.log(g + 2, 2),
}
"""What one relevant item adds with g irrelevant candidates above it."""


def pmf(h: int, g: int, m: int, N: int, replace: bool) -> float:
    """Law of the sampled count; 0 where it is too small for a double."""
    with mp.workdps(_DIGITS):
        return float(_pmf(h, g, m, N, replace))


def tails(h: int, g: int, m: int, N: int, replace: bool) -> tuple[float, float]:
    """P(H <= h) and P(H > h)."""
    with mp.workdps(_DIGITS):
        law = _law(g, m, N, replace)
        return float(mp.fsum(law[: h + 1])), float(mp.fsum(law[h + 1 :]))


def bias_variance(term: Callable[[int], Any], N: int, m: int, gamma: float, replace: bool) -> Floats:
    """Eq. 25 as printed, uniform prior; `gamma` is taken as the decimal number that it is written as."""
    with mp.workdps(_DIGITS):
        law, gram, evidence = _normal_equations(N, m, replace)
        weight = mp.mpf(repr(gamma))
        system = (1 - weight) * gram
        for h in range(m + 1):
            system[h, h] += weight * evidence[h]
        target = mp.matrix([term(g) for g in range(N + 1)])
        return np.array(list(mp.lu_solve(system, law.T * target)), dtype=np.float64)


def samples(N: int, m: int, replace: bool) -> Iterator[tuple[int, ...]]:
    """Every equally likely sample of m of the candidates 0..N-1."""
    return product(range(N), repeat=m) if replace else combinations(range(N), m)


def enumerated_moments(
    tables: Sequence[Floats], g: Sequence[int], N: int, m: int, replace: bool
) -> tuple[float, float]:
    """Moments of sum_i tables[i][h_i] over all samples; candidates 0..g_i - 1 are above item i."""
    values = [
        sum(table[sum(j < above for j in sample)] for table, above in zip(tables, g, strict=True))
        for sample in samples(N, m, replace)
    ]
    return float(np.mean(values)), float(np.var(values))


def _pmf(h: int, g: int, m: int, N: int, replace: bool) -> Any:
    if replace:
        p = mp.mpf(g) / N
        return mp.binomial(m, h) * p**h * (1 - p) ** (m - h)
    if h > g or m - h > N - g or h < 0:
        return mp.mpf(0)
    log = mp.loggamma
    return mp.exp(
        log(g + 1) - log(h + 1) - log(g - h + 1)
        + log(N - g + 1) - log(m - h + 1) - log(N - g - m + h + 1)
        - log(N + 1) + log(m + 1) + log(N - m + 1)
    )  # fmt: skip


@lru_cache(maxsize=1)
def _law(g: int, m: int, N: int, replace: bool) -> list[Any]:
    return [_pmf(h, g, m, N, replace) for h in range(m + 1)]


@lru_cache
def _normal_equations(N: int, m: int, replace: bool) -> tuple[Any, Any, list[Any]]:
    """The law as a matrix of g and h, the inner products of its columns, and their sums."""
    binomial = mp.binomial
    law = mp.matrix(
        [
            _law(g, m, N, True)
            if replace
            else [binomial(g, h) * binomial(N - g, m - h) / binomial(N, m) for h in range(m + 1)]
            for g in range(N + 1)
        ]
    )
    return law, law.T * law, [mp.fsum(law[:, h]) for h in range(m + 1)]
