"""The explorer: one HTML file that computes what sampled metrics show, and follows its sliders at once."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from truerank.analysis.risks import check_exact
from truerank.errors import InputError
from truerank.ranking.ranks import Ranks
from truerank.report.pages import CHART_SCRIPTS, write_page

_SCRIPTS = (
    *CHART_SCRIPTS, "designs.js", "solvers.js", "corrections.js", "laws.js", "settings.js", "expected.js", "pairs.js",
    "explorer.js",
)  # fmt: skip
_MOST = 6
_TITLE = "What would sampled candidates show?"
# the running example of Krichene & Rendle, section 3.2
_PAPER = {
    "A": Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "C": Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
    "B": Ranks.from_ranks([40, 40, 8437, 9266, 4482], n=10_000),
}


def write_explorer(path: str | Path, ranks: Mapping[str, Ranks] | None = None) -> None:
    """Write a page to explore sampled metrics to one HTML file that opens in any browser.

    Sliders set the number of candidates n, of sampled ones m, the cut-off k and gamma; metric, design (uniform or
    inverse sampling) and correction are chosen. The page shows the expected metric, its bias and its deviation by rank,
    and what two recommenders would look like. It computes all of that itself, and agrees with the library to 1e-9.

    Parameters
    ----------
    path : path
        The .html file to write.
    ranks : dict of name to Ranks, optional
        Exact ranks of two to six recommenders, whose pairs can be chosen besides those of the paper's example. Every
        relevant item counts as the only one of an instance, all instances have as many candidates as the largest, and
        ties are broken at random (seed 0).

    Examples
    --------
    >>> import pathlib, tempfile, truerank as tr
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "explore.html"
    >>> tr.write_explorer(path)
    >>> path.stat().st_size < 1_500_000
    True
    """
    given = dict(ranks or {})
    if given and not 2 <= len(given) <= _MOST:
        raise InputError(f"the explorer compares 2 to {_MOST} recommenders, got {len(given)}.")
    for one in given.values():
        check_exact(one)
        if not one.above.size:
            raise InputError("every recommender must have an instance with a relevant item.")
    studies = {"Yours": _counted(given), "The paper's": _counted(_PAPER)}
    data = {"title": _TITLE, "recommenders": [], "metrics": {}, "studies": studies}
    write_page(path, _TITLE, data, _SCRIPTS)


def _counted(ranks: Mapping[str, Ranks]) -> list[dict[str, Any]]:
    """Return how often each rank occurs, and the number of candidates, for each recommender."""
    return [{"name": name, "n": int(one.n_candidates.max()), "ranks": _counts(one)} for name, one in ranks.items()]


def _counts(ranks: Ranks) -> list[list[int]]:
    above = ranks.break_ties("random", rng=0).above if ranks.has_ties else ranks.above
    found, times = np.unique(above + 1, return_counts=True)
    return np.stack([found, times], axis=1).tolist()
