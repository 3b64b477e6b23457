"""NumPy files -> arrays, mapped rather than read."""

from pathlib import Path

import numpy as np

from truerank.arrays import AnyArray
from truerank.errors import InputError


def load_array(path: str | Path) -> AnyArray:
    """Return the array in an .npy file, memory-mapped; pickled objects are refused."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (EOFError, OSError, ValueError) as error:
        raise InputError(f"can't read an array from {str(path)!r} ({error}).") from error
    if not isinstance(array, np.ndarray):
        raise InputError(f"{str(path)!r} holds several arrays; give an .npy file with one.")
    return array
