"""Where the relevant items are: how many of them have ranks 1, 2 to 3, 4 to 10, ... (Figure 5 of Krichene & Rendle)."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from truerank.arrays import Floats
from truerank.evaluation.per_instance import values
from truerank.ranking.ranks import Ranks
from truerank.report.blocks import Axis, Bars, Heights, Section
from truerank.report.material import Material

_TEXT = (
    "How many relevant items each recommender puts at which ranks; rank 1 is the top. Metrics with a cut-off see only "
    "the first bars, AUC sees all alike, and a sampled metric mixes them. Tied items count at each rank with their "
    "chance of it in a random order."
)
_STEPS = (1, 3)


def section(material: Material) -> Section:
    """Return bars for ranks that grow by about a factor of three."""
    lasts, names = rank_bounds(material.ranks)
    heights = [Heights(name, rank_counts(ranks, lasts)[: len(names)]) for name, ranks in material.ranks.items()]
    among = "" if material.a_ranks.design is None else " among the sampled candidates"
    block = Bars(Axis(f"rank{among}"), Axis("relevant items", switch=True), names, heights)
    return Section("Rank distribution", _TEXT, [block])


def rank_bounds(ranks: Mapping[str, Ranks]) -> tuple[list[int], list[str]]:
    """Return the last rank of each bar, 1, 3, 10, 30, ..., and the names of the bars; cut lists have one more.

    Examples
    --------
    >>> rank_bounds({"A": Ranks.from_ranks([1, 7], n=50)})
    ([1, 3, 10, 30, 50], ['1', '2–3', '4–10', '11–30', '31–50'])
    """
    depth = min((one.depth for one in ranks.values() if one.depth is not None), default=None)
    last = depth or max(int(one.n_candidates.max()) for one in ranks.values())
    steps = [step * 10**power for power in range(len(str(last))) for step in _STEPS]
    lasts = [*(step for step in steps if step < last), last]
    names = [_range(first, end) for first, end in zip([1, *(end + 1 for end in lasts)], lasts, strict=False)]
    return lasts, names if depth is None else [*names, f"below {last:,}"]


def rank_counts(ranks: Ranks, lasts: list[int]) -> Floats:
    """Return how many relevant items have ranks up to each bound and beyond the one before; the rest comes last.

    Examples
    --------
    >>> rank_counts(Ranks.from_ranks([1, 2, 7, 40], n=50), [1, 3, 10]).round(9).tolist()
    [1.0, 1.0, 1.0, 1.0]
    """
    within = [last * float(np.nansum(values(ranks, f"precision@{last}"))) for last in lasts]
    return np.diff([0.0, *within, float(ranks.above.size)])


def _range(first: int, last: int) -> str:
    return f"{first:,}" if first == last else f"{first:,}–{last:,}"
