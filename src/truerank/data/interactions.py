"""User-item interactions: events, or a sparse matrix of them, with the names of the users and items."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.core import csr, matrices, tables
from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, as_ids, counted, is_sparse, refuse_masked

if TYPE_CHECKING:
    import pyarrow as pa
    import scipy.sparse as sp

ALIGNED = ("times", "ratings", "positions")
"""Attributes with one entry per event."""


@dataclass(frozen=True, eq=False)
class Interactions:
    """User-item interactions, with the names of the users and items.

    Attributes
    ----------
    events : scipy.sparse.csr_array of shape (n_users, n_items)
        A stored entry is an event, whatever its value; the items of each user ascend. With times,
        ratings or positions a pair of user and item may be stored several times, once per event, as in a log
        that was read; `merged` keeps the last event of each. Without them a matrix in another order, or with
        repeated pairs, is sorted, and the values of repeated pairs are added up. Interactions that were
        read or split have float values, 1 unless they are weights, so that ``matrix.T @ matrix`` cannot overflow.
    user_ids, item_ids : arrays, optional
        Names of the rows and of the columns.
    times, ratings : arrays, optional
        Time (whole numbers, floats or datetime64) and rating of each event, in the order of the
        stored entries.
    positions : array of int, optional
        The row of the source, from 0, that contains each event.
    session_users : array, optional
        Where rows are sessions, the user of each. Ranks then have users as their ids, by which errors are clustered.
    notes : tuple of str
        What was dropped or merged.

    Notes
    -----
    The matrix is a `csr_array`, not a `csr_matrix`, as SciPy recommends for new code: ``*`` is
    elementwise, and sums are one-dimensional arrays. Libraries that check for the older class, such
    as implicit, warn about it; ``scipy.sparse.csr_matrix(data.matrix)`` converts it without copying
    the entries.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> Interactions(sp.csr_array([[1, 0], [1, 1]]), user_ids=["ann", "bob"])
    Interactions(2 users, 2 items, 3 events)
    """

    events: sp.csr_array
    user_ids: AnyArray | None = None
    item_ids: AnyArray | None = None
    times: AnyArray | None = None
    ratings: Floats | None = None
    positions: Ints | None = None
    notes: tuple[str, ...] = ()
    session_users: AnyArray | None = None

    def __post_init__(self) -> None:
        may_merge = all(getattr(self, name) is None for name in ALIGNED)
        put = object.__setattr__
        if isinstance(self.events, matrices.Csr):
            put(self, "_stored", self.events)
            object.__delattr__(self, "events")  # until it is needed: see `__getattr__`
        else:
            put(self, "events", matrices.ascending(self.events, "matrix", may_merge=may_merge))
            put(self, "_stored", self.events)
        sized = (("user_ids", self.n_users), ("item_ids", self.n_items), ("session_users", self.n_users))
        for name, size in sized:
            if (given := getattr(self, name)) is not None:
                put(self, name, as_ids(name, given, size))
        for name in ALIGNED:
            given, size = getattr(self, name), self.items.size
            refuse_masked(given, f"`{name}`")
            if given is not None and np.shape(given) != (size,):
                raise InputError(f"`{name}` must have {size} entries, got shape {np.shape(given)}.")

    def __getattr__(self, name: str) -> Any:
        """Make the matrix when it is first needed, because SciPy is slow to import."""
        if name != "events" or "_stored" not in self.__dict__:
            raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
        object.__setattr__(self, "events", self._stored.to_scipy())
        return self.events

    def __repr__(self) -> str:
        extra = "".join(f", {name}" for name in ("times", "ratings") if getattr(self, name) is not None)
        return f"Interactions({self.n_users} users, {self.n_items} items, {self.items.size} events{extra})"

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        return tables.fact_table("Interactions", self.facts(), self.notes).to_html()

    def facts(self) -> dict[str, str]:
        """Return the numbers of users, items and events, and the ranges of times and ratings."""
        n, cells = self.items.size, max(self.n_users * self.n_items, 1)
        sizes = {"users": self.n_users, "items": self.n_items, "events": n}
        found = {name: f"{size:,}" for name, size in sizes.items()} | {"density": f"{n / cells:.2%}"}
        ranges = {name: getattr(self, name) for name in ("times", "ratings")}
        known = {name: values for name, values in ranges.items() if values is not None and n}
        return found | {name: f"{values.min()} to {values.max()}" for name, values in known.items()}

    @classmethod
    def of(cls, given: PerUser, name: str, *, n_users: int | None = None, n_items: int | None = None) -> Interactions:
        """Return interactions without repeats, given interactions, a sparse matrix, or a list of item numbers per user.

        Parameters
        ----------
        given : Interactions, sparse matrix, or list of lists of int
            User u is row u, or the u-th list. Repeated events are merged; an item that a list repeats counts once.
        name : str
            What to call it in messages.
        n_users, n_items : int, optional
            The required shape; there may be fewer lists than users.

        Examples
        --------
        >>> Interactions.of([[2, 0], []], "train", n_items=4).matrix.toarray().tolist()
        [[1.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
        """
        if isinstance(given, Interactions):
            found = given.merged()
        elif is_sparse(given):
            found = cls(matrices.Csr.of(matrices.ascending(given, name, may_merge=True)))  # checked only once
        elif isinstance(given, Sequence) and not isinstance(given, str):
            matrix, notes = matrices.from_lists(given, name, n_users, n_items)
            found = cls(matrix, notes=notes)
        else:
            kinds, got = "a sparse matrix or a list of item numbers per user", type(given).__name__
            hint = "; tr.read_split and tr.read_interactions read files and dataframes"
            raise InputError(f"`{name}` must be {kinds}, got {got}{hint}.")
        for axis, (size, what) in enumerate(((n_users, "users"), (n_items, "items"))):
            if size is not None and found.shape[axis] != size:
                raise InputError(f"`{name}` must have {size} {what}, got {found.shape[axis]}.")
        return found

    @property
    def matrix(self) -> sp.csr_array:
        """The interactions as a matrix, in which no pair of user and item is repeated.

        Events with repeats are refused, because there are several ways to merge them: `merged` keeps the last
        event of each pair, and SciPy adds up the values of `events`.
        """
        if self.n_repeats:
            repeats = counted(self.n_repeats, "event repeats", "events repeat")
            raise InputError(f"{repeats} a pair of user and item, which a matrix can't hold; merge them by `merged()`.")
        return self.events

    @property
    def shape(self) -> tuple[int, int]:
        """Numbers of users and items."""
        return self.n_users, self.n_items

    @property
    def n_users(self) -> int:
        """Rows of the matrix."""
        return int(self._stored.shape[0])

    @property
    def n_items(self) -> int:
        """Columns of the matrix."""
        return int(self._stored.shape[1])

    @property
    def names(self) -> AnyArray:
        """Names of the users, or their numbers."""
        return np.arange(self.n_users) if self.user_ids is None else self.user_ids

    @property
    def owners(self) -> AnyArray:
        """The user of each row: the user of the session where rows are sessions, and otherwise the name of the row."""
        return self.names if self.session_users is None else self.session_users

    @property
    def item_names(self) -> AnyArray:
        """Names of the items, or their numbers."""
        return np.arange(self.n_items) if self.item_ids is None else self.item_ids

    @property
    def indptr(self) -> Ints:
        """Boundaries of the users in `items`."""
        return self._stored.indptr.astype(np.int64, copy=False)

    @property
    def items(self) -> AnyArray:
        """Item of each event, user by user."""
        return self._stored.indices

    @property
    def values(self) -> AnyArray:
        """Value of each event: 1, or its weight or grade."""
        return self._stored.data

    @property
    def users(self) -> Ints:
        """User of each event."""
        return csr.owners(self.indptr)

    @cached_property
    def n_repeats(self) -> int:
        """How many events repeat a pair of user and item."""
        return int(self.items.size - self._starts().sum())

    def _starts(self) -> Bools:
        """Return for each event whether it is the first stored one of its pair of user and item."""
        starts = np.ones(self.items.size, dtype=np.bool_)
        np.not_equal(self.items[1:], self.items[:-1], out=starts[1:])
        starts[self.indptr[:-1][np.diff(self.indptr) > 0]] = True
        return starts

    def merged(self) -> Interactions:
        """Return the last event of each pair of user and item, with a note on how many were merged.

        The last event is the latest; among equal times, or without times, the one furthest down in the source.

        Examples
        --------
        >>> import truerank as tr
        >>> log = tr.read_interactions({"user": ["ann", "ann", "ann"], "item": ["a", "b", "a"], "time": [1, 2, 9]})
        >>> log
        Interactions(1 users, 2 items, 3 events, times)
        >>> log.merged().times.tolist(), log.merged().notes
        ([9, 2], ('1 event repeats a pair of user and item: the last by time counts',))
        """
        if not self.n_repeats:
            return self
        last = "last by time counts" if self.times is not None else "last row counts"
        note = f"{counted(self.n_repeats, 'event repeats', 'events repeat')} a pair of user and item: the {last}"
        return self.select(self._lasts(), notes=(*self.notes, note))

    def _lasts(self) -> Bools:
        """Return for each event whether it is the last one of its pair of user and item."""
        starts = self._starts()
        lasts = np.append(starts[1:], True)
        among = np.flatnonzero(~(starts & lasts))
        pair = np.cumsum(starts[among])
        keys = [array[among] for array in (self.positions, self.times) if array is not None]
        order = among[np.lexsort((*keys, pair))]
        # the lexsort moves events only within their pair, so each pair still ends at the same position
        lasts[among] = False
        lasts[order[np.append(np.diff(pair) > 0, True)]] = True
        return lasts

    def of_user(self, user: int) -> Ints:
        """Items of one user, ascending."""
        return self.items[self.indptr[user] : self.indptr[user + 1]].astype(np.int64)

    def to_arrow(self) -> pa.Table:
        """Return a table with a row per event: user, item, and their value, time and rating where there are any.

        The value is called `relevance`, because the values of held-out interactions are grades; it is left out if
        all values are 1.

        Examples
        --------
        >>> Interactions.of([[0, 1], [1]], "data").to_arrow().to_pydict()
        {'user': [0, 0, 1], 'item': [0, 1, 1]}
        """
        import pyarrow as pa

        relevance = None if np.all(self.values == 1) else self.values
        columns = {"user": self.names[self.users], "item": self.item_names[self.items]}
        extra = {"relevance": relevance, "time": self.times, "rating": self.ratings}
        return pa.table(columns | {name: array for name, array in extra.items() if array is not None})

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Return the interactions as Arrow data, so that libraries that read Arrow accept them."""
        return self.to_arrow().__arrow_c_stream__(requested_schema)

    def select(self, chosen: Bools, *, notes: tuple[str, ...] = ()) -> Interactions:
        """Return the chosen events, with the same users and items.

        Examples
        --------
        >>> import numpy as np
        >>> data = Interactions.of([[0, 1], [1]], "data")
        >>> data.select(np.array([False, True, True])).matrix.toarray().tolist()
        [[0.0, 1.0], [0.0, 1.0]]
        """
        indptr = csr.bounds(chosen)[self.indptr]
        values = self.values[chosen].astype(matrices.float_type(self.values.dtype), copy=False)
        matrix = matrices.Csr(values, self.items[chosen], indptr, self.shape)
        aligned = {name: None if (array := getattr(self, name)) is None else array[chosen] for name in ALIGNED}
        return Interactions(
            matrix, self.user_ids, self.item_ids, **aligned, notes=notes, session_users=self.session_users
        )

    def marked(self, mark: int) -> sp.csr_array:
        """Return a matrix with this mark at each entry; the sum of several such matrices shows which have an entry."""
        import scipy.sparse as sp

        return sp.csr_array((np.full(self.items.size, mark, np.int8), self.items, self.indptr), shape=self.shape)

    def overlap(self, other: Interactions) -> Ints:
        """Return how many items of each user are in both; `other`, whose items are looked up, should be the smaller."""
        return np.bincount(other.users[self.contains(other)], minlength=other.n_users).astype(np.int64)

    def contains(self, other: Interactions) -> Bools:
        """Return for each event of `other` whether its pair of user and item is also here.

        Examples
        --------
        >>> Interactions.of([[0, 2], [1]], "a").contains(Interactions.of([[1, 2], [1]], "b")).tolist()
        [False, True, True]
        """
        return self.has(other.users, other.items)

    def has(self, users: Ints, items: AnyArray) -> Bools:
        """Return for each pair of user and item whether it is here."""
        return csr.holds(self.indptr, self.items, users, items)


PerUser = Interactions | Sequence[Sequence[int]] | Sequence[AnyArray] | Any
"""Items of each user: `Interactions`, any SciPy sparse matrix, or a list of item numbers per user."""


def check_same_names(one: Interactions, other: Interactions, names: str) -> None:
    """Raise `InputError` if both name their users or items and the names differ; `names` is what to call the two."""
    for role in ("user", "item"):
        mine, yours = getattr(one, f"{role}_ids"), getattr(other, f"{role}_ids")
        if mine is None or yours is None or np.array_equal(mine, yours):
            continue
        at = int(np.argmin(mine == yours)) if mine.shape == yours.shape else 0
        got = f"{role}s {mine.tolist()[at]!r} and {yours.tolist()[at]!r} at position {at}"
        raise InputError(f"{names} must have the same {role}s in the same order, got {got}.")
