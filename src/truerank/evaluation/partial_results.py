"""Partial results: what some instances show, which adds up with ``+`` to what all of them show.

`Moments`, `Units`, `ExactRange`, `Estimate` and `PairedPart` are such. A step makes them of some instances of several
recommenders, by key. Here there is one part, of all instances; an engine makes one of each block of a dataframe, by the
same step, and adds them up.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, Self, TypeVar

import numpy as np

from truerank.core.checks import Floats
from truerank.core.ranks import Ranks
from truerank.core.samples import Rng
from truerank.evaluation.groups import Groups
from truerank.metrics.definitions import Metric


class Partial(Protocol):
    """What some instances show; with ``+``, what those of both show."""

    def __add__(self, other: Self, /) -> Self: ...


Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value", bound=Partial)
Parts = dict[tuple[Any, ...], Any]
"""Partial results by what they are about: recommender, group, place of the metric, pair."""
Step = Callable[[Mapping[str, Ranks], Groups | None, Rng], Parts]
"""Makes partial results of some instances, in these groups; the seed is for random orders of ties."""


def added_up(parts: Iterable[Mapping[Key, Value]]) -> dict[Key, Value]:
    """Add up what has the same key.

    Examples
    --------
    >>> added_up([{"a": 1}, {"b": 2, "a": 3}])
    {'a': 4, 'b': 2}
    """
    total: dict[Key, Value] = {}
    for part in parts:
        for key, value in part.items():
            total[key] = total[key] + value if key in total else value
    return total


@dataclass(frozen=True)
class Moments:
    """The mean of independent values v with weights w, which is the sum of v over that of w, and its error.

    The error rests on the deviations e = v - mean w, which sum to 0.

    Attributes
    ----------
    n : int
    mean : float
        NaN if there are none.
    weight, ww, ee, ew : float
        Sums of w, w^2, e^2 and e w.

    Examples
    --------
    >>> v = np.array([0.5, 0.4, 0.9])
    >>> whole = Moments.of(v.mean(), v - v.mean())
    >>> parts = [Moments.of(own.mean(), own - own.mean()) for own in (v[:1], v[1:])]
    >>> bool(np.isclose((parts[0] + parts[1]).standard_error, whole.standard_error))
    True
    """

    n: int
    mean: float
    weight: float
    ww: float
    ee: float
    ew: float = 0.0

    @classmethod
    def of(cls, mean: float, deviations: Floats, weights: Floats | None = None) -> Moments:
        """Return the moments from the mean and the deviations; without weights all weigh 1."""
        n, ee = deviations.size, float(np.square(deviations).sum())
        if weights is None:
            return cls(n, mean, n, n, ee)
        return cls(n, mean, float(weights.sum()), float(weights @ weights), ee, float(deviations @ weights))

    def __add__(self, other: Moments) -> Moments:
        if not (self.n and other.n):
            return self if self.n else other
        weight = self.weight + other.weight
        mean = self.mean + (other.mean - self.mean) * other.weight / weight
        (ee, ew), (others_ee, others_ew) = self._around(mean), other._around(mean)
        return Moments(self.n + other.n, mean, weight, self.ww + other.ww, ee + others_ee, ew + others_ew)

    def _around(self, mean: float) -> tuple[float, float]:
        """Return the sums of e^2 and e w for the deviations from another mean."""
        step = mean - self.mean
        return self.ee - 2 * step * self.ew + step**2 * self.ww, self.ew - step * self.ww

    @property
    def standard_error(self) -> float:
        """Of the mean; NaN below two values."""
        if self.n < 2:
            return math.nan
        return math.sqrt(self.n / (self.n - 1) * max(self.ee, 0.0)) / self.weight


class Engine(Protocol):
    """Makes and adds up partial results of dataframes of ranks where they are; returns them, and groups in order."""

    def evaluated(
        self, ranks: Mapping[str, Any], metrics: Sequence[Metric], step: Step, *, by: Any, rng: Rng, **options: Any
    ) -> tuple[Parts, tuple[str, ...]]:
        """Return those of each recommender alone."""

    def compared(
        self, ranks: Mapping[str, Any], metrics: Sequence[Metric], step: Step, *, by: Any, rng: Rng, **options: Any
    ) -> tuple[Parts, tuple[str, ...], tuple[str, ...]]:
        """Return those of all recommenders on their common instances, and notes on the others."""


ENGINES = {"pyspark": "truerank.engines.spark_evaluation"}
"""Modules that are an `Engine`, by the library that the dataframes belong to."""


def engine_of(ranks: Mapping[str, Any]) -> Engine | None:
    """Return the engine for these ranks; None if they are in this process.

    Examples
    --------
    >>> import truerank as tr
    >>> engine_of({"A": tr.Ranks.from_ranks([1], n=5)}) is None
    True
    """
    libraries = {type(one).__module__.partition(".")[0] for one in ranks.values()}
    names = libraries & set(ENGINES)
    return import_module(ENGINES[names.pop()]) if names else None
