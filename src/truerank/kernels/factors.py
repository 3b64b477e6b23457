"""Counts, best items and scores of single pairs from the factors of users and items."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from threading import Event
from typing import Any, NamedTuple

import numpy as np

from truerank.core.checks import AnyArray, Ints, refuse_score
from truerank.kernels import library
from truerank.kernels.draws import Draws
from truerank.kernels.orders import Order
from truerank.kernels.scores import Best, BestBlock, best_of_blocks, best_scores, count_scores
from truerank.kernels.user_blocks import Counts, Lists, Progress, Spans, UserBlock, count_blocks


def score_pairs(
    user_factors: AnyArray, item_factors: AnyArray, users: Ints, items: Ints, *, item_bias: AnyArray | None = None
) -> AnyArray:
    """Return the scores of pairs of users and items; the compiled loop returns the scores that `count_factors` counts.

    Parameters
    ----------
    user_factors, item_factors, item_bias
        As in `count_factors`; scores are in float32 if both factors are, and in float64 otherwise.
    users, items : arrays of int, one entry per pair
        It is faster if pairs of the same user follow each other.

    Examples
    --------
    >>> score_pairs(np.array([[1.0], [2.0]]), np.array([[3.0], [4.0]]), np.array([0, 1, 1]), np.array([0, 0, 1]))
    array([3., 6., 8.])
    """
    number = np.result_type(user_factors, item_factors)
    if library.load() is None:
        return _score_pairs(user_factors, item_factors, users, items, item_bias)
    scores = np.empty(len(users), number)
    factors = [library.MatrixArgument.of(np.ascontiguousarray(each, number)) for each in (user_factors, item_factors)]
    bias = None if item_bias is None else np.ascontiguousarray(item_bias, number)
    pairs = [np.ascontiguousarray(each, np.int64) for each in (users, items)]
    library.call(f"score_pairs_{number}", *factors, bias, *pairs, len(users), scores)
    return scores


class SampledCounts(NamedTuple):
    """Per relevant item, user by user, and from the highest score down.

    `above` and `tied` count sampled scores that are higher and equal, `scores` are those of the relevant items, and
    `order` is the position at which each was given.
    """

    above: Ints
    tied: Ints
    order: Ints
    scores: AnyArray


def count_sampled(own: AnyArray, own_bounds: Ints, sampled: AnyArray, bounds: Ints) -> SampledCounts:
    """Count the sampled scores above, and equal to, each relevant one of the same user.

    Parameters
    ----------
    own, sampled : arrays of float, of the same type
        Finite scores of the relevant and of the sampled items, user by user.
    own_bounds, bounds : arrays of int
        Where the scores of each user begin, and where the last ones end.

    Examples
    --------
    >>> own, sampled = np.array([0.2, 0.7, 0.5]), np.array([0.5, 0.7, 0.9, 0.1])
    >>> counts = count_sampled(own, np.array([0, 2, 3]), sampled, np.array([0, 2, 4]))
    >>> counts.above.tolist(), counts.tied.tolist(), counts.order.tolist()
    ([0, 2, 1], [1, 0, 0], [1, 0, 2])
    """
    n_own, n_all = np.diff(own_bounds), np.diff(own_bounds) + np.diff(bounds)
    column = np.arange(n_all.max(initial=0))
    is_own, is_given = column < n_own[:, None], column < n_all[:, None]
    table = np.zeros(is_own.shape, own.dtype)
    table[is_own], table[is_given & ~is_own] = own, sampled
    missing = Lists(np.append(0, np.cumsum(column.size - n_all)), np.nonzero(~is_given)[1])
    counts = count_scores(table.__getitem__, column.size, missing, Lists(own_bounds, np.nonzero(is_own)[1]))
    return SampledCounts(counts.above, counts.tied, counts.order, own[counts.order])


class FactorSamples:
    """Counts sampled items by the scores of factors, mostly from factors in whole numbers of 16 bits.

    These are a half or a quarter as long, and their products may be added in any order. Where they can't tell which
    score is higher, scores are those of `score_pairs`, so the counts are the same.

    Examples
    --------
    >>> samples = FactorSamples.of(np.ones((1, 1)), np.array([[4.0], [3.0], [1.0]]), None, n_pairs=100)
    >>> own, sampled = Lists(np.array([0, 1]), np.array([1])), Lists(np.array([0, 2]), np.array([0, 2]))
    >>> samples.counts(np.array([0]), own, sampled).above
    array([1])
    """

    def __init__(self, factors: _FactorArrays, n_pairs: int) -> None:
        self.factors = factors
        self.unit = np.zeros(1)
        self.whole = self._rounded() if n_pairs >= PAIRS_PER_WHOLE * len(factors.items) else None

    @classmethod
    def of(
        cls, user_factors: AnyArray, item_factors: AnyArray, item_bias: AnyArray | None, n_pairs: int
    ) -> FactorSamples | None:
        """Return the counter for about so many pairs in all, or None if scores may not be finite."""
        columns = item_factors.shape[1] + (item_bias is not None)
        if not 0 < columns <= MOST_WHOLE_COLUMNS or library.load() is None:
            return None
        factors = _prepared(user_factors, item_factors, item_bias)
        is_in_range = factors.largest < WHOLE_BELOW and _largest(user_factors) < WHOLE_BELOW
        return cls(factors, n_pairs) if is_in_range else None

    def _rounded(self) -> AnyArray:
        """Return the factors of all items in whole numbers; see kernels.h."""
        _, items, bias = self.factors.arguments(self.factors.rows(np.zeros(0, np.int64)))
        columns = -(-self.factors.width // library.WHOLE_COLUMNS) * library.WHOLE_COLUMNS
        whole = np.empty((len(self.factors.items), columns), np.int16)
        library.call(f"round_factors_{self.factors.number}", items, bias, whole, self.unit)
        return whole

    def counts(self, users: Ints, own: Lists, sampled: Lists) -> SampledCounts:
        """Score and count the relevant and the sampled items of some users; there is one list of either for each."""
        above, tied, order = np.zeros((3, len(own.indices)), np.int64)
        scores, seen = np.empty(len(own.indices), self.factors.number), np.zeros(len(own.indices), np.bool_)
        first, second = Spans.of_lists(sampled), Spans.of_lists(own)
        self._call(users, library.BlockArgument.of(first, second, scores, order, seen, above, tied), None)
        return SampledCounts(above, tied, order, scores)

    def count_drawn(
        self, train: Lists, test: Lists, draws: Draws, threads: int = 1, progress: Progress | None = None
    ) -> Counts:
        """Draw items for the users with held-out items, which are in neither list, and count them.

        Arguments and results are those of `count_factors`, but for the draws.
        """

        def count(block: UserBlock, stopped: Event) -> None:
            if not stopped.is_set():
                self._call(block.users, block.as_argument(self.factors.number), draws.as_argument(block.users))

        n_users, work = int(np.count_nonzero(np.diff(test.indptr))), draws.size * (self.factors.width + WORK_PER_DRAW)
        size = _fair_size(n_users, threads, max(WORK_PER_CALL // (DRAWN_SLOWER * work), 1))
        return count_blocks(count, size, len(self.factors.items), train, test, threads, progress)

    def _call(self, users: Ints, block: library.BlockArgument, draws: library.DrawsArgument | None) -> None:
        given = (*self.factors.arguments(self.factors.rows(users)), self.whole, self.unit)
        library.call(f"count_among_{self.factors.number}", *given, block, draws)


USERS_PER_TILE = 12  # users scored together, or half as many; it only affects speed
USERS_PER_BLOCK = 6120  # at most; packing the items then takes less than 1 % of the time
BLOCKS_IN_ORDER = 5  # blocks that are joined if items come in another order: fewer users need the later items
FLOAT32_BELOW = 2.0**100  # float64 factors and scores below this can be approximated in float32
COMPARED_BY_FLOAT32 = 1024  # held-out items per user; with more, a binary search among exact scores is faster
COLUMNS_FOR_INT16, WORK_FOR_INT16 = 32, 2**20  # factors, and multiply-adds per user, from which int16 pays off
HELD_OUT_FOR_INT16 = 32  # held-out items per user, on average, up to which int16 pays off
PAIRS_PER_WHOLE = 8  # pairs per item from which rounding all items before sampling pays off
MOST_WHOLE_COLUMNS = 1024  # factors that are rounded
WHOLE_BELOW = 2.0**40  # factors with which float32 does not overflow
WORK_PER_DRAW, DRAWN_SLOWER = 32, 4  # multiply-adds, and how many more take as long as one of an item that is not drawn
ITEMS_PER_DEPTH = 32  # a depth below this share of the catalogue leaves few items to score
WORK_PER_CALL = 2**33  # multiply-adds; a call can't be interrupted and lasts a few tenths of a second
TIMES_FASTER = {"count_sieve": 4, "best_sieve": 4}  # than others; as each call rounds its users first, few are better
CHUNK = 4096  # the smallest number of items per call
_BY_NUMBER = {"count_narrow", "count_factors_float32", "count_factors_float64"}  # the other loops need an order
_NO_DEPTH = 2**63 - 1
LEAST_FIRST, FIRST_PER_BEST = 1024, 4  # items that are searched before int8: at least, and per item of a list
CHUNK_IN_ORDER = 256  # parts of a catalogue in another order are multiples of this
_CHECKED_AT_ONCE = 2**23  # scores


class _FactorArrays(NamedTuple):
    """Factors in the form the loops need; if there is a bias, users have an additional factor of 1."""

    users: AnyArray
    items: AnyArray
    bias: AnyArray
    largest: float  # absolute value of an item's factor or bias

    @property
    def number(self) -> np.dtype[Any]:
        return self.items.dtype

    @property
    def width(self) -> int:
        """Factors of a user."""
        return self.items.shape[1] + bool(self.bias.size)

    def rows(self, users: Ints) -> AnyArray:
        """Return the factors of some users."""
        width = self.items.shape[1]
        if not self.bias.size:
            return np.ascontiguousarray(self.users[users], self.number)
        rows = np.ones((len(users), width + 1), self.number)
        rows[:, :width] = self.users[users]
        return rows

    def arguments(self, rows: AnyArray) -> tuple[Any, ...]:
        """Return the rows of users, the items and the bias for a compiled loop."""
        return *map(library.MatrixArgument.of, (rows, self.items)), self.bias if self.bias.size else None

    def columns(self, chosen: slice) -> AnyArray:
        """Return the factors of some items, the bias included."""
        return np.column_stack([self.items[chosen], self.bias[chosen]]) if self.bias.size else self.items[chosen]


def count_factors(
    user_factors: AnyArray,
    item_factors: AnyArray,
    train: Lists,
    test: Lists,
    *,
    item_bias: AnyArray | None = None,
    depth: int | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Counts:
    """Return the counts of the scores ``user_factors @ item_factors.T + item_bias``.

    In the compiled loops a score depends only on its two rows, so items with equal rows always tie.

    Parameters
    ----------
    user_factors, item_factors : arrays of shape (n_users, d) and (n_items, d)
        Scores are computed in float32 if both are float32, and otherwise in float64 where float32
        cannot decide. They may be memory-mapped.
    train, test : Lists
        The candidates of a user are all items except those in `train`. Items in `test` are relevant,
        even if they are also in `train`, and are never counted.
    item_bias : array of shape (n_items,), optional
    depth : int, optional
        Count only as far as needed to know which relevant items have fewer than `depth` candidates above them, and how
        many; for others, `above` is at least `depth`, and `tied` is undefined.
    threads : int
        Blocks counted at the same time. The result does not depend on it.
    progress : callable, optional
        Called after each block with its number of users, always in the calling thread.

    Raises
    ------
    InputError
        If a candidate's score is not finite, or so large that a partial sum could overflow.

    Examples
    --------
    >>> train, test = Lists(np.array([0, 1]), np.array([3])), Lists(np.array([0, 2]), np.array([1, 2]))
    >>> items = np.array([[4.0], [3.0], [1.0], [9.0], [1.0]])
    >>> count_factors(np.ones((1, 1)), items, train, test)
    Counts(above=array([1, 1]), tied=array([0, 1]), order=array([0, 1]), seen=array([False, False]))
    """
    factors = _prepared(user_factors, item_factors, item_bias)
    n_items = len(factors.items)
    if library.load() is None:
        score = _scores_of_factors(factors.rows, factors.columns(slice(None)))
        return count_scores(score, n_items, train, test, threads=threads, progress=progress)
    most = USERS_PER_BLOCK * (1 if depth is None else BLOCKS_IN_ORDER)
    size = _fair_size(int(np.count_nonzero(np.diff(test.indptr))), threads, most)
    return count_blocks(_counter(factors, depth), size, n_items, train, test, threads, progress)


def best_factors(
    user_factors: AnyArray,
    item_factors: AnyArray,
    users: Ints,
    excluded: Lists,
    k: int,
    *,
    item_bias: AnyArray | None = None,
    threads: int = 1,
    progress: Progress | None = None,
) -> Best:
    """Return the k best items of some users by the scores that `count_factors` counts.

    Parameters
    ----------
    user_factors, item_factors, item_bias, threads, progress
        As in `count_factors`.
    users : array of int, ascending
    excluded : Lists
        Items of each user, chosen or not, that are left out.
    k : int

    Examples
    --------
    >>> excluded = Lists(np.array([0, 1]), np.array([3]))
    >>> items = np.array([[4.0], [3.0], [1.0], [9.0], [1.0]])
    >>> best_factors(np.ones((1, 1)), items, np.array([0]), excluded, 3)
    Best(items=array([[0, 1, 2]], dtype=int32), scores=array([[4., 3., 1.]]), found=array([3]))
    """
    factors = _prepared(user_factors, item_factors, item_bias)
    n_items = len(factors.items)
    if library.load() is None:
        score = _scores_of_factors(factors.rows, factors.columns(slice(None)))
        return best_scores(score, n_items, users, excluded, k, threads=threads, progress=progress)

    order, crowded = Order.of(factors.users, factors.items, factors.bias), Event()

    def search(chosen: Ints, stopped: Event) -> BestBlock:
        block, rows = BestBlock.of(chosen, excluded, k, factors.number), factors.rows(chosen)
        _check_factors(block, factors, rows)
        if not crowded.is_set() and _suits_int16(factors):
            first = -(-max(LEAST_FIRST, FIRST_PER_BEST * k) // CHUNK_IN_ORDER) * CHUNK_IN_ORDER
            if _search(block, factors, rows, order, stopped, first):
                return block
            crowded.set()
            block.reset()
        _search(block, factors, rows, order, stopped, n_items)
        return block

    size = _fair_size(len(users), threads, BLOCKS_IN_ORDER * USERS_PER_BLOCK)
    return best_of_blocks(search, size, n_items, users, excluded, threads, progress)


def _search(
    block: BestBlock, factors: _FactorArrays, users: AnyArray, order: Order, stopped: Event, first: int
) -> bool:
    """Search the first items for the block exactly, and others mostly by int8; return False if this gives up."""
    n_items, placed = len(factors.items), block._replace(excluded=order.placed(block.as_user_block()))
    given = *factors.arguments(users), placed.as_argument(), order.as_argument()
    first = min(first, n_items)
    for entry, begin, end in ((f"best_factors_{factors.number}", 0, first), ("best_sieve", first, n_items)):
        for start, stop in pairwise([*range(begin, end, _items_per_call(entry, users.size)), end]):
            if stopped.is_set():
                return True
            if library.call(entry, *given, start, stop):
                return False
    return True


def _prepared(user_factors: AnyArray, item_factors: AnyArray, item_bias: AnyArray | None) -> _FactorArrays:
    number = np.dtype(np.float32 if user_factors.dtype == item_factors.dtype == np.float32 else np.float64)
    items = np.asarray(item_factors, number)
    if items.shape[1] == 0:  # all scores are 0, or the bias
        user_factors, items = np.zeros((len(user_factors), 1), number), np.zeros((len(items), 1), number)
    bias = np.ascontiguousarray([] if item_bias is None else item_bias, number)
    largest = float(np.maximum(_largest(items), _largest(bias)))  # NaN if either is
    return _FactorArrays(user_factors, items, bias, largest)


def _counter(factors: _FactorArrays, depth: int | None) -> Callable[[UserBlock, Event], None]:
    """Return a function that counts a block, down to a depth or, if it is None, to the end."""
    crowded = Event()  # set if too many scores are too close for a quicker loop to help
    is_ordered = depth is not None or _suits_int16(factors)
    order = Order.of(factors.users, factors.items, factors.bias) if is_ordered else None
    plain = f"count_{'factors' if depth is None else 'top'}_{factors.number}"

    def given(entry: str, block: UserBlock) -> tuple[UserBlock, tuple[Any, ...]]:
        if order is None or entry in _BY_NUMBER:
            return block, ()
        return block._replace(train=order.placed(block)), (order.as_argument(), depth or _NO_DEPTH)

    def count(block: UserBlock, stopped: Event) -> None:
        users = factors.rows(block.users)
        sizes = _check_factors(block, factors, users)
        quick = None if crowded.is_set() else _quicker(block, factors, depth, sizes)
        if quick is not None:
            if _sweep(quick, *given(quick, block), factors, users, stopped):
                return
            crowded.set()
            block.reset()
        _sweep(plain, *given(plain, block), factors, users, stopped)

    return count


def _quicker(
    block: UserBlock, factors: _FactorArrays, depth: int | None, sizes: tuple[float, float, float]
) -> str | None:
    """Return the name of a loop that decides most pairs in less precision, or None if it would not help."""
    if factors.number == np.float64:
        return "count_narrow" if depth is None and _suits_float32(block, *sizes) else None
    if depth is not None and depth * ITEMS_PER_DEPTH <= len(factors.items):
        return "count_sieve" if _suits_int16(factors) else None
    is_few = depth is not None or len(block.test.items) <= HELD_OUT_FOR_INT16 * len(block.users)
    return "count_int16" if is_few and _suits_int16(factors) else None


def _suits_int16(factors: _FactorArrays) -> bool:
    """Whether scoring takes long enough that sorting and rounding the factors first pays off."""
    n_items, columns = factors.items.shape
    is_long = columns >= COLUMNS_FOR_INT16 and n_items * columns >= WORK_FOR_INT16
    return factors.number == np.float32 and is_long and library.call("int16_lanes") > 0


def _sweep(
    entry: str, block: UserBlock, more: tuple[Any, ...], factors: _FactorArrays, users: AnyArray, stopped: Event
) -> bool:
    """Count all items for the block by a loop, which may take more arguments; return False if the loop gives up."""
    n_items = len(factors.items)
    given, argument = factors.arguments(users), block.as_argument(factors.number)
    held_out = min(len(block.test.items) / len(block.users), COMPARED_BY_FLOAT32)
    work = len(block.users) * (users.shape[1] + 4 * held_out)  # two comparisons and two additions
    step = _items_per_call(entry, work)
    for start in range(0, n_items, step):
        stop = min(start + step, n_items)
        if stopped.is_set():
            return True
        if library.call(entry, *given, argument, *more, start, stop):
            return False
    return True


def _items_per_call(entry: str, work: float) -> int:
    """Return how many items, each of which takes so many multiply-adds, a call of a loop should count or search."""
    return max(int(TIMES_FASTER.get(entry, 1) * WORK_PER_CALL / work) // CHUNK, 1) * CHUNK


def _fair_size(users: int, threads: int, most: int) -> int:
    """Return a block size, in whole tiles and hardly above `most`, that gives every thread equally many blocks."""
    rounds = -(-users // (threads * most))
    tiles = -(-users // (threads * max(rounds, 1) * USERS_PER_TILE))
    return max(tiles, 1) * USERS_PER_TILE


def _suits_float32(block: UserBlock, *sizes: float) -> bool:
    """Whether float32 can hold numbers of these sizes, and users have few enough held-out items to compare with."""
    many = np.maximum(block.test.end - block.test.begin - COMPARED_BY_FLOAT32, 0).mean()
    return bool(many <= 2) and all(size < FLOAT32_BELOW for size in sizes)


def _largest(values: AnyArray) -> float:
    """Return the largest absolute value, or NaN if there is one, without copying the values."""
    return max(float(values.max()), -float(values.min())) if values.size else 0.0


def _check_factors(block: UserBlock | BestBlock, factors: _FactorArrays, users: AnyArray) -> tuple[float, float, float]:
    """Return the largest factors of users and of items, and a bound on scores, unless scores may not be finite.

    Refused are factors whose products do not add up to a finite score in every order.
    """
    most = _largest(users)
    product = users.shape[1] * most * factors.largest
    if not product < float(np.finfo(factors.number).max):  # the negation also catches NaN
        _check_scores(block, factors, users)
    return most, factors.largest, product


def _check_scores(block: UserBlock | BestBlock, factors: _FactorArrays, users: AnyArray) -> None:
    size = max(1, _CHECKED_AT_ONCE // len(users))
    for start in range(0, len(factors.items), size):
        with np.errstate(all="ignore"):
            scores = np.abs(users) @ np.abs(factors.columns(slice(start, start + size))).T
        for row, column in np.argwhere(~np.isfinite(scores)):
            item = start + column
            if block.is_candidate(row, item):
                refuse_score(block.users[row], item, scores[row, column])


_PAIRS = 1 << 14  # pairs whose factors NumPy gathers at once: a part of the cache


def _scores_of_factors(user_rows: Callable[[Ints], AnyArray], items: AnyArray) -> Callable[[Ints], AnyArray]:
    """Return a function that computes scores of users by BLAS, with equal scores for equal items.

    BLAS sums in a different order at the edges of a matrix, which would break true ties, so each
    distinct item is scored once.
    """
    distinct, inverse = np.unique(items, axis=0, return_inverse=True)

    def score(users: Ints) -> AnyArray:
        with np.errstate(all="ignore"):  # scores that are not finite are reported when counting
            return (user_rows(users) @ distinct.T)[:, inverse]

    return score


def _score_pairs(
    user_factors: AnyArray, item_factors: AnyArray, users: Ints, items: Ints, item_bias: AnyArray | None
) -> AnyArray:
    """Return the scores of pairs by NumPy, which may differ from those of the compiled loop in the last bits."""
    scores = np.empty(users.size, np.result_type(user_factors, item_factors))
    for start in range(0, users.size, _PAIRS):
        some = slice(start, start + _PAIRS)
        np.einsum("ij,ij->i", user_factors[users[some]], item_factors[items[some]], out=scores[some])
    return scores if item_bias is None else scores + item_bias[items].astype(scores.dtype)
