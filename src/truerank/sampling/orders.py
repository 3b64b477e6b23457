"""In which order the candidates of each user are scored, for designs that stop when enough is known."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.sampling.distinct import distinct_items
from truerank.sampling.pools import ItemLists, Pool
from truerank.scoring.scorer import Scorer

# proxy scores held at once: 32 MB
_CHUNK = 4_000_000
# orders are computed so many times as far as they are needed
_AHEAD = 4


class Order(ABC):
    """An order of the candidates of each user of a pool."""

    def __init__(self, pool: Pool) -> None:
        self.pool = pool

    @abstractmethod
    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        """Return the candidates from `start` to before `stop` of the users at these places of the pool."""


class RandomOrder(Order):
    """A uniformly random order, drawn as far as it is asked for; asking again gives the same."""

    def __init__(self, pool: Pool, rng: np.random.Generator) -> None:
        super().__init__(pool)
        self.rng = rng
        self.drawn = [np.zeros(0, dtype=np.int64)] * len(pool)
        self.sizes = pool.sizes

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        known = np.array([self.drawn[place].size for place in places.tolist()], dtype=np.int64)
        missing = np.minimum(stop, self.sizes[places]) - known
        if np.any(missing > 0):
            self._extend(places[missing > 0], missing[missing > 0])
        return [self.drawn[place][start:stop] for place in places.tolist()]

    def _extend(self, places: Ints, missing: Ints) -> None:
        """Draw from the candidates that have not been drawn, and put them behind the others in a random order."""
        taken = ItemLists.of([self.drawn[place] for place in places.tolist()])
        items = distinct_items(self.pool, places, missing, self.rng, taken).items
        shuffled = items[np.lexsort((self.rng.random(items.size), np.repeat(places, missing)))]
        for place, more in zip(places.tolist(), np.split(shuffled, np.cumsum(missing)[:-1]), strict=True):
            self.drawn[place] = np.concatenate([self.drawn[place], more])


class FixedOrder(Order):
    """One order of all items for every user, who each skip those that are not candidates."""

    def __init__(self, pool: Pool, items: Ints) -> None:
        super().__init__(pool)
        self.items = items
        self.place = np.argsort(items)

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        return [self._part(place, start, stop) for place in places.tolist()]

    def _part(self, user: int, start: int, stop: int) -> Ints:
        skipped = np.sort(self.place[self.pool.excluded[user]])
        ranks = np.arange(start, min(stop, self.items.size - skipped.size))
        return self.items[ranks + np.searchsorted(skipped - np.arange(skipped.size), ranks, side="right")]


class ScoreOrder(Order):
    """From the highest score of a proxy to the lowest; items with equal scores in a random order.

    The top of each order is kept, four times as far as it was asked for, and computed again when more is needed.
    """

    def __init__(self, pool: Pool, proxy: Scorer, rng: np.random.Generator) -> None:
        super().__init__(pool)
        self.proxy = proxy
        self.among_equal = rng.permutation(pool.n_items)
        self.sizes = pool.sizes
        self.kept: dict[int, Ints] = {}

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        ends = np.minimum(stop, self.sizes[places])
        missing = np.array([self._known(place) for place in places.tolist()], dtype=np.int64) < ends
        size = max(_CHUNK // max(self.pool.n_items, 1), 1)
        short = places[missing]
        for first in range(0, short.size, size):
            self._extend(short[first : first + size], _AHEAD * stop)
        return [self.kept[place][start:stop] for place in places.tolist()]

    def _known(self, place: int) -> int:
        return self.kept[place].size if place in self.kept else 0

    def _extend(self, places: Ints, stop: int) -> None:
        scores = np.asarray(self.proxy.scores(self.pool.numbers[places]), dtype=np.float64)
        for place, own in zip(places.tolist(), scores, strict=True):
            own[self.pool.excluded[place]] = -np.inf
            best = _best(own[self.among_equal], min(stop, int(self.sizes[place])))
            self.kept[place] = self.among_equal[best].astype(np.int32)


def _best(scores: Floats, size: int) -> Ints:
    """Return the places of the largest scores, falling; of equal ones the first come first."""
    if size == 0:
        return np.zeros(0, dtype=np.int64)
    least = np.partition(scores, scores.size - size)[scores.size - size]
    higher, equal = np.flatnonzero(scores > least), np.flatnonzero(scores == least)
    chosen = np.concatenate([higher, equal[: size - higher.size]])
    return chosen[np.argsort(-scores[chosen], kind="stable")]
