"""Score candidates in growing batches, for all users at once, until enough is known about each relevant item."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import numpy as np

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.counting.blocks import Progress, check_pairs
from truerank.ranking.held_out import HeldOut
from truerank.ranking.ranks import Ranks
from truerank.sampling.courses import run
from truerank.sampling.orders import Order
from truerank.sampling.sequential import SequentialDesign
from truerank.scoring.numbers import to_numpy
from truerank.scoring.scorer import Scorer
from truerank.threads import share

# pairs that are scored at once, and by each of several threads if the scorer allows them
_CHUNK = 2_000_000
_PER_THREAD = 1 << 18


@dataclass(frozen=True)
class Asked:
    """A scorer of pairs, and what to call when users are done."""

    scorer: Scorer
    threads: int
    progress: Progress

    def scores(self, users: Ints, items: Ints) -> Floats:
        """Return the scores of pairs, or refuse them if one is not finite."""
        threads = self.threads if self.scorer.concurrent else 1
        bounds = range(0, max(users.size, 1), _PER_THREAD if threads > 1 else max(users.size, 1))
        step = bounds.step

        def part(start: int, stopped: Event) -> Floats:
            some = slice(start, start + step)
            return to_numpy(self.scorer.pairs(users[some], items[some]), "scores").astype(np.float64, copy=False)

        scores = np.concatenate(share(part, bounds, threads))
        check_pairs(scores, users, items)
        return scores


def rank_in_rounds(
    asked: Asked,
    held: HeldOut,
    design: SequentialDesign,
    order: Order,
    n_candidates: Ints,
    rng: np.random.Generator,
    most: int | None = None,
) -> Ranks:
    """Return the ranks of held-out items as a sequential design sees them.

    Parameters
    ----------
    asked : Asked
        Gives the scores of pairs of users and items, many at once.
    held : HeldOut
    design : SequentialDesign
        When to stop.
    order : Order
        Which candidates come first.
    n_candidates : array of int, one per user with held-out items
    rng : numpy.random.Generator
        For candidates with the score of a relevant item, if the design breaks ties.
    most : int, optional
        Scores to spend in total, those of relevant items included.
    """
    relevant = _relevant(asked, held, n_candidates, rng)
    left = None if most is None else most - relevant.scores.size
    return run(design.course(relevant.ranks, rng), _State(relevant, design, order, asked, rng), left)


@dataclass(frozen=True)
class _Relevant:
    """The relevant items of each instance from the top: their scores, and keys that order equal scores at random."""

    users: Ints
    ranks: Ranks
    scores: Floats
    keys: Floats


def _relevant(asked: Asked, held: HeldOut, n_candidates: Ints, rng: np.random.Generator) -> _Relevant:
    users = np.repeat(held.users, np.diff(held.test.indptr)[held.users])
    scores = asked.scores(users, held.test.items)
    keys = rng.random(scores.size)
    down = np.lexsort((-keys, -scores, users))
    grades = None if held.grades is None else held.grades[down]
    instance = np.searchsorted(held.users, users)
    ranks = Ranks(
        above=np.zeros(scores.size, dtype=np.int64),
        n_candidates=n_candidates,
        indptr=np.searchsorted(instance, np.arange(held.users.size + 1)),
        ids=held.test.names[held.users],
        grades=grades,
        notes=held.notes,
    )
    return _Relevant(held.users, ranks, scores[down], keys[down])


class _State:
    """What has been counted so far for each relevant item."""

    def __init__(
        self,
        relevant: _Relevant,
        design: SequentialDesign,
        order: Order,
        asked: Asked,
        rng: np.random.Generator,
    ) -> None:
        self.relevant, self.order, self.asked, self.rng = relevant, order, asked, rng
        self.design, self.enough = design, design.enough_above(relevant.ranks.i)
        self.above, self.tied, self.drawn = (np.zeros_like(relevant.ranks.above) for _ in range(3))
        self.scored = np.zeros(len(relevant.ranks), dtype=np.int64)
        self.open = self.enough > 0

    def open_instances(self) -> Ints:
        return np.unique(self.relevant.ranks.instance[self.open])

    def look(self, places: Ints, start: int, size: int) -> None:
        """Score the next candidates of some instances, and count them for each of their open items."""
        block = max(_CHUNK // size, 1)
        for first in range(0, places.size, block):
            self._look(places[first : first + block], start, size)
        self.asked.progress(places.size - np.isin(places, self.open_instances()).sum())

    def _look(self, places: Ints, start: int, size: int) -> None:
        items = self.order.part(places, start, start + size)
        sizes = np.array([own.size for own in items])
        scores = self.asked.scores(np.repeat(self.relevant.users[places], sizes), np.concatenate(items))
        inside = np.arange(size) < sizes[:, None]
        table = np.full(inside.shape, -np.inf)
        table[inside] = scores
        self.scored[places] = start + sizes
        keys = self.rng.random(table.shape) if self.design.breaks_ties else None
        n_relevant = self.relevant.ranks.n_relevant[places]
        for place in range(int(n_relevant.max(initial=0))):
            at = self.relevant.ranks.indptr[places] + np.minimum(place, n_relevant - 1)
            rows = np.flatnonzero((n_relevant > place) & self.open[at])
            self._count(at[rows], start, table[rows], None if keys is None else keys[rows], sizes[rows])

    def _count(self, at: Ints, start: int, table: AnyArray, keys: AnyArray | None, sizes: Ints) -> None:
        """Count the candidates in the rows of a table for one item each, until enough is known about it."""
        score = self.relevant.scores[at, None]
        higher, equal = table > score, table == score
        if keys is not None:
            higher |= equal & (keys > self.relevant.keys[at, None])
            equal[:] = False
        steps, ends = self._ends(at, higher, sizes)
        self.above[at] += (higher & steps).sum(axis=1)
        self.tied[at] += (equal & steps).sum(axis=1)
        self.drawn[at] = start + ends
        # an instance whose candidates have run out is not asked again
        self.open[at] = (self.above[at] < self.enough[at]) & (sizes == table.shape[1])

    def _ends(self, at: Ints, higher: Bools, sizes: Ints) -> tuple[Bools, Ints]:
        """Return which candidates count, and how many: those up to the one after which enough is known, or all."""
        reached = self.above[at, None] + np.cumsum(higher, axis=1) >= self.enough[at, None]
        done = reached.any(axis=1) & (not self.design.counts_whole_batches)
        ends = np.where(done, reached.argmax(axis=1) + 1, sizes)
        return np.arange(higher.shape[1]) < ends[:, None], ends
