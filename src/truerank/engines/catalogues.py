"""Item factors as files that every worker maps into its memory: a block of rows per file, in the order of the ids."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from uuid import uuid4

import numpy as np
import pyarrow as pa
from numpy.typing import ArrayLike

from truerank.core.checks import AnyArray, InputError, Ints, check_whole, shown
from truerank.formats.ids import as_names, is_text

BYTES_PER_BLOCK = 2**26

Piece = tuple[AnyArray, AnyArray]
"""Ids of some items, and their factors, one row each."""


@dataclass(frozen=True)
class Catalogue:
    """The names of the files that hold the ids and the factors of all items.

    Attributes
    ----------
    ids : str
        File of the ids, which ascend.
    blocks : tuple of str
        Files of the factors, in the order of the ids.
    starts : tuple of int
        Number of the first item of each block, and finally the number of items.
    largest : float
        The largest absolute value of all factors.
    popularity : str, optional
        File of the numbers of training interactions of the items.
    """

    ids: str
    blocks: tuple[str, ...]
    starts: tuple[int, ...]
    largest: float
    popularity: str | None = None

    @property
    def files(self) -> tuple[str, ...]:
        """All file names."""
        return (self.ids, *self.blocks, *([] if self.popularity is None else [self.popularity]))

    def open(self, locate: Callable[[str], str | Path]) -> Items:
        """Map all files into memory; `locate` returns the path of a file by its name."""
        arrays = {name: np.load(locate(name), mmap_mode="r", allow_pickle=False) for name in self.files}
        blocks = tuple(arrays[name] for name in self.blocks)
        popularity = None if self.popularity is None else arrays[self.popularity]
        return Items(arrays[self.ids], blocks, np.array(self.starts), self.largest, popularity)


@dataclass(frozen=True, eq=False)
class Items:
    """The items of a catalogue, numbered 0, 1, ... in the order of their ids."""

    ids: AnyArray
    blocks: tuple[AnyArray, ...]
    starts: Ints
    largest: float = 0.0
    popularity: Ints | None = None

    @property
    def n_factors(self) -> int:
        """Length of the factors."""
        return int(self.blocks[0].shape[1])

    def rows(self, numbers: Ints) -> AnyArray:
        """Return the factors of items by their numbers, read from the blocks that own them."""
        rows = np.empty((numbers.size, self.n_factors), self.blocks[0].dtype)
        owner = np.searchsorted(self.starts, numbers, side="right") - 1
        for block in np.unique(owner):
            own = owner == block
            rows[own] = self.blocks[block][numbers[own] - self.starts[block]]
        return rows

    def numbers(self, ids: pa.Array) -> Ints:
        """Return the number of each id, -1 if there is no such item.

        Examples
        --------
        >>> items = Items(np.array(["ant", "bee"]), (np.ones((2, 1)),), np.array([0, 2]))
        >>> items.numbers(pa.array(["bee", "cat", "antelope"])).tolist()
        [1, -1, -1]
        """
        wanted = as_names(ids, "item")
        same_kind = (wanted.dtype.kind == "U") == (self.ids.dtype.kind == "U")
        if not same_kind or not self.ids.size:
            return np.full(wanted.size, -1)
        # longer text can't match; cutting it avoids a copy of the mapped ids
        cut = wanted.astype(self.ids.dtype)
        at = np.minimum(np.searchsorted(self.ids, cut), self.ids.size - 1)
        return np.where(self.ids[at] == wanted, at, -1)


def write_catalogue(pieces: Iterable[Piece], folder: str | Path, items_per_block: int | None = None) -> Catalogue:
    """Write the files of a catalogue, and return their names.

    Parameters
    ----------
    pieces : iterable of (ids, factors)
        In ascending order of the ids. At most one block and one piece are held in memory at a time.
    folder : path
        Where to write the files; their names are unique.
    items_per_block : int, optional
        By default as many as fit into 64 MB.

    Examples
    --------
    >>> import tempfile
    >>> folder = tempfile.mkdtemp()
    >>> catalogue = write_catalogue([(np.arange(5), np.eye(5))], folder, items_per_block=2)
    >>> catalogue.starts, len(catalogue.blocks)
    ((0, 2, 4, 5), 3)
    >>> catalogue.open(lambda name: f"{folder}/{name}").rows(np.array([4, 1])).argmax(axis=1).tolist()
    [4, 1]
    """
    if items_per_block is not None:
        check_whole("items_per_block", items_per_block)
    unique = f"truerank-{uuid4().hex}"
    ids: list[AnyArray] = []
    names: list[str] = []
    starts, largest = [0], 0.0
    for own, rows in _recut(_checked(pieces), items_per_block):
        names.append(f"{unique}-{len(names)}.npy")
        np.save(Path(folder) / names[-1], rows, allow_pickle=False)
        ids.append(own)
        starts.append(starts[-1] + len(rows))
        largest = max(largest, float(np.abs(rows).max(initial=0.0)))
    if not names:
        raise InputError("the item factors must have at least one row, got none.")
    np.save(Path(folder) / f"{unique}-ids.npy", np.concatenate(ids), allow_pickle=False)
    return Catalogue(f"{unique}-ids.npy", tuple(names), tuple(starts), largest)


def add_popularity(catalogue: Catalogue, folder: str | Path, ids: pa.Array, counts: Ints) -> Catalogue:
    """Write how often items occur in the training data, next to the other files; items not given occur 0 times."""
    items = catalogue.open(lambda name: Path(folder) / name)
    numbers = items.numbers(ids)
    if np.any(numbers < 0):
        raise InputError(f"item {shown(ids[int(np.argmin(numbers))].as_py())} of `train` has no factors; leave it out.")
    popularity = np.zeros(items.ids.size, np.int64)
    popularity[numbers] = counts
    name = catalogue.ids.replace("-ids", "-popularity")
    np.save(Path(folder) / name, popularity, allow_pickle=False)
    return replace(catalogue, popularity=name)


def array_pieces(item_factors: ArrayLike) -> Iterator[Piece]:
    """Yield an array of factors as one piece; the ids are the numbers of its rows."""
    factors = np.asarray(item_factors)
    if factors.ndim != 2 or factors.dtype.kind not in "fiu":
        got = f"{factors.dtype} of shape {factors.shape}"
        raise InputError(f"item factors must be a two-dimensional array of numbers, got {got}.")
    yield np.arange(len(factors)), factors if factors.dtype == np.float32 else factors.astype(np.float64)


def table_piece(ids: pa.Array, features: pa.Array) -> Piece:
    """Return a piece from a column of ids and a column of lists of numbers."""
    if not (is_text(ids.type) or pa.types.is_integer(ids.type)):
        raise InputError(f"item ids must be whole numbers or text, got {ids.type}.")
    return as_names(ids, "item"), factor_rows(features, "item", ids)


def factor_rows(features: pa.Array, role: str, ids: pa.Array) -> AnyArray:
    """Return lists of numbers as the rows of an array, or raise `InputError` naming the user or item.

    Examples
    --------
    >>> factor_rows(pa.array([[1.0], [1.0, 2.0]]), "item", pa.array(["a", "b"]))
    Traceback (most recent call last):
    ...
    truerank.InputError: all factors must have the same length, got 2 numbers for item 'b' and 1 for the first.
    """
    if features.null_count:
        raise InputError(f"{role} {_name(ids, features.is_null())} has no factors.")
    sizes = features.value_lengths().to_numpy(zero_copy_only=False)
    if np.any(other := sizes != sizes[:1]):
        at = int(np.argmax(other))
        both = f"{sizes[at]} numbers for {role} {shown(ids[at].as_py())} and {sizes[0]} for the first"
        raise InputError(f"all factors must have the same length, got {both}.")
    numbers = features.flatten()
    rows = numbers.to_numpy(zero_copy_only=False).reshape(len(features), int(sizes[0]) if sizes.size else 0)
    if not np.isfinite(rows).all():
        name = _name(ids, pa.array(~np.isfinite(rows).all(axis=1)))
        raise InputError(f"factors must be finite, but those of {role} {name} are not.")
    return rows


def _name(ids: pa.Array, chosen: pa.Array) -> str:
    return shown(ids[chosen.to_pylist().index(True)].as_py())


def _checked(pieces: Iterable[Piece]) -> Iterator[Piece]:
    """Refuse pieces of different kinds, and ids that don't ascend."""
    before: Piece | None = None
    for ids, rows in pieces:
        if not ids.size:
            continue
        if before is not None and before[1].shape[1] != rows.shape[1]:
            both = f"{rows.shape[1]} for item {shown(ids.tolist()[0])} and {before[1].shape[1]} for others"
            raise InputError(f"all factors must have the same length, got {both}.")
        known = ids if before is None else np.concatenate([before[0][-1:], ids])
        if np.any(wrong := known[1:] <= known[:-1]):
            raise InputError(f"each item must have factors once, but {shown(known[1:][wrong].tolist()[0])} does not.")
        before = ids, rows
        yield ids, rows


def _recut(pieces: Iterable[Piece], size: int | None) -> Iterator[Piece]:
    """Yield the same rows in pieces of the given size; the last one may be smaller."""
    kept: list[Piece] = []
    for ids, rows in pieces:
        most = size or max(BYTES_PER_BLOCK // max(rows[:1].nbytes, 1), 1)
        kept.append((ids, rows))
        while sum(len(own) for own, _ in kept) >= most:
            whole = _joined(kept)
            yield whole[0][:most], whole[1][:most]
            kept = [(whole[0][most:], whole[1][most:])]
    if any(len(own) for own, _ in kept):
        yield _joined(kept)


def _joined(pieces: list[Piece]) -> Piece:
    if len(pieces) == 1:
        return pieces[0]
    ids, rows = zip(*pieces, strict=True)
    return np.concatenate(ids), np.concatenate(rows)
