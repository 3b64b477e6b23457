"""Sections of a report, in their order; those on users and on lists are in `user_sections`."""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Mapping, Sequence
from importlib.metadata import version
from typing import Literal

import numpy as np

import truerank as tr
from truerank.core.checks import AnyArray, by_name, counted
from truerank.core.tables import shown_name
from truerank.evaluation.differences import conclusion, leading, seen_from
from truerank.report import blocks
from truerank.report.figures import every_rank, metric_by_rank, rank_distribution
from truerank.report.report_data import ReportData, corrected_for
from truerank.report.user_sections import groups_section, lists_section, users_section

_METRICS_TEXT = (
    "Means over the instances as marks, their 95 % intervals as bars, best first. Overlapping intervals do not mean "
    "that there is no difference, since all recommenders were evaluated on the same instances; the comparison allows "
    "for that."
)
_TOGETHER_TEXT = " Recommenders joined by a line on the right are not told apart."


def metrics_section(data: ReportData) -> blocks.Section:
    """Return a chart of the chosen metric, and a table of all, both ordered by it."""
    text = _METRICS_TEXT + (_TOGETHER_TEXT if len(data.ranks) > 2 else "")
    charts = {metric: _metrics_chart(data, metric) for metric in data.metric_names}
    tables = {metric: _metrics_table(data, metric) for metric in data.metric_names}
    return blocks.Section("Metrics", text, [blocks.ByMetric(charts), blocks.ByMetric(tables)], data.evaluation.notes)


def _metrics_chart(data: ReportData, metric: str) -> blocks.Dots:
    dots = [
        blocks.Dot(name, *data.means[name, metric], [name], data.estimates[name, metric].determined)
        for name in data.best_first(metric)
    ]
    together = data.orders[metric].groups if len(dots) > 2 else ()
    return blocks.Dots(blocks.Axis(data.metric_names[metric]), dots, together=together)


def _metrics_table(data: ReportData, metric: str) -> blocks.TableBlock:
    order, names = data.best_first(metric), data.metric_names
    columns: blocks.Columns = [
        ("recommender", "text"), *((name, "estimate") for name in names.values()), ("instances", "count")
    ]  # fmt: skip
    rows = [[name, *(data.means[name, each] for each in names), len(data.ranks[name])] for name in order]
    return blocks.TableBlock(columns, rows, [[name] for name in order])


def cell(found: tr.Estimate) -> tuple[float, float, float]:
    """Return a mean and its interval."""
    return found.mean, *found.confidence_interval()


_INTERVAL = "adjusted interval"
_COMPARISONS_COLUMNS: blocks.Columns = [
    ("pair", "text"), ("difference", "signed"), (_INTERVAL, "interval"),
    ("relative", "signed-share"), ("adjusted p", "p-value"), ("finding", "text"),
]  # fmt: skip
# names that the sentence lists; of more it gives the number
_LISTED = 6
# pairs of which a table is short; more are shown as a matrix
_FEW_PAIRS = 3


def comparisons_section(data: ReportData) -> blocks.Section | None:
    """Return each recommender against the best by the chosen metric, and all pairs: a table, or a matrix if many."""
    result = data.comparison
    if result is None:
        return None
    by_metric = {metric: result.of(metric) for metric in result.metrics}
    sentences = {
        metric: blocks.Paragraph(f"{shown_name(metric)}: {conclusion(own, most=_LISTED)}")
        for metric, own in by_metric.items()
    }
    charts = {metric: against_best(data, own) for metric, own in by_metric.items()}
    few = len(by_metric[result.metrics[0]]) <= _FEW_PAIRS
    pairs: Mapping[str, blocks.PageBlock] = {
        metric: _comparisons_table(own) if few else _matrix(data, own) for metric, own in by_metric.items()
    }
    parts = [blocks.ByMetric(sentences), blocks.ByMetric(charts), blocks.ByMetric(pairs)]
    # the text says what they are adjusted for
    notes = [note for note in result.notes if not note.startswith("p-values, intervals and verdicts are adjusted for")]
    return blocks.Section("Comparison", _comparisons_text(result), parts, notes)


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


def against_best(data: ReportData, differences: Sequence[tr.Difference]) -> blocks.Dots:
    """Return the differences of all others from the leading one, the best first."""
    first = leading(differences)
    own = {each.baseline: each.reversed() for each in seen_from(first, differences)}
    metric = differences[0].metric
    dots = [difference_dot(name, own[name]) for name in data.best_first(metric) if name != first]
    return blocks.Dots(
        blocks.Axis(f"difference from {first} in {shown_name(metric)}"), dots, zero=True, interval=_INTERVAL
    )


def difference_dot(row: str, each: tr.Difference) -> blocks.Dot:
    """Return a row with a difference, hatched if the sample does not determine one."""
    determined = each.finding.kind != "not determined"
    return blocks.Dot(row, each.difference, *each.confidence_interval(), _about(each), determined)


def _comparisons_table(differences: Sequence[tr.Difference]) -> blocks.TableBlock:
    rows = [_comparisons_row(each, *each.confidence_interval()) for each in differences]
    return blocks.TableBlock(_COMPARISONS_COLUMNS, rows, [_about(each) for each in differences])


def _comparisons_row(each: tr.Difference, low: float, high: float) -> list[object]:
    pair = f"{each.recommender} − {each.baseline}"
    return [pair, each.difference, [low, high], each.relative, each.adjusted_p_value, _finding(each, low, high)]


def _finding(each: tr.Difference, low: float, high: float) -> str:
    """Return the verdict, which also says if the difference lies outside the interval shown beside it."""
    outside = not each.finding.remark and (each.difference < low or each.difference > high)
    return each.finding.in_full + ("; the difference shown lies outside its interval" if outside else "")


def _matrix(data: ReportData, differences: Sequence[tr.Difference]) -> blocks.Matrix:
    metric = differences[0].metric
    pairs = [_pair(each, *each.confidence_interval()) for each in differences]
    return blocks.Matrix(
        blocks.Axis(f"difference in {shown_name(metric)}"), data.best_first(metric), pairs, interval=_INTERVAL
    )


def _pair(each: tr.Difference, low: float, high: float) -> blocks.Pair:
    numbers = each.difference, low, high, each.relative, each.adjusted_p_value
    verdict = each.finding
    return blocks.Pair(
        each.recommender, each.baseline, *numbers, verdict.kind, verdict.winner, _finding(each, low, high)
    )


def _about(each: tr.Difference) -> list[str]:
    return [each.recommender, each.baseline]


_BESIDE_TEXT = (
    "What sampled ranks of the same recommenders say, beside their exact ranks: the estimate as a mark; as a bar its "
    "95 % interval of the exact metric, which holds whatever the distribution of the ranks; the exact value as a tick."
)
_BESIDE_COLUMNS: blocks.Columns = [
    ("recommender", "text"), ("estimated by", "text"), ("estimate", "estimate"), ("exact", "number"),
    ("exact value", "text"),
]  # fmt: skip


def beside_section(data: ReportData) -> blocks.Section | None:
    """Return estimates from sampled ranks, with their honest intervals, beside the exact values."""
    if not data.sampled:
        return None
    found = {str(metric): _beside(data, metric) for metric in data.metrics}
    charts = {metric: _beside_chart(data.metric_names[metric], own) for metric, own in found.items()}
    tables = {metric: _beside_table(own) for metric, own in found.items()}
    notes = by_name({name: [note for own in found.values() for note in own[name][0].notes] for name in data.sampled})
    return blocks.Section("Exact and sampled", _BESIDE_TEXT, [blocks.ByMetric(charts), blocks.ByMetric(tables)], notes)


def _beside(data: ReportData, metric: tr.Metric) -> dict[str, tuple[tr.Estimate, float]]:
    """Return the estimate from samples, and the exact value, of each recommender that has both."""
    order = [name for name in data.best_first(str(metric)) if name in data.sampled]
    return {
        name: (tr.estimate(data.sampled[name], corrected_for(metric, data.sampled[name])),
               data.estimates[name, str(metric)].mean)
        for name in order
    }  # fmt: skip


def _beside_chart(name: str, found: Mapping[str, tuple[tr.Estimate, float]]) -> blocks.Dots:
    dots = [blocks.Dot(row, *cell(each), [row], each.determined, truth=exact) for row, (each, exact) in found.items()]
    return blocks.Dots(blocks.Axis(name), dots, interval="95 % interval of the exact metric")


def _beside_table(found: Mapping[str, tuple[tr.Estimate, float]]) -> blocks.TableBlock:
    rows = [
        [row, each.metric, cell(each), exact, _where(exact, *each.confidence_interval())]
        for row, (each, exact) in found.items()
    ]
    return blocks.TableBlock(_BESIDE_COLUMNS, rows, [[row] for row in found])


def _where(exact: float, low: float, high: float) -> str:
    return "in the interval" if low <= exact <= high else "outside the interval"


_RANK_DISTRIBUTIONS_TEXT = (
    "How many relevant items each recommender has in each range of ranks; rank 1 is the top. Metrics with a cut-off "
    "use only the first bars, AUC treats all ranks alike, and a sampled metric mixes them. A tied item counts at each "
    "rank with its probability of having it in a random order."
)


def rank_distributions_section(data: ReportData) -> blocks.Section:
    """Return bars for ranks that grow by about a factor of three."""
    names, counts = rank_distribution(data.ranks)
    among = "" if data.a_ranks.design is None else " among the sampled candidates"
    heights = [blocks.Heights(name, height) for name, height in counts.items()]
    block = blocks.Bars(blocks.Axis(f"rank{among}"), blocks.Axis("relevant items", switch=True), names, heights)
    return blocks.Section("Rank distribution", _RANK_DISTRIBUTIONS_TEXT, [block], half=True)


_SAMPLE_SIZES_TEXT = (
    "What an evaluation with m sampled candidates shows on average, for every m, as the difference from the "
    "recommender that is best among all candidates. A recommender whose curve has crossed the line at 0 would be "
    "reported as better. The marks on the right, beyond the break, are the exact differences. "
)
_FLIPS = "Each dotted line is where two recommenders change places: a study with fewer candidates reports the opposite."
_NO_FLIPS = "On none of these metrics do two recommenders change places."
# about 50 sizes for some thousand candidates
_GROWTH = 0.17
# changes of place that a chart marks; of more it marks those of the best
_MOST_FLIPS = 12


def sample_sizes_section(data: ReportData) -> blocks.Section | None:
    """Return a chart of the chosen metric against the number of sampled candidates."""
    if not data.exact or len(data.ranks) < 2:
        return None
    charts, notes = data.per_metric(
        lambda metric: size_chart(tr.consistency(data.sample, metric, growth=_GROWTH), data.sampled_m)
    )
    flips = any(not mark.labelled for chart in charts.values() for mark in chart.marks)
    text = _SAMPLE_SIZES_TEXT + (_FLIPS if flips else _NO_FLIPS)
    return blocks.Section("Sampled candidates", text, [blocks.ByMetric(charts)], (*data.sample_note, *notes))


def size_chart(found: tr.Consistency, m: int | None = None) -> blocks.Lines:
    """Return the curves, with a mark wherever two recommenders change places, and one at `m`."""
    curves = [blocks.Curve(name, found.sizes, curve, found.exact[name]) for name, curve in found.curves.items()]
    best = (min if found.lower_is_better else max)(found.exact, key=found.exact.__getitem__)
    few = len(found.flips) <= _MOST_FLIPS
    flips = [flip for flip in found.flips if few or best in (flip.better, flip.worse)]
    marks = [blocks.Mark(flip.m, f"from m = {flip.m:,} on {flip.better} is above {flip.worse}") for flip in flips]
    if m is not None:
        marks.append(blocks.Mark(m, f"m = {m:,}", labelled=True))
    y = blocks.Axis(f"expected {shown_name(found.metric)}", switch=True)
    return blocks.Lines(blocks.Axis("sampled candidates m", log=True, switch=True), y, curves, marks, baseline=best)


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
    text = _RANK_WEIGHTS_TEXT.format(n=n, m=m)
    return blocks.Section("Weight of each rank", text, [blocks.ByMetric(charts)], notes, half=True)


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
_NO_TIES_TEXT = "No relevant item has the same score as an irrelevant candidate."
_TIES_COLUMNS: blocks.Columns = [
    ("recommender", "text"), ("instances with ties", "share"),
    ("relevant last", "number"), ("random order", "number"), ("relevant first", "number"),
]  # fmt: skip
_ORDERS: tuple[Literal["pessimistic", "expected", "optimistic"], ...] = ("pessimistic", "expected", "optimistic")


def ties_section(data: ReportData) -> blocks.Section:
    """Return a table for the chosen metric of the recommenders that have ties."""
    tied = [name for name, ranks in data.ranks.items() if ranks.tied_share]
    if not tied:
        return blocks.Section("Ties", _NO_TIES_TEXT, [])
    tables = {str(metric): _ties_table(data, tied, metric) for metric in data.metrics}
    rest = len(data.ranks) - len(tied)
    notes = [f"{counted(rest, 'recommender has', 'recommenders have')} no ties"] if rest else []
    return blocks.Section("Ties", _TIES_TEXT, [blocks.ByMetric(tables)], notes)


def _ties_table(data: ReportData, tied: Sequence[str], metric: tr.Metric) -> blocks.TableBlock:
    rows = [
        [name, data.ranks[name].tied_share]
        + [tr.estimate(data.ranks[name], metric, ties=order).mean for order in _ORDERS]
        for name in tied
    ]
    return blocks.TableBlock(_TIES_COLUMNS, rows, [[name] for name in tied])


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
    among = f"ranks cut at depth {ranks.depth:,}" if ranks.depth is not None else "all candidates"
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
    """Return a text that is the same for equal ranks, and different for any others.

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
    sample_sizes_section,
    beside_section,
    users_section,
    groups_section,
    lists_section,
    rank_distributions_section,
    rank_weights_section,
    ties_section,
    provenance_section,
)
"""The sections of a report, in their order."""

TERMS = {
    "95 % interval": "In 95 of 100 evaluations like this one the interval contains the true mean over all users.",
    "95 % intervals": "In 95 of 100 evaluations like this one such an interval contains the true mean over all users.",
    "adjusted interval": "Widened for the number of tests, so that all of them hold together in 95 of 100 evaluations.",
    "adjusted p": "The chance of a difference this large between equal recommenders, adjusted for the number of tests.",
    "adjusted p-value": "The chance of a difference this large between equal recommenders, adjusted for all tests.",
    "Holm's method": "Adjusts p-values so that the chance of any false finding, in all tests together, is at most 5 %.",
    "not told apart": "No difference was found between any two of them, adjusted for the number of tests.",
    "sampled candidates": "Irrelevant items drawn at random; the relevant ones are ranked among these alone.",
    "instances": "Lists to be ranked, one for each user or session that has relevant items.",
    "relevant items": "Held-out items that the user chose; a good recommender puts them first.",
    "relative": "The difference as a share of the mean of the second one.",
    "correction": "Another value for each sampled rank, so that the mean is closer to the exact metric.",
    "finding": "Who is better, or that no difference was found, by the adjusted p-value and the adjusted interval.",
    "fingerprint": "A checksum: the same data has the same one.",
    "coverage": "Share of the catalogue that is recommended to anybody.",
    "Gini index": "0 if all items are recommended equally often, near 1 if a few take everything.",
    "novelty": "Mean of -log2 of the share of training users who have the item: rare items count more.",
    "long tail": "The less popular items, which together have a fifth of the training interactions.",
}
"""What words of the report mean, shown when a reader points at them."""
