"""Which held-out items of a user have the same score, for graded metrics.

Among equally scored items the order is left to chance, so with different grades it matters which
ones they are. If irrelevant items have the score as well, the counts show it. If none has, two neighbours with
equal counts may be tied, or one just below the other; counting a second time decides.
"""

from __future__ import annotations

import numpy as np

from truerank.arrays import Bools, Ints
from truerank.counting.blocks import Counts, Lists
from truerank.data.interactions import Interactions
from truerank.scoring.scorer import Scorer


def same_scores(scorer: Scorer, train: Interactions, test: Interactions, counts: Counts, threads: int) -> Bools:
    """Return for each held-out item, in the order of the counts, whether it has the score of the one before it.

    Of a user's items at places 0, 1, 2, ..., those at even places are counted again, with those at
    odd places as irrelevant candidates. Before place j there are j / 2 odd ones. If fewer stand
    above the item at place j, it ties with the one before it; if more stand above it or tie with
    it, it ties with the one after it.

    Examples
    --------
    >>> from truerank.scoring.matrix import ScoreMatrix
    >>> scorer = ScoreMatrix([[0.5, 0.5, 0.2, 0.1]])
    >>> train, test = Interactions.of([[]], "train", n_items=4), Interactions.of([[0, 1, 2]], "test", n_items=4)
    >>> counts = scorer.count(Lists(train.indptr, train.items), Lists(test.indptr, test.items))
    >>> same_scores(scorer, train, test, counts, threads=1).tolist()
    [False, True, False]
    """
    users, place = test.users, _places(test.indptr)
    alike = np.zeros(place.size, dtype=np.bool_)
    alike[1:] = (counts.above[1:] == counts.above[:-1]) & (counts.tied[1:] == counts.tied[:-1]) & (place[1:] > 0)
    unclear = np.isin(users, users[alike & (counts.tied == 0)])
    if not unclear.any():
        return alike
    again = np.flatnonzero(unclear & (place % 2 == 0))
    more = _count_again(scorer, train, test, counts.order[again], threads)
    higher, tied = more.above - counts.above[again], more.tied - counts.tied[again]
    before = place[again] // 2
    same = alike & ~unclear
    same[again] = higher < before
    after = again[higher + tied > before] + 1
    same[after] = True
    return same


def _count_again(scorer: Scorer, train: Interactions, test: Interactions, entries: Ints, threads: int) -> Counts:
    """Count with only some of the held-out items relevant; the others are candidates, also if they are in `train`."""
    chosen = np.zeros(test.items.size, dtype=np.bool_)
    chosen[entries] = True
    part, others = test.select(chosen), train.select(~test.contains(train))
    return scorer.count(Lists(others.indptr, others.items), Lists(part.indptr, part.items), threads=threads)


def _places(indptr: Ints) -> Ints:
    """Return the place, from 0, of each entry among those of its user."""
    return np.arange(indptr[-1]) - np.repeat(indptr[:-1], np.diff(indptr))
