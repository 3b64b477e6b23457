"""Where bytes come from: files, compressed or not, archives, streams; how large they may be; and arrays in NumPy files.

Files in the format .npy are memory-mapped; those in .npz are checked before anything is allocated.
"""

from __future__ import annotations

import io
import os
import re
import shutil
import stat
import sys
import tempfile
import tokenize
import weakref
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.lib import format as npy

from truerank.core.checks import AnyArray, InputError


def reason(error: BaseException) -> str:
    r"""Return the first line of an error, shortened, without a full stop.

    Examples
    --------
    >>> reason(ValueError("the header is broken.\nhint: repair it"))
    'the header is broken'
    >>> reason(EOFError())
    'EOFError'
    """
    line = (str(error).splitlines() or [""])[0].strip().rstrip(".") or type(error).__name__
    return line if len(line) <= 200 else line[:197] + "..."


LIMIT_VARIABLE = "TRUERANK_UNPACK_LIMIT"
_ROWS = 1 << 16  # unpacked at once, because text of 2 GiB does not fit into one array


def unpack_limit(packed: int) -> int:
    """Return how many bytes a compressed file of `packed` bytes may unpack to.

    It is 1 GiB or 50 times the packed size, whichever is more. The environment variable TRUERANK_UNPACK_LIMIT
    overrides it with a number of bytes.

    Examples
    --------
    >>> unpack_limit(1_000) == 2**30, unpack_limit(10**9) == 50 * 10**9
    (True, True)
    """
    given = os.environ.get(LIMIT_VARIABLE)
    if given is None:
        return max(1 << 30, 50 * packed)
    if not re.fullmatch(r"[0-9]{1,18}", given):
        raise InputError(f"{LIMIT_VARIABLE} must be a number of bytes, got {given!r}.")
    return int(given)


def check_unpacked(name: str, size: int, packed: int) -> None:
    """Raise `InputError` if something unpacks to more bytes than `unpack_limit` allows."""
    if size > (limit := unpack_limit(packed)):
        raise InputError(
            f"{name} unpacks to more than {limit:,} bytes; if this is intended, set the environment variable "
            f"{LIMIT_VARIABLE} to the number of bytes to allow."
        )


def unpacked_size(column: pa.ChunkedArray) -> int:
    """Return the bytes that a column takes once its dictionaries, including those in lists, are unpacked.

    Examples
    --------
    >>> import pyarrow as pa
    >>> unpacked_size(pa.chunked_array([pa.array(["x" * 1_000] * 500).dictionary_encode()])) > 500_000
    True
    """
    return sum(_array_size(chunk) for chunk in column.chunks)


def _array_size(array: pa.Array) -> int:
    if pa.types.is_dictionary(array.type) and not pa.types.is_primitive(array.type.value_type):
        lengths = pc.binary_length(array.dictionary).cast(pa.int64())
        return array.nbytes + (pc.sum(lengths.take(array.indices)).as_py() or 0)
    return array.nbytes + (_array_size(array.flatten()) if is_list(array.type) else 0)


def is_list(kind: pa.DataType) -> bool:
    """Whether a type is one of Arrow's types of lists."""
    return any(test(kind) for test in (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list))


def unpacked(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return a column without dictionaries."""
    kind = _plain_type(column.type)
    if kind == column.type:
        return column
    pieces = [chunk.slice(at, _ROWS).cast(kind) for chunk in column.chunks for at in range(0, len(chunk), _ROWS)]
    return pa.chunked_array(pieces, kind)


def _plain_type(kind: pa.DataType) -> pa.DataType:
    if pa.types.is_dictionary(kind):
        return kind.value_type
    if pa.types.is_fixed_size_list(kind):
        return pa.list_(_plain_type(kind.value_type), kind.list_size)
    if pa.types.is_large_list(kind):
        return pa.large_list(_plain_type(kind.value_type))
    return pa.list_(_plain_type(kind.value_type)) if pa.types.is_list(kind) else kind


Source = Any
"""A path, "-" for standard input, a dataframe, a dict of dicts or lists, or a list of lists."""

HEAD = 1 << 16
_BLOCK = 1 << 24
_LONGEST_FIELD = 1 << 24
_IN_MEMORY = 1 << 26  # bytes of a stream; a longer one is kept in a temporary file
_USUAL_NAMES = ("ratings.csv", "ratings.dat", "u.data")
_USUAL_ENDINGS = (".inter", ".rating")
_UNREADABLE = (
    pa.ArrowException,
    EOFError,
    NotImplementedError,  # a zip file compressed in an unusual way
    OSError,
    OverflowError,
    RuntimeError,  # an encrypted zip file
    UnicodeError,
    zipfile.BadZipFile,
    zlib.error,
)


@contextmanager
def unreadable(name: str, *others: type[Exception]) -> Iterator[None]:
    """Turn errors while reading a file (truncated, damaged, not what its first bytes promise) into one sentence."""
    try:
        yield
    except InputError:
        raise
    except (*_UNREADABLE, *others) as error:
        raise InputError(f"can't read {name}: {reason(error)}.") from error
    except MemoryError as error:
        raise InputError(f"can't read {name}: it needs more memory than is available.") from error


@dataclass(frozen=True)
class File:
    """A file, a member of a zip file, or the stored content of a stream, which can be read only once."""

    path: Path
    member: str | None = None
    content: IO[bytes] | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return repr(str(self.path)) if self.member is None else f"{self.member!r} in {str(self.path)!r}"

    @property
    def plain_name(self) -> str:
        """Name without directories, and without the ending of a compressed file."""
        return Path(self.member or self.path).name.removesuffix(".gz")

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the unpacked content as an Arrow stream."""
        gzipped = self._gzipped()
        with self._raw() as (raw, size):
            yield pa.PythonFile(_Unpacked(raw, str(self), size), "r") if gzipped else raw

    @contextmanager
    def open_anywhere(self) -> Iterator[Any]:
        """Open the unpacked content as an Arrow stream that can be read in any order; packed content is copied."""
        with self.open() as stream:
            if self.member is None and not self._gzipped():
                yield stream
            else:
                with _stored(stream) as copy:
                    yield pa.PythonFile(copy, "r")

    def _gzipped(self) -> bool:
        with self._raw() as (raw, _):
            return bool(raw.read(2) == b"\x1f\x8b")

    def head(self) -> bytes:
        """Return the first bytes, enough to detect the format."""
        with self.open() as stream:
            return stream.read(HEAD)

    def read(self) -> bytes:
        """Return the whole unpacked content."""
        with self.open() as stream:
            return b"".join(iter(lambda: stream.read(_BLOCK), b""))

    def pieces(self, size: int, *, quoted: bool = False) -> Iterator[bytes]:
        """Yield the unpacked content in pieces of about `size` bytes that end with a line; at least one piece.

        Where fields may be quoted, lines within quotes are not divided, unless they are very long: then a quote is a
        character like others.
        """
        rest: list[bytes] = []
        with self.open() as stream:
            while block := stream.read(size):
                end = _end_outside_quotes(rest, block) if quoted else _last_end(block)
                if not end and sum(map(len, rest)) + len(block) > _LONGEST_FIELD:
                    end = _last_end(block)
                if end:
                    yield b"".join([*rest, memoryview(block)[:end]])
                    rest = []
                rest.append(block[end:])
        if rest != [b""]:
            yield b"".join(rest)

    @contextmanager
    def _raw(self) -> Iterator[tuple[Any, int]]:
        """Open the content as it is stored, and return its stored size."""
        if self.member is not None:
            with self._archive() as archive:
                info = archive.getinfo(self.member)
                check_unpacked(str(self), info.file_size, info.compress_size)
                with archive.open(info) as member:
                    yield pa.PythonFile(member, "r"), info.file_size
        elif self.content is not None:
            yield pa.PythonFile(_View(self.content), "r"), self.content.seek(0, io.SEEK_END)
        else:
            with pa.OSFile(str(self.path)) as file:
                yield file, file.size()

    def _archive(self) -> zipfile.ZipFile:
        return zipfile.ZipFile(self.path if self.content is None else self.content)

    def members(self) -> list[str] | None:
        """Return the files in a zip file, None if this is not a zip file."""
        with self._raw() as (raw, _):
            if raw.read(4) != b"PK\x03\x04":
                return None
        with self._archive() as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]


def _last_end(block: bytes) -> int:
    """Return where the last whole line ends, 0 if there is none."""
    return (block.rfind(b"\n") if b"\n" in block else block.rfind(b"\r", 0, -1)) + 1


def _end_outside_quotes(rest: Sequence[bytes], block: bytes) -> int:
    """Return where the last line ends that has an even number of quotes before it, 0 if there is none."""
    end, mark = len(block), b"\n" if b"\n" in block else b"\r"
    n_quotes = sum(part.count(b'"') for part in (*rest, block))
    while (at := block.rfind(mark, 0, end - (mark == b"\r" and end == len(block)))) >= 0:
        n_quotes -= block.count(b'"', at, end)
        if n_quotes % 2 == 0:
            return at + 1
        end = at
    return 0


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a gzipped stream, up to the limit."""

    def __init__(self, raw: Any, name: str, packed: int) -> None:
        self._stream = pa.CompressedInputStream(raw, "gzip")
        self._name, self._packed, self._size = name, packed, 0

    def readable(self) -> bool:
        return True

    def read(self, size: int | None = -1) -> bytes:
        block: bytes = self._stream.read(size)
        self._size += len(block)
        check_unpacked(self._name, self._size, self._packed)
        return block


class _View(io.RawIOBase):
    """A file with a position of its own, which stays open when the view is closed."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file, self._at = file, 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        start = {io.SEEK_SET: 0, io.SEEK_CUR: self._at, io.SEEK_END: self._file.seek(0, io.SEEK_END)}[whence]
        self._at = start + offset
        return self._at

    def read(self, size: int | None = -1) -> bytes:
        self._file.seek(self._at)
        block = self._file.read(-1 if size is None else size)
        self._at += len(block)
        return block


def _stored(stream: Any) -> IO[bytes]:
    """Return a copy of a stream, in a temporary file if it is long."""
    copy = tempfile.SpooledTemporaryFile(_IN_MEMORY)  # noqa: SIM115 (the caller closes it)
    shutil.copyfileobj(stream, copy, _BLOCK)
    copy.seek(0)
    return cast("IO[bytes]", copy)


def locate(path: str | Path) -> File:
    """Return the file that a path, a directory or a zip file stands for; "-" is standard input."""
    if str(path) == "-":
        return _standard_input()
    try:
        mode = Path(path).stat().st_mode
    except (FileNotFoundError, NotADirectoryError) as error:
        raise InputError(f"there is no file {str(path)!r}.") from error
    except (OSError, ValueError) as error:
        raise InputError(f"can't read {str(path)!r}: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_ISDIR(mode):
        files = [file for pattern in ("*", "*/*") for file in sorted(Path(path).glob(pattern)) if file.is_file()]
        return locate(Path(path) / _choose([str(file.relative_to(path)) for file in files], str(path)))
    if stat.S_ISREG(mode):
        return _inside(File(Path(path)))
    with unreadable(repr(str(path))), Path(path).open("rb") as stream:
        return _streamed(Path(path), stream)


def _standard_input() -> File:
    try:
        return _streamed(Path("-"), sys.stdin.buffer)
    except InputError:
        raise
    except (AttributeError, ValueError) as error:  # there is none if it was closed before the start
        raise InputError("can't read standard input: it is closed.") from error
    except OSError as error:
        raise InputError(f"can't read standard input: {error.strerror or error}.") from error


def _streamed(path: Path, stream: IO[bytes]) -> File:
    """Return the content of a stream as a file; the copy is deleted with it."""
    content = _stored(stream)
    try:
        file = _inside(File(path, content=content))
    except InputError:
        content.close()
        raise
    weakref.finalize(file, content.close)
    return file


def _inside(file: File) -> File:
    """Return the file itself, or the one in it if it is a zip file."""
    with unreadable(str(file)):
        members = file.members()
    return file if members is None else File(file.path, _choose(members, str(file.path)), file.content)


def _choose(names: Sequence[str], where: str) -> str:
    visible = [name for name in names if not re.search(r"(^|/)(\.|__MACOSX/)", name)]
    plain = {name: Path(name).name.removesuffix(".gz") for name in visible}
    usual = [name for name in visible if plain[name] in _USUAL_NAMES or plain[name].endswith(_USUAL_ENDINGS)]
    found = usual or visible
    if len(found) != 1:
        some = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
        several = sum(name.endswith(".parquet") for name in found) > 1
        hint = ", or give all parts as one table (pyarrow.parquet.read_table reads a directory)" if several else ""
        raise InputError(
            f"{where!r} must hold one file of events ({', '.join(_USUAL_NAMES)}, *.inter or *.rating), or only one "
            f"file, found {some or 'none'}; name the file itself{hint}."
        )
    return found[0]


_NOT_AN_ARRAY = (KeyError, SyntaxError, tokenize.TokenError, TypeError, ValueError)


def load_array(path: str | Path) -> AnyArray:
    """Return the array in an .npy file, memory-mapped; pickled objects are refused."""
    _check_file(path)
    with unreadable(repr(str(path)), *_NOT_AN_ARRAY):
        with Path(path).open("rb") as file:
            _header(file, repr(str(path)))
        return np.load(path, mmap_mode="r", allow_pickle=False)


def load_arrays(path: str | Path) -> dict[str, AnyArray]:
    """Return the arrays in an .npz file by name; pickled objects are refused.

    The declared sizes of the arrays are compared with the size of the file before anything is read.
    """
    _check_file(path)
    with unreadable(repr(str(path)), *_NOT_AN_ARRAY), zipfile.ZipFile(path) as archive:
        members = archive.infolist()
        packed = sum(member.compress_size for member in members)
        check_unpacked(repr(str(path)), sum(member.file_size for member in members), packed)
        return {member.filename.removesuffix(".npy"): _member(archive, member, str(path)) for member in members}


def _check_file(path: str | Path) -> None:
    # unlike the methods of a Path, these accept any text
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
