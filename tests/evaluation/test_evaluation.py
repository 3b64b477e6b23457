import json
import math
from typing import Any, Literal

import pandas as pd
import polars as pl
import pytest

import truerank as tr

TOY = {
    "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
    "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
}


def test_cells_are_estimates() -> None:
    table = tr.evaluate(TOY, ["auc", "recall@10"])
    assert table.recommenders == ("A", "C")
    assert table.metrics == ("auc", "recall@10")
    for name, ranks in TOY.items():
        for metric in table.metrics:
            assert table[name, metric] == tr.estimate(ranks, metric)
    assert table["C", "R@10"].mean == 0.2


def test_one_recommender_and_one_metric() -> None:
    table = tr.evaluate(TOY["C"], "map")
    assert table["ap"] == tr.estimate(TOY["C"], "ap")


def test_a_metric_under_two_names_is_one_metric_and_one_test() -> None:
    assert tr.evaluate(TOY, ["map", "rr", "ap", "mrr", "rr"]).metrics == ("ap", "rr")
    found, once = tr.compare(TOY, ["rr", "mrr", "auc"]), tr.compare(TOY, ["rr", "auc"])
    assert found.differences == once.differences
    assert found.notes == once.notes
    assert list(tr.values_frame(TOY["C"], ["rr", "mrr", "hr@5", "hit_rate@5"])) == ["id", "rr", "hr@5"]


def test_cells_that_are_not_there() -> None:
    with pytest.raises(tr.InputError, match="the table has rows"):
        tr.evaluate(TOY, "ap")["B", "ap"]
    with pytest.raises(tr.InputError, match="name the recommender too"):
        tr.evaluate(TOY, "ap")["ap"]
    with pytest.raises(tr.InputError, match="at least one recommender and one metric"):
        tr.evaluate(TOY, [])


@pytest.mark.parametrize(("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame)])
def test_to_frame(backend: Literal["pandas", "polars"], kind: Any) -> None:
    frame: Any = tr.evaluate(TOY, ["auc", "ap"]).to_frame(backend)
    assert isinstance(frame, kind)
    assert list(frame["recommender"]) == ["A", "A", "C", "C"]
    assert list(frame["metric"]) == ["auc", "ap"] * 2
    assert list(frame["mean"])[3] == tr.estimate(TOY["C"], "ap").mean
    low, high = tr.estimate(TOY["C"], "ap").confidence_interval(0.95)
    assert (list(frame["low"])[3], list(frame["high"])[3]) == (low, high)
    assert list(frame["tied_share"]) == [0.0] * 4


def test_json_keeps_every_digit_and_has_no_nan() -> None:
    lonely = tr.Ranks.from_ranks([3], n=10)
    content = json.loads(tr.evaluate(lonely, ["ap"]).to_json())
    assert content["rows"][0]["mean"] == 1 / 3
    assert content["rows"][0]["standard_error"] is None


def test_markdown_and_latex() -> None:
    table = tr.evaluate({"iALS_16 & co": TOY["C"]}, ["recall@10"])
    assert table.to_markdown().splitlines() == [
        "|  | recall@10 | instances | tied |",
        "| --- | ---: | ---: | ---: |",
        "| iALS_16 &amp; co | 0.2000 ± 0.2000 | 5 | 0.0% |",
    ]
    assert r"iALS\_16 \& co & $0.2000 \pm 0.2000$ & 5 & 0.0\% \\" in table.to_latex()


def test_random_ties_use_one_order_for_all_metrics() -> None:
    ranks = tr.Ranks(above=[0] * 50, tied=[9] * 50, n_candidates=10)
    table = tr.evaluate(ranks, ["rr", "mean-rank"], ties="random", rng=4)
    again = tr.evaluate(ranks, ["rr", "mean-rank"], ties="random", rng=4)
    assert table == again
    broken = ranks.break_ties("random", rng=4)
    assert table["mean-rank"].mean == tr.estimate(broken, "mean-rank").mean
    assert table["rr"].mean == tr.estimate(broken, "rr").mean
    assert table["rr"].tied_share == 1.0
    unseeded = tr.evaluate(ranks, ["rr", "ap"], ties="random")
    assert unseeded["rr"].mean == unseeded["ap"].mean


def test_notes_of_the_ranks_reach_the_reader() -> None:
    ranks = tr.Ranks(above=[0] * 40, n_candidates=5, notes=["three users have no list"])
    assert "note: three users have no list" in str(tr.evaluate(ranks, "ap"))


def test_undefined_values_show() -> None:
    table = tr.evaluate(tr.Ranks.from_ranks([[]], n=5), "ap")
    assert math.isnan(table["ap"].mean)
    assert "undefined for 1 of 1 instances" in str(table)
