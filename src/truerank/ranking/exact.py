"""Exact ranks of held-out items among all candidates of their user."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from truerank.arrays import Ints
from truerank.counting.blocks import Lists
from truerank.data.interactions import Interactions, PerUser, check_same_names
from truerank.data.splits import Split
from truerank.notes import counted
from truerank.ranking.chosen_users import Users
from truerank.ranking.held_out import HeldOut
from truerank.ranking.pairs import rank_pairs
from truerank.ranking.ranks import Ranks
from truerank.ranking.score_ties import same_scores
from truerank.sampling.designs import Rng
from truerank.scoring.conversion import Scoreable
from truerank.scoring.numbers import to_numpy
from truerank.threads import check_threads

# explicit candidates are scored and sorted this many at a time, whole users together
_PAIRS = 1 << 22


def rank(
    scorer: Scoreable,
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    candidates: PerUser | None = None,
    keep_train: bool | None = None,
    users: Users | None = None,
    rng: Rng = None,
    threads: int | None = None,
    progress: bool = False,
) -> Ranks:
    """Return the exact ranks of all held-out items among all candidates of their user.

    The candidates of a user are all items except the user's training items, unless the split holds out
    repeats: then known items that recur compete with those that do not. The user's other held-out
    items are relevant, so they are never counted as above. The full score matrix is never held in
    memory.

    Parameters
    ----------
    scorer : Scorer, array, sparse matrix, function or model
        The source of the scores: one of truerank's scorers (`Factors`, `Similarity`, ...) or models; a
        matrix of scores; a model with a method ``scores(users)``, or with `user_factors` and
        `item_factors`; a function of an array of user numbers that returns their scores for all
        items, or of two arrays, users and items, that returns one score per pair.
    split : Split, optional
        Training and held-out interactions, instead of `train` and `test`.
    train, test : Interactions, sparse matrix, or list of item numbers per user
        Training and held-out items; user u is row u. Without `train` every item is a candidate. A
        stored entry of `train` is a training item, whatever its value. Values of `test` are grades:
        items with a value above 0 are relevant; others are ordinary candidates.
    candidates : Interactions, sparse matrix, or list of item numbers per user, optional
        The candidates of each user, to which the held-out items are added.
    keep_train : bool, optional
        Whether training items are candidates as well; by default, only if ``split.repeats`` is "hold out".
    users : int, or list of ids, optional
        How many users to draw at random, which gives unbiased means at less cost, or which users to rank. Each
        row equals that user's row in the full result. A note states how many were ranked.
    rng : int or numpy.random.Generator, optional
        Seed for the draw of users.
    threads : int, optional
        One per processor by default. The result does not depend on it. Functions and models of other libraries are
        called by the calling thread only; what they return is counted by the others.
    progress : bool
        Whether to show a progress bar, on a terminal only.

    Returns
    -------
    Ranks
        One instance per user with a relevant item; `ids` are the names of the users, or their
        numbers if the interactions have no names. `grades` are set unless all values of `test` are 1.
        A held-out item that is also a training item is always a candidate, and a note counts them.

    Notes
    -----
    If the scorer has names (`user_ids`, `item_ids`), its users and items are matched by them with
    those of the interactions, or with 0, 1, ... where these have none. Items that only the scorer
    knows are not candidates, and a note counts them; items, and users with held-out items, that it
    does not know are refused.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.array([[0.9, 0.8, 0.7, 0.7], [0.1, 0.2, 0.3, 0.4]])
    >>> ranks = tr.rank(scores, train=[[0], []], test=[[2], [3, 0]])
    >>> ranks.above.tolist(), ranks.tied.tolist(), ranks.n_candidates.tolist()
    ([1, 0, 2], [1, 0, 0], [3, 4])
    """
    workers = check_threads(threads)
    held = HeldOut.of([scorer], split, train=train, test=test, keep_train=keep_train, users=users, rng=rng)
    if candidates is None:
        return held.noted([_rank_all(held, workers, progress)])[0]
    listed = Interactions.of(candidates, "candidates", n_users=held.test.n_users, n_items=held.test.n_items)
    check_same_names(listed, held.test, "`candidates` and `test`")
    return _rank_among(held, listed, progress)


def _rank_all(held: HeldOut, threads: int, progress: bool) -> Ranks:
    (scorer,), test = held.scorers, held.test
    training = held.excluded or Interactions(sp.csr_array(test.shape, dtype=np.float32))
    lists = Lists(training.indptr, training.items), Lists(test.indptr, test.items)
    n_relevant = np.diff(test.indptr)
    with tqdm(total=held.users.size, desc="users", disable=None if progress else True, delay=0.5) as bar:
        counts = scorer.count(*lists, threads=threads, progress=bar.update)
    both = np.diff(np.concatenate([[0], np.cumsum(counts.seen)])[test.indptr])
    everyone = Ranks(
        above=counts.above,
        tied=counts.tied,
        n_candidates=test.n_items - np.diff(training.indptr) + both,
        indptr=test.indptr,
        ids=test.names,
        grades=None if held.grades is None else held.grades[counts.order],
        same_score=None if held.grades is None else same_scores(scorer, training, test, counts, threads),
        items=test.item_names[test.items[counts.order]],
        notes=(*held.notes, *_notes(held.n_without, both)),
    )
    return everyone if np.all(n_relevant) else everyone[n_relevant > 0]


def _rank_among(held: HeldOut, listed: Interactions, progress: bool) -> Ranks:
    """Rank among the given candidates, without the training items, and the held-out items."""
    (scorer,), test, n_relevant = held.scorers, held.test, np.diff(held.test.indptr)
    sets = _marked(listed, 1) + _marked(test, 2)
    sets = sets if held.excluded is None else sets + _marked(held.excluded, 4)
    users, relevant = np.repeat(np.arange(test.n_users), np.diff(sets.indptr)), sets.data & 2 > 0
    chosen = np.flatnonzero((relevant | (sets.data == 1)) & (n_relevant > 0)[users])
    entry = np.cumsum(relevant) - 1  # of `test`
    parts = []
    for block in tqdm(_blocks(users, chosen), desc="blocks", disable=None if progress else True, delay=0.5):
        user, item = users[block], sets.indices[block].astype(np.int64)
        grades = None if held.grades is None else held.grades[entry[block][relevant[block]]]
        scores = to_numpy(scorer.pairs(user, item), "scores")
        parts.append(rank_pairs(user, item, scores, relevant[block], grades))
    both = np.bincount(users[sets.data >= 6], minlength=test.n_users)
    notes = (*held.notes, *_notes(held.n_without, both))
    return held.named(Ranks.concatenate(parts), notes=notes)


def _marked(part: Interactions, mark: int) -> sp.csr_array:
    """Return a matrix with this mark at each stored entry, so that a sum of several shows which of them store it."""
    return sp.csr_array((np.full(part.items.size, mark, np.int8), part.items, part.indptr), shape=part.shape)


def _blocks(users: Ints, chosen: Ints) -> list[Ints]:
    """Divide the chosen pairs into blocks of about the same size, with all pairs of a user in one block."""
    own = users[chosen]
    new_user = np.flatnonzero(np.diff(own)) + 1
    return np.split(chosen, new_user[np.diff(new_user // _PAIRS, prepend=0) > 0])


def _notes(without: int, both: Ints) -> list[str]:
    shared = int(both.sum())
    notes = [
        (without, "user has no held-out item and is left out", "users have no held-out item and are left out"),
        (
            shared,
            "held-out item is also a training item of its user and is ranked",
            "held-out items are also training items of their user and are ranked",
        ),
    ]
    return [counted(number, one, many) for number, one, many in notes if number]
