"""Writes every output file: the path is checked before the work, and a complete file replaces the old one in one step.

A file is written beside its target and renamed over it once it is on disk, so that an existing file stays intact if
writing fails, the disk is full, the process is killed or the power fails. Pipes, devices and standard output ("-") are
written to directly.
"""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import secrets
import stat
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import SpooledTemporaryFile
from typing import TYPE_CHECKING, Any, BinaryIO, Self, cast

import numpy as np

from truerank.core.checks import Floats, InputError, as_path

try:
    import fcntl
except ImportError:  # Windows, where a file that is open can't be removed or renamed anyway
    fcntl = None  # type: ignore[assignment]

if TYPE_CHECKING:
    import pyarrow as pa

COLUMN_ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet")
"""Endings of tables."""
PAGE_ENDINGS = (".html", ".htm")

RUN_ENDINGS = (".trec", ".run")
"""Endings of TREC runs."""

_ROWS = 1 << 16  # rows of JSON written at once
_SPOOLED = 1 << 24  # bytes for a stream that are collected in memory; more go to a temporary file


def check_writable(path: str | Path, endings: Sequence[str] = ()) -> str:
    """Return the ending that determines the format, or raise `InputError` if the path can't be written.

    Call it before any work. It creates nothing and opens nothing.

    Parameters
    ----------
    path : path
        A file in an existing directory; or "-" for standard output, a pipe, or a device such as /dev/stdout.
    endings : sequence of str
        Allowed endings; any if empty. A pipe, a device and "-" need no ending: the first one is used.

    Examples
    --------
    >>> check_writable("ranks.Parquet", [".parquet", ".npz"])
    '.parquet'
    >>> check_writable("-", [".csv", ".tsv"])
    '.csv'
    >>> check_writable("nowhere/ranks.npz", [".npz"])
    Traceback (most recent call last):
    ...
    truerank.InputError: can't write 'nowhere/ranks.npz': there is no directory 'nowhere'.
    """
    suffix = as_path(path).suffix.lower()
    if is_stream(path):
        return suffix if suffix in endings else next(iter(endings), suffix)
    if endings and suffix not in endings:
        raise InputError(f"an output file must end in {_alternatives(endings)}, got {str(path)!r}.")
    if reason := _obstacle(path):
        raise InputError(f"can't write {str(path)!r}: {reason}.")
    return suffix


def check_writable_folder(path: str | Path) -> None:
    """Raise `InputError` unless files can be written into a directory; neither it nor its parents need exist yet."""
    existing = next(folder for folder in (Path(path), *Path(path).parents) if os.path.lexists(folder))
    if reason := _directory_obstacle(existing):
        raise InputError(f"can't write into {str(path)!r}: {reason}.")


def make_folder(path: str | Path) -> None:
    """Create a directory and its parents, unless it exists."""
    check_writable_folder(path)
    Path(path).mkdir(parents=True, exist_ok=True)


def is_stream(path: str | Path) -> bool:
    """Whether a path is "-", a pipe or a device, which can be written to but not replaced.

    Examples
    --------
    >>> is_stream("-"), is_stream("/dev/null"), is_stream("ranks.parquet")
    (True, True, False)
    """
    if str(path) == "-":
        return True
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


@contextmanager
def replacing(*paths: str | Path) -> Iterator[list[BinaryIO]]:
    """Open files for writing that replace `paths` together, after everything has been written.

    If the block raises, or the disk is full, existing files are left unchanged.

    Raises
    ------
    OSError
        With the name of the file, if it can't be written after all.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.txt"
    >>> _ = path.write_text("before")
    >>> with replacing(path) as (file,):
    ...     _ = file.write(b"after")
    ...     print(path.read_text())
    before
    >>> path.read_text()
    'after'
    """
    with ExitStack() as stack:
        targets = [stack.enter_context(_Stream(path) if is_stream(path) else _Replacement(path)) for path in paths]
        yield [target.file for target in targets]
        for target in targets:
            target.complete()
        for target in targets:
            target.publish()


def write_text(path: str | Path, text: str) -> None:
    """Write text as UTF-8, by `replacing`."""
    with replacing(path) as (file,):
        file.write(text.encode())


def write_columns(path: str | Path, columns: Mapping[str, Sequence[Any] | Floats]) -> None:
    """Write columns of equal length at full precision, with undefined numbers as empty fields (null).

    The ending of the path determines the format: .csv, .tsv, .jsonl or .parquet.
    """
    import pyarrow as pa

    check_writable(path, COLUMN_ENDINGS)
    arrays = {name: pa.array(np.asarray(column), from_pandas=True) for name, column in columns.items()}
    write_tables(path, [pa.table(arrays)])


def write_tables(path: str | Path, tables: Iterable[pa.Table]) -> None:
    """Write one file from the rows of one or more tables with the same columns, which need not be in memory together.

    The ending of the path determines the format, as for `write_columns`; a TREC run (.trec, .run) needs the columns
    user, item and rank, and may have score.
    """
    kind = check_writable(path, tuple(_WRITERS))
    with replacing(path) as (file,):
        _WRITERS[kind](file, iter(tables))


def _write_parquet(file: BinaryIO, tables: Iterator[pa.Table]) -> None:
    import pyarrow.parquet as pq

    first = next(tables)
    with pq.ParquetWriter(file, first.schema) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _write_csv(file: BinaryIO, tables: Iterator[pa.Table], delimiter: str = ",") -> None:
    import pyarrow.csv as pa_csv

    first, options = next(tables), pa_csv.WriteOptions(delimiter=delimiter, quoting_style="needed")
    with pa_csv.CSVWriter(file, first.schema, write_options=options) as writer:
        for table in chain([first], tables):
            writer.write_table(table)


def _write_json_lines(file: BinaryIO, tables: Iterator[pa.Table]) -> None:
    text_of = json.JSONEncoder(allow_nan=False).encode
    for batch in chain.from_iterable(table.to_batches(_ROWS) for table in tables):
        file.writelines(text_of(row).encode() + b"\n" for row in batch.to_pylist())


def _write_run(file: BinaryIO, tables: Iterator[pa.Table]) -> None:
    """Write lines of user, Q0, item, rank, score and tag, separated by blanks."""
    import pyarrow as pa
    import pyarrow.compute as pc

    for table in tables:
        # a run needs scores: without them the negative rank serves as one
        scores = table["score"] if "score" in table.column_names else pc.negate(table["rank"])
        given = (table["user"], table["item"], table["rank"], scores)
        user, item, rank, score = (pc.cast(column, pa.string()) for column in given)
        for name, ids in (("user", user), ("item", item)):
            spaced = pc.or_(pc.match_substring_regex(ids, r"\s"), pc.equal(ids, ""))
            if pc.any(spaced).as_py():
                rule = "an id is a text without white space"
                raise InputError(f"a TREC run can't hold the {name} id {pc.filter(ids, spaced)[0].as_py()!r}: {rule}.")
        lines = pc.binary_join_element_wise(user, "Q0", item, rank, score, "truerank\n", " ")
        file.write("".join(lines.to_pylist()).encode())


_WRITERS: dict[str, Callable[[BinaryIO, Iterator[pa.Table]], None]] = {
    ".csv": _write_csv,
    ".tsv": partial(_write_csv, delimiter="\t"),
    ".jsonl": _write_json_lines,
    ".parquet": _write_parquet,
    **dict.fromkeys(RUN_ENDINGS, _write_run),
}


class _Target(ABC):
    """Where content is collected until it is complete and can be published."""

    file: BinaryIO

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Remove what has not been published."""
        with suppress(OSError):
            self.file.close()

    def complete(self) -> None:
        """Make sure that nothing but publishing is left to do."""
        self.file.flush()

    @abstractmethod
    def publish(self) -> None: ...


class _Replacement(_Target):
    """A new file beside its target, renamed over it when complete.

    It is locked while its process lives, so that the next process that writes the same target can recognise and remove
    what a killed one has left behind.
    """

    def __init__(self, path: str | Path) -> None:
        self._path = path
        # symbolic links are followed, so that they stay links
        self._target = Path(os.path.realpath(path))
        self._prefix = f".truerank-{hashlib.sha256(os.fsencode(self._target.name)).hexdigest()[:12]}-"
        with _named(path):
            self._remove_abandoned()
            self._part, raw = self._new_part()
        self.file = io.BufferedWriter(raw, 1 << 16)

    def _new_part(self) -> tuple[Path, _NamedFile]:
        while True:
            part = self._target.with_name(f"{self._prefix}{secrets.token_hex(8)}.part")
            raw = _NamedFile(part, self._path)
            # another process may have found it before it was locked
            if _lock(raw.fileno()) is not False and part.exists():
                return part, raw
            raw.close()

    def _remove_abandoned(self) -> None:
        for part in self._target.parent.glob(f"{self._prefix}*.part"):
            with suppress(OSError), part.open("rb") as file:
                if _lock(file.fileno()):
                    part.unlink()

    def complete(self) -> None:
        with _named(self._path):
            super().complete()
            os.fsync(self.file.fileno())
            with suppress(FileNotFoundError):
                self._part.chmod(stat.S_IMODE(self._target.stat().st_mode))
        if fcntl is None:
            self.file.close()

    def publish(self) -> None:
        with _named(self._path):
            self._part.replace(self._target)

    def __exit__(self, *_: object) -> None:
        super().__exit__()
        self._part.unlink(missing_ok=True)


def _lock(file: int) -> bool | None:
    """Lock a file until it is closed; return False if another process has locked it, None if there are no locks."""
    if fcntl is None:
        return None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:  # the file system has none
        return None
    return True


class _Stream(_Target):
    """Standard output, a pipe or a device: collected first, because some formats need a seekable file."""

    def __init__(self, path: str | Path) -> None:
        self._path = path
        self.file = cast("BinaryIO", SpooledTemporaryFile(_SPOOLED))  # noqa: SIM115 - the target is the context manager

    def publish(self) -> None:
        if str(self._path) != "-":
            with _named(self._path), Path(self._path).open("wb", buffering=0) as out:
                self._copy(out)
        elif sys.stdout is None:
            raise OSError(errno.EBADF, "standard output is closed", str(self._path))
        else:
            sys.stdout.flush()
            self._copy(sys.stdout.buffer)
            sys.stdout.buffer.flush()

    def _copy(self, out: BinaryIO | io.RawIOBase) -> None:
        self.file.seek(0)
        while content := self.file.read(_SPOOLED):
            _write_all(out, content)


def _write_all(file: BinaryIO | io.RawIOBase, content: bytes) -> None:
    """Write everything: the system may take only a part at a time, and an unbuffered file says how much."""
    rest = memoryview(content)
    while rest:
        rest = rest[file.write(rest) or 0 :]


class _NamedFile(io.FileIO):
    """A new file whose errors name the path that the caller asked for."""

    def __init__(self, part: Path, path: str | Path) -> None:
        super().__init__(part, "x")
        self._path = path

    def write(self, content: Any, /) -> int:
        with _named(self._path):
            return super().write(content)


@contextmanager
def _named(path: str | Path) -> Iterator[None]:
    """Make an error of the operating system name the file that the caller asked for."""
    try:
        yield
    except OSError as error:
        raise OSError(error.errno, error.strerror or str(error), str(path)) from error


def _obstacle(path: str | Path) -> str | None:
    """Return why a file can't be written, None if it can."""
    try:
        target = Path(os.path.realpath(path))
        mode = target.stat().st_mode
    except FileNotFoundError:
        pass
    except (OSError, ValueError) as error:
        return _reason(error)
    else:
        if stat.S_ISDIR(mode):
            return "it is a directory"
        if not os.access(target, os.W_OK):
            return "it is write-protected"
    return _directory_obstacle(target.parent, Path(path).parent)


def _directory_obstacle(folder: Path, name: Path | None = None) -> str | None:
    shown = repr(str(name or folder))
    if not os.path.lexists(folder):
        return f"there is no directory {shown}"
    if not folder.is_dir():
        return f"{shown} is not a directory"
    if not os.access(folder, os.W_OK | os.X_OK):
        return f"no files may be created in {shown}"
    return None


def _reason(error: OSError | ValueError) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()


def _alternatives(names: Sequence[str]) -> str:
    return " or ".join(filter(None, [", ".join(names[:-1]), names[-1]]))
