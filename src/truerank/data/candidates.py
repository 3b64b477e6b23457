"""`Candidates`: which items may be recommended, to whom and when; and their numbers in the data."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truerank.core import matrices
from truerank.core.checks import AnyArray, Bools, InputError, Ints, as_ids, counted, is_sparse
from truerank.core.csr import bounds, owners
from truerank.core.threads import Memory, bounded
from truerank.data.interactions import Interactions, PerUser, check_same_names

if TYPE_CHECKING:
    from truerank.formats.columns import Column
    from truerank.formats.sources import Source

_PER_ROW = ("users", "sessions", "since", "until")


@dataclass(frozen=True, eq=False, repr=False)
class Candidates:
    """Items that may be recommended: to everybody or to each user, always or between two times.

    Made by `read_candidates`; give it as `candidates` or `exclude` to `rank`, `rank_sampled` and `recommend`, or as
    `candidates` to `read_lists`.

    Attributes
    ----------
    items : array
        Names of items, or their numbers where the data have no names; one per row, in the order in which they were
        read.
    users : array, optional
        Whose candidates they are; None: everybody's.
    sessions : array, optional
        In which session of the user; None: in all of them.
    since, until : arrays, optional
        When the item may be recommended: from the first time on, and before the second.
    notes : tuple of str
        Anything unusual in the source.
    """

    items: AnyArray
    users: AnyArray | None = None
    sessions: AnyArray | None = None
    since: AnyArray | None = None
    until: AnyArray | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", as_ids("candidates", self.items))
        for name in _PER_ROW:
            if (given := getattr(self, name)) is not None:
                object.__setattr__(self, name, as_ids(name, given, self.items.size))

    def __repr__(self) -> str:
        whose = "everybody" if self.users is None else counted(np.unique(self.users).size, "user", "users")
        when = ", by time" if self.timed else ""
        return f"Candidates({counted(np.unique(self.items).size, 'item', 'items')} for {whose}{when})"

    @property
    def timed(self) -> bool:
        """Whether items are candidates at certain times only."""
        return self.since is not None or self.until is not None

    def at(self, time: Any) -> Candidates:
        """Return the candidates at a time, such as now.

        Examples
        --------
        >>> import truerank as tr
        >>> stock = tr.read_candidates({"item": ["a", "b"], "since": [1, 5], "until": [4, 9]})
        >>> stock.at(5).items.tolist()
        ['b']
        """
        taken = np.flatnonzero(self._covers(_like(time, self.since if self.since is not None else self.until)))
        users, sessions = (None if each is None else each[taken] for each in (self.users, self.sessions))
        return Candidates(self.items[taken], users, sessions)

    def _covers(self, time: Any) -> Bools:
        """Return which rows are valid at a time, or at a time per row."""
        begun = True if self.since is None else self.since <= time
        lasts = True if self.until is None else time < self.until
        return np.broadcast_to(begun & np.asarray(lasts), self.items.shape)


Listed = Candidates | PerUser | Mapping[Any, Sequence[Any]]
"""What `read_candidates` reads, by name; or the items of each user by number, as interactions, matrix or lists."""


class Listing(NamedTuple):
    """Items of the data: the same for everybody, or those of each user."""

    everybody: Bools | None = None
    each: Interactions | None = None
    notes: tuple[str, ...] = ()


@bounded
def read_candidates(
    source: Source,
    *,
    user: Column = None,
    item: Column = None,
    session: Column = None,
    since: Column = None,
    until: Column = None,
    header: bool | None = None,
    memory: Memory | None = None,
) -> Candidates:
    r"""Read which items may be recommended: to everybody or to each user, always or between two times.

    Parameters
    ----------
    source : path, dataframe, dict or list
        A table with a column of items, and columns of users, sessions and times where there are any; files as for
        `read_interactions`. Or a text file with a user on each line, a tab, and its items separated by blanks or tabs;
        or one with an item on each line. Or ``{user: [item, ...]}``, or a list of items for everybody.
    user, item, session, since, until : str or int, optional
        Columns by name, or by number from 0, where their names are not the usual ones. An item is a candidate from
        `since` on, and before `until`. A column of sessions is looked for only if it is named.
    header : bool, optional
        Whether the first line of a text file holds the names of the columns; detected by default.
    memory : str or int, optional
        Memory that reading may use, as in `truerank.read_interactions`.

    Examples
    --------
    >>> import pathlib, tempfile, truerank as tr
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "candidates.tsv"
    >>> _ = path.write_text("ann\ta b c\nbob\tc d\n")
    >>> tr.read_candidates(path)
    Candidates(4 items for 2 users)
    >>> tr.read_candidates({"item": ["a", "b"], "since": ["2024-01-01", "2024-03-01"]})
    Candidates(2 items for everybody, by time)
    """
    from truerank.formats.columns import CANDIDATES
    from truerank.formats.rows import load
    from truerank.formats.text_files import read_item_lines, with_header

    columns = {"user": user, "item": item, "session": session, "since": since, "until": until}
    is_plain = isinstance(source, Mapping | Sequence | np.ndarray) and not isinstance(source, str | bytes)
    if is_plain and (named := _by_name(source)) is not None:
        return named
    if header is None and all(column is None for column in columns.values()):
        lines = read_item_lines(source, CANDIDATES)
        source = source if lines is None else lines
    rows = load(source, CANDIDATES, columns, with_header(None, header))
    ids = {role: rows.names(role) for role in ("item", "user", "session") if role in rows}
    times = {role: rows.times(role) for role in ("since", "until") if role in rows}
    return Candidates(
        ids["item"], ids.get("user"), ids.get("session"), times.get("since"), times.get("until"), rows.notes
    )


def listing(given: Listed, name: str, data: Interactions, *, times: AnyArray | None = None) -> Listing:
    """Return the items of the data that the argument `candidates` or `exclude` names.

    Parameters
    ----------
    given : Candidates, list of items, dict of user to items; or interactions, sparse matrix or lists of numbers
    name : str
        What to call it in messages.
    data : Interactions
        Source of the names of users and items. Items that it lacks are left out, with a note.
    times : array, one per user, optional
        When something is recommended to each user; NaT or NaN where nothing is.

    Examples
    --------
    >>> data = Interactions.of([[0, 1, 2], [1]], "data")
    >>> listing([2, 0], "candidates", data).everybody.tolist()
    [True, False, True]
    >>> listing({1: [2]}, "candidates", data).each.matrix.toarray().tolist()
    [[0.0, 0.0, 0.0], [0.0, 0.0, 1.0]]
    """
    found = as_candidates(given)
    if not isinstance(found, Candidates):
        each = Interactions.of(found, name, n_users=data.n_users, n_items=data.n_items)
        check_same_names(each, data, f"`{name}` and `test`")
        return Listing(each=each)
    if found.sessions is not None:
        raise InputError(f"`{name}` must not have sessions here; they are for `read_lists`.")
    items = positions(found.items, data.item_names)
    inside = items >= 0
    if not inside.any():
        example = f"for example {found.items[:1].tolist()} and {data.item_names[:1].tolist()}"
        raise InputError(f"no item of `{name}` is in the data: the ids do not match ({example}).")
    words = f"item of `{name}` is not in the data", f"items of `{name}` are not in the data"
    lacking = np.unique(found.items[~inside]).size
    notes = (*found.notes, *((counted(lacking, *words),) if lacking else ()))
    if found.users is None and not found.timed:
        everybody = np.zeros(data.n_items, dtype=np.bool_)
        everybody[items[inside]] = True
        return Listing(everybody, notes=notes)
    rows, at = _pairs(found, name, data, times)
    kept = inside[at]
    return Listing(each=_interactions(rows[kept], items[at[kept]], data), notes=notes)


def as_candidates(given: Any) -> Any:
    """Return candidates by name; interactions, sparse matrices and lists per user, which hold numbers, unchanged."""
    if isinstance(given, Candidates | Interactions) or is_sparse(given):
        return given
    if isinstance(given, Sequence | np.ndarray) and not isinstance(given, str | bytes):
        return _by_name(given) or given
    return read_candidates(given)


def _by_name(given: Any) -> Candidates | None:
    """Return candidates from a dict of user to items, or from a list of items; None for anything else."""
    if isinstance(given, Mapping):
        lists = list(given.values())
        if not lists or any(isinstance(own, str | bytes) or not np.iterable(own) for own in lists):
            raise InputError("candidates in a dict must be lists of items, one for each user.")
        if {"item", "items"} & {name for name in given if isinstance(name, str)}:
            return None
        rows = owners(bounds([len(own) for own in lists]))
        return Candidates(np.asarray([item for own in lists for item in own]), np.asarray(list(given))[rows])
    is_list = isinstance(given, Sequence | np.ndarray) and np.ndim(given[0] if len(given) else [[]]) == 0
    return Candidates(np.asarray(given)) if is_list else None


def positions(names: AnyArray, own: AnyArray) -> Ints:
    """Return the position of each name among the distinct own ones, -1 if it is not there; 7 and "7" are the same.

    Examples
    --------
    >>> positions(np.array(["7", "x"]), np.array([8, 7])).tolist()
    [1, -1]
    """
    if (names.dtype.kind in "US") != (own.dtype.kind in "US"):
        names, own = names.astype(np.str_), own.astype(np.str_)
    if not own.size:
        return np.full(names.size, -1)
    order = np.argsort(own, kind="stable")
    place = np.minimum(np.searchsorted(own, names, sorter=order), own.size - 1)
    return np.where(own[order[place]] == names, order[place], -1)


def new_items(given: Listed | None, data: Interactions) -> AnyArray:
    """Return the names of candidates that are not in the data; none if the data have no names."""
    found = as_candidates(given)
    if not isinstance(found, Candidates):
        return data.item_names[:0]
    fresh = np.unique(found.items[positions(found.items, data.item_names) < 0])
    if not fresh.size or (positions(found.items, data.item_names) < 0).all():
        return data.item_names[:0]
    if data.item_ids is None or (fresh.dtype.kind in "US") != (data.item_ids.dtype.kind in "US"):
        like = f"0..{data.n_items - 1}" if data.item_ids is None else f"like {data.item_ids[:1].tolist()[0]!r}"
        raise InputError(f"`candidates` must hold items {like}, got {fresh[:1].tolist()[0]!r}.")
    return fresh


def widened(data: Interactions, names: AnyArray) -> Interactions:
    """Return the same events with further items after the others."""
    shape = (data.n_users, data.n_items + names.size)
    matrix = matrices.Csr(data.values, data.items, data.indptr, shape)
    return dataclasses.replace(data, events=matrix, item_ids=np.concatenate([data.item_names, names]))


def narrowed(data: Interactions, kept: Bools) -> Interactions:
    """Return the events with some items, which keep their names."""
    part = data.select(kept[data.items], notes=data.notes)
    items = (np.cumsum(kept) - 1)[part.items].astype(part.items.dtype)
    matrix = matrices.Csr(part.values, items, part.indptr, (data.n_users, int(kept.sum())))
    return dataclasses.replace(part, events=matrix, item_ids=data.item_names[kept])


def repeated_for(items: Bools, users: Bools) -> Interactions:
    """Return the same items for all of these users."""
    own = np.flatnonzero(items)
    indptr = bounds(np.where(users, own.size, 0))
    tiled = np.tile(own, int(users.sum()))
    return Interactions(matrices.Csr(np.ones(tiled.size, np.float32), tiled, indptr, (users.size, items.size)))


def joined(*parts: Interactions | None) -> Interactions | None:
    """Return the pairs that are in any of the parts; None if there are no parts."""
    given = [part for part in parts if part is not None]
    if len(given) < 2:
        return given[0] if given else None
    either = reduce(operator.add, [part.marked(1) for part in given])
    return Interactions(either, given[0].user_ids, given[0].item_ids)


def _interactions(users: Ints, items: Ints, like: Interactions) -> Interactions:
    return Interactions(matrices.of_pairs(users, items.astype(np.int64), like.shape), like.user_ids, like.item_ids)


def _pairs(found: Candidates, name: str, data: Interactions, times: AnyArray | None) -> tuple[Ints, Ints]:
    """Return pairs of users of the data and rows of the candidates."""
    if found.timed and times is None:
        hint = f"give the candidates of one time, as in `{name}.at(time)`"
        raise InputError(f"`{name}` have times, but there are no times of held-out events; {hint}.")
    if found.users is None:
        return _at_times(found, times)  # type: ignore[arg-type]
    rows = positions(found.users, data.names)
    at = np.flatnonzero(rows >= 0)
    if not at.size:
        example = f"for example {found.users[:1].tolist()} and {data.names[:1].tolist()}"
        raise InputError(f"no user of `{name}` is in the data: the ids do not match ({example}).")
    if found.timed and times is not None:
        _check_times(found, times)
        at = at[found._covers(times[np.maximum(rows, 0)])[at]]
    return rows[at], at


def _at_times(found: Candidates, times: AnyArray) -> tuple[Ints, Ints]:
    """Return everybody's candidates at the time of each user."""
    _check_times(found, times)
    users = np.flatnonzero(~np.isnan(times) if times.dtype.kind == "f" else ~np.isnat(times))
    distinct, which = np.unique(times[users], return_inverse=True)
    stock = [np.flatnonzero(found._covers(time)) for time in distinct]
    sizes = np.array([own.size for own in stock], dtype=np.int64)[which]
    rows = np.concatenate([np.zeros(0, np.int64), *(stock[number] for number in which)])
    return np.repeat(users, sizes), rows


def _check_times(found: Candidates, times: AnyArray) -> None:
    given = found.since if found.since is not None else found.until
    if given is not None and (given.dtype.kind == "M") != (times.dtype.kind == "M"):
        kinds = {True: "dates", False: "numbers"}
        own, other = kinds[given.dtype.kind == "M"], kinds[times.dtype.kind == "M"]
        raise InputError(f"the times of the candidates are {own}, but those of the held-out events are {other}.")


def _like(time: Any, times: AnyArray | None) -> Any:
    if times is None:
        raise InputError("these candidates have no times: they are the same at all times.")
    try:
        return np.datetime64(time) if times.dtype.kind == "M" else float(time)
    except (TypeError, ValueError) as error:
        raise InputError(f"`time` must be a time like those of the candidates ({times[0]}), got {time!r}.") from error
