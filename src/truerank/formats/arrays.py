"""NumPy files -> arrays: .npy files are memory-mapped, .npz files are checked before anything is allocated."""

from __future__ import annotations

import os
import tokenize
import zipfile
import zlib
from pathlib import Path
from typing import IO

import numpy as np
from numpy.lib import format as npy

from truerank.arrays import AnyArray
from truerank.errors import InputError
from truerank.formats.limits import check_unpacked
from truerank.formats.reasons import reason

_UNREADABLE = (
    EOFError,
    KeyError,
    MemoryError,
    NotImplementedError,
    OSError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    tokenize.TokenError,
    TypeError,
    tokenize.TokenError,
    ValueError,
    zipfile.BadZipFile,
    zlib.error,
)


def load_array(path: str | Path) -> AnyArray:
    """Return the array in an .npy file, memory-mapped; pickled objects are refused."""
    _check_file(path)
    try:
        with Path(path).open("rb") as file:
            _header(file, repr(str(path)))
        return np.load(path, mmap_mode="r", allow_pickle=False)
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"can't read an array from {str(path)!r} ({reason(error)}).") from error


def load_arrays(path: str | Path) -> dict[str, AnyArray]:
    """Return the arrays in an .npz file by name; pickled objects are refused.

    The declared sizes of the arrays are compared with the size of the file before anything is read.
    """
    _check_file(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            packed = sum(member.compress_size for member in members)
            check_unpacked(repr(str(path)), sum(member.file_size for member in members), packed)
            return {member.filename.removesuffix(".npy"): _member(archive, member, str(path)) for member in members}
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"can't read arrays from {str(path)!r} ({reason(error)}).") from error


def _check_file(path: str | Path) -> None:
    # these, unlike those of a Path, take any text for a path
    if os.path.isdir(path):  # noqa: PTH112
        raise InputError(f"{str(path)!r} is a directory, not a file.")
    if not os.path.isfile(path):  # noqa: PTH113
        raise InputError(f"there is no file {str(path)!r}.")


def _member(archive: zipfile.ZipFile, member: zipfile.ZipInfo, path: str) -> AnyArray:
    name = f"{member.filename!r} in {path!r}"
    with archive.open(member) as file:
        shape, fortran, dtype = _header(file, name)
        flat = np.frombuffer(bytearray(file.read()), dtype=dtype)
    return flat.reshape(shape, order="F" if fortran else "C")


def _header(file: IO[bytes], name: str) -> tuple[tuple[int, ...], bool, np.dtype[np.generic]]:
    """Return shape, order and type of an array in the .npy format."""
    version = npy.read_magic(file)
    read = {(1, 0): npy.read_array_header_1_0, (2, 0): npy.read_array_header_2_0}.get(version)
    if read is None:
        raise InputError(f"{name} must be in version 1.0 or 2.0 of the .npy format, got {version[0]}.{version[1]}.")
    shape, fortran, dtype = read(file)
    if dtype.hasobject:
        raise InputError(f"{name} holds pickled Python objects, which are not read.")
    return shape, fortran, dtype
