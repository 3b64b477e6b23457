"""Files of events (who, what, when, how good) -> Arrow tables: MovieLens, RecBole, NCF, and named columns."""

from __future__ import annotations

import csv
import io
import re
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.json as pa_json
import pyarrow.parquet as pq

from truerank.errors import InputError
from truerank.formats.columns import EVENT_ALIASES, find_columns
from truerank.formats.tables import Source, check_head, load, open_stream, unreadable

_USUAL_NAMES = ("ratings.csv", "ratings.dat", "u.data")
_USUAL_ENDINGS = (".inter", ".rating")
_MOVIELENS_HEADER = ["userId", "movieId", "rating", "timestamp"]
# the order of columns in files without a header, by how many there are
_UNNAMED = {2: ["user", "item"], 4: ["user", "item", "rating", "time"]}
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", re.IGNORECASE)
_RECBOLE = re.compile(r"(.+):(token|float|token_seq|float_seq)")


@dataclass(frozen=True)
class Events:
    """Rows of a source, with columns named by their roles.

    Attributes
    ----------
    table : pyarrow.Table
        Columns "user", "item", and those of "time", "rating", "weight" that there are.
    name : str
        What to call the source in messages.
    place : function
        What to call a row (from 0) in messages.
    whole_ids : bool
        Whether the ids must be whole numbers.
    notes : tuple of str
        What was unusual.
    """

    table: pa.Table
    name: str
    place: Callable[[int], str]
    whole_ids: bool = False
    notes: tuple[str, ...] = ()


def load_events(source: Source, chosen: Mapping[str, str | int]) -> Events:
    """Return the rows of any source; `chosen` says which column, by name or number, plays a role."""
    if isinstance(source, str | Path):
        return _load_file(_locate(Path(source)), chosen)
    table, name = load(source, "rating")
    return _by_row(table, name, chosen)


@dataclass(frozen=True)
class _File:
    """A file, or a member of a zip file."""

    path: Path
    member: str | None = None

    def __str__(self) -> str:
        return repr(str(self.path)) if self.member is None else f"{self.member!r} in {str(self.path)!r}"

    @contextmanager
    def open(self) -> Iterator[Any]:
        if self.member is None:
            with open_stream(self.path) as stream:
                yield stream
        else:
            with (
                zipfile.ZipFile(self.path) as archive,
                archive.open(self.member) as member,
                pa.PythonFile(member) as stream,
            ):
                yield stream


def _locate(path: Path) -> _File:
    """Return the file of events that a path, a folder or a zip file stands for."""
    if path.is_dir():
        files = [file for pattern in ("*", "*/*") for file in sorted(path.glob(pattern)) if file.is_file()]
        return _locate(path / _choose([str(file.relative_to(path)) for file in files], str(path)))
    if not path.is_file():
        raise InputError(f"there is no file or folder {str(path)!r}.")
    with path.open("rb") as file:
        zipped = file.read(4) == b"PK\x03\x04"
    if not zipped:
        return _File(path)
    try:
        with zipfile.ZipFile(path) as archive:
            members = [name for name in archive.namelist() if not name.endswith("/")]
    except zipfile.BadZipFile as error:
        raise InputError(f"can't unzip {str(path)!r} ({error}); is it complete?") from error
    return _File(path, _choose(members, str(path)))


def _choose(names: Sequence[str], where: str) -> str:
    visible = [name for name in names if not re.search(r"(^|/)(\.|__MACOSX/)", name)]
    plain = {name: Path(name).name.removesuffix(".gz") for name in visible}
    usual = [name for name in visible if plain[name] in _USUAL_NAMES or plain[name].endswith(_USUAL_ENDINGS)]
    found = usual or visible
    if len(found) != 1:
        some = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
        raise InputError(
            f"{where!r} must hold one file of events ({', '.join(_USUAL_NAMES)}, *.inter or *.rating), "
            f"found {some or 'none'}; name the file itself."
        )
    return found[0]


def _load_file(file: _File, chosen: Mapping[str, str | int]) -> Events:
    with unreadable(str(file)):
        with file.open() as stream:
            head = stream.read(1 << 16)
        check_head(head, str(file))
        if head.startswith(b"PAR1"):
            with file.open() as stream:
                return _read_parquet(pq.ParquetFile(stream), file, chosen)
        if head.lstrip().startswith(b"{"):
            with file.open() as stream:
                return _by_row(pa_json.read_json(stream), str(file), chosen)
        return _read_text(file, _Layout.of(file, head), chosen)


def _read_parquet(content: pq.ParquetFile, file: _File, chosen: Mapping[str, str | int]) -> Events:
    roles = _roles(content.schema_arrow.names, str(file), chosen)
    return _by_row(content.read(columns=list(dict.fromkeys(roles.values()))), str(file), roles)


def _by_row(table: pa.Table, name: str, chosen: Mapping[str, str | int]) -> Events:
    roles = _roles(table.column_names, name, chosen)
    named = pa.table({role: table[column] for role, column in roles.items()})
    return Events(named, name, lambda row: f"{name}, row {row + 1}")


def _roles(present: Sequence[str], name: str, chosen: Mapping[str, str | int]) -> dict[str, str]:
    """Return the column of each role; a time, rating or weight may be lacking unless it was chosen."""
    known = {role: _column(column, role, present, name) for role, column in chosen.items()}
    roles = find_columns(present, known, EVENT_ALIASES)
    for role in ("user", "item"):
        if role not in roles:
            raise InputError(
                f"{name} has no column for the {role}: expected {EVENT_ALIASES[role][0]!r} or the like, "
                f"found {', '.join(present) or 'none'}; name it with {role}=..."
            )
    return roles


def _column(column: str | int, role: str, present: Sequence[str], name: str) -> str:
    if isinstance(column, int) and 0 <= column < len(present):
        return present[column]
    if column in present:
        return str(column)
    raise InputError(f"{name} has no column {column!r} for the {role}; there are {', '.join(present)}.")


@dataclass(frozen=True)
class _Layout:
    """How the lines of a text file are divided."""

    delimiter: str
    names: list[str]
    skip: int
    """Lines before the first row."""
    whole_ids: bool

    @classmethod
    def of(cls, file: _File, head: bytes) -> _Layout:
        lines = _decode(head.removeprefix(b"\xef\xbb\xbf")).splitlines()
        blank = next(number for number, line in enumerate(lines) if line.strip())
        delimiter = _delimiter(lines[blank])
        fields = next(_split([lines[blank]], delimiter))[1]
        if not any(map(_NUMBER.fullmatch, fields)):
            typed = [_RECBOLE.fullmatch(name) for name in fields]
            names = [form[1] if form else name for form, name in zip(typed, fields, strict=True)]
            return cls(delimiter, names, blank + 1, fields == _MOVIELENS_HEADER)
        numbered = [f"column {number}" for number in range(len(fields))]
        plain = Path(file.member or file.path).name.removesuffix(".gz")
        whole = delimiter == "::" or plain == "u.data" or plain.endswith(".rating")
        return cls(delimiter, _UNNAMED.get(len(fields), numbered), blank, whole)

    def read(self, stream: Any, columns: Sequence[str], encoding: str) -> pa.Table:
        """Return these columns, each of the type that its values have."""
        names, kinds = list(self.names), {}
        if self.delimiter == "::":
            # to a reader that splits at ":" there is an empty column within each "::"
            gaps = [f":{number}" for number in range(1, len(names))]
            names = [name for pair in zip(names, [*gaps, ""], strict=True) for name in pair][:-1]
            kinds = {gap: pa.null() for gap in gaps}
        return pa_csv.read_csv(
            stream,
            read_options=pa_csv.ReadOptions(
                column_names=names, skip_rows=self.skip, encoding=encoding, block_size=1 << 22
            ),
            parse_options=pa_csv.ParseOptions(
                delimiter=self.delimiter[0], quote_char=False if self.delimiter == "::" else '"'
            ),
            convert_options=pa_csv.ConvertOptions(column_types=kinds, include_columns=[*columns, *kinds]),
        ).select(columns)


def _delimiter(line: str) -> str:
    if "::" in line:
        return "::"
    best = max("\t,;|", key=line.count)
    return best if best in line else " "


def _read_text(file: _File, layout: _Layout, chosen: Mapping[str, str | int]) -> Events:
    if layout.names[0] == "column 0" and not {"user", "item"} <= set(chosen):
        raise InputError(
            f"{file} has no header and {len(layout.names)} columns: say which is which by number, as in user=0, item=1."
        )
    roles = _roles(layout.names, str(file), chosen)
    table, notes = _parse(file, layout, list(dict.fromkeys(roles.values())))
    named = pa.table({role: table[column] for role, column in roles.items()})
    return Events(named, str(file), lambda row: _line_of(file, layout, row), layout.whole_ids, notes)


def _parse(file: _File, layout: _Layout, columns: Sequence[str]) -> tuple[pa.Table, tuple[str, ...]]:
    try:
        with file.open() as stream:
            table = layout.read(stream, columns, "utf8")
        if not any(pa.types.is_binary(kind) for kind in table.schema.types):
            return table, ()
        with file.open() as stream:
            return layout.read(stream, columns, "latin-1"), (f"{file} is not UTF-8 and was read as Latin-1",)
    except pa.ArrowInvalid as error:
        for number, fields in _records(file, layout):
            if len(fields) != len(layout.names):
                raise InputError(
                    f"{file}, line {number}: expected {len(layout.names)} fields, got {len(fields)}."
                ) from error
        raise


def _line_of(file: _File, layout: _Layout, row: int) -> str:
    for place, (number, _) in enumerate(_records(file, layout)):
        if place == row:
            return f"{file}, line {number}"
    return f"{file}, row {row + 1}"


def _records(file: _File, layout: _Layout) -> Iterator[tuple[int, list[str]]]:
    """Return the rows with their line numbers: slowly, to say what is wrong where."""
    with file.open() as stream:
        lines = io.StringIO(_decode(stream.read()), newline="")
    for number, fields in _split(lines, layout.delimiter):
        if number > layout.skip and fields:
            yield number, fields


def _split(lines: Any, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    if delimiter == "::":
        for number, line in enumerate(lines, start=1):
            yield number, line.split("::") if line.strip() else []
    else:
        reader = csv.reader(lines, delimiter=delimiter)
        for fields in reader:
            yield reader.line_num, fields


def _decode(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        # a character may be cut at the end of a head
        return content[: error.start].decode() if error.start > len(content) - 4 else content.decode("latin-1")
