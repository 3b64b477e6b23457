"""The ground truth as sorted whole numbers, and which rows of lists hold a relevant item of their user."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.arrays import AnyArray, Floats, Ints
from truerank.errors import InputError

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
    def of(cls, facts: pa.Table) -> Truth:
        encoded = column(facts, "user").dictionary_encode()
        users, user = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
        item, grades = column(facts, "item"), None
        if "relevance" in facts.column_names:
            grades = _grades(facts)
            kept = grades > 0
            user, item, grades = user[kept], item.filter(pa.array(kept)), grades[kept]
        items = Codes.of(item)
        keys, grades = _sorted(user * items.span + items.encode(item), grades)
        n_relevant = np.bincount(keys // items.span, minlength=len(users))
        return cls(users, items, keys, grades, n_relevant, ())._without_repeats()

    def _without_repeats(self) -> Truth:
        """Let repeated rows count once, if they don't contradict each other."""
        fresh = np.diff(self.keys, prepend=-1) > 0
        if fresh.all():
            return self
        if self.grades is not None and np.any(differs := ~fresh[1:] & (self.grades[1:] != self.grades[:-1])):
            at = int(np.argmax(differs))
            raise InputError(f"{self.name(at)} has two grades, {self.grades[at]:g} and {self.grades[at + 1]:g}.")
        return replace(
            self,
            keys=self.keys[fresh],
            grades=None if self.grades is None else self.grades[fresh],
            n_relevant=np.bincount(self.keys[fresh] // self.items.span, minlength=len(self.users)),
            notes=(f"{int((~fresh).sum())} repeated rows of the truth count once",),
        )

    @property
    def item_names(self) -> AnyArray:
        """Item of each key."""
        return self.items.decode_all(self.keys % self.items.span)

    def name(self, position: int) -> str:
        """Say which user and item a key stands for."""
        user, item = divmod(int(self.keys[position]), self.items.span)
        return f"item {self.items.decode(item)!r} of user {self.users[user].as_py()!r}"


def _grades(facts: pa.Table) -> Floats:
    grades = floats(facts, "relevance")
    if np.any(bad := np.isnan(grades)):
        row = int(np.argmax(bad))
        user, item = facts["user"][row].as_py(), facts["item"][row].as_py()
        raise InputError(f"the relevance of item {item!r} for user {user!r} is NaN (row {row + 1}).")
    return grades


def _sorted(keys: Ints, grades: Floats | None) -> tuple[Ints, Floats | None]:
    if grades is None:
        return np.sort(keys), None
    order = np.argsort(keys)
    return keys[order], grades[order]


@dataclass(frozen=True)
class Codes:
    """Small whole numbers for the relevant items: their distance from the least id, or a hash table."""

    least: int | None
    span: int
    distinct: pa.Array | None

    @classmethod
    def of(cls, items: pa.Array) -> Codes:
        if pa.types.is_integer(items.type) and len(items):
            ends = pc.min_max(items)
            least, span = ends["min"].as_py(), ends["max"].as_py() - ends["min"].as_py() + 1
            if span <= _WIDEST_SPAN:
                return cls(least, span, None)
        distinct = items.unique()
        return cls(None, max(len(distinct), 1), distinct)

    def encode(self, items: pa.Array) -> Ints:
        """Return the code of each item, something outside 0..span-1 for those that are not relevant."""
        if self.distinct is None:
            return items.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) - np.int64(self.least or 0)
        return index_in(items, self.distinct)

    def decode_all(self, codes: Ints) -> AnyArray:
        if self.distinct is None:
            return codes + np.int64(self.least or 0)
        return self.distinct.to_numpy(zero_copy_only=False).astype(np.str_)[codes]

    def decode(self, code: int) -> Any:
        return code + (self.least or 0) if self.distinct is None else self.distinct[code].as_py()


def find(user: Ints, sizes: Ints, items: Ints, truth: Truth) -> tuple[Ints, Ints]:
    """Return the rows that hold a relevant item of their user, and its position in the truth.

    Few rows do. A table of marks with a stretch of slots per user, hence always in the cache, rules
    out most others; a binary search decides on the rest.

    Parameters
    ----------
    user, sizes : arrays of int, one per list
        Whose list it is, -1 for users that the truth does not know, and how many rows it has.
    items : array of int, one per row
        Codes of the listed items.
    """
    width = 1 << int(8 * truth.keys.size / max(len(truth.users), 1)).bit_length()
    # unknown users, -1, share the last stretch, in which there are no marks
    marks = np.zeros((len(truth.users) + 1) * width, dtype=np.bool_)
    relevant_user, relevant_item = np.divmod(truth.keys, truth.items.span)
    marks[relevant_user * width + _slot(relevant_item, width)] = True
    stretch = np.repeat(user * width, sizes)
    rows = [
        start + np.flatnonzero(marks[stretch[start : start + _ROWS] + _slot(items[start : start + _ROWS], width)])
        for start in range(0, items.size, _ROWS)
    ]
    return _decide(np.concatenate(rows) if rows else np.zeros(0, dtype=np.int64), stretch, width, items, truth)


def _slot(items: Ints, width: int) -> Ints:
    """Return a slot for each item within its user's stretch, as if at random."""
    mixed = items * np.int64(0x9E3779B1)
    mixed >>= 15
    mixed &= width - 1
    return mixed


def _decide(rows: Ints, stretch: Ints, width: int, items: Ints, truth: Truth) -> tuple[Ints, Ints]:
    """Keep the marked rows whose user and item are a pair of the truth."""
    user, item = stretch[rows] // width, items[rows]
    known = (user >= 0) & (item >= 0) & (item < truth.items.span)
    keys = np.where(known, user * truth.items.span + item, -1)
    place = np.minimum(np.searchsorted(truth.keys, keys), max(truth.keys.size - 1, 0))
    hit = truth.keys[place] == keys
    return rows[hit], place[hit]


def column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def floats(table: pa.Table, name: str) -> Floats:
    column = table[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        raise InputError(f"the {name} must be numbers, got {column.type}.")
    return column.to_numpy().astype(np.float64, copy=False)


def index_in(names: pa.Array, known: pa.Array) -> Ints:
    """Position of each name among the known ones, -1 for the others."""
    return pc.fill_null(pc.index_in(names, value_set=known), -1).to_numpy(zero_copy_only=False).astype(np.int64)
