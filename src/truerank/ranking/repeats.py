"""Whether an item is in a list more than once, for millions of rows without sorting them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from truerank.arrays import AnyArray, Ints

# entries of the lookup table: few enough for a cache, but enough for several lists at once
_TABLE = 1 << 20
_LISTS = 16


@dataclass(frozen=True)
class Numbered:
    """Items as whole numbers ``low..low + span - 1``, the same number for the same item."""

    numbers: AnyArray
    low: int
    span: int

    @classmethod
    def of(cls, items: pa.Array | pa.DictionaryArray) -> Numbered:
        """Take whole numbers as they are if they lie close together; otherwise number the distinct items."""
        if pa.types.is_int64(items.type) and len(items):
            plain = items.to_numpy(zero_copy_only=False)
            low, high = int(plain.min()), int(plain.max())
            if high - low < max(4 * plain.size, _TABLE):
                return cls(plain, low, high - low + 1)
        encoded = items if pa.types.is_dictionary(items.type) else items.dictionary_encode()
        return cls(encoded.indices.to_numpy(), 0, max(len(encoded.dictionary), 1))


def first_repeat(items: Numbered, starts: Ints) -> int | None:
    """Return a row whose item is in its list more than once, the first one found; None if there is none.

    Every row writes its number at its list's place for its item, and reads it again: where another number is read,
    another row of the list has the item. Numbers need to differ only within a list, so a few bits suffice.

    Parameters
    ----------
    items : Numbered
        The items of all lists, one list below the other.
    starts : array of int
        Row of the top of each list, and at last the number of rows.

    Examples
    --------
    >>> first_repeat(Numbered.of(pa.array([7, 8, 8, 9, 8])), np.array([0, 2, 5]))
    2
    """
    sizes, n_lists = np.diff(starts), starts.size - 1
    together = max(_TABLE // items.span, _LISTS)
    most = int(np.max(np.diff(starts[np.append(np.arange(0, n_lists, together), n_lists)]), initial=0))
    rows = np.arange(most).astype(np.min_scalar_type(int(sizes.max(initial=1)) - 1))
    table = np.zeros(min(together, n_lists) * items.span, dtype=rows.dtype)
    shift, place, again = np.arange(together) * items.span - items.low, np.empty(most, np.int64), np.empty_like(rows)
    for first in range(0, n_lists, together):
        block = slice(first, min(first + together, n_lists))
        begin, end = int(starts[block.start]), int(starts[block.stop])
        size = end - begin
        np.add(items.numbers[begin:end], np.repeat(shift[: block.stop - first], sizes[block]), out=place[:size])
        table[place[:size]] = rows[:size]
        table.take(place[:size], out=again[:size], mode="clip")
        if np.any(differ := again[:size] != rows[:size]):
            return int(begin + np.argmax(differ))
    return None
