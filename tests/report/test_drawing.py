"""Figures: what they show, that they can be read in grey, and that files come out the same."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib import colors, rcParams
from matplotlib.axes import Axes
from matplotlib.figure import Figure

import truerank as tr
from truerank.papers.krichene_rendle_2020 import movielens as experiment
from truerank.papers.krichene_rendle_2020 import reproduction
from truerank.papers.krichene_rendle_2020 import toy_tables as toy
from truerank.papers.krichene_rendle_2020.reproduction import (
    figure_1,
    figure_2,
    figure_3,
    figure_4,
    figure_5,
    figure_6,
)
from truerank.report import plots as drawing
from truerank.report.figures import rank_counts

CURVES = [figure_1, figure_2, figure_3, figure_4]


def lines(panel: Axes) -> dict[str, Any]:
    return {str(line.get_label()): np.asarray(line.get_ydata()) for line in panel.get_lines()}


def lightness(colour: Any) -> float:
    return float(np.dot(colors.to_rgb(colour), [0.299, 0.587, 0.114]))


@pytest.mark.parametrize("draw", CURVES)
def test_curves_of_a_panel_differ_in_dashes_and_lightness(draw: Callable[[], tuple[Figure, str]]) -> None:
    figure, _ = draw()
    for panel in figure.axes:
        drawn = panel.get_lines()
        assert 3 <= len(drawn) <= len(drawing.LOOKS)
        assert panel.get_xlabel()
        assert panel.get_ylabel()
        for one, other in combinations(drawn, 2):
            assert abs(lightness(one.get_color()) - lightness(other.get_color())) > 0.05
            near_in_grey = abs(lightness(one.get_color()) - lightness(other.get_color())) < 0.15
            assert not near_in_grey or one._dash_pattern != other._dash_pattern  # type: ignore[attr-defined]


def test_figure_1_is_the_metrics_by_rank() -> None:
    right = lines(figure_1()[0].axes[1])
    ranks = np.arange(1, 101)
    np.testing.assert_allclose(right["Average Precision"], 1 / ranks)
    np.testing.assert_allclose(right["NDCG"], 1 / np.log2(ranks + 1))
    np.testing.assert_allclose(right["AUC"], (10_000 - ranks) / 9_999)
    np.testing.assert_array_equal(right["Recall at 10"], ranks <= 10)


def test_figure_2_begins_at_auc_and_ends_near_the_exact_metric() -> None:
    panels = {panel.get_title(): lines(panel) for panel in figure_2()[0].axes}
    for name, ranks in toy.RANKS.items():
        auc = tr.estimate(ranks, "auc").mean
        np.testing.assert_allclose(panels["AUC"][name], auc)
        # with one sample AP is 1 or 1/2 (section 4.4.4)
        assert panels["Average Precision"][name][0] == pytest.approx((1 + auc) / 2)
        assert panels["Recall at 10"][name][-1] == pytest.approx(tr.estimate(ranks, "recall@10").mean, abs=1e-6)


def test_figure_3_follows_the_closed_form_of_sampled_average_precision() -> None:
    panels = {panel.get_title(): lines(panel) for panel in figure_3()[0].axes}
    above = np.arange(1, 1_000)
    share = above / 9_999
    for m in (10, 100, 1_000):
        drawn = panels["Average Precision"][f"m = {m:,}"]
        assert drawn[0] == 1.0
        np.testing.assert_allclose(drawn[1:], (1 - (1 - share) ** (m + 1)) / (share * (m + 1)), rtol=1e-10)


def test_figure_4_reads_tables_and_their_expectations() -> None:
    left, right = map(lines, figure_4()[0].axes)
    assert list(left) == list(right) == ["AP", "CLS", "BV 1", "BV 0.1", "BV 0.01", "BV 0.001"]
    assert np.all(np.diff(left["CLS"]) <= 0)
    assert left["BV 0.001"].min() < 0 < left["CLS"].min() + 1e-12
    error = {name: np.square(curve - right["AP"]).mean() for name, curve in right.items() if name != "AP"}
    assert error["BV 0.001"] < error["BV 0.01"] < error["BV 0.1"] < error["BV 1"]


def test_figure_5_has_the_counts_that_the_text_tells() -> None:
    study = experiment.embedded()
    counts = {name: rank_counts(ranks, reproduction.BUCKETS) for name, ranks in study.ranks.items()}
    for name, ranks in study.ranks.items():
        assert counts[name].sum() == pytest.approx(len(ranks))
    broken = study.x[0].above + 1
    edges = [0, *reproduction.BUCKETS, 10_000]
    np.testing.assert_allclose(counts["X"], np.histogram(broken, np.array(edges) + 0.5)[0])
    assert counts["Z"][-1] > 2 * counts["Y"][-1]
    assert max(reproduction.bottom_half(ranks) for ranks in study.x) < 300
    assert counts["Z"][0] > counts["Y"][0] > counts["X"][0]
    top = [(ranks.above < 100).sum() for ranks in study.x]
    assert min(top) <= 2_310 <= max(top)
    (panel,) = figure_5(study)[0].axes
    heights = [bar.get_height() for container in panel.containers for bar in container]
    np.testing.assert_allclose(heights, np.concatenate(list(counts.values())))


def test_figure_6_says_from_where_the_order_is_right() -> None:
    study = experiment.embedded()
    figure, says = figure_6(study)
    uncorrected = reproduction.growth(study, "recall@10", 1_300)
    assert uncorrected.settled is not None
    assert 700 < uncorrected.settled < 1_300, "published: about 1000"
    assert f"exact order from m = {uncorrected.settled}, corrected" in says
    ranks = {name: places.break_ties("random", rng=0) for name, places in study.ranks.items()}
    before, after = (
        [tr.risk(places, "recall@10", tr.UniformSampling(uncorrected.settled + step)).mean for places in ranks.values()]
        for step in (-1, 0)
    )
    assert sorted(before) != before
    assert sorted(after) == after
    marked = [text.get_text() for panel in figure.axes for text in panel.texts]
    assert marked[0] == f"right order\nfrom m = {uncorrected.settled}"
    assert int(marked[1].rpartition(" ")[2]) < 60, "published: less than 60"


def test_files_are_the_same_every_time_and_settings_stay(tmp_path: Path) -> None:
    before = dict(rcParams)
    for folder in ("first", "second"):
        drawing.save(figure_1()[0], tmp_path / folder, "figure", drawing.FORMATS)
    for form, begin in {"svg": b"<?xml", "pdf": b"%PDF", "png": b"\x89PNG"}.items():
        first, second = ((tmp_path / folder / f"figure.{form}").read_bytes() for folder in ("first", "second"))
        assert first == second
        assert first.startswith(begin)
    assert dict(rcParams) == before


def test_other_formats_are_refused(tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match="one of svg, pdf, png, got 'gif'"):
        drawing.save(figure_1()[0], tmp_path / "new", "figure", ["gif"])
    assert not (tmp_path / "new").exists()


def test_more_than_can_be_told_apart_is_refused() -> None:
    _, (axes,) = drawing.panels(1, columns=1)
    with pytest.raises(tr.InputError, match="at most 6 curves"):
        drawing.curves(axes, [1], {str(name): np.ones(1) for name in range(7)})
    with pytest.raises(tr.InputError, match="at most 6 bars"):
        drawing.bars(axes, ["one"], {str(name): np.ones(1) for name in range(7)})


def test_without_matplotlib_one_sentence_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(drawing, "find_spec", lambda name: None)
    with pytest.raises(tr.InputError, match="extra 'plots'"):
        figure_1()
