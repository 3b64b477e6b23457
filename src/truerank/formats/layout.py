"""How the lines of a text file are divided into fields; reads some of its columns."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from truerank.errors import InputError
from truerank.formats.ids import numbers_if_spelled_so
from truerank.formats.source import File

_LINE_END = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True)
class Layout:
    """How a text file is divided into fields.

    Attributes
    ----------
    delimiter : str
        A character, "::", or " " for any number of blanks and tabs.
    names : tuple of str
        Names of the columns; their numbers, from 0, if there is neither a header nor a usual order.
    skip : int
        Lines before the first row.
    even : bool
        Whether single blanks (or single tabs) separate the fields in the head of the file.
    quoted : bool
        Whether fields may be quoted.
    whole_ids : bool
        Whether ids must be whole numbers.
    fixed : bool
        Whether the format says which column is which, and not the caller.
    unnamed : bool
        Whether there is no header.
    latin : bool
        Whether the header is not UTF-8.
    """

    delimiter: str
    names: tuple[str, ...]
    skip: int
    even: bool = True
    quoted: bool = True
    whole_ids: bool = False
    fixed: bool = False
    unnamed: bool = False
    latin: bool = False

    def read(self, file: File, columns: Sequence[int], text: Collection[int]) -> tuple[pa.Table, tuple[str, ...]]:
        """Return some columns, named by their numbers, and notes; those in `text` are ids.

        Text that is not UTF-8 is read as Latin-1, with a note. A line with a wrong number of fields is an error that
        names the line.
        """
        try:
            try:
                table = self._parse(file, columns, text, "utf8")
            except pa.ArrowInvalid as error:
                if "UTF8" not in str(error):
                    raise
                return self._parse(file, columns, text, "latin-1"), (not_utf8(file),)
        except pa.ArrowInvalid as error:
            for number, fields in self.records(file):
                if len(fields) != len(self.names):
                    expected = f"expected {_count(len(self.names), 'field')}, got {len(fields)}"
                    raise InputError(f"{file}, line {number}: {expected}.") from error
            raise
        return table, (not_utf8(file),) if self.latin else ()

    def _parse(self, file: File, columns: Sequence[int], text: Collection[int], encoding: str) -> pa.Table:
        if self.delimiter != " ":
            with file.open() as stream:
                return self._read(stream, self.delimiter, columns, text, encoding)
        if self.even:
            try:
                with file.open() as stream:
                    return self._read(stream, self._blank(file), columns, text, encoding)
            except pa.ArrowInvalid:
                pass  # further down it may be uneven
        lines = (b" ".join(line.split()) for line in file.read().splitlines())
        return self._read(pa.BufferReader(b"\n".join(lines)), " ", columns, text, encoding)

    def _blank(self, file: File) -> str:
        return "\t" if b"\t" in file.head() else " "

    def _read(
        self, stream: Any, delimiter: str, columns: Sequence[int], text: Collection[int], encoding: str
    ) -> pa.Table:
        names, kinds = [str(number) for number in range(len(self.names))], {}
        if delimiter == "::":
            # a reader that splits at ":" sees an empty column within each "::"
            gaps = [f":{number}" for number in range(1, len(names))]
            names = [name for pair in zip(names, [*gaps, ""], strict=True) for name in pair][:-1]
            kinds = dict.fromkeys(gaps, pa.null())
        kinds |= {str(column): pa.string() for column in text}
        wanted = [str(column) for column in columns]
        table = pa_csv.read_csv(
            stream,
            read_options=pa_csv.ReadOptions(
                column_names=names, skip_rows=self.skip, encoding=encoding, block_size=1 << 22
            ),
            parse_options=pa_csv.ParseOptions(delimiter=delimiter[0], quote_char='"' if self.quoted else False),
            convert_options=pa_csv.ConvertOptions(
                column_types=kinds, include_columns=[*wanted, *(name for name in kinds if name.startswith(":"))]
            ),
        ).select(wanted)
        return pa.table({name: _ids(table[name]) if int(name) in text else table[name] for name in wanted})

    def records(self, file: File) -> Iterator[tuple[int, list[str]]]:
        """Return the rows with their line numbers: slowly, to say what is wrong where."""
        lines = io.StringIO(decode(file.read())[0], newline="")
        for number, fields in _split(lines, self.delimiter, self.quoted):
            if number > self.skip and fields:
                yield number, fields

    def line_of(self, file: File, row: int) -> str:
        """Return the file and line of a row."""
        for at, (number, _) in enumerate(self.records(file)):
            if at == row:
                return f"{file}, line {number}"
        return f"{file}, row {row + 1}"


def fields_of(line: str, delimiter: str, *, quoted: bool = True) -> list[str]:
    """Divide one line into fields."""
    return next((fields for _, fields in _split([line], delimiter, quoted)), [])


def decode(content: bytes, *, cut: bool = False) -> tuple[str, bool]:
    """Decode content as UTF-8, or else as Latin-1; also return whether it is the latter.

    A byte-order mark is left out; so is an incomplete character at the end if the content was `cut` off.

    Examples
    --------
    >>> decode("é".encode()), decode("é".encode("latin-1"))
    (('é', False), ('é', True))
    """
    content = content.removeprefix(b"\xef\xbb\xbf")
    try:
        return content.decode(), False
    except UnicodeDecodeError as error:
        if cut and error.start > max(len(content) - 4, 0):
            return content[: error.start].decode(), False
        return content.decode("latin-1"), True


def lines_of(text: str) -> list[str]:
    """Divide text into lines as the file readers do: at LF, CR LF or CR alone."""
    return _LINE_END.split(text)


def _split(lines: Any, delimiter: str, quoted: bool) -> Iterator[tuple[int, list[str]]]:
    if delimiter in (" ", "::"):
        for number, line in enumerate(lines, start=1):
            yield number, (line.split() if delimiter == " " else line.split("::")) if line.strip() else []
        return
    reader = csv.reader(lines, delimiter=delimiter, quoting=csv.QUOTE_MINIMAL if quoted else csv.QUOTE_NONE)
    try:
        for fields in reader:
            yield reader.line_num, fields
    except csv.Error as error:
        raise InputError(f"line {reader.line_num}: {error}.") from error


def _ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids of a text file, without surrounding blanks."""
    ids = numbers_if_spelled_so(column)
    return ids if pa.types.is_integer(ids.type) else numbers_if_spelled_so(pc.utf8_trim_whitespace(column))


def not_utf8(file: File) -> str:
    """Return the note that a file was read as Latin-1."""
    return f"{file} is not UTF-8 and was read as Latin-1"


def _count(number: int, what: str) -> str:
    return f"{number} {what}{'' if number == 1 else 's'}"
