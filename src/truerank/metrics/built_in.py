"""Ranking metrics as values: ``NDCG(10)`` is a metric, ``"ndcg@10"`` is its text form.

Equation numbers are those of Krichene & Rendle (KDD 2020), which defines all of them for any number of relevant items.
`docs/definitions.md` lists where other libraries differ.

Graded metrics also depend on how relevant an item is. Such a metric is a sum of plain ones in which each relevant item
has a weight. The weight depends on the truth alone, so sampling, ties and corrections concern only the plain metric. If
ranks have no grades, every relevant item has grade 1, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, as_number, check_choice, check_kind
from truerank.core.ranks import Ranks
from truerank.core.text_forms import Registry
from truerank.metrics.base import GradedMetric, PlainMetric, Shape, Terms, weighted


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
        check_choice("divisor", self.divisor, ("k", "achievable"), of=self.name)

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
        check_choice("divisor", self.divisor, ("relevant", "achievable"), of=self.name)

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
        check_choice("divisor", self.divisor, ("achievable", "relevant"), of=self.name)

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
        check_choice("form", self.form, ("achievable", "fixed", "original"), of=self.name)
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
        if not 0.0 < as_number(self.p) < 1.0:
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
class Rp(GradedMetric):
    """R-precision at z: the share of the z best items of the truth that are in the top z.

    The z best items are those with a `truth_rank` of at most z: the z best-graded ones and all that tie with the z-th.
    The number found is divided by min(m, z), where m is the number of relevant items.

    The challenge's text first divides by the number of retrieved items, which is z in its example, and later by the
    number of relevant ones, min(m, z), and explains why: a perfect list should score 1 even if m < z. They differ only
    there. With ties, more than min(m, z) items may be relevant; the divisor stays, so a perfect list still scores 1.

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
    gain: Literal["linear", "exp"] = "linear"
    k: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice("gain", self.gain, ("linear", "exp"), of=self.name)

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return (weighted(Discount(self.k), ranks, self.gains(ranks)),)

    def gains(self, ranks: Ranks) -> Floats:
        """Return the gain of each relevant item."""
        grades = _grades(ranks)
        if self.gain == "linear":
            return grades
        if (largest := grades.max(initial=0.0)) > 1000:  # 2 to this power is still a finite number
            raise InputError(f"the exponential gain needs grades up to 1000, got {largest:g}.")
        return np.exp2(grades) - 1.0


@dataclass(frozen=True)
class GradedNDCG(DCG):
    """DCG relative to that of the ideal order (descending grade).

    Without grades, or where all are equal, it is `NDCG`. ir-measures and scikit-learn have the linear gain by default,
    as here.

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
    """Share of the grades of all relevant items that is in the top k: recall of a weighted set."""

    name = "weighted-recall"
    k: int

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        grades = _grades(ranks)
        return (weighted(Recall(self.k), ranks, ranks.item_n_relevant * grades / _sums(grades, ranks)),)


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
    """Sum over the relevant items of its instance, for each of them."""
    sums = np.bincount(ranks.instance, weights=values, minlength=len(ranks))
    return sums[ranks.instance].astype(np.float64, copy=False)


METRICS: Registry[PlainMetric | GradedMetric] = Registry(
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
        "f": "f1", "f-score": "f1", "f1-score": "f1",
        "rprec": "r-precision", "r-prec": "r-precision", "rprecision": "r-precision",
        "mr": "mean-rank", "meanrank": "mean-rank", "average-rank": "mean-rank",
        "avgrp": "marp", "mean-average-r-precision": "marp",
        "graded-ndcg": "gndcg", "wrecall": "weighted-recall",
    },
    elsewhere=dict.fromkeys(
        ("coverage", "gini", "entropy", "popularity", "tail-share", "novelty", "intra-list-distance", "overlap"),
        "a metric of recommended lists, not of ranks: evaluate what `truerank.recommend` returns",
    ),
)  # fmt: skip
"""Every metric by its name, and by other names that the field uses."""

BUILT_IN: tuple[type[PlainMetric], ...] = (
    AUC, Precision, Recall, AP, NDCG, RR, HR, Accuracy, F1, RPrecision, RBP, MeanRank,
)  # fmt: skip
GRADED: tuple[type[GradedMetric], ...] = (Rp, MARp, DCG, GradedNDCG, WeightedRecall)
METRICS.add_built_in(*BUILT_IN, *GRADED)
