"""Array types, checks of arguments, and helpers for error messages and notes."""

from __future__ import annotations

import math
import os
import re
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from truerank.core import InputError as InputError  # defined there, because command lines start without NumPy

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]
AnyArray = NDArray[Any]
Each = TypeVar("Each")
if TYPE_CHECKING:
    import scipy.sparse as sp

    Rng = int | np.random.Generator | None
else:
    Rng = Any  # `np.random` is imported only where random numbers are drawn

_LINE = re.compile(r"^(?:\S*\.)?InputError: (.+)$", re.MULTILINE)


@contextmanager
def raised_on_workers() -> Iterator[None]:
    r"""Raise the `InputError` of another process as one of this process; engines pass on its traceback only.

    Examples
    --------
    >>> with raised_on_workers():
    ...     raise RuntimeError("Traceback:\n  in line 3\ntruerank.InputError: `k` must be at least 1, got 0.")
    Traceback (most recent call last):
    ...
    truerank.InputError: `k` must be at least 1, got 0.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if (found := _LINE.search(str(error))) is None:
            raise
        raise InputError(found[1]) from error


def counted(number: int, one: str, many: str) -> str:
    """Return the number with the singular or plural wording.

    Examples
    --------
    >>> counted(1, "user has", "users have"), counted(3, "user has", "users have")
    ('1 user has', '3 users have')
    """
    return f"{number} {one if number == 1 else many}"


def by_name(notes: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return all notes once; one that does not apply to all starts with the names of those it applies to.

    Examples
    --------
    >>> by_name({"A": ["few users", "ties"], "B": ["few users"]})
    ('few users', 'A: ties')
    """
    about: dict[str, list[str]] = {}
    for name, own in notes.items():
        for note in dict.fromkeys(own):
            about.setdefault(note, []).append(name)
    return tuple(note if len(names) == len(notes) else f"{', '.join(names)}: {note}" for note, names in about.items())


def frozen(array: AnyArray) -> AnyArray:
    """Make an array that nobody else uses read-only, and return it."""
    array.setflags(write=False)
    return array


def same_arrays(a: AnyArray | None, b: AnyArray | None) -> bool:
    """Whether two arrays are equal, or both missing."""
    return a is b if a is None or b is None else np.array_equal(a, b)


def check_whole(name: str, number: Any, least: int = 1, *, otherwise: str = "", floats: bool = False) -> None:
    """Raise `InputError` unless a setting is a whole number of at least `least`; True is not one.

    Parameters
    ----------
    name : str
    number : object
    least : int
    otherwise : str
        What else is allowed, for the message, as in ", or 'all'".
    floats : bool
        Whether 3.0 is a whole number.

    Examples
    --------
    >>> check_whole("k", 0)
    Traceback (most recent call last):
    ...
    truerank.InputError: `k` must be a whole number from 1, got 0.
    """
    is_whole = isinstance(number, int | np.integer) and not isinstance(number, bool)
    if floats and isinstance(number, float | np.floating):
        is_whole = float(number).is_integer()
    if not is_whole or not least <= number < 2**63:
        raise InputError(f"`{name}` must be a whole number from {least}{otherwise}, got {number!r}.")


def as_number(value: Any) -> float:
    """Return a number as it is, and NaN for anything else: NaN is within no bounds, so one check refuses both.

    Examples
    --------
    >>> as_number(0.5), as_number("0.5"), as_number(None), 0 < as_number([1]) < 2
    (0.5, nan, nan, False)
    """
    return cast("float", value) if isinstance(value, int | float | np.integer | np.floating) else math.nan


def as_list(name: str, values: Any, of: str = "") -> list[Any]:
    """Return any iterable except text as a list; `of` says what it must hold.

    Examples
    --------
    >>> as_list("sizes", 5, "whole numbers")
    Traceback (most recent call last):
    ...
    truerank.InputError: `sizes` must be a list of whole numbers, got 5.
    """
    if isinstance(values, str) or not isinstance(values, Iterable) or getattr(values, "ndim", 1) == 0:
        raise InputError(f"`{name}` must be a list{f' of {of}' if of else ''}, got {values!r}.")
    return list(values)


def distinct(values: Iterable[Each]) -> tuple[Each, ...]:
    """Return values without repeats, which need not be hashable, in the order of their first appearance.

    Examples
    --------
    >>> distinct([[2], [1], [2]])
    ([2], [1])
    """
    kept: list[Each] = []
    for value in values:
        if value not in kept:
            kept.append(value)
    return tuple(kept)


def shown(name: object) -> str:
    """Return an id for a message, cut if it is long.

    Examples
    --------
    >>> shown(7), shown("x" * 99)
    ('7', "'xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx...'")
    """
    return repr(name if not isinstance(name, str) or len(name) <= 40 else name[:37] + "...")


def as_path(path: Any) -> Path:
    """Return a path, or raise `InputError` if it is not one."""
    if not isinstance(path, str | os.PathLike):
        raise InputError(f"a path must be text or a Path, got {path!r}.")
    return Path(path)


def as_rng(rng: Any) -> np.random.Generator:
    """Return a random generator made from a seed, or the given one.

    Examples
    --------
    >>> as_rng("0")
    Traceback (most recent call last):
    ...
    truerank.InputError: `rng` must be a whole number from 0, a numpy.random.Generator or None, got '0'.
    """
    try:
        return np.random.default_rng(rng)
    except (TypeError, ValueError):
        kinds = "a whole number from 0, a numpy.random.Generator or None"
        raise InputError(f"`rng` must be {kinds}, got {rng!r}.") from None


def check_kind(name: str, value: object, kind: type, how: str = "") -> None:
    """Raise `InputError` unless a value is of a class; `how` says how to get one.

    Examples
    --------
    >>> check_kind("title", 5, str)
    Traceback (most recent call last):
    ...
    truerank.InputError: `title` must be str, got 5.
    """
    if not isinstance(value, kind):
        raise InputError(f"`{name}` must be {kind.__name__}{how}, got {value!r}.")


def as_frame(given: Any, **options: Any) -> Any:
    """Return a dataframe of any library as one of narwhals; `options` say what else is accepted.

    Examples
    --------
    >>> import pandas as pd
    >>> as_frame(pd.DataFrame([[1, 2]], columns=["id", "id"]))
    Traceback (most recent call last):
    ...
    truerank.InputError: the dataframe has several columns of the same name.
    """
    import narwhals as nw

    try:
        return nw.from_native(given, **options)
    except nw.exceptions.DuplicateError as error:
        raise InputError("the dataframe has several columns of the same name.") from error


def as_floats(name: str, values: ArrayLike) -> Floats:
    """Return numbers as a new array, refusing anything else."""
    refuse_masked(values, f"`{name}`")
    try:
        return np.array(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"`{name}` must hold numbers, got {values!r}.") from None


def check_cutoff(name: str, k: object) -> None:
    """Refuse a cut-off that is not None and not a whole number from 1."""
    if k is not None and (isinstance(k, bool) or not isinstance(k, int) or not 1 <= k < 2**63):
        raise InputError(f"the k of {name}@k must be a whole number from 1, got {k!r}.")


def check_choice(name: str, value: object, choices: Collection[str], *, of: str = "", hint: str = "") -> None:
    """Raise `InputError` unless a setting is one of the choices; `of` names its owner if that is not a function.

    Examples
    --------
    >>> check_choice("ties", "best", ["expected", "random"])
    Traceback (most recent call last):
    ...
    truerank.InputError: `ties` must be 'expected' or 'random', got 'best'.
    """
    if not isinstance(value, str) or value not in choices:
        names = [repr(choice) for choice in choices]
        allowed = " or ".join(names) if len(names) == 2 else f"one of {', '.join(names)}"
        what = f"the {name} of {of}" if of else f"`{name}`"
        raise InputError(f"{what} must be {allowed}, got {value!r}{hint}.")


def first_true(flags: Bools) -> int | None:
    """Return the position of the first flag that is set, None if none is.

    Examples
    --------
    >>> first_true(np.array([False, True, True])), first_true(np.array([False]))
    (1, None)
    """
    return int(flags.argmax()) if flags.any() else None


def require(ok: Bools, name: str, rule: str, values: AnyArray) -> None:
    """Raise `InputError` naming the first value for which `ok` is false."""
    if not ok.all():
        at = int(ok.argmin())
        raise InputError(f"`{name}` must {rule}, got {values[at]} at position {at}.")


def require_within(name: str, values: Ints, least: Ints, most: Ints, start: int = 0) -> None:
    """Raise `InputError` naming the first value outside its bounds, which are included; positions are from `start`."""
    if (at := first_true((values < least) | (values > most))) is not None:
        where = f"at position {start + at}"
        raise InputError(f"`{name}` must lie in {least[at]}..{most[at]}, got {values[at]} {where}.")


def refuse_masked(values: Any, name: str) -> None:
    """Raise `InputError` for masked entries, whose mask NumPy would drop; `name` is what to call the values.

    Examples
    --------
    >>> refuse_masked(np.ma.masked_array([1, 2], mask=[False, True]), "`ranks`")
    Traceback (most recent call last):
    ...
    truerank.InputError: `ranks` must not have masked entries, got 1; fill them in or leave them out.
    """
    ma = sys.modules.get("numpy.ma")  # not imported: nobody has made a masked array
    if ma is not None and ma.is_masked(values):
        n_masked = np.count_nonzero(ma.getmaskarray(values))
        raise InputError(f"{name} must not have masked entries, got {n_masked}; fill them in or leave them out.")


def own(array: AnyArray) -> AnyArray:
    """Return an array that nobody else changes: the array itself if it is frozen, otherwise a copy."""
    return array.copy() if array.flags.writeable or not array.flags.owndata else array


def as_ints(name: str, values: ArrayLike) -> Ints:
    """Return `values` as a one-dimensional int64 array of our own, refusing anything but whole numbers."""
    refuse_masked(values, f"`{name}`")
    array = np.atleast_1d(np.asarray(values))
    if array.ndim != 1:
        raise InputError(f"`{name}` must be one-dimensional, got {array.ndim} dimensions.")
    if array.dtype.kind == "f":
        require(np.floor(array) == array, name, "hold whole numbers", array)
        require(np.abs(array) < 2**53, name, "hold whole numbers below 2**53", array)
    elif array.dtype.kind not in "iu":
        raise InputError(f"`{name}` must hold whole numbers, got values of type {array.dtype}.")
    return own(array) if array.dtype == np.int64 else array.astype(np.int64)


def is_sparse(value: Any) -> TypeGuard[sp.sparray]:
    """Whether something is a SciPy sparse matrix; none can exist before `scipy.sparse` has been imported."""
    loaded = sys.modules.get("scipy.sparse")
    return loaded is not None and loaded.issparse(value)


def to_numpy(array: Any, name: str) -> AnyArray:
    """Return a NumPy array of float32 or float64; half precision and whole numbers are widened.

    Masked entries are refused, and so are whole numbers beyond 2**53, among which float64 would create ties.

    Parameters
    ----------
    array : array, tensor, embedding layer of PyTorch, or nested list of real numbers
    name : str
        What to call it in messages.

    Examples
    --------
    >>> to_numpy([[1, 2]], "`matrix`")
    array([[1., 2.]])
    """
    plain = as_plain(array, name)
    if plain.dtype in (np.float32, np.float64):
        return plain
    if plain.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, got values of type {plain.dtype}.")
    if plain.dtype.kind in "iu" and plain.dtype.itemsize == 8 and plain.size:
        most = max(int(plain.max()), -int(plain.min()))
        if most > 2**53:
            raise InputError(f"{name} must hold floats, or whole numbers up to 2**53, got one of size {most}.")
    return plain.astype(np.float32 if plain.dtype == np.float16 else np.float64)


def as_plain(array: Any, name: str) -> AnyArray:
    """Return a NumPy array with the values of an array or tensor of another library, on any device."""
    if hasattr(array, "embedding_dim"):
        array = array.weight
    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        array = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    refuse_masked(array, name)
    try:
        if hasattr(array, "__dlpack__") and not hasattr(array, "__array__"):
            return np.from_dlpack(array)
        plain = array if isinstance(array, np.ndarray) else np.asarray(array)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{name} must be an array ({str(error).splitlines()[0]}).") from error
    except (BufferError, RuntimeError) as error:  # DLPack from a device that NumPy can't read
        raise InputError(f"{name} must be in main memory ({str(error).splitlines()[0]}).") from error
    return plain.astype(np.float32) if plain.dtype.name == "bfloat16" else plain  # from JAX, unknown to NumPy


def as_ids(name: str, given: ArrayLike, size: int | None = None) -> AnyArray:
    """Return names as a one-dimensional array, of the given size if there is one.

    Examples
    --------
    >>> as_ids("item_ids", ["b", "a"], 2).tolist()
    ['b', 'a']
    """
    refuse_masked(given, f"`{name}`")
    ids = np.asarray(given)
    if ids.ndim != 1 or (size is not None and ids.size != size):
        expected = "be one-dimensional" if size is None else f"have {size} entries"
        raise InputError(f"`{name}` must {expected}, got shape {ids.shape}.")
    # fixed-width text instead of objects, so that no file format ever needs pickle
    return ids.astype(np.str_) if ids.dtype.kind in "OT" else ids


def slices(size: int, step: int) -> Iterator[slice]:
    """Yield slices of `step` entries, at least one each, that divide an array of this size.

    Examples
    --------
    >>> list(slices(5, 2))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 6, None)]
    """
    step = max(step, 1)
    return (slice(start, start + step) for start in range(0, size, step))


def distinct_columns(*rows: AnyArray) -> tuple[Ints, Ints]:
    """Return where each distinct column first occurs, and the number of the distinct column that each column equals.

    Distinct columns are in lexicographic order, as in ``np.unique(rows, axis=1)``, which takes ten times as long. The
    rows must have the same length.

    Examples
    --------
    >>> first, which = distinct_columns(np.array([3, 1, 3, 1]), np.array([0.5, 2.0, 0.5, 1.0]))
    >>> first.tolist(), which.tolist()
    ([3, 1, 0], [2, 1, 2, 0])
    """
    which = np.zeros(rows[0].size, dtype=np.int64)
    for row in rows:
        codes = places_among_distinct(row)
        which = places_among_distinct(which * (codes.max(initial=0) + 1) + codes)
    first = np.empty(which.max(initial=-1) + 1, dtype=np.int64)
    first[which[::-1]] = np.arange(which.size)[::-1]
    return first, which


# range of whole numbers, relative to how many they are, up to which marking them is faster than sorting
_MARKED = 16


def places_among_distinct(keys: AnyArray) -> Ints:
    """Return the place of each key among the distinct ones in ascending order, without sorting where that is faster.

    Examples
    --------
    >>> places_among_distinct(np.array([70, 10, 70, 30])).tolist()
    [2, 0, 2, 1]
    """
    if not keys.size or keys.dtype.kind != "i":
        return np.unique(keys, return_inverse=True)[1]
    least = int(keys.min())
    span = int(keys.max()) - least + 1
    if span > _MARKED * keys.size:
        return np.unique(keys, return_inverse=True)[1]
    there = np.zeros(span, dtype=np.bool_)
    there[keys - least] = True
    return (np.cumsum(there) - 1)[keys - least]


def refuse_pairs(lists: Sequence[Any] | AnyArray, name: str) -> None:
    """Raise `InputError` if lists are tuples of two, which may be pairs of user and item."""
    if len(lists) and all(isinstance(row, tuple) and len(row) == 2 for row in lists):
        raise InputError(
            f"{name} has tuples of two, which may be pairs of user and item or the items of each user: "
            f"give the items of each user as lists, [{list(lists[0])!r}, ...], "
            "and read pairs from columns, {'user': [...], 'item': [...]}."
        )


def per_instance(name: str, values: ArrayLike, n_instances: int) -> Ints:
    array = as_ints(name, values)
    if np.ndim(values) == 0:
        return np.full(n_instances, array[0])
    if array.size != n_instances:
        raise InputError(f"`{name}` must be one number or one per instance ({n_instances}), got {array.size}.")
    return array


_ENTRIES = 1 << 20  # of a stretch


def stretches(indptr: Ints) -> Iterator[tuple[slice, slice]]:
    """Yield stretches of consecutive groups and their entries, about a million, so that temporary arrays are small.

    Examples
    --------
    >>> list(stretches(np.array([0, 2, 2, 5])))
    [(slice(0, 3, None), slice(0, 5, None))]
    """
    step = max(_ENTRIES * (indptr.size - 1) // max(int(indptr[-1]), indptr.size), 1)
    for groups in slices(indptr.size - 1, step):
        groups = slice(groups.start, min(groups.stop, indptr.size - 1))
        yield groups, slice(int(indptr[groups.start]), int(indptr[groups.stop]))


def check_bounds(above: Ints, tied: Ints, indptr: Ints) -> None:
    if tied.size != above.size:
        raise InputError(f"`tied` must have the length of `above` ({above.size}), got {tied.size}.")
    if indptr.size == 0 or indptr[0] != 0 or indptr[-1] != above.size:
        ends = f"{indptr[0]} to {indptr[-1]}" if indptr.size else "nothing"
        raise InputError(f"`indptr` must run from 0 to {above.size}, got {ends}.")
    require(indptr[1:] >= indptr[:-1], "indptr", "never fall", indptr[1:])


def check_grades(grades: ArrayLike, size: int) -> Floats:
    marks = as_floats("grades", grades)
    if marks.shape != (size,):
        raise InputError(f"`grades` must hold one number per relevant item ({size}), got shape {marks.shape}.")
    rule = "be finite and above 0 (leave out irrelevant items)"
    require((marks > 0) & np.isfinite(marks), "grades", rule, marks)
    return marks


def check_counts(above: Ints, tied: Ints, n: Ints, indptr: Ints) -> None:
    for instances, items in stretches(indptr):
        sizes = np.diff(indptr[instances.start : instances.stop + 1])
        if (at := first_true(n[instances] < sizes)) is not None:
            where = f"got {n[instances][at]} at position {instances.start + at}"
            raise InputError(f"`n_candidates` must be at least the number of relevant items, {where}.")
        irrelevant = np.repeat(n[instances] - sizes, sizes)
        none, start = np.zeros_like(irrelevant), items.start
        require_within("above", above[items], none, irrelevant, start)
        require_within("tied", tied[items], none, irrelevant - above[items], start)


def check_order(above: Ints, tied: Ints, indptr: Ints, drawn: Ints | None) -> None:
    """Refuse items that are not in order; counts from different numbers of draws are not compared."""
    for instances, items in stretches(indptr):
        first = np.zeros(items.stop - items.start + 1, dtype=np.bool_)
        first[indptr[instances] - items.start] = True
        counts, equal = above[items], tied[items]
        one_block = (np.diff(counts) == 0) & (np.diff(equal) == 0)
        in_order = one_block | (counts[1:] >= counts[:-1] + equal[:-1]) | first[1:-1]
        if drawn is not None:
            in_order |= np.diff(drawn[items]) != 0
        if (at := first_true(~in_order)) is not None:
            raise InputError(
                "`above` must count from the top within an instance, past the ties before it, "
                f"got {counts[at + 1]} after {counts[at]} with {equal[at]} tied, at position {items.start + at + 1}."
            )


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
    """Whether each relevant item has the same counts as the one before it; if they count ties, the scores are equal."""
    same = np.zeros(above.size, dtype=np.bool_)
    same[1:] = (above[1:] == above[:-1]) & (tied[1:] == tied[:-1])
    firsts = indptr[:-1]
    same[firsts[firsts < same.size]] = False
    return same


def refuse_score(user: int, item: int, score: float) -> None:
    """Raise the error for a score that is not finite."""
    how = "leave items out with `train` or `exclude`, not by a score"
    hint = f"; {how}" if score == -math.inf else ""
    raise InputError(f"scores must be finite, got {score} for user {user} and item {item}{hint}.")


def check_pairs(scores: AnyArray, users: Ints, items: Ints) -> None:
    """Refuse scores of pairs if one is not finite."""
    if (at := first_true(~np.isfinite(scores))) is not None:
        refuse_score(users[at], items[at], scores[at])
