"""Counts for factors in float64 by scores in float32, which take half the time.

A score in float32 is off by a known margin at most. What is farther than that from a target needs
no better score; what is not (one to six items in 100,000, with iALS on MovieLens 1M and Gowalla) is
scored anew in float64. So the counts are those of the float64 scores, all of them. Where too many
are close, as where many items tie, the work is handed back.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.extending import intrinsic

from truerank.compiled.counting import (
    CHUNK,
    USERS,
    _count_group,
    _find_targets,
    _mask,
    _pack,
    _score,
    _score_rows,
)
from truerank.compiled.vectors import INDEX, load, pointer, spread, vector_of

FREE = 4096  # close calls before they are held against the scores
SHARE = 256  # scores for each close call that is still worth it


@njit(nogil=True)
def _length(rows, row, factors):
    total = 0.0
    for k in range(factors):
        total += rows[row, k] * rows[row, k]
    return np.sqrt(total)


@njit(nogil=True)
def _largest(items, bias, low, high):
    """Return the length of the longest row low..high, and the largest bias."""
    longest = heaviest = 0.0
    for item in range(low, high):
        longest = max(longest, _length(items, item, items.shape[1]))
        heaviest = max(heaviest, abs(bias[item]) if bias.size > 0 else 0.0)
    return longest, heaviest


@njit(nogil=True)
def _margin(depth, length, longest, heaviest):
    """Return how far a score in float32, from factors rounded to float32, can be from that in float64.

    Two roundings of the factors, one per addition and one of the bounds come to depth + 3 parts in
    2**24 of the sum of the absolute products, which is at most the product of the lengths and the
    bias. The rest is for numbers so small that float32 has no digits for them.
    """
    return (depth + 8) * (2.0**-24 * (length * longest + heaviest) + 2.0**-126 * (1 + length + longest))


@intrinsic
def _near(typing: Any, scores: Any, start: Any, low: Any, high: Any) -> Any:
    """Return 64 bits that tell which of the 64 float32 scores from `start` on are in low..high."""
    signature = types.uint64(scores, types.int64, types.float32, types.float32)

    def emit(context: Any, builder: ir.IRBuilder, signature: Any, values: Any) -> Any:
        vector = vector_of(signature.args[0])
        s = pointer(context, builder, signature.args[0], values[0], values[1])
        low, high = (spread(builder, vector, value) for value in values[2:])
        bits = INDEX(0)
        for j in range(0, 64, vector.count):
            score = load(builder, vector, s, INDEX(j))
            inside = builder.and_(builder.fcmp_ordered(">=", score, low), builder.fcmp_ordered("<=", score, high))
            some = builder.zext(builder.bitcast(inside, ir.IntType(vector.count)), INDEX)
            bits = builder.or_(bits, builder.shl(some, INDEX(j)))
        return bits

    return signature, emit


@njit(nogil=True, forceinline=True)
def _count_between(scores, begin, end, highs, lows, first, last, above, close):
    """Compare every score with every pair of bounds, three pairs at a time: four would not fit into registers."""
    while first + 3 <= last:
        _count_group(3, scores, begin, end, highs, lows, first, above, close)
        first += 3
    if first + 2 <= last:
        _count_group(2, scores, begin, end, highs, lows, first, above, close)
    elif first < last:
        _count_group(1, scores, begin, end, highs, lows, first, above, close)


@njit(nogil=True)
def _settle(scores, begin, end, low, high, users, user, items, bias, item, target):
    """Return how many scores in low..high, of `item` and the next ones, are in truth above and tied."""
    above = tied = 0
    for start in range(begin, end, 64):
        bits, j = _near(scores, start, low, high), start
        while bits and j < end:  # after the end stand scores of another chunk
            if bits & np.uint64(1):
                score = _score(users, user, items, bias, item + j - begin)
                above += score > target
                tied += score == target
            bits >>= np.uint64(1)
            j += 1
    return above, tied


@njit(nogil=True)
def _narrow(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied):
    n_users, depth = users.shape
    packed_users = np.empty((n_users + USERS) * depth, np.float32)
    packed_items = np.empty(CHUNK * depth, np.float32)
    scores = np.empty(USERS * CHUNK, np.float32)
    lows, highs = np.empty(len(test), np.float32), np.empty(len(test), np.float32)
    close = np.zeros(len(test), np.int64)
    row_panels = _pack(users, users[0, :0], 0, n_users, USERS, packed_users)
    n_close = n_scores = 0
    if start == 0:
        _find_targets(users, items, bias, test, test_at, targets, order)
    for low in range(start, stop, CHUNK):
        high = min(low + CHUNK, stop)
        longest, heaviest = _largest(items, bias, low, high)
        item_panels = _pack(items, bias, low, high, 16, packed_items)
        for rows in range(row_panels):
            _score_rows(packed_users, rows, packed_items, item_panels, depth, scores)
            for user in range(rows * USERS, min(rows * USERS + USERS, n_users)):
                begin, first, last = (user - rows * USERS) * CHUNK, test_at[user, 0], test_at[user, 2]
                end = _mask(scores, begin, low, high, user, train, train_at, test, test_at, seen)
                margin = _margin(depth, _length(users, user, items.shape[1]), longest, heaviest)
                for t in range(first, last):
                    lows[t], highs[t] = targets[t] - margin, targets[t] + margin
                _count_between(scores, begin, end, highs, lows, first, last, above, close)
                for t in range(first, last):
                    if close[t]:
                        more, equal = _settle(
                            scores, begin, end, lows[t], highs[t], users, user, items, bias, low, targets[t]
                        )
                        above[t] += more
                        tied[t] += equal
                        n_close += close[t]
                        close[t] = 0
                n_scores += (end - begin) * (last - first)
                if n_close > FREE + n_scores // SHARE:
                    return False
    return True


def narrow_float64(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied):
    """Count as `factors_float64`, or return False, having counted some."""
    return _narrow(users, items, bias, start, stop, train, train_at, test, test_at, targets, order, seen, above, tied)
