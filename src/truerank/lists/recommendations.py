"""Lists of recommended items: the best of each user, with names and scores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.arrays import AnyArray, Bools, Ints, require
from truerank.display.dataframes import Framed
from truerank.display.tables import fact_table
from truerank.errors import InputError
from truerank.formats.writing import COLUMN_ENDINGS, RUN_ENDINGS, write_tables

if TYPE_CHECKING:
    import pyarrow as pa

_SHOWN = 10  # users in a notebook
_WRITTEN = 1 << 16  # items at once


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
            raise InputError(
                f"`indptr` must divide {self.items.size} items into {self.user_ids.size} lists, got {self.indptr}."
            )
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
        return np.repeat(np.arange(len(self)), self.sizes)

    @property
    def ranks(self) -> Ints:
        """Place of each item in its list, from 1."""
        return np.arange(self.items.size) - np.repeat(self.indptr[:-1], self.sizes) + 1

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
        kept = self.ranks <= k
        indptr = np.concatenate([[0], np.cumsum(np.minimum(self.sizes, k))])
        scores = None if self.scores is None else self.scores[kept]
        return replace(self, items=self.items[kept], indptr=indptr, scores=scores, k=k)

    def keep(self, users: Bools) -> Recommendations:
        """Return only the lists of the users where the mask is True."""
        kept = users[self.users]
        return replace(
            self,
            items=self.items[kept],
            indptr=np.concatenate([[0], np.cumsum(self.sizes[users])]),
            user_ids=self.user_ids[users],
            scores=None if self.scores is None else self.scores[kept],
        )

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
        import pyarrow as pa

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
        listed = slice(indptr[0], indptr[-1])
        scores = None if self.scores is None else self.scores[listed]
        return replace(
            self, items=self.items[listed], indptr=indptr - indptr[0], user_ids=self.user_ids[start:stop], scores=scores
        )

    def _columns(self) -> dict[str, AnyArray]:
        """Return a row per listed item: user, item, rank and score."""
        columns = {"user": self.user_ids[self.users], "item": self.item_ids[self.items], "rank": self.ranks}
        return columns if self.scores is None else columns | {"score": self.scores}


ENDINGS: Sequence[str] = (*COLUMN_ENDINGS, *RUN_ENDINGS)
"""Endings of files of lists."""
