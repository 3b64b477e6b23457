"""Metrics that depend on grades: how relevant an item is, not only whether.

A graded metric is a sum of plain ones in which each relevant item also has a weight. The weight depends on the truth
alone, so sampling, ties and corrections concern only the plain metric. If ranks have no grades, every relevant item has
grade 1, and a note says so.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.metrics.base import Metric, PlainMetric, Terms, check_cutoff
from truerank.metrics.plain import Precision, Recall
from truerank.ranking.ranks import Ranks
from truerank.text_forms import Named

Gain = Literal["linear", "exp"]

# 2 to this power is still a finite number
_LARGEST_EXPONENT = 1000


class GradedMetric(Named, Metric):
    """A metric that needs to know how relevant each item is.

    To add one, subclass as a frozen dataclass, give it a `name` and `terms`, and decorate it with
    `truerank.register_metric`.

    Examples
    --------
    The share of all grades that is first in its list:

    >>> from dataclasses import dataclass
    >>> import truerank as tr
    >>> from truerank.metrics import Precision, weighted
    >>> @tr.register_metric
    ... @dataclass(frozen=True)
    ... class TopShare(tr.GradedMetric):
    ...     name = "top-share"
    ...     def terms(self, ranks):
    ...         return (weighted(Precision(1), ranks, ranks.grades / ranks.grades.sum()),)
    >>> tr.values(tr.Ranks.from_ranks([1, 1, 2], n=9, grades=[1, 2, 5]), "top-share").tolist()
    [0.125, 0.25, 0.0]
    """

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        ungraded = f"these ranks have no grades: for {self} every relevant item has grade 1"
        return (*super().notes(ranks), *((ungraded,) if ranks.grades is None else ()))


def weighted(metric: PlainMetric, ranks: Ranks, weight: Floats) -> Terms:
    """Return the terms of a plain metric, each relevant item counted with its weight."""
    return Terms(metric, ranks.item_n, weight)


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

    def __post_init__(self) -> None:
        check_cutoff(self.name, self.k)

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
        rises = all(low < high for low, high in zip((0, *self.k), self.k, strict=False))
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
    gain: Gain = "linear"
    k: int | None = None

    def __post_init__(self) -> None:
        check_cutoff(self.name, self.k)
        if self.gain not in ("linear", "exp"):
            raise InputError(f"the gain of {self.name}(gain) must be 'linear' or 'exp', got {self.gain!r}.")

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        return (weighted(Discount(self.k), ranks, self.gains(ranks)),)

    def gains(self, ranks: Ranks) -> Floats:
        """Return the gain of each relevant item."""
        grades = _grades(ranks)
        if self.gain == "linear":
            return grades
        if (largest := grades.max(initial=0.0)) > _LARGEST_EXPONENT:
            raise InputError(f"the exponential gain needs grades up to {_LARGEST_EXPONENT}, got {largest:g}.")
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

    def __post_init__(self) -> None:
        check_cutoff(self.name, self.k)

    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        grades = _grades(ranks)
        return (weighted(Recall(self.k), ranks, ranks.item_n_relevant * grades / _sums(grades, ranks)),)


GRADED: tuple[type[GradedMetric], ...] = (Rp, MARp, DCG, GradedNDCG, WeightedRecall)


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
