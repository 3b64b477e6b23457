"""The compiled loops of linear algebra: sums of outer products, Cholesky's method, and inversion.

Only the recommenders that need it import this module, and only when they are about to compute, because
importing numba takes longer than solving a small problem. Rows have a multiple of WIDTH numbers, and
symmetric matrices are right in their upper triangle only.

BLAS is not used, because its sums change with the number of threads and with the machine. All work
that grows with the square of the factors, or faster, is in `_tile`, written as LLVM vector
instructions: numba's own vectoriser does not keep a tile of sums in registers, and is four times
slower.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from truerank.compiled.vectors import INDEX, fma_of, load, loop, pointer, splat, vector_of

WIDTH = 16  # columns of a tile of float32; of float64 it is half
ROWS = 4  # rows of a tile: 4 x 2 vectors of sums are enough to keep both multipliers busy
PART = 128  # rows summed in float32, before the sum is added in float64
BLOCK = 64  # rows and columns of a block of a large matrix: two of them fit the second-level cache


@intrinsic
def _tile(
    typing: Any, x: Any, x_at: Any, y: Any, y_at: Any, step: Any, out: Any, out_at: Any, width: Any, depth: Any
) -> Any:
    """Add to a tile of `out` the outer products of `depth` pieces of x with as many of y.

    The first pieces start at the flat places `x_at` and `y_at`, the next ones `step` further; the
    tile starts at `out_at`, and the rows of `out` have length `width`.
    """
    at = types.int64
    signature = types.void(x, at, y, at, at, out, at, at, at)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        kinds, vector = signature.args, vector_of(signature.args[0])
        left, right, target = (pointer(context, builder, kinds[k], values[k], values[k + 1]) for k in (0, 2, 5))
        (further, width, depth), lanes, fma = (values[k] for k in (4, 7, 8)), vector.count, fma_of(builder, vector)
        places = [(row, half) for row in range(ROWS) for half in (0, 1)]

        def address(row: int, half: int) -> Any:
            at = builder.add(builder.mul(width, INDEX(row)), INDEX(half * lanes))
            return builder.bitcast(builder.gep(target, [at]), vector.as_pointer())

        def add(k: Any, sums: list[Any]) -> list[Any]:
            at = builder.mul(k, further)
            halves = [load(builder, vector, right, builder.add(at, INDEX(h * lanes))) for h in (0, 1)]
            rows = [splat(builder, vector, left, builder.add(at, INDEX(r))) for r in range(ROWS)]
            return [builder.call(fma, [rows[r], halves[h], s]) for (r, h), s in zip(places, sums, strict=True)]

        old = [builder.load(address(*place), align=4) for place in places]
        for place, total in zip(places, loop(builder, INDEX(0), depth, 1, old, add), strict=True):
            builder.store(total, address(*place), align=4)
        return context.get_dummy_value()

    return signature, emit


@intrinsic
def _take(typing: Any, rows: Any, row_at: Any, copies: Any, copy_at: Any, total: Any, total_at: Any, width: Any) -> Any:
    """Copy `width` numbers in float32 between flat places, and add them to a place of `total` in float64."""
    at = types.int64
    signature = types.void(rows, at, copies, at, total, at, at)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        kinds, vector = signature.args, vector_of(signature.args[0])
        places = ((0, values[1]), (2, values[3]), (4, values[5]))
        row, copy, total = (pointer(context, builder, kinds[k], values[k], at) for k, at in places)
        wide = ir.VectorType(ir.DoubleType(), vector.count)

        def move(j: Any, nothing: list[Any]) -> list[Any]:
            numbers = load(builder, vector, row, j)
            added = builder.fadd(load(builder, wide, total, j), builder.fpext(numbers, wide))
            for target, value in ((copy, numbers), (total, added)):
                builder.store(value, builder.bitcast(builder.gep(target, [j]), value.type.as_pointer()), align=4)
            return nothing

        loop(builder, INDEX(0), values[6], vector.count, [], move)
        return context.get_dummy_value()

    return signature, emit


@intrinsic
def _add_row(typing: Any, rows: Any, factor: Any, source_at: Any, target_at: Any, width: Any) -> Any:
    """Add `factor` times `width` numbers of `rows` to others; both are given by flat places."""
    at = types.int64
    signature = types.void(rows, factor, at, at, at)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        vector = vector_of(signature.args[0])
        source, target = (pointer(context, builder, signature.args[0], values[0], values[k]) for k in (2, 3))
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), values[1], ir.IntType(32)(0))
        lanes = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
        factors, fma = builder.shuffle_vector(one, one, lanes), fma_of(builder, vector)

        def add(j: Any, nothing: list[Any]) -> list[Any]:
            total = builder.call(fma, [factors, load(builder, vector, source, j), load(builder, vector, target, j)])
            builder.store(total, builder.bitcast(builder.gep(target, [j]), vector.as_pointer()), align=4)
            return nothing

        loop(builder, INDEX(0), values[4], vector.count, [], add)
        return context.get_dummy_value()

    return signature, emit


@njit(nogil=True)
def _add_products(x, y, first, depth, start, out):
    """Add x[:depth]' y[first:first + depth] to `out`, from row and column `start` on."""
    width = out.shape[1]
    columns = 64 // out.itemsize
    for column in range(start, width, columns):
        for row in range(start, column + columns, ROWS):
            _tile(x, row, y, first * width + column, width, out, row * width + column, width, depth)


@njit(nogil=True)
def _add_squares(strips, depth, out):
    """Add the outer products of `depth` rows with themselves to `out`.

    The rows are cut into strips of WIDTH columns, each in one piece: with 128 factors, what a tile reads
    of whole rows would fall on few places of the first-level cache.
    """
    width = out.shape[1]
    for column in range(0, width, WIDTH):
        for row in range(0, column + WIDTH, ROWS):
            left = row // WIDTH * WIDTH * PART + row % WIDTH
            _tile(strips, left, strips, column * PART, WIDTH, out, row * width + column, width, depth)


@njit(nogil=True)
def _solve(matrix, vector, negative):
    """Overwrite `vector` with the solution, and `matrix`, positive definite, with its root.

    Some rows of the root are found one by one; the rows below are then updated with all of them.
    """
    width, size = matrix.shape[0], negative.shape[0]
    for start in range(0, width, size):
        stop = start + size
        for i in range(start, stop):
            row, rest, minus = matrix[i, i:], vector[i:], negative[i - start, i:]
            scale = 1.0 / np.sqrt(row[0])
            known = rest[0] * scale
            for j in range(row.size):
                row[j] *= scale
                minus[j] = -row[j]
            for j in range(row.size):
                rest[j] -= row[j] * known
            vector[i] = known
            for k in range(i + 1, stop):
                _add_row(matrix, -matrix[i, k], i * width + start, k * width + start, width - start)
        _add_products(negative, matrix, start, size, stop, matrix)
    for i in range(width - 1, -1, -1):
        vector[i] = (vector[i] - _rest(matrix, vector, i)) / matrix[i, i]


@njit(nogil=True)
def _rest(matrix, vector, i):
    """Return the sum of matrix[i, j] * vector[j] over j > i, in four sums that do not wait for each other."""
    a = b = c = d = 0.0
    first = i // 4 * 4 + 4
    for j in range(first, vector.size, 4):
        a += matrix[i, j] * vector[j]
        b += matrix[i, j + 1] * vector[j + 1]
        c += matrix[i, j + 2] * vector[j + 2]
        d += matrix[i, j + 3] * vector[j + 3]
    for j in range(i + 1, first):
        a += matrix[i, j] * vector[j]
    return (a + b) + (c + d)


@njit(nogil=True)
def _move(products, matrix):
    """Add `products` to `matrix`, and set them to zero."""
    for i in range(matrix.shape[0]):
        first = i // ROWS * ROWS
        row, added = matrix[i, first:], products[i, first:]
        for j in range(row.size):
            row[j] += added[j]
            added[j] = 0


def gram(factors, start, stop):
    """Return the sum of the outer products of the rows start..stop with themselves."""
    width = factors.shape[1]
    total, products = np.zeros((width, width)), np.zeros((width, width), np.float32)
    for first in range(start, stop, PART):
        _add_products(factors[first:], factors, first, min(PART, stop - first), 0, products)
        _move(products, total)
    return total


def solve_rows(indptr, indices, start, stop, factors, everywhere, penalties, solutions):
    """Solve for the rows start..stop; `everywhere` is what all rows have in common."""
    width = factors.shape[1]
    strips, products = np.empty((width // WIDTH, PART, WIDTH), np.float32), np.zeros((width, width), np.float32)
    matrix, negative = np.empty((width, width)), np.empty((WIDTH // 2, width))
    for row in range(start, stop):
        matrix[:] = everywhere
        vector = solutions[row]
        vector[:] = 0.0
        for first in range(indptr[row], indptr[row + 1], PART):
            depth = min(PART, indptr[row + 1] - first)
            for k in range(depth):
                at = indices[first + k] * width
                for column in range(0, width, WIDTH):
                    _take(factors, at + column, strips, column * PART + k * WIDTH, vector, column, WIDTH)
            _add_squares(strips, depth, products)
            _move(products, matrix)
        for i in range(width):
            matrix[i, i] += penalties[row]
        _solve(matrix, vector, negative)


def invert_block(block):
    """Overwrite a positive definite block, symmetric throughout, with its inverse (Gauss-Jordan)."""
    size = block.shape[0]
    for k in range(size):
        scale = 1.0 / block[k, k]
        block[k, k] = 1.0
        for j in range(size):
            block[k, j] *= scale
        for i in range(size):
            factor = block[i, k]
            if i != k:
                block[i, k] = 0.0
                for j in range(size):
                    block[i, j] -= factor * block[k, j]


@njit(nogil=True)
def _add_block(x, y, out, at, width):
    """Add x' y to the block of `out` at a flat place."""
    for row in range(0, BLOCK, ROWS):
        for column in range(0, BLOCK, WIDTH // 2):
            _tile(x, row, y, column, BLOCK, out, at + row * width + column, width, BLOCK)


def sweep_columns(matrix, panel, pivot, scaled, start):
    """Subtract panel' pivot panel from a block of columns of `matrix`, down to the diagonal.

    The block starts at column `start`; its part of ``pivot @ panel`` is written into `scaled`.
    """
    width, stop = matrix.shape[1], start + BLOCK
    left, right = np.empty((BLOCK, BLOCK)), np.zeros((BLOCK, BLOCK))
    left[:] = panel[:, start:stop]
    _add_block(pivot, left, right, 0, BLOCK)
    scaled[:, start:stop] = right
    for row in range(0, stop, BLOCK):
        left[:] = -panel[:, row : row + BLOCK]
        _add_block(left, right, matrix, row * width + start, width)


@cache
def compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile for the function's one signature, or load it from disk.

    Without any writable folder numba refuses to cache, and the function is compiled anew in each
    process.
    """

    def fixed(kind: Any, dimensions: int) -> types.Array:
        # a read-only argument type also takes arrays that can be written
        return types.Array(kind, dimensions, "C", readonly=True)

    index, vector, square = types.int64, fixed(types.float64, 1), fixed(types.float64, 2)
    rows, factors, result = (fixed(index, 1), fixed(types.int32, 1)), fixed(types.float32, 2), types.float64[:, ::1]
    signature = {
        "gram": result(factors, index, index),
        "solve_rows": types.void(*rows, index, index, factors, square, vector, result),
        "invert_block": types.void(result),
        "sweep_columns": types.void(result, square, square, result, index),
    }[function.__name__]
    try:
        return njit(signature, nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(signature, nogil=True)(function)
