"""The ground truth that lists are judged by: the relevant items of each user, and their grades."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, counted, shown

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
        if pa.types.is_signed_integer(items.type) and len(items):
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


# item ids become codes by subtraction while they span no more than this; beyond, they are hashed
_WIDEST_SPAN = 2**31
# rows looked up at once: their temporaries stay in the cache
_ROWS = 1 << 15


@dataclass(frozen=True)
class Truth:
    """The relevant (user, item) pairs as sorted whole numbers, user by user."""

    users: pa.Array
    items: Codes
    keys: Ints
    grades: Floats | None
    n_relevant: Ints
    notes: tuple[str, ...]

    @classmethod
    def of(cls, user_ids: pa.Array, item: pa.Array, grades: Floats | None) -> Truth:
        """Sort pairs of ids, with their grades; those without a grade above 0 are not relevant."""
        encoded = user_ids.dictionary_encode()
        users, user = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
        if grades is not None:
            kept = grades > 0
            user, item, grades = user[kept], item.filter(pa.array(kept)), grades[kept]
        items = Codes.of(item)
        keys, grades = _sorted(user * items.span + items.encode(item), grades)
        n_relevant = np.bincount(keys // items.span, minlength=len(users))
        return cls(users, items, keys, grades, n_relevant, ())._without_repeats()

    def _without_repeats(self) -> Truth:
        """Count repeated rows once, unless they contradict each other."""
        fresh = np.diff(self.keys, prepend=-1) > 0
        if fresh.all():
            return self
        if self.grades is not None and np.any(differs := ~fresh[1:] & (self.grades[1:] != self.grades[:-1])):
            at = int(np.argmax(differs))
            raise InputError(f"{self.name(at)} has two grades, {self.grades[at]:g} and {self.grades[at + 1]:g}.")
        repeats = counted(int((~fresh).sum()), "repeated row of the truth counts", "repeated rows of the truth count")
        return replace(
            self,
            keys=self.keys[fresh],
            grades=None if self.grades is None else self.grades[fresh],
            n_relevant=np.bincount(self.keys[fresh] // self.items.span, minlength=len(self.users)),
            notes=(f"{repeats} once",),
        )

    @property
    def item_names(self) -> AnyArray:
        """Item of each key."""
        return self.items.decode_all(self.keys % self.items.span)

    def name(self, position: int) -> str:
        """Return the user and item of a key, for messages."""
        user, item = divmod(int(self.keys[position]), self.items.span)
        return f"item {shown(self.items.decode(item))} of user {shown(self.users[user].as_py())}"


def _sorted(keys: Ints, grades: Floats | None) -> tuple[Ints, Floats | None]:
    if grades is None:
        return np.sort(keys), None
    order = np.argsort(keys)
    return keys[order], grades[order]


@dataclass(frozen=True)
class Codes:
    """Small whole numbers for the relevant items: the ids, their distance from the least one, or a hash table."""

    least: int | None
    span: int
    distinct: pa.Array | None

    @classmethod
    def of(cls, items: pa.Array) -> Codes:
        if pa.types.is_signed_integer(items.type) and len(items):
            least, most = (pc.min_max(items)[end].as_py() for end in ("min", "max"))
            if least >= 0 and most < _WIDEST_SPAN:
                return cls(0, most + 1, None)
            if most - least < _WIDEST_SPAN:
                return cls(least, most - least + 1, None)
        distinct = items.unique()
        return cls(None, max(len(distinct), 1), distinct)

    def encode(self, items: pa.Array) -> Ints:
        """Return the code of each item; a number outside 0..span-1 if the item is not relevant."""
        if self.distinct is None:
            plain: Ints = items.to_numpy(zero_copy_only=False)
            return plain - np.int64(self.least) if self.least else plain
        return index_in(items, self.distinct)

    def decode_all(self, codes: Ints) -> AnyArray:
        if self.distinct is None:
            return codes + np.int64(self.least or 0)
        return self.distinct.to_numpy(zero_copy_only=False).astype(np.str_)[codes]

    def decode(self, code: int) -> Any:
        return code + (self.least or 0) if self.distinct is None else self.distinct[code].as_py()


def find(user: Ints, starts: Ints, items: Ints, truth: Truth) -> tuple[Ints, Ints]:
    """Return the rows that hold a relevant item of their user, and its position in the truth.

    Few rows do. A table of marks with a stretch of slots per user, hence always in the cache, rules
    out most others; a binary search decides on the rest.

    Parameters
    ----------
    user : array of int, one per list
        Whose list it is, -1 for users that are not in the truth.
    starts : array of int, one per list and one more
        Row of the top of each list, and at last the number of rows.
    items : array of int, one per row
        Codes of the listed items.
    """
    bits = int(16 * truth.keys.size / max(len(truth.users), 1)).bit_length()
    # unknown users, -1, share the last stretch, in which there are no marks
    marks = np.zeros((len(truth.users) + 1) << bits, dtype=np.bool_)
    relevant_user, relevant_item = np.divmod(truth.keys, truth.items.span)
    marks[(relevant_user << bits) + _slot(relevant_item, bits)] = True
    blocks = [_marked(user, starts, lists, items, marks, bits, truth.items.span) for lists in _blocks(starts)]
    rows, keys = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    place = np.minimum(np.searchsorted(truth.keys, keys), max(truth.keys.size - 1, 0))
    hit = truth.keys[place] == keys
    return rows[hit], place[hit]


def _blocks(starts: Ints) -> list[slice]:
    """Divide the lists, at least one, into blocks of about `_ROWS` rows."""
    cuts = np.unique(np.append(np.searchsorted(starts, np.arange(0, starts[-1], _ROWS)), starts.size - 1))
    return [slice(*pair) for pair in zip(cuts[:-1].tolist(), cuts[1:].tolist(), strict=True)]


def _marked(
    user: Ints, starts: Ints, lists: slice, items: Ints, marks: Bools, bits: int, span: int
) -> tuple[Ints, Ints]:
    """Return the rows of some lists that are marked, and their keys; -1 where the item is not in the truth."""
    begin, end = int(starts[lists.start]), int(starts[lists.stop])
    owner = np.repeat(user[lists], np.diff(starts[lists.start : lists.stop + 1]))
    item = items[begin:end]
    rows = np.flatnonzero(marks[(owner << bits) + _slot(item, bits)])
    owner, item = owner[rows], item[rows]
    keys = np.where((owner >= 0) & (item >= 0) & (item < span), owner * span + item, -1)
    return rows + begin, keys


def _slot(items: Ints, bits: int) -> Ints:
    """Return a pseudo-random slot for each item within its user's stretch."""
    mixed = items * np.int64(0x9E3779B1)
    mixed >>= 15
    mixed &= (1 << bits) - 1
    return mixed


def index_in(names: pa.Array, known: pa.Array) -> Ints:
    """Position of each name among the known ones, -1 for the others."""
    return pc.fill_null(pc.index_in(names, value_set=known), -1).to_numpy(zero_copy_only=False).astype(np.int64)
