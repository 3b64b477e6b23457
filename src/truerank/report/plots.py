"""The figures by matplotlib: `tr.plots`, and the parts that the figures of the paper are drawn with."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

import truerank as tr
from truerank.core.checks import AnyArray, as_frame, as_list, check_kind
from truerank.core.ranks import named_ranks
from truerank.core.tables import shown_name
from truerank.estimators.corrected import AnyMetric, as_metrics
from truerank.formats.writing import make_folder, replacing
from truerank.report import figures
from truerank.sampling.designs import AnyDesign, as_design

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

__all__ = [
    "corrected_by_rank",
    "differences",
    "error_by_budget",
    "expected_by_rank",
    "metric_by_m",
    "metrics",
    "metrics_by_rank",
    "orders_by_m",
    "rank_distribution",
]

FORMATS = ("svg", "pdf", "png")
LOOKS: list[tuple[str, Any]] = [
    ("#000000", "-"),
    ("#7f2704", (0, (6, 2))),
    ("#2171b5", (0, (1, 1.2))),
    ("#41ab5d", (0, (6, 2, 1, 2))),
    ("#e6a532", (0, (3, 1.2))),
    ("#a8d3ea", "-"),
]
"""Colour and dashes of the first, second, ... curve of a panel, from dark to light."""
_HATCHES = ("", "///", "...", "xxx", "|||", "ooo")
_STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "truerank",
    "pdf.fonttype": 42,
}


P = ParamSpec("P")
Drawn = TypeVar("Drawn")


def check_matplotlib() -> None:
    """Raise `InputError` if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise tr.InputError("figures need matplotlib, which truerank's extra 'plots' installs.")


def styled(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Make a function draw in the style of this module, whatever the user's settings."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> Drawn:
        check_matplotlib()
        import matplotlib.style

        with matplotlib.style.context(["default", _STYLE]):
            return draw(*args, **options)

    return drawn


def panels(count: int, *, columns: int = 2, measured: bool = True) -> tuple[Figure, list[Axes]]:
    """Return a figure as wide as a page, and its panels in reading order.

    Margins are measured, which takes longer than drawing, unless labels are known to be as short as those of the paper.
    """
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    width, height = 7.0, 2.6 * rows
    figure = Figure(figsize=(width, height), layout="constrained" if measured else None)
    if not measured:
        left, bottom, right, top = _MARGINS
        figure.subplots_adjust(left / width, bottom / height, 1 - right / width, 1 - top / height)
        # between two panels are the margins of both, relative to a panel
        figure.subplots_adjust(wspace=_gap(left + right, width / columns), hspace=_gap(bottom + top, height / rows))
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()


# left, bottom, right and top, in inches
_MARGINS = (0.55, 0.42, 0.25, 0.25)


def _gap(margins: float, size: float) -> float:
    return margins / (size - margins)


def curves(axes: Axes, x: AnyArray | Sequence[float], lines: Mapping[str, AnyArray]) -> None:
    """Draw one line per name, styled by `LOOKS`."""
    _check_count("curves", lines, len(LOOKS))
    for (colour, dashes), (name, y) in zip(LOOKS, lines.items(), strict=False):
        axes.plot(x, y, color=colour, linestyle=dashes, label=name)


def curves_by_size(axes: Axes, found: tr.Consistency, *, words_left: bool) -> None:
    """Draw expected metrics against the sample size, with a mark where their order becomes correct."""
    curves(axes, found.sizes, found.curves)
    axes.set(xlabel="number of samples m")
    log_scale(axes)
    if found.settled is not None:
        mark(axes, found.settled, f"right order\nfrom m = {found.settled:,}", words_left=words_left)


def log_scale(axes: Axes) -> None:
    """Make the horizontal axis logarithmic, with plain numbers at the powers of ten."""
    from matplotlib.ticker import LogLocator, NullFormatter, StrMethodFormatter

    class VisibleTicks(LogLocator):
        """Leaves out ticks beyond the ends, which take as long to make as the others and are never drawn."""

        def tick_values(self, vmin: float, vmax: float) -> Any:
            ticks = np.asarray(super().tick_values(vmin, vmax))
            return ticks[(ticks >= vmin * (1 - 1e-9)) & (ticks <= vmax * (1 + 1e-9))]

    axes.set_xscale("log")
    axes.xaxis.set_minor_locator(VisibleTicks(subs="auto"))
    axes.xaxis.set_major_formatter(StrMethodFormatter("{x:,.0f}"))
    axes.xaxis.set_minor_formatter(NullFormatter())


def bars(axes: Axes, groups: Sequence[str], heights: Mapping[str, AnyArray]) -> None:
    """Draw a group of adjacent bars for each entry of `groups`, one bar per name."""
    _check_count("bars", heights, len(_HATCHES))
    width = 0.8 / len(heights)
    looks = zip(LOOKS[::2] + LOOKS[1::2], heights.items(), strict=False)
    for number, ((colour, _), (name, height)) in enumerate(looks):
        at = np.arange(len(groups)) + (number - (len(heights) - 1) / 2) * width
        face = colour if number == 0 else "white"
        axes.bar(at, height, width, facecolor=face, edgecolor=colour, hatch=_HATCHES[number], label=name)
    axes.set_xticks(range(len(groups)), groups)


def _check_count(name: str, given: Mapping[str, AnyArray], most: int) -> None:
    if len(given) > most:
        raise tr.InputError(
            f"a panel holds at most {most} {name} that can be told apart in greyscale, got {len(given)}."
        )


def mark(axes: Axes, x: float, text: str, *, words_left: bool) -> None:
    """Draw a vertical line with a label at its foot."""
    axes.axvline(x, color="0.5", linewidth=0.8, linestyle=":")
    offset, side = (-3, "right") if words_left else (3, "left")
    where: dict[str, Any] = {"xycoords": ("data", "axes fraction"), "textcoords": "offset points"}
    axes.annotate(text, (x, 0), (offset, 3), ha=side, **where)


@styled
def save(figure: Figure, folder: str | Path, name: str, formats: Sequence[str] = ("svg",)) -> list[Path]:
    """Write a figure into a directory, once per format; the same figure gives the same bytes."""
    unknown = [form for form in formats if form not in FORMATS]
    if unknown:
        raise tr.InputError(f"the format of a figure must be one of {', '.join(FORMATS)}, got {unknown[0]!r}.")
    make_folder(folder)
    paths = [Path(folder) / f"{name}.{form}" for form in formats]
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    for path, form in zip(paths, formats, strict=True):
        with replacing(path) as (file,):
            figure.savefig(file, format=form, dpi=200, metadata=undated[form])
    return paths


AnyRanks = tr.Ranks | Mapping[str, tr.Ranks]
_METRICS = ("auc", "ap", "ndcg", "recall@10")
_CORRECTIONS = ("cls", "bv(1)", "bv(0.1)", "bv(0.01)")
_BUDGET_COLUMNS = ("budget", "design", "estimator", "rmse")


@styled
def metrics_by_rank(
    ranks: AnyRanks, metrics: AnyMetric | Iterable[AnyMetric] = _METRICS, *, ax: Axes | None = None
) -> Axes:
    """Draw the contribution of an item to each metric by its rank (Figure 1), among as many candidates as `ranks` have.

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
    metrics : list of str, Metric or function (or one of them)
        At most six.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> axes = tr.plots.metrics_by_rank(tr.Ranks.from_ranks([3, 70], n=500))
    >>> [line.get_label() for line in axes.get_lines()]
    ['AUC', 'AP', 'NDCG', 'Recall@10']
    """
    axes = _axes(ax)
    every = figures.every_rank(_typical_n(ranks))
    lines = {shown_name(str(metric)): tr.values(every, metric) for metric in as_metrics(metrics)}
    curves(axes, every.rank, lines)
    axes.set(xlabel="rank", ylabel="metric", xscale="log")
    axes.legend()
    return axes


@styled
def metric_by_m(
    ranks: Mapping[str, tr.Ranks],
    metric: AnyMetric,
    design: AnyDesign = "uniform",
    *,
    sizes: Iterable[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the expected sampled metric against the number of sampled candidates (Figure 2), with a line at each flip.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks of two to six recommenders.
    metric, design, sizes
        Those of `truerank.consistency`.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([30] * 5, n=900), "B": tr.Ranks.from_ranks([2, 500] * 3, n=900)}
    >>> tr.plots.metric_by_m(ranks, "ap").get_ylabel()
    'expected AP'
    """
    axes = _axes(ax)
    found = tr.consistency(ranks, metric, design, sizes=sizes)
    curves(axes, found.sizes, found.curves)
    for flip in found.flips:
        axes.axvline(flip.m, color="0.5", linewidth=0.8, linestyle=":")
    axes.set(xlabel="number of samples m", ylabel=f"expected {shown_name(found.metric)}", xscale="log")
    axes.legend(title="recommender")
    return axes


@styled
def expected_by_rank(
    ranks: AnyRanks, metric: AnyMetric, *, designs: Sequence[AnyDesign] = (10, 100, 1_000), ax: Axes | None = None
) -> Axes:
    """Draw the metric and its expectation in samples of several sizes against the true rank (Figure 3).

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        They give the number of candidates: its median.
    metric : str, Metric or function
    designs : list of SamplingDesign, str or int
        At most five numbers of sampled candidates, or designs; those beyond the number of candidates are left out.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> axes = tr.plots.expected_by_rank(tr.Ranks.from_ranks([3, 70], n=500), "ap")
    >>> [line.get_label() for line in axes.get_lines()]
    ['exact', 'm = 10', 'm = 100']
    """
    axes = _axes(ax)
    n = _typical_n(ranks)
    every = figures.every_rank(n)
    drawn = [design for design in map(as_design, as_list("designs", designs)) if design.size < n]
    sampled = {f"m = {design.size:,}": (metric, design) for design in drawn}
    curves(axes, every.rank, figures.metric_by_rank(every, metric, sampled))
    axes.set(xlabel="rank", ylabel=f"expected {shown_name(str(tr.metric(metric)))}", xscale="log")
    axes.legend()
    return axes


@styled
def corrected_by_rank(
    ranks: AnyRanks, metric: AnyMetric, design: AnyDesign = 100, *, corrections: Sequence[str] = _CORRECTIONS
) -> tuple[Axes, Axes]:
    """Draw a corrected metric at each sampled rank, and its expectation at each true rank (Figure 4).

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        They give the number of candidates: its median.
    metric : str, Metric or function
    design : SamplingDesign, str or int
        How candidates are sampled.
    corrections : list of str
        Their text forms, at most five, e.g. ``["cls", "bv(0.1)"]``.

    Examples
    --------
    >>> import truerank as tr
    >>> left, right = tr.plots.corrected_by_rank(tr.Ranks.from_ranks([3, 70], n=500), "ap", 20)
    >>> left.get_xlabel(), right.get_xlabel()
    ('sampled rank', 'rank')
    """
    name, n = str(tr.metric(metric)), _typical_n(ranks)
    drawn = as_design(design)
    m = drawn.size
    _, (left, right) = panels(2)
    corrected = {text: f"{name}~{text}" for text in as_list("corrections", corrections)}
    curves(left, np.arange(1, m + 2), figures.metric_by_sampled_rank(metric, corrected, drawn, n))
    left.set(xlabel="sampled rank", ylabel=f"corrected {shown_name(name)}", xscale="log")
    every = figures.every_rank(n)
    sampled = {text: (full, drawn) for text, full in corrected.items()}
    curves(right, every.rank, figures.metric_by_rank(every, metric, sampled))
    right.set(xlabel="rank", ylabel=f"expected corrected {shown_name(name)}", xscale="log")
    right.legend()
    left.legend()
    return left, right


@styled
def rank_distribution(ranks: AnyRanks, *, ax: Axes | None = None) -> Axes:
    """Draw how many relevant items each recommender has in each range of ranks (Figure 5).

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        At most six recommenders.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> axes = tr.plots.rank_distribution(tr.Ranks.from_ranks([1, 2, 2, 9], n=50))
    >>> [label.get_text() for label in axes.get_xticklabels()]
    ['1', '2–3', '4–10', '11–30', '31–50']
    """
    axes = _axes(ax)
    bars(axes, *figures.rank_distribution(named_ranks(ranks)))
    axes.set(xlabel="rank", ylabel="number of relevant items")
    axes.legend(title="recommender")
    return axes


@styled
def orders_by_m(
    ranks: Mapping[str, tr.Ranks], metric: AnyMetric, design: AnyDesign = "uniform", *, correction: str = "bv(0.1)"
) -> tuple[Axes, Axes]:
    """Draw the expected metric against m, uncorrected and corrected, and where the order becomes correct (Figure 6).

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks of two to six recommenders.
    metric : str, Metric or function
    correction : str
        Its text form.
    design : SamplingDesign or str
        How candidates are sampled; its m is left open, as in `truerank.consistency`.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([30] * 5, n=300), "B": tr.Ranks.from_ranks([2, 200] * 3, n=300)}
    >>> [axes.get_title() for axes in tr.plots.orders_by_m(ranks, "ap")]
    ['uncorrected', 'corrected by bv(0.1)']
    """
    name, (_, (left, right)) = str(tr.metric(metric)), panels(2)
    most = min(int(one.draws[one.n_relevant > 0].min()) for one in named_ranks(ranks).values())
    # many numbers of candidates are corrected at once if a sample is at most a third of each
    corrected = (right, f"{name}~{correction}", f"corrected by {correction}", most // 3)
    for axes, text, title, largest in ((left, name, "uncorrected", most), corrected):
        sizes = np.geomspace(1, max(1, largest), 30).astype(np.int64)
        found = figures.metric_by_size(ranks, text, sizes, design)
        curves_by_size(axes, found, words_left=(found.settled or 0) > largest**0.5)
        axes.set(title=title, ylabel=f"expected {shown_name(name)}")
    left.legend(title="recommender")
    return left, right


@styled
def metrics(evaluation: tr.Evaluation, *, level: float = 0.95, ax: Axes | None = None) -> Axes:
    """Draw the means of a table as dots with their intervals, a row per recommender and group, a mark per metric.

    Parameters
    ----------
    evaluation : Evaluation
        What `truerank.evaluate` returns, for at most six metrics.
    level : float
        Confidence level of the intervals.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([1, 2, 9] * 20, n=50), "B": tr.Ranks.from_ranks([4, 4, 8] * 20, n=50)}
    >>> axes = tr.plots.metrics(tr.evaluate(ranks, ["ndcg@10", "rr"]))
    >>> [label.get_text() for label in axes.get_yticklabels()]
    ['A', 'B']
    """
    check_kind("evaluation", evaluation, tr.Evaluation)
    rows = [
        {**row, "name": " ".join(filter(None, (row["recommender"], row.get("group"))))}
        for row in evaluation.rows(level)
    ]
    return _dots(_axes(ax), rows, [str(row["metric"]) for row in rows], "mean", f"metric, {100 * level:g} % interval")


@styled
def differences(comparison: tr.Comparison, *, ax: Axes | None = None) -> Axes:
    """Draw differences as dots with their intervals, adjusted as in the comparison, and a line at no difference.

    Dots are hollow where no difference was found or the sample does not determine one.

    Parameters
    ----------
    comparison : Comparison
        What `truerank.compare` returns, for at most six metrics.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([1, 2, 9] * 20, n=50), "B": tr.Ranks.from_ranks([4, 4, 8] * 20, n=50)}
    >>> axes = tr.plots.differences(tr.compare(ranks, "rr"))
    >>> axes.get_xlabel(), [label.get_text() for label in axes.get_yticklabels()]
    ('difference, 95 % interval', ['B - A'])
    """
    check_kind("comparison", comparison, tr.Comparison)
    rows = [
        {
            **each.record(),
            "name": " ".join(filter(None, (f"{each.recommender} - {each.baseline}", each.group))),
            "hollow": each.finding.winner is None,
        }
        for each in comparison.differences
    ]
    axes = _axes(ax)
    axes.axvline(0, color="0.5", linewidth=0.8, linestyle=":")
    metrics = [each.metric for each in comparison.differences]
    return _dots(axes, rows, metrics, "difference", f"difference, {100 * comparison.level:g} % interval")


def _dots(axes: Axes, rows: Sequence[Mapping[str, Any]], of: Sequence[str], value: str, label: str) -> Axes:
    """Draw a dot and an interval per row; rows of one name share a line, from top to bottom."""
    names, shown = (list(dict.fromkeys(each)) for each in ((row["name"] for row in rows), of))
    _check_count("metrics", dict.fromkeys(shown, np.zeros(0)), len(LOOKS))
    for number, metric in enumerate(shown):
        own = [row for row, name in zip(rows, of, strict=True) if name == metric]
        at = [names.index(row["name"]) + 0.6 * ((number + 0.5) / len(shown) - 0.5) for row in own]
        colour = LOOKS[number][0]
        axes.hlines(at, [row["low"] for row in own], [row["high"] for row in own], color=colour, linewidth=1.2)
        faces = ["white" if row.get("hollow") else colour for row in own]
        centres = [row[value] for row in own]
        axes.scatter(
            centres, at, s=22, c=faces, edgecolors=colour, marker=_MARKS[number], label=shown_name(metric), zorder=3
        )
    axes.set_yticks(range(len(names)), names)
    axes.invert_yaxis()
    axes.set(xlabel=label, ylabel="recommender")
    axes.legend()
    return axes


_MARKS = ("o", "s", "^", "D", "v", "P")


@styled
def error_by_budget(results: Any, *, ax: Axes | None = None) -> Axes:
    """Draw the error of estimators against how many scores they may ask for, one curve per design and estimator.

    Parameters
    ----------
    results : dataframe, or list of dicts
        With the columns budget, design, estimator and rmse; at most six pairs of design and estimator.
    ax : matplotlib Axes, optional

    Examples
    --------
    >>> import truerank as tr
    >>> rows = [{"budget": b, "design": "uniform", "estimator": "bv(0.1)", "rmse": b**-0.5} for b in (10, 100, 1_000)]
    >>> tr.plots.error_by_budget(rows).get_lines()[0].get_label()
    'uniform, bv(0.1)'
    """
    axes, columns = _axes(ax), _columns(results)
    points: dict[str, list[tuple[float, float]]] = {}
    for budget, design, estimator, error in zip(*(columns[name] for name in _BUDGET_COLUMNS), strict=True):
        points.setdefault(f"{design}, {estimator}", []).append((budget, error))
    for name, own in points.items():
        at, height = np.array(sorted(own), dtype=np.float64).T
        axes.plot(at, height, marker="o", markersize=3, label=name, **_next_look(axes))
    axes.set(xlabel="scores per instance", ylabel="root mean squared error", xscale="log", yscale="log")
    axes.legend()
    return axes


def _next_look(axes: Axes) -> dict[str, Any]:
    drawn = len(axes.get_lines())
    if drawn >= len(LOOKS):
        raise tr.InputError(f"a panel holds at most {len(LOOKS)} curves that can be told apart in greyscale.")
    colour, dashes = LOOKS[drawn]
    return {"color": colour, "linestyle": dashes}


def _columns(results: Any) -> dict[str, list[Any]]:
    """Return the columns of a dataframe or of records."""
    if isinstance(results, Sequence):
        for record in results:
            check_kind("results", record, Mapping, ", one per row")
        names = {name for record in results for name in record}
        columns = {name: [record.get(name) for record in results] for name in _BUDGET_COLUMNS if name in names}
    else:
        import narwhals as nw

        frame = as_frame(results, eager_only=True, pass_through=True)
        check_kind("results", frame, nw.DataFrame, " or a list of dicts")
        columns = {name: frame[name].to_list() for name in _BUDGET_COLUMNS if name in frame.columns}
    if missing := [name for name in _BUDGET_COLUMNS if name not in columns]:
        raise tr.InputError(
            f"`results` must have the columns {', '.join(_BUDGET_COLUMNS)}, but {missing[0]} is missing."
        )
    return columns


def _axes(ax: Axes | None) -> Axes:
    if ax is None:
        return panels(1, columns=1)[1][0]
    from matplotlib.axes import Axes

    check_kind("ax", ax, Axes)
    return ax


def _typical_n(ranks: AnyRanks) -> int:
    """Return the median number of candidates before any sampling."""
    counts = [one.n_catalogue for one in named_ranks(ranks).values()]
    return int(np.median(np.concatenate(counts)))
