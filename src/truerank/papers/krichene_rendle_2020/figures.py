"""Figures 1 to 6 of the paper, with the same axes.

Figures 2 to 4 follow eq. 15 (sampling with replacement), as the paper's analysis does. Figures 5 and 6 put ties in
random order; Figure 6 samples without replacement and corrects with each user's own n.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING

import numpy as np

from truerank.analysis.orders import Consistency, consistency
from truerank.analysis.risks import risk
from truerank.arrays import Floats
from truerank.corrections.tables import correction_table
from truerank.evaluation.estimates import estimate
from truerank.evaluation.per_instance import values
from truerank.papers.krichene_rendle_2020 import toy
from truerank.papers.krichene_rendle_2020.experiment import Study
from truerank.ranking.ranks import Ranks
from truerank.report.drawing import bars, curves, mark, panels, styled
from truerank.sampling.uniform import UniformSampling

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 10_000
METRICS = {"AUC": "auc", "Average Precision": "ap", "NDCG": "ndcg", "Recall at 10": "recall@10"}
CORRECTIONS = {"CLS": "~cls", **{f"BV {gamma:g}": f"~bv({gamma:g})" for gamma in (1, 0.1, 0.01, 0.001)}}
BUCKETS = (10, 100, 500, 1_000, 1_500)


def _all_ranks(last: int) -> Ranks:
    return Ranks.from_ranks(np.arange(1, last + 1), n=N)


@styled
def figure_1() -> tuple[Figure, str]:
    """Metrics against the rank of the one relevant item, for all ranks and for the first 100."""
    figure, axes = panels(2)
    for panel, last in zip(axes, (N, 100), strict=True):
        ranks = _all_ranks(last)
        curves(panel, ranks.above + 1, {name: values(ranks, metric) for name, metric in METRICS.items()})
        panel.set(xlabel="rank", ylabel="metric", xlim=(1, last), ylim=(0, 1.02))
    axes[1].legend()
    return figure, "all metrics but AUC are top heavy"


@styled
def figure_2() -> tuple[Figure, str]:
    """Expected sampled metrics of the toy example against the number of samples."""
    sizes = np.unique(np.geomspace(1, N, 120).astype(int))
    figure, axes = panels(4)
    for panel, (name, metric) in zip(axes, METRICS.items(), strict=True):
        curves(panel, sizes, consistency(toy.RANKS, metric, replace=True, sizes=sizes).curves)
        panel.set(title=name, xlabel="number of samples m", ylabel="expected metric", xscale="log", xlim=(1, N))
        panel.set_ylim(bottom=0)
    axes[0].legend(title="recommender")
    return figure, "the order of A, B and C depends on the number of samples"


@styled
def figure_3() -> tuple[Figure, str]:
    """Expected sampled metrics against the true rank, for growing samples."""
    ranks = _all_ranks(1_000)
    figure, axes = panels(4)
    for panel, (name, metric) in zip(axes, METRICS.items(), strict=True):
        lines = {f"m = {m:,}": risk(ranks, metric, m=m, replace=True).expected for m in (10, 100, 1_000)}
        curves(panel, ranks.above + 1, {"exact": values(ranks, metric), **lines})
        panel.set(title=name, xlabel="rank", ylabel="expected metric", xlim=(1, 1_000), ylim=(0, 1.02))
    axes[1].legend()
    return figure, "sampled metrics are less top heavy than exact ones"


@styled
def figure_4() -> tuple[Figure, str]:
    """Corrected average precision: its value at each sampled rank, and its expectation at each true rank."""
    design = UniformSampling(100, replace=True)
    ranks = _all_ranks(N)
    figure, (left, right) = panels(2)
    tables = {name: correction_table(f"ap{text}", design, n=N) for name, text in CORRECTIONS.items()}
    curves(left, np.arange(1, design.size + 2), {"AP": 1 / np.arange(1.0, design.size + 2), **tables})
    left.set(xlabel="sampled rank", ylabel="corrected metric", xscale="log", xlim=(1, design.size + 1))
    left.set_ylim(-0.45, 0.65)
    expected = {name: risk(ranks, f"ap{text}", design).expected for name, text in CORRECTIONS.items()}
    curves(right, ranks.above + 1, {"AP": values(ranks, "ap"), **expected})
    right.set(xlabel="rank", ylabel="expected corrected metric", xscale="log", xlim=(1, N), ylim=(-0.05, 0.5))
    right.legend()
    return figure, "corrected AP oscillates in the sample, less so in expectation"


def within(ranks: Ranks, last: int) -> float:
    """Return how many users have their held-out item at ranks 1..last, in expectation over random orders of ties."""
    return len(ranks) * estimate(ranks, f"recall@{last}").mean


def rank_counts(ranks: Ranks) -> Floats:
    """Return how many users have their held-out item in each bucket of ranks."""
    return np.diff([0.0, *(within(ranks, last) for last in BUCKETS), len(ranks)])


def bottom_half(ranks: Ranks) -> int:
    """Return how many users have their held-out item, which must not tie, in the worse half of their candidates."""
    return int((ranks.rank > ranks.n_candidates / 2).sum())


@styled
def figure_5(study: Study) -> tuple[Figure, str]:
    """Distribution of predicted ranks on MovieLens 1M."""
    figure, (panel,) = panels(1, columns=1)
    firsts = [1, *(last + 1 for last in BUCKETS)]
    names = [f"{first:,}–{last:,}" for first, last in zip(firsts, BUCKETS, strict=False)] + [f"above {BUCKETS[-1]:,}"]
    heights = {name: rank_counts(ranks) for name, ranks in study.ranks.items()}
    bars(panel, names, heights)
    panel.set(xlabel="predicted rank", ylabel="number of users")
    panel.legend(title="recommender")
    x = study.ranks["X"]
    shows = (
        f"X has {within(x, 100):.0f} users in the top 100 (published: 2310) and {bottom_half(x)} in the bottom half "
        f"(published: less than 300); Z has {heights['Z'][-1]:.0f} above rank {BUCKETS[-1]:,} (published: over 1600 in "
        "the worst bucket, wherever that begins)"
    )
    return figure, shows


@dataclass(frozen=True)
class Growth:
    """Expected Recall@10 by sample size, and the m from which the order of the recommenders is right."""

    found: Consistency
    settled: int | None


@cache
def growth(study: Study, metric: str, largest: int) -> Growth:
    """Return a panel of Figure 6, which the report shows too, and by bisection the m from which the order is right."""
    ranks = {name: tied.break_ties("random", rng=0) for name, tied in study.ranks.items()}
    found = consistency(ranks, metric, sizes=np.geomspace(10, largest, 20).astype(int))
    wrong = found.sizes[found.sizes < (found.settled or 0)]
    if wrong.size == 0:
        return Growth(found, found.settled)
    low, high = int(wrong[-1]), int(found.settled or 0)
    while high - low > 1:
        middle = (low + high) // 2
        right = consistency(ranks, metric, sizes=[middle]).settled is not None
        low, high = (low, middle) if right else (middle, high)
    return Growth(found, high)


@styled
def figure_6(study: Study) -> tuple[Figure, str]:
    """Expected Recall@10 against the sample size, uncorrected and corrected, and where the order becomes right."""
    most = int(study.y.n_candidates.min()) - 1
    # many catalogue sizes can be corrected at once if a sample is at most a third of each
    parts = growth(study, "recall@10", most), growth(study, "recall@10~bv(0.1)", most // 3)
    figure, axes = panels(2)
    titles = "uncorrected", "Bias² + 0.1 Variance"
    for panel, part, title, words_left in zip(axes, parts, titles, (True, False), strict=True):
        curves(panel, part.found.sizes, part.found.curves)
        panel.set(title=title, xlabel="number of samples m", ylabel="expected Recall at 10", xscale="log")
        panel.set_ylim(bottom=0)
        if part.settled is not None:
            mark(panel, part.settled, f"right order\nfrom m = {part.settled:,}", words_left=words_left)
    axes[0].legend(title="recommender", loc="lower left")
    uncorrected, corrected = ("at no m" if part.settled is None else f"from m = {part.settled}" for part in parts)
    shows = (
        f"X, Y and Z are in their exact order {uncorrected}, corrected {corrected} (published, for X and Y: more than "
        "1000, less than 60)"
    )
    return figure, shows


def figures(study: Study) -> Iterator[tuple[Figure, str]]:
    """Draw the figures one after another, each with what it shows."""
    makers: list[Callable[[], tuple[Figure, str]]] = [figure_1, figure_2, figure_3, figure_4]
    makers += [partial(figure_5, study), partial(figure_6, study)]
    for make in makers:
        yield make()
