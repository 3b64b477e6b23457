"""Fixed negatives, as the Neural Collaborative Filtering files have them."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pyarrow as pa

from truerank.arrays import Ints
from truerank.errors import InputError


def read_negatives(path: str | Path) -> list[Ints]:
    r"""Return the negatives of each user from a file in the NCF format, plain or gzipped.

    A line is a user and its negatives, separated by tabs; the user is a number, or the pair
    ``(user,item)`` of the original files, in which item is the held-out one. User u is row u of the
    result; users without a line have none.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "test.negative"
    >>> _ = path.write_text("(0,25)\t7\t9\n(2,3)\t1\t4\n")
    >>> [row.tolist() for row in read_negatives(path)]
    [[7, 9], [], [1, 4]]
    """
    if not Path(path).is_file():
        raise InputError(f"there is no file {str(path)!r}.")
    with pa.input_stream(str(path), compression="detect") as stream:
        lines = stream.read().decode("utf-8", errors="replace").splitlines()
    rows: dict[int, Ints] = {}
    for number, line in enumerate(lines, start=1):
        form = re.fullmatch(r"\(?(\d+)(?:,\s*\d+\))?((?:\t\d+)*)\s*", line)
        if form is None:
            raise InputError(f"{str(path)!r}, line {number}: expected a user and tab-separated item numbers.")
        if int(form[1]) in rows:
            raise InputError(f"{str(path)!r}, line {number}: user {form[1]} has a line already.")
        rows[int(form[1])] = np.array(form[2].split(), dtype=np.int64)
    nothing = np.zeros(0, dtype=np.int64)
    return [rows.get(user, nothing) for user in range(max(rows, default=-1) + 1)]
