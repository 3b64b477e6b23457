"""Tables of events -> `Interactions`: ids become numbers, repeated pairs one, and bad rows an error."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import scipy.sparse as sp

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.formats.events import Events, load_events
from truerank.formats.tables import Source

Column = str | int | None


def read_interactions(
    source: Source,
    *,
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    weight: Column = None,
    min_rating: float | None = None,
) -> Interactions:
    """Read who had to do with what, and when and how good it was where the source says so.

    Parameters
    ----------
    source : path, dataframe, dict or list
        MovieLens' `u.data`, `ratings.dat` or `ratings.csv`, RecBole's `.inter`, NCF's `.rating`, or
        any CSV, TSV, Parquet or JSONL file, plain or gzipped; the folder that holds it, or
        MovieLens' own zip file. A dataframe, ``{user: [item, ...]}`` or ``{user: {item: rating}}``.
    user, item, time, rating : str or int, optional
        Columns by name, or by number from 0, where their names are not the usual ones.
    weight : str or int, optional
        Column whose values become those of the matrix, 1 otherwise.
    min_rating : float, optional
        Drop events that are rated lower, and then users and items that have none left.

    Returns
    -------
    Interactions
        Users and items in ascending order of their ids. Of several events of a user with an item
        the last by time counts, the lower row among equal times or if there are none. `notes` says
        what was merged or dropped.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> frame = pd.DataFrame({"who": ["bob", "ann", "bob"], "item": [7, 9, 7], "stars": [4, 5, 3]})
    >>> data = tr.read_interactions(frame, user="who")
    >>> data
    Interactions(2 users, 2 items, 2 events, ratings)
    >>> data.user_ids.tolist(), data.item_ids.tolist(), data.ratings.tolist()
    (['ann', 'bob'], [7, 9], [5.0, 3.0])
    >>> data.notes
    ('1 row repeats a pair of user and item: the last row counts',)
    """
    given = {"user": user, "item": item, "time": time, "rating": rating, "weight": weight}
    (data,) = read_parts([source], given)
    return data if min_rating is None else _at_least(min_rating, data)


def read_parts(sources: Sequence[Source], columns: Mapping[str, Column]) -> list[Interactions]:
    """Read several sources whose users and items are the same, and get the same numbers."""
    chosen = {role: column for role, column in columns.items() if column is not None}
    parts = [load_events(source, chosen) for source in sources]
    for part in parts:
        _check(part)
    user_ids, users = _encode(parts, "user")
    item_ids, items = _encode(parts, "item")
    return [_interactions(*three, user_ids, item_ids) for three in zip(parts, users, items, strict=True)]


def _check(part: Events) -> None:
    if part.table.num_rows == 0:
        raise InputError(f"{part.name} has no rows.")
    for role, column in zip(part.table.column_names, part.table.columns, strict=True):
        missing = _is_missing(column)
        if missing.any():
            raise InputError(f"{part.place(int(np.argmax(missing)))}: there is no {role}.")
        if part.whole_ids and role in ("user", "item") and not pa.types.is_integer(column.type):
            row = next(row for row, value in enumerate(column.to_pylist()) if not _is_whole(value))
            raise InputError(f"{part.place(row)}: the {role} must be a whole number, got {str(column[row].as_py())!r}.")


def _is_missing(column: pa.ChunkedArray) -> Bools:
    if column.null_count == 0 and not _is_text(column.type):
        return np.zeros(1, dtype=np.bool_)
    missing = column.is_null()
    if _is_text(column.type):
        missing = pc.or_(missing, pc.fill_null(pc.equal(column, ""), True))
    return missing.to_numpy()


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) or (isinstance(value, str) and value.strip().lstrip("-").isdigit())


def _is_text(kind: pa.DataType) -> bool:
    return pa.types.is_string(kind) or pa.types.is_large_string(kind)


def _encode(parts: Sequence[Events], role: str) -> tuple[AnyArray, list[AnyArray]]:
    """Return the ids of a role in all parts, ascending, and the number of each row's id in each part."""
    columns = [_plain(part.table[role]) for part in parts]
    numbers = all(pa.types.is_integer(column.type) or pa.types.is_floating(column.type) for column in columns)
    kind = pa.int64() if numbers else pa.large_string()
    try:
        chunks = [chunk for column in columns for chunk in column.cast(kind).chunks]
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(f"{parts[0].name}: the {role} ids must be whole numbers or text ({reason}).") from error
    encoded = pa.chunked_array(chunks, type=kind).combine_chunks().dictionary_encode()
    ids = encoded.dictionary.to_numpy(zero_copy_only=False)
    # fixed-width text instead of objects, so that no file format ever needs pickle
    ids = ids if numbers else ids.astype(np.str_)
    order = np.argsort(ids)
    number = np.empty(ids.size, dtype=np.int32)
    number[order] = np.arange(ids.size, dtype=np.int32)
    codes = number[encoded.indices.to_numpy()]
    return ids[order], np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _plain(column: pa.ChunkedArray) -> pa.ChunkedArray:
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def _interactions(part: Events, user: AnyArray, item: AnyArray, user_ids: AnyArray, item_ids: AnyArray) -> Interactions:
    table, present = part.table, part.table.column_names
    times = _times(part) if "time" in present else None
    rows, indptr, items = grouped(user, item, (user_ids.size, item_ids.size))
    kept = _last_of_each(indptr, items, rows, times)
    merged = items.size if kept is None else int(kept.sum())
    notes = (*part.notes, *_merge_note(items.size - merged, times is not None))
    if kept is not None:
        rows, items, indptr = rows[kept], items[kept], np.concatenate([[0], np.cumsum(kept)])[indptr]
    values = _numbers(part, "weight")[rows] if "weight" in present else np.ones(rows.size, dtype=np.float32)
    return Interactions(
        sp.csr_array((values, items, indptr), shape=(user_ids.size, item_ids.size)),
        user_ids,
        item_ids,
        times=None if times is None else times[rows],
        ratings=_numbers(part, "rating")[rows] if "rating" in table.column_names else None,
        positions=rows,
        notes=notes,
    )


def grouped(user: AnyArray, item: AnyArray, shape: tuple[int, int]) -> tuple[Ints, AnyArray, AnyArray]:
    """Order rows by user, then item, then position, by counting rather than comparing.

    Returns
    -------
    tuple of arrays
        The rows in their new order, the boundaries of the users, and the items in the new order.
    """
    by_position = sp.coo_array((np.arange(user.size), (item, user)), shape=shape[::-1])
    # a promise that is not kept, as it would add up the positions of equal pairs otherwise
    by_position.has_canonical_format = True
    by_user = by_position.tocsr().tocsc()
    return by_user.data, by_user.indptr, by_user.indices


def _last_of_each(indptr: AnyArray, items: AnyArray, rows: Ints, times: AnyArray | None) -> Bools | None:
    """Which of the ordered rows to keep, None for all: the last of each user and item."""
    first = np.ones(items.size, dtype=np.bool_)
    np.not_equal(items[1:], items[:-1], out=first[1:])
    first[indptr[:-1][np.diff(indptr) > 0]] = True
    if first.all():
        return None
    last = np.append(first[1:], True)
    if times is None:
        return last
    among = np.flatnonzero(~(first & last))
    pair = np.cumsum(first[among])
    order = among[np.lexsort((rows[among], times[rows[among]], pair))]
    # the lexsort moves rows within their pair only, so that the last of each is where one was before
    last[among] = False
    last[order[np.append(np.diff(pair) > 0, True)]] = True
    return last


def _merge_note(repeated: int, timed: bool) -> list[str]:
    if not repeated:
        return []
    rows = "1 row repeats" if repeated == 1 else f"{repeated} rows repeat"
    return [f"{rows} a pair of user and item: the last {'by time' if timed else 'row'} counts"]


def _numbers(part: Events, role: str) -> Floats:
    column = _plain(part.table[role])
    try:
        numbers: Floats = column.cast(pa.float64()).to_numpy()
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise _not_a(part, role, "a number", pa.float64()) from error
    if not np.isfinite(numbers).all():
        row = int(np.argmin(np.isfinite(numbers)))
        raise InputError(f"{part.place(row)}: the {role} must be a finite number, got {numbers[row]}.")
    return numbers


def _times(part: Events) -> AnyArray:
    column = _plain(part.table["time"])
    if _is_text(column.type):
        numeric = _castable(column[0], pa.float64())
        kind = pa.float64() if numeric else pa.timestamp("us")
        try:
            column = column.cast(kind)
        except pa.ArrowInvalid as error:
            raise _not_a(part, "time", "a number" if numeric else "a number or an ISO date", kind) from error
    if pa.types.is_integer(column.type):
        return column.to_numpy().astype(np.int64, copy=False)
    if pa.types.is_floating(column.type):
        return _numbers(part, "time")
    if pa.types.is_temporal(column.type):
        return column.to_numpy()
    raise InputError(f"{part.name}: the times must be numbers or dates, got {column.type}.")


def _not_a(part: Events, role: str, what: str, kind: pa.DataType) -> InputError:
    """Return the error that names the first row whose value is not of that kind."""
    column = part.table[role]
    row = next((row for row, value in enumerate(column) if not _castable(value, kind)), 0)
    return InputError(f"{part.place(row)}: the {role} must be {what}, got {str(column[row].as_py())!r}.")


def _castable(value: pa.Scalar, kind: pa.DataType) -> bool:
    try:
        value.cast(kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        return False
    return True


def _at_least(least: float, data: Interactions) -> Interactions:
    """Drop events rated lower than that, and users and items that have none left."""
    if data.ratings is None:
        raise InputError("`min_rating` needs a column of ratings, and there is none; name it with rating=...")
    good = data.ratings >= least
    if not good.any():
        raise InputError(f"`min_rating` must leave some events, but all ratings are below {least:g}.")
    kept = data.select(good)
    users, items = np.diff(kept.indptr) > 0, np.bincount(kept.items, minlength=data.n_items) > 0
    lost = (int((~good).sum()), int((~users).sum()), int((~items).sum()))
    note = f"{lost[0]} events rated below {least:g} are dropped, and with them {lost[1]} users and {lost[2]} items"
    matrix = sp.csr_array(
        (kept.matrix.data, (np.cumsum(items) - 1)[kept.items], np.append(0, kept.indptr[1:][users])),
        shape=(int(users.sum()), int(items.sum())),
    )
    return Interactions(
        matrix,
        None if data.user_ids is None else data.user_ids[users],
        None if data.item_ids is None else data.item_ids[items],
        times=kept.times,
        ratings=kept.ratings,
        positions=kept.positions,
        notes=(*data.notes, note) if lost[0] else data.notes,
    )
