"""Loads the compiled loops that fit this processor, and hands them arrays.

The loops trust what they are given, so the types, contiguity and lengths of arrays are checked here.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Self

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints

FOLDER = Path(__file__).parent
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

LOOPS_VARIABLE, NUMPY = "TRUERANK_LOOPS", "numpy"
LEVELS = {"x86-64-v4-vnni": 4, "x86-64-v3": 3, "x86-64": 1, "arm64": 0, "native": 0}
"""The variants of the library, each with the `processor_level` that it needs."""


DONE, GAVE_UP, INVALID, NO_MEMORY = 0, 1, -2, -3
"""Status codes of functions; some functions return an index instead."""


_SIZE, _ADDRESS = ctypes.c_int64, ctypes.c_void_p


def address(array: AnyArray, kind: Any, size: int = 0) -> int:
    """Return the address of an array's numbers: contiguous, of this data type, and at least this many."""
    if array.dtype != kind or not array.flags.c_contiguous:
        raise TypeError(f"a compiled loop needs a contiguous array of {np.dtype(kind)}, got {array.dtype}.")
    _check_length(array.size, size)
    return array.ctypes.data


def _check_length(given: int, needed: int) -> None:
    if given < needed:
        raise ValueError(f"a compiled loop needs an array of at least {needed} numbers or rows, got {given}.")


class _Argument(ctypes.Structure):
    """An argument of a loop: the addresses and lengths of arrays, which live as long as it does."""

    arrays: Any
    kind: Any

    def keeping(self, arrays: Any, kind: Any = None) -> Self:
        """Return the argument itself, with the arrays that it points to and the type of their numbers."""
        self.arrays, self.kind = arrays, kind
        return self


class MatrixArgument(_Argument):
    """Rows of numbers, whatever their strides."""

    _fields_ = (
        ("numbers", _ADDRESS), ("rows", _SIZE), ("columns", _SIZE), ("row_step", _SIZE), ("column_step", _SIZE)
    )  # fmt: skip

    @classmethod
    def of(cls, array: AnyArray) -> Self:
        """Return a view of a two-dimensional array, or of a copy if its strides are not multiples of the item size."""
        if array.ndim != 2:
            raise TypeError(f"a compiled loop needs an array of two dimensions, got {array.ndim}.")
        size = array.itemsize
        if not array.flags.aligned or any(step % size for step in array.strides):
            array = array.copy()
        steps = (step // size for step in array.strides)
        return cls(array.ctypes.data, *array.shape, *steps).keeping(array, array.dtype)


class ListsArgument(_Argument):
    """A list of items per user; `next` is where to continue reading."""

    _fields_ = (("items", _ADDRESS), ("size", _SIZE), ("begin", _ADDRESS), ("end", _ADDRESS), ("next", _ADDRESS))

    @classmethod
    def of(cls, items: AnyArray, begin: Ints, end: Ints, next_: Ints) -> Self:
        """Return a view of the arrays, all but the first with one number per user."""
        ends = (address(each, np.int64, len(begin)) for each in (begin, end, next_))
        return cls(address(items, np.int32), len(items), *ends).keeping((items, begin, end, next_))

    @classmethod
    def of_rows(cls, indptr: AnyArray, indices: AnyArray) -> Self:
        """Return a view of all lists, copied if the types differ."""
        begin, end = (np.ascontiguousarray(each, np.int64) for each in (indptr[:-1], indptr[1:]))
        return cls.of(np.ascontiguousarray(indices, np.int32), begin, end, begin.copy())


class BlockArgument(_Argument):
    """Users, their two lists, and the counts for each held-out item."""

    _fields_ = (
        ("users", _SIZE), ("train", ListsArgument), ("test", ListsArgument),
        ("targets", _ADDRESS), ("order", _ADDRESS), ("seen", _ADDRESS), ("above", _ADDRESS), ("tied", _ADDRESS),
    )  # fmt: skip

    @classmethod
    def of(cls, train: Sequence[AnyArray], test: Sequence[AnyArray], targets: AnyArray, *results: AnyArray) -> Self:
        """Return a view of two lists, as `ListsArgument` takes them, and of arrays with one entry per held-out item."""
        lists, (items, begin, _, _) = [ListsArgument.of(*each) for each in (train, test)], test
        _check_length(len(train[1]), len(begin))
        kinds = (targets.dtype, np.int64, np.bool_, np.int64, np.int64)
        places = [address(each, kind, len(items)) for each, kind in zip((targets, *results), kinds, strict=True)]
        return cls(len(begin), *lists, *places).keeping((lists, (targets, *results)), targets.dtype)


class OrderedArgument(_Argument):
    """The catalogue in another order: the item at each position, and the length of its factors."""

    _fields_ = (("size", _SIZE), ("items", _ADDRESS), ("lengths", _ADDRESS))

    @classmethod
    def of(cls, items: AnyArray, lengths: AnyArray) -> Self:
        """Return a view of the arrays, with one entry per item."""
        places = address(items, np.int32), address(lengths, np.float64, len(items))
        return cls(len(items), *places).keeping((items, lengths))


class BestArgument(_Argument):
    """Users, the items to leave out, and room for the best k of the others."""

    _fields_ = (
        ("users", _SIZE), ("k", _SIZE), ("excluded", ListsArgument),
        ("scores", _ADDRESS), ("items", _ADDRESS), ("found", _ADDRESS),
    )  # fmt: skip

    @classmethod
    def of(cls, excluded: Sequence[AnyArray], items: AnyArray, scores: AnyArray, found: Ints) -> Self:
        """Return a view of lists, as `ListsArgument` takes them, and of a row of items and scores per user."""
        lists, users = ListsArgument.of(*excluded), len(items)
        _check_length(len(excluded[1]), users)
        places = address(scores, scores.dtype, items.size), address(items, np.int32), address(found, np.int64, users)
        return cls(*items.shape, lists, *places).keeping((lists, (items, scores, found)), scores.dtype)


class RowsArgument(_Argument):
    """The positions of the entries of a sparse matrix."""

    _fields_ = (("count", _SIZE), ("begin", _ADDRESS), ("columns", _ADDRESS), ("size", _SIZE))

    @classmethod
    def of(cls, indptr: AnyArray, indices: AnyArray) -> Self:
        """Return a view of the structure of a CSR matrix, copied if the types differ."""
        begin, columns = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32)
        rows = cls(len(begin) - 1, address(begin, np.int64, 1), address(columns, np.int32), len(columns))
        return rows.keeping((begin, columns))


class HistoriesArgument(_Argument):
    """Rows of a sparse matrix with its values."""

    _fields_ = (("rows", RowsArgument), ("weights", _ADDRESS))

    @classmethod
    def of(cls, indptr: AnyArray, indices: AnyArray, weights: AnyArray) -> Self:
        """Return a view of a CSR matrix."""
        rows = RowsArgument.of(indptr, indices)
        return cls(rows, address(weights, weights.dtype, rows.size)).keeping((rows, weights), weights.dtype)


class DrawsArgument(_Argument):
    """How items are drawn at random for users."""

    _fields_ = (("n_items", _SIZE), ("users", _SIZE), ("way", _SIZE), ("seeds", _ADDRESS), ("sizes", _ADDRESS))

    @classmethod
    def of(cls, n_items: int, way: int, seeds: AnyArray, sizes: Ints) -> Self:
        """Return a view of the arrays, with one entry per user."""
        places = address(seeds, np.uint64, len(sizes)), address(sizes, np.int64)
        return cls(n_items, len(sizes), way, *places).keeping((seeds, sizes))


class Array:
    """The type of an argument that is a contiguous array of one data type, or None."""

    def __init__(self, kind: Any) -> None:
        self.kind = np.dtype(kind)

    def from_param(self, array: AnyArray | None) -> ctypes.c_void_p:
        """Return the address; ctypes calls this for each argument."""
        return ctypes.c_void_p(None if array is None else address(array, self.kind))


class Typed:
    """The type of an argument that is a structure of numbers of one data type."""

    def __init__(self, structure: type[_Argument], kind: Any) -> None:
        self.structure, self.kind = structure, np.dtype(kind)

    def from_param(self, given: Any) -> Any:
        """Return a pointer; ctypes calls this for each argument."""
        if not isinstance(given, self.structure) or given.kind != self.kind:
            got = getattr(given, "kind", type(given).__name__)
            raise TypeError(f"a compiled loop needs a {self.structure.__name__} of {self.kind}, got {got}.")
        return ctypes.byref(given)


_BLOCK, _ROWS, _BEST, _DRAWS, _LISTS, _ORDERED = map(
    ctypes.POINTER, (BlockArgument, RowsArgument, BestArgument, DrawsArgument, ListsArgument, OrderedArgument)
)
_FLOATS, _DOUBLES, _WHOLE, _PLACES, _SIZES = map(Array, (np.float32, np.float64, np.int16, np.int32, np.int64))
_NARROW = Typed(MatrixArgument, np.float32)


def _entries_of(kind: str) -> dict[str, list[Any]]:
    """Return the functions that there are for both types of numbers, with the types of their arguments."""
    numbers = Array(kind)
    matrix, rows = (Typed(each, kind) for each in (MatrixArgument, HistoriesArgument))
    entries = {
        "count_factors": [matrix, matrix, numbers, _BLOCK, _SIZE, _SIZE],
        "count_top": [matrix, matrix, numbers, _BLOCK, _ORDERED, _SIZE, _SIZE, _SIZE],
        "count_scores": [matrix, _BLOCK],
        "count_sparse": [rows, rows, _SIZE, _BLOCK],
        "round_factors": [matrix, numbers, _WHOLE, _DOUBLES],
        "count_among": [matrix, matrix, numbers, _WHOLE, _DOUBLES, _BLOCK, _DRAWS],
        "best_factors": [matrix, matrix, numbers, _BEST, _ORDERED, _SIZE, _SIZE],
        "best_scores": [matrix, _BEST],
        "best_sparse": [rows, rows, _SIZE, _BEST],
        "score_pairs": [matrix, matrix, numbers, _SIZES, _SIZES, _SIZE, numbers],
        "score_dense": [rows, matrix, numbers],
        "score_sparse": [rows, rows, _SIZE, numbers],
    }
    return {f"{name}_{kind}": arguments for name, arguments in entries.items()}


ENTRIES: dict[str, list[Any]] = {
    **_entries_of("float32"),
    **_entries_of("float64"),
    "processor_level": [],
    "count_narrow": _entries_of("float64")["count_factors_float64"],
    "count_int16": _entries_of("float32")["count_top_float32"],
    "count_sieve": _entries_of("float32")["count_top_float32"],
    "best_sieve": _entries_of("float32")["best_factors_float32"],
    "int16_lanes": [],
    "place_lists": [_BLOCK, _PLACES, _SIZE, _PLACES],
    "draw_items": [_DRAWS, _LISTS, _LISTS, _PLACES],
    "check_columns": [_ROWS, _SIZE],
    "sum_squares": [_FLOATS, _SIZE, _SIZE, _SIZE, _DOUBLES, _FLOATS],
    "solve_rows": [_ROWS, _SIZE, _SIZE, _NARROW, _DOUBLES, _DOUBLES, _DOUBLES],
    "improve_rows": [_ROWS, _SIZE, _SIZE, _NARROW, _FLOATS, _DOUBLES, _SIZE, _FLOATS],
    "inverse_block": [],
    "invert_block": [_DOUBLES],
    "most_together": [_ROWS, _ROWS, _SIZE, _SIZE],
    "count_together": [_ROWS, _ROWS, _SIZE, _SIZE, _SIZES, _PLACES, _DOUBLES],
    "keep_largest": [_SIZE, _SIZES, _PLACES, _DOUBLES, _SIZE, _SIZE],
    "sweep_columns": [_DOUBLES, _SIZE, _DOUBLES, _DOUBLES, _DOUBLES, _SIZE],
}
"""The types of the arguments of all functions; each returns an int64."""

_Needed = Iterable[tuple[Any, int]]


def _for_factors(users: Any, items: Any, bias: Any, block: Any, *rest: Any) -> _Needed:
    stop, columns = rest[-1], items.columns + (bias is not None)
    return (users, block.users), (items, stop), (bias, items.rows), (range(users.columns), columns)


def _for_least_squares(
    rows: Any, _start: int, stop: int, factors: Any, gram: Any, penalties: Any, *rest: Any
) -> _Needed:
    width = factors.columns
    return (rows, stop), (gram, width**2), (penalties, stop), (rest[-1], stop * width)


def _for_a_sweep(matrix: Any, width: int, panel: Any, pivot: Any, scaled: Any, _start: int) -> _Needed:
    block = call("inverse_block")
    return (matrix, width**2), (panel, block * width), (pivot, block**2), (scaled, block * width)


WHOLE_COLUMNS = 16  # rows of whole numbers are padded to a multiple of this


def _whole_columns(items: Any, bias: Any) -> int:
    return -(-(items.columns + (bias is not None)) // WHOLE_COLUMNS) * WHOLE_COLUMNS


LENGTHS: dict[str, Callable[..., _Needed]] = {
    "count_factors": _for_factors,
    "count_narrow": _for_factors,
    "count_top": _for_factors,
    "count_int16": _for_factors,
    "place_lists": lambda block, places, n_items, placed: [
        (places, n_items), (placed, block.train.size + block.test.size)
    ],
    "best_factors": _for_factors,
    "count_sieve": _for_factors,
    "best_sieve": _for_factors,
    "count_scores": lambda scores, block: [(scores, block.users)],
    "best_scores": lambda scores, block: [(scores, block.users)],
    "count_sparse": lambda rows, _similarity, _width, block: [(rows, block.users)],
    "best_sparse": lambda rows, _similarity, _width, block: [(rows, block.users)],
    "round_factors": lambda items, bias, whole, unit: [
        (bias, items.rows), (whole, items.rows * _whole_columns(items, bias)), (unit, 1)
    ],
    "count_among": lambda users, items, bias, whole, unit, block, _draws: [
        (users, block.users), (bias, items.rows), (whole, items.rows * _whole_columns(items, bias)), (unit, 1)
    ],
    "score_pairs": lambda _users, items, bias, user_of, item_of, size, scores: [
        (bias, items.rows), (user_of, size), (item_of, size), (scores, size)
    ],
    "score_dense": lambda rows, similarity, scores: [(scores, rows.rows.count * similarity.columns)],
    "score_sparse": lambda rows, _similarity, width, scores: [(scores, rows.rows.count * width)],
    "draw_items": lambda draws, excluded, taken, items: [
        (excluded.arrays[1], draws.users), (taken.arrays[1], draws.users), (items, int(draws.arrays[1].sum()) + 8)
    ],
    "sum_squares": lambda factors, width, _start, stop, total, products: [
        (factors, stop * width), (total, width**2), (products, width**2)
    ],
    "solve_rows": _for_least_squares,
    "improve_rows": _for_least_squares,
    "invert_block": lambda block: [(block, call("inverse_block") ** 2)],
    "most_together": lambda items, _users, _start, stop: [(items, stop)],
    "count_together": lambda items, _users, start, stop, begin, *_room: [(items, stop), (begin, stop - start + 1)],
    "keep_largest": lambda rows, begin, columns, values, size, _k: [
        (begin, rows + 1), (columns, size), (values, size)
    ],
    "sweep_columns": _for_a_sweep,
}  # fmt: skip
"""The least length of arrays, or number of rows of a structure, given the other arguments."""


def _length(given: Any) -> int:
    if isinstance(given, MatrixArgument):
        return given.rows
    if isinstance(given, HistoriesArgument):
        return given.rows.count
    return given.count if isinstance(given, RowsArgument) else np.size(given)


class Loops(ctypes.CDLL):
    """A loaded library, and the name of the variant that it is loaded as."""

    variant: str


@cache
def load() -> Loops | None:
    """Return the library that the environment variable TRUERANK_LOOPS names, or else the best for this processor.

    None means that NumPy computes, because the variable says so or, after one warning, because there is no library.
    """
    names, wanted = [*runnable(), NUMPY], os.environ.get(LOOPS_VARIABLE)
    if wanted and wanted not in names:
        raise InputError(_wrong_choice(wanted, names))
    if not wanted and names == [NUMPY]:
        warnings.warn(
            f"{FOLDER} has no compiled library for this computer: NumPy is used, which is several times slower.",
            RuntimeWarning,
            stacklevel=2,
        )
    chosen = wanted or names[0]
    return None if chosen == NUMPY else load_variant(chosen)


def _wrong_choice(wanted: str, names: list[str]) -> str:
    if wanted in LEVELS:
        return f"{LOOPS_VARIABLE} is {wanted}, which this computer can't run; choose from {', '.join(names)}."
    return f"{LOOPS_VARIABLE} must be one of {', '.join(names)}, got {wanted!r}."


def variant() -> str:
    """Return the name of the loops in use: a variant of the library, or numpy."""
    loaded = load()
    return NUMPY if loaded is None else loaded.variant


def runnable() -> list[str]:
    """Return the names of the variants that are here and that this processor runs, the best one first."""
    plain = next(filter(None, map(load_variant, reversed(LEVELS))), None)
    level = plain.processor_level() if plain else 0
    return [name for name, least in LEVELS.items() if least <= level and load_variant(name)]


def load_variant(name: str) -> Loops | None:
    """Return the library with this name and all types declared; None if it is missing or not for this system."""
    path = FOLDER / f"kernels-{name}{SUFFIX}"
    if not path.exists():
        return None
    try:
        library = Loops(str(path))
    except OSError:
        return None
    for entry, arguments in ENTRIES.items():
        function = getattr(library, entry)
        function.argtypes, function.restype = arguments, ctypes.c_int64
    library.variant = name
    return library


def call(entry: str, *arguments: Any) -> int:
    """Return the result of a library function; raise an error for short arrays, invalid lists or a lack of memory."""
    needs = LENGTHS.get(entry.removesuffix("_float32").removesuffix("_float64"))
    for given, needed in needs(*arguments) if needs else ():
        if given is not None:
            _check_length(_length(given), needed)
    status = int(getattr(load(), entry)(*arguments))
    if status == NO_MEMORY:
        raise MemoryError
    if status == INVALID:
        raise ValueError(f"the lists for {entry} are not within their arrays.")
    return status
