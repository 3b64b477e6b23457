"""What a metric is: a sum over the relevant items of an instance, M = sum_i w_i f(r_i, i, |R|, n).

Here r_i is the rank of the i-th relevant item from the top, |R| their number and n the number of candidates. f is a
`Term`, and the weight w_i, 1 for most metrics, depends on the truth alone. A metric returns its terms for given ranks;
ties, sampling, corrections and cut lists need nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NamedTuple

import numpy as np

from truerank.core.checks import Floats, InputError, Ints, check_cutoff
from truerank.core.ranks import Ranks
from truerank.core.text_forms import Named

TermFunction = Callable[[Ints, Ints, Ints, Ints], Floats]
"""f(rank, i, n_relevant, n) on arrays."""

Shape = Literal["affine", "step", "reciprocal", "smooth", "any"]
"""What f is as a function of a real rank above 0, up to its cut-off: affine, constant, proportional to 1 / rank,
analytic, or anything. Sums and expectations then need few ranks instead of all."""


class Term(ABC):
    """What one relevant item adds to a metric, as a function of its rank."""

    @property
    def shape(self) -> Shape:
        """What kind of function of the rank it is."""
        return "any"

    @abstractmethod
    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        """Return what the i-th relevant item from the top adds at this rank (arrays, elementwise)."""

    def cutoff(self, n_relevant: Ints) -> Ints | None:
        """Return the deepest rank that can add anything, for each number of relevant items; None if every rank can."""
        return None


class Terms(NamedTuple):
    """A sum over the relevant items of some ranks: weight * f(rank, i, n_relevant, n)."""

    term: Term
    n: Ints
    """What f is given as its n, one per relevant item."""
    weight: Floats | None = None
    """One per relevant item; None: all are 1."""


class Metric(ABC):
    """The value of the ranking of an instance."""

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
        """Whether its value of an instance depends on the other instances."""
        return False

    @property
    def estimated(self) -> Metric:
        """The metric of exact ranks that it is or, if it is a corrected one, estimates."""
        return self

    @abstractmethod
    def terms(self, ranks: Ranks) -> tuple[Terms, ...]:
        """Return the sums that add up to the metric of these ranks, or raise `InputError`."""

    def hidden_error(self, ranks: Ranks) -> float:
        """Return the standard error of the mean that the spread over instances does not show; 0 for plain metrics."""
        return 0.0

    def biased(self, ranks: Ranks) -> bool:
        """Whether its mean over these ranks is biased, because they are sampled and it is not corrected."""
        design = ranks.design
        return design is not None and not (self.unbiased_when_sampled and design.keeps_unbiased)

    def unbiased(self, ranks: Ranks) -> bool:
        """Whether the expectation of its mean over these ranks, sampled or not, is the exact metric."""
        return not self.biased(ranks)

    def notes(self, ranks: Ranks) -> tuple[str, ...]:
        """What to know before trusting this metric of these ranks."""
        return ()


class WrittenMetric(Named, Metric):
    """A metric with a text form; the field `k`, if it has one, is its cut-off."""

    def __post_init__(self) -> None:
        check_cutoff(self.name, getattr(self, "k", None))


class PlainMetric(WrittenMetric, Term):
    """A metric with one term and weights of 1.

    To add one, subclass as a frozen dataclass, give it a `name` and a `term`, and decorate it with
    `truerank.register`. Fields become parameters: `k` is written ``name@k``, any other ones
    ``name(a, b)``.

    Examples
    --------
    >>> from dataclasses import dataclass
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
    The share of all grades that is first in its list:

    >>> from dataclasses import dataclass
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


def weighted(metric: PlainMetric, ranks: Ranks, weight: Floats) -> Terms:
    """Return the terms of a plain metric, each relevant item counted with its weight."""
    return Terms(metric, ranks.item_n, weight)
