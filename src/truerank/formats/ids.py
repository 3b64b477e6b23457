"""The rule for ids: two are the same if they are spelled the same; a whole number is spelled in decimal digits.

Ids in text files are text. If all ids of a column are spelled the way whole numbers are printed (12, not 012, +12 or
12.0), they are stored as numbers, which is equivalent and faster. Numbers and text are compared as text.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.core.checks import AnyArray, InputError, first_true

_MISSING_WORDS = pa.array(["#N/A", "<NA>", "N/A", "NULL", "NaN", "NaT", "None", "nan", "null"])
_NA = pa.array(["NA"])  # may be a code, such as that of Namibia


def id_column(column: pa.ChunkedArray, role: str, place: Callable[[int], str]) -> pa.ChunkedArray:
    """Return ids as whole numbers, large_string or codes of these; `place` returns where a row is, for messages.

    Examples
    --------
    >>> id_column(pa.chunked_array([[3.0, 5.0]]), "user", str).to_pylist()
    [3, 5]
    >>> id_column(pa.chunked_array([[3.5]]), "user", lambda row: f"row {row + 1}")
    Traceback (most recent call last):
    ...
    truerank.InputError: row 1: the user id must be a whole number or text, got 3.5.
    """
    kind = column.type
    if pa.types.is_integer(kind):
        return column if pa.types.is_signed_integer(kind) else _first_cast(column, pa.int64())
    if is_text(kind) or pa.types.is_dictionary(kind):
        text = column.cast(pa.large_string()) if is_text(kind) else column
        # fixed-width text does not keep null characters
        if any((_bytes_of(chunk)[1] == 0).any() for chunk in distinct(text).chunks):
            row = _first_row(text, lambda values: pc.match_substring(values, "\0"))
            raise InputError(f"{place(row or 0)}: the {role} id must not contain a null character.")
        return text
    if pa.types.is_floating(kind):
        return _whole(column, role, place)
    if pa.types.is_decimal(kind) and kind.scale == 0:
        return numbers_if_spelled_so(column.cast(pa.large_string()))
    shown = repr(column[0].as_py()) if len(column) else str(kind)
    raise InputError(f"{place(0)}: the {role} id must be a whole number or text, got {shown}.")


def numbers_if_spelled_so(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Turn text into whole numbers if every value is spelled the way whole numbers are printed.

    Examples
    --------
    >>> numbers_if_spelled_so(pa.chunked_array([["7", "12"]])).to_pylist()
    [7, 12]
    >>> numbers_if_spelled_so(pa.chunked_array([["7", "012"]])).to_pylist()
    ['7', '012']
    >>> numbers_if_spelled_so(pa.chunked_array([["18446744073709551615"]])).type
    DataType(uint64)
    """
    texts = distinct(column)
    if not is_words(column.type) or column.null_count or not all(map(_spelled_as_numbers, texts.chunks)):
        return column
    numbers = _first_cast(texts, pa.int64(), pa.uint64()) if len(column) else column
    return decoded(column).cast(numbers.type) if pa.types.is_integer(numbers.type) else column


def distinct(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return each text once if a column holds codes, as columns read in pieces do; otherwise the column itself."""
    coded = pa.types.is_dictionary(column.type) and column.num_chunks > 0
    return pa.chunked_array([column.chunk(0).dictionary]) if coded else column


def numbered(*columns: pa.ChunkedArray) -> tuple[pa.Array, list[AnyArray]]:
    """Return the distinct ids of all columns, as they first occur, and the position of each row's id among them.

    Examples
    --------
    >>> ids, (first, second) = numbered(pa.chunked_array([[7, 5, 7]]), pa.chunked_array([[5, 9]]))
    >>> ids.to_pylist(), first.tolist(), second.tolist()
    ([7, 5, 9], [0, 1, 0], [1, 2])
    """
    if all(pa.types.is_dictionary(column.type) for column in columns):
        coded = pa.chunked_array([chunk for column in columns for chunk in column.chunks])
        coded = coded.unify_dictionaries() if len(columns) > 1 else coded
    else:
        alike = comparable(*columns)
        together = pa.chunked_array([chunk for column in alike for chunk in column.chunks], alike[0].type)
        if (found := _numbered_in_order(together)) is not None:
            return found[0], np.split(found[1], np.cumsum([len(column) for column in columns])[:-1])
        coded = together.dictionary_encode()
    codes = np.concatenate([chunk.indices.to_numpy() for chunk in coded.chunks])
    return coded.chunk(0).dictionary, np.split(codes, np.cumsum([len(column) for column in columns])[:-1])


def _numbered_in_order(column: pa.ChunkedArray) -> tuple[pa.Array, AnyArray] | None:
    """Return the distinct ids and the position of each row's; None unless they are whole numbers that never fall.

    A table of all ids, by which others are found, takes up to 100 bytes for each.
    """
    if not pa.types.is_signed_integer(column.type) or column.null_count or not len(column):
        return None
    values = np.concatenate([chunk.to_numpy() for chunk in column.chunks])
    if np.any(values[1:] < values[:-1]):
        return None
    fresh = np.append(True, values[1:] != values[:-1])
    codes = np.cumsum(fresh, dtype=np.int32)
    codes -= 1
    return pa.array(values if fresh.all() else values[fresh]), codes


def comparable(*columns: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Convert columns of ids to one type, so that the same ids are equal: numbers if all are numbers, else text.

    Examples
    --------
    >>> [column.to_pylist() for column in comparable(pa.chunked_array([[7]]), pa.chunked_array([["7", "07"]]))]
    [['7'], ['7', '07']]
    """
    columns = tuple(map(decoded, columns))
    kinds = {column.type for column in columns}
    if len(kinds) == 1:
        return list(columns)
    if all(pa.types.is_signed_integer(kind) for kind in kinds):
        widest = max(kinds, key=lambda kind: kind.bit_width)
        return [column.cast(widest) for column in columns]
    numbers = all(pa.types.is_integer(kind) for kind in kinds)
    kind = pa.uint64() if numbers and not any(map(_has_negatives, columns)) else pa.large_string()
    return [column.cast(kind) for column in columns]


def session_names(users: pa.ChunkedArray, sessions: pa.ChunkedArray) -> pa.Array:
    """Return a name for each session of a user.

    Examples
    --------
    >>> session_names(pa.chunked_array([["ann", "bob"]]), pa.chunked_array([[1, 2]])).to_pylist()
    ['ann (1)', 'bob (2)']
    """
    user, session = (decoded(column).cast(pa.large_string()) for column in (users, sessions))
    before, after, nothing = (pa.scalar(text, pa.large_string()) for text in (" (", ")", ""))
    names = pc.binary_join_element_wise(user, before, session, after, nothing)
    return names.combine_chunks() if isinstance(names, pa.ChunkedArray) else names


def as_names(ids: pa.Array, role: str) -> AnyArray:
    """Return distinct ids as a NumPy array of numbers or fixed-width text, which can be stored without pickle."""
    if pa.types.is_signed_integer(ids.type):
        return ids.to_numpy(zero_copy_only=False).astype(np.int64)
    if not is_text(ids.type):
        return ids.to_numpy(zero_copy_only=False)
    longest = pc.max(pc.utf8_length(ids)).as_py() or 1
    # one long id makes all of them long
    if 4 * longest * len(ids) > max(1 << 28, 32 * ids.nbytes):
        raise InputError(f"the {role} ids are too long: {len(ids)} of them, and one has {longest:,} characters.")
    return ids.to_numpy(zero_copy_only=False).astype(np.str_)


def is_text(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's types of text."""
    return any(test(kind) for test in (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view))


def decoded(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column of codes as plain values."""
    return column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column


def missing(column: pa.ChunkedArray) -> int | None:
    """Return the first row without a value, None if all have one; empty text is not a value."""
    empty = _first_row(column, lambda texts: pc.equal(pc.binary_length(texts), 0)) if is_words(column.type) else None
    if column.null_count == 0:
        return empty
    null = pc.index(column.is_null(), True).as_py()
    return null if empty is None else min(null, empty)


def is_words(kind: pa.DataType) -> bool:
    """Whether a column holds text, or codes of it."""
    return is_text(kind) or (pa.types.is_dictionary(kind) and is_text(kind.value_type))


def _first_row(column: pa.ChunkedArray, test: Callable[[pa.Array], pa.Array]) -> int | None:
    """Return the first row whose value passes a test, which sees each text once if the column holds codes."""
    if not pa.types.is_dictionary(column.type):
        first = pc.index(test(column), True).as_py()
        return None if first < 0 else first
    passing = np.flatnonzero(test(distinct(column)).to_numpy()).astype(np.int32)
    if not passing.size:
        return None
    codes = pa.chunked_array([chunk.indices for chunk in column.chunks])
    return pc.index(pc.is_in(codes, value_set=pa.array(passing)), True).as_py()


def missing_word(column: pa.ChunkedArray) -> int | None:
    """Return the first row with a word that programs write for a missing value (NaN, null, ...), None if there is none.

    NA counts as such a word only if all others are numbers.
    """
    first = _first_row(column, lambda texts: pc.is_in(texts, value_set=_MISSING_WORDS.cast(texts.type)))
    if first is not None:
        return first
    first = _first_row(column, _is_na)
    if first is None:
        return None
    texts = distinct(column)
    others = texts.filter(pc.invert(_is_na(texts)))
    return first if len(others) and pa.types.is_integer(numbers_if_spelled_so(others).type) else None


def _is_na(texts: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.is_in(texts, value_set=_NA.cast(texts.type))


def _first_cast(column: pa.ChunkedArray, *kinds: pa.DataType) -> pa.ChunkedArray:
    """Return a column as the first of these types that holds all values; the column itself if none does."""
    for kind in kinds:
        with suppress(pa.ArrowInvalid):
            return column.cast(kind)
    return column


def _whole(column: pa.ChunkedArray, role: str, place: Callable[[int], str]) -> pa.ChunkedArray:
    values = column.cast(pa.float64()).to_numpy()
    if (row := first_true(np.isnan(values))) is not None:
        raise InputError(f"{place(row)}: the {role} is missing.")
    good = (np.floor(values) == values) & (np.abs(values) < 2**53)
    if (row := first_true(~good)) is not None:
        rule = "text" if np.floor(values[row]) == values[row] else "a whole number or text"
        raise InputError(f"{place(row)}: the {role} id must be {rule}, got {values[row]}.")
    return pa.chunked_array([pa.array(values.astype(np.int64))])


def _spelled_as_numbers(text: pa.Array) -> bool:
    """Whether all are digits after an optional minus, without leading zeros; the cast refuses anything else."""
    bounds, content = _bytes_of(text)
    sizes = np.diff(bounds)
    if not sizes.all():
        return False
    other = content - np.uint8(ord("0")) > 9
    first = content[bounds[:-1]]
    padded = (first == ord("0")) & (sizes > 1)
    if other.any():
        if np.any(content[other] != ord("-")):
            return False
        negative = np.flatnonzero((first == ord("-")) & (sizes > 1))
        padded[negative] = content[bounds[negative] + 1] == ord("0")
    return not padded.any()


def _bytes_of(text: pa.Array) -> tuple[AnyArray, AnyArray]:
    """Return where strings begin and end, and the bytes of all strings."""
    wide = np.int64 if pa.types.is_large_string(text.type) else np.int32
    bounds = np.frombuffer(text.buffers()[1], dtype=wide, count=text.offset + len(text) + 1)[text.offset :]
    content = text.buffers()[2]
    if content is None or bounds[0] == bounds[-1]:
        return np.zeros_like(bounds), np.zeros(0, dtype=np.uint8)
    plain = np.frombuffer(content, dtype=np.uint8)[bounds[0] : bounds[-1]]
    return bounds - bounds[0] if bounds[0] else bounds, plain


def _has_negatives(column: pa.ChunkedArray) -> bool:
    return pa.types.is_signed_integer(column.type) and len(column) > 0 and pc.min(column).as_py() < 0


def first_not_a_number(column: pa.ChunkedArray) -> int:
    """Return the first row of text that is not spelled the way whole numbers are printed."""
    return max(pc.index(pc.match_substring_regex(column, r"^(0|-?[1-9][0-9]*)$"), False).as_py(), 0)
