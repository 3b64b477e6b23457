"""Text files of rows: what kind they are, how their lines divide into columns, and lists of negatives."""

from __future__ import annotations

import codecs
import csv
import io
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pa_csv

from truerank.core.checks import InputError, Ints, counted
from truerank.core.threads import fitting
from truerank.formats.columns import Contents, is_number
from truerank.formats.ids import numbers_if_spelled_so
from truerank.formats.pieces import Gathered, Wanted
from truerank.formats.sources import HEAD, File, locate, unreadable

_PIECE = 1 << 25  # bytes of text read at once
_BYTES_PER_BYTE = 8  # memory per byte of text: itself, its fields, and what they are turned into
_LINE_END = re.compile(r"\r\n|\n|\r")  # as Arrow's readers divide lines


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

    def read(self, file: File, wanted: Wanted) -> tuple[pa.Table, tuple[str, ...]]:
        """Return some columns, named by their numbers, and notes.

        Text that is not UTF-8 is read as Latin-1, with a note. A line with a wrong number of fields is an error that
        names the line.
        """
        try:
            try:
                table = self._parse(file, wanted, "utf8")
            except pa.ArrowInvalid as error:
                if "UTF8" not in str(error):
                    raise
                return self._parse(file, wanted, "latin-1"), (not_utf8(file),)
        except pa.ArrowInvalid as error:
            for number, fields in self.records(file):
                if len(fields) != len(self.names):
                    expected = counted(len(self.names), "field", "fields")
                    raise InputError(f"{file}, line {number}: expected {expected}, got {len(fields)}.") from error
            raise
        return table, (not_utf8(file),) if self.latin else ()

    def _parse(self, file: File, wanted: Wanted, encoding: str) -> pa.Table:
        if self.delimiter != " ":
            return self._gathered(file, self.delimiter, wanted, encoding)
        if self.even:
            with suppress(pa.ArrowInvalid):  # further down it may be uneven
                blank = "\t" if b"\t" in file.head() else " "
                return self._gathered(file, blank, wanted, encoding)
        return self._gathered(file, " ", wanted, encoding, even=_with_single_blanks)

    def _gathered(
        self,
        file: File,
        delimiter: str,
        wanted: Wanted,
        encoding: str,
        *,
        even: Callable[[bytes], bytes] = bytes,
        kind: pa.DataType | None = None,
    ) -> pa.Table:
        """Read the file piece by piece, each passed through `even`; columns without ids are of type `kind`, or any."""
        gathered, skip, (columns, text, _) = Gathered(str(file), wanted), self.skip, wanted
        kinds = {str(column): pa.string() if column in text else kind for column in columns if column in text or kind}
        for piece in file.pieces(fitting(_PIECE, _BYTES_PER_BYTE), quoted=self.quoted):
            if skip or not piece.isspace():
                table = self._read(even(piece), delimiter, columns, kinds, encoding, skip)
                found = {name: _ids(table[name]) if int(name) in text else table[name] for name in table.column_names}
                gathered.add(pa.table(found))
            skip = 0
        try:
            table = gathered.table()
        except pa.ArrowTypeError:  # numbers in one piece and dates or words in another
            return self._gathered(file, delimiter, wanted, encoding, even=even, kind=pa.string())
        joined = {str(column): numbers_if_spelled_so(table[str(column)]) for column in text}
        return pa.table({name: joined.get(name, table[name]) for name in table.column_names})

    def _read(
        self,
        content: bytes,
        delimiter: str,
        columns: Sequence[int],
        given: Mapping[str, pa.DataType],
        encoding: str,
        skip: int,
    ) -> pa.Table:
        names, kinds = [str(number) for number in range(len(self.names))], dict(given)
        if delimiter == "::":
            # a reader that splits at ":" sees an empty column within each "::"
            gaps = [f":{number}" for number in range(1, len(names))]
            names = [name for pair in zip(names, [*gaps, ""], strict=True) for name in pair][:-1]
            kinds |= dict.fromkeys(gaps, pa.null())
        wanted = [str(column) for column in columns]
        reading = pa_csv.ReadOptions(column_names=names, skip_rows=skip, encoding=encoding, block_size=1 << 22)
        quote, lines = '"' if self.quoted else False, self.quoted and b'"' in content
        parsing = pa_csv.ParseOptions(delimiter=delimiter[0], quote_char=quote, newlines_in_values=lines)
        read = [*wanted, *(name for name in kinds if name.startswith(":"))]
        converting = pa_csv.ConvertOptions(column_types=kinds, include_columns=read)
        return pa_csv.read_csv(pa.BufferReader(content), reading, parsing, converting).select(wanted)

    def records(self, file: File) -> Iterator[tuple[int, list[str]]]:
        """Return the rows with their line numbers; slow, and only used to say what is wrong and where."""
        with file.open() as stream:
            lines = io.TextIOWrapper(stream, "utf-8-sig", errors="replace", newline="")
            for number, fields in _split(lines, self.delimiter, self.quoted):
                if number > self.skip and fields:
                    yield number, fields

    def line_of(self, file: File, row: int) -> str:
        """Return the file and line of a row."""
        for at, (number, _) in enumerate(self.records(file)):
            if at == row:
                return f"{file}, line {number}"
        return f"{file}, row {row + 1}"


def decode(content: bytes, *, cut: bool = False) -> tuple[str, bool]:
    """Decode content as UTF-8, or else as Latin-1; also return whether it was Latin-1.

    A byte-order mark is left out; so is an incomplete character at the end if the content was `cut` off.

    Examples
    --------
    >>> decode("é".encode()), decode("é".encode("latin-1"))
    (('é', False), ('é', True))
    """
    content = content.removeprefix(codecs.BOM_UTF8)
    try:
        return content.decode(), False
    except UnicodeDecodeError as error:
        if cut and error.start > max(len(content) - 4, 0):
            return content[: error.start].decode(), False
        return content.decode("latin-1"), True


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


def _with_single_blanks(content: bytes) -> bytes:
    end = b"\n" if content.endswith((b"\n", b"\r")) else b""
    lines = content.removeprefix(codecs.BOM_UTF8).splitlines()  # blanks after the mark are not a field
    return b"\n".join(b" ".join(line.split()) for line in lines) + end


def _ids(column: pa.ChunkedArray) -> pa.ChunkedArray:
    """Return ids of a text file, without surrounding blanks."""
    ids = numbers_if_spelled_so(column)
    return ids if pa.types.is_integer(ids.type) else numbers_if_spelled_so(pc.utf8_trim_whitespace(column))


def not_utf8(file: File) -> str:
    """Return the note that a file was read as Latin-1."""
    return f"{file} is not UTF-8 and was read as Latin-1"


Format = Literal["csv", "csv-header", "csv-no-header", "movielens", "trec"]
"""Delimited text, with or without a header; user, item, rating and time without a header; a TREC run or qrels."""

# the TREC tools order by score; the column of ranks is for human readers
_RUN = ("user", "iteration", "item", "place", "score", "tag")
_TREC = {"run": _RUN, "qrels": ("user", "iteration", "item", "relevance")}
_MOVIELENS = ("user", "item", "rating", "time")
_MOVIELENS_HEADER = ["userId", "movieId", "rating", "timestamp"]
_NUMBER = re.compile(r"\s*[-+]?(\d+\.?\d*|\.\d+)(e[-+]?\d+)?\s*", re.IGNORECASE | re.ASCII)
_WHOLE = re.compile(r"[-+]?\d+", re.ASCII)
_RECBOLE = re.compile(r"(.+):(token|float|token_seq|float_seq)")
_UNEVEN = re.compile(r"[ \t]{2,}|[ \t]$|^[ \t]|\t.* | .*\t")
# lines used to distinguish formats
_LINES = 100


def check_format(given: str | None) -> None:
    """Raise `InputError` unless `given` is a format or None."""
    if given is not None and given not in get_args(Format):
        raise InputError(f"the format must be one of {', '.join(get_args(Format))}, got {given!r}.")


def with_header(given: Format | None, header: bool | None, name: str = "header") -> Format | None:
    """Return the format of delimited text with or without a header, as the caller says.

    Examples
    --------
    >>> with_header(None, False), with_header("trec", None)
    ('csv-no-header', 'trec')
    """
    if header is None:
        return given
    if not isinstance(header, bool):
        raise InputError(f"`{name}` must be True, False or None, got {header!r}.")
    if given not in (None, "csv"):
        raise InputError(f"`{name}` applies to delimited text only, not to the format {given!r}.")
    return "csv-header" if header else "csv-no-header"


@dataclass(frozen=True)
class Detection:
    """Finds out how a text file is divided, from its head, the expected contents, and what the caller says about it."""

    file: File
    contents: Contents
    chosen: Mapping[str, str | int]
    given: Format | None

    @property
    def numbered(self) -> bool:
        """Whether columns are chosen by number."""
        return any(map(is_number, self.chosen.values()))

    def layout(self, head: bytes) -> Layout:
        """Return how the file is divided, from its first bytes."""
        cut = len(head) >= HEAD
        text, latin = decode(head, cut=cut)
        lines = _LINE_END.split(text)
        skip = next((number for number, line in enumerate(lines) if line.strip()), None)
        if skip is None:
            raise InputError(f"{self.file} is empty.")
        whole = lines[:-1] if cut and len(lines) > skip + 1 else lines
        sample = [line for line in whole[skip : skip + _LINES] if line.strip()]
        if (kind := self._trec(sample)) is None:
            return self._delimited(sample, skip, latin)
        even = not any(map(_UNEVEN.search, sample)) and len({"\t" in line for line in sample}) == 1
        return Layout(" ", _TREC[kind], skip, even=even, quoted=False, fixed=True)

    def _trec(self, lines: Sequence[str]) -> str | None:
        """Return the TREC format to read, None for another format; refuse ambiguous files and those of a wrong kind."""
        if self.given == "trec":
            kind, sure = self._as_trec(lines[0]), True
        elif self.given is None and (found := _may_be_trec(lines)):
            kind, sure = found
        else:
            return None
        if kind != self.contents.trec:
            if self.given or (sure and len(lines) > 1 and not self.numbered):
                raise self._wrong_kind(kind)
            return None
        if sure or (kind == "run" and not self.numbered):
            return kind
        if self.numbered:
            return None
        argument = self.contents.format_argument
        raise InputError(
            f"{self.file} has four columns of numbers and no header, which may be TREC qrels (user, iteration, item, "
            "relevance) or MovieLens ratings (user, item, rating, time): choose with "
            f"{argument}='trec' or {argument}='movielens'."
        )

    def _as_trec(self, line: str) -> str:
        sizes = {len(names): kind for kind, names in _TREC.items()}
        if (count := len(line.split())) not in sizes:
            raise InputError(f"{self.file} is not in a TREC format: a run has 6 columns and qrels have 4, got {count}.")
        return sizes[count]

    def _wrong_kind(self, kind: str) -> InputError:
        contents = self.contents
        if kind == "run":
            return InputError(f"{self.file} holds ranked lists, not {contents.what}{contents.lists_need}.")
        hint = f"; if its columns are user, item, rating and time, give {contents.format_argument}='movielens'"
        wanted = contents.what + (hint if 4 in contents.unnamed else "")
        return InputError(f"{self.file} holds relevant items (TREC qrels), not {wanted}.")

    def _delimited(self, lines: Sequence[str], skip: int, latin: bool) -> Layout:
        delimiter = _delimiter(lines[0])
        quoted = delimiter not in ("::", " ")
        # one line at a time, so that an open quote does not swallow the lines after it
        split = (next((row for _, row in _split([line], delimiter, quoted)), []) for line in lines)
        stripped = ([field.strip() for field in row] for row in split)
        fields = next(stripped)
        even = delimiter != " " or _UNEVEN.search(lines[0]) is None
        if self._has_header(fields, stripped):
            typed = [_RECBOLE.fullmatch(name) for name in fields]
            names = tuple(form[1] if form else name for form, name in zip(typed, fields, strict=True))
            return Layout(delimiter, names, skip + 1, even, quoted, fields == _MOVIELENS_HEADER, latin=latin)
        name = self.file.plain_name
        whole = self.given == "movielens" or delimiter == "::" or name == "u.data" or name.endswith(".rating")
        return Layout(delimiter, self._unnamed(fields), skip, even, quoted, whole, unnamed=True)

    def _has_header(self, fields: Sequence[str], rows: Iterable[Sequence[str]]) -> bool:
        """Whether the first line holds names: only text and, if columns are chosen by number, unlike all others."""
        if self.given in ("movielens", "csv-header", "csv-no-header"):
            return self.given == "csv-header"
        if any(map(_NUMBER.fullmatch, fields)):
            return False
        named = not self.numbered or self.contents.recognises(fields) or _RECBOLE.fullmatch(fields[0])
        if named or any(all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=False)):
            return True
        header = self.contents.format_argument.replace("format", "header")
        hint = self.contents.header_hint or f"give {header}=True or {header}=False"
        raise InputError(f"{self.file} may begin with a header or with a row, because all of it is text: {hint}.")

    def _unnamed(self, fields: Sequence[str]) -> tuple[str, ...]:
        """Return the names of columns without a header: the usual ones, or else their numbers."""
        if self.given == "movielens":
            if len(fields) != len(_MOVIELENS):
                raise InputError(f"{self.file} must have 4 columns (user, item, rating, time), got {len(fields)}.")
            return _MOVIELENS
        usual, needed = self.contents.unnamed.get(len(fields)), self.contents.needed
        if usual is None and not set(needed) <= set(self.chosen):
            count = counted(len(fields), "column", "columns")
            example = ", ".join(f"{role}={number}" for number, role in enumerate(needed))
            raise InputError(f"{self.file} has no header and {count}: give the columns by number, as in {example}.")
        return usual or tuple(map(str, range(len(fields))))


def _may_be_trec(lines: Sequence[str]) -> tuple[str, bool] | None:
    """Return the TREC format that lines may have, and whether they can hardly be anything else."""
    rows = [line.split() for line in lines]
    if len({len(row) for row in rows}) != 1 or any("," in line or "::" in line for line in lines):
        return None
    columns = list(zip(*rows, strict=True))
    if len(columns) == 6 and all(map(_NUMBER.fullmatch, (*columns[3], *columns[4]))):
        return "run", "Q0" in columns[1] or not all(map(_NUMBER.fullmatch, columns[5]))
    if len(columns) == 4 and all(map(_WHOLE.fullmatch, columns[3])):
        usual = set(columns[1]) <= {"0", "Q0"}
        return "qrels", usual or not all(map(_NUMBER.fullmatch, columns[2]))
    return None


def _delimiter(line: str) -> str:
    if "::" in line:
        return "::"
    best = max("\t,;|", key=line.count)
    return best if best in line else " "


_SEPARATOR = re.compile(r"[,;| ]|::")
_NCF_USER = re.compile(r"\(([^,()]+),[^()]*\)")


def read_item_lines(source: Any, contents: Contents) -> pa.Table | None:
    r"""Return the table in a text file with a user, a tab and items on each line, or with an item on each line.

    None if it is anything else: a table with names of columns, or with other separators; or no text file. A user may
    also be the pair ``(user,item)`` of the NCF format.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from truerank.formats.columns import CANDIDATES
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "candidates.tsv"
    >>> _ = path.write_text("ann\ta b\nbob\tc\n")
    >>> read_item_lines(path, CANDIDATES).to_pydict()
    {'user': ['ann', 'bob'], 'item': [['a', 'b'], ['c']]}
    """
    if not isinstance(source, str | Path) or str(source) == "-":
        return None
    file = locate(source)
    with unreadable(str(file)):
        head = file.head()
        if head.startswith((b"PAR1", b"{", b"[", b"\xff\xfe", b"\xfe\xff")) or b"\0" in head:
            return None
        start = _LINE_END.split(decode(head, cut=len(head) >= HEAD)[0])
        first = next((line.strip() for line in start if line.strip()), "")
        is_table = contents.recognises(re.split(r"[\t,;|]", first)) or ("\t" not in first and _SEPARATOR.search(first))
        if not first or is_table:
            return None
        lines = [line.strip() for line in _LINE_END.split(decode(file.read())[0])]
    if "\t" in first:
        return _users_and_items(file, lines)
    return pa.table({"item": _ids(pa.chunked_array([[line for line in lines if line]]))})


def _users_and_items(file: File, lines: Sequence[str]) -> pa.Table:
    users, items = [], []
    for number, line in enumerate(lines, start=1):
        user, found, rest = line.partition("\t")
        if line and not (found and rest.strip()):
            raise InputError(f"{file}, line {number}: expected a user, a tab and items, got {line[:40]!r}.")
        if line:
            pair = _NCF_USER.fullmatch(user.strip())
            users.append(pair[1] if pair else user)
            items.append(rest.split())
    sizes = np.array([len(own) for own in items])
    flat = _ids(pa.chunked_array([[item for own in items for item in own]])).combine_chunks()
    lists = pa.LargeListArray.from_arrays(np.append(0, np.cumsum(sizes)), flat)
    return pa.table({"user": _ids(pa.chunked_array([users])), "item": lists})


_LINE = re.compile(r"\(?([0-9]+)(?:,\s*[0-9]+\))?((?:\t[0-9]+)*)\s*")
# more users without a line, per user with one, must be a mistake; user numbers below the second are always allowed
_GAPS = 1_000
_LARGEST = 10**6


def read_negatives(path: str | Path) -> list[Ints]:
    r"""Return the negatives of each user from a file in the NCF format, plain or compressed.

    A line is a user and its negatives, separated by tabs; the user is a number, or the pair
    ``(user,item)`` of the original files, in which item is the held-out item. User u is row u of the
    result; users without a line have no negatives.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.negative"
    >>> _ = path.write_text("(0,25)\t7\t9\n(2,3)\t1\t4\n")
    >>> [row.tolist() for row in read_negatives(path)]
    [[7, 9], [], [1, 4]]
    """
    file = locate(path)
    with unreadable(str(file)):
        lines = _LINE_END.split(decode(file.read())[0])
    rows: dict[int, Ints] = {}
    for number, line in enumerate(lines, start=1):
        if line.strip():
            user, items = _parse(line, f"{file}, line {number}")
            if user in rows:
                raise InputError(f"{file}, line {number}: user {user} already has a line.")
            rows[user] = items
    if not rows:
        raise InputError(f"{file} is empty.")
    if (last := max(rows)) >= max(_GAPS * len(rows), _LARGEST):
        raise InputError(f"{file} has {len(rows)} users, but numbers them up to {last}; number them from 0.")
    nothing = np.zeros(0, dtype=np.int64)
    return [rows.get(user, nothing) for user in range(last + 1)]


def _parse(line: str, place: str) -> tuple[int, Ints]:
    form = _LINE.fullmatch(line)
    if form is None:
        raise InputError(f"{place}: expected a user and tab-separated item numbers.")
    try:
        return int(np.int64(form[1])), np.array(form[2].split(), dtype=np.int64)
    except (OverflowError, ValueError) as error:
        raise InputError(f"{place}: users and items must be 64-bit whole numbers.") from error
