"""Detects the format of a text file from its first lines; if two formats fit, the caller must choose."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, get_args

from truerank.errors import InputError
from truerank.formats.columns import Contents, is_number
from truerank.formats.layout import Layout, decode, fields_of, lines_of
from truerank.formats.source import HEAD, File

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
# lines used to tell formats apart
_LINES = 100


def check_format(given: str | None) -> None:
    """Raise `InputError` unless `given` is a format or None."""
    if given is not None and given not in get_args(Format):
        raise InputError(f"the format must be one of {', '.join(get_args(Format))}, got {given!r}.")


def with_header(given: Format | None, header: bool | None, name: str = "header") -> Format | None:
    """Return the format of delimited text of which the caller says whether it has a header.

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


def detect(
    file: File, head: bytes, contents: Contents, chosen: Mapping[str, str | int], given: Format | None
) -> Layout:
    """Return how a text file is divided, from its head, what it must hold, and what the caller says of it."""
    cut = len(head) >= HEAD
    text, latin = decode(head, cut=cut)
    lines = lines_of(text)
    skip = next((number for number, line in enumerate(lines) if line.strip()), None)
    if skip is None:
        raise InputError(f"{file} is empty.")
    whole = lines[:-1] if cut and len(lines) > skip + 1 else lines
    sample = [line for line in whole[skip : skip + _LINES] if line.strip()]
    if given == "trec":
        return _trec_layout(file, sample, _as_trec(file, sample[0]), contents, skip)
    if given is None and (found := _trec(sample)) and (kind := _settle(file, *found, contents, chosen, len(sample))):
        return _trec_layout(file, sample, kind, contents, skip)
    return _delimited(file, sample, skip, latin, contents, chosen, given)


def _trec(lines: Sequence[str]) -> tuple[str, bool] | None:
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


def _settle(
    file: File, kind: str, sure: bool, contents: Contents, chosen: Mapping[str, str | int], n_lines: int
) -> str | None:
    """Return the TREC format to read, None for another format; refuse what is not clear, or not what is needed."""
    numbered = any(map(is_number, chosen.values()))
    if kind != contents.trec:
        if sure and n_lines > 1 and not numbered:
            raise _wrong_kind(file, kind, contents)
        return None
    if sure or (kind == "run" and not numbered):
        return kind
    if numbered:
        return None
    raise InputError(
        f"{file} has four columns of numbers and no header, which may be TREC qrels (user, iteration, item, relevance) "
        "or MovieLens ratings (user, item, rating, time): choose with "
        f"{contents.format_argument}='trec' or {contents.format_argument}='movielens'."
    )


def _wrong_kind(file: File, kind: str, contents: Contents) -> InputError:
    if kind == "run":
        return InputError(f"{file} holds ranked lists, not {contents.what}{contents.lists_need}.")
    hint = f"; if its columns are user, item, rating and time, give {contents.format_argument}='movielens'"
    applies = 4 in contents.unnamed
    return InputError(f"{file} holds relevant items (TREC qrels), not {contents.what}{hint if applies else ''}.")


def _as_trec(file: File, line: str) -> str:
    sizes = {len(names): kind for kind, names in _TREC.items()}
    if (count := len(line.split())) not in sizes:
        raise InputError(f"{file} is not in a TREC format: a run has 6 columns and qrels have 4, got {count}.")
    return sizes[count]


def _trec_layout(file: File, lines: Sequence[str], kind: str, contents: Contents, skip: int) -> Layout:
    if kind != contents.trec:
        raise _wrong_kind(file, kind, contents)
    even = not any(map(_UNEVEN.search, lines)) and len({"\t" in line for line in lines}) == 1
    return Layout(" ", _TREC[kind], skip, even=even, quoted=False, fixed=True)


def _delimited(
    file: File,
    lines: Sequence[str],
    skip: int,
    latin: bool,
    contents: Contents,
    chosen: Mapping[str, str | int],
    given: Format | None,
) -> Layout:
    delimiter = _delimiter(lines[0])
    quoted = delimiter not in ("::", " ")
    split = ([field.strip() for field in fields_of(line, delimiter, quoted=quoted)] for line in lines)
    fields = next(split)
    even = delimiter != " " or _UNEVEN.search(lines[0]) is None
    if _has_header(file, fields, split, contents, chosen, given):
        typed = [_RECBOLE.fullmatch(name) for name in fields]
        names = tuple(form[1] if form else name for form, name in zip(typed, fields, strict=True))
        return Layout(delimiter, names, skip + 1, even, quoted, fields == _MOVIELENS_HEADER, latin=latin)
    names = _unnamed(file, fields, contents, chosen, given)
    whole = delimiter == "::" or file.plain_name == "u.data" or file.plain_name.endswith(".rating")
    return Layout(delimiter, names, skip, even, quoted, whole or given == "movielens", unnamed=True)


def _has_header(
    file: File,
    fields: Sequence[str],
    rows: Iterable[Sequence[str]],
    contents: Contents,
    chosen: Mapping[str, str | int],
    given: Format | None,
) -> bool:
    """Whether the first line holds names: text only, and, if columns are chosen by number, not text like all others."""
    if given in ("movielens", "csv-header", "csv-no-header"):
        return given == "csv-header"
    if any(map(_NUMBER.fullmatch, fields)):
        return False
    named = not any(map(is_number, chosen.values())) or contents.recognises(fields) or _RECBOLE.fullmatch(fields[0])
    if named or any(all(map(_NUMBER.fullmatch, column)) for column in zip(*rows, strict=False)):
        return True
    header = contents.format_argument.replace("format", "header")
    hint = contents.header_hint or f"give {header}=True or {header}=False"
    raise InputError(f"{file} may begin with a header or with a row, because all of it is text: {hint}.")


def _unnamed(
    file: File, fields: Sequence[str], contents: Contents, chosen: Mapping[str, str | int], given: Format | None
) -> tuple[str, ...]:
    """Return the names of columns without a header: the usual ones, or else their numbers."""
    if given == "movielens":
        if len(fields) != len(_MOVIELENS):
            raise InputError(f"{file} must have 4 columns (user, item, rating, time), got {len(fields)}.")
        return _MOVIELENS
    usual = contents.unnamed.get(len(fields))
    if usual is None and not set(contents.needed) <= set(chosen):
        count = "1 column" if len(fields) == 1 else f"{len(fields)} columns"
        example = ", ".join(f"{role}={number}" for number, role in enumerate(contents.needed))
        raise InputError(f"{file} has no header and {count}: give the columns by number, as in {example}.")
    return usual or tuple(str(number) for number in range(len(fields)))


def _delimiter(line: str) -> str:
    if "::" in line:
        return "::"
    best = max("\t,;|", key=line.count)
    return best if best in line else " "
