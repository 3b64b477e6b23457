"""All tables and figures of the paper: as text, as files and as a report.

Figures have the paper's axes. Figures 2 to 4 follow eq. 15 (sampling with replacement), as the paper's analysis does.
Figures 5 and 6 put ties in random order; Figure 6 samples without replacement and corrects with each user's own n.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

import truerank as tr
from truerank.core.tables import json_text
from truerank.formats.writing import make_folder
from truerank.papers.krichene_rendle_2020 import movielens
from truerank.papers.krichene_rendle_2020 import toy_tables as toy
from truerank.report import blocks, figures, pages, plots, report_data, sections

if TYPE_CHECKING:
    from matplotlib.figure import Figure

N = 10_000
METRICS = {"AUC": "auc", "Average Precision": "ap", "NDCG": "ndcg", "Recall at 10": "recall@10"}
CORRECTIONS = {"CLS": "ap~cls", **{f"BV {gamma:g}": f"ap~bv({gamma:g})" for gamma in (1, 0.1, 0.01, 0.001)}}
BUCKETS = (10, 100, 500, 1_000, 1_500)
_TITLE = "Krichene & Rendle, On Sampled Metrics for Item Recommendation, KDD 2020: reproduced"


def tables(study: movielens.Study) -> Iterator[toy.PublishedTable]:
    """Compute Tables 1 to 4, one after another."""
    exact, sampled = toy.table_1(), toy.table_2()
    yield toy.PublishedTable("Table 1: exact metrics of three recommenders on five instances, n = 10,000", exact)
    yield toy.PublishedTable(
        f"Table 2: the same with m = {toy.SAMPLED} sampled items; published: means of {toy.REPETITIONS:,} repetitions",
        sampled,
        f"\n{toy.orders(exact, sampled)}\n\n{toy.flips()}",
    )
    repeated = movielens.repeat(study)
    yield toy.PublishedTable(
        "Table 3: MovieLens 1M, m = 100, in percent; ours: exact expectations; published: means of 100 repetitions",
        movielens.table_3(study, repeated),
        "ours: as published, with one n, the binomial law, and m + 1 in place of m in eq. 20.\n"
        "own n: what truerank does by default, with each user's n, the law without replacement, and eq. 20 as printed.",
    )
    yield toy.PublishedTable(
        "Table 4: in how many of 100 repetitions two recommenders are in their exact order; ours: also 100 repetitions",
        movielens.table_4(study, repeated),
    )


def to_json(done: Sequence[toy.PublishedTable], source: str) -> str:
    """Return every cell of the tables as JSON, with the source of the ranks."""
    facts = {
        "truerank": version("truerank"),
        "paper": "Krichene & Rendle, On Sampled Metrics for Item Recommendation, KDD 2020",
        "source": source,
        "recommenders": {"X": repr(movielens.X[0]), "Y": repr(movielens.Y), "Z": repr(movielens.Z)},
        "sampled": movielens.SAMPLED,
        "repetitions": movielens.REPETITIONS,
    }
    return json_text(facts | {"cells": [cell.record() for table in done for cell in table.cells]})


def draw(study: movielens.Study, folder: str | Path, formats: Sequence[str]) -> Iterator[str]:
    """Draw Figures 1 to 6 into a directory and yield what each shows."""
    for number, (figure, shows) in enumerate(drawn_figures(study), 1):
        plots.save(figure, folder, f"figure-{number}", formats)
        yield f"Figure {number}: {shows}."
    yield f"\nThe figures are in {str(folder)!r}: figure-1 to figure-6, as {' and '.join(formats)}."


def drawn_figures(study: movielens.Study) -> Iterator[tuple[Figure, str]]:
    """Draw the figures one after another, each with what it shows."""
    yield from (figure() for figure in (figure_1, figure_2, figure_3, figure_4))
    yield from (figure(study) for figure in (figure_5, figure_6))


def _all_ranks(last: int) -> tr.Ranks:
    return tr.Ranks.from_ranks(np.arange(1, last + 1), n=N)


@plots.styled
def figure_1() -> tuple[Figure, str]:
    """Metrics against the rank of the one relevant item, for all ranks and for the first 100."""
    figure, axes = plots.panels(2, measured=False)
    for panel, last in zip(axes, (N, 100), strict=True):
        ranks = _all_ranks(last)
        plots.curves(panel, ranks.rank, {name: tr.values(ranks, metric) for name, metric in METRICS.items()})
        panel.set(xlabel="rank", ylabel="metric", xlim=(1, last), ylim=(0, 1.02))
    axes[1].legend()
    return figure, "all metrics but AUC are top heavy"


@plots.styled
def figure_2() -> tuple[Figure, str]:
    """Expected sampled metrics of the toy example against the number of samples."""
    sizes = np.unique(np.geomspace(1, N, 120).astype(int))
    figure, axes = plots.panels(4, measured=False)
    for panel, (name, metric) in zip(axes, METRICS.items(), strict=True):
        plots.curves(panel, sizes, tr.consistency(toy.RANKS, metric, "uniform(replace)", sizes=sizes).curves)
        plots.log_scale(panel)
        panel.set(title=name, xlabel="number of samples m", ylabel="expected metric", xlim=(1, N))
        panel.set_ylim(bottom=0)
    axes[0].legend(title="recommender")
    return figure, "the order of A, B and C depends on the number of samples"


@plots.styled
def figure_3() -> tuple[Figure, str]:
    """Expected sampled metrics against the true rank, for growing samples."""
    ranks = _all_ranks(1_000)
    figure, axes = plots.panels(4, measured=False)
    for panel, (name, metric) in zip(axes, METRICS.items(), strict=True):
        sampled = {f"m = {m:,}": (metric, tr.UniformSampling(m, replace=True)) for m in (10, 100, 1_000)}
        plots.curves(panel, ranks.rank, figures.metric_by_rank(ranks, metric, sampled))
        panel.set(title=name, xlabel="rank", ylabel="expected metric", xlim=(1, 1_000), ylim=(0, 1.02))
    axes[1].legend()
    return figure, "sampled metrics are less top heavy than exact ones"


@plots.styled
def figure_4() -> tuple[Figure, str]:
    """Corrected average precision: its value at each sampled rank, and its expectation at each true rank."""
    design = tr.UniformSampling(100, replace=True)
    ranks = _all_ranks(N)
    figure, (left, right) = plots.panels(2, measured=False)
    tables = figures.metric_by_sampled_rank("ap", CORRECTIONS, design, N, uncorrected="AP")
    plots.curves(left, np.arange(1, design.size + 2), tables)
    plots.log_scale(left)
    left.set(xlabel="sampled rank", ylabel="corrected metric", xlim=(1, design.size + 1))
    left.set_ylim(-0.45, 0.65)
    sampled = {name: (text, design) for name, text in CORRECTIONS.items()}
    plots.curves(right, ranks.rank, figures.metric_by_rank(ranks, "ap", sampled, exact="AP"))
    plots.log_scale(right)
    right.set(xlabel="rank", ylabel="expected corrected metric", xlim=(1, N), ylim=(-0.05, 0.5))
    right.legend()
    return figure, "corrected AP oscillates in the sample, less so in expectation"


def bottom_half(ranks: tr.Ranks) -> int:
    """Return how many users have their held-out item, which must not tie, in the worse half of their candidates."""
    return int((ranks.rank > ranks.n_candidates / 2).sum())


@plots.styled
def figure_5(study: movielens.Study) -> tuple[Figure, str]:
    """Distribution of predicted ranks on MovieLens 1M."""
    figure, (panel,) = plots.panels(1, columns=1, measured=False)
    names, heights = figures.rank_distribution(study.ranks, BUCKETS)
    plots.bars(panel, [*names[:-1], f"above {BUCKETS[-1]:,}"], heights)
    panel.set(xlabel="predicted rank", ylabel="number of users")
    panel.legend(title="recommender")
    x = study.ranks["X"]
    top = figures.rank_counts(x, [100])[0]
    shows = (
        f"X has {top:.0f} users in the top 100 (published: 2310) and {bottom_half(x)} in the bottom half "
        f"(published: less than 300); Z has {heights['Z'][-1]:.0f} above rank {BUCKETS[-1]:,} (published: over 1600 in "
        "the worst bucket, wherever that begins)"
    )
    return figure, shows


@cache
def growth(study: movielens.Study, metric: str, largest: int) -> tr.Consistency:
    """Return a panel of Figure 6, which the report shows too."""
    ranks = {name: tied.break_ties("random", rng=0) for name, tied in study.ranks.items()}
    return figures.metric_by_size(ranks, metric, np.geomspace(10, largest, 20).astype(int))


@plots.styled
def figure_6(study: movielens.Study) -> tuple[Figure, str]:
    """Expected Recall@10 against the sample size, uncorrected and corrected, and where the order becomes exact."""
    most = int(study.y.n_candidates.min()) - 1
    # many catalogue sizes can be corrected at once if a sample is at most a third of each
    parts = growth(study, "recall@10", most), growth(study, "recall@10~bv(0.1)", most // 3)
    figure, axes = plots.panels(2, measured=False)
    titles = "uncorrected", "Bias² + 0.1 Variance"
    for panel, part, title, words_left in zip(axes, parts, titles, (True, False), strict=True):
        plots.curves_by_size(panel, part, words_left=words_left)
        panel.set(title=title, ylabel="expected Recall at 10")
        panel.set_ylim(bottom=0)
    axes[0].legend(title="recommender", loc="lower left")
    uncorrected, corrected = ("at no m" if part.settled is None else f"from m = {part.settled}" for part in parts)
    shows = (
        f"X, Y and Z are in their exact order {uncorrected}, corrected {corrected} (published, for X and Y: more than "
        "1000, less than 60)"
    )
    return figure, shows


def write_paper_report(study: movielens.Study, tables: Sequence[toy.PublishedTable], folder: str | Path) -> Path:
    """Write report.html into a directory, which is created if needed, and return its path."""
    make_folder(folder)
    path = Path(folder) / "report.html"
    data = report_data.ReportData.of(study.ranks, movielens.METRICS, m=movielens.SAMPLED)
    found = [*_movielens(study, data), *_toy_figures(), *map(_table, tables), sections.provenance_section(data)]
    pages.write_sections(found, path, _TITLE, data, list(toy.RANKS))
    return path


def _table(table: toy.PublishedTable) -> blocks.Section:
    title, _, text = table.title.partition(": ")
    columns: blocks.Columns = [(name, "digits" if name else "text") for name in table.header]
    labels: list[str] = []
    for label, *_ in table.lines():
        labels.append(label or labels[-1])
    rows = [[label, *line[1:]] for label, line in zip(labels, table.lines(), strict=True)]
    explained = any(cell.own_n is not None for cell in table.cells)
    notes = [table.summary(), *(table.remark.splitlines() if explained else [])]
    return blocks.Section(title, f"{text[0].upper()}{text[1:]}.", [blocks.TableBlock(columns, rows)], notes)


def _toy_figures() -> Iterator[blocks.Section]:
    metrics, m = movielens.METRICS, movielens.SAMPLED
    growing = {name: sections.size_chart(tr.consistency(toy.RANKS, name, "uniform(replace)")) for name in metrics}
    yield blocks.Section(
        "Figure 2: expected metric against m",
        "Recommenders A, B and C of the running example, among 10,000 items, sampled with replacement (eq. 15). Any "
        "order of the three occurs for some m. Dotted lines mark where two of them change places.",
        [blocks.ByMetric(growing)],
    )
    yield blocks.Section(
        "Figures 1, 3 and 4: what an item adds at each rank",
        f"The exact metric, its expectation among {m} sampled candidates, and corrected ones, by the true rank.",
        [blocks.ByMetric({name: sections.weight_chart(tr.metric(name), N, m) for name in metrics})],
    )


def _movielens(study: movielens.Study, data: report_data.ReportData) -> Iterator[blocks.Section]:
    titles = {
        "MovieLens 1M: exact metrics": sections.metrics_section,
        "MovieLens 1M: comparison": sections.comparisons_section,
        "Figure 5: rank distribution": sections.rank_distributions_section,
        "Figure 6: expected metric against m": sections.sample_sizes_section,
    }
    for title, make in titles.items():
        if (section := make(data)) is not None:
            yield replace(section, title=title)
    yield _corrected(study)
    yield sections.ties_section(data)


def _corrected(study: movielens.Study) -> blocks.Section:
    found = growth(study, "recall@10~bv(0.1)", int(study.y.n_candidates.min()) // 3)
    start = found.settled
    marks = [] if start is None else [blocks.Mark(start, f"from m = {start} on the order is the exact one")]
    return blocks.Section(
        "Figure 6, right: corrected",
        "Expected Recall@10, corrected by Bias² + 0.1 Variance: far fewer candidates suffice for the exact order.",
        [replace(sections.size_chart(found), marks=marks)],
    )
