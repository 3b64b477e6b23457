"""The order of several recommenders, from the differences between all pairs: who may be best, and who is where."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from string import ascii_lowercase
from typing import Any

from truerank.core.checks import InputError
from truerank.core.tables import Cell, Table, Tabular
from truerank.evaluation.differences import Difference


@dataclass(frozen=True)
class Place:
    """The places that a recommender may have among several.

    Attributes
    ----------
    recommender : str
    mean : float
    first, last : int
        The best and the worst place that it may have.
    groups : tuple of int
        Numbers, from 1, of the groups of recommenders not told apart that it belongs to.
    """

    recommender: str
    mean: float
    first: int
    last: int
    groups: tuple[int, ...]

    @property
    def places(self) -> str:
        """The range in words."""
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"

    @property
    def letters(self) -> str:
        """A letter for each group; numbers from the 27th on."""
        names = [ascii_lowercase[at - 1] if at <= len(ascii_lowercase) else f"({at})" for at in self.groups]
        return "".join(names)


@dataclass(frozen=True, repr=False)
class Order(Tabular[Place]):
    """The order of several recommenders by one metric, as far as it is known.

    All its statements hold together with at least the probability `level`, because they only restate the verdicts on
    pairs, whose chance of any false finding is bounded: a recommender comes after those found better and before those
    found worse (Mogstad, Romano, Shaikh and Wilhelm, 2024).

    Attributes
    ----------
    metric, group : str
    level : float
    places : tuple of Place
        From the best mean to the worst.

    Examples
    --------
    >>> import truerank as tr
    >>> best, middle, last = ([1, 2] * 50, [2, 1] * 50, [7, 8] * 50)
    >>> ranks = {name: tr.Ranks.from_ranks(own, n=9) for name, own in zip("ABC", (last, best, middle))}
    >>> print(tr.compare(ranks, "rr").order())
    rr    mean  places  not told apart
    B   0.7500  1 to 2               a
    C   0.7500  1 to 2               a
    A   0.1339       3               b
    one of B, C is best (95 %).
    """

    metric: str
    group: str
    level: float
    places: tuple[Place, ...]

    @classmethod
    def of(cls, differences: Sequence[Difference]) -> Order:
        """Return the order from the differences between all pairs, by one metric in one group."""
        means = {each.baseline: each.baseline_mean for each in differences}
        means |= {each.recommender: each.mean for each in differences}
        if len(differences) < len(means) * (len(means) - 1) // 2:
            raise InputError("an order needs all pairs, so compare without `baseline`.")
        beaten = {_beaten(each) for each in differences if each.finding.winner is not None}
        sign = 1 if differences[0].lower_is_better else -1
        names = sorted(means, key=lambda name: (math.isnan(means[name]), sign * means[name]))
        groups = _groups(names, beaten)
        places = tuple(
            Place(
                name,
                means[name],
                1 + sum((other, name) in beaten for other in names),
                len(names) - sum((name, other) in beaten for other in names),
                tuple(at for at, own in enumerate(groups, 1) if name in own),
            )
            for name in names
        )
        first = differences[0]
        return cls(first.metric, first.group, first.level, places)

    @property
    def best(self) -> tuple[str, ...]:
        """The recommenders that may be best: no other one was found better."""
        return tuple(each.recommender for each in self.places if each.first == 1)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """Groups of recommenders not told apart: two that differ share none, any other two at least one."""
        numbers = sorted({at for each in self.places for at in each.groups})
        return tuple(tuple(each.recommender for each in self.places if at in each.groups) for at in numbers)

    @property
    def conclusion(self) -> str:
        """Who may be best, as a sentence."""
        sure, best = f"({100 * self.level:g} %)", self.best
        if len(best) == 1:
            return f"{best[0]} is best {sure}."
        if len(best) == len(self.places):
            return f"any may be best {sure}."
        return f"one of {', '.join(best)} is best {sure}."

    def to_table(self) -> Table:
        """Return a row per recommender, from the best mean to the worst, and who may be best."""
        header = (self.metric, "mean", "places", "not told apart")
        rows = tuple(
            (Cell(each.recommender), Cell(f"{each.mean:.4f}"), Cell(each.places), Cell(each.letters))
            for each in self.places
        )
        return Table(header, rows, tuple(map(_record, self.places)), conclusions=(self.conclusion,))

    def _rows(self) -> Sequence[Place]:
        return self.places

    def _names(self) -> list[tuple[str, ...]]:
        return [(each.recommender,) for each in self.places]

    def _numbers(self) -> Iterator[tuple[tuple[str, ...], float]]:
        for each in self.places:
            yield (each.recommender, "first"), float(each.first)
            yield (each.recommender, "last"), float(each.last)


def _beaten(found: Difference) -> tuple[str, str]:
    """Return the better and the worse of a pair."""
    pair = (found.recommender, found.baseline)
    return pair if found.finding.winner == found.recommender else pair[::-1]


def _record(place: Place) -> dict[str, Any]:
    return asdict(place) | {"groups": place.letters}


def _groups(names: Sequence[str], beaten: set[tuple[str, str]]) -> list[frozenset[str]]:
    """Return groups: two recommenders share one exactly if neither was found better (Piepho, 2004)."""
    groups = [frozenset(names)]
    for pair in sorted(beaten):
        split = [own - {name} for own in groups if own.issuperset(pair) for name in pair]
        groups = [own for own in groups if not own.issuperset(pair)]
        for own in split:
            if not any(own <= other for other in groups):
                groups = [other for other in groups if not other < own] + [own]
    return sorted(groups, key=lambda own: sorted(map(names.index, own)))
