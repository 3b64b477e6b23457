"""Rank held-out items among candidates that were sampled before any score is known, a block of users at a time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Event
from typing import NamedTuple

import numpy as np

from truerank.arrays import Bools, Floats, Ints
from truerank.counting.blocks import Progress
from truerank.errors import InputError
from truerank.ranking.held_out import HeldOut
from truerank.ranking.ranks import Ranks
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
        sample = sample_of(number, start, stop)
        return [] if stopped.is_set() else [_count_block(one, held, start, stop, sample) for one in scorers]

    def done(found: list[Counted]) -> None:
        if progress is not None and found:
            progress(found[0].n_sampled.size)

    threads = threads if all(scorer.concurrent for scorer in scorers) else 1
    blocks = share(run, range(len(starts)), threads, done)
    return [_ranks([block[place] for block in blocks], held) for place in range(len(scorers))]


def _count_block(scorer: Scorer, held: HeldOut, start: int, stop: int, sample: Sequence[Ints]) -> Counted:
    """Score the relevant and the sampled items of some users, and count."""
    users, test = held.users[start:stop], held.test
    first, last = test.indptr[users[0]], test.indptr[users[-1] + 1]
    n_relevant, sizes = np.diff(test.indptr)[users], np.array([own.size for own in sample], dtype=np.int64)
    rows = np.concatenate([np.repeat(users, n_relevant), np.repeat(users, sizes)])
    items = np.concatenate([test.items[first:last].astype(np.int64), *sample])
    scores = np.asarray(scorer.pairs(rows, items))
    if not np.isfinite(scores).all():
        at = int(np.argmin(np.isfinite(scores)))
        raise InputError(f"scores must be finite, got {scores[at]} for user {rows[at]} and item {items[at]}.")
    counted = count_among(scores[: last - first], n_relevant, scores[last - first :], sizes)
    return counted._replace(order=counted.order + first)


def count_among(own: Floats, n_relevant: Ints, sampled: Floats, sizes: Ints) -> Counted:
    """Count the sampled scores above, and equal to, each relevant one of the same user.

    Parameters
    ----------
    own, sampled : arrays of float
        Scores of the relevant and of the sampled items, user by user.
    n_relevant, sizes : arrays of int, one per user
        How many of each there are.

    Examples
    --------
    >>> own, sampled = np.array([0.2, 0.7, 0.5]), np.array([0.5, 0.7, 0.9, 0.1])
    >>> found = count_among(own, np.array([2, 1]), sampled, np.array([2, 2]))
    >>> found.above.tolist(), found.tied.tolist(), found.order.tolist()
    ([0, 2, 1], [1, 0, 0], [1, 0, 2])
    """
    user = np.repeat(np.arange(n_relevant.size), n_relevant)
    order = np.lexsort((-own, user))
    scores, table = own[order], _table(sampled, sizes)
    above, tied = np.zeros_like(order), np.zeros_like(order)
    starts = np.cumsum(n_relevant) - n_relevant
    for place in range(int(n_relevant.max(initial=0))):
        rows = np.flatnonzero(n_relevant > place)
        at = starts[rows] + place
        others = table if rows.size == n_relevant.size else table[rows]
        above[at] = np.count_nonzero(others > scores[at, None], axis=1)
        tied[at] = np.count_nonzero(others == scores[at, None], axis=1)
    same = np.zeros(order.size, dtype=np.bool_)
    same[1:] = (scores[1:] == scores[:-1]) & (user[1:] == user[:-1])
    return Counted(above, tied, order, same, sizes)


def _table(sampled: Floats, sizes: Ints) -> Floats:
    """Return the scores with a row per user, filled up with what is above and equal to nothing."""
    width = int(sizes.max(initial=0))
    if np.all(sizes == width):
        return sampled.reshape(sizes.size, width)
    table = np.full((sizes.size, width), -np.inf, dtype=sampled.dtype)
    table[np.arange(width) < sizes[:, None]] = sampled
    return table


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
