"""Rank held-out items among candidates that were sampled before any score is known, a block of users at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from truerank.arrays import AnyArray, Bools, Ints
from truerank.counting.blocks import Progress, check_pairs
from truerank.counting.pairs import count_sampled
from truerank.ranking.held_out import HeldOut
from truerank.ranking.ranks import Ranks
from truerank.sampling.pools import ItemLists
from truerank.scoring.numbers import to_numpy
from truerank.scoring.scorer import Scorer
from truerank.threads import share

# pairs that a scorer is asked for at once: many, since slow ones work in batches
_PAIRS = 1 << 20

SampleOf = Callable[[int, int, int], Sequence[Ints]]
"""From the number of a block, and the first and the last of its users, to the sampled items of each."""


class Counted(NamedTuple):
    """Per relevant item of some users, from the top: candidates above and tied, and which entry of the data it is."""

    above: Ints
    tied: Ints
    order: Ints
    same_score: Bools
    n_sampled: Ints
    """One per user."""


def rank_among_samples(
    scorers: Sequence[Scorer],
    held: HeldOut,
    sample_of: SampleOf,
    size: int,
    *,
    threads: int = 1,
    progress: Progress | None = None,
) -> list[Ranks]:
    """Return the ranks by each scorer; all of them see the same samples.

    Parameters
    ----------
    scorers : sequence of Scorer
        Asked for pairs of users and items, about a million at a time.
    held : HeldOut
    sample_of : callable
        Samples for a block of users; the blocks don't depend on the number of threads.
    size : int
        About how many items are sampled for each user.
    threads : int
    progress : callable, optional
        Called with the number of users of each block that is done.
    """
    n_users = held.users.size
    step = max(_PAIRS // (size + held.test.items.size // max(n_users, 1)), 1)
    starts = range(0, n_users, step)

    def run(number: int, stopped: Event) -> list[Counted]:
        start, stop = number * step, min((number + 1) * step, n_users)
        sample = ItemLists.of(sample_of(number, start, stop))
        return [] if stopped.is_set() else [_count_block(one, held, start, stop, sample) for one in scorers]

    def done(found: list[Counted]) -> None:
        if progress is not None and found:
            progress(found[0].n_sampled.size)

    threads = threads if all(scorer.concurrent for scorer in scorers) else 1
    blocks = share(run, range(len(starts)), threads, done)
    return [_ranks([block[place] for block in blocks], held) for place in range(len(scorers))]


def _count_block(scorer: Scorer, held: HeldOut, start: int, stop: int, sample: ItemLists) -> Counted:
    """Score the relevant and the sampled items of some users, and count."""
    users, test = held.users[start:stop], held.test
    own_bounds = np.append(test.indptr[users], test.indptr[users[-1] + 1]).astype(np.int64)
    first, last = own_bounds[0], own_bounds[-1]
    rows = np.repeat(np.concatenate([users, users]), np.concatenate([np.diff(own_bounds), np.diff(sample.indptr)]))
    items = np.concatenate([test.items[first:last].astype(np.int64), sample.items])
    scores = _checked(scorer.pairs(rows, items), rows, items)
    counts = count_sampled(scores[: last - first], own_bounds - first, scores[last - first :], sample.indptr)
    same = np.diff(counts.scores, prepend=np.nan) == 0
    same[(own_bounds - first)[:-1]] = False
    return Counted(counts.above, counts.tied, counts.order + first, same, np.diff(sample.indptr))


def _checked(given: AnyArray, users: Ints, items: Ints) -> AnyArray:
    """Return the scores of pairs in float32 or float64, or refuse them if one is not finite."""
    scores = np.ascontiguousarray(to_numpy(given, "scores"))
    check_pairs(scores, users, items)
    return scores


def _ranks(blocks: Sequence[Counted], held: HeldOut) -> Ranks:
    above, tied, order, same, sampled = (
        np.concatenate([getattr(block, name) for block in blocks] or [np.zeros(0, dtype=np.int64)])
        for name in Counted._fields
    )
    n_relevant = np.diff(held.test.indptr)[held.users]
    return Ranks(
        above=above,
        tied=tied,
        n_candidates=n_relevant + sampled,
        indptr=np.concatenate([[0], np.cumsum(n_relevant)]),
        ids=held.test.names[held.users],
        grades=None if held.grades is None else held.grades[order],
        same_score=None if held.grades is None else same,
        items=held.test.item_names[held.test.items[order]],
    )
