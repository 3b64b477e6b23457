"""Fixed negatives, in the format of the Neural Collaborative Filtering files."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np

from truerank.arrays import Ints
from truerank.errors import InputError
from truerank.formats.layout import decode, lines_of
from truerank.formats.source import locate, unreadable

_LINE = re.compile(r"\(?([0-9]+)(?:,\s*[0-9]+\))?((?:\t[0-9]+)*)\s*")
# more users without a line, for each user with one, must be a mistake; user numbers below the second are always allowed
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
        lines = lines_of(decode(file.read())[0])
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
