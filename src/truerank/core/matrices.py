"""Sparse matrices and lists of item numbers -> CSR matrices in which the items of each user ascend."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints, counted, is_sparse, refuse_masked, refuse_pairs, to_numpy
from truerank.core.csr import bounds, owners

if TYPE_CHECKING:
    import scipy.sparse as sp

_NARROW = ("bool", "int8", "uint8", "int16", "uint16")
"""Types whose values float32 holds exactly."""


class Csr(NamedTuple):
    """The arrays of a CSR matrix with ascending items, which needs no SciPy: that is slow to import."""

    data: AnyArray
    indices: AnyArray
    indptr: AnyArray
    shape: tuple[int, int]

    @classmethod
    def of(cls, matrix: sp.csr_array) -> Self:
        """Return the arrays of a matrix that `ascending` returned."""
        size = matrix.indptr[-1]  # SciPy may reserve more
        return cls(matrix.data[:size], matrix.indices[:size], matrix.indptr, matrix.shape)

    @property
    def nnz(self) -> int:
        """Stored entries."""
        return int(self.indices.size)

    def to_scipy(self) -> sp.csr_array:
        """Return the matrix of SciPy that has these arrays."""
        import scipy.sparse as sp

        return sp.csr_array((self.data, self.indices, self.indptr), shape=self.shape)


def ascending(matrix: Any, name: str, *, may_merge: bool) -> sp.csr_array:
    """Return a checked sparse matrix in CSR form with ascending items.

    A matrix that already has this form is not copied.

    Parameters
    ----------
    matrix : sparse matrix
    name : str
        What to call it in messages.
    may_merge : bool
        Whether to sort a matrix that is out of order, and to add up the values of repeated pairs. If False, because
        other arrays are aligned with it, repeated pairs are kept, and a matrix that is out of order is refused.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> ascending(sp.coo_array(([1, 2, 3], ([0, 0, 0], [1, 0, 1]))), "matrix", may_merge=True).toarray().tolist()
    [[2.0, 4.0]]
    """
    if not is_sparse(matrix) or matrix.ndim != 2:
        raise InputError(f"`{name}` must be a two-dimensional sparse matrix, got {type(matrix).__name__}.")
    is_in_order = _check_entries(matrix, f"`{name}`")
    _check_finite(matrix, f"`{name}`")
    if may_merge or is_in_order:
        return _in_order(matrix, is_in_order)
    if matrix.format == "csr" and _ascends(matrix, repeats=True):
        return _in_order(matrix, True)
    raise InputError(f"`{name}` must store the items of each user in ascending order.")


def _in_order(matrix: Any, is_in_order: bool) -> sp.csr_array:
    """Return a matrix in CSR form, with ascending columns and no repeated entries; not a copy if it has this form."""
    import scipy.sparse as sp

    if is_in_order:
        return sp.csr_array(matrix)
    # floats, so that values of repeated pairs do not overflow when they are added up
    rows = sp.csr_array(matrix.astype(float_type(matrix.dtype)), copy=True)
    rows.sum_duplicates()
    return rows


def _check_entries(matrix: Any, name: str) -> bool:
    """Raise `InputError` unless a sparse matrix holds real numbers, all of them within its shape.

    SciPy does not check the indices that it is given, and compiled loops would read or write out of bounds.
    Return whether it has CSR form, with ascending columns and no repeated entries.
    """
    if matrix.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, got values of type {matrix.dtype}.")
    if matrix.format in ("csr", "csc"):
        return _check_compressed(matrix, name)
    try:
        pairs = matrix.tocoo().coords
    except ValueError as error:  # SciPy itself checks some formats
        raise InputError(f"{name} must have rows and columns within its shape {matrix.shape} ({error}).") from error
    for numbers, size, what in zip(pairs, matrix.shape, ("row", "column"), strict=True):
        _check_numbers(numbers, size, name, what)
    return False


def _check_compressed(matrix: Any, name: str) -> bool:
    by_row = matrix.format == "csr"
    n_lines, size = matrix.shape if by_row else matrix.shape[::-1]
    bounds, entries = matrix.indptr, min(matrix.indices.size, matrix.data.size)
    if bounds.size != n_lines + 1 or bounds[0] != 0 or bounds[-1] > entries or np.any(bounds[1:] < bounds[:-1]):
        raise InputError(f"{name} must have an `indptr` that rises from 0 to at most {entries}, its stored entries.")
    numbers = matrix.indices[: bounds[-1]]
    is_in_order = by_row and _ascends(matrix, repeats=False)
    if is_in_order:  # then the first and the last column of each row tell enough
        starts = bounds[:-1][bounds[1:] > bounds[:-1]]
        numbers = numbers[np.append(starts, starts - 1)]  # -1 is the last one of all
    _check_numbers(numbers, size, name, "column" if by_row else "row")
    return is_in_order


def _check_numbers(numbers: AnyArray, size: int, name: str, what: str) -> None:
    if numbers.size and not 0 <= numbers.min() <= numbers.max() < size:
        raise InputError(f"{name} must have {what}s in 0..{size - 1}, got {numbers.min()}..{numbers.max()}.")


def _check_finite(matrix: Any, name: str) -> None:
    """Raise `InputError` unless all stored values of a sparse matrix are finite."""
    values = matrix.tocoo().data if matrix.format in ("lil", "dok") else matrix.data
    if values.dtype.kind == "f" and not np.isfinite(values).all():
        entries = matrix.tocoo()
        at = int(np.argmin(np.isfinite(entries.data)))
        pair = f"user {entries.coords[0][at]} and item {entries.coords[1][at]}"
        raise InputError(f"the values of {name} must be finite, got {entries.data[at]} for {pair}.")


def float_type(number: np.dtype[Any]) -> np.dtype[Any]:
    """Return float32 if it holds all values of a type exactly, and float64 otherwise.

    Examples
    --------
    >>> float_type(np.dtype(np.int8)), float_type(np.dtype(np.int64))
    (dtype('float32'), dtype('float64'))
    """
    return np.dtype(np.float32 if number == np.float32 or number.name in _NARROW else np.float64)


def _ascends(matrix: sp.csr_array, *, repeats: bool) -> bool:
    """Whether the items of each user ascend, with repeats or not: SciPy's check, but with vector instructions."""
    bounds = matrix.indptr
    items = matrix.indices[: bounds[-1]]
    higher = np.empty(items.size + 1, np.bool_)
    (np.greater_equal if repeats else np.greater)(items[1:], items[:-1], out=higher[1:-1])
    higher[bounds] = True  # a user's first item need not be above the last item of the previous user
    return bool(higher.all())


def from_lists(
    lists: Sequence[Any], name: str, n_users: int | None, n_items: int | None
) -> tuple[Csr, tuple[str, ...]]:
    """Return a matrix of ones from a list of item numbers per user, and a note on repeated items.

    Examples
    --------
    >>> matrix, notes = from_lists([[2, 0, 2], []], "test", None, None)
    >>> matrix.to_scipy().toarray().tolist(), notes
    ([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]], ('1 item is repeated in a list of `test` and counts once',))
    """
    refuse_pairs(lists, f"`{name}`")
    rows = [_row(items, user, name) for user, items in enumerate(lists)]
    users = owners(bounds([row.size for row in rows]))
    items: Ints = np.concatenate([*rows, np.zeros(0)], dtype=np.int64, casting="unsafe")
    width = int(items.max(initial=0)) + 1 if n_items is None else n_items
    if items.size and not 0 <= items.min() <= items.max() < width:
        raise InputError(f"`{name}` must hold items 0..{width - 1}, got {items.min()}..{items.max()}.")
    height = len(lists) if n_users is None else max(n_users, len(lists))
    matrix = of_pairs(users, items, (height, width))
    repeated, where = items.size - matrix.nnz, f"in a list of `{name}`"
    note = counted(repeated, f"item is repeated {where} and counts once", f"items are repeated {where} and count once")
    return matrix, (note,) if repeated else ()


def of_pairs(users: Ints, items: Ints, shape: tuple[int, int]) -> Csr:
    """Return a matrix of ones; `users` must ascend, and an item that a user has several times counts once."""
    height, width = shape
    pairs = users * width + items
    if not np.all(pairs[1:] > pairs[:-1]):
        pairs.sort()
        pairs = pairs[np.diff(pairs, prepend=-1) > 0]
        users, items = np.divmod(pairs, width)
    index = np.dtype(np.int32 if max(width, height, items.size) < 2**31 else np.int64)  # as SciPy chooses it
    indptr = bounds(np.bincount(users, minlength=height)).astype(index)
    return Csr(np.ones(items.size, np.float32), items.astype(index), indptr, shape)


def _row(items: Any, user: int, name: str) -> AnyArray:
    """Return one list as an array, or raise `InputError` if it holds anything but whole numbers."""
    refuse_masked(items, f"`{name}`")
    try:
        row = np.asarray(items)
    except ValueError:  # lists of different lengths inside it
        row = np.zeros((0, 0))
    if row.ndim != 1:
        shape = f"an array of shape {row.shape}" if isinstance(items, np.ndarray) else f"{items!r:.60}"
        raise InputError(f"`{name}` must be a list of item numbers per user, got {shape} for user {user}.")
    if row.size and not _whole(row):
        first = next(item for item in items if not _whole(np.asarray(item)))
        raise InputError(f"`{name}` must hold item numbers, got {first!r} for user {user}.")
    return row


def _whole(values: AnyArray) -> bool:
    if values.dtype.kind == "f":
        return bool(np.all((np.floor(values) == values) & (np.abs(values) < 2**53)))
    return values.dtype.kind in "iu"


Matrix = AnyArray | Any
"""A NumPy array, a PyTorch tensor, or any SciPy sparse matrix."""


def as_matrix(given: Matrix, name: str) -> Matrix:
    """Return a two-dimensional matrix of real numbers: a NumPy array, or a sparse matrix in CSR form, in order.

    Examples
    --------
    >>> as_matrix([[1, 2]], "`matrix`").shape
    (1, 2)
    """
    matrix = given if is_sparse(given) else to_numpy(given, name)
    if matrix.ndim != 2:
        raise InputError(f"{name} must be two-dimensional, got {matrix.ndim} dimensions.")
    if not is_sparse(matrix):
        return matrix
    return _in_order(matrix, _check_entries(matrix, name))


def as_dense(matrix: Any) -> AnyArray:
    """Return a matrix as an array of floats; a dense one is returned unchanged.

    Examples
    --------
    >>> import scipy.sparse as sp
    >>> as_dense(sp.csr_array([[1, 0]]))
    array([[1., 0.]])
    """
    return to_numpy(matrix.toarray() if is_sparse(matrix) else matrix, "scores")
