"""The figures of Krichene & Rendle (KDD 2020), and error against budget, drawn by matplotlib from anybody's ranks.

Each function returns the axes that it has drawn on: new ones, whose ``figure`` can be saved, or those given as `ax`.
Curves differ in colour, lightness and dashes, so that a greyscale copy is readable. `truerank.write_report` shows the
same, interactively.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from truerank.analysis.orders import consistency
from truerank.analysis.risks import risk
from truerank.arrays import Floats, Ints
from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.corrections.reading import metric as as_metric
from truerank.corrections.tables import correction_table
from truerank.errors import InputError
from truerank.evaluation.per_instance import values
from truerank.ranking.ranks import Ranks
from truerank.report.drawing import LOOKS, bars, curves, mark, panels, styled
from truerank.report.sections.rank_distributions import rank_bounds, rank_counts
from truerank.report.wording import shown_name
from truerank.sampling.uniform import UniformSampling

if TYPE_CHECKING:
    from matplotlib.axes import Axes

AnyRanks = Ranks | Mapping[str, Ranks]
_METRICS = ("auc", "ap", "ndcg", "recall@10")
_CORRECTIONS = ("cls", "bv(1)", "bv(0.1)", "bv(0.01)")
_POINTS = 200
_BUDGET_COLUMNS = ("budget", "design", "estimator", "rmse")


@styled
def metrics_by_rank(
    ranks: AnyRanks, metrics: AnyMetric | Iterable[AnyMetric] = _METRICS, *, ax: Axes | None = None
) -> Axes:
    """Draw what an item adds to each metric by its rank (Figure 1), among as many candidates as the ranks have.

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
    every = _every_rank(_typical_n(ranks))
    lines = {shown_name(str(metric)): values(every, metric) for metric in as_metrics(metrics)}
    curves(axes, every.rank, lines)
    axes.set(xlabel="rank", ylabel="metric", xscale="log")
    axes.legend()
    return axes


@styled
def metric_by_m(
    ranks: Mapping[str, Ranks],
    metric: AnyMetric,
    *,
    replace: bool = False,
    sizes: Iterable[int] | None = None,
    ax: Axes | None = None,
) -> Axes:
    """Draw the expected sampled metric against the number of sampled candidates (Figure 2), with a line at each flip.

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks of two to six recommenders.
    metric, replace, sizes
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
    found = consistency(ranks, metric, replace=replace, sizes=sizes)
    curves(axes, found.sizes, found.curves)
    for flip in found.flips:
        axes.axvline(flip.m, color="0.5", linewidth=0.8, linestyle=":")
    axes.set(xlabel="number of samples m", ylabel=f"expected {shown_name(found.metric)}", xscale="log")
    axes.legend(title="recommender")
    return axes


@styled
def expected_by_rank(
    ranks: AnyRanks,
    metric: AnyMetric,
    *,
    m: Sequence[int] = (10, 100, 1_000),
    replace: bool = False,
    ax: Axes | None = None,
) -> Axes:
    """Draw the metric and its expectation in samples of several sizes against the true rank (Figure 3).

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        They give the number of candidates: its median.
    metric : str, Metric or function
    m : list of int
        Numbers of sampled candidates, at most five; those beyond the number of candidates are left out.
    replace : bool
        Whether candidates are sampled with replacement.
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
    every = _every_rank(n)
    sampled = {f"m = {size:,}": risk(every, metric, UniformSampling(size, replace)).expected for size in m if size < n}
    curves(axes, every.rank, {"exact": values(every, metric), **sampled})
    axes.set(xlabel="rank", ylabel=f"expected {shown_name(str(as_metric(metric)))}", xscale="log")
    axes.legend()
    return axes


@styled
def corrected_by_rank(
    ranks: AnyRanks,
    metric: AnyMetric,
    *,
    m: int = 100,
    corrections: Sequence[str] = _CORRECTIONS,
    replace: bool = False,
) -> tuple[Axes, Axes]:
    """Draw a corrected metric at each sampled rank, and its expectation at each true rank (Figure 4).

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        They give the number of candidates: its median.
    metric : str, Metric or function
    m : int
        Sampled candidates.
    corrections : list of str
        Their text forms, at most five, e.g. ``["cls", "bv(0.1)"]``.
    replace : bool
        Whether candidates are sampled with replacement.

    Examples
    --------
    >>> import truerank as tr
    >>> left, right = tr.plots.corrected_by_rank(tr.Ranks.from_ranks([3, 70], n=500), "ap", m=20)
    >>> left.get_xlabel(), right.get_xlabel()
    ('sampled rank', 'rank')
    """
    name, n = str(as_metric(metric)), _typical_n(ranks)
    design = UniformSampling(m, replace)
    _, (left, right) = panels(2)
    sampled = np.arange(1, m + 2)
    tables = {text: correction_table(f"{name}~{text}", design, n=n) for text in corrections}
    curves(left, sampled, {"uncorrected": values(Ranks.from_ranks(sampled, n=m + 1), metric), **tables})
    left.set(xlabel="sampled rank", ylabel=f"corrected {shown_name(name)}", xscale="log")
    every = _every_rank(n)
    expected = {text: risk(every, f"{name}~{text}", design).expected for text in corrections}
    curves(right, every.rank, {"exact": values(every, metric), **expected})
    right.set(xlabel="rank", ylabel=f"expected corrected {shown_name(name)}", xscale="log")
    right.legend()
    left.legend()
    return left, right


@styled
def rank_distribution(ranks: AnyRanks, *, ax: Axes | None = None) -> Axes:
    """Draw how many relevant items each recommender puts at which ranks (Figure 5).

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
    axes, named = _axes(ax), _named(ranks)
    lasts, names = rank_bounds(named)
    bars(axes, names, {name: rank_counts(one, lasts)[: len(names)] for name, one in named.items()})
    axes.set(xlabel="rank", ylabel="number of relevant items")
    axes.legend(title="recommender")
    return axes


@styled
def orders_by_m(
    ranks: Mapping[str, Ranks], metric: AnyMetric, *, correction: str = "bv(0.1)", replace: bool = False
) -> tuple[Axes, Axes]:
    """Draw the expected metric against m, uncorrected and corrected, and from where the order is right (Figure 6).

    Parameters
    ----------
    ranks : dict of name to Ranks
        Exact ranks of two to six recommenders.
    metric : str, Metric or function
    correction : str
        Its text form.
    replace : bool
        Whether candidates are sampled with replacement.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = {"A": tr.Ranks.from_ranks([30] * 5, n=300), "B": tr.Ranks.from_ranks([2, 200] * 3, n=300)}
    >>> [axes.get_title() for axes in tr.plots.orders_by_m(ranks, "ap")]
    ['uncorrected', 'corrected by bv(0.1)']
    """
    name, (_, (left, right)) = str(as_metric(metric)), panels(2)
    most = min(int(one.draws[one.n_relevant > 0].min()) for one in ranks.values())
    # many numbers of candidates are corrected at once if a sample is at most a third of each
    parts = (
        (left, name, "uncorrected", most),
        (right, f"{name}~{correction}", f"corrected by {correction}", most // 3),
    )
    for axes, text, title, largest in parts:
        found = consistency(ranks, text, replace=replace, sizes=_sizes(max(1, largest)))
        curves(axes, found.sizes, found.curves)
        axes.set(title=title, xlabel="number of samples m", ylabel=f"expected {shown_name(name)}", xscale="log")
        if found.settled is not None:
            mark(
                axes, found.settled, f"right order\nfrom m = {found.settled:,}", words_left=found.settled > largest**0.5
            )
    left.legend(title="recommender")
    return left, right


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
    axes = _axes(ax)
    columns = _columns(results)
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
        raise InputError(f"a panel holds at most {len(LOOKS)} curves that can be told apart in greyscale.")
    colour, dashes = LOOKS[drawn]
    return {"color": colour, "linestyle": dashes}


def _columns(results: Any) -> dict[str, list[Any]]:
    """Return the columns of a dataframe or of records."""
    if isinstance(results, Sequence):
        names = {name for record in results for name in record}
        columns = {name: [record.get(name) for record in results] for name in _BUDGET_COLUMNS if name in names}
    else:
        import narwhals as nw

        frame = nw.from_native(results, eager_only=True)
        columns = {name: frame[name].to_list() for name in _BUDGET_COLUMNS if name in frame.columns}
    if missing := [name for name in _BUDGET_COLUMNS if name not in columns]:
        raise InputError(f"`results` must have the columns {', '.join(_BUDGET_COLUMNS)}, but {missing[0]} is missing.")
    return columns


def _axes(ax: Axes | None) -> Axes:
    return panels(1, columns=1)[1][0] if ax is None else ax


def _named(ranks: AnyRanks) -> dict[str, Ranks]:
    return {"recommender": ranks} if isinstance(ranks, Ranks) else dict(ranks)


def _typical_n(ranks: AnyRanks) -> int:
    """Return the median number of candidates before any sampling."""
    counts = [one.n_candidates if one.n_catalogue is None else one.n_catalogue for one in _named(ranks).values()]
    return int(np.median(np.concatenate(counts)))


def _sizes(last: int) -> Ints:
    return np.unique(np.geomspace(1, last, 30).astype(np.int64))


def _every_rank(n: int) -> Ranks:
    """Return ranks 1..n, thinned out towards the end, each of an instance of its own."""
    thinned: Floats = np.geomspace(1, n, _POINTS)
    return Ranks.from_ranks(np.unique(np.concatenate([np.arange(1, min(n, 20) + 1), thinned.round()])).astype(int), n=n)
