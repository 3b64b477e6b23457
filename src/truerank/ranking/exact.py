"""`rank`: the rank of each held-out item among all candidates of its user."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Unpack, overload

import numpy as np

from truerank.core.checks import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Rng,
    check_pairs,
    check_whole,
    counted,
    to_numpy,
)
from truerank.core.csr import bounds, owners, places
from truerank.core.ranks import Ranks, cut_counts
from truerank.core.threads import Memory, bounded, check_threads, fitting, progress_bar
from truerank.data.candidates import Listed
from truerank.data.interactions import Interactions, PerUser
from truerank.data.splits import Split
from truerank.kernels.user_blocks import Counts, Lists, Progress
from truerank.ranking.held_out import HeldOut, RankOptions, Unknown, Users, is_candidate, seed_with
from truerank.scoring.conversion import Scoreable
from truerank.scoring.scorers import Scorer

if TYPE_CHECKING:
    from truerank.scoring.score_store import AnyStore

# explicit candidates are scored and sorted this many at a time, whole users together, or fewer if memory is short
_PAIRS = 1 << 22
_BYTES_PER_PAIR = 128


class ExactOptions(RankOptions, total=False):
    """The keyword arguments of `rank`."""

    depth: int | None
    checkpoint: str | Path | None


@overload
def rank(
    scorer: Mapping[str, Scoreable], split: Split | None = None, **options: Unpack[ExactOptions]
) -> dict[str, Ranks]: ...
@overload
def rank(scorer: Scoreable, split: Split | None = None, **options: Unpack[ExactOptions]) -> Ranks: ...
@bounded
def rank(
    scorer: Scoreable | Mapping[str, Scoreable],
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    candidates: Listed | None = None,
    exclude: Listed | None = None,
    unknown: Unknown = "refuse",
    keep_train: bool | None = None,
    users: Users | None = None,
    rng: Rng = None,
    depth: int | None = None,
    threads: int | None = None,
    progress: bool = False,
    store: AnyStore | None = None,
    checkpoint: str | Path | None = None,
    memory: Memory | None = None,
) -> Ranks | dict[str, Ranks]:
    """Return the exact ranks of all held-out items among all candidates of their user.

    The candidates of a user are all items except the user's training items, unless the split holds out
    repeats: then training items are candidates too, whether they recur or not. The user's other held-out
    items are relevant, so they are never counted as above. The full score matrix is never held in
    memory.

    Parameters
    ----------
    scorer : Scorer, array, sparse matrix, function or model; or a dict of name to these
        The source of the scores: one of truerank's scorers (`Factors`, `Similarity`, ...) or models; a
        matrix of scores; a model with a method ``scores(users)``, or with `user_factors` and
        `item_factors`; a function of an array of user numbers that returns their scores for all
        items, or of two arrays, users and items, that returns one score per pair. Several scorers given together
        rank the same users.
    split : Split, optional
        Training and held-out interactions, instead of `train` and `test`.
    train, test : Interactions, sparse matrix, or list of item numbers per user
        Training and held-out items; user u is row u. Without `train` every item is a candidate. A
        stored entry of `train` is a training item, whatever its value. Values of `test` are grades:
        items with a value above 0 are relevant; others are ordinary candidates.
    candidates : optional
        Which items are candidates; the user's held-out items always are. By name (by number where the data have no
        names): a list of items for everybody, a dict of user to items, or anything that `truerank.read_candidates`
        reads. If candidates have times, such as items in stock, those at the user's first held-out event count. By
        number: interactions, a sparse matrix, or a list of item numbers per user.
    exclude : optional
        Items that are not candidates, in the same forms: for everybody, for each user, or at certain times.
    unknown : {"refuse", "last", "drop"}
        What to do about users and items that a scorer with names does not know: refuse them; rank unknown items below
        all others, and held-out ones last, as if they were never recommended; or drop them, with their held-out events.
        Notes count them. Several scorers drop what any of them does not know, so that all rank the same items.
    keep_train : bool, optional
        Whether training items are candidates as well; by default, only if ``split.repeats`` is "hold out".
    users : int, or list of ids, optional
        How many users to draw at random, which gives unbiased means at less cost, or which users to rank. Each
        row equals that user's row in the full result. A note states how many were ranked.
    rng : int or numpy.random.Generator, optional
        Seed for the draw of users.
    depth : int, optional
        The depth to which ranks are needed: metrics with a cut-off up to it equal those of the full ranks to the last
        bit, and others are refused. With the factors of a trained model this takes a fraction of the time.
    threads : int, optional
        One per processor by default. The result does not depend on it. Functions and models of other libraries are
        called by the calling thread only; what they return is counted by the others.
    progress : bool
        Whether to show a progress bar, on a terminal only.
    store : path or ScoreStore, optional
        Keeps the score of every pair, so that this call and later ones ask for it only once; see
        `truerank.rank_sampled`. For functions of pairs and for slow models.
    checkpoint : path, optional
        A directory for partial results, saved for a part of the users at a time. After a crash or a killed process, the
        same call resumes there and returns what an uninterrupted call would have returned. A call with other scores,
        training or held-out items is refused; of a function only the code is compared. Delete the directory when the
        job is done.
    memory : str or int, optional
        Memory that the call may use besides the scorer and the data, such as "2GB" or a number of bytes; by default
        half of what the computer, or the container, has. It decides how many blocks of scores are in memory at the same
        time; the result does not depend on it.

    Returns
    -------
    Ranks, or dict of name to Ranks if a dict was given
        One instance per user with a relevant item; `ids` are the names of the users, or their
        numbers if the interactions have no names. `grades` are set unless all values of `test` are 1.
        A held-out item that is also a training item is always a candidate, and a note counts them.

    Notes
    -----
    If the scorer has names (`user_ids`, `item_ids`), its users and items are matched by name with
    those of the interactions, or with 0, 1, ... if these have no names. Items that only the scorer
    knows are not candidates, unless `candidates` names them, and a note counts them. `unknown` decides about items, and
    users with held-out items, that the scorer does not know.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.array([[0.9, 0.8, 0.7, 0.7], [0.1, 0.2, 0.3, 0.4]])
    >>> ranks = tr.rank(scores, train=[[0], []], test=[[2], [3, 0]])
    >>> ranks.above.tolist(), ranks.tied.tolist(), ranks.n_candidates.tolist()
    ([1, 0, 2], [1, 0, 0], [3, 4])
    >>> tr.rank(scores, train=[[0], []], test=[[2], [3, 0]], depth=1)
    Ranks(2 instances, 3 relevant items, cut at depth 1, no ties)
    """
    workers = check_threads(threads)
    if depth is not None:
        check_whole("depth", depth)
    scorers = scorer.values() if isinstance(scorer, Mapping) else [scorer]
    held = HeldOut.of(
        scorers,
        split,
        train=train,
        test=test,
        candidates=candidates,
        exclude=exclude,
        unknown=unknown,
        keep_train=keep_train,
        users=users,
        rng=seed_with(store, rng),
    )
    if checkpoint is not None and (store is not None or held.listed is not None):
        raise InputError("`checkpoint` is for ranks among all items without a `store`; with `candidates`, use `store`.")
    total = held.users.size * held.test.n_items if held.listed is None else int(held.n_candidates.sum())
    with held.paying(scorer, held.scorers, store, progress, total) as (ranked, shown):
        if held.listed is None:
            kept = ranked if checkpoint is None else _checkpointed(ranked, checkpoint)
            return held.finished([_rank_all(one, held, depth, workers, shown) for one in kept], scorer)
        found = [_rank_among(one, held, shown) for one in ranked]
        if depth is not None:
            found = [one.cut(depth, above=one.above, tied=one.tied) for one in found]
        return held.finished(found, scorer)


def _checkpointed(scorers: Sequence[Scorer], folder: str | Path) -> Sequence[Scorer]:
    from truerank.scoring.checkpoints import checkpointed  # files, and what writes them

    return checkpointed(scorers, folder)


def _rank_all(scorer: Scorer, held: HeldOut, depth: int | None, threads: int, progress: bool) -> Ranks:
    test = held.test
    training = held.excluded or Interactions.of([], "train", n_users=test.n_users, n_items=test.n_items)
    lists = Lists(training.indptr, training.items), Lists(test.indptr, test.items)
    with progress_bar("users", progress, total=held.users.size) as bar:
        counts = _counts(scorer, *lists, depth, threads, bar.update)
    both = np.diff(bounds(counts.seen)[test.indptr])
    n_candidates, above, tied = test.n_items - np.diff(training.indptr) + both, counts.above, counts.tied
    if depth is not None:
        above, tied = cut_counts(depth, above, tied, test.indptr, n_candidates)
    same = None if held.grades is None else same_scores(scorer, training, test, counts, threads, depth)
    notes = _notes(held, int(counts.seen.sum()) if held.left_out is None else held.n_trained)
    return held.ranks(counts.order, above, tied, n_candidates[held.users], same, depth=depth, notes=notes)


def _counts(
    scorer: Scorer, train: Lists, test: Lists, depth: int | None, threads: int, progress: Progress | None = None
) -> Counts:
    if depth is None:
        return scorer.count(train, test, threads=threads, progress=progress)
    return scorer.count_top(train, test, depth, threads=threads, progress=progress)


def _rank_among(scorer: Scorer, held: HeldOut, progress: bool) -> Ranks:
    """Rank among the given candidates, without the training items, and the held-out items."""
    test, marks = held.test, held.marks()
    users, relevant = owners(marks.indptr), marks.data & 2 > 0
    chosen = np.flatnonzero(is_candidate(marks) & (np.diff(test.indptr) > 0)[users])
    entry = np.cumsum(relevant) - 1  # of `test`
    parts = []
    for block in progress_bar("blocks", progress, _blocks(users, chosen)):
        user, item = users[block], marks.indices[block].astype(np.int64)
        grades = None if held.grades is None else held.grades[entry[block][relevant[block]]]
        scores = to_numpy(scorer.pairs(user, item), "scores")
        parts.append(rank_pairs(user, item, scores, relevant[block], grades))
    ranks, notes = Ranks.concatenate(parts), _notes(held, held.n_trained)
    items = None if ranks.items is None else test.item_names[ranks.items]
    return dataclasses.replace(ranks, ids=test.owners[held.users], items=items, notes=notes)


def _blocks(users: Ints, chosen: Ints) -> list[Ints]:
    """Divide the chosen pairs into blocks of about the same size, with all pairs of a user in one block."""
    new_user = np.flatnonzero(np.diff(users[chosen])) + 1
    return np.split(chosen, new_user[np.diff(new_user // fitting(_PAIRS, _BYTES_PER_PAIR), prepend=0) > 0])


def _notes(held: HeldOut, n_trained: int) -> tuple[str, ...]:
    """Return the notes on what is held out, on users left out, and on held-out items that are training items too."""
    counts = (
        (held.n_without, "user has no held-out item and is left out", "users have no held-out item and are left out"),
        (
            n_trained,
            "held-out item is also a training item of its user and is ranked",
            "held-out items are also training items of their user and are ranked",
        ),
    )
    return (*held.notes, *(counted(number, one, many) for number, one, many in counts if number))


class PairCounts(NamedTuple):
    """Per relevant pair: user by user in ascending order, and from the highest score down.

    `above` and `tied` count irrelevant pairs of the user with a higher and with an equal score, `order` is the
    row that each entry belongs to, and `same_score` whether it has the score of the relevant pair before it.
    """

    above: Ints
    tied: Ints
    order: Ints
    same_score: Bools


def count_pairs(users: Ints, scores: AnyArray, relevant: Bools) -> PairCounts:
    """Count the irrelevant pairs above, and tied with, each relevant one.

    Parameters
    ----------
    users, scores, relevant : arrays, one entry per pair
        In any order. Scores are finite.

    Examples
    --------
    >>> scores, relevant = np.array([0.5, 0.9, 0.5, 0.1]), np.array([True, False, False, True])
    >>> count_pairs(np.zeros(4, dtype=int), scores, relevant)[:2]
    (array([1, 2]), array([1, 0]))
    """
    order = np.lexsort((-scores, users))
    user, score, hit = users[order], scores[order], relevant[order]
    new_user = np.diff(user, prepend=-1) != 0
    new_score = new_user | (np.diff(score, prepend=0) != 0)
    hits = np.flatnonzero(hit)
    top = np.flatnonzero(new_user)[np.cumsum(new_user)[hits] - 1]
    starts, block = np.append(np.flatnonzero(new_score), user.size), np.cumsum(new_score)[hits]
    irrelevant = bounds(~hit)
    higher, end = irrelevant[starts[block - 1]], irrelevant[starts[block]]
    return PairCounts(higher - irrelevant[top], end - higher, order[hits], np.diff(block, prepend=0) == 0)


def rank_pairs(users: Ints, items: Ints, scores: AnyArray, relevant: Bools, grades: Floats | None = None) -> Ranks:
    """Return the ranks of relevant pairs among all pairs of their user, one instance per user in ascending order.

    Parameters
    ----------
    users, items : arrays of int, one entry per pair
    scores : array, one entry per pair
        Refused if one is not finite.
    relevant : array of bool, one entry per pair
    grades : array, one entry per relevant pair, optional

    Examples
    --------
    >>> users, items = np.array([3, 3, 3]), np.array([0, 1, 2])
    >>> rank_pairs(users, items, np.array([0.1, 0.3, 0.2]), np.array([True, False, False])).rank.tolist()
    [3]
    """
    check_pairs(scores, users, items)
    counts = count_pairs(users, scores, relevant)
    distinct, n_candidates = np.unique(users, return_counts=True)
    starts = np.searchsorted(users[counts.order], distinct)
    return Ranks(
        above=counts.above,
        tied=counts.tied,
        n_candidates=n_candidates,
        indptr=np.append(starts, counts.order.size),
        ids=distinct,
        grades=None if grades is None else grades[(np.cumsum(relevant) - 1)[counts.order]],
        same_score=None if grades is None else counts.same_score,
        items=items[counts.order],
    )


def same_scores(
    scorer: Scorer, train: Interactions, test: Interactions, counts: Counts, threads: int, depth: int | None = None
) -> Bools:
    """Return for each held-out item, in the order of the counts, whether it has the score of the one before it.

    With a depth, it is known only where fewer candidates are above; elsewhere it is False.

    Of a user's items at places 0, 1, 2, ..., those at even places are counted again, with those at
    odd places as irrelevant candidates. Before place j there are j / 2 odd ones. If fewer stand
    above the item at place j, it ties with the one before it; if more stand above it or tie with
    it, it ties with the one after it.

    Examples
    --------
    >>> from truerank.scoring.scorers import ScoreMatrix
    >>> scorer = ScoreMatrix([[0.5, 0.5, 0.2, 0.1]])
    >>> train, test = Interactions.of([[]], "train", n_items=4), Interactions.of([[0, 1, 2]], "test", n_items=4)
    >>> counts = scorer.count(Lists(train.indptr, train.items), Lists(test.indptr, test.items))
    >>> same_scores(scorer, train, test, counts, threads=1).tolist()
    [False, True, False]
    """
    users, place = test.users, places(test.indptr) - 1
    alike = np.zeros(place.size, dtype=np.bool_)
    alike[1:] = (counts.above[1:] == counts.above[:-1]) & (counts.tied[1:] == counts.tied[:-1]) & (place[1:] > 0)
    if depth is not None:
        alike &= counts.above < depth
    unclear = np.isin(users, users[alike & (counts.tied == 0)])
    if not unclear.any():
        return alike
    counted = unclear if depth is None else unclear & (counts.above < depth)
    again = np.flatnonzero(counted & (place % 2 == 0))
    enough = None if depth is None else depth + int(place.max())  # one more candidate for each item at an odd place
    more = _count_again(scorer, train, test, counts.order[again], threads, enough)
    higher, tied = more.above - counts.above[again], more.tied - counts.tied[again]
    before = place[again] // 2
    same = alike & ~unclear
    same[again] = higher < before
    after = again[higher + tied > before] + 1
    same[after] = True
    return same


def _count_again(
    scorer: Scorer, train: Interactions, test: Interactions, entries: Ints, threads: int, depth: int | None
) -> Counts:
    """Count with only some of the held-out items relevant; the others are candidates even if they are in `train`."""
    chosen = np.zeros(test.items.size, dtype=np.bool_)
    chosen[entries] = True
    part, others = test.select(chosen), train.select(~test.contains(train))
    return _counts(scorer, Lists(others.indptr, others.items), Lists(part.indptr, part.items), depth, threads)
