"""Sections of a report, in their order: metrics, comparisons, groups, charts, ties, and how everything was computed."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from itertools import product
from typing import Literal

import numpy as np

from truerank.analysis.consistencies import Consistency, consistency
from truerank.core.checks import AnyArray, counted
from truerank.core.ranks import Ranks
from truerank.core.tables import shown_name
from truerank.data.interactions import Interactions
from truerank.estimators.bias_variance import BiasVariance
from truerank.estimators.corrected import Corrected
from truerank.evaluation.comparisons import Comparison
from truerank.evaluation.differences import Difference, conclusion
from truerank.evaluation.estimates import Estimate, estimate
from truerank.evaluation.evaluations import Evaluation, evaluate
from truerank.evaluation.groups import Groups, by_activity, by_popularity
from truerank.metrics.definitions import Metric
from truerank.report.chart_data import (
    Axis,
    Bars,
    ByMetric,
    Curve,
    Dot,
    Dots,
    FactList,
    Heights,
    Lines,
    Mark,
    PageBlock,
    Paragraph,
    Section,
    TableBlock,
    TableColumn,
)
from truerank.report.figures import every_rank, metric_by_rank, rank_distribution
from truerank.report.report_data import ReportData
from truerank.sampling.designs import UniformSampling

_METRICS_TEXT = (
    "Means over the instances as dots, their 95 % intervals as bars. Overlapping intervals do not mean that there is "
    "no difference, since all recommenders were evaluated on the same instances; the comparison below allows for that."
)


def metrics_section(data: ReportData) -> Section:
    """Return a chart of the chosen metric, and a table of all."""
    names, found = data.metric_names, data.estimates
    charts = {
        metric: Dots(Axis(shown), [Dot(name, *_cell(found[name, metric]), [name]) for name in data.ranks])
        for metric, shown in names.items()
    }
    columns = [TableColumn("recommender", "text"), *(TableColumn(shown, "estimate") for shown in names.values())]
    rows = [[name, *(_cell(found[name, metric]) for metric in names), len(ranks)] for name, ranks in data.ranks.items()]
    table = TableBlock([*columns, TableColumn("instances", "count")], rows, [[name] for name in data.ranks])
    return Section("Metrics", _METRICS_TEXT, [ByMetric(charts), table], data.evaluation.notes)


def _cell(found: Estimate) -> tuple[float, float, float]:
    return found.mean, *found.confidence_interval()


_INTERVAL = "adjusted interval"
_COMPARISONS_COLUMNS = [
    TableColumn("pair", "text"),
    TableColumn("difference", "signed"),
    TableColumn(_INTERVAL, "interval"),
    TableColumn("relative", "signed-share"),
    TableColumn("adjusted p", "p-value"),
    TableColumn("finding", "text"),
]


def comparisons_section(data: ReportData) -> Section | None:
    """Return a chart and a table of the differences in the chosen metric."""
    result = data.comparison
    if result is None:
        return None
    by_metric = {metric: result.of(metric) for metric in result.metrics}
    sentences = {metric: Paragraph(f"{shown_name(metric)}: {conclusion(own)}") for metric, own in by_metric.items()}
    charts = {metric: _comparisons_chart(metric, own) for metric, own in by_metric.items()}
    tables = {metric: _comparisons_table(own) for metric, own in by_metric.items()}
    blocks = [ByMetric(sentences), ByMetric(charts), ByMetric(tables)]
    return Section("Comparison", _comparisons_text(result), blocks, result.notes)


def _comparisons_text(result: Comparison) -> str:
    """Say what is tested, and what p-values and intervals are adjusted for."""
    pairs, metrics = len(result.of(result.metrics[0])), len(result.metrics)
    tests = counted(result.n_tests, "test", "tests")
    counts = f"{counted(pairs, 'pair', 'pairs')}, {counted(metrics, 'metric', 'metrics')}"
    return (
        f"Paired differences on the same instances. P-values, 95 % intervals and findings are adjusted for {tests} "
        f"({counts}) by Holm's method: a difference was found where the adjusted p-value is at most 0.05 and the "
        "interval excludes 0."
    )


def _comparisons_chart(metric: str, differences: Sequence[Difference]) -> Dots:
    dots = [Dot(_pair(each), each.difference, *each.confidence_interval(), _about(each)) for each in differences]
    return Dots(Axis(f"difference in {shown_name(metric)}"), dots, zero=True, interval=_INTERVAL)


def _comparisons_table(differences: Sequence[Difference]) -> TableBlock:
    rows = [_comparisons_row(each, *each.confidence_interval()) for each in differences]
    return TableBlock(_COMPARISONS_COLUMNS, rows, [_about(each) for each in differences])


def _comparisons_row(each: Difference, low: float, high: float) -> list[object]:
    """Return the cells; the verdict says whether the difference shown is not in the interval beside it."""
    outside = not each.finding.remark and (each.difference < low or each.difference > high)
    finding = each.finding.in_full + ("; the difference shown lies outside its interval" if outside else "")
    return [_pair(each), each.difference, [low, high], each.relative, each.adjusted_p_value, finding]


def _pair(each: Difference) -> str:
    return f"{each.recommender} − {each.baseline}"


def _about(each: Difference) -> list[str]:
    return [each.recommender, each.baseline]


_GROUPS_TEXT = (
    "The same metrics by group, with 95 % intervals. A recommender that is good on average may be poor for users with "
    "few interactions, or for items that are rarely chosen."
)


def groups_section(data: ReportData) -> Section | None:
    """Return a chart of the chosen metric for each way to group."""
    blocks: list[PageBlock] = []
    notes: list[str] = []
    for what, groups in _ways(data):
        found = evaluate(data.ranks, data.metrics, by=groups)
        blocks.append(ByMetric({metric: _groups_chart(found, at, what) for at, metric in enumerate(found.metrics)}))
        notes += found.notes
    return Section("Groups", _GROUPS_TEXT, blocks, tuple(dict.fromkeys(notes))) if blocks else None


def _ways(data: ReportData) -> Iterator[tuple[str, Groups]]:
    if data.by is not None:
        yield "group", data.by
    if data.split is not None:
        yield "users by activity", by_activity(data.split)
        if all(one.items is not None for one in data.ranks.values()):
            yield "items by popularity", by_popularity(data.split)


def _groups_chart(found: Evaluation, at: int, what: str) -> Dots:
    """Return the rows of one metric, whose estimates are evenly spaced, group by group."""
    own = found.estimates[at :: len(found.metrics)]
    cells = dict(zip(product(found.recommenders, found.groups), own, strict=True))
    dots = [
        Dot(f"{group}, {name}", *_cell(cell), [name], group)
        for group in found.groups
        for name in found.recommenders
        if (cell := cells[name, group]).n
    ]
    return Dots(Axis(f"{shown_name(found.metrics[at])}, {what}"), dots)


_RANK_DISTRIBUTIONS_TEXT = (
    "How many relevant items each recommender puts at which ranks; rank 1 is the top. Metrics with a cut-off see only "
    "the first bars, AUC sees all alike, and a sampled metric mixes them. A tied item counts at each rank with its "
    "probability there in a random order."
)


def rank_distributions_section(data: ReportData) -> Section:
    """Return bars for ranks that grow by about a factor of three."""
    names, counts = rank_distribution(data.ranks)
    among = "" if data.a_ranks.design is None else " among the sampled candidates"
    heights = [Heights(name, height) for name, height in counts.items()]
    block = Bars(Axis(f"rank{among}"), Axis("relevant items", switch=True), names, heights)
    return Section("Rank distribution", _RANK_DISTRIBUTIONS_TEXT, [block])


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


def sample_sizes_section(data: ReportData) -> Section | None:
    """Return a chart of the chosen metric against the number of sampled candidates."""
    if not data.exact or len(data.ranks) < 2:
        return None
    charts, notes = data.per_metric(lambda metric: size_chart(consistency(data.sample, metric, growth=_GROWTH)))
    text = _SAMPLE_SIZES_TEXT + (_FLIPS if any(chart.marks for chart in charts.values()) else _NO_FLIPS)
    return Section("Sampled candidates", text, [ByMetric(charts)], (*data.sample_note, *notes))


def size_chart(found: Consistency) -> Lines:
    """Return the curves, with a mark wherever two recommenders change places."""
    curves = [Curve(name, found.sizes, curve, found.exact[name]) for name, curve in found.curves.items()]
    marks = [Mark(flip.m, f"from m = {flip.m:,} on {flip.better} is above {flip.worse}") for flip in found.flips]
    y = Axis(f"expected {shown_name(found.metric)}", switch=True)
    return Lines(Axis("sampled candidates m", log=True, switch=True), y, curves, marks)


_RANK_WEIGHTS_TEXT = (
    "What one relevant item adds to the metric, by its true rank, among {n:,} candidates. The sampled metric, from "
    "{m:,} of them, is flatter than the exact one, except for AUC: it hardly distinguishes the top ranks from those "
    "below. A correction brings it closer at the cost of variance, which grows as gamma shrinks."
)
_CORRECTIONS = (BiasVariance(0.1), BiasVariance(0.01))


def rank_weights_section(data: ReportData) -> Section | None:
    """Return a chart for each metric, from what can be computed for one relevant item."""
    n = data.typical_n
    if n is None or n < 2:
        return None
    m = min(data.m, n - 1)
    charts, notes = data.per_metric(lambda metric: weight_chart(metric.estimated, n, m))
    return Section("Weight of each rank", _RANK_WEIGHTS_TEXT.format(n=n, m=m), [ByMetric(charts)], notes)


def weight_chart(metric: Metric, n: int, m: int) -> Lines:
    """Return the exact, sampled and corrected weights of ranks 1..n, for an instance with one relevant item."""
    ranks, design = every_rank(n, first=1, points=120), UniformSampling(m)
    corrected = {f"corrected by {each}": (Corrected(metric, each), design) for each in _CORRECTIONS}
    found = metric_by_rank(ranks, metric, {f"sampled, m = {m:,}": (metric, design), **corrected})
    curves = [Curve(name, ranks.rank, curve) for name, curve in found.items()]
    x, y = Axis("true rank", log=True, switch=True), Axis(shown_name(str(metric)))
    return Lines(x, y, curves, recommenders=False)


_TIES_TEXT = (
    "Relevant items with the same score as an irrelevant candidate. The metrics above are means over all orders of "
    "the ties; this table shows what they would be if relevant items came last, or first, among those tied."
)
_TIES_COLUMNS = [
    TableColumn("recommender", "text"),
    TableColumn("instances with ties", "share"),
    TableColumn("relevant last"),
    TableColumn("random order"),
    TableColumn("relevant first"),
]
_ORDERS: tuple[Literal["pessimistic", "expected", "optimistic"], ...] = ("pessimistic", "expected", "optimistic")


def ties_section(data: ReportData) -> Section:
    """Return a table for the chosen metric."""
    tables = {str(metric): _ties_table(data, metric) for metric in data.metrics}
    return Section("Ties", _TIES_TEXT, [ByMetric(tables)])


def _ties_table(data: ReportData, metric: Metric) -> TableBlock:
    rows = [
        [name, ranks.tied_share, *(estimate(ranks, metric, ties=order).mean for order in _ORDERS)]
        for name, ranks in data.ranks.items()
    ]
    return TableBlock(_TIES_COLUMNS, rows, [[name] for name in data.ranks])


_PROVENANCE_TEXT = (
    "The same data has the same fingerprint, the first 16 digits of a SHA-256 over its numbers and ids. Intervals and "
    "tests of differences use empirical likelihood, which allows for rare users that were not seen; p-values are "
    "adjusted by Holm's method. Expectations over samples are exact, not simulated."
)
_PROVENANCE_COLUMNS = [
    TableColumn("recommender", "text"),
    TableColumn("instances", "count"),
    TableColumn("relevant items", "count"),
    TableColumn("candidates", "text"),
    TableColumn("ranked among", "text"),
    TableColumn("fingerprint", "text"),
]


def provenance_section(data: ReportData) -> Section:
    """Return a table of the ranks, and facts on the split and the software."""
    rows = [[name, *_described(ranks)] for name, ranks in data.ranks.items()]
    notes = [f"{name}: {note}" for name, ranks in data.ranks.items() for note in ranks.notes]
    if data.split is not None:
        notes += [f"split: {note}" for note in data.split.notes]
    table = TableBlock(_PROVENANCE_COLUMNS, rows, [[name] for name in data.ranks])
    return Section("How it was computed", _PROVENANCE_TEXT, [table, FactList(_facts(data))], (*data.notes, *notes))


def _described(ranks: Ranks) -> list[object]:
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


def fingerprint(ranks: Ranks) -> str:
    """Return the same text for equal ranks, and another one for any others.

    Examples
    --------
    >>> a, b = Ranks.from_ranks([1, 2], n=5), Ranks.from_ranks([1, 3], n=5)
    >>> fingerprint(a) == fingerprint(Ranks.from_ranks([1, 2], n=5)), fingerprint(a) == fingerprint(b)
    (True, False)
    """
    catalogue = None if ranks.sample is None else ranks.n_catalogue
    arrays = (ranks.above, ranks.tied, ranks.n_candidates, ranks.indptr, catalogue, ranks.drawn, ranks.grades)
    return _digest(f"{ranks.design} {ranks.depth}", *arrays, ranks.ids)


def _of_interactions(data: Interactions) -> str:
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


SECTIONS: tuple[Callable[[ReportData], Section | None], ...] = (
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
