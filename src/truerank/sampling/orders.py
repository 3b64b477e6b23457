"""In which order the candidates of each user are scored, for designs that stop when they have seen enough."""

from __future__ import annotations

from abc import ABC, abstractmethod

import numpy as np

from truerank.arrays import Bools, Ints
from truerank.sampling.pools import Pool
from truerank.scoring.scorer import Scorer

# proxy scores held at once: 32 MB
_CHUNK = 4_000_000


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
        return [self._extended(place, stop)[start:stop] for place in places.tolist()]

    def _extended(self, place: int, stop: int) -> Ints:
        """Draw from the candidates that have not been drawn, until there are `stop`."""
        before, size = self.drawn[place], int(self.sizes[place])
        if before.size < min(stop, size):
            left = Pool(self.pool.n_items, [np.union1d(self.pool.excluded[place], before)])
            more = self.rng.choice(size - before.size, min(stop, size) - before.size, replace=False)
            self.drawn[place] = np.concatenate([before, left.items_at(0, more)])
        return self.drawn[place]


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

    Scores are computed again each time they are asked for, as keeping all orders would take users times items.
    """

    def __init__(self, pool: Pool, proxy: Scorer, rng: np.random.Generator) -> None:
        super().__init__(pool)
        self.proxy = proxy
        self.among_equal = rng.permutation(pool.n_items)

    def part(self, places: Ints, start: int, stop: int) -> list[Ints]:
        size = max(_CHUNK // max(self.pool.n_items, 1), 1)
        blocks = [places[first : first + size] for first in range(0, places.size, size)]
        return [items for block in blocks for items in self._block(block, start, stop)]

    def _block(self, places: Ints, start: int, stop: int) -> list[Ints]:
        scores = np.asarray(self.proxy.scores(self.pool.numbers[places]))
        orders = self.among_equal[np.argsort(-scores[:, self.among_equal], axis=1, kind="stable")]
        kept = (order[self._is_candidate(place)[order]] for place, order in zip(places.tolist(), orders, strict=True))
        return [order[start:stop] for order in kept]

    def _is_candidate(self, place: int) -> Bools:
        mask = np.ones(self.pool.n_items, dtype=np.bool_)
        mask[self.pool.excluded[place]] = False
        return mask
