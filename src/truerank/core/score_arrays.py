"""Scores of relevant and irrelevant candidates, as arrays or tensors -> the fields of `Ranks`."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, as_ids, as_plain, counted, slices, to_numpy
from truerank.core.csr import bounds

BLOCK = 2**24
"""Comparisons made at a time."""


def count_scores(
    positive: Any, negative: Any, positive_mask: Any, negative_mask: Any, inclusion: Any = None, most: float = 1.0
) -> dict[str, Any]:
    """Return above, tied, n_candidates, indptr and the estimated counts above, if any; see `Ranks.from_scores`."""
    own, others = to_numpy(positive, "`positive`"), to_numpy(negative, "`negative`")
    own = own[:, None] if own.ndim == 1 else own
    if own.ndim != 2:
        raise InputError(f"`positive` must have shape (rows,) or (rows, positives), got {own.shape}.")
    if others.ndim not in (1, 2) or (others.ndim == 2 and len(others) != len(own)):
        allowed = f"(m,) for one pool, or ({len(own)}, m): as many rows as `positive`"
        raise InputError(f"`negative` must have shape {allowed}, got {others.shape}.")
    is_relevant = _mask("positive", positive_mask, own, np.shape(positive))
    counts = _mask("negative", negative_mask, others, others.shape)
    order = np.argsort(np.where(is_relevant, -own, np.inf), axis=1, kind="stable")
    own, is_relevant = (np.take_along_axis(each, order, axis=1) for each in (own, is_relevant))
    above, tied = _in_pool(own, others[counts]) if others.ndim == 1 else _in_rows(own, others, counts)
    n_relevant = is_relevant.sum(axis=1)
    weights = None if inclusion is None else _weights(inclusion, others, counts, most)
    pool = np.where(counts, others, -np.inf)  # candidates that count come first
    return {
        "estimated": None if weights is None else _weighed(pool, weights, above, tied)[is_relevant],
        "above": above[is_relevant],
        "tied": tied[is_relevant],
        "n_candidates": n_relevant + counts.sum(axis=-1),
        "indptr": bounds(n_relevant),
    }


def _weights(inclusion: Any, others: AnyArray, counts: Bools, most: float) -> Floats:
    """Return 1 / inclusion of the candidates that count, 0 for others."""
    chance = to_numpy(inclusion, "`inclusion`").astype(np.float64)
    if chance.shape != others.shape:
        raise InputError(f"`inclusion` must have the shape of `negative`, {others.shape}, got {chance.shape}.")
    rules = {"above 0 and finite": (chance > 0) & np.isfinite(chance), "at most 1 without replacement": chance <= most}
    for rule, right in rules.items():
        if (wrong := np.argwhere(counts & ~right)).size:
            at = tuple(wrong[0].tolist())
            raise InputError(f"`inclusion` must be {rule}, got {chance[at]} at {list(at)}.")
    return np.divide(1.0, chance, out=np.zeros_like(chance), where=counts)


def _weighed(others: AnyArray, weights: Floats, above: Ints, tied: Ints) -> Floats:
    if others.ndim == 1:
        return weight_above(others[None], weights[None], np.zeros_like(above), above, tied)
    total = np.zeros(above.shape)
    for rows in slices(len(others), BLOCK // max(others.shape[1], 1)):
        row = np.arange(len(others[rows]))[:, None]
        total[rows] = weight_above(others[rows], weights[rows], row, above[rows], tied[rows])
    return total


def weight_above(others: AnyArray, weights: Floats, row: Ints, above: Ints, tied: Ints) -> Floats:
    """Return the total weight of the candidates above relevant ones, plus half that of the tied ones.

    Parameters
    ----------
    others, weights : arrays of shape (rows, m)
        Scores of the candidates, and the weight of each.
    row, above, tied : arrays of int, which broadcast
        The row of each relevant one, and how many candidates of this row are above and tied.

    Examples
    --------
    >>> others, weights = np.array([[0.2, 0.9, 0.5]]), np.array([[10.0, 1.0, 4.0]])
    >>> weight_above(others, weights, np.zeros(2, int), np.array([1, 1]), np.array([0, 1])).tolist()
    [1.0, 3.0]
    """
    falling = np.argsort(others, axis=1)[:, ::-1]
    total = np.zeros((len(others), others.shape[1] + 1))
    np.cumsum(np.take_along_axis(weights, falling, axis=1), axis=1, out=total[:, 1:])
    return (total[row, above] + total[row, above + tied]) / 2


def count_in_batch(scores: Any, items: ArrayLike | None) -> dict[str, Any]:
    """Return above, tied, n_candidates and notes; see `Ranks.in_batch`."""
    matrix = to_numpy(scores, "`scores`")
    size = len(matrix) if matrix.ndim else 0
    if matrix.ndim != 2 or matrix.shape[1] != size or not size:
        raise InputError(f"`scores` must be a square matrix, a row and a column per instance, got {matrix.shape}.")
    _, names = np.unique(np.arange(size) if items is None else as_ids("items", items, size), return_inverse=True)
    others = names[:, None] != names
    _check_finite("scores", matrix, np.ones_like(others))
    above, tied = _in_rows(matrix.diagonal()[:, None], matrix, others)
    return {
        "above": above[:, 0],
        "tied": tied[:, 0],
        "n_candidates": 1 + others.sum(axis=1),
        "notes": _batch_notes(size, others),
    }


def _batch_notes(size: int, others: Bools) -> tuple[str, ...]:
    batch = f"ranked within a batch of {size}: the metrics depend on the size of the batch and on its content"
    repeated = int((others.sum(axis=1) < size - 1).sum())
    words = "row shares its relevant item with another row", "rows share their relevant item with another row"
    return (batch, f"{counted(repeated, *words)}, which is not a candidate there") if repeated else (batch,)


def _mask(name: str, given: Any, scores: AnyArray, shape: tuple[int, ...]) -> Bools:
    """Return which scores count, all of which must be finite."""
    if given is None:
        chosen = np.ones(scores.shape, dtype=np.bool_)
    else:
        plain = as_plain(given, f"`{name}_mask`")
        if plain.shape != shape:
            raise InputError(f"`{name}_mask` must have the shape of `{name}`, {shape}, got {plain.shape}.")
        chosen = plain.reshape(scores.shape) != 0
    _check_finite(name, scores, chosen, f"; leave candidates out with `{name}_mask`, not by their scores")
    return chosen


def _check_finite(name: str, scores: AnyArray, chosen: Bools, hint: str = "") -> None:
    wrong = np.argwhere(chosen & ~np.isfinite(scores))
    if wrong.size:
        at = tuple(wrong[0].tolist())
        raise InputError(f"`{name}` must be finite, got {scores[at]} at {list(at)}{hint}.")


def _in_pool(own: AnyArray, pool: AnyArray) -> tuple[Ints, Ints]:
    """Count in one pool for all rows; it is sorted once."""
    if own.dtype != pool.dtype:  # searching would round one to the other, or copy the pool for every call
        own, pool = own.astype(np.float64), pool.astype(np.float64)
    rising = np.sort(pool)
    lower, not_higher = (np.searchsorted(rising, own, side=side) for side in ("left", "right"))
    return pool.size - not_higher, not_higher - lower


def _in_rows(own: AnyArray, others: AnyArray, counts: Bools) -> tuple[Ints, Ints]:
    """Count in each relevant item's own row."""
    above, tied = np.zeros(own.shape, dtype=np.int64), np.zeros(own.shape, dtype=np.int64)
    for rows in slices(len(own), BLOCK // max(others.shape[1], 1)):
        for at in range(own.shape[1]):
            mine = own[rows, at, None]
            above[rows, at] = ((others[rows] > mine) & counts[rows]).sum(axis=1)
            tied[rows, at] = ((others[rows] == mine) & counts[rows]).sum(axis=1)
    return above, tied
