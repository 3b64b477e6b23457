"""Draw the figures of the documentation into docs/images: ``python docs/make_figures.py`` (needs matplotlib).

Each is written twice, as NAME.svg and, for dark pages, as NAME.dark.svg; docs/extensions/readable.py shows the one that
fits.
"""

from __future__ import annotations

import colorsys
import csv
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import truerank as tr
from truerank.papers.krichene_rendle_2020.movielens import embedded
from truerank.report import plots as drawing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from truerank.evaluation.per_instance import Ties

POLICIES: tuple[Ties, ...] = ("expected", "optimistic", "pessimistic")
TARGET = Path(__file__).with_name("images")
RESULTS = Path(__file__).parents[1] / "benchmarks" / "results" / "estimators.csv"
FIGURES: dict[str, Callable[[], Figure]] = {}
"""The function that draws each figure, by the name of its file."""


def figure(draw: Callable[[], Figure]) -> Callable[[], Figure]:
    """Register a function that draws a figure; the file is named like the function."""
    FIGURES[draw.__name__.replace("_", "-")] = drawing.styled(draw)
    return draw


@figure
def weight_of_a_rank() -> Figure:
    """What an item adds to a metric by its rank, exactly and on average over samples."""
    ranks = tr.Ranks.from_ranks(np.arange(1, 1_001), n=10_000)
    drawn, panels = drawing.panels(2)
    for axes, metric in zip(panels, ("recall@10", "ndcg@10"), strict=True):
        sampled = {f"m = {m:,}": tr.risk(ranks, metric, design=m).expected for m in (1_000, 300, 100)}
        drawing.curves(axes, ranks.rank, {"exact": tr.values(ranks, metric), **sampled})
        axes.set(title=metric, xlabel="rank among 10,000 candidates", xscale="log", xlim=(1, 1_000), ylim=(0, 1.02))
    panels[0].set_ylabel("expected value")
    _legend_below(drawn, panels[0])
    return drawn


@figure
def movielens_orders() -> Figure:
    """Expected sampled metrics of X, Y and Z relative to X, and the sample size from which their order is exact."""
    sizes = np.unique(np.geomspace(1, 1_392, 140).astype(int))
    drawn, panels = drawing.panels(2)
    for axes, metric in zip(panels, ("recall@10", "ap"), strict=True):
        found = tr.consistency(embedded().ranks, metric, sizes=sizes)
        drawing.curves(axes, sizes, {name: curve / found.curves["X"] for name, curve in found.curves.items()})
        settled = tr.consistency(embedded().ranks, metric).settled  # among all sizes, not these only
        drawing.mark(axes, settled or sizes[-1], f"exact order\nfrom m = {settled}", words_left=True)
        axes.set(title=metric, xlabel="sampled candidates m", xscale="log", xlim=(1, sizes[-1]))
    panels[0].set_ylabel("expected value, relative to X")
    panels[0].legend(loc="lower left", title="recommender")
    return drawn


@figure
def corrected_weight() -> Figure:
    """What an item adds to corrected Recall@10 on average over samples, and how much that varies."""
    ranks = tr.Ranks.from_ranks(np.unique(np.geomspace(1, 3_541, 300).astype(int)), n=3_541)
    metrics = {"sampled": "recall@10"} | {name: f"recall@10~{name}" for name in ("bv(1)", "bv(0.1)", "bv(0.01)")}
    found = {name: tr.risk(ranks, metric, design=100) for name, metric in metrics.items()}
    expected = {name: risk.expected for name, risk in found.items()}
    spread = {name: np.sqrt(risk.variance) for name, risk in found.items()}
    drawn, panels = drawing.panels(2)
    drawing.curves(panels[0], ranks.rank, {"exact": tr.values(ranks, "recall@10"), **expected})
    drawing.curves(panels[1], ranks.rank, {"exact": np.zeros(len(ranks)), **spread})
    panels[0].set(title="expected value")
    panels[1].set(title="standard deviation")
    for axes in panels:
        axes.set(xlabel="rank among 3,541 candidates", xscale="log", xlim=(1, 3_541))
    _legend_below(drawn, panels[0])
    return drawn


def _legend_below(drawn: Figure, axes: Axes) -> None:
    handles, labels = axes.get_legend_handles_labels()
    drawn.legend(handles, labels, loc="outside lower center", ncols=len(labels))


@figure
def shared_sample() -> Figure:
    """One instance with three relevant items, ranked among all candidates and among a sample."""
    rng = np.random.default_rng(5)
    relevant = np.array([3, 11, 26])
    others = np.setdiff1d(np.arange(36), relevant)
    drawn, (axes,) = drawing.panels(1, columns=1)
    drawn.set_size_inches(7, 1.7)
    _candidates(axes, 1, np.arange(36), relevant, "all candidates")
    _candidates(axes, 0, np.sort(np.append(rng.choice(others, 10, replace=False), relevant)), relevant, "10 sampled")
    axes.set(xlim=(-8, 37), ylim=(-0.7, 1.6))
    axes.axis("off")
    return drawn


def _candidates(axes: Axes, height: int, shown: np.ndarray, relevant: np.ndarray, label: str) -> None:
    axes.text(-1, height, label, ha="right", va="center")
    for rank, place in enumerate(shown, start=1):
        hit = place in relevant
        axes.plot(place, height, "s" if hit else "o", markersize=8 if hit else 5, color="#7f2704" if hit else "0.75")
        if hit:
            axes.text(place, height - 0.42, f"rank {rank}", ha="center", va="center")


@figure
def tie_policies() -> Figure:
    """Metrics of an item that ties with t others at the top, by policy."""
    tied = np.arange(0, 41, 2)
    ranks = tr.Ranks(above=np.zeros_like(tied), tied=tied, n_candidates=1_000)
    middle = tr.Ranks.from_ranks(1 + tied // 2, n=1_000)
    drawn, panels = drawing.panels(2)
    for axes, metric in zip(panels, ("recall@10", "rr"), strict=True):
        by_policy = {policy: tr.values(ranks, metric, ties=policy) for policy in POLICIES}
        drawing.curves(axes, tied, {**by_policy, "metric at the mean rank": tr.values(middle, metric)})
        axes.set(title=metric, xlabel="candidates that tie with the relevant item", xlim=(0, 40), ylim=(0, 1.03))
    _legend_below(drawn, panels[0])
    return drawn


@figure
def honest_intervals() -> Figure:
    """Recall@10 of Y from samples of growing size: the usual error of the correction, and the honest interval."""
    exact = embedded().ranks["Y"]
    drawn, (axes,) = drawing.panels(1, columns=1)
    truth = tr.estimate(exact, "recall@10").mean
    axes.axvline(truth, color="0.5", linewidth=0.8, linestyle=":")
    axes.annotate(f"exact, {truth:.4f}", (truth, 3.45), (4, 0), textcoords="offset points", va="center", color="0.3")
    sizes = (100, 300, 1_000)
    for height, m in enumerate(sizes):
        found = tr.estimate(tr.UniformSampling(m).draw(exact, rng=1), "recall@10~bv(0.1)")
        _interval(axes, height + 0.12, found.expectation_interval(), found.mean, drawing.LOOKS[2][0])
        _interval(axes, height - 0.12, found.confidence_interval(), found.mean, drawing.LOOKS[1][0])
    axes.plot([], [], color=drawing.LOOKS[2][0], linewidth=2.5, label="of the estimate around its own expectation")
    axes.plot([], [], color=drawing.LOOKS[1][0], linewidth=2.5, label="of the exact metric, assuming nothing")
    axes.set_yticks(range(len(sizes)), [f"{m:,} sampled" for m in sizes])
    axes.set(xlabel="recall@10~bv(0.1), 95 % intervals", ylim=(-0.6, 3.7), xlim=(0, 0.23))
    axes.legend(loc="upper right")
    return drawn


@figure
def error_against_budget() -> Figure:
    """Error of NDCG@10 by scores per user, for designs and their best estimators; from the benchmark of estimators."""
    kinds = {
        "fixed m, best gamma": ("uniform", "bv, best gamma"),
        "inverse, ~smooth": ("inverse", "smooth"),
        "inverse, ~monotone": ("inverse", "monotone"),
    }
    with RESULTS.open() as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "ndcg@10"]
    drawn, panels = drawing.panels(2)
    for axes, data in zip(panels, ("MovieLens 1M", "Gowalla"), strict=True):
        for (colour, dashes), (label, kind) in zip(drawing.LOOKS, kinds.items(), strict=False):
            points = np.array(sorted(_points(rows, data, *kind))).reshape(-1, 2)
            axes.plot(*points.T, "o", color=colour, linestyle=dashes, markersize=3, label=label)
        axes.set(title=data, xlabel="scores per user", yscale="log")
    panels[0].set_ylabel("RMSE of NDCG@10 in %")
    _legend_below(drawn, panels[0])
    return drawn


def _points(rows: list[dict[str, str]], data: str, design: str, estimator: str) -> Iterator[tuple[float, float]]:
    """Yield the scores and the error of each row of a design and estimator."""
    for row in rows:
        if (row["data"], row["estimator"]) == (data, estimator) and row["design"].startswith(design):
            yield float(row["draws"]), float(row["rmse"])


def _interval(axes: Axes, height: float, ends: tuple[float, float], mean: float, colour: str) -> None:
    axes.plot(ends, [height, height], color=colour, linewidth=2.5, solid_capstyle="butt")
    axes.plot(mean, height, "o", color=colour)


def darkened(svg: str) -> str:
    """Return a figure for dark pages: dark colours become light ones of the same hue, and there is no background."""
    clear = svg.replace("fill: #ffffff", "fill: none").replace("<svg ", '<svg fill="#000000" ', 1)
    return re.sub(r"#[0-9a-f]{6}\b", lambda colour: _inverted(colour[0]), clear)


def _inverted(colour: str) -> str:
    hue, lightness, saturation = colorsys.rgb_to_hls(*(int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)))
    parts = colorsys.hls_to_rgb(hue, 0.85 - 0.7 * lightness, saturation)
    return "#" + "".join(f"{round(255 * part):02x}" for part in parts)


def main() -> None:
    for name, draw in FIGURES.items():
        (path,) = drawing.save(draw(), TARGET, name)
        path.with_suffix(".dark.svg").write_text(darkened(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
