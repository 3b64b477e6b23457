"""The best items of each user by any scorer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from truerank.arrays import AnyArray, Ints
from truerank.counting.best import Best
from truerank.counting.blocks import Lists
from truerank.data.interactions import Interactions, PerUser
from truerank.data.splits import Split
from truerank.errors import InputError
from truerank.lists.recommendations import Recommendations
from truerank.notes import counted
from truerank.scoring.conversion import Scoreable, as_scorer
from truerank.scoring.scorer import Scorer
from truerank.scoring.widths import measured
from truerank.threads import check_threads


def recommend(
    scorer: Scoreable,
    split: Split | None = None,
    *,
    k: int = 10,
    train: PerUser | None = None,
    users: Sequence[Any] | AnyArray | None = None,
    keep_train: bool = False,
    threads: int | None = None,
    progress: bool = False,
) -> Recommendations:
    """Return the k items with the highest scores of each user, without the user's training items.

    Items with equal scores are in the order of their numbers, that is, of the columns of the data: a fixed rule, so
    the result never depends on threads, blocks or the processor. The full score matrix is never held in memory.

    Parameters
    ----------
    scorer : Scorer, array, sparse matrix, function or model
        The source of the scores, as in `truerank.rank`.
    split : Split, optional
        Its training part is left out of the lists; its held-out part is not looked at.
    k : int
        Items per user; users with fewer candidates get all of them.
    train : Interactions, sparse matrix, or list of item numbers per user, optional
        Training items instead of a split. With neither, nothing is left out.
    users : list of ids, optional
        Whom to recommend to; all users by default.
    keep_train : bool
        Whether training items may be recommended as well.
    threads : int, optional
        One per processor by default. The result does not depend on it.
    progress : bool
        Whether to show a progress bar, on a terminal only.

    Returns
    -------
    Recommendations
        With the names of the data, or else of the scorer. Users are in the order of the data.

    Notes
    -----
    Names are matched as in `truerank.rank`. Users whom a scorer with names does not know get no list, which a note
    counts, unless they are chosen by `users`.

    Examples
    --------
    >>> import truerank as tr
    >>> data = tr.read_interactions({"ann": ["a", "b"], "bob": ["b", "c"], "eve": ["b"]})
    >>> lists = tr.recommend(tr.Popularity().fit(data), train=data, k=2)
    >>> lists.of_user("eve").tolist()
    ['a', 'c']
    """
    workers = check_threads(threads)
    _check_k(k)
    model = as_scorer(scorer, _training(split, train))
    data = _catalogue(model, _training(split, train))
    chosen, notes = _chosen(data, model, users)
    aligned = _sized(model, data, chosen, train).aligned(data.names, data.item_names, chosen)
    n_items = cast("int", aligned.n_items)
    excluded = Lists(np.zeros_like(data.indptr), data.items[:0]) if keep_train else Lists(data.indptr, data.items)
    with tqdm(total=chosen.size, desc="users", disable=None if progress else True, delay=0.5) as bar:
        best = aligned.best(chosen, excluded, min(int(k), n_items), threads=workers, progress=bar.update)
    item_names = data.item_names if n_items == data.n_items else np.arange(n_items)
    return _joined(best, int(k), data.names[chosen], item_names, notes)


def _check_k(k: Any) -> None:
    if isinstance(k, bool) or not isinstance(k, int | np.integer) or k < 1:
        raise InputError(f"`k` must be a whole number from 1, got {k!r}.")


def _training(split: Split | None, train: PerUser | None) -> PerUser | None:
    if split is None:
        return train
    if train is not None:
        raise InputError("give either a split or `train`, not both.")
    if not isinstance(split, Split):
        raise InputError(f"`split` must be a Split, got {type(split).__name__}; give training items as `train`.")
    return split.train


def _catalogue(model: Scorer, train: PerUser | None) -> Interactions:
    """Return the training items, or none, with the users and items that lists are about."""
    if train is not None:
        n_users = model.n_users if model.user_ids is None else None
        n_items = model.n_items if model.item_ids is None else None
        return Interactions.of(train, "train", n_users=n_users, n_items=n_items)
    if model.n_users is None or model.n_items is None:
        raise InputError("`train` must be given if the scorer does not state its numbers of users and items.")
    empty = sp.csr_array((model.n_users, model.n_items), dtype=np.float32)
    return Interactions(empty, model.user_ids, model.item_ids)


def _sized(model: Scorer, data: Interactions, chosen: Ints, train: PerUser | None) -> Scorer:
    """Return the scorer with its number of items; plain lists do not tell how many there are."""
    if model.n_items is not None:
        return model
    told = train is None or isinstance(train, Interactions) or sp.issparse(train)
    return model.sized(data.n_items) if told else measured(model, chosen, data.n_items)


def _chosen(data: Interactions, model: Scorer, users: Sequence[Any] | AnyArray | None) -> tuple[Ints, tuple[str, ...]]:
    """Return the rows of the users to recommend to, and a note on others."""
    if users is not None:
        return _rows(data.names, np.asarray(users)), ()
    known = np.ones(data.n_users, np.bool_) if model.user_ids is None else np.isin(data.names, model.user_ids)
    if not known.any():
        raise InputError("there are no users to recommend to: the scorer knows none of those in the data.")
    words = "user is not known to the scorer and gets no list", "users are not known to the scorer and get no lists"
    return np.flatnonzero(known), () if known.all() else (counted(int((~known).sum()), *words),)


def _rows(names: AnyArray, users: AnyArray) -> Ints:
    if users.ndim != 1 or users.size == 0:
        raise InputError("`users` must be a list of ids, at least one.")
    if np.any(unknown := ~np.isin(users, names)):
        raise InputError(f"`users` must be in the data, but {users[unknown].tolist()[0]!r} is not.")
    return np.flatnonzero(np.isin(names, users))


def _joined(best: Best, k: int, user_ids: AnyArray, item_ids: AnyArray, notes: tuple[str, ...]) -> Recommendations:
    listed = np.arange(best.items.shape[1]) < best.found[:, None]
    short = int((best.found < k).sum())
    words = f"user has fewer than {k} candidates", f"users have fewer than {k} candidates"
    return Recommendations(
        items=best.items[listed].astype(np.int64),
        indptr=np.concatenate([[0], np.cumsum(best.found)]),
        user_ids=user_ids,
        item_ids=item_ids,
        k=k,
        scores=best.scores[listed],
        notes=(*notes, *((counted(short, *words),) if short else ())),
    )
