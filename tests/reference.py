"""Slow and obvious definitions: explicit rankings, loops, and enumeration of every order of ties."""

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, TypeVar

import numpy as np
from scipy import optimize, stats

T = TypeVar("T")
Ranking = Sequence[bool]
"""A ranking from the top: True where the candidate is relevant."""


def auc(ranking: Ranking) -> float:
    pairs = [(a, b) for a, x in enumerate(ranking) if x for b, y in enumerate(ranking) if not y]
    return sum(a < b for a, b in pairs) / len(pairs) if pairs else math.nan


def precision(ranking: Ranking, k: int) -> float:
    return sum(ranking[:k]) / k


def recall(ranking: Ranking, k: int) -> float:
    return sum(ranking[:k]) / sum(ranking)


def ap(ranking: Ranking, k: int | None = None) -> float:
    depth = len(ranking) if k is None else k
    total = sum(precision(ranking, r) for r in range(1, min(depth, len(ranking)) + 1) if ranking[r - 1])
    return total / min(sum(ranking), depth)


def ndcg(ranking: Ranking, k: int | None = None) -> float:
    def dcg(order: Ranking) -> float:
        return sum(hit / math.log2(rank + 1) for rank, hit in enumerate(order[:k], start=1))

    return dcg(ranking) / dcg(sorted(ranking, reverse=True))


def ap_over_relevant(ranking: Ranking, k: int) -> float:
    return sum(precision(ranking, r) for r in range(1, min(k, len(ranking)) + 1) if ranking[r - 1]) / sum(ranking)


def ndcg_of_k(ranking: Ranking, k: int) -> float:
    """NDCG whose ideal is always k relevant items."""
    gain = sum(hit / math.log2(rank + 1) for rank, hit in enumerate(ranking[:k], start=1))
    return gain / sum(1 / math.log2(rank + 1) for rank in range(1, k + 1))


def ndcg_original(ranking: Ranking, k: int | None = None) -> float:
    """NDCG with the discount of Järvelin & Kekäläinen: none for the first two ranks, then log2(rank)."""

    def dcg(order: Ranking) -> float:
        return sum(hit / max(math.log2(rank), 1.0) for rank, hit in enumerate(order[:k], start=1))

    return dcg(ranking) / dcg(sorted(ranking, reverse=True))


def share_of_achievable(ranking: Ranking, k: int) -> float:
    """Hits among the top k, of those that could be there."""
    return sum(ranking[:k]) / min(sum(ranking), k)


def rr(ranking: Ranking, k: int | None = None) -> float:
    return next((1 / rank for rank, hit in enumerate(ranking[:k], start=1) if hit), 0.0)


def hr(ranking: Ranking, k: int) -> float:
    return float(any(ranking[:k]))


def accuracy(ranking: Ranking) -> float:
    return float(ranking[0])


def f1(ranking: Ranking, k: int) -> float:
    p, r = precision(ranking, k), recall(ranking, k)
    return 2 * p * r / (p + r) if p + r else 0.0


def f_beta(ranking: Ranking, beta: float, k: int) -> float:
    p, r = precision(ranking, k), recall(ranking, k)
    return (1 + beta**2) * p * r / (beta**2 * p + r) if p + r else 0.0


def partial_auc(ranking: Ranking, k: int, most: int | None = None) -> float:
    """AUC of what is left without the irrelevant items after the k-th, and the relevant ones after the last counted."""
    left, counts = [], {True: 0, False: 0}
    for hit in map(bool, ranking):
        counts[hit] += 1
        if counts[hit] <= (k if not hit else most or len(ranking)):
            left.append(hit)
    return auc(left)


def bpref(ranking: Ranking) -> float:
    n_relevant, n_irrelevant, above, total = sum(ranking), len(ranking) - sum(ranking), 0, 0.0
    for hit in ranking:
        if hit:
            total += 1 - min(above, n_relevant) / min(n_relevant, n_irrelevant) if above else 1
        else:
            above += 1
    return total / n_relevant


def err(ranking: Ranking, p: float = 0.5, k: int | None = None) -> float:
    """Walk down the list; a reader who is still there is satisfied by a relevant item with probability p."""
    there, total = 1.0, 0.0
    for rank, hit in enumerate(ranking[:k], 1):
        if hit:
            total += there * p / rank
            there *= 1 - p
    return total


def r_precision(ranking: Ranking) -> float:
    return precision(ranking, sum(ranking))


def rbp(ranking: Ranking, p: float) -> float:
    return (1 - p) * sum(p**place for place, hit in enumerate(ranking) if hit)


def mean_rank(ranking: Ranking) -> float:
    ranks = [rank for rank, hit in enumerate(ranking, start=1) if hit]
    return sum(ranks) / len(ranks)


def amri(ranking: Ranking) -> float:
    """Share of pairs of a relevant and an irrelevant candidate in the right order, less that in the wrong one."""
    return auc(ranking) - auc(ranking[::-1])


Graded = Sequence[float]
"""A ranking from the top: the grade of each candidate, 0 where it is irrelevant."""


def rp(ranking: Graded, z: int) -> float:
    best = sorted((grade for grade in ranking if grade), reverse=True)
    least = best[min(z, len(best)) - 1]
    return sum(grade > 0 and grade >= least for grade in ranking[:z]) / min(len(best), z)


def marp(ranking: Graded, cutoffs: Sequence[int]) -> float:
    return sum(rp(ranking, z) for z in cutoffs) / len(cutoffs)


def linear(grade: float) -> float:
    return grade


def exponential(grade: float) -> float:
    return 2**grade - 1


def dcg(ranking: Graded, gain: Callable[[float], float] = linear, k: int | None = None) -> float:
    return sum(gain(grade) / math.log2(rank + 1) for rank, grade in enumerate(ranking[:k], start=1))


def gndcg(ranking: Graded, gain: Callable[[float], float] = linear, k: int | None = None) -> float:
    return dcg(ranking, gain, k) / dcg(sorted(ranking, reverse=True), gain, k)


def weighted_recall(ranking: Graded, k: int) -> float:
    return sum(ranking[:k]) / sum(ranking)


def psp(ranking: Graded, k: int) -> float:
    return sum(ranking[:k]) / sum(sorted(ranking, reverse=True)[:k])


GRADED: dict[str, Callable[[Graded], float]] = {
    "rp@1": lambda x: rp(x, 1),
    "rp@3": lambda x: rp(x, 3),
    "marp@1,2,4": lambda x: marp(x, (1, 2, 4)),
    "marp@50": lambda x: marp(x, (50,)),
    "dcg": dcg,
    "dcg@3": lambda x: dcg(x, k=3),
    "dcg(exp)@3": lambda x: dcg(x, exponential, 3),
    "gndcg": gndcg,
    "gndcg@2": lambda x: gndcg(x, k=2),
    "gndcg(exp)": lambda x: gndcg(x, exponential),
    "gndcg(exp)@3": lambda x: gndcg(x, exponential, 3),
    "weighted-recall@3": lambda x: weighted_recall(x, 3),
    "psp@1": lambda x: psp(x, 1),
    "psp@3": lambda x: psp(x, 3),
}
"""Every built-in graded metric. True counts as grade 1, so they take a plain ranking too."""


METRICS: dict[str, Callable[[Ranking], float]] = {
    "auc": auc,
    "precision@1": lambda x: precision(x, 1),
    "precision@3": lambda x: precision(x, 3),
    "precision@50": lambda x: precision(x, 50),
    "recall@3": lambda x: recall(x, 3),
    "ap": ap,
    "ap@3": lambda x: ap(x, 3),
    "ap@50": lambda x: ap(x, 50),
    "ap(relevant)@3": lambda x: ap_over_relevant(x, 3),
    "precision(achievable)@3": lambda x: share_of_achievable(x, 3),
    "recall(achievable)@3": lambda x: share_of_achievable(x, 3),
    "ndcg(fixed)@3": lambda x: ndcg_of_k(x, 3),
    "ndcg(original)": ndcg_original,
    "ndcg(original)@3": lambda x: ndcg_original(x, 3),
    "ndcg": ndcg,
    "ndcg@3": lambda x: ndcg(x, 3),
    "rr": rr,
    "rr@3": lambda x: rr(x, 3),
    "hr@3": lambda x: hr(x, 3),
    "accuracy": accuracy,
    "f1@3": lambda x: f1(x, 3),
    "f-beta(2)@3": lambda x: f_beta(x, 2, 3),
    "f-beta(0.5)@3": lambda x: f_beta(x, 0.5, 3),
    "pauc@1": lambda x: partial_auc(x, 1),
    "pauc@3": lambda x: partial_auc(x, 3),
    "pauc@50": auc,
    "pauc(top)@2": lambda x: partial_auc(x, 2, 2),
    "bpref": bpref,
    "err": err,
    "err@3": lambda x: err(x, k=3),
    "err(0.0625)@3": lambda x: err(x, 0.0625, 3),
    "r-precision": r_precision,
    "rbp(0.8)": lambda x: rbp(x, 0.8),
    "mean-rank": mean_rank,
    "amri": amri,
    **GRADED,
}
"""Every built-in metric, some with several parameters, by its text form."""


def orders(scores: Sequence[float], relevant: Sequence[T]) -> Iterator[list[T]]:
    """Yield the distinct rankings over all orders of equally scored candidates; each comes from as many orders."""
    blocks = []
    for score in sorted(set(scores), reverse=True):
        members = [hit for value, hit in zip(scores, relevant, strict=True) if value == score]
        blocks.append(list(dict.fromkeys(itertools.permutations(members))))
    for choice in itertools.product(*blocks):
        yield [hit for block in choice for hit in block]


def count(scores: Sequence[float], relevant: Sequence[bool]) -> tuple[list[int], list[int]]:
    """Return `above` and `tied` of the relevant candidates, from the top."""
    pairs = list(zip(scores, relevant, strict=True))
    wanted = sorted((score for score, hit in pairs if hit), reverse=True)
    above = [sum(score > own and not hit for score, hit in pairs) for own in wanted]
    tied = [sum(score == own and not hit for score, hit in pairs) for own in wanted]
    return above, tied


def log_ratio(m: float, sums: Any, sizes: Any, weights: Any) -> float:
    """The empirical log likelihood ratio of a mean of m, below that of the units, by its definition."""
    gaps = sums - m * sizes

    def negative(a: float) -> float:
        return -float(weights @ np.log1p(a * gaps))

    most = -1 / gaps.min()
    return -float(
        optimize.minimize_scalar(negative, bounds=(0.0, most), method="bounded", options={"xatol": 1e-14}).fun
    )


def with_the_unseen(sums: Any, sizes: Any, least: float) -> tuple[Any, Any, Any]:
    """Return units with two thirds of one that has the least value, as large as the unit of the average instance."""
    extreme = np.sum(sizes**2) / np.sum(sizes)
    return np.append(sums, least * extreme), np.append(sizes, extreme), np.append(np.ones(sums.size), 2 / 3)


def likelihood_statistic(m: float, units: tuple[Any, Any, Any]) -> float:
    n = units[2].sum()
    return float(np.sqrt((n - 1) * np.expm1(2 * log_ratio(m, *units) / n)))


def lower_end(sums: Any, least: float, level: float, sizes: Any = None) -> float:
    """Where the statistic that counts two thirds of a unit with the least value is Student's quantile."""
    units = with_the_unseen(sums, np.ones(sums.size) if sizes is None else sizes, least)
    mean = float(units[2] @ units[0] / (units[2] @ units[1]))

    def excess(m: float) -> float:
        return float(likelihood_statistic(m, units) - stats.t.ppf(0.5 + level / 2, units[2].sum() - 1))

    return float(optimize.brentq(excess, least + 1e-9, mean - 1e-12, xtol=1e-13))
