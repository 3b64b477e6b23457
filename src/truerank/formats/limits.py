"""How large a compressed file may unpack, so that a small file can't fill the memory."""

from __future__ import annotations

import os
import re
from typing import TYPE_CHECKING

from truerank.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

LIMIT_VARIABLE = "TRUERANK_UNPACK_LIMIT"
_ROWS = 1 << 16  # unpacked at once, because text of 2 GiB does not fit into one array


def unpack_limit(packed: int) -> int:
    """Return how many bytes a compressed file of `packed` bytes may unpack to.

    It is 1 GiB or 50 times the packed size, whichever is more. The environment variable TRUERANK_UNPACK_LIMIT
    overrides it with a number of bytes.

    Examples
    --------
    >>> unpack_limit(1_000) == 2**30, unpack_limit(10**9) == 50 * 10**9
    (True, True)
    """
    given = os.environ.get(LIMIT_VARIABLE)
    if given is None:
        return max(1 << 30, 50 * packed)
    if not re.fullmatch(r"[0-9]{1,18}", given):
        raise InputError(f"{LIMIT_VARIABLE} must be a number of bytes, got {given!r}.")
    return int(given)


def check_unpacked(name: str, size: int, packed: int) -> None:
    """Raise `InputError` if something unpacks to more bytes than `unpack_limit` allows."""
    if size > (limit := unpack_limit(packed)):
        raise InputError(
            f"{name} unpacks to more than {limit:,} bytes; if this is intended, set the environment variable "
            f"{LIMIT_VARIABLE} to the number of bytes to allow."
        )


def unpacked_size(column: pa.ChunkedArray) -> int:
    """Return the bytes that a column takes once its dictionaries are unpacked, also those in lists.

    Examples
    --------
    >>> import pyarrow as pa
    >>> unpacked_size(pa.chunked_array([pa.array(["x" * 1_000] * 500).dictionary_encode()])) > 500_000
    True
    """
    return sum(_array_size(chunk) for chunk in column.chunks)


def _array_size(array: pa.Array) -> int:
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_dictionary(array.type) and not pa.types.is_primitive(array.type.value_type):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return array.nbytes + (pc.sum(lengths.take(array.indices)).as_py() or 0)
    if pa.types.is_list(array.type) or pa.types.is_large_list(array.type) or pa.types.is_fixed_size_list(array.type):
        return array.nbytes + _array_size(array.flatten())
    return int(array.nbytes)


def unpacked(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionaries."""
    import pyarrow as pa

    kind = _plain_type(column.type)
    if kind == column.type:
        return column
    pieces = [chunk.slice(at, _ROWS).cast(kind) for chunk in column.chunks for at in range(0, len(chunk), _ROWS)]
    return pa.chunked_array(pieces, kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    import pyarrow as pa

    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_type(kind.value_type))
    return pa.list_(_plain_type(kind.value_type)) if pa.types.is_list(kind) else kind
