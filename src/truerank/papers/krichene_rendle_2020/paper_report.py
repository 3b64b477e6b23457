"""The reproduction as a report: the published tables beside ours, and the figures to play with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from truerank.analysis.orders import consistency
from truerank.corrections.reading import metric as as_metric
from truerank.formats.writing import make_folder
from truerank.papers.krichene_rendle_2020 import toy
from truerank.papers.krichene_rendle_2020.comparisons import PublishedTable
from truerank.papers.krichene_rendle_2020.experiment import SAMPLED, Study
from truerank.papers.krichene_rendle_2020.figures import N, growth
from truerank.report.blocks import ByMetric, Column, Mark, Section, TableBlock
from truerank.report.headlines import headline
from truerank.report.material import Material
from truerank.report.reports import write_sections
from truerank.report.sections import comparisons, metrics, provenance, rank_distributions, sample_sizes, ties
from truerank.report.sections.rank_weights import weight_chart
from truerank.report.sections.sample_sizes import sample_size_chart

_TITLE = "Krichene & Rendle, On Sampled Metrics for Item Recommendation, KDD 2020: reproduced"
_METRICS = ("recall@10", "ndcg@10", "ap", "auc")


def write_paper_report(study: Study, tables: Sequence[PublishedTable], folder: str | Path) -> Path:
    """Write report.html into a directory, which is created if needed, and return its path."""
    make_folder(folder)
    path = Path(folder) / "report.html"
    material = Material.of(study.ranks, _METRICS, m=SAMPLED, split=None, by=None)
    write_sections(
        path,
        [*_toy_figures(), *_movielens(study, material), *map(_table, tables), provenance.section(material)],
        title=_TITLE,
        sentence=headline(material),
        recommenders=[*study.ranks, *toy.RANKS],
        metrics=material.metric_names,
    )
    return path


def _table(table: PublishedTable) -> Section:
    title, _, text = table.title.partition(": ")
    columns = [Column(name, "digits" if name else "text") for name in table.header]
    labels: list[str] = []
    for label, *_ in table.lines():
        labels.append(label or labels[-1])
    rows = [[label, *line[1:]] for label, line in zip(labels, table.lines(), strict=True)]
    explained = any(cell.own_n is not None for cell in table.cells)
    notes = [table.summary(), *(table.remark.splitlines() if explained else [])]
    return Section(title, f"{text[0].upper()}{text[1:]}.", [TableBlock(columns, rows)], notes)


def _toy_figures() -> Iterator[Section]:
    growing = {name: sample_size_chart(consistency(toy.RANKS, name, replace=True)) for name in _METRICS}
    yield Section(
        "Figure 2: expected metric against m",
        "Recommenders A, B and C of the running example, among 10,000 items, sampled with replacement (eq. 15). Any "
        "order of the three comes out for some m. Dotted lines are where two of them change places.",
        [ByMetric(growing)],
    )
    yield Section(
        "Figures 1, 3 and 4: what an item adds at each rank",
        f"The exact metric, its expectation among {SAMPLED} sampled candidates, and corrected ones, by the true rank.",
        [ByMetric({name: weight_chart(as_metric(name), N, SAMPLED) for name in _METRICS})],
    )


def _movielens(study: Study, material: Material) -> Iterator[Section]:
    yield replace(metrics.section(material), title="MovieLens 1M: exact metrics")
    compared, growing = comparisons.section(material), sample_sizes.section(material)
    if compared is not None:
        yield replace(compared, title="MovieLens 1M: comparison")
    yield replace(rank_distributions.section(material), title="Figure 5: rank distribution")
    if growing is not None:
        yield replace(growing, title="Figure 6: expected metric against m")
    yield _corrected(study)
    yield ties.section(material)


def _corrected(study: Study) -> Section:
    part = growth(study, "recall@10~bv(0.1)", int(study.y.n_candidates.min()) // 3)
    chart = sample_size_chart(part.found)
    marks = (
        [] if part.settled is None else [Mark(part.settled, f"from m = {part.settled} on the order is the exact one")]
    )
    return Section(
        "Figure 6, right: corrected",
        "Expected Recall@10, corrected by Bias² + 0.1 Variance: far fewer candidates suffice for the exact order.",
        [replace(chart, marks=marks)],
    )
