"""Ranking metrics as values: ``NDCG(10)`` is a metric, ``"ndcg@10"`` is its text form.

A metric is a sum over the relevant items of an instance, M = sum_i w_i f(r_i, i, |R|, n). Here r_i is the rank of the
i-th relevant item from the top, |R| their number and n the number of candidates. f is a `Term`, and the weight w_i, 1
for most metrics, depends on the truth alone. A metric returns its terms for given ranks; ties, sampling, corrections
and cut lists need nothing else.

Equation numbers are those of Krichene & Rendle (KDD 2020), which defines all of them for any number of relevant items.
`docs/definitions.md` lists where other libraries differ. Graded metrics also depend on how relevant an item is: they
are sums of plain ones in which each relevant item has a weight. If ranks have no grades, every relevant item has grade
1, and a note says so.
"""

from __future__ import annotations

import dataclasses
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, cast

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, as_number, check_choice, check_cutoff, check_kind
from truerank.core.ranks import Ranks
from truerank.core.text_forms import Named, Registry

TermFunction = Callable[[Ints, Ints, Ints, Ints], Floats]
"""f(rank, i, n_relevant, n) on arrays."""

Shape = Literal["affine", "step", "reciprocal", "smooth", "any"]
"""The shape of f as a function of a real rank above 0, up to its cut-off: affine, constant, proportional to 1 / rank,
analytic, or none of these. Where it is known, sums and expectations need few ranks instead of all."""


class Term(ABC):
    """The contribution of one relevant item to a metric, as a function of its rank."""

    @property
    def shape(self) -> Shape:
        """The kind of function of the rank."""
        return "any"

    @property
    def separable(self) -> bool:
        """Whether f(rank, i, n_relevant, n) is f(rank, 1, 1, 1) times a factor independent of rank and n."""
        return False

    @abstractmethod
    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        """Return the contribution of the i-th relevant item from the top at this rank (arrays, elementwise)."""

    def cutoff(self, n_relevant: Ints) -> Ints | None:
        """Return the deepest rank that can contribute, for each number of relevant items; None if every rank can."""
        return None


class Terms(NamedTuple):
    """A sum over the relevant items of some ranks: weight * f(rank, i, n_relevant, n)."""

    term: Term
    n: Ints
    """The n passed to f, one per relevant item."""
    weight: Floats | None = None
    """One per relevant item; None if all are 1."""

    def of_items(self, items: slice) -> Terms:
        """Return the terms of some of the relevant items."""
        return Terms(self.term, self.n[items], None if self.weight is None else self.weight[items])


class Metric(ABC):
    """A measure of how good the ranking of an instance is."""

    @property
    def lower_is_better(self) -> bool:
        """Whether small values are good."""
        return False

    @property
    def unbiased_when_sampled(self) -> bool:
        """Whether its expectation among uniformly sampled candidates is its value among all of them."""
        return False

    @property
    def pools_instances(self) -> bool:
        """Whether its value for an instance depends on the other instances."""
        return False

    @property
    def of_all_instances(self) -> bool:
        """Whether it has one value for all instances together that is not a mean over them; see `WholeMetric`."""
        return False

    @property
    def estimated(self) -> Metric:
        """The exact metric that a corrected metric estimates; the metric itself if it is not corrected."""
        return self

    @abstractmethod
    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        """Return the sums that add up to the metric of these ranks, or raise `InputError`."""

    def hidden_error(self, ranks: Ranks) -> float:
        """Return the standard error of the mean that the spread over instances does not show; 0 for plain metrics."""
        return 0.0

    def attainable(self, ranks: Ranks) -> tuple[float, float] | None:
        """Return the smallest and the largest value of an instance.

        None if they are those of the best and the worst order.
        """
        return None

    def biased(self, ranks: Ranks) -> bool:
        """Whether its mean over these ranks is biased, because they are sampled and it is not corrected."""
        design = ranks.design
        return design is not None and not (self.unbiased_when_sampled and design.keeps_unbiased)

    def unbiased(self, ranks: Ranks) -> bool:
        """Whether the expectation of its mean over these ranks, sampled or not, is the exact metric."""
        return not self.biased(ranks)

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        """Return what to know before trusting this metric for these ranks."""
        return ()


class WrittenMetric(Named, Metric):
    """A metric with a text form; the field `k`, if it has one, is its cut-off."""

    def __post_init__(self) -> None:
        check_cutoff(self.name, getattr(self, "k", None))
        for field in dataclasses.fields(cast("Any", self)):
            if "choices" in field.metadata:
                check_choice(field.name, getattr(self, field.name), field.metadata["choices"], of=self.name)


def _one_of(*choices: str) -> Any:
    """Return a field of a metric that must be one of these choices, the first by default."""
    return dataclasses.field(default=choices[0], metadata={"choices": choices})


class PlainMetric(WrittenMetric, Term):
    """A metric with one term and weights of 1.

    To add one, subclass as a frozen dataclass, give it a `name` and a `term`, and decorate it with
    `truerank.register`. Fields become parameters: `k` is written ``name@k``, any others
    ``name(a, b)``.

    Examples
    --------
    >>> from dataclasses import dataclass, replace
    >>> import truerank as tr
    >>> @tr.register
    ... @dataclass(frozen=True)
    ... class SquareRootGain(tr.metrics.PlainMetric):
    ...     name = "sqrt-gain"
    ...     k: int
    ...     def term(self, rank, i, n_relevant, n):
    ...         return (rank <= self.k) / rank**0.5
    >>> tr.values(tr.Ranks.from_ranks([4, 9, 100], n=1000), "sqrt-gain@10").round(3).tolist()
    [0.5, 0.333, 0.0]
    """

    def cutoff(self, n_relevant: Ints) -> Ints | None:
        """Return the field `k` if there is one; metrics with another cut-off override this."""
        k = getattr(self, "k", None)
        return None if k is None else np.full_like(n_relevant, k)

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return (Terms(self, ranks.item_n),)


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


class GradedMetric(WrittenMetric):
    """A metric that needs to know how relevant each item is.

    To add one, subclass as a frozen dataclass, give it a `name` and `terms`, and decorate it with
    `truerank.register`.

    Examples
    --------
    The share of all grades that belongs to items at the top of their lists:

    >>> from dataclasses import dataclass, replace
    >>> import truerank as tr
    >>> from truerank.metrics import Precision, weighted
    >>> @tr.register
    ... @dataclass(frozen=True)
    ... class TopShare(tr.metrics.GradedMetric):
    ...     name = "top-share"
    ...     def terms(self, ranks):
    ...         return (weighted(Precision(1), ranks, ranks.grades / ranks.grades.sum()),)
    >>> tr.values(tr.Ranks.from_ranks([1, 1, 2], n=9, grades=[1, 2, 5]), "top-share").tolist()
    [0.125, 0.25, 0.0]
    """

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        ungraded = f"these ranks have no grades: for {self} every relevant item has grade 1"
        return (*super().notes(ranks), *((ungraded,) if ranks.grades is None else ()))


Link = Callable[[float], float]
"""A function, rising or falling, from the mean of one metric to the value of another that it determines."""


class WholeMetric(WrittenMetric):
    """A metric of all instances together, such as the median of all ranks.

    It is a function (the link) of the mean of another metric (the base). Its interval is the link of the interval of
    this mean; it has no value per instance.
    """

    of_all_instances = True

    @abstractmethod
    def base(self, ranks: Ranks, at: Floats | None = None) -> Metric:
        """Return the metric whose mean determines it; `at` holds one rank per instance, instead of those in `ranks`."""

    @abstractmethod
    def link(self, ranks: Ranks, at: Floats | None = None) -> Link:
        """Return the function of that mean."""

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        raise InputError(f"{self} is a metric of all instances together: use `evaluate`; it has no value per instance.")

    def check(self, ranks: Ranks) -> None:
        """Refuse ranks that are not exact."""
        if ranks.sample is not None:
            raise InputError(f"{self} needs exact ranks, but these are sampled ones.")
        if ranks.depth is not None:
            raise InputError(f"{self} needs the whole ranking, but these ranks are cut at depth {ranks.depth}.")


def weighted(metric: PlainMetric, ranks: Ranks, weight: Floats) -> Terms:
    """Return the terms of a plain metric, each relevant item counted with its weight."""
    return Terms(metric, ranks.item_n, weight)


@dataclass(frozen=True)
class AUC(PlainMetric):
    """Chance that a random relevant item stands above a random irrelevant one (eq. 2 and 7).

    Undefined (NaN) when every candidate is relevant. Ties count one half under the default policy.
    It covers the whole catalogue; implicit and RePlay compute it within the top K only.
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

    Divided by k, even if there are fewer than k candidates. ``precision(achievable)@k`` divides by min(k, |R|), as
    implicit does before it pools users; LensKit divides by the length of the list.
    """

    name = "precision"
    shape = "step"
    separable = True
    k: int
    divisor: Literal["k", "achievable"] = _one_of("k", "achievable")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (rank <= self.k) / (float(self.k) if self.divisor == "k" else np.minimum(n_relevant, self.k))


@dataclass(frozen=True)
class Recall(PlainMetric):
    """Share of the relevant items that are in the top k (eq. 4 and 9).

    Divided by |R|, as almost everywhere; ``recall(achievable)@k`` divides by min(|R|, k), as LensKit does.
    """

    name = "recall"
    shape = "step"
    separable = True
    k: int
    divisor: Literal["relevant", "achievable"] = _one_of("relevant", "achievable")

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
    separable = True
    k: int | None = None
    divisor: Literal["achievable", "relevant"] = _one_of("achievable", "relevant")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        if self.k is None:
            return i / rank / n_relevant
        divisor = n_relevant if self.divisor == "relevant" else np.minimum(n_relevant, self.k)
        return (rank <= self.k) * i / rank / divisor


@dataclass(frozen=True)
class NDCG(PlainMetric):
    """Discounted gain 1 / log2(rank + 1), relative to the ideal order (eq. 6, 11 and 13).

    ``ndcg(fixed)@k`` always assumes k relevant items in the ideal order, as RecTools does by default, so that a perfect
    list scores less than 1 if |R| < k. ``ndcg(original)`` uses the discount of Järvelin & Kekäläinen (TOIS 2002), as
    LensKit does: log2(rank), with no discount at the first two ranks.
    """

    name = "ndcg"
    separable = True
    k: int | None = None
    form: Literal["achievable", "fixed", "original"] = _one_of("achievable", "fixed", "original")

    def __post_init__(self) -> None:
        super().__post_init__()
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
    separable = True
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
    separable = True
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
    separable = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return ((i == 1) & (rank == 1)).astype(np.float64)

    def cutoff(self, n_relevant: Ints) -> Ints:
        return np.ones_like(n_relevant)


@dataclass(frozen=True)
class F1(PlainMetric):
    """Harmonic mean of Precision@k and Recall@k, which is 2 hits / (k + |R|)."""

    name = "f1"
    shape = "step"
    separable = True
    k: int

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return 2.0 * (rank <= self.k) / (self.k + n_relevant)


@dataclass(frozen=True)
class FBeta(PlainMetric):
    """Weighted harmonic mean of Precision@k and Recall@k, where recall counts beta times as much.

    (1 + beta^2) hits / (k + beta^2 |R|); van Rijsbergen, 1979. ``f-beta(1)@k`` is ``f1@k``.
    """

    name = "f-beta"
    shape = "step"
    beta: float
    k: int

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < as_number(self.beta) < np.inf:
            raise InputError(f"the beta of f-beta(beta)@k must be a number above 0, got {self.beta}.")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        square = self.beta**2
        return (1.0 + square) * (rank <= self.k) / (self.k + square * n_relevant)


@dataclass(frozen=True)
class PartialAUC(PlainMetric):
    """AUC among all relevant items and the k best irrelevant ones: how well the top is ordered.

    With k or fewer irrelevant candidates it is the AUC. ``pauc(top)@k`` looks at the k best relevant items only, as
    pAp@k in RecTools does. Cut lists must be long enough for k irrelevant items and all relevant ones.

    References
    ----------
    Dodd & Pepe, Biometrics 2003; Budhiraja et al., WSDM 2020, and Hiranandani et al., ICML 2020 (top).

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[2, 4]], n=100)
    >>> [round(tr.values(ranks, text).item(), 3) for text in ("pauc@2", "pauc@10", "auc")]
    [0.25, 0.85, 0.985]
    """

    name = "pauc"
    k: int
    relevant: Literal["all", "top"] = _one_of("all", "top")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        irrelevant = np.minimum(np.where(n > n_relevant, n - n_relevant, np.nan), self.k)
        beaten = np.maximum(irrelevant - (rank - i), 0.0) / irrelevant
        if self.relevant == "all":
            return beaten / n_relevant
        return (i <= self.k) * beaten / np.minimum(n_relevant, self.k)

    def cutoff(self, n_relevant: Ints) -> Ints:
        return self.k + n_relevant - 1


@dataclass(frozen=True)
class BPref(PlainMetric):
    """Share of the pairs of a relevant item and one of the |R| best irrelevant ones that are in the right order.

    1 - min(above, |R|) / min(|R|, n - |R|), averaged over the relevant items. It is meant for candidates that are all
    judged: leave unjudged items out of the lists first. A relevant item that is not found adds nothing.

    References
    ----------
    Buckley & Voorhees, SIGIR 2004, as trec_eval computes it.
    """

    name = "bpref"

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        counted = np.maximum(np.minimum(n_relevant, n - n_relevant), 1)
        return (1.0 - np.minimum(rank - i, n_relevant) / counted) / n_relevant

    def cutoff(self, n_relevant: Ints) -> Ints:
        return 2 * n_relevant - 1


@dataclass(frozen=True)
class RPrecision(PlainMetric):
    """Precision at depth |R|, by which a perfect ranking has found every relevant item."""

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
    separable = True
    p: float

    def __post_init__(self) -> None:
        if not 0.0 < as_number(self.p) < 1.0:
            raise InputError(f"the p of rbp(p) must lie between 0 and 1, got {self.p}.")

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return (1.0 - self.p) * np.power(self.p, rank - 1.0)


@dataclass(frozen=True)
class ERR(PlainMetric):
    """Expected reciprocal rank of the item at which a reader stops.

    The reader goes down the list and stops at each relevant item with probability p: sum over relevant items of
    p (1 - p)^(i - 1) / rank. In the article p depends on the grade: (2^grade - 1) / 2^largest grade. An item's
    contribution then depends on which items are above it, not only on how many. So here all grades have the same p, and
    a note says so.

    References
    ----------
    Chapelle et al., CIKM 2009.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[1, 4]], n=5)
    >>> tr.values(ranks, "err").item(), tr.values(ranks, "err(0.25)@3").item()
    (0.5625, 0.25)
    """

    name = "err"
    shape = "reciprocal"
    separable = True
    p: float = 0.5
    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < as_number(self.p) <= 1.0:
            raise InputError(f"the p of err(p) must be above 0 and at most 1, got {self.p}.")

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        differ = ranks.grades is not None and ranks.grades.size and np.ptp(ranks.grades) > 0
        alike = f"{self} counts relevant items of all grades alike; gndcg@k tells them apart"
        return (*super().notes(ranks), *((alike,) if differ else ()))

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        value = self.p * np.power(1.0 - self.p, i - 1.0) / rank
        return value if self.k is None else (rank <= self.k) * value


@dataclass(frozen=True)
class MeanRank(PlainMetric):
    """Mean rank of the relevant items; smaller is better."""

    name = "mean-rank"
    shape = "affine"
    lower_is_better = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return rank / n_relevant


@dataclass(frozen=True)
class AMRI(PlainMetric):
    """Adjusted mean rank index: 1 if the relevant items are first, 0 for a random order, -1 if they are last.

    2 AUC - 1. For one relevant item that is 1 - (rank - 1) / (E - 1), where E = (n + 1) / 2 is the expectation of its
    rank in a random order (Berrendorf et al., arXiv 2002.06914). PyKEEN divides the mean of rank - 1 by that of E - 1;
    with ``convention="pykeen"`` instances are weighted accordingly.
    """

    name = "amri"
    shape = "affine"
    unbiased_when_sampled = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return 2.0 * AUC().term(rank, i, n_relevant, n) - 1.0 / n_relevant


@dataclass(frozen=True)
class LogRank(PlainMetric):
    """Mean logarithm of the ranks of the relevant items."""

    name = "log-rank"
    shape = "smooth"
    lower_is_better = True

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return np.log(rank) / n_relevant


@dataclass(frozen=True)
class GeometricMeanRank(WholeMetric):
    """Geometric mean of the ranks: the exponential of the mean over instances of their mean log rank."""

    name = "geometric-mean-rank"
    lower_is_better = True

    def base(self, ranks: Ranks, at: Floats | None = None) -> Metric:
        return LogRank()

    def link(self, ranks: Ranks, at: Floats | None = None) -> Link:
        return math.exp


@dataclass(frozen=True)
class MedianRank(WholeMetric):
    """Median of the ranks: the depth at which the mean recall over instances is 1/2.

    The ends of its interval are the quantiles at the ends of the interval of a recall of 1/2 (Woodruff, JASA 1952). If
    items tie, each is spread evenly over its possible ranks.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.estimate(tr.Ranks.from_ranks([1, 2, 9, 40], n=100), "median-rank").mean
    5.5
    """

    name = "median-rank"
    lower_is_better = True

    def base(self, ranks: Ranks, at: Floats | None = None) -> Metric:
        middle = self._quantiles(ranks, at).at(0.5)
        return Recall(1 if math.isnan(middle) else math.floor(middle))

    def link(self, ranks: Ranks, at: Floats | None = None) -> Link:
        quantiles = self._quantiles(ranks, at)
        return replace(quantiles, shift=0.5 - quantiles.share(np.floor(quantiles.at(0.5))))

    def _quantiles(self, ranks: Ranks, at: Floats | None) -> Quantiles:
        return Quantiles.of_ranks(ranks) if at is None else Quantiles.of_values(at)


@dataclass(frozen=True, eq=False)
class Quantiles:
    """The distribution of ranks: values in ascending order, and the share of ranks up to each."""

    values: Floats
    shares: Floats
    shift: float = 0.0
    """Added to a share before its quantile is looked up."""

    @classmethod
    def of_values(cls, values: Floats) -> Quantiles:
        """Return the distribution of one rank per instance; NaN is left out."""
        distinct, counts = np.unique(values[~np.isnan(values)], return_counts=True)
        return cls(distinct, np.cumsum(counts) / counts.sum())

    @classmethod
    def of_ranks(cls, ranks: Ranks) -> Quantiles:
        """Return the distribution in which all instances weigh the same and tied items are anywhere in their block."""
        place, size = ranks.blocks()
        length = size + ranks.tied
        first = ranks.rank - place  # ranks before the block
        added = 1.0 / (ranks.item_n_relevant * length)
        steps = np.zeros(int((first + length).max(initial=0)) + 2)
        np.add.at(steps, first + 1, added)
        np.add.at(steps, first + length + 1, -added)
        shares = np.cumsum(np.cumsum(steps))[1:-1] / np.count_nonzero(ranks.n_relevant)
        return cls(np.arange(1.0, shares.size + 1), shares)

    def share(self, value: float) -> float:
        """Return the share of ranks up to a value."""
        place = int(np.searchsorted(self.values, value, side="right"))
        return float(self.shares[place - 1]) if place else 0.0

    def at(self, share: float) -> float:
        """Return the quantile: the middle of those values that divide the ranks at this share."""
        if not self.values.size or math.isnan(share):
            return math.nan
        ends = [np.searchsorted(self.shares, share + slack) for slack in (-_ROUNDING, _ROUNDING)]
        return float(self.values[np.minimum(ends, self.values.size - 1)].mean())

    def __call__(self, share: float) -> float:
        return self.at(share + self.shift)


_ROUNDING = 1e-9
"""Rounding error allowed in sums of shares."""

_OF = ("mean-rank", "rr", "hr")
"""Metrics that have a z-score."""


@dataclass(frozen=True)
class ZScore(WholeMetric):
    """Number of standard deviations by which the mean of a metric is better than that of random orders.

    Expectation and variance are exact, for one relevant item per instance and each instance's number of candidates
    (Hoyt et al., arXiv 2203.07544). It grows with the square root of the number of instances, so only values for the
    same instances can be compared.

    Examples
    --------
    Among four candidates the mean rank of a random order is 2.5, with a variance of 1.25:

    >>> import truerank as tr
    >>> round(tr.estimate(tr.Ranks.from_ranks([1, 2], n=4), "z(mean-rank)").mean, 4)
    1.2649
    """

    name = "z"
    metric: Literal["mean-rank", "rr", "hr"] = dataclasses.field(metadata={"choices": _OF, "words": _OF})
    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.metric == "hr") != (self.k is not None):
            raise InputError("z is written 'z(mean-rank)', 'z(rr)' or 'z(hr)@10'.")

    def base(self, ranks: Ranks, at: Floats | None = None) -> PlainMetric:
        return {"mean-rank": MeanRank(), "rr": RR(), "hr": HR(self.k or 1)}[self.metric]

    def check(self, ranks: Ranks) -> None:
        super().check(ranks)
        if (several := ranks.n_relevant > 1).any():
            at = int(np.argmax(several))
            raise InputError(f"{self} needs one relevant item per instance, but instance {at} has several.")

    def link(self, ranks: Ranks, at: Floats | None = None) -> Link:
        base, sizes = self.base(ranks), ranks.n_candidates[ranks.n_relevant > 0]
        rank = np.arange(1, sizes.max(initial=0) + 1)
        one = np.ones_like(rank)
        terms = base.term(rank, one, one, rank)
        first, second = (np.cumsum(terms**power)[sizes - 1] / sizes for power in (1, 2))
        deviation = math.sqrt(np.sum(second - first**2)) / max(sizes.size, 1)
        sign = -1.0 if base.lower_is_better else 1.0
        return Standardised(float(np.mean(first)) if sizes.size else math.nan, sign * deviation)


@dataclass(frozen=True)
class Standardised:
    """Number of standard deviations of a mean from its expectation; NaN if the deviation is 0."""

    expectation: float
    deviation: float

    def __call__(self, mean: float) -> float:
        return (mean - self.expectation) / self.deviation if self.deviation else math.nan


@dataclass(frozen=True)
class Rp(GradedMetric):
    """R-precision at z: the share of the z best items of the truth that are in the top z.

    The z best items are those with a `truth_rank` of at most z: the z best-graded ones and all that tie with the z-th.
    The number found is divided by min(m, z), where m is the number of relevant items.

    The challenge's text first divides by the number of retrieved items, which is z in its example, and later by the
    number of relevant ones, min(m, z), and explains why: a perfect list should score 1 even if m < z. The two differ
    only then. With ties, more than min(m, z) items may be relevant; the divisor stays, so a perfect list scores 1.

    References
    ----------
    ECML/PKDD 2011 VideoLectures.Net challenge, "Evaluation metrics example: Mean Average R-precision".
    """

    name = "rp"
    k: int

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return (_rp_terms(ranks, self.k, 1.0),)


@dataclass(frozen=True)
class MARp(GradedMetric):
    """Mean over several cut-offs z of `Rp` at z (AvgRp); its mean over instances is MARp.

    Examples
    --------
    The second example of the challenge's text: lectures 5 to 7 of the first list tie at 96, the second has only seven.

    >>> import truerank as tr
    >>> ranks = tr.read_lists(
    ...     {1: [1, 2, 3, 7, 20, 6, 21, 8, 22, 23], 2: [23, 2, 3, 20, 10, 6, 7, 8, 21, 22]},
    ...     {1: dict(zip(range(1, 11), [100, 99, 98, 97, 96, 96, 96, 93, 92, 91])),
    ...      2: dict(zip(range(1, 8), [50, 49, 48, 47, 46, 45, 44]))},
    ... )
    >>> tr.values(ranks, "marp@5,10").round(4).tolist()
    [0.7, 0.4857]
    >>> round(tr.estimate(ranks, "marp@5,10").mean, 4)
    0.5929
    """

    name = "marp"
    k: tuple[int, ...]

    def __post_init__(self) -> None:
        check_kind("k", self.k, tuple)
        rises = all(as_number(low) < as_number(high) for low, high in zip((0, *self.k), self.k, strict=False))
        if not self.k or not rises or any(type(k) is not int or k >= 2**63 for k in self.k):
            raise InputError(
                f"the cut-offs of marp@k,k must be ascending whole numbers from 1, got {','.join(map(str, self.k))}."
            )

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return tuple(_rp_terms(ranks, k, 1.0 / len(self.k)) for k in self.k)


@dataclass(frozen=True)
class Discount(PlainMetric):
    """Sum over the relevant items of 1 / log2(rank + 1): DCG where all gains are 1."""

    name = "discount"
    shape = "smooth"
    separable = True
    k: int | None = None

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return _discount(rank, self.k)


@dataclass(frozen=True)
class DCG(GradedMetric):
    """Discounted cumulative gain: sum over the relevant items of gain / log2(rank + 1).

    The gain is the grade, or 2 ** grade - 1 where it is written ``dcg(exp)@k``.

    References
    ----------
    Järvelin & Kekäläinen, TOIS 2002 (linear); Burges et al., ICML 2005 (exponential).

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[1, 3]], n=5, grades=[[1, 2]])
    >>> [tr.values(ranks, text).item() for text in ("dcg", "dcg(exp)", "dcg@2")]
    [2.0, 2.5, 1.0]
    """

    name = "dcg"
    gain: Literal["linear", "exp"] = _one_of("linear", "exp")
    k: int | None = None

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return (weighted(Discount(self.k), ranks, self.gains(ranks)),)

    def gains(self, ranks: Ranks) -> Floats:
        """Return the gain of each relevant item."""
        grades = _grades(ranks)
        if self.gain == "linear":
            return grades
        if (largest := grades.max(initial=0.0)) > 1000:  # 2 to this power is still a finite number
            raise InputError(f"the exponential gain needs grades up to 1000, got {largest:g}.")
        # the difference loses the digits of small grades, and expm1 the last one of whole ones
        return np.where(grades < 0.5, np.expm1(grades * math.log(2)), np.exp2(grades) - 1.0)


@dataclass(frozen=True)
class GradedNDCG(DCG):
    """DCG relative to that of the ideal order (descending grade).

    Without grades, or if all are equal, it is `NDCG`. As in ir-measures and scikit-learn, the gain is linear by
    default.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[1, 3]], n=5, grades=[[1, 2]])
    >>> [round(tr.values(ranks, text).item(), 3) for text in ("gndcg", "gndcg(exp)", "gndcg@2", "ndcg")]
    [0.76, 0.689, 0.38, 0.92]
    """

    name = "gndcg"

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        gains = self.gains(ranks)
        ideal = _sums(gains[ranks.by_grade] * _discount(ranks.i, self.k), ranks)
        return (weighted(Discount(self.k), ranks, gains / ideal),)


@dataclass(frozen=True)
class WeightedRecall(GradedMetric):
    """Share of the total grade of the relevant items that is in the top k: weighted recall."""

    name = "weighted-recall"
    k: int

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        grades = _grades(ranks)
        return (weighted(Recall(self.k), ranks, ranks.item_n_relevant * grades / _sums(grades, ranks)),)


@dataclass(frozen=True)
class PropensityScoredPrecision(GradedMetric):
    """Sum of the grades in the top k, divided by the sum of the k largest grades; grades are 1 / propensity.

    In extreme classification, PSP@k gives more weight to labels that are rarely recorded. Here 1 is the best value that
    an instance allows, and the mean over instances is reported; tables of that field divide sums over all instances.

    References
    ----------
    Jain, Prabhu & Varma, KDD 2016.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks.from_ranks([[1, 3]], n=5, grades=[[1, 4]])
    >>> tr.values(ranks, "psp@1").item(), tr.values(ranks, "psp@2").item()
    (0.25, 0.2)
    """

    name = "psp"
    k: int

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        grades = _grades(ranks)
        best = _sums(grades[ranks.by_grade] * (ranks.i <= self.k), ranks)
        return (weighted(Precision(self.k), ranks, self.k * grades / best),)


def _grades(ranks: Ranks) -> Floats:
    return np.ones(ranks.above.size) if ranks.grades is None else ranks.grades


def _rp_terms(ranks: Ranks, k: int, share: float) -> Terms:
    """Precision@k of the items among the k best, divided by min(|R|, k) instead of k, and multiplied by a share."""
    scale = share * k / np.minimum(np.maximum(ranks.n_relevant, 1), k)
    return weighted(Precision(k), ranks, np.repeat(scale, ranks.n_relevant) * (ranks.truth_rank <= k))


def _discount(rank: Ints, k: int | None) -> Floats:
    value = 1.0 / np.log2(rank + 1.0)
    return value if k is None else (rank <= k) * value


def _sums(values: Floats, ranks: Ranks) -> Floats:
    """Return for each relevant item the sum over all relevant items of its instance."""
    sums = np.bincount(ranks.instance, weights=values, minlength=len(ranks))
    return sums[ranks.instance].astype(np.float64, copy=False)


METRICS: Registry[PlainMetric | GradedMetric | WholeMetric] = Registry(
    "metric",
    "'ap', 'ndcg@10' or 'rbp(0.8)'",
    aliases={
        "roc-auc": "auc", "auroc": "auc",
        "p": "precision", "prec": "precision",
        "r": "recall",
        "map": "ap", "map-cut": "ap(relevant)", "average-precision": "ap", "mean-average-precision": "ap",
        "mean-ndcg": "ndcg", "ndcg-cut": "gndcg",
        "mrr": "rr", "recip-rank": "rr", "reciprocal-rank": "rr", "mean-reciprocal-rank": "rr",
        "hit": "hr", "hits": "hr", "hit-rate": "hr", "hit-ratio": "hr", "hitrate": "hr", "hitratio": "hr",
        "success": "hr",
        "acc": "accuracy",
        "f": "f1", "f-score": "f1", "f1-score": "f1", "fbeta": "f-beta", "f-beta-score": "f-beta", "f2": "f-beta(2)",
        "partial-auc": "pauc", "pap": "pauc(top)", "binary-preference": "bpref",
        "rprec": "r-precision", "r-prec": "r-precision", "rprecision": "r-precision",
        "mr": "mean-rank", "meanrank": "mean-rank", "average-rank": "mean-rank", "arithmetic-mean-rank": "mean-rank",
        "inverse-harmonic-mean-rank": "rr", "gmr": "geometric-mean-rank",
        "z-arithmetic-mean-rank": "z(mean-rank)", "z-inverse-harmonic-mean-rank": "z(rr)", "z-hits": "z(hr)",
        "adjusted-mean-rank-index": "amri", "adjusted-arithmetic-mean-rank-index": "amri",
        "avgrp": "marp", "mean-average-r-precision": "marp",
        "graded-ndcg": "gndcg", "wrecall": "weighted-recall",
        "expected-reciprocal-rank": "err", "propensity-scored-precision": "psp",
    },
    elsewhere=dict.fromkeys(
        (
            "coverage", "gini", "entropy", "popularity", "tail-share", "novelty", "intra-list-distance", "overlap",
            "rbo", "personalisation", "serendipity", "calibration", "judged",
        ),
        "a metric of recommended lists, not of ranks: evaluate what `truerank.recommend` returns",
    ),
)  # fmt: skip
"""Every metric by its name, and by other names that the field uses."""

BUILT_IN: tuple[type[PlainMetric], ...] = (
    AUC, Precision, Recall, AP, NDCG, RR, HR, Accuracy, F1, FBeta, PartialAUC, BPref, RPrecision, RBP, ERR, MeanRank,
    AMRI,
)  # fmt: skip
GRADED: tuple[type[GradedMetric], ...] = (
    Rp, MARp, DCG, GradedNDCG, WeightedRecall, PropensityScoredPrecision,
)  # fmt: skip
WHOLE: tuple[type[WholeMetric], ...] = (MedianRank, GeometricMeanRank, ZScore)
METRICS.add_built_in(*BUILT_IN, *GRADED, *WHOLE)
