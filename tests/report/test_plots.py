"""`tr.plots`: each figure from anybody's ranks, against what defines it."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from matplotlib.axes import Axes
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure

import truerank as tr

RANKS = {
    "A": tr.Ranks.from_ranks([100] * 5, n=1_000),
    "B": tr.Ranks.from_ranks([40, 40, 843, 926, 448], n=1_000),
    "C": tr.Ranks.from_ranks([212, 2, 743, 534, 154], n=1_000),
}
ROWS = [
    {"budget": budget, "design": design, "estimator": "bv(0.1)", "rmse": 1 / budget}
    for budget in (1_000, 10, 100)
    for design in ("uniform", "inverse")
]
ONE: dict[str, Callable[..., Axes]] = {
    "metrics_by_rank": lambda **options: tr.plots.metrics_by_rank(RANKS, **options),
    "metric_by_m": lambda **options: tr.plots.metric_by_m(RANKS, "ap", sizes=[1, 10, 100], **options),
    "expected_by_rank": lambda **options: tr.plots.expected_by_rank(RANKS, "ap", **options),
    "rank_distribution": lambda **options: tr.plots.rank_distribution(RANKS, **options),
    "metrics": lambda **options: tr.plots.metrics(tr.evaluate(RANKS, ["ap", "auc"]), **options),
    "differences": lambda **options: tr.plots.differences(tr.compare(RANKS, ["ap", "auc"]), **options),
    "error_by_budget": lambda **options: tr.plots.error_by_budget(ROWS, **options),
}


def lines(axes: Axes) -> dict[str, tuple[Any, Any]]:
    drawn = axes.get_lines()
    return {str(line.get_label()): (np.asarray(line.get_xdata()), np.asarray(line.get_ydata())) for line in drawn}


@pytest.mark.parametrize("name", ONE)
def test_axes_are_new_or_those_given(name: str) -> None:
    new = ONE[name]()
    assert isinstance(new, Axes)
    assert new.get_xlabel()
    assert new.get_ylabel()
    given = Figure().subplots()
    assert ONE[name](ax=given) is given
    assert len(given.get_children()) == len(new.get_children())


def test_figure_1_is_the_metric_itself() -> None:
    rank, value = lines(tr.plots.metrics_by_rank(RANKS, ["ap", "recall@5"]))["AP"]
    np.testing.assert_allclose(value, 1 / rank)
    assert (rank[0], rank[-1]) == (1, 1_000)


def test_figure_2_begins_at_auc_and_ends_at_the_exact_metric() -> None:
    drawn = lines(tr.plots.metric_by_m(RANKS, "ap", sizes=[1, 10, 100, 999]))
    for name, ranks in RANKS.items():
        _, curve = drawn[name]
        assert curve[0] == pytest.approx((1 + tr.estimate(ranks, "auc").mean) / 2)
        assert curve[-1] == pytest.approx(tr.estimate(ranks, "ap").mean)


def test_figure_3_is_the_mean_over_samples() -> None:
    drawn = lines(tr.plots.expected_by_rank(RANKS, "recall@3", designs=[50]))
    rank, expected = drawn["m = 50"]
    at = int(np.searchsorted(rank, 60))
    many = tr.Ranks.from_ranks([int(rank[at])] * 20_000, n=1_000)
    simulated = tr.estimate(tr.UniformSampling(50).draw(many, rng=3), "recall@3")
    assert abs(simulated.mean - expected[at]) < 5 * simulated.standard_error


def test_figure_4_reads_the_tables_of_the_corrections() -> None:
    left, right = tr.plots.corrected_by_rank(RANKS, "ap", design=20, corrections=["cls", "bv(0.1)"])
    np.testing.assert_allclose(
        lines(left)["bv(0.1)"][1], tr.estimators.correction_table("ap~bv(0.1)", design=20, n=1_000)
    )
    np.testing.assert_allclose(lines(left)["uncorrected"][1], 1 / np.arange(1, 22))
    rank, expected = lines(right)["cls"]
    table = tr.estimators.correction_table("ap~cls", design=20, n=1_000)
    for at in (0, 10, rank.size - 1):
        law = tr.UniformSampling(20).pmf(np.arange(1, 22), rank=int(rank[at]), n=1_000)
        assert expected[at] == pytest.approx(law @ table)


def test_figure_5_counts_every_relevant_item() -> None:
    axes = tr.plots.rank_distribution(RANKS)
    assert [label.get_text() for label in axes.get_xticklabels()][:3] == ["1", "2–3", "4–10"]
    heights = [[bar.get_height() for bar in group] for group in axes.containers]
    assert [round(sum(group), 9) for group in heights] == [5, 5, 5]
    np.testing.assert_allclose(heights[2], [0, 1, 0, 0, 0, 2, 2], atol=1e-9)


def test_figure_6_marks_where_the_order_becomes_right() -> None:
    left, right = tr.plots.orders_by_m(RANKS, "ap")
    assert (left.get_title(), right.get_title()) == ("uncorrected", "corrected by bv(0.1)")
    found = tr.consistency(RANKS, "ap", sizes=range(1, 1_000))
    assert found.settled is not None
    assert f"from m = {found.settled}" in left.texts[0].get_text()


@pytest.mark.parametrize("results", [ROWS, pd.DataFrame(ROWS)])
def test_error_by_budget_sorts_its_points(results: Any) -> None:
    drawn = lines(tr.plots.error_by_budget(results))
    assert list(drawn) == ["uniform, bv(0.1)", "inverse, bv(0.1)"]
    np.testing.assert_array_equal(drawn["inverse, bv(0.1)"][0], [10, 100, 1_000])
    np.testing.assert_allclose(drawn["inverse, bv(0.1)"][1], [0.1, 0.01, 0.001])


def test_refusals() -> None:
    with pytest.raises(tr.InputError, match="but rmse is missing"):
        tr.plots.error_by_budget([{"budget": 1, "design": "uniform", "estimator": "bv(0.1)"}])
    with pytest.raises(tr.InputError, match="several columns of the same name"):
        tr.plots.error_by_budget(pd.DataFrame([[1, 2]], columns=["budget", "budget"]))
    with pytest.raises(tr.InputError, match="at most 6"):
        tr.plots.error_by_budget([row | {"estimator": str(at)} for at, row in enumerate([ROWS[0]] * 7)])
    with pytest.raises(tr.InputError, match="at most 6 bars"):
        tr.plots.rank_distribution({str(number): RANKS["A"] for number in range(7)})


def test_dots_are_means_and_lines_their_intervals() -> None:
    table = tr.evaluate(RANKS, ["ap", "auc"])
    axes = tr.plots.metrics(table, level=0.9)
    dots, lines_of = [each for each in axes.collections if isinstance(each, PathCollection)], axes.collections
    assert [label.get_text() for label in axes.get_yticklabels()] == list(RANKS)
    for metric, drawn in zip(("ap", "auc"), dots, strict=False):
        means = [table[name, metric].mean for name in RANKS]
        np.testing.assert_allclose(np.asarray(drawn.get_offsets())[:, 0], means)
    segments = np.array(
        [segment[:, 0] for each in lines_of if hasattr(each, "get_segments") for segment in each.get_segments()]
    )
    expected = [table[name, metric].confidence_interval(0.9) for metric in ("ap", "auc") for name in RANKS]
    np.testing.assert_allclose(segments, expected)


def test_dots_of_differences_are_hollow_unless_one_is_found() -> None:
    same, better = tr.Ranks.from_ranks([5, 6] * 50, n=90), tr.Ranks.from_ranks([1, 2] * 50, n=90)
    axes = tr.plots.differences(tr.compare({"A": same, "B": same, "C": better}, "rr"))
    (dots,) = (each for each in axes.collections if isinstance(each, PathCollection))
    faces = np.asarray(dots.get_facecolor())
    assert [bool(np.all(face[:3] == 1)) for face in faces] == [True, False, False]
