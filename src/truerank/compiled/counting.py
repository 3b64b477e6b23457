"""The compiled loops: scores are made, masked and counted without leaving the nearest caches.

Only `truerank.counting.kernels` imports this module, and only when it is about to count, because importing
numba takes longer than many evaluations. Two loops are written as LLVM vector instructions
(`_tile`, `_count_group`): numba's own vectoriser neither keeps a tile of sums in registers nor
counts in 32-bit lanes.

A score is the chain ``s = fma(u[k], v[k], s)``, k = 0, 1, ..., from s = 0. It depends on the two
rows alone: not on the block, the position in it, the thread or the machine. BLAS promises none of
these; with OpenBLAS two identical items get different scores when one stands at a block's edge.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from truerank.compiled.vectors import INDEX, fma_of, llvm, load, loop, pointer, splat, vector_of

USERS = 6  # rows of a tile: 6 x 2 vectors of sums, 2 of items and 1 of users fill 16 registers
CHUNK = 4096  # items scored before they are counted: 6 x 4096 stay well inside the second-level cache
MANY = 4096  # bytes of targets; from here a binary search per score beats comparing with every target


@intrinsic
def _fma(typing: Any, a: Any, b: Any, c: Any) -> Any:
    """Return a * b + c, rounded once."""

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        return builder.call(fma_of(builder, values[0].type), values)

    return a(a, a, a), emit


@intrinsic
def _tile(typing: Any, users: Any, user: Any, items: Any, item: Any, depth: Any, scores: Any, column: Any) -> Any:
    """Score 6 packed users with two vectors of packed items into rows of length CHUNK."""
    signature = types.void(users, types.int64, items, types.int64, types.int64, scores, types.int64)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        vector, kinds = vector_of(signature.args[0]), signature.args
        fma, width = fma_of(builder, vector), vector.count
        u = pointer(context, builder, kinds[0], values[0], values[1])
        v = pointer(context, builder, kinds[2], values[2], values[3])
        out = pointer(context, builder, kinds[5], values[5], values[6])

        def step(k: Any, sums: list[Any]) -> list[Any]:
            at = builder.mul(k, INDEX(2 * width))
            halves = [load(builder, vector, v, builder.add(at, INDEX(h * width))) for h in (0, 1)]
            at = builder.mul(k, INDEX(USERS))
            rows = [splat(builder, vector, u, builder.add(at, INDEX(r))) for r in range(USERS)]
            pairs = [(rows[s // 2], halves[s % 2]) for s in range(2 * USERS)]
            if not sums:
                return [builder.fmul(row, half) for row, half in pairs]
            return [builder.call(fma, [*pair, total]) for pair, total in zip(pairs, sums, strict=True)]

        # A sum that starts from its first product, not from zero, is the same number; with 16 factors it takes a
        # seventh off the time.
        for s, total in enumerate(loop(builder, INDEX(1), values[4], 1, step(INDEX(0), []), step)):
            address = builder.gep(out, [INDEX(s // 2 * CHUNK + s % 2 * width)])
            builder.store(total, builder.bitcast(address, vector.as_pointer()), align=4)
        return context.get_dummy_value()

    return signature, emit


@intrinsic(prefer_literal=True)
def _count_group(
    typing: Any,
    size: Any,
    scores: Any,
    start: Any,
    stop: Any,
    highs: Any,
    lows: Any,
    first: Any,
    above: Any,
    between: Any,
) -> Any:
    """Count, for `size` pairs of bounds, which of scores[start:stop] are above `high`, which in low..high.

    The scores are a multiple of two vectors.
    """
    signature = types.void(size, scores, types.int64, types.int64, highs, lows, types.int64, above, between)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        vector, kinds, group = vector_of(signature.args[1]), signature.args, signature.args[0].literal_value
        width, lane = vector.count, ir.IntType(256 // vector.count)
        counter = ir.VectorType(lane, width)
        s = pointer(context, builder, kinds[1], values[1], INDEX(0))
        high, low, a, b = (pointer(context, builder, kinds[k], values[k], values[6]) for k in (4, 5, 7, 8))
        signs = ((">", high), (">=", low))
        bounds = [(sign, splat(builder, vector, at, INDEX(g))) for g in range(group) for sign, at in signs]

        def step(j: Any, counts: list[Any]) -> list[Any]:
            for half in (0, 1):
                score = load(builder, vector, s, builder.add(j, INDEX(half * width)))
                hits = [builder.fcmp_ordered(sign, score, bound) for sign, bound in bounds]
                # A hit is all ones, which is -1.
                counts = [builder.sub(c, builder.sext(h, counter)) for c, h in zip(counts, hits, strict=True)]
            return counts

        zeros = [ir.Constant(counter, [0] * width)] * (2 * group)
        counts = loop(builder, values[2], values[3], 2 * width, zeros, step)
        add = llvm(builder, f"vector.reduce.add.v{width}i{lane.width}", lane, [counter])
        sums = [builder.call(add, [count]) for count in counts]
        wide = [total if lane.width == 64 else builder.sext(total, INDEX) for total in sums]
        for g in range(group):
            over, rest = wide[2 * g], builder.sub(wide[2 * g + 1], wide[2 * g])
            for array, total in ((a, over), (b, rest)):
                address = builder.gep(array, [INDEX(g)])
                builder.store(builder.add(builder.load(address), total), address)
        return context.get_dummy_value()

    return (signature, emit) if isinstance(size, types.IntegerLiteral) else None


@njit(nogil=True, forceinline=True)
def _count_few(scores, start, stop, highs, lows, first, last, above, between):
    """Compare every score with every pair of bounds, four pairs at a time."""
    while first + 4 <= last:
        _count_group(4, scores, start, stop, highs, lows, first, above, between)
        first += 4
    if first + 2 <= last:
        _count_group(2, scores, start, stop, highs, lows, first, above, between)
        first += 2
    if first < last:
        _count_group(1, scores, start, stop, highs, lows, first, above, between)


@njit(nogil=True)
def _count_many(scores, start, stop, targets, first, last, above, tied):
    """Find each score's place among the targets, which descend, and count the places."""
    places = np.zeros(last - first + 1, np.int64)
    for j in range(start, stop):
        score, low, high = scores[j], first, last
        while low < high:
            middle = (low + high) >> 1
            if score > targets[middle]:
                high = middle
            else:
                low = middle + 1
        # targets[low:] are below the score; a tied target stands just before them.
        places[low - first] += 1
        while low > first and targets[low - 1] == score:
            low -= 1
            tied[low] += 1
    total = 0
    for t in range(first, last):
        total += places[t - first]
        above[t] += total


@njit(nogil=True)
def _set(value, scores, begin, low, high, items, cursor, end):
    """Write `value` over the listed items low..high; return where the list goes on.

    A list that does not ascend makes no progress any more, and the caller sees that. Unsigned
    numbers need no check for places that count from the end, which doubles the speed.
    """
    first, width = np.uint64(begin), np.uint64(high - low)
    for at in range(np.uint64(cursor), np.uint64(end)):
        place = np.uint64(np.int64(items[at]) - low)
        if place >= width:
            return np.int64(at)
        scores[first + place] = value
    return end


@njit(nogil=True)
def _set_held_out(scores, begin, low, high, items, cursor, end, seen):
    """Do as `_set` does with NaN, after the training items; what is NaN already is one of them."""
    first, width = np.uint64(begin), np.uint64(high - low)
    for at in range(np.uint64(cursor), np.uint64(end)):
        place = np.uint64(np.int64(items[at]) - low)
        if place >= width:
            return np.int64(at)
        seen[at] = np.isnan(scores[first + place])
        scores[first + place] = np.nan
    return end


@njit(nogil=True)
def _insert(score, position, first, targets, order):
    """Insert a target so that scores descend; equal scores keep the order of the list."""
    at = position
    while at > first and targets[at - 1] < score:
        targets[at], order[at] = targets[at - 1], order[at - 1]
        at -= 1
    targets[at], order[at] = score, position


@njit(nogil=True)
def _pack(rows, bias, start, stop, width, packed):
    """Copy rows into panels of `width` rows, factor by factor, the bias as one factor more."""
    factors = rows.shape[1]
    depth = factors + (bias.size > 0)
    panels = (stop - start + width - 1) // width
    packed[: panels * width * depth] = 0
    for row in range(start, stop):
        at = np.uint64((row - start) // width * width * depth + (row - start) % width)
        for k in range(factors):
            packed[at] = rows[row, k]
            at += np.uint64(width)
        if bias.size > 0:
            packed[at] = bias[row]
    return panels


@njit(nogil=True)
def _score(users, user, items, bias, item):
    """Return one score, bit for bit as `_tile` computes it."""
    score = users[user, 0] * 0
    for k in range(items.shape[1]):
        score = _fma(users[user, k], items[item, k], score)
    return score + bias[item] if bias.size > 0 else score


@njit(nogil=True)
def _mask(scores, begin, low, high, user, train, train_at, test, test_at, seen):
    """Write NaN over what is not counted among one user's items low..high; return where whole vectors end."""
    train_at[user, 0] = _set(np.nan, scores, begin, low, high, train, train_at[user, 0], train_at[user, 1])
    test_at[user, 1] = _set_held_out(scores, begin, low, high, test, test_at[user, 1], test_at[user, 2], seen)
    stop = begin + high - low
    while (stop - begin) % (64 // scores.itemsize):
        scores[stop] = np.nan
        stop += 1
    return stop


@njit(nogil=True)
def _count(scores, begin, stop, first, last, targets, above, tied):
    if (last - first) * targets.itemsize < MANY:
        _count_few(scores, begin, stop, targets, targets, first, last, above, tied)
    else:
        _count_many(scores, begin, stop, targets, first, last, above, tied)


@njit(nogil=True)
def _find_targets(users, items, bias, test, test_at, targets, order):
    """Score the held-out items, and put them in order."""
    for user in range(len(users)):
        for position in range(test_at[user, 0], test_at[user, 2]):
            score = _score(users, user, items, bias, test[position])
            _insert(score, position, test_at[user, 0], targets, order)


@njit(nogil=True)
def _score_rows(users, rows, items, panels, depth, scores):
    """Score the packed users of one tile with all packed items."""
    width = 64 // scores.itemsize
    for panel in range(panels):
        _tile(users, rows * depth * USERS, items, panel * depth * width, depth, scores, panel * width)


@njit(nogil=True)
def _factors(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied):
    n_users, depth = users.shape
    packed_users = np.empty((n_users + USERS) * depth, users.dtype)
    packed_items = np.empty(CHUNK * depth, users.dtype)
    scores = np.empty(USERS * CHUNK, users.dtype)
    row_panels = _pack(users, users[0, :0], 0, n_users, USERS, packed_users)
    if start == 0:
        _find_targets(users, items, bias, test, test_at, targets, order)
    for low in range(start, stop, CHUNK):
        high = min(low + CHUNK, stop)
        item_panels = _pack(items, bias, low, high, 64 // scores.itemsize, packed_items)
        for rows in range(row_panels):
            _score_rows(packed_users, rows, packed_items, item_panels, depth, scores)
            for user in range(rows * USERS, min(rows * USERS + USERS, n_users)):
                begin, first, last = (user - rows * USERS) * CHUNK, test_at[user, 0], test_at[user, 2]
                end = _mask(scores, begin, low, high, user, train, train_at, test, test_at, seen)
                _count(scores, begin, end, first, last, targets, above, tied)
    return True


@njit(nogil=True)
def _first_infinite(scores, stop):
    """Return the place of the first score that is not a finite number, or -1."""
    bad = False
    for j in range(stop):
        bad |= not np.isfinite(scores[j])
    for j in range(stop if bad else 0):
        if not np.isfinite(scores[j]):
            return j
    return -1


@njit(nogil=True)
def _scores(block, train, train_at, test, test_at, targets, order, seen, above, tied):
    n_users, n_items = block.shape
    scores = np.empty(CHUNK, block.dtype)
    for user in range(n_users):
        for position in range(test_at[user, 0], test_at[user, 2]):
            score = block[user, test[position]]
            if not np.isfinite(score):
                return user * n_items + test[position]
            _insert(score, position, test_at[user, 0], targets, order)
        for low in range(0, n_items, CHUNK):
            high = min(low + CHUNK, n_items)
            scores[: high - low] = block[user, low:high]
            # Models mark what a user has seen with an infinity; only candidates must be finite.
            _set(0, scores, 0, low, high, train, train_at[user, 0], train_at[user, 1])
            bad = _first_infinite(scores, high - low)
            if bad >= 0:
                return user * n_items + low + bad
            end = _mask(scores, 0, low, high, user, train, train_at, test, test_at, seen)
            _count(scores, 0, end, test_at[user, 0], test_at[user, 2], targets, above, tied)
    return -1


def factors_float32(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied):
    """Count items start..stop for a block of users given by factors; return True."""
    return _factors(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied)


def factors_float64(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied):
    return _factors(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied)


def scores_float32(block, train, train_at, test, test_at, targets, order, seen, above, tied):
    """Count all items for a block of scores; return the flat place of a bad score, or -1."""
    return _scores(block, train, train_at, test, test_at, targets, order, seen, above, tied)


def scores_float64(block, train, train_at, test, test_at, targets, order, seen, above, tied):
    return _scores(block, train, train_at, test, test_at, targets, order, seen, above, tied)


@cache
def compiled(function: Callable) -> Callable:
    """Compile for the one signature that the function's name tells, or load it from disk.

    Each number type has a function, hence a cache file, of its own: numba writes a file's index
    and its code in two steps, so processes that save different signatures of one function at
    once can leave an index that points to the other's code. Without any writable folder numba
    refuses to cache, and the function is compiled anew in each process.
    """
    number = types.float32 if function.__name__.endswith("32") else types.float64

    def fixed(kind: Any, dimensions: int, layout: str = "C") -> types.Array:
        # A read-only argument type also takes arrays that can be written.
        return types.Array(kind, dimensions, layout, readonly=True)

    lists = [fixed(types.int32, 1), types.int64[:, ::1]] * 2
    results = [number[::1], types.int64[::1], types.boolean[::1], types.int64[::1], types.int64[::1]]
    if not function.__name__.startswith("scores"):
        first = [fixed(number, 2), fixed(number, 2, "A"), fixed(number, 1), types.int64, types.int64]
        signature = types.boolean(*first, *lists, *results)
    else:
        signature = types.int64(fixed(number, 2), *lists, *results)
    try:
        return njit(signature, nogil=True, cache=True)(function)
    except RuntimeError:
        return njit(signature, nogil=True)(function)
