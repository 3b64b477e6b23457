"""The VideoLectures.net challenge: its files, and its metric, mean average R-precision."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, NamedTuple, TypeVar, get_args

import numpy as np
import pyarrow as pa
import pyarrow.csv as pa_csv

import truerank as tr
from truerank.core.checks import AnyArray, Bools, Floats, Ints, check_choice, first_true, shown
from truerank.formats.sources import locate, unreadable

T = TypeVar("T")

_COLON, _COMMA, _BAR, _END = b":,|\n"
_BLANK = b" \t"
_LIMIT = 10**9  # ids are below this, so that a line number and an id fit into one integer
_SCORE = re.compile(r"(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?")


class Solution(NamedTuple):
    """The correct answers: queries in the order of the file, whether each is in the leaderboard, and the lectures."""

    queries: Ints
    leaderboard: Bools
    lectures: pa.Table
    """Columns user, item, relevance. A query without lectures has one row, with relevance 0."""


class Submission(NamedTuple):
    """Recommended lists: the queries that have a list, and the lectures in order."""

    queries: Ints
    lectures: pa.Table
    """Columns user, item. An empty list has one row, with the item -1, which no solution contains."""


def read_solution(path: str | Path) -> Solution:
    r"""Read lines ``id:flag:lecture|score,lecture|score,...``, in any order; flag 1 is the leaderboard's subset.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "solution.txt"
    >>> _ = path.write_text("7:1:12|3.5,40|9\n3:0:\n")
    >>> queries, leaderboard, lectures = read_solution(path)
    >>> queries.tolist(), leaderboard.tolist()
    ([7, 3], [True, False])
    >>> lectures.to_pydict()
    {'user': [7, 7, 3], 'item': [12, 40, 0], 'relevance': [3.5, 9.0, 0.0]}
    """
    return _read(path, b"0123456789:,|.eE+- \t\n", _parse_solution, _check_solution_line)


def read_submission(path: str | Path) -> Submission:
    r"""Read lines ``id: lecture, lecture, ...``, best first.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "submission.txt"
    >>> _ = path.write_text("3: 12, 5\n7: \n")
    >>> read_submission(path).lectures.to_pydict()
    {'user': [3, 3, 7], 'item': [12, 5, -1]}
    """
    return _read(path, b"0123456789:, \t\n", _parse_submission, _check_submission_line)


def _read(path: str | Path, allowed: bytes, parse: Callable[[bytes], T | None], check_line: Callable[[str], int]) -> T:
    file = locate(path)
    with unreadable(str(file)):
        content = file.read().rstrip(b"\n") + b"\n"
    if content.isspace():
        raise tr.InputError(f"{file} is empty.")
    found = None if content.translate(None, delete=allowed) else parse(content)
    if found is None:
        _check_lines(str(file), content, check_line)
        # every line is valid, so only blanks, which have no meaning, were in the way
        found = parse(content.translate(None, delete=_BLANK))
    assert found is not None, "a file whose lines are all valid can be parsed"
    return found


class _Tokens(NamedTuple):
    """The numbers of a file and their positions."""

    value: Floats
    """NaN if there is nothing between two separators."""
    end: AnyArray
    """The separator after each number."""
    first: Ints
    """Position of the first number of each line."""
    size: Ints
    """How many numbers each line has."""

    def after(self, head: int) -> tuple[Floats, AnyArray]:
        """Return values and separators without the first `head` of each line."""
        body = np.ones(self.end.size, dtype=np.bool_)
        for skipped in range(head):
            body[self.first + skipped] = False
        return self.value[body], self.end[body]


def _tokens(content: bytes) -> _Tokens | None:
    """Split a file at its separators; None if anything between them is not a number."""
    end = np.frombuffer(content.translate(None, delete=b"0123456789.eE+-" + _BLANK), dtype=np.uint8)
    column = content.translate(bytes.maketrans(b":,|", b"\n\n\n"))
    try:
        value = pa_csv.read_csv(
            pa.BufferReader(column),
            read_options=pa_csv.ReadOptions(column_names=["number"]),
            parse_options=pa_csv.ParseOptions(quote_char=False, ignore_empty_lines=False),
            convert_options=pa_csv.ConvertOptions(column_types={"number": pa.float64()}, null_values=[""]),
        )["number"].to_numpy()
    except pa.ArrowInvalid:
        return None
    last = np.flatnonzero(end == _END)
    size = np.diff(last, prepend=-1)
    return _Tokens(value, end, last + 1 - size, size)


def _parse_submission(content: bytes) -> Submission | None:
    tokens = _tokens(content)
    if tokens is None or np.any(tokens.end[tokens.first] != _COLON):
        return None
    queries, (items, end) = tokens.value[tokens.first], tokens.after(1)
    length = tokens.size - 1
    last = np.cumsum(length) - 1
    # an empty list has one number, which is missing
    items[last[(length == 1) & np.isnan(items[last])]] = -1
    if np.any(end == _COLON) or not _whole(queries) or not _whole(items, least=-1) or _repeated(queries):
        return None
    users = queries.astype(np.int64)
    return Submission(users, pa.table({"user": np.repeat(users, length), "item": items.astype(np.int64)}))


def _parse_solution(content: bytes) -> Solution | None:
    tokens = _tokens(content) if _only_scores_have_points(content) else None
    if tokens is None or np.any(tokens.size < 3) or np.any(tokens.end[[tokens.first, tokens.first + 1]] != _COLON):
        return None
    queries, flags = tokens.value[[tokens.first, tokens.first + 1]]
    body, end = tokens.after(2)
    length = tokens.size - 2
    last = np.cumsum(length) - 1
    # a query without lectures has one number, which is missing; with 0|0 it also has a pair
    empty = last[(length == 1) & np.isnan(body[last])]
    body[empty] = 0
    body, end = np.insert(body, empty, 0), np.insert(end, empty, _BAR)
    if body.size % 2 or np.any(end[::2] != _BAR) or np.any((end[1::2] == _BAR) | (end[1::2] == _COLON)):
        return None
    items, relevance, line = body[::2], body[1::2], np.repeat(np.arange(length.size), (length + 1) // 2)
    if not _whole(queries) or not _whole(items) or not np.isin(flags, (0, 1)).all():
        return None
    if not np.all((relevance >= 0) & (relevance < np.inf)) or _repeated(queries):
        return None
    users, lectures = queries.astype(np.int64), items.astype(np.int64)
    if _repeated(line * _LIMIT + lectures):
        return None
    table = pa.table({"user": users[line], "item": lectures, "relevance": np.ascontiguousarray(relevance)})
    return Solution(users, flags == 1, table)


def _only_scores_have_points(content: bytes) -> bool:
    """Whether all characters that occur only in numbers with a fraction or exponent come after a bar."""
    codes = np.frombuffer(content, dtype=np.uint8)
    special = np.flatnonzero(np.isin(codes, list(b".eE+-")))
    separators = np.flatnonzero(np.isin(codes, [_COLON, _COMMA, _BAR, _END]))
    before = np.searchsorted(separators, special) - 1
    return bool(np.all(before >= 0) and np.all(codes[separators[before]] == _BAR))


def _whole(numbers: Floats, least: int = 0) -> bool:
    return bool(np.all((numbers >= least) & (numbers < _LIMIT) & (numbers == np.floor(numbers))))


def _repeated(numbers: Floats | Ints) -> bool:
    return bool(np.any(np.diff(np.sort(numbers)) == 0))


def _check_lines(path: str, content: bytes, check: Callable[[str], int]) -> None:
    """Raise `InputError` for the first line that is wrong."""
    seen: dict[int, int] = {}
    for number, line in enumerate(content[:-1].split(b"\n"), start=1):
        try:
            query = check(_text(line))
            if query in seen:
                raise tr.InputError(f"query {query} already has a line, line {seen[query]}.")
        except tr.InputError as error:
            raise tr.InputError(f"{path}, line {number}: {error}") from None
        seen[query] = number


def _text(line: bytes) -> str:
    if line.endswith(b"\r"):
        raise tr.InputError("the line ends in CR LF, as on Windows; convert the file to LF line ends.")
    odd = next((byte for byte in line if byte > 126 or byte < 9), None)
    if odd is not None:
        plain = "plain text (ASCII, or UTF-8 without BOM)"
        raise tr.InputError(f"the line has the byte 0x{odd:02x}; save the file as {plain}.")
    return line.decode("ascii")


def _check_submission_line(text: str) -> int:
    query, colon, lectures = text.partition(":")
    if not colon:
        raise tr.InputError(f"there must be a colon, as in 'id: lecture, lecture, ...', got {shown(text)}.")
    number = _number("query", query)
    for lecture in lectures.split(",") if lectures.strip(_BLANK.decode()) else ():
        _number("lecture", lecture)
    return number


def _check_solution_line(text: str) -> int:
    if text.count(":") != 2:
        raise tr.InputError(f"there must be two colons, as in 'id:flag:lecture|score,...', got {shown(text)}.")
    query, flag, lectures = text.split(":")
    number = _number("query", query)
    if _number("flag", flag) > 1:
        raise tr.InputError(f"the flag must be 0 or 1, got {shown(flag)}.")
    seen = set()
    for pair in lectures.split(",") if lectures.strip(_BLANK.decode()) else ():
        lecture, bar, score = pair.partition("|")
        if not bar:
            raise tr.InputError(f"expected lecture|score, got {shown(pair)}.")
        if (item := _number("lecture", lecture)) in seen:
            raise tr.InputError(f"lecture {item} is listed twice.")
        seen.add(item)
        _check_score(item, score.strip(_BLANK.decode()))
    return number


def _number(role: str, text: str) -> int:
    plain = text.strip(_BLANK.decode())
    if not re.fullmatch(r"[0-9]+", plain) or int(plain) >= _LIMIT:
        raise tr.InputError(f"the {role} must be a whole number of at most 9 digits, got {shown(plain)}.")
    return int(plain)


def _check_score(lecture: int, text: str) -> None:
    if not _SCORE.fullmatch(text) or not math.isfinite(float(text)):
        raise tr.InputError(f"the score of lecture {lecture} must be a number of at least 0, got {shown(text)}.")


Missing = Literal["refuse", "zero"]

CUTOFFS = {1: (5, 10, 15, 20, 25, 30), 2: (5, 10)}
"""Cut-offs of the challenge's two tasks."""


def read_vlnet(
    solution: str | Path, submission: str | Path, *, depth: int = 30, missing: Missing = "refuse"
) -> dict[str, tr.Ranks]:
    r"""Return the ranks of the correct lectures in a submission: for all queries, the leaderboard's, and the rest.

    Parameters
    ----------
    solution : path
        Lines ``id:flag:lecture|score,lecture|score,...``; flag 1 is the leaderboard's subset.
    submission : path
        Lines ``id: lecture, lecture, ...``, best first. A repeated lecture counts once, at its first position, but its
        repetitions still take up positions; lists may have any length, and missing lectures count as misses.
    depth : int
        The deepest cut-off that will be needed, if the lists are shorter.
    missing : {"refuse", "zero"}
        Whether a query in the solution without a line in the submission is an error or scores 0.

    Returns
    -------
    dict of str to Ranks
        "all", "leaderboard" (flag 1) and "rest" (flag 0), if there are such queries, with grades. A query
        without any correct lecture is undefined, and is counted.

    Examples
    --------
    The first example of the challenge's text:

    >>> import pathlib, tempfile
    >>> import truerank as tr
    >>> from truerank.papers.vlnet import read_vlnet
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> first = ",".join(f"{lecture}|{101 - lecture}" for lecture in range(1, 11))
    >>> second = ",".join(f"{lecture}|{151 - lecture}" for lecture in range(101, 111))
    >>> _ = (folder / "solution.txt").write_text(f"1:1:{first}\n2:0:{second}\n")
    >>> _ = (folder / "submission.txt").write_text(
    ...     "1: 1, 2, 3, 20, 10, 6, 7, 8, 21, 22\n2: 101, 102, 103, 50, 30, 106, 107, 108, 109, 52\n"
    ... )
    >>> ranks = read_vlnet(folder / "solution.txt", folder / "submission.txt", depth=10)
    >>> tr.values(ranks["all"], "marp@5,10").round(12).tolist()
    [0.65, 0.65]
    """
    check_choice("missing", missing, get_args(Missing))
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read_solution, solution), pool.submit(read_submission, submission)
        right, lists = reading[0].result(), reading[1].result()
    if not np.isin(right.queries, lists.queries).any():
        files, first = f"{str(solution)!r} is in {str(submission)!r}", right.queries[0]
        raise tr.InputError(f"no query of {files}; for instance, query {first} is not.")
    if missing == "refuse":
        _check_complete(right, lists)
    rows = np.flatnonzero(np.diff(lists.lectures["user"].to_numpy(), prepend=-1, append=-1))
    longest = int(np.diff(rows).max())
    ranks = tr.read_lists(lists.lectures, right.lectures, depth=max(depth, longest), invalid="count")
    _ = ranks.truth_rank  # computed now, because it needs a sort and the parts inherit it
    parts = {"all": ranks, "leaderboard": ranks[right.leaderboard], "rest": ranks[~right.leaderboard]}
    return {name: part for name, part in parts.items() if len(part)}


def _check_complete(solution: Solution, submission: Submission) -> None:
    absent = ~np.isin(solution.queries, submission.queries)
    if (line := first_true(absent)) is not None:
        query = f"query {solution.queries[line]} (line {line + 1} of the solution)"
        remedy = f"add one, or score the {absent.sum()} missing as 0 with missing='zero'"
        raise tr.InputError(f"{query} has no line in the submission; {remedy}.")
