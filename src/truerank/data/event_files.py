"""Rows of events -> `Interactions`: ids become numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from truerank.core.checks import AnyArray, InputError, Ints, counted, first_true, shown
from truerank.core.threads import Memory, bounded
from truerank.data.interactions import Interactions
from truerank.formats.columns import INTERACTIONS, PAIRS, Column
from truerank.formats.ids import as_names, first_not_a_number, numbered, session_names
from truerank.formats.rows import Rows, load
from truerank.formats.sources import Source
from truerank.formats.text_files import Format, with_header

# from this many distinct items in each part, it can't be chance that they have none in common
_MANY = 10
_BLOCK = 1 << 22


@bounded
def read_interactions(
    source: Source,
    *,
    user: Column = None,
    session: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    weight: Column = None,
    min_rating: float | None = None,
    header: bool | None = None,
    format: Format | None = None,  # noqa: A002
    memory: Memory | None = None,
) -> Interactions:
    """Read user-item interactions, with times and ratings where the source has them.

    Parameters
    ----------
    source : path, dataframe, dict or list
        `u.data`, `ratings.dat` or `ratings.csv` of MovieLens, `.inter` of RecBole, `.rating` of NCF, or
        any CSV, TSV, Parquet or JSONL file, plain or gzipped; a directory or zip file that contains one;
        "-" for standard input. A dataframe, its columns ``{"user": [...], "item": [...]}``,
        ``{user: [item, ...]}`` or ``{user: {item: rating}}``.
    user, item, time, rating : str or int, optional
        Columns by name, or by number from 0, where their names are not the usual ones.
    session : str or int, optional
        A column of sessions, which is never guessed. Each session of a user is then a row of its own, called
        ``user (session)``, which splits divide and models rank; its ranks have the user as id.
    weight : str or int, optional
        Column whose values become the values of the matrix, which are 1 otherwise.
    min_rating : float, optional
        Drop events with a lower rating, and then users and items without any events left.
    header : bool, optional
        Whether the first line of a text file holds the names of the columns; detected by default.
    format : {"csv", "movielens"}, optional
        The format of a text file, where it is not detected: delimited text, or user, item, rating and
        time without a header.
    memory : str or int, optional
        Memory that reading may use, the result included, such as "2GB" or a number of bytes; by default half of the
        memory of the computer or container. Files are read in pieces, and one that needs more is refused.

    Returns
    -------
    Interactions
        Users and items in ascending order of their ids, and one event per row: if a user has several events
        with an item, all are kept, because what was known at a given time depends on each of them.
        `Interactions.merged` keeps the last of each pair. `notes` states what was dropped.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> frame = pd.DataFrame({"who": ["bob", "ann", "bob"], "item": [7, 9, 7], "stars": [4, 5, 3]})
    >>> data = tr.read_interactions(frame, user="who")
    >>> data
    Interactions(2 users, 2 items, 3 events, ratings)
    >>> data.user_ids.tolist(), data.item_ids.tolist(), data.ratings.tolist()
    (['ann', 'bob'], [7, 9], [5.0, 4.0, 3.0])
    >>> data.merged()
    Interactions(2 users, 2 items, 2 events, ratings)
    >>> data.merged().notes
    ('1 event repeats a pair of user and item: the last row counts',)
    """
    given = {"user": user, "session": session, "item": item, "time": time, "rating": rating, "weight": weight}
    (data,) = read_parts([source], given, with_header(format, header))
    return data if min_rating is None else _at_least(min_rating, data)


def read_parts(sources: Sequence[Source], columns: Mapping[str, Column], given: Format | None) -> list[Interactions]:
    """Read one source, or training and test data that share users and items, and number these consistently."""
    parts = [load(source, INTERACTIONS, columns, given) for source in sources]
    if columns.get("session") is not None:
        return [_by_session(part) for part in parts]
    ids, codes = {}, {}
    for role, many in (("user", 1), ("item", _MANY)):
        ids[role], codes[role] = _encode(parts, role)
        _check_match(parts, role, codes[role], ids[role], many)
        parts = [part.without(role) for part in parts]  # free columns as soon as they are no longer needed
        pa.default_memory_pool().release_unused()
    found = []
    while parts:
        found.append(_interactions(parts.pop(0), codes["user"].pop(0), codes["item"].pop(0), ids["user"], ids["item"]))
    return found


def _by_session(part: Rows) -> Interactions:
    """Return the events of one source with a row for each session of a user."""
    users = part.names("user")
    key = session_names(part.table["user"], part.table["session"])
    named = part.without("session")
    named = replace(named, table=named.table.set_column(named.table.column_names.index("user"), "user", [key]))
    (sessions, (session,)), (items, (item,)) = _encode([named], "user"), _encode([named], "item")
    data = _interactions(named.without("user", "item"), session, item, sessions, items)
    row = np.empty(sessions.size, np.int64)
    row[session] = np.arange(session.size)  # one of each session
    return replace(data, session_users=users[row])


def _check_match(parts: Sequence[Rows], role: str, codes: Sequence[AnyArray], ids: AnyArray, many: int) -> None:
    """Refuse a part without an id in common with the first, if each has at least `many` distinct ids."""
    if len(parts) == 1:
        return
    there = [np.bincount(part, minlength=ids.size) > 0 for part in codes]
    for at, name in zip(range(1, len(parts)), ("test", "validation"), strict=False):
        if np.any(there[0] & there[at]) or min(there[0].sum(), there[at].sum()) < many:
            continue
        examples = [shown(ids[codes[which][0]].item()) for which in (at, 0)]
        raise parts[at].without_match(parts[0], role, (name, "train"), f"for example {examples[0]} and {examples[1]}")


def read_pairs(
    source: Source,
    shape: tuple[int, int],
    *,
    user: Column = None,
    item: Column = None,
    user_ids: AnyArray | None = None,
    item_ids: AnyArray | None = None,
    format: Format | None = None,  # noqa: A002
) -> Interactions:
    """Read pairs of user and item numbers (from 0), or of their names, into interactions of the given shape.

    Parameters
    ----------
    source : path, dataframe, dict or list
        As for `read_interactions`.
    shape : tuple of int
        Numbers of users and of items.
    user, item : str or int, optional
        Columns by name, or by number from 0, where their names are not the usual ones.
    user_ids, item_ids : arrays of str, optional
        The names, if the source has names instead of numbers.
    format : {"csv", "movielens"}, optional
        The format of a text file, where it is not detected.

    Examples
    --------
    >>> import pandas as pd
    >>> pairs = pd.DataFrame({"user": [0, 0, 2], "item": [1, 3, 0]})
    >>> read_pairs(pairs, (3, 4)).matrix.toarray().astype(int).tolist()
    [[0, 1, 0, 1], [0, 0, 0, 0], [1, 0, 0, 0]]
    """
    rows = load(source, PAIRS, {"user": user, "item": item}, format)
    numbers = [
        _row_numbers(rows, role, size) if names is None else _named_rows(rows, role, names)
        for role, size, names in zip(("user", "item"), shape, (user_ids, item_ids), strict=True)
    ]
    pairs = sp.coo_array((np.ones(len(rows)), (numbers[0], numbers[1])), shape=shape)
    pairs.sum_duplicates()
    repeated = counted(len(rows) - pairs.nnz, "pair is repeated and counts once", "pairs are repeated and count once")
    notes = (*rows.notes, f"{rows.name}: {repeated}") if pairs.nnz < len(rows) else rows.notes
    data = Interactions(pairs, user_ids, item_ids, notes=notes)
    data.matrix.data[:] = 1
    return data


def _row_numbers(rows: Rows, role: str, size: int) -> Ints:
    """Return ids that are row or column numbers."""
    ids = rows.ids(role)
    if not pa.types.is_integer(ids.type):
        row = first_not_a_number(ids)
        raise rows.error(row, f"the {role} must be a whole number from 0, got {shown(ids[row].as_py())}")
    numbers: Ints = ids.to_numpy(zero_copy_only=False)
    if (at := first_true((numbers < 0) | (numbers >= size))) is not None:
        raise rows.error(at, f"the {role} must lie in 0..{size - 1}, got {numbers[at]}")
    return numbers


def _named_rows(rows: Rows, role: str, names: AnyArray) -> Ints:
    """Return the place of each id among the names."""
    places = pc.index_in(rows.ids(role).cast(pa.string()), value_set=pa.array(names.astype(np.str_).tolist()))
    if places.null_count:
        row = pc.index(places.is_null(), True).as_py()
        raise rows.error(row, f"the {role} {shown(rows.ids(role)[row].as_py())} is not among the {len(names)} names")
    return places.to_numpy(zero_copy_only=False).astype(np.int64)


def _encode(parts: Sequence[Rows], role: str) -> tuple[AnyArray, list[AnyArray]]:
    """Return the ids of a role in all parts, ascending, and the number of each row's id in each part."""
    distinct, codes = numbered(*(part.table[role] for part in parts))
    ids = as_names(distinct, role)
    order = np.argsort(ids)
    number = np.empty(ids.size, dtype=np.int32)
    number[order] = np.arange(ids.size, dtype=np.int32)
    return ids[order], [number[own] for own in codes]


def _interactions(part: Rows, user: AnyArray, item: AnyArray, user_ids: AnyArray, item_ids: AnyArray) -> Interactions:
    rows, indptr, items = grouped(user, item, (user_ids.size, item_ids.size))
    del user, item
    found: dict[str, AnyArray] = {}
    for role, read in (("weight", Rows.finite), ("time", Rows.times), ("rating", Rows.finite)):
        if role in part:
            found[role] = _ordered(read(part, role), rows)
            part = part.without(role)
            pa.default_memory_pool().release_unused()
    values = found["weight"] if "weight" in found else np.ones(rows.size, dtype=np.float32)
    return Interactions(
        sp.csr_array((values, items, indptr), shape=(user_ids.size, item_ids.size)),
        user_ids,
        item_ids,
        times=found.get("time"),
        ratings=found.get("rating"),
        positions=rows,
        notes=part.notes,
    )


def joined_events(parts: Sequence[Interactions]) -> Interactions:
    """Return the events of several parts with the same users and items; rows of later parts come after the others."""
    users, items = (np.concatenate([getattr(part, role) for part in parts]) for role in ("users", "items"))
    order, indptr, columns = grouped(users, items, parts[0].shape)
    known = {name: [getattr(part, name) for part in parts] for name in ("times", "ratings")}
    both = {name: np.concatenate(each)[order] for name, each in known.items() if all(one is not None for one in each)}
    starts = np.cumsum([0, *(part.items.size for part in parts[:-1])])
    rows = [np.zeros(0) if part.positions is None else part.positions for part in parts]
    positions = np.concatenate([own.astype(np.int64) + start for own, start in zip(rows, starts, strict=True)])[order]
    matrix = sp.csr_array(
        (np.concatenate([part.values for part in parts])[order], columns, indptr), shape=parts[0].shape
    )
    notes = tuple(note for part in parts for note in part.notes)
    return replace(parts[0], events=matrix, **{"times": None, "ratings": None} | both, positions=positions, notes=notes)


def grouped(user: AnyArray, item: AnyArray, shape: tuple[int, int]) -> tuple[AnyArray, AnyArray, AnyArray]:
    """Order rows by user, then item, then position, by counting rather than comparing.

    Returns
    -------
    tuple of arrays
        The rows in their new order, the boundaries of the users, and the items in the new order.
    """
    positions = np.arange(user.size, dtype=np.int32 if user.size < 2**31 else np.int64)
    by_position = sp.coo_array((positions, (item, user)), shape=shape[::-1])
    # not true, but it keeps SciPy from adding up the positions of repeated pairs
    by_position.has_canonical_format = True
    by_item = by_position.tocsr()
    del positions, by_position
    by_user = by_item.tocsc()
    del by_item
    return by_user.data, by_user.indptr, by_user.indices


def _ordered(values: AnyArray, rows: AnyArray) -> AnyArray:
    """Return the values of rows in their order, a block at a time: NumPy turns positions into those of 64 bits."""
    found = np.empty(rows.size, values.dtype)
    for start in range(0, rows.size, _BLOCK):
        found[start : start + _BLOCK] = values[rows[start : start + _BLOCK]]
    return found


def _at_least(least: float, data: Interactions) -> Interactions:
    """Drop events with a lower rating, and users and items without any events left."""
    if data.ratings is None:
        raise InputError("`min_rating` needs a column of ratings, but none was found; name it with `rating`.")
    good = data.ratings >= least
    if not good.any():
        raise InputError(f"`min_rating` must leave some events, but all ratings are below {least:g}.")
    kept = data.select(good)
    users, items = np.diff(kept.indptr) > 0, np.bincount(kept.items, minlength=data.n_items) > 0
    lost = (int((~good).sum()), int((~users).sum()), int((~items).sum()))
    note = f"{lost[0]} events rated below {least:g} are dropped, and with them {lost[1]} users and {lost[2]} items"
    arrays = kept.values, (np.cumsum(items) - 1)[kept.items], np.append(0, kept.indptr[1:][users])
    matrix = sp.csr_array(arrays, shape=(int(users.sum()), int(items.sum())))
    notes = (*data.notes, note) if lost[0] else data.notes
    ids = {"user_ids": data.names[users], "item_ids": data.item_names[items]}
    owners = None if data.session_users is None else data.session_users[users]
    return replace(kept, events=matrix, **ids, session_users=owners, notes=notes)
