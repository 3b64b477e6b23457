"""Loads the shared library of compiled loops; the only place that decides between them and NumPy.

The sources beside this file are compiled when the package is built (see `hatch_build.py`). `kernels.h`
states what each function expects; the types declared here are the same.
"""

from __future__ import annotations

import ctypes
import os
import sys
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError

FOLDER = Path(__file__).parent
SUFFIX = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")

LOOPS_VARIABLE, NUMPY = "TRUERANK_LOOPS", "numpy"
LEVELS = {"x86-64-v4": 4, "x86-64-v3": 3, "x86-64": 1, "arm64": 0, "native": 0}
"""The variants of the library, each with the `processor_level` that it needs."""

DONE, GAVE_UP, INVALID, NO_MEMORY = 0, 1, -2, -3
"""Status codes of functions; some functions return an index instead."""


class Matrix(ctypes.Structure):
    """Rows of numbers, whatever their strides."""

    _fields_ = (
        ("numbers", ctypes.c_void_p),
        ("rows", ctypes.c_int64),
        ("columns", ctypes.c_int64),
        ("row_step", ctypes.c_int64),
        ("column_step", ctypes.c_int64),
    )

    @classmethod
    def of(cls, array: AnyArray) -> Matrix:
        """Return a view of a two-dimensional array, or of a copy if its strides are not multiples of the item size."""
        if array.ndim != 2:
            raise TypeError(f"a compiled loop needs an array of two dimensions, got {array.ndim}.")
        size = array.itemsize
        if not array.flags.aligned or any(step % size for step in array.strides):
            array = array.copy()
        matrix = cls(array.ctypes.data, *array.shape, *(step // size for step in array.strides))
        matrix.array, matrix.kind = array, array.dtype  # kept alive as long as the pointer
        return matrix


class Lists(ctypes.Structure):
    """A list of items per user; `next` is where to continue reading."""

    _fields_ = (
        ("items", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("begin", ctypes.c_void_p),
        ("end", ctypes.c_void_p),
        ("next", ctypes.c_void_p),
    )

    @classmethod
    def of(cls, items: AnyArray, begin: Ints, end: Ints, next_: Ints) -> Lists:
        """Return a view of the arrays, all but the first with one number per user."""
        spans = (address(span, np.int64) for span in (begin, end, next_))
        lists = cls(address(items, np.int32), len(items), *spans)
        lists.arrays = items, begin, end, next_
        return lists


class Block(ctypes.Structure):
    """Users, their two lists, and the counts for each held-out item."""

    _fields_ = (
        ("users", ctypes.c_int64),
        ("train", Lists),
        ("test", Lists),
        ("targets", ctypes.c_void_p),
        ("order", ctypes.c_void_p),
        ("seen", ctypes.c_void_p),
        ("above", ctypes.c_void_p),
        ("tied", ctypes.c_void_p),
    )


class Best(ctypes.Structure):
    """Users, the items to leave out, and room for the best k of the others."""

    _fields_ = (
        ("users", ctypes.c_int64),
        ("k", ctypes.c_int64),
        ("excluded", Lists),
        ("scores", ctypes.c_void_p),
        ("items", ctypes.c_void_p),
        ("found", ctypes.c_void_p),
    )


class Rows(ctypes.Structure):
    """The positions of the entries of a sparse matrix."""

    _fields_ = (
        ("count", ctypes.c_int64),
        ("begin", ctypes.c_void_p),
        ("columns", ctypes.c_void_p),
        ("size", ctypes.c_int64),
    )

    @classmethod
    def of(cls, indptr: AnyArray, indices: AnyArray) -> Rows:
        """Return a view of the structure of a CSR matrix, copied if the types differ."""
        begin, columns = np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32)
        rows = cls(len(begin) - 1, address(begin, np.int64), address(columns, np.int32), len(columns))
        rows.arrays = begin, columns
        return rows


class Histories(ctypes.Structure):
    """Rows of a sparse matrix with its values."""

    _fields_ = (("rows", Rows), ("weights", ctypes.c_void_p))

    @classmethod
    def of(cls, indptr: AnyArray, indices: AnyArray, weights: AnyArray) -> Histories:
        """Return a view of a CSR matrix."""
        rows = Rows.of(indptr, indices)
        if len(weights) < rows.size:
            raise ValueError(f"a sparse matrix needs a value for each of {rows.size} columns, got {len(weights)}.")
        histories = cls(rows, address(weights, weights.dtype))
        histories.arrays, histories.kind = (rows, weights), weights.dtype
        return histories


class Sampled(ctypes.Structure):
    """Scores of the relevant items of users, and of candidates sampled for them."""

    _fields_ = (
        ("users", ctypes.c_int64),
        ("own_scores", ctypes.c_void_p),
        ("own_size", ctypes.c_int64),
        ("own_bounds", ctypes.c_void_p),
        ("scores", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("bounds", ctypes.c_void_p),
    )

    @classmethod
    def of(cls, own: AnyArray, own_bounds: Ints, scores: AnyArray, bounds: Ints) -> Sampled:
        """Return a view of the arrays; both scores must be of one type, and both bounds have one more than users."""
        spans = [address(each, np.int64) for each in (own_bounds, bounds)]
        places = [address(each, own.dtype) for each in (own, scores)]
        sampled = cls(len(bounds) - 1, places[0], len(own), spans[0], places[1], len(scores), spans[1])
        sampled.arrays, sampled.kind = (own, own_bounds, scores, bounds), own.dtype
        return sampled


class Drawn(ctypes.Structure):
    """Items drawn for users, and those that are not to be drawn."""

    _fields_ = (
        ("n_items", ctypes.c_int64),
        ("excluded", Rows),
        ("taken", Rows),
        ("items", ctypes.c_void_p),
        ("size", ctypes.c_int64),
        ("begin", ctypes.c_void_p),
        ("found", ctypes.c_void_p),
    )

    @classmethod
    def of(cls, n_items: int, excluded: Rows, taken: Rows, items: Ints, begin: Ints, found: Ints) -> Drawn:
        """Return a view of the arrays."""
        places = [address(each, np.int64) for each in (items, begin, found)]
        drawn = cls(n_items, excluded, taken, places[0], len(items), *places[1:])
        drawn.arrays = excluded, taken, items, begin, found
        return drawn


class Array:
    """The type of an argument that is a contiguous array of one data type, or None."""

    def __init__(self, kind: Any) -> None:
        self.kind = np.dtype(kind)

    def from_param(self, array: AnyArray | None) -> ctypes.c_void_p:
        """Return the address; ctypes calls this for each argument."""
        return ctypes.c_void_p(None if array is None else address(array, self.kind))


class Typed:
    """The type of an argument that is a structure of numbers of one data type."""

    def __init__(self, structure: type[Matrix | Histories | Sampled], kind: Any) -> None:
        self.structure, self.kind = structure, np.dtype(kind)

    def from_param(self, given: Any) -> Any:
        """Return a pointer; ctypes calls this for each argument."""
        if not isinstance(given, self.structure) or given.kind != self.kind:
            got = getattr(given, "kind", type(given).__name__)
            raise TypeError(f"a compiled loop needs a {self.structure.__name__} of {self.kind}, got {got}.")
        return ctypes.byref(given)


_SIZE, _BLOCK, _ROWS = ctypes.c_int64, ctypes.POINTER(Block), ctypes.POINTER(Rows)
_BEST, _DRAWN = ctypes.POINTER(Best), ctypes.POINTER(Drawn)
_MATRIX_32, _MATRIX_64 = (Typed(Matrix, kind) for kind in (np.float32, np.float64))
_HISTORIES_32, _HISTORIES_64 = (Typed(Histories, kind) for kind in (np.float32, np.float64))
_SAMPLED_32, _SAMPLED_64 = (Typed(Sampled, kind) for kind in (np.float32, np.float64))
_FLOATS, _DOUBLES, _PLACES, _SIZES = map(Array, (np.float32, np.float64, np.int32, np.int64))

ENTRIES: dict[str, list[Any]] = {
    "processor_level": [],
    "count_factors_float32": [_MATRIX_32, _MATRIX_32, _FLOATS, _BLOCK, _SIZE, _SIZE],
    "count_factors_float64": [_MATRIX_64, _MATRIX_64, _DOUBLES, _BLOCK, _SIZE, _SIZE],
    "count_narrow": [_MATRIX_64, _MATRIX_64, _DOUBLES, _BLOCK, _SIZE, _SIZE],
    "count_scores_float32": [_MATRIX_32, _BLOCK],
    "count_scores_float64": [_MATRIX_64, _BLOCK],
    "score_pairs_float32": [_MATRIX_32, _MATRIX_32, _FLOATS, _SIZES, _SIZES, _SIZE, _FLOATS],
    "score_pairs_float64": [_MATRIX_64, _MATRIX_64, _DOUBLES, _SIZES, _SIZES, _SIZE, _DOUBLES],
    "count_sampled_float32": [_SAMPLED_32, _FLOATS, _SIZES, _SIZES, _SIZES],
    "count_sampled_float64": [_SAMPLED_64, _DOUBLES, _SIZES, _SIZES, _SIZES],
    "add_draws": [_DRAWN, _SIZES, _SIZE],
    "score_dense_float32": [_HISTORIES_32, _MATRIX_32, _FLOATS],
    "score_dense_float64": [_HISTORIES_64, _MATRIX_64, _DOUBLES],
    "score_sparse_float32": [_HISTORIES_32, _HISTORIES_32, _SIZE, _FLOATS],
    "score_sparse_float64": [_HISTORIES_64, _HISTORIES_64, _SIZE, _DOUBLES],
    "count_sparse_float32": [_HISTORIES_32, _HISTORIES_32, _SIZE, _BLOCK],
    "count_sparse_float64": [_HISTORIES_64, _HISTORIES_64, _SIZE, _BLOCK],
    "best_factors_float32": [_MATRIX_32, _MATRIX_32, _FLOATS, _BEST, _SIZE, _SIZE],
    "best_factors_float64": [_MATRIX_64, _MATRIX_64, _DOUBLES, _BEST, _SIZE, _SIZE],
    "best_scores_float32": [_MATRIX_32, _BEST],
    "best_scores_float64": [_MATRIX_64, _BEST],
    "best_sparse_float32": [_HISTORIES_32, _HISTORIES_32, _SIZE, _BEST],
    "best_sparse_float64": [_HISTORIES_64, _HISTORIES_64, _SIZE, _BEST],
    "check_columns": [_ROWS, _SIZE],
    "sum_squares": [_FLOATS, _SIZE, _SIZE, _SIZE, _DOUBLES, _FLOATS],
    "solve_rows": [_ROWS, _SIZE, _SIZE, _MATRIX_32, _DOUBLES, _DOUBLES, _DOUBLES],
    "improve_rows": [_ROWS, _SIZE, _SIZE, _MATRIX_32, _FLOATS, _DOUBLES, _SIZE, _FLOATS],
    "inverse_block": [],
    "invert_block": [_DOUBLES],
    "most_together": [_ROWS, _ROWS, _SIZE, _SIZE],
    "count_together": [_ROWS, _ROWS, _SIZE, _SIZE, _SIZES, _PLACES, _DOUBLES],
    "keep_largest": [_SIZE, _SIZES, _PLACES, _DOUBLES, _SIZE, _SIZE],
    "sweep_columns": [_DOUBLES, _SIZE, _DOUBLES, _DOUBLES, _DOUBLES, _SIZE],
}
"""The types of the arguments of all functions; each returns an int64."""


@cache
def load() -> ctypes.CDLL | None:
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
    return NUMPY if loaded is None else Path(loaded._name).stem.removeprefix("kernels-")


def runnable() -> list[str]:
    """Return the names of the variants that are here and that this processor runs, the best one first."""
    plain = load_variant("x86-64")
    level = plain.processor_level() if plain else 0
    return [name for name, least in LEVELS.items() if least <= level and load_variant(name)]


def load_variant(name: str) -> ctypes.CDLL | None:
    """Return the library with this name and all types declared; None if it is missing or not for this system."""
    path = FOLDER / f"kernels-{name}{SUFFIX}"
    if not path.exists():
        return None
    try:
        library = ctypes.CDLL(str(path))
    except OSError:
        return None
    for entry, arguments in ENTRIES.items():
        function = getattr(library, entry)
        function.argtypes, function.restype = arguments, ctypes.c_int64
    return library


def call(entry: str, *arguments: Any) -> int:
    """Return the result of a library function; raise an error for invalid lists or a lack of memory."""
    status = int(getattr(load(), entry)(*arguments))
    if status == NO_MEMORY:
        raise MemoryError
    if status == INVALID:
        raise ValueError(f"the lists for {entry} are not within their arrays.")
    return status


def address(array: AnyArray, kind: Any) -> int:
    """Return the address of an array's numbers; it must be contiguous and of this data type."""
    if array.dtype != kind or not array.flags.c_contiguous:
        raise TypeError(f"a compiled loop needs a contiguous array of {np.dtype(kind)}, got {array.dtype}.")
    return array.ctypes.data
