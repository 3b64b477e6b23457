"""Ranking metrics as values: ``NDCG(10)`` is a metric, ``"ndcg@10"`` is its text form.

Every metric is a sum over the relevant items of an instance, M = sum_i f(r_i, i, |R|, n), where r_i
is the rank of the i-th relevant item from the top, |R| their number and n the number of candidates.
A metric is that f: its `term`. Equation numbers are those of Krichene & Rendle (KDD 2020), which
defines all of them for any |R|. `docs/definitions.md` lists where other libraries differ.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.ranking.ranks import Ranks

Term = Callable[[Ints, Ints, Ints, Ints], Floats]


class Part(NamedTuple):
    """A metric, and what each relevant item's term counts in a sum of such parts."""

    metric: Metric
    weight: Floats


@dataclass(frozen=True)
class Metric(ABC):
    """What a ranking of one instance is worth, as a sum over its relevant items.

    To add one, subclass as a frozen dataclass, give it a `name` and a `term`, and decorate it with
    `truerank.register_metric`. Fields become parameters: `k` is written ``name@k``, any other ones
    ``name(a, b)``.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import truerank as tr
    >>> @tr.register_metric
    ... @dataclass(frozen=True)
    ... class SquareRootGain(tr.Metric):
    ...     name = "sqrt-gain"
    ...     k: int
    ...     def term(self, rank, i, n_relevant, n):
    ...         return (rank <= self.k) / rank**0.5
    >>> tr.values(tr.Ranks.from_ranks([4, 9, 100], n=1000), "sqrt-gain@10").round(3).tolist()
    [0.5, 0.333, 0.0]
    """

    name: ClassVar[str]
    lower_is_better: ClassVar[bool] = False
    linear: ClassVar[bool] = False
    """Whether the term is affine in the rank, so that its mean is its value at the mean rank."""
    smooth: ClassVar[bool] = False
    """Whether, up to its cut-off, the term is an analytic function of a real rank above 0; corrections of
    large catalogues then need few ranks instead of all."""
    graded: ClassVar[bool] = False
    """Whether it depends on grades: then it has `parts` instead of a term of its own."""
    written_k: ClassVar[str] = "k"
    """What stands behind the @, in messages."""

    def __post_init__(self) -> None:
        k = getattr(self, "k", None)
        if k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < 2**63):
            raise InputError(f"the k of {self.name}@k must be a whole number from 1, got {k!r}.")

    @abstractmethod
    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        """Return what the i-th relevant item from the top adds at this rank (arrays, elementwise)."""

    def cutoff(self, n_relevant: Ints) -> Ints | None:
        """Return the deepest rank that can add anything, by number of relevant items; None: all can."""
        k = getattr(self, "k", None)
        return None if k is None else np.full_like(n_relevant, k)

    def parts(self, ranks: Ranks) -> tuple[Part, ...]:
        """Return the metrics, and the weight of each relevant item in them, that sum up to this one."""
        return (Part(self, np.ones(ranks.above.size)),)

    @staticmethod
    def read_k(text: str) -> Any:
        """Return the field `k` from what stands behind the @."""
        return int(text)

    def on(self, ranks: Ranks) -> Metric:
        """Return the metric as it applies to these ranks, if it depends on how they were found."""
        return self

    def candidates(self, ranks: Ranks) -> Ints:
        """Return the n of each instance that `term` is to be given."""
        return ranks.n_candidates

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        """What to know before trusting this metric of these ranks."""
        if ranks.design is None or self.linear:
            return ()
        return (
            f"{self} among {ranks.design.m} sampled candidates is not {self}: it is biased, "
            f"differently for each recommender; rank all candidates, or use {self}~bv(0.1)",
        )

    def __str__(self) -> str:
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        k = values.pop("k", None)
        told = [values[field.name] for field in fields(self) if values.get(field.name, field.default) != field.default]
        inner = ", ".join(f"{value:g}" if isinstance(value, float) else str(value) for value in told)
        return self.name + (f"({inner})" if inner else "") + ("" if k is None else f"@{k}")


@dataclass(frozen=True)
class AUC(Metric):
    """Chance that a random relevant item stands above a random irrelevant one (eq. 2 and 7).

    Undefined (NaN) when every candidate is relevant. Ties count one half under the default policy.
    Over the whole catalogue; implicit and RePlay compute it inside the top K only.
    """

    name = "auc"
    smooth = True
    linear = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        irrelevant = np.where(n > n_relevant, n - n_relevant, np.nan)
        return (1.0 - (rank - i) / irrelevant) / n_relevant


@dataclass(frozen=True)
class Precision(Metric):
    """Share of the top k that is relevant (eq. 3 and 8).

    Always divided by k, also when fewer than k candidates exist. implicit divides by min(k, |R|),
    LensKit by the length of the list.
    """

    name = "precision"
    smooth = True
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= self.k) / float(self.k)


@dataclass(frozen=True)
class Recall(Metric):
    """Share of the relevant items that are in the top k (eq. 4 and 9).

    Divided by |R|, as almost everywhere; LensKit divides by min(|R|, k).
    """

    name = "recall"
    smooth = True
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= self.k) / n_relevant


@dataclass(frozen=True)
class AP(Metric):
    """Average of the precisions at the ranks of the relevant items (eq. 5, 10 and 12).

    The divisor of AP@k is min(|R|, k), so that a perfect list scores 1; the TREC tools, ranx and
    RecTools divide by |R|, which gives less when |R| > k. Without k there is no difference.
    """

    name = "ap"
    smooth = True
    k: int | None = None

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        if self.k is None:
            return i / rank / n_relevant
        return (rank <= self.k) * i / rank / np.minimum(n_relevant, self.k)


@dataclass(frozen=True)
class NDCG(Metric):
    """Discounted gain 1 / log2(rank + 1), relative to the ideal order (eq. 6, 11 and 13)."""

    name = "ndcg"
    smooth = True
    k: int | None = None

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        counted = n_relevant if self.k is None else np.minimum(n_relevant, self.k)
        ideal = np.cumsum(1.0 / np.log2(np.arange(2, counted.max(initial=1) + 2)))
        gain = 1.0 / np.log2(rank + 1.0) / ideal[counted - 1]
        return gain if self.k is None else (rank <= self.k) * gain


@dataclass(frozen=True)
class RR(Metric):
    """Reciprocal of the rank of the first relevant item; 0 if that is beyond k (end of section 3.1)."""

    name = "rr"
    smooth = True
    k: int | None = None

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        counts = (i == 1) if self.k is None else (i == 1) & (rank <= self.k)
        return counts / rank


@dataclass(frozen=True)
class HR(Metric):
    """1 if any relevant item is in the top k, else 0 (end of section 3.1).

    For one relevant item this is Recall@k. Some papers call the latter "hit rate" for any |R|.
    """

    name = "hr"
    smooth = True
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return ((i == 1) & (rank <= self.k)).astype(np.float64)


@dataclass(frozen=True)
class Accuracy(Metric):
    """1 if the top candidate is relevant, else 0: Precision@1 (end of section 3.1).

    ir-measures gives this name to the AUC over the retrieved items.
    """

    name = "accuracy"
    smooth = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return ((i == 1) & (rank == 1)).astype(np.float64)

    def cutoff(self, n_relevant: Ints) -> Ints:
        return np.ones_like(n_relevant)


@dataclass(frozen=True)
class F1(Metric):
    """Harmonic mean of Precision@k and Recall@k, which is 2 hits / (k + |R|)."""

    name = "f1"
    smooth = True
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return 2.0 * (rank <= self.k) / (self.k + n_relevant)


@dataclass(frozen=True)
class RPrecision(Metric):
    """Precision at the depth at which a perfect ranking would have found everything, |R|."""

    name = "r-precision"
    smooth = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= n_relevant) / n_relevant

    def cutoff(self, n_relevant: Ints) -> Ints:
        return n_relevant


@dataclass(frozen=True)
class RBP(Metric):
    """Rank-biased precision: a reader goes on to the next rank with probability p.

    sum over relevant items of (1 - p) p^(rank - 1); Moffat & Zobel, TOIS 2008.
    """

    name = "rbp"
    smooth = True
    p: float

    def __post_init__(self) -> None:
        if not 0.0 < self.p < 1.0:
            raise InputError(f"the p of rbp(p) must lie between 0 and 1, got {self.p}.")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (1.0 - self.p) * np.power(self.p, rank - 1.0)


@dataclass(frozen=True)
class MeanRank(Metric):
    """Mean rank of the relevant items; the smaller the better."""

    name = "mean-rank"
    smooth = True
    lower_is_better = True
    linear = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return rank / n_relevant


@dataclass(frozen=True)
class FunctionMetric(Metric):
    """A metric made from a function f(rank, i, n_relevant, n) on arrays."""

    function: Term

    @property
    def name(self) -> str:  # type: ignore[override]
        return self.function.__name__.replace("_", "-").lower()

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


BUILT_IN: tuple[type[Metric], ...] = (
    AUC, Precision, Recall, AP, NDCG, RR, HR, Accuracy, F1, RPrecision, RBP, MeanRank,
)  # fmt: skip
