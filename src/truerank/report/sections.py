"""Sections of a report, in their order: metrics, comparisons, groups, charts, ties, and how everything was computed."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from itertools import product
from typing import Literal

import numpy as np

import truerank as tr
from truerank.core.checks import AnyArray, counted
from truerank.core.tables import shown_name
from truerank.evaluation.differences import conclusion
from truerank.report import blocks
from truerank.report.figures import every_rank, metric_by_rank, rank_distribution
from truerank.report.report_data import ReportData

_METRICS_TEXT = (
    "Means over the instances as dots, their 95 % intervals as bars. Overlapping intervals do not mean that there is "
    "no difference, since all recommenders were evaluated on the same instances; the comparison below allows for that."
)


def metrics_section(data: ReportData) -> blocks.Section:
    """Return a chart of the chosen metric, and a table of all."""
    names, found = data.metric_names, data.estimates
    charts = {
        metric: blocks.Dots(
            blocks.Axis(shown), [blocks.Dot(name, *_cell(found[name, metric]), [name]) for name in data.ranks]
        )
        for metric, shown in names.items()
    }
    shown: blocks.Columns = [(name, "estimate") for name in names.values()]
    rows = [[name, *(_cell(found[name, metric]) for metric in names), len(ranks)] for name, ranks in data.ranks.items()]
    table = blocks.TableBlock(
        [("recommender", "text"), *shown, ("instances", "count")], rows, [[name] for name in data.ranks]
    )
    return blocks.Section("Metrics", _METRICS_TEXT, [blocks.ByMetric(charts), table], data.evaluation.notes)


def _cell(found: tr.Estimate) -> tuple[float, float, float]:
    return found.mean, *found.confidence_interval()


_INTERVAL = "adjusted interval"
_COMPARISONS_COLUMNS: blocks.Columns = [
    ("pair", "text"), ("difference", "signed"), (_INTERVAL, "interval"),
    ("relative", "signed-share"), ("adjusted p", "p-value"), ("finding", "text"),
]  # fmt: skip


def comparisons_section(data: ReportData) -> blocks.Section | None:
    """Return a chart and a table of the differences in the chosen metric."""
    result = data.comparison
    if result is None:
        return None
    by_metric = {metric: result.of(metric) for metric in result.metrics}
    sentences = {
        metric: blocks.Paragraph(f"{shown_name(metric)}: {conclusion(own)}") for metric, own in by_metric.items()
    }
    charts = {metric: _comparisons_chart(metric, own) for metric, own in by_metric.items()}
    tables = {metric: _comparisons_table(own) for metric, own in by_metric.items()}
    parts = [blocks.ByMetric(sentences), blocks.ByMetric(charts), blocks.ByMetric(tables)]
    return blocks.Section("Comparison", _comparisons_text(result), parts, result.notes)


def _comparisons_text(result: tr.Comparison) -> str:
    """Say what is tested, and what p-values and intervals are adjusted for."""
    pairs, metrics = len(result.of(result.metrics[0])), len(result.metrics)
    tests = counted(result.n_tests, "test", "tests")
    counts = f"{counted(pairs, 'pair', 'pairs')}, {counted(metrics, 'metric', 'metrics')}"
    return (
        f"Paired differences on the same instances. P-values, 95 % intervals and findings are adjusted for {tests} "
        f"({counts}) by Holm's method: a difference was found where the adjusted p-value is at most 0.05 and the "
        "interval excludes 0."
    )


def _comparisons_chart(metric: str, differences: Sequence[tr.Difference]) -> blocks.Dots:
    dots = [blocks.Dot(_pair(each), each.difference, *each.confidence_interval(), _about(each)) for each in differences]
    return blocks.Dots(blocks.Axis(f"difference in {shown_name(metric)}"), dots, zero=True, interval=_INTERVAL)


def _comparisons_table(differences: Sequence[tr.Difference]) -> blocks.TableBlock:
    rows = [_comparisons_row(each, *each.confidence_interval()) for each in differences]
    return blocks.TableBlock(_COMPARISONS_COLUMNS, rows, [_about(each) for each in differences])


def _comparisons_row(each: tr.Difference, low: float, high: float) -> list[object]:
    """Return the cells; the verdict says whether the difference shown is not in the interval beside it."""
    outside = not each.finding.remark and (each.difference < low or each.difference > high)
    finding = each.finding.in_full + ("; the difference shown lies outside its interval" if outside else "")
    return [_pair(each), each.difference, [low, high], each.relative, each.adjusted_p_value, finding]


def _pair(each: tr.Difference) -> str:
    return f"{each.recommender} − {each.baseline}"


def _about(each: tr.Difference) -> list[str]:
    return [each.recommender, each.baseline]


_GROUPS_TEXT = (
    "The same metrics by group, with 95 % intervals. A recommender that is good on average may be poor for users with "
    "few interactions, or for items that are rarely chosen."
)


def groups_section(data: ReportData) -> blocks.Section | None:
    """Return a chart of the chosen metric for each way to group."""
    charts: list[blocks.PageBlock] = []
    notes: list[str] = []
    for what, groups in _ways(data):
        found = tr.evaluate(data.ranks, data.metrics, by=groups)
        charts.append(
            blocks.ByMetric({metric: _groups_chart(found, at, what) for at, metric in enumerate(found.metrics)})
        )
        notes += found.notes
    return blocks.Section("Groups", _GROUPS_TEXT, charts, tuple(dict.fromkeys(notes))) if charts else None


def _ways(data: ReportData) -> Iterator[tuple[str, tr.Groups]]:
    if data.by is not None:
        yield "group", data.by
    if data.split is not None:
        yield "users by activity", tr.by_activity(data.split)
        if all(one.items is not None for one in data.ranks.values()):
            yield "items by popularity", tr.by_popularity(data.split)


def _groups_chart(found: tr.Evaluation, at: int, what: str) -> blocks.Dots:
    """Return the rows of one metric, whose estimates are evenly spaced, group by group."""
    own = found.estimates[at :: len(found.metrics)]
    cells = dict(zip(product(found.recommenders, found.groups), own, strict=True))
    dots = [
        blocks.Dot(f"{group}, {name}", *_cell(cell), [name], group)
        for group in found.groups
        for name in found.recommenders
        if (cell := cells[name, group]).n
    ]
    return blocks.Dots(blocks.Axis(f"{shown_name(found.metrics[at])}, {what}"), dots)


_RANK_DISTRIBUTIONS_TEXT = (
    "How many relevant items each recommender puts at which ranks; rank 1 is the top. Metrics with a cut-off see only "
    "the first bars, AUC sees all alike, and a sampled metric mixes them. A tied item counts at each rank with its "
    "probability there in a random order."
)


def rank_distributions_section(data: ReportData) -> blocks.Section:
    """Return bars for ranks that grow by about a factor of three."""
    names, counts = rank_distribution(data.ranks)
    among = "" if data.a_ranks.design is None else " among the sampled candidates"
    heights = [blocks.Heights(name, height) for name, height in counts.items()]
    block = blocks.Bars(blocks.Axis(f"rank{among}"), blocks.Axis("relevant items", switch=True), names, heights)
    return blocks.Section("Rank distribution", _RANK_DISTRIBUTIONS_TEXT, [block])


_SAMPLE_SIZES_TEXT = (
    "The metric that an evaluation with m sampled candidates shows on average, for every m. The dots on the right are "
    "the exact metric. "
)
_FLIPS = (
    "Each dotted line is where two recommenders change places: a study with fewer candidates would have reported the "
    "opposite, on average."
)
_NO_FLIPS = "On none of these metrics do two recommenders change places."
# about 50 sizes for some thousand candidates
_GROWTH = 0.17


def sample_sizes_section(data: ReportData) -> blocks.Section | None:
    """Return a chart of the chosen metric against the number of sampled candidates."""
    if not data.exact or len(data.ranks) < 2:
        return None
    charts, notes = data.per_metric(lambda metric: size_chart(tr.consistency(data.sample, metric, growth=_GROWTH)))
    text = _SAMPLE_SIZES_TEXT + (_FLIPS if any(chart.marks for chart in charts.values()) else _NO_FLIPS)
    return blocks.Section("Sampled candidates", text, [blocks.ByMetric(charts)], (*data.sample_note, *notes))


def size_chart(found: tr.Consistency) -> blocks.Lines:
    """Return the curves, with a mark wherever two recommenders change places."""
    curves = [blocks.Curve(name, found.sizes, curve, found.exact[name]) for name, curve in found.curves.items()]
    marks = [blocks.Mark(flip.m, f"from m = {flip.m:,} on {flip.better} is above {flip.worse}") for flip in found.flips]
    y = blocks.Axis(f"expected {shown_name(found.metric)}", switch=True)
    return blocks.Lines(blocks.Axis("sampled candidates m", log=True, switch=True), y, curves, marks)


_RANK_WEIGHTS_TEXT = (
    "What one relevant item adds to the metric, by its true rank, among {n:,} candidates. The sampled metric, from "
    "{m:,} of them, is flatter than the exact one, except for AUC: it hardly distinguishes the top ranks from those "
    "below. A correction brings it closer at the cost of variance, which grows as gamma shrinks."
)
_CORRECTIONS = (tr.estimators.BiasVariance(0.1), tr.estimators.BiasVariance(0.01))


def rank_weights_section(data: ReportData) -> blocks.Section | None:
    """Return a chart for each metric, from what can be computed for one relevant item."""
    n = data.typical_n
    if n is None or n < 2:
        return None
    m = min(data.m, n - 1)
    charts, notes = data.per_metric(lambda metric: weight_chart(metric.estimated, n, m))
    return blocks.Section("Weight of each rank", _RANK_WEIGHTS_TEXT.format(n=n, m=m), [blocks.ByMetric(charts)], notes)


def weight_chart(metric: tr.Metric, n: int, m: int) -> blocks.Lines:
    """Return the exact, sampled and corrected weights of ranks 1..n, for an instance with one relevant item."""
    ranks, design = every_rank(n, first=1, points=120), tr.UniformSampling(m)
    corrected = {f"corrected by {each}": (tr.estimators.Corrected(metric, each), design) for each in _CORRECTIONS}
    found = metric_by_rank(ranks, metric, {f"sampled, m = {m:,}": (metric, design), **corrected})
    curves = [blocks.Curve(name, ranks.rank, curve) for name, curve in found.items()]
    x, y = blocks.Axis("true rank", log=True, switch=True), blocks.Axis(shown_name(str(metric)))
    return blocks.Lines(x, y, curves, recommenders=False)


_TIES_TEXT = (
    "Relevant items with the same score as an irrelevant candidate. The metrics above are means over all orders of "
    "the ties; this table shows what they would be if relevant items came last, or first, among those tied."
)
_TIES_COLUMNS: blocks.Columns = [
    ("recommender", "text"), ("instances with ties", "share"),
    ("relevant last", "number"), ("random order", "number"), ("relevant first", "number"),
]  # fmt: skip
_ORDERS: tuple[Literal["pessimistic", "expected", "optimistic"], ...] = ("pessimistic", "expected", "optimistic")


def ties_section(data: ReportData) -> blocks.Section:
    """Return a table for the chosen metric."""
    tables = {str(metric): _ties_table(data, metric) for metric in data.metrics}
    return blocks.Section("Ties", _TIES_TEXT, [blocks.ByMetric(tables)])


def _ties_table(data: ReportData, metric: tr.Metric) -> blocks.TableBlock:
    rows = [
        [name, ranks.tied_share, *(tr.estimate(ranks, metric, ties=order).mean for order in _ORDERS)]
        for name, ranks in data.ranks.items()
    ]
    return blocks.TableBlock(_TIES_COLUMNS, rows, [[name] for name in data.ranks])


_PROVENANCE_TEXT = (
    "The same data has the same fingerprint, the first 16 digits of a SHA-256 over its numbers and ids. Intervals and "
    "tests of differences use empirical likelihood, which allows for rare users that were not seen; p-values are "
    "adjusted by Holm's method. Expectations over samples are exact, not simulated."
)
_PROVENANCE_COLUMNS: blocks.Columns = [
    ("recommender", "text"), ("instances", "count"), ("relevant items", "count"),
    ("candidates", "text"), ("ranked among", "text"), ("fingerprint", "text"),
]  # fmt: skip


def provenance_section(data: ReportData) -> blocks.Section:
    """Return a table of the ranks, and facts on the split and the software."""
    rows = [[name, *_described(ranks)] for name, ranks in data.ranks.items()]
    notes = [f"{name}: {note}" for name, ranks in data.ranks.items() for note in ranks.notes]
    if data.split is not None:
        notes += [f"split: {note}" for note in data.split.notes]
    table = blocks.TableBlock(_PROVENANCE_COLUMNS, rows, [[name] for name in data.ranks])
    return blocks.Section(
        "How it was computed", _PROVENANCE_TEXT, [table, blocks.FactList(_facts(data))], (*data.notes, *notes)
    )


def _described(ranks: tr.Ranks) -> list[object]:
    counts = ranks.n_catalogue
    among = f"lists cut at depth {ranks.depth:,}" if ranks.depth is not None else "all candidates"
    design = among if ranks.design is None else f"candidates sampled by {ranks.design}"
    return [len(ranks), ranks.above.size, _spread(counts), design, fingerprint(ranks)]


def _facts(data: ReportData) -> dict[str, str]:
    facts = {"Metrics": ", ".join(map(str, data.metrics)), "Sampled candidates": f"m = {data.m:,}"}
    facts["Randomness"] = "; ".join(data.sample_note) or "none"
    if data.split is not None:
        train, test = data.split.train, data.split.test
        facts["Training data"] = f"{train}, {_of_interactions(train)}"
        facts["Held-out data"] = f"{test}, {_of_interactions(test)}"
    packages = [f"{name} {version(name)}" for name in ("truerank", "numpy", "scipy")]
    return facts | {"Software": ", ".join([*packages, f"Python {platform.python_version()}"])}


def fingerprint(ranks: tr.Ranks) -> str:
    """Return the same text for equal ranks, and another one for any others.

    Examples
    --------
    >>> a, b = tr.Ranks.from_ranks([1, 2], n=5), tr.Ranks.from_ranks([1, 3], n=5)
    >>> fingerprint(a) == fingerprint(tr.Ranks.from_ranks([1, 2], n=5)), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    catalogue = None if ranks.sample is None else ranks.n_catalogue
    arrays = (ranks.above, ranks.tied, ranks.n_candidates, ranks.indptr, catalogue, ranks.drawn, ranks.grades)
    return _digest(f"{ranks.design} {ranks.depth}", *arrays, ranks.ids)


def _of_interactions(data: tr.Interactions) -> str:
    return f"fingerprint {_digest('', data.indptr, data.items, data.names, data.item_names)}"


def _digest(text: str, *arrays: AnyArray | None) -> str:
    """Hash arrays by their numbers or texts, whatever the type that holds them."""
    found = hashlib.sha256(text.encode())
    for array in arrays:
        found.update(b"none" if array is None else f"{array.shape}".encode())
        if array is not None and array.dtype.kind in "biuf":
            found.update(np.ascontiguousarray(array, dtype=np.float64).tobytes())
        elif array is not None:
            found.update("\0".join(map(str, array.tolist())).encode())
    return found.hexdigest()[:16]


def _spread(counts: AnyArray) -> str:
    low, high = int(counts.min()), int(counts.max())
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"


SECTIONS: tuple[Callable[[ReportData], blocks.Section | None], ...] = (
    metrics_section,
    comparisons_section,
    groups_section,
    rank_distributions_section,
    sample_sizes_section,
    rank_weights_section,
    ties_section,
    provenance_section,
)
"""The sections of a report, in their order."""
