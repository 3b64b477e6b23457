"""Where bytes come from: a file, a directory or zip file that holds one, a pipe, or standard input.

Compressed files unpack up to a limit, so that a small file can't fill the memory.
"""

from __future__ import annotations

import io
import re
import stat
import sys
import zipfile
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa

from truerank.errors import InputError
from truerank.formats.limits import check_unpacked
from truerank.formats.reasons import reason

Source = Any
"""A path, "-" for standard input, a dataframe, a dict of dicts or lists, or a list of lists."""

HEAD = 1 << 16
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
def unreadable(name: str) -> Iterator[None]:
    """Turn errors while reading a file (truncated, damaged, not what its first bytes promise) into one sentence."""
    try:
        yield
    except InputError:
        raise
    except _UNREADABLE as error:
        raise InputError(f"can't read {name}: {reason(error)}.") from error
    except MemoryError as error:
        raise InputError(f"can't read {name}: it needs more memory than is available.") from error


@dataclass(frozen=True)
class File:
    """A file, a member of a zip file, or stored bytes that can be read only once."""

    path: Path
    member: str | None = None
    content: bytes | None = field(default=None, repr=False)

    def __str__(self) -> str:
        return repr(str(self.path)) if self.member is None else f"{self.member!r} in {str(self.path)!r}"

    @property
    def plain_name(self) -> str:
        """Name without directories, and without the ending of a compressed file."""
        return Path(self.member or self.path).name.removesuffix(".gz")

    @contextmanager
    def open(self) -> Iterator[Any]:
        """Open the unpacked content as an Arrow stream."""
        with self._raw() as (raw, size):
            gzipped = raw.read(2) == b"\x1f\x8b"
            raw.seek(0)
            yield pa.PythonFile(_Unpacked(raw, str(self), size), "r") if gzipped else raw

    def head(self) -> bytes:
        """Return the first bytes, enough to detect the format."""
        with self.open() as stream:
            return stream.read(HEAD)

    def read(self) -> bytes:
        """Return the whole unpacked content."""
        with self.open() as stream:
            return b"".join(iter(lambda: stream.read(1 << 24), b""))

    @contextmanager
    def _raw(self) -> Iterator[tuple[Any, int]]:
        if self.member is not None:
            with self._archive() as archive:
                info = archive.getinfo(self.member)
                check_unpacked(str(self), info.file_size, info.compress_size)
                yield pa.BufferReader(archive.read(info)), info.file_size
        elif self.content is not None:
            yield pa.BufferReader(self.content), len(self.content)
        else:
            with pa.OSFile(str(self.path)) as file:
                yield file, file.size()

    @contextmanager
    def _archive(self) -> Iterator[zipfile.ZipFile]:
        with zipfile.ZipFile(self.path if self.content is None else io.BytesIO(self.content)) as archive:
            yield archive

    def members(self) -> list[str] | None:
        """Return the files in a zip file, None if this is not a zip file."""
        with self._raw() as (raw, _):
            if raw.read(4) != b"PK\x03\x04":
                return None
        with self._archive() as archive:
            return [name for name in archive.namelist() if not name.endswith("/")]


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


def locate(path: str | Path) -> File:
    """Return the file that a path, a directory or a zip file stands for; "-" is standard input."""
    if str(path) == "-":
        return _inside(File(Path("-"), content=_standard_input()))
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError) as error:
        if isinstance(error, FileNotFoundError | NotADirectoryError):
            raise InputError(f"there is no file {str(path)!r}.") from error
        raise InputError(f"can't read {str(path)!r}: {getattr(error, 'strerror', None) or error}.") from error
    if stat.S_ISDIR(mode):
        files = [file for pattern in ("*", "*/*") for file in sorted(Path(path).glob(pattern)) if file.is_file()]
        return locate(Path(path) / _choose([str(file.relative_to(path)) for file in files], str(path)))
    with unreadable(repr(str(path))):
        return _inside(File(Path(path), content=None if stat.S_ISREG(mode) else Path(path).read_bytes()))


def _standard_input() -> bytes:
    try:
        return sys.stdin.buffer.read()
    except (AttributeError, OSError, ValueError) as error:  # Python has none where it was closed before the start
        raise InputError("can't read standard input: it is closed.") from error


def _inside(file: File) -> File:
    """Return the file itself, or the one in it if it is a zip file."""
    with unreadable(str(file)):
        members = file.members()
    if members is None:
        return file
    return File(file.path, _choose(members, str(file.path)), file.content)


def _parts_hint(names: Sequence[str]) -> str:
    """Return what to do about several Parquet files, which may be the parts of one table."""
    several = sum(name.endswith(".parquet") for name in names) > 1
    return ", or give all parts as one table (pyarrow.parquet.read_table reads a directory)" if several else ""


def _choose(names: Sequence[str], where: str) -> str:
    visible = [name for name in names if not re.search(r"(^|/)(\.|__MACOSX/)", name)]
    plain = {name: Path(name).name.removesuffix(".gz") for name in visible}
    usual = [name for name in visible if plain[name] in _USUAL_NAMES or plain[name].endswith(_USUAL_ENDINGS)]
    found = usual or visible
    if len(found) != 1:
        some = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
        raise InputError(
            f"{where!r} must hold one file of events ({', '.join(_USUAL_NAMES)}, *.inter or *.rating), or only one "
            f"file, found {some or 'none'}; name the file itself{_parts_hint(found)}."
        )
    return found[0]
