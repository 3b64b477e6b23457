"""All results print, convert, iterate and index alike."""

import json
from importlib.metadata import version
from typing import Any

import numpy as np
import polars as pl
import pytest

import truerank as tr
from truerank.core.tables import Tabular

RANKS = {"A": tr.Ranks.from_ranks([1, 2, 5] * 9, n=50), "B": tr.Ranks.from_ranks([2, 9, 30] * 9, n=50)}
TABLE = tr.evaluate(RANKS, ["ap", "ndcg@10"])
SPLIT = tr.Split(
    tr.Interactions.of([[]] * 3, "", n_users=3, n_items=3),
    tr.Interactions.of([[0], [1], [2]], "", n_users=3, n_items=3),
)
COMPARED = tr.compare(RANKS, ["ap", "ndcg@10"])
RESULTS: list[Any] = [
    TABLE,
    tr.evaluate(RANKS["A"], "ap", by={at: ("even", "odd")[at % 2] for at in range(27)}),
    COMPARED,
    TABLE[0],
    COMPARED[0],
    tr.risk(RANKS["A"], "ap", 10),
    tr.consistency(RANKS, "ap"),
    tr.plan(RANKS, "ap", 10, rng=0),
    tr.audit({"X": {"recall@10": 0.6}, "Y": {"recall@10": 0.5}}, n=100, design=20),
    COMPARED.order("ap"),
    tr.race({name: np.eye(3)[::step] for name, step in {"A": 1, "B": -1}.items()}, SPLIT, "ap", rng=0),
    tr.plan_scores(10, like=RANKS["A"], metric="ap"),
]
over_all = pytest.mark.parametrize("result", RESULTS, ids=lambda result: type(result).__name__)


def test_every_result_is_here() -> None:
    public = {getattr(tr, name) for name in dir(tr)}
    results = {each for each in public if isinstance(each, type) and issubclass(each, Tabular)}
    assert {type(result) for result in RESULTS} == results


@over_all
def test_rows_by_position_and_by_iterating(result: Any) -> None:
    rows = list(result)
    assert len(rows) == len(result) > 0
    assert [result[at] for at in range(len(result))] == rows
    assert (result[-1], list(result[:1]), result[np.int64(0)]) == (rows[-1], rows[:1], rows[0])
    for wrong in (len(result), "no such row", ("no", "such", "row"), None, 1.5, slice("a")):
        with pytest.raises(tr.InputError):
            result[wrong]


@over_all
def test_forms(result: Any) -> None:
    records = result.to_table().records
    assert result.to_frame("polars").height == len(records)
    assert list(result.to_frame().columns) == result.to_frame("pyarrow").column_names == list(records[0])
    assert r"\begin{tabular}" in result.to_latex()
    assert result.to_markdown().startswith("| ")
    assert "<table>" in result._repr_html_() == result.to_html()
    assert len(json.loads(result.to_json())["rows"]) == len(records)
    assert set(map(type, result.to_dict().values())) <= {int, float}
    assert len(result.to_dict(safe=True)) == len(result.to_dict()) > 0
    assert result.to_csv().count("\n") == len(records)


@over_all
def test_repr_is_short(result: Any) -> None:
    shown = repr(result)
    assert shown.startswith(f"<{type(result).__name__}: ")
    assert "\n" not in shown
    assert len(shown) <= 120


def test_repr_of_many_rows_with_long_names() -> None:
    many = {f"name {at}\n" * 9: RANKS["A"] for at in range(50)}
    assert len(repr(tr.evaluate(many, "ap"))) <= 120


def test_rows_by_name() -> None:
    assert TABLE["B", "ap"] is TABLE[2]
    assert list(TABLE) == list(TABLE.estimates)
    assert COMPARED["B", "A", "ndcg@10"] is COMPARED[1]
    _, grouped, _, estimate, difference, risk, consistency, plan, audit, order, race, score_plan = RESULTS
    assert grouped["ap", "odd"] is grouped[1]
    assert estimate["ap"]["mean"] == float(estimate)
    assert difference["B - A", "ap"]["difference"] == difference.difference
    assert risk["ap", "uniform(10)"]["bias"] == risk.mean_bias
    assert consistency["exact"] == {"metric": "ap", "m": None, "order": "A > B"}
    assert plan["ap", "uniform(10)"]["m"] == 10
    assert audit["Y", "recall@10"] == audit[1]
    assert (order["A"].first, order["B"].last) == (1, 2)
    assert race["A - B", "ap"]["population"] == 3
    assert score_plan["all candidates"]["scores"] == 27 * 50


def test_numbers_by_name() -> None:
    a, b = (1 + 1 / 2 + 1 / 5) / 3, (1 / 2 + 1 / 9 + 1 / 30) / 3
    assert {name: TABLE.to_dict()[name] for name in ("A/ap", "B/ap")} == pytest.approx({"A/ap": a, "B/ap": b})
    assert COMPARED.to_dict()["B - A/ap"] == pytest.approx(b - a)
    assert COMPARED.to_dict()["B - A/ap/p"] == COMPARED["B", "A", "ap"].adjusted_p_value
    assert tr.consistency(RANKS, "ap").to_dict() == pytest.approx({"A/ap": a, "B/ap": b, "ap/settled": 1})


def test_an_estimate_is_a_number() -> None:
    mean = (1 + 1 / 2 + 1 / 5) / 3
    assert float(TABLE[0]) == TABLE[0].mean == pytest.approx(mean)
    np.testing.assert_allclose(np.array([TABLE[0], TABLE[0]], dtype=float), [mean, mean])
    assert pl.Series([float(each) for each in TABLE]).len() == 4


def test_version() -> None:
    assert tr.__version__ == version("truerank")
    assert "evaluate" in dir(tr)
    assert tr.__version__ == version("truerank"), "after the names were read, too"
    with pytest.raises(AttributeError):
        getattr(tr, "no_such_name")  # noqa: B009
