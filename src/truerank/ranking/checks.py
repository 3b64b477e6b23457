"""Checks of the counts, names and grades of `Ranks`; each message names what is wrong and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Bools, Floats, Ints, as_ints, frozen, refuse_masked, require
from truerank.errors import InputError
from truerank.sampling.designs import SamplingDesign


def checked_fields(
    *,
    above: ArrayLike,
    tied: ArrayLike | None,
    n_candidates: ArrayLike,
    indptr: ArrayLike | None,
    ids: ArrayLike | None,
    depth: int | None,
    design: SamplingDesign | None,
    n_catalogue: ArrayLike | None,
    drawn: ArrayLike | None,
    scored: ArrayLike | None,
    count_weights: ArrayLike | None,
    grades: ArrayLike | None,
    same_score: ArrayLike | None,
    items: ArrayLike | None,
    notes: Sequence[str],
) -> dict[str, Any]:
    """Return the fields of `Ranks` as read-only arrays, or raise `InputError`."""
    higher = as_ints("above", above)
    ties = np.zeros_like(higher) if tied is None else as_ints("tied", tied)
    bounds = np.arange(higher.size + 1) if indptr is None else as_ints("indptr", indptr)
    check_bounds(higher, ties, bounds)
    n = per_instance("n_candidates", n_candidates, bounds.size - 1)
    check_counts(higher, ties, n, bounds)
    looked = None if drawn is None else check_drawn(drawn, higher + ties, n, bounds)
    check_order(higher, ties, bounds, looked)
    catalogue = None if n_catalogue is None else per_instance("n_catalogue", n_catalogue, bounds.size - 1)
    if design is not None and not isinstance(design, SamplingDesign):
        from truerank.sampling.registry import as_design

        design = as_design(design)
    check_design(design, catalogue, n, np.diff(bounds))
    if design is not None:
        design.check_drawn(higher, looked)
    arrays = {
        "above": higher,
        "tied": ties,
        "n_candidates": n,
        "indptr": bounds,
        "ids": None if ids is None else check_ids(ids, bounds.size - 1),
        "n_catalogue": catalogue,
        "drawn": looked,
        "scored": None if scored is None else per_instance("scored", scored, bounds.size - 1),
        "count_weights": check_count_weights(count_weights, design, higher.size),
        "grades": None if grades is None else check_grades(grades, higher.size),
        "same_score": None if grades is None else same_scores(same_score, higher, ties, bounds),
        "items": None if items is None else check_items(items, higher.size),
    }
    fixed = {name: None if array is None else frozen(array) for name, array in arrays.items()}
    return fixed | {"depth": depth, "design": design, "notes": tuple(notes)}


def per_instance(name: str, values: ArrayLike, n_instances: int) -> Ints:
    array = as_ints(name, values)
    if np.ndim(values) == 0:
        return np.full(n_instances, array[0])
    if array.size != n_instances:
        raise InputError(f"`{name}` must be one number or one per instance ({n_instances}), got {array.size}.")
    return array


def check_ids(ids: ArrayLike, n_instances: int) -> AnyArray:
    refuse_masked(ids, "`ids`")
    names = np.asarray(ids)
    if names.shape != (n_instances,):
        raise InputError(f"`ids` must name each of the {n_instances} instances once, got shape {names.shape}.")
    # fixed-width text instead of objects, so that no file format ever needs pickle
    return names.astype(np.str_) if names.dtype.kind in "OT" else names


def check_items(items: ArrayLike, size: int) -> AnyArray:
    refuse_masked(items, "`items`")
    names = np.array(items)
    if names.shape != (size,):
        raise InputError(f"`items` must name each of the {size} relevant items, got shape {names.shape}.")
    return names.astype(np.str_) if names.dtype.kind in "OT" else names


def check_bounds(above: Ints, tied: Ints, indptr: Ints) -> None:
    if tied.size != above.size:
        raise InputError(f"`tied` must have the length of `above` ({above.size}), got {tied.size}.")
    if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != above.size:
        ends = f"{indptr[0]} to {indptr[-1]}" if indptr.size else "nothing"
        raise InputError(f"`indptr` must run from 0 to {above.size}, got {ends}.")
    require(np.diff(indptr) >= 0, "indptr", "never fall", indptr[1:])


def check_grades(grades: ArrayLike, size: int) -> Floats:
    refuse_masked(grades, "`grades`")
    marks = np.array(grades, dtype=np.float64)
    if marks.shape != (size,):
        raise InputError(f"`grades` must hold one number per relevant item ({size}), got shape {marks.shape}.")
    require(
        (marks > 0) & np.isfinite(marks), "grades", "be finite and above 0 (without a grade it is irrelevant)", marks
    )
    return marks


def check_count_weights(weights: ArrayLike | None, design: SamplingDesign | None, size: int) -> Floats | None:
    """Return the weights of the counts above each relevant item, which some designs have and others do not."""
    needed = 0 if design is None else design.n_count_weights
    if weights is None and not needed:
        return None
    array = np.array([] if weights is None else weights, dtype=np.float64)
    if array.shape != (size, needed):
        raise InputError(f"`count_weights` must have the shape {(size, needed)} under {design}, got {array.shape}.")
    require(np.isfinite(array.sum(axis=1)), "count_weights", "be finite", array.sum(axis=1))
    return array


def same_scores(given: ArrayLike | None, above: Ints, tied: Ints, indptr: Ints) -> Bools:
    """Whether each relevant item has the score of the one before it: as given, or as implied by `tied`."""
    counts = _alike(above, tied, indptr)
    if given is None:
        return counts & (tied > 0)
    same = np.array(given, dtype=np.bool_)
    if same.shape != above.shape:
        raise InputError(f"`same_score` must have the length of `above` ({above.size}), got shape {same.shape}.")
    require(counts | ~same, "same_score", "be false unless the item before has the same `above` and `tied`", same)
    return same | (counts & (tied > 0))


def _alike(above: Ints, tied: Ints, indptr: Ints) -> Bools:
    """Whether each relevant item has the same counts as the one before it; if it is tied, they have the same score."""
    same = np.zeros(above.size, dtype=np.bool_)
    same[1:] = (above[1:] == above[:-1]) & (tied[1:] == tied[:-1])
    firsts = indptr[:-1]
    same[firsts[firsts < same.size]] = False
    return same


def check_design(design: SamplingDesign | None, n_catalogue: Ints | None, n: Ints, n_relevant: Ints) -> None:
    if (design is None) != (n_catalogue is None):
        raise InputError("`design` and `n_catalogue` belong together: give both, or neither for exact ranks.")
    if design is None or n_catalogue is None:
        return
    if design.m is not None:
        require(n == design.m + n_relevant, "n_candidates", f"be m + relevant items (m = {design.m})", n)
    filled = n_relevant > 0
    design.check((n_catalogue - n_relevant)[filled], (n - n_relevant)[filled])


def check_drawn(drawn: ArrayLike, counted: Ints, n: Ints, indptr: Ints) -> Ints:
    """Return the draws of each relevant item: no fewer than it counts, no more than its instance has."""
    looked, sizes = as_ints("drawn", drawn), np.diff(indptr)
    if looked.size != counted.size:
        raise InputError(f"`drawn` must have the length of `above` ({counted.size}), got {looked.size}.")
    highest = np.repeat(n - sizes, sizes)
    if np.any(bad := (looked < counted) | (looked > highest)):
        at = int(np.argmax(bad))
        raise InputError(f"`drawn` must lie in {counted[at]}..{highest[at]}, got {looked[at]} at position {at}.")
    return looked


def check_counts(above: Ints, tied: Ints, n: Ints, indptr: Ints) -> None:
    sizes = np.diff(indptr)
    require(n >= sizes, "n_candidates", "be at least the number of relevant items", n)
    irrelevant = np.repeat(n - sizes, sizes)
    if np.any(bad := (above < 0) | (above > irrelevant)):
        at = int(np.argmax(bad))
        raise InputError(f"`above` must lie in 0..{irrelevant[at]}, got {above[at]} at position {at}.")
    if np.any(bad := (tied < 0) | (above + tied > irrelevant)):
        at = int(np.argmax(bad))
        raise InputError(f"`tied` must lie in 0..{irrelevant[at] - above[at]}, got {tied[at]} at position {at}.")


def check_order(above: Ints, tied: Ints, indptr: Ints, drawn: Ints | None) -> None:
    """Refuse items that are not in order; those with different numbers of draws have counts that don't compare."""
    first = np.zeros(above.size + 1, dtype=np.bool_)
    first[indptr[:-1]] = True
    one_block = (np.diff(above) == 0) & (np.diff(tied) == 0)
    in_order = one_block | (above[1:] >= above[:-1] + tied[:-1]) | first[1:-1]
    if drawn is not None:
        in_order |= np.diff(drawn) != 0
    if not np.all(in_order):
        at = int(np.argmin(in_order)) + 1
        raise InputError(
            "`above` must count from the top within an instance, past the ties before it, "
            f"got {above[at]} after {above[at - 1]} with {tied[at - 1]} tied, at position {at}."
        )
