"""Ranking metrics as values: ``NDCG(10)`` is a metric, ``"ndcg@10"`` is its text form.

Equation numbers are those of Krichene & Rendle (KDD 2020), which defines all of them for any number of relevant items.
`docs/definitions.md` lists where other libraries differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.metrics.base import PlainMetric, Shape, TermFunction, check_choice


@dataclass(frozen=True)
class AUC(PlainMetric):
    """Chance that a random relevant item stands above a random irrelevant one (eq. 2 and 7).

    Undefined (NaN) when every candidate is relevant. Ties count one half under the default policy.
    Over the whole catalogue; implicit and RePlay compute it inside the top K only.
    """

    name = "auc"
    shape = "affine"
    unbiased_when_sampled = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        irrelevant = np.where(n > n_relevant, n - n_relevant, np.nan)
        return (1.0 - (rank - i) / irrelevant) / n_relevant


@dataclass(frozen=True)
class Precision(PlainMetric):
    """Share of the top k that is relevant (eq. 3 and 8).

    Divided by k, also when fewer than k candidates exist. ``precision(achievable)@k`` divides by min(k, |R|), as
    implicit does before it pools users; LensKit divides by the length of the list.
    """

    name = "precision"
    shape = "step"
    k: int
    divisor: Literal["k", "achievable"] = "k"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "divisor", ("k", "achievable"))

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= self.k) / (float(self.k) if self.divisor == "k" else np.minimum(n_relevant, self.k))


@dataclass(frozen=True)
class Recall(PlainMetric):
    """Share of the relevant items that are in the top k (eq. 4 and 9).

    Divided by |R|, as almost everywhere; ``recall(achievable)@k`` divides by min(|R|, k), as LensKit does.
    """

    name = "recall"
    shape = "step"
    k: int
    divisor: Literal["relevant", "achievable"] = "relevant"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "divisor", ("relevant", "achievable"))

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= self.k) / (n_relevant if self.divisor == "relevant" else np.minimum(n_relevant, self.k))


@dataclass(frozen=True)
class AP(PlainMetric):
    """Average of the precisions at the ranks of the relevant items (eq. 5, 10 and 12).

    The divisor of AP@k is min(|R|, k), so that a perfect list scores 1. ``ap(relevant)@k`` divides by |R|, as the
    TREC tools, ranx and RecTools do, which gives less when |R| > k. Without k there is no difference.
    """

    name = "ap"
    shape = "reciprocal"
    k: int | None = None
    divisor: Literal["achievable", "relevant"] = "achievable"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "divisor", ("achievable", "relevant"))

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        if self.k is None:
            return i / rank / n_relevant
        divisor = n_relevant if self.divisor == "relevant" else np.minimum(n_relevant, self.k)
        return (rank <= self.k) * i / rank / divisor


@dataclass(frozen=True)
class NDCG(PlainMetric):
    """Discounted gain 1 / log2(rank + 1), relative to the ideal order (eq. 6, 11 and 13).

    ``ndcg(fixed)@k`` always takes an ideal of k relevant items, as RecTools does by default, so that a perfect list
    scores less than 1 if |R| < k. ``ndcg(original)`` has the discount of Järvelin & Kekäläinen (TOIS 2002), as LensKit
    does: log2(rank), and none for the first two ranks.
    """

    name = "ndcg"
    k: int | None = None
    form: Literal["achievable", "fixed", "original"] = "achievable"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self, "form", ("achievable", "fixed", "original"))
        if self.form == "fixed" and self.k is None:
            raise InputError("ndcg(fixed) needs a cut-off, as in 'ndcg(fixed)@10'.")

    @property
    def shape(self) -> Shape:
        return "any" if self.form == "original" else "smooth"

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        ideal = np.cumsum(self._gain(np.arange(1, self._counted(n_relevant).max(initial=1) + 1)))
        gain = self._gain(rank) / ideal[self._counted(n_relevant) - 1]
        return gain if self.k is None else (rank <= self.k) * gain

    def _counted(self, n_relevant: Ints) -> Ints:
        """Relevant items of the ideal list."""
        if self.k is None:
            return n_relevant
        return np.full_like(n_relevant, self.k) if self.form == "fixed" else np.minimum(n_relevant, self.k)

    def _gain(self, rank: Ints) -> Floats:
        return 1.0 / np.log2(np.maximum(rank, 2) if self.form == "original" else rank + 1.0)


@dataclass(frozen=True)
class RR(PlainMetric):
    """Reciprocal of the rank of the first relevant item; 0 if that is beyond k (end of section 3.1)."""

    name = "rr"
    shape = "reciprocal"
    k: int | None = None

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        counts = (i == 1) if self.k is None else (i == 1) & (rank <= self.k)
        return counts / rank


@dataclass(frozen=True)
class HR(PlainMetric):
    """1 if any relevant item is in the top k, else 0 (end of section 3.1).

    For one relevant item this is Recall@k. Some papers call the latter "hit rate" for any |R|.
    """

    name = "hr"
    shape = "step"
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return ((i == 1) & (rank <= self.k)).astype(np.float64)


@dataclass(frozen=True)
class Accuracy(PlainMetric):
    """1 if the top candidate is relevant, else 0: Precision@1 (end of section 3.1).

    ir-measures gives this name to the AUC over the retrieved items.
    """

    name = "accuracy"
    shape = "step"

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return ((i == 1) & (rank == 1)).astype(np.float64)

    def cutoff(self, n_relevant: Ints) -> Ints:
        return np.ones_like(n_relevant)


@dataclass(frozen=True)
class F1(PlainMetric):
    """Harmonic mean of Precision@k and Recall@k, which is 2 hits / (k + |R|)."""

    name = "f1"
    shape = "step"
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return 2.0 * (rank <= self.k) / (self.k + n_relevant)


@dataclass(frozen=True)
class RPrecision(PlainMetric):
    """Precision at the depth at which a perfect ranking would have found everything, |R|."""

    name = "r-precision"
    shape = "step"

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= n_relevant) / n_relevant

    def cutoff(self, n_relevant: Ints) -> Ints:
        return n_relevant


@dataclass(frozen=True)
class RBP(PlainMetric):
    """Rank-biased precision: a reader continues to the next rank with probability p.

    sum over relevant items of (1 - p) p^(rank - 1); Moffat & Zobel, TOIS 2008.
    """

    name = "rbp"
    shape = "smooth"
    p: float

    def __post_init__(self) -> None:
        if not 0.0 < self.p < 1.0:
            raise InputError(f"the p of rbp(p) must lie between 0 and 1, got {self.p}.")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (1.0 - self.p) * np.power(self.p, rank - 1.0)


@dataclass(frozen=True)
class MeanRank(PlainMetric):
    """Mean rank of the relevant items; smaller is better."""

    name = "mean-rank"
    shape = "affine"
    lower_is_better = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return rank / n_relevant


@dataclass(frozen=True)
class FunctionMetric(PlainMetric):
    """A metric made from a function f(rank, i, n_relevant, n) on arrays."""

    name: str
    function: TermFunction

    @classmethod
    def of(cls, function: TermFunction) -> FunctionMetric:
        """Return the metric with the name of the function."""
        return cls(getattr(function, "__name__", "function").replace("_", "-").lower(), function)

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        try:
            values = np.asarray(self.function(rank, i, n_relevant, n), dtype=np.float64)
            return np.broadcast_to(values, rank.shape)
        except (TypeError, ValueError) as error:
            raise InputError(
                f"metric {self.name!r} must turn arrays (rank, i, n_relevant, n) into one array; "
                f"wrap it in numpy.vectorize if it is written for single numbers ({error})."
            ) from error

    def __str__(self) -> str:
        return self.name


BUILT_IN: tuple[type[PlainMetric], ...] = (
    AUC, Precision, Recall, AP, NDCG, RR, HR, Accuracy, F1, RPrecision, RBP, MeanRank,
)  # fmt: skip
