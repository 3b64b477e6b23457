"""Score candidates in growing batches, for all users at once, until enough is known about each relevant item."""

from __future__ import annotations

from dataclasses import dataclass
from threading import Event

import numpy as np

from truerank.core.checks import AnyArray, Bools, Floats, Ints, to_numpy
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.threads import share
from truerank.kernels.user_blocks import Progress, check_pairs
from truerank.ranking.held_out import HeldOut
from truerank.sampling.designs import SequentialDesign, next_batch
from truerank.sampling.pools import Order
from truerank.scoring.scorers import Scorer

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
        step = _PER_THREAD if threads > 1 else max(users.size, 1)

        def part(start: int, stopped: Event) -> Floats:
            some = slice(start, start + step)
            return to_numpy(self.scorer.pairs(users[some], items[some]), "scores").astype(np.float64, copy=False)

        scores = np.concatenate(share(part, range(0, max(users.size, 1), step), threads))
        check_pairs(scores, users, items)
        return scores


def rank_in_rounds(
    asked: Asked, held: HeldOut, design: SequentialDesign, order: Order, rng: np.random.Generator, most: int | None
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
    rng : numpy.random.Generator
        For candidates with the score of a relevant item, if the design breaks ties.
    most : int or None
        Scores to spend in total, those of relevant items included.
    """
    found = _Rounds(asked, held, design, order, rng)
    found.run(None if most is None else most - found.scores.size)
    return design.found(found.ranks, above=found.above, tied=found.tied, drawn=found.drawn, scored=found.scored)


class _Rounds:
    """The relevant items of each instance from the top, and what has been counted so far for each of them.

    Attributes
    ----------
    ranks : Ranks
        All zero: which relevant items there are, and how many candidates.
    scores, keys : arrays of float, one per relevant item
        Its score, and a key that orders equal scores at random.
    above, tied, drawn : arrays of int, one per relevant item
    scored : array of int, one per instance
    open : array of bool, one per relevant item
        Whether more has to be known about it.
    """

    def __init__(
        self, asked: Asked, held: HeldOut, design: SequentialDesign, order: Order, rng: np.random.Generator
    ) -> None:
        self.asked, self.users, self.design, self.order, self.rng = asked, held.users, design, order, rng
        n_relevant = np.diff(held.test.indptr)[held.users]
        users = np.repeat(held.users, n_relevant)
        scores = asked.scores(users, held.test.items)
        keys = rng.random(scores.size)
        down = np.lexsort((-keys, -scores, users))
        self.scores, self.keys = scores[down], keys[down]
        self.ranks = Ranks(
            above=np.zeros(scores.size, dtype=np.int64),
            n_candidates=held.n_candidates,
            indptr=bounds(n_relevant),
            ids=held.test.names[held.users],
            grades=None if held.grades is None else held.grades[down],
            notes=held.notes,
        )
        self.above, self.tied, self.drawn = np.zeros((3, scores.size), dtype=np.int64)
        self.scored = np.zeros(len(self.ranks), dtype=np.int64)
        self.open = np.ones(scores.size, dtype=np.bool_)

    def run(self, left: int | None) -> None:
        """Look at batch after batch of the open instances, until none is open or no score is left.

        When scores run out, all draws end, as far as possible at the same number.
        """
        start, last = 0, int(self.ranks.draws.max(initial=0))
        last = last if self.design.cap is None else min(last, self.design.cap)
        while start < last:
            batch, places = min(next_batch(start), last - start), self.open_instances()
            size = batch if left is None else min(batch, left // max(places.size, 1))
            if not places.size or not size:
                return
            before = int(self.scored[places].sum())
            self.look(places, start, size)
            if left is not None:
                left -= int(self.scored[places].sum()) - before
            if size < batch:
                return
            start += batch

    def open_instances(self) -> Ints:
        return np.unique(self.ranks.instance[self.open])

    def look(self, places: Ints, start: int, size: int) -> None:
        """Score the next candidates of some instances, and count them for each of their open items."""
        block = max(_CHUNK // size, 1)
        for first in range(0, places.size, block):
            self._look(places[first : first + block], start, size)
        self.asked.progress(places.size - np.isin(places, self.open_instances()).sum())

    def _look(self, places: Ints, start: int, size: int) -> None:
        items = self.order.part(places, start, start + size)
        sizes = np.array([own.size for own in items])
        scores = self.asked.scores(np.repeat(self.users[places], sizes), np.concatenate(items))
        inside = np.arange(size) < sizes[:, None]
        table = np.full(inside.shape, -np.inf)
        table[inside] = scores
        self.scored[places] = start + sizes
        keys = self.rng.random(table.shape) if self.design.breaks_ties else None
        n_relevant = self.ranks.n_relevant[places]
        for place in range(int(n_relevant.max(initial=0))):
            at = self.ranks.indptr[places] + np.minimum(place, n_relevant - 1)
            rows = np.flatnonzero((n_relevant > place) & self.open[at])
            self._count(at[rows], start, table[rows], None if keys is None else keys[rows], sizes[rows])

    def _count(self, at: Ints, start: int, table: AnyArray, keys: AnyArray | None, sizes: Ints) -> None:
        """Count the candidates in the rows of a table for one item each, until enough is known about it."""
        score = self.scores[at, None]
        higher, equal = table > score, table == score
        if keys is not None:
            higher |= equal & (keys > self.keys[at, None])
            equal[:] = False
        steps, ends = self._ends(at, higher, sizes)
        self.above[at] += (higher & steps).sum(axis=1)
        self.tied[at] += (equal & steps).sum(axis=1)
        self.drawn[at] = start + ends
        # an instance whose candidates have run out is not asked again
        self.open[at] = (self.above[at] < self.design.enough) & (sizes == table.shape[1])

    def _ends(self, at: Ints, higher: Bools, sizes: Ints) -> tuple[Bools, Ints]:
        """Return which candidates count, and how many: those up to the one after which enough is known, or all."""
        reached = self.above[at, None] + np.cumsum(higher, axis=1) >= self.design.enough
        done = reached.any(axis=1) & (not self.design.counts_whole_batches)
        ends = np.where(done, reached.argmax(axis=1) + 1, sizes)
        return np.arange(higher.shape[1]) < ends[:, None], ends
