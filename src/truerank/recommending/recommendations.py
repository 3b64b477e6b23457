"""`Recommendations`: the best items of each user, from a scorer or from a file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple, cast, get_args

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from truerank.core.checks import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    check_choice,
    check_kind,
    check_pairs,
    check_whole,
    counted,
    require,
    shown,
    to_numpy,
)
from truerank.core.csr import bounds, entries_of, owners, places
from truerank.core.tables import Framed, fact_table
from truerank.core.threads import Memory, bounded, check_threads, progress_bar, require_memory
from truerank.data.candidates import Listed, widened
from truerank.data.interactions import Interactions, PerUser
from truerank.data.splits import Split
from truerank.formats.columns import LISTS, Column
from truerank.formats.ids import as_names, comparable, numbered
from truerank.formats.rows import Rows, load
from truerank.formats.sources import Source
from truerank.formats.text_files import Format, with_header
from truerank.formats.writing import COLUMN_ENDINGS, RUN_ENDINGS, write_tables
from truerank.kernels.scores import Best
from truerank.kernels.user_blocks import Lists
from truerank.ranking.held_out import HeldOut, Unknown
from truerank.ranking.truth import Numbered, first_repeat
from truerank.scoring.checkpoints import checkpointed
from truerank.scoring.conversion import Scoreable, as_scorer
from truerank.scoring.scorers import Scorer, measured

_SHOWN = 10  # users in a notebook
_WRITTEN = 1 << 16  # items at once
_BYTES_PER_ITEM = 45  # of a list with scores in float64, while blocks are joined


@dataclass(frozen=True, eq=False, repr=False)
class Recommendations(Framed):
    """Recommended items, best first, one list per user.

    Attributes
    ----------
    items : array of int
        Numbers of the listed items, user by user.
    indptr : array of int
        Where each list begins in `items`, and finally its length.
    user_ids : array
        Names, or numbers, of the users with a list.
    item_ids : array
        Names, or numbers, of all items that could have been recommended.
    k : int
        Where the lists were cut. Lists of users with fewer candidates are shorter.
    scores : array of float, optional
        Score of each listed item.
    notes : tuple of str
        What was left out.

    Notes
    -----
    Lists of different users join with ``+``. `to_frame` has a row per listed item: user, item, rank and score. Any
    dataframe library that takes Arrow data can read them, as in ``polars.DataFrame(lists)``, and so can
    `truerank.read_lists`.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> model = tr.ScoreMatrix(np.array([[3.0, 1.0, 2.0], [0.0, 5.0, 5.0]]), item_ids=["x", "y", "z"])
    >>> lists = tr.recommend(model, k=2)
    >>> lists
    Recommendations(2 users, up to 2 of 3 items each)
    >>> lists.of_user(1).tolist()
    ['y', 'z']
    >>> lists.to_frame("pyarrow").to_pydict()
    {'user': [0, 0, 1, 1], 'item': ['x', 'z', 'y', 'z'], 'rank': [1, 2, 1, 2], 'score': [3.0, 2.0, 5.0, 5.0]}
    """

    items: Ints
    indptr: Ints
    user_ids: AnyArray
    item_ids: AnyArray
    k: int
    scores: AnyArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.user_ids.size != len(self) or self.indptr[-1] != self.items.size or np.any(self.sizes < 0):
            expected = f"divide {self.items.size} items into {self.user_ids.size} lists"
            raise InputError(f"`indptr` must {expected}, got {self.indptr}.")
        require((self.items >= 0) & (self.items < self.n_items), "items", f"lie in 0..{self.n_items - 1}", self.items)

    def __len__(self) -> int:
        return self.indptr.size - 1

    def __repr__(self) -> str:
        return f"Recommendations({len(self)} users, up to {self.k} of {self.n_items} items each)"

    def _repr_html_(self) -> str:
        """Return what notebooks show: the lists of the first users."""
        shown = {str(user): ", ".join(map(str, self.of_user(user))) for user in self.user_ids[:_SHOWN].tolist()}
        return fact_table(repr(self), shown, self.notes).to_html()

    @property
    def n_items(self) -> int:
        """Items that could have been recommended."""
        return self.item_ids.size

    @property
    def sizes(self) -> Ints:
        """Length of each list."""
        return np.diff(self.indptr)

    @property
    def users(self) -> Ints:
        """Which list each item is in."""
        return owners(self.indptr)

    @property
    def ranks(self) -> Ints:
        """Rank of each item in its list, from 1."""
        return places(self.indptr)

    def of_user(self, user: Any) -> AnyArray:
        """Return the names of the items recommended to a user, best first."""
        found = np.flatnonzero(self.user_ids == user)
        if not found.size:
            raise InputError(f"user {user!r} has no list.")
        return self.item_ids[self.items[self.indptr[found[0]] : self.indptr[found[0] + 1]]]

    def cut(self, k: int) -> Recommendations:
        """Return only the first k items of each list."""
        if k > self.k:
            raise InputError(f"these lists are cut at {self.k} items, so their first {k} are not known.")
        return replace(self._taken(self.ranks <= k, bounds(np.minimum(self.sizes, k)), self.user_ids), k=k)

    def keep(self, users: Bools) -> Recommendations:
        """Return only the lists of the users where the mask is True."""
        return self._taken(users[self.users], bounds(self.sizes[users]), self.user_ids[users])

    def _taken(self, entries: Bools | slice, indptr: Ints, user_ids: AnyArray) -> Recommendations:
        """Return only some of the listed items, with their scores, in other lists."""
        scores = None if self.scores is None else self.scores[entries]
        return replace(self, items=self.items[entries], indptr=indptr, user_ids=user_ids, scores=scores)

    def counts(self, k: int | None = None) -> Ints:
        """Return how many lists each item is in, among the first k; counts of different users add up."""
        listed = self.items if k is None else self.cut(k).items
        return np.bincount(listed, minlength=self.n_items).astype(np.int64)

    def __add__(self, other: Recommendations) -> Recommendations:
        """Return the lists of both, for different users."""
        if self.k != other.k or not np.array_equal(self.item_ids, other.item_ids):
            raise InputError("only lists of the same length k, of the same items, can be joined.")
        if np.any(twice := np.isin(other.user_ids, self.user_ids)):
            raise InputError(f"only lists of different users can be joined, got two for {other.user_ids[twice][0]!r}.")
        alike = self.scores is not None and other.scores is not None
        return replace(
            self,
            items=np.concatenate([self.items, other.items]),
            indptr=np.concatenate([self.indptr, self.indptr[-1] + other.indptr[1:]]),
            user_ids=np.concatenate([self.user_ids, other.user_ids]),
            scores=np.concatenate([self.scores, other.scores]) if alike else None,
            notes=tuple(dict.fromkeys((*self.notes, *other.notes))),
        )

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self.to_frame("pyarrow").__arrow_c_stream__(requested_schema)

    def write(self, path: str | Path) -> None:
        """Write to a file, whose ending determines the format.

        `.csv`, `.tsv`, `.jsonl` and `.parquet` have the columns of `to_frame`; `.trec` and `.run` are TREC runs. All of
        them can be read by `truerank.read_lists` and `truerank.read_recommendations`.

        Examples
        --------
        >>> import pathlib, tempfile, numpy as np, truerank as tr
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "lists.trec"
        >>> tr.recommend(np.array([[3.0, 1.0, 2.0]]), k=2).write(path)
        >>> print(path.read_text(), end="")
        0 Q0 0 1 3 truerank
        0 Q0 2 2 2 truerank
        """
        write_tables(path, self._tables())

    def _tables(self) -> Iterator[pa.Table]:
        """Yield the rows of one block of users after another: together they may not fit into memory."""
        users, items = (pa.array(ids, from_pandas=True) for ids in (self.user_ids, self.item_ids))
        step = max(_WRITTEN // self.sizes.max(initial=1), 1)
        for start in range(0, max(len(self), 1), step):
            part = self._part(start, start + step)
            names = users.slice(start, step).take(pa.array(part.users)), items.take(pa.array(part.items))
            table = pa.table({"user": names[0], "item": names[1], "rank": part.ranks})
            scores = None if part.scores is None else pa.array(part.scores, from_pandas=True)
            yield table if scores is None else table.append_column("score", scores)

    def _part(self, start: int, stop: int) -> Recommendations:
        """Return the lists of some consecutive users."""
        indptr = self.indptr[start : stop + 1]
        return self._taken(slice(indptr[0], indptr[-1]), indptr - indptr[0], self.user_ids[start:stop])

    def _columns(self) -> dict[str, AnyArray]:
        """Return a row per listed item: user, item, rank and score."""
        columns = {"user": self.user_ids[self.users], "item": self.item_ids[self.items], "rank": self.ranks}
        return columns if self.scores is None else columns | {"score": self.scores}


ENDINGS: Sequence[str] = (*COLUMN_ENDINGS, *RUN_ENDINGS)
"""Endings of files of lists."""


NO_CATALOGUE = "the catalogue is not given (`train`), so it is taken to be the listed items"


@bounded
def read_recommendations(
    source: Source,
    train: Interactions | None = None,
    *,
    k: int | None = None,
    user: Column = None,
    item: Column = None,
    score: Column = None,
    rank: Column = None,
    header: bool | None = None,
    format: Format | None = None,  # noqa: A002
    memory: Memory | None = None,
) -> Recommendations:
    """Read lists of recommended items, for metrics of the lists themselves.

    For metrics that compare them with relevant items, `truerank.read_lists` is enough.

    Parameters
    ----------
    source : path, dataframe, dict or list
        Like the `run` of `truerank.read_lists`.
    train : Interactions, optional
        Its items are the catalogue: those that could have been recommended. By default, the listed items.
    k : int, optional
        Where the lists were cut; the longest list by default.
    user, item, score, rank, header, format, memory
        As in `truerank.read_lists`.

    Returns
    -------
    Recommendations
        Users in the order in which they first occur. Of equal scores, the row further up comes first.

    Examples
    --------
    >>> import truerank as tr
    >>> train = tr.read_interactions({"ann": ["a", "b"], "bob": ["c"]})
    >>> lists = tr.read_recommendations({"ann": ["c"], "bob": ["b", "a"]}, train)
    >>> lists.counts(1).tolist()
    [0, 1, 1]
    """
    if train is not None:
        check_kind("train", train, Interactions)
    if k is not None:
        check_whole("k", k)
    rows = load(source, LISTS, {"user": user, "item": item, "score": score, "rank": rank}, with_header(format, header))
    user_ids, users = _numbered(rows, "user", None)
    item_ids, items = _numbered(rows, "item", None if train is None else train.item_names)
    scores = rows.numbers("score") if "score" in rows else None
    order = _order(users, scores, rows)
    sizes = np.bincount(users, minlength=user_ids.size)
    listed, indptr = items[order], bounds(sizes)
    if first_repeat(Numbered(listed, 0, item_ids.size), indptr) is not None:
        raise _repeats_error(users, items, item_ids.size, rows)
    longest = int(sizes.max(initial=1))
    if k is not None and k < longest:
        raise InputError(f"`k` must be at least the length of the longest list ({longest}), got {k}.")
    return Recommendations(
        items=listed.astype(np.int64),
        indptr=indptr,
        user_ids=user_ids,
        item_ids=item_ids,
        k=k or longest,
        scores=None if scores is None else scores[order],
        notes=rows.notes if train is not None else (*rows.notes, NO_CATALOGUE),
    )


def _numbered(rows: Rows, role: str, names: AnyArray | None) -> tuple[AnyArray, AnyArray]:
    """Return the names of users or items, which may be given, and for each row the number of its user or item."""
    distinct, (codes,) = numbered(rows.table[role])
    if names is None:
        return as_names(distinct, role), codes
    listed, known = comparable(pa.chunked_array([distinct]), pa.chunked_array([pa.array(names)]))
    numbers = pa.compute.index_in(listed, value_set=known.combine_chunks()).combine_chunks()
    if numbers.null_count:
        row = int(np.argmax(numbers.is_null().to_numpy(zero_copy_only=False)[codes]))
        raise rows.error(row, f"{role} {shown(rows.table[role][row].as_py())} is not in `train`")
    return names, numbers.to_numpy()[codes]


def _order(users: AnyArray, scores: Floats | None, rows: Rows) -> Ints | slice:
    """Return the rows user by user, best first."""
    if scores is None and "rank" in rows:
        scores = rows.numbers("rank")
        np.negative(scores, out=scores)
    falls = users[1:] < users[:-1]
    if scores is not None:
        falls |= (scores[1:] > scores[:-1]) & (users[1:] == users[:-1])
    if not falls.any():
        return slice(None)
    return np.argsort(users, kind="stable") if scores is None else np.lexsort((-scores, users))


def _repeats_error(users: AnyArray, items: AnyArray, n_items: int, rows: Rows) -> InputError:
    """Return the error that names the first row with an item that is in its list already."""
    first = np.unique(users.astype(np.int64) * n_items + items, return_index=True)[1]
    row = int(np.setdiff1d(np.arange(users.size), first)[0])
    user, item = (shown(rows.table[role][row].as_py()) for role in ("user", "item"))
    return rows.error(row, f"item {item} of user {user} is in the list more than once")


@bounded
def recommend(
    scorer: Scoreable,
    split: Split | None = None,
    *,
    k: int = 10,
    train: PerUser | None = None,
    users: Sequence[Any] | AnyArray | None = None,
    candidates: Listed | None = None,
    exclude: Listed | None = None,
    unknown: Unknown = "refuse",
    keep_train: bool = False,
    threads: int | None = None,
    progress: bool = False,
    checkpoint: str | Path | None = None,
    memory: Memory | None = None,
) -> Recommendations:
    """Return the k items with the highest scores of each user, without the user's training items.

    Items with equal scores are in the order of their numbers, that is, of the columns of the data: a fixed rule, so
    the result never depends on threads, blocks or the processor. The full score matrix is never held in memory.

    Parameters
    ----------
    scorer : Scorer, array, sparse matrix, function or model
        The source of the scores, as in `truerank.rank`.
    split : Split, optional
        Its training items are left out of the lists; its held-out part is not used.
    k : int
        Items per user; users with fewer candidates get all of them.
    train : Interactions, sparse matrix, or list of item numbers per user, optional
        Training items instead of a split. With neither, nothing is left out.
    users : list of ids, optional
        Whom to recommend to; all users by default.
    candidates, exclude : optional
        Which items may be recommended, and which may not, in the forms of `truerank.rank`. If candidates have times,
        choose one time: ``stock.at("2024-05-01")``.
    unknown : {"refuse", "last", "drop"}
        What to do about items that a scorer with names does not know: refuse them, list them after all others, or never
        list them. A note counts them.
    keep_train : bool
        Whether training items may be recommended as well.
    threads : int, optional
        One per processor by default. The result does not depend on it.
    progress : bool
        Whether to show a progress bar, on a terminal only.
    checkpoint : path, optional
        A directory for partial results, so that the same call resumes there after it was killed; see `truerank.rank`.
    memory : str or int, optional
        Memory that the call may use, as in `truerank.rank`; lists that need more are refused.

    Returns
    -------
    Recommendations
        With the names in the data, or else those of the scorer. Users are in the order of the data.

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
    check_whole("k", k)
    check_choice("unknown", unknown, get_args(Unknown))
    model = as_scorer(scorer, _training(split, train))
    data = _catalogue(model, _training(split, train))
    chosen, notes = _chosen(data, model, users)
    sized = _sized(model, data, chosen, train)
    if sized.n_items != data.n_items and sized.item_ids is None:
        data = widened(data, np.arange(data.n_items, cast("int", sized.n_items)))
    offer = _Offer.of(sized, data, chosen, candidates, exclude, unknown, keep_train)
    most = min(int(k), offer.excluded.n_items)
    require_memory(_BYTES_PER_ITEM * most * chosen.size, f"a list of {most} items for each of {chosen.size:,} users")
    (aligned,) = checkpointed([offer.scorer], checkpoint)
    with progress_bar("users", progress, total=chosen.size) as bar:
        if offer.listed is None:
            excluded = Lists(offer.excluded.indptr, offer.excluded.items)
            best = aligned.best(chosen, excluded, most, threads=workers, progress=bar.update)
        else:
            best = _best_among(aligned, offer.listed, chosen, int(k))
    return _joined(best, int(k), data.names[chosen], offer.excluded.item_names, (*notes, *offer.notes))


class _Offer(NamedTuple):
    """The items that may be recommended, and a scorer with the same numbering."""

    scorer: Scorer
    excluded: Interactions
    listed: Interactions | None
    notes: tuple[str, ...]

    @classmethod
    def of(
        cls,
        model: Scorer,
        data: Interactions,
        users: Ints,
        candidates: Listed | None,
        exclude: Listed | None,
        unknown: Unknown,
        keep_train: bool,
    ) -> _Offer:
        """Bring the arguments of `recommend` together, as `HeldOut.of` does, with nothing held out."""
        plain = HeldOut((model,), data, data.select(np.zeros(data.items.size, np.bool_)), None, keep_train=keep_train)
        held = plain.limited(candidates, exclude, unknown).matched(unknown, users)
        nothing = held.test
        listed, excluded = held.listed, nothing if held.excluded is None else held.excluded
        if listed is not None:
            listed = listed.select(~excluded.contains(listed))
        (scorer,) = held.with_unknown(held.scorers)
        notes = (*held.notes, *held.unknown_notes(0))
        return cls(scorer, replace(excluded, item_ids=nothing.item_names), listed, notes)


def _best_among(scorer: Scorer, listed: Interactions, users: Ints, k: int) -> Best:
    """Return the k best of the listed items of each user."""
    at, indptr = entries_of(listed.indptr, users)
    rows, items = owners(indptr), listed.items[at].astype(np.int64)
    scores = to_numpy(scorer.pairs(users[rows], items), "scores")
    check_pairs(scores, users[rows], items)
    order = np.lexsort((items, -scores, rows))
    top = order[places(indptr) <= k]
    found = np.minimum(np.diff(indptr), k)
    table, own = np.zeros((users.size, k), np.int32), np.zeros((users.size, k), scores.dtype)
    inside = np.arange(k) < found[:, None]
    table[inside], own[inside] = items[top], scores[top]
    return Best(table, own, found)


def _training(split: Split | None, train: PerUser | None) -> PerUser | None:
    if split is None:
        return train
    if train is not None:
        raise InputError("give either a split or `train`, not both.")
    if not isinstance(split, Split):
        raise InputError(f"`split` must be a Split, got {type(split).__name__}; give training items as `train`.")
    return split.train


def _catalogue(model: Scorer, train: PerUser | None) -> Interactions:
    """Return the training items, or none, with the users and items of the lists."""
    if train is not None:
        n_users = model.n_users if model.user_ids is None else None
        n_items = model.n_items if model.item_ids is None else None
        return Interactions.of(train, "train", n_users=n_users, n_items=n_items)
    if model.n_users is None or model.n_items is None:
        raise InputError("`train` must be given if the scorer does not state its numbers of users and items.")
    empty = sp.csr_array((model.n_users, model.n_items), dtype=np.float32)
    return Interactions(empty, model.user_ids, model.item_ids)


def _sized(model: Scorer, data: Interactions, chosen: Ints, train: PerUser | None) -> Scorer:
    """Return the scorer with its number of items, which plain lists do not state."""
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
        indptr=bounds(best.found),
        user_ids=user_ids,
        item_ids=item_ids,
        k=k,
        scores=best.scores[listed],
        notes=(*notes, *((counted(short, *words),) if short else ())),
    )
