"""Exact ranks of held-out items among all candidates of their user."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import scipy.sparse as sp
from tqdm import tqdm

from truerank.arrays import Ints
from truerank.counting.blocks import Lists
from truerank.counting.factors import count_factors
from truerank.counting.histories import count_histories
from truerank.counting.scores import count_scores
from truerank.data.interactions import Interactions
from truerank.data.splits import Split
from truerank.errors import InputError
from truerank.ranking.lists import read_lists
from truerank.ranking.ranks import Ranks
from truerank.scoring.scorers import Factors, Scorer, Similarity, as_scorer, score_pairs
from truerank.threads import available_threads

# explicit candidates are scored and sorted this many at a time, whole users together
_PAIRS = 1 << 22


def rank(
    scorer: Any,
    split: Split | None = None,
    *,
    train: Any = None,
    test: Any = None,
    candidates: Any = None,
    keep_train: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> Ranks:
    """Return the exact ranks of all held-out items among all candidates of their user.

    The candidates of a user are all items but the user's training items. The user's other held-out
    items are relevant, so they are never counted as above. The full score matrix is never held.

    Parameters
    ----------
    scorer : Factors, Similarity, ScoreMatrix, array, sparse matrix, function or model
        What gives the scores. A function takes an array of user numbers and returns their scores
        for all items; a model with `user_factors` and `item_factors` is taken as `Factors`.
    split : Split, optional
        Training and held-out interactions, instead of `train` and `test`.
    train, test : Interactions, sparse matrix, or list of item numbers per user
        Training and held-out items; user u is row u. Without `train` every item is a candidate.
    candidates : sparse matrix, or list of item numbers per user, optional
        The candidates of each user, to which the held-out items are added.
    keep_train : bool
        Whether training items are candidates too.
    threads : int, optional
        As many as there are processors by default. The result does not depend on it.
    progress : bool
        Whether to show a progress bar, on a terminal only.

    Returns
    -------
    Ranks
        One instance per user with a held-out item; `ids` are the user numbers, or the user's names
        if the interactions have them. A held-out item that is also a training item is a candidate.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.array([[0.9, 0.8, 0.7, 0.7], [0.1, 0.2, 0.3, 0.4]])
    >>> ranks = tr.rank(scores, train=[[0], []], test=[[2], [3, 0]])
    >>> ranks.above.tolist(), ranks.tied.tolist(), ranks.n_candidates.tolist()
    ([1, 0, 2], [1, 0, 0], [3, 4])
    """
    if split is not None:
        if train is not None or test is not None:
            raise InputError("give either a split, or `train` and `test`, not both.")
        train, test = split.train, split.test
    if test is None:
        raise InputError("`test`, the held-out items, is missing.")
    known, held = as_scorer(scorer), held_out(scorer, test)
    shape = {"n_users": held.n_users, "n_items": held.n_items}
    seen = None if train is None or keep_train else Interactions.of(train, "train", **shape)
    if candidates is not None:
        listed = Interactions.of(candidates, "candidates", **shape)
        return _rank_among(known, listed, seen, held, progress)
    return _rank_all(known, seen, held, threads or available_threads(), progress)


def held_out(scorer: Any, test: Any) -> Interactions:
    """Return the held-out items, checked against what the scorer knows of users and items."""
    if sp.issparse(test) or isinstance(test, Interactions):
        n_users, n_items = getattr(scorer, "n_users", None), getattr(scorer, "n_items", None)
    else:
        known = as_scorer(scorer)
        n_users = getattr(known, "n_users", None)
        n_items = getattr(known, "n_items", None) or np.shape(known.scores(np.zeros(1, dtype=np.int64)))[1]
    return Interactions.of(test, "test", n_users=n_users, n_items=n_items)


def _rank_all(scorer: Scorer, seen: Interactions | None, held: Interactions, threads: int, progress: bool) -> Ranks:
    n_items = held.n_items
    known = Interactions(sp.csr_array(held.matrix.shape, dtype=np.int8)) if seen is None else seen
    lists = Lists(known.indptr, known.items), Lists(held.indptr, held.items)
    n_relevant = np.diff(held.indptr)
    with tqdm(total=int((n_relevant > 0).sum()), desc="users", disable=None if progress else True, delay=0.5) as bar:
        if isinstance(scorer, Factors):
            factors = (scorer.user_factors, scorer.item_factors)
            counts = count_factors(*factors, *lists, item_bias=scorer.item_bias, threads=threads, progress=bar.update)
        elif isinstance(scorer, Similarity):
            matrices = (scorer.history, scorer.similarity)
            counts = count_histories(*matrices, *lists, threads=threads, progress=bar.update)
        else:
            counts = count_scores(scorer.scores, n_items, *lists, threads=threads, progress=bar.update)
    both = np.diff(np.concatenate([[0], np.cumsum(counts.seen)])[held.indptr])
    everyone = Ranks(
        above=counts.above,
        tied=counts.tied,
        n_candidates=n_items - np.diff(known.indptr) + both,
        indptr=held.indptr,
        ids=held.names,
        notes=_notes(n_relevant, both),
    )
    return everyone if np.all(n_relevant) else everyone[n_relevant > 0]


def _rank_among(
    scorer: Scorer, listed: Interactions, seen: Interactions | None, held: Interactions, progress: bool
) -> Ranks:
    """Rank among the given candidates, less the training items, and the held-out items."""
    allowed = listed.matrix.astype(np.bool_)
    if seen is not None:
        allowed = allowed - allowed.multiply(seen.matrix.astype(np.bool_))
        allowed.eliminate_zeros()
    allowed = sp.csr_array(allowed + held.matrix.astype(np.bool_))
    n_relevant = np.diff(held.indptr)
    users = np.flatnonzero(n_relevant)
    cuts = np.flatnonzero(np.diff(np.cumsum(np.diff(allowed.indptr)[users]) // _PAIRS)) + 1
    blocks = np.split(users, cuts)
    parts = [
        read_lists(_scored(scorer, allowed, block), _pairs(held.matrix, block), depth="all")
        for block in tqdm(blocks, desc="blocks", disable=None if progress else True, delay=0.5)
    ]
    ranks = Ranks.concatenate(parts)
    return Ranks(
        above=ranks.above,
        tied=ranks.tied,
        n_candidates=ranks.n_candidates,
        indptr=ranks.indptr,
        ids=held.names[users],
        notes=_notes(n_relevant, np.zeros_like(n_relevant)),
    )


def _pairs(matrix: sp.csr_array, users: Ints) -> pa.Table:
    rows = matrix[users]
    return pa.table({"user": np.repeat(users, np.diff(rows.indptr)), "item": rows.indices.astype(np.int64)})


def _scored(scorer: Scorer, allowed: sp.csr_array, users: Ints) -> pa.Table:
    pairs = _pairs(allowed, users)
    scores = score_pairs(scorer, pairs["user"].to_numpy(), pairs["item"].to_numpy())
    return pairs.append_column("score", pa.array(scores))


def _notes(n_relevant: Ints, both: Ints) -> list[str]:
    counts = {
        "users have no held-out item and are left out": int((n_relevant == 0).sum()),
        "held-out items are training items of their user too; they are ranked all the same": int(both.sum()),
    }
    return [f"{count} {text}" for text, count in counts.items() if count]
