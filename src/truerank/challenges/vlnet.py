"""The VideoLectures.Net challenge (ECML/PKDD 2011): its files -> ranks, to be scored by mean average R-precision."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from truerank.challenges.vlnet_files import Solution, Submission, read_solution, read_submission
from truerank.errors import InputError
from truerank.ranking.lists import read_lists
from truerank.ranking.ranks import Ranks

Missing = Literal["refuse", "zero"]

CUTOFFS = {1: (5, 10, 15, 20, 25, 30), 2: (5, 10)}
"""Cut-offs of the challenge's two tasks."""


def read_vlnet(
    solution: str | Path, submission: str | Path, *, depth: int = 30, missing: Missing = "refuse"
) -> dict[str, Ranks]:
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
    >>> from truerank.challenges.vlnet import read_vlnet
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
    if missing not in get_args(Missing):
        raise InputError(f"`missing` must be 'refuse' or 'zero', got {missing!r}.")
    with ThreadPoolExecutor(2) as pool:
        reading = pool.submit(read_solution, solution), pool.submit(read_submission, submission)
        right, lists = reading[0].result(), reading[1].result()
    if not np.isin(right.queries, lists.queries).any():
        raise InputError(
            f"no query of {str(solution)!r} is in {str(submission)!r}; for instance, query {right.queries[0]} is not."
        )
    if missing == "refuse":
        _check_complete(right, lists)
    rows = np.flatnonzero(np.diff(lists.lectures["user"].to_numpy(), prepend=-1, append=-1))
    longest = int(np.diff(rows).max())
    ranks = read_lists(lists.lectures, right.lectures, depth=max(depth, longest), repeats="count once")
    _ = ranks.truth_rank  # computed now, because it needs a sort and the parts inherit it
    parts = {"all": ranks, "leaderboard": ranks[right.leaderboard], "rest": ranks[~right.leaderboard]}
    return {name: part for name, part in parts.items() if len(part)}


def _check_complete(solution: Solution, submission: Submission) -> None:
    absent = ~np.isin(solution.queries, submission.queries)
    if np.any(absent):
        line = int(np.argmax(absent))
        raise InputError(
            f"query {solution.queries[line]} (line {line + 1} of the solution) has no line in the submission; add one, "
            f"or score the {absent.sum()} missing as 0 with missing='zero'."
        )
