"""Arrays and tensors of other libraries -> NumPy arrays of float32 or float64."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, refuse_masked
from truerank.data.matrices import in_order
from truerank.errors import InputError

# float64 holds every whole number up to here
_EXACT = 2**53

Matrix = AnyArray | Any
"""A NumPy array, a PyTorch tensor, or any SciPy sparse matrix."""


def to_numpy(array: Any, name: str) -> AnyArray:
    """Return a NumPy array of float32 or float64; half precision and whole numbers are widened.

    Masked entries are refused, and whole numbers beyond 2**53, of which float64 would make ties.

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
    if hasattr(array, "embedding_dim"):
        array = array.weight
    if hasattr(array, "detach"):
        tensor = array.detach().cpu()
        array = tensor.float() if str(tensor.dtype) == "torch.bfloat16" else tensor
    refuse_masked(array, name)
    try:
        plain = array if isinstance(array, np.ndarray) else np.asarray(array)
    except ValueError as error:  # rows of different lengths
        raise InputError(f"{name} must be an array ({str(error).splitlines()[0]}).") from error
    if plain.dtype in (np.float32, np.float64):
        return plain
    if plain.dtype.kind not in "biuf":
        raise InputError(f"{name} must hold real numbers, got values of type {plain.dtype}.")
    if plain.dtype.kind in "iu" and plain.dtype.itemsize == 8 and plain.size:
        most = max(int(plain.max()), -int(plain.min()))
        if most > _EXACT:
            raise InputError(f"{name} must hold floats, or whole numbers up to 2**53, got one of size {most}.")
    return plain.astype(np.float32 if plain.dtype == np.float16 else np.float64)


def as_matrix(given: Matrix, name: str) -> Matrix:
    """Return a two-dimensional matrix of real numbers: a NumPy array, or a sparse matrix in CSR form, in order.

    Examples
    --------
    >>> as_matrix([[1, 2]], "`matrix`").shape
    (1, 2)
    """
    matrix = given if sp.issparse(given) else to_numpy(given, name)
    if matrix.ndim != 2:
        raise InputError(f"{name} must be two-dimensional, got {matrix.ndim} dimensions.")
    return in_order(matrix, name) if sp.issparse(matrix) else matrix


def as_dense(matrix: Matrix) -> AnyArray:
    """Return a matrix as an array of floats; a dense one is returned unchanged.

    Examples
    --------
    >>> as_dense(sp.csr_array([[1, 0]]))
    array([[1., 0.]])
    """
    plain: Any = matrix
    return to_numpy(plain.toarray() if sp.issparse(plain) else plain, "scores")
