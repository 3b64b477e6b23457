"""Krichene & Rendle (KDD 2020), as printed."""

from functools import cache
from pathlib import Path

import pytest

import truerank as tr
from truerank.papers.krichene_rendle_2020 import movielens, toy
from truerank.papers.krichene_rendle_2020.published import TABLE_1, TABLE_2, TABLE_3, TABLE_4

# typed from the paper's Table 1 on its own, so that a slip in `published` does not go unseen
PRINTED = """
A 0.990 0.010 0.150 0.000
B 0.555 0.010 0.122 0.000
C 0.843 0.101 0.208 0.200
"""


def test_published_table_1_is_what_the_paper_prints() -> None:
    rows = [line.split() for line in PRINTED.strip().splitlines()]
    assert {name: list(TABLE_1[name].values()) for name in TABLE_1} == {name: cells for name, *cells in rows}
    assert list(TABLE_1["A"]) == ["auc", "ap", "ndcg", "recall@10"]


@pytest.mark.parametrize("cell", toy.table_1(), ids=lambda cell: f"{cell.row}-{cell.column}")
def test_table_1_digit_by_digit(cell: toy.Cell) -> None:
    assert f"{tr.estimate(toy.RANKS[cell.row], cell.column).mean:.3f}" == cell.published
    assert cell.agrees


SAMPLED = """
A 0.990 0.004 0.630 0.129 0.724 0.097 1.000 0.000
B 0.555 0.014 0.336 0.073 0.444 0.054 0.400 0.000
C 0.843 0.014 0.325 0.050 0.460 0.039 0.567 0.092
"""


def test_published_table_2_is_what_the_paper_prints() -> None:
    rows = [line.split() for line in SAMPLED.strip().splitlines()]
    known = {name: [number for pair in row.values() for number in pair] for name, row in TABLE_2.items()}
    assert known == {name: cells for name, *cells in rows}


@pytest.mark.parametrize("cell", toy.table_2(), ids=lambda cell: f"{cell.row}-{cell.column}")
def test_table_2_within_its_monte_carlo_error(cell: toy.Cell) -> None:
    assert cell.agrees
    deviation = float(TABLE_2[cell.row][cell.column][1])
    # the deviation of a deviation from 1,000 repetitions is about 1 / sqrt(2,000) of it
    exact = tr.risk(cell.column, tr.SamplingDesign(99), toy.RANKS[cell.row]).standard_deviation
    assert exact == pytest.approx(deviation, abs=5 * deviation / 2_000**0.5 + 0.0005)


def test_a_wrong_number_would_be_seen() -> None:
    assert not toy.Cell("A", "auc", "0.991", 0.9901).agrees
    assert not toy.Cell("A", "ap", "0.630", 0.645, standard_error=0.004).agrees


def test_the_orders_that_table_1_implies() -> None:
    cells = toy.table_1()
    assert [toy.order(cells, metric) for metric in TABLE_1["A"]] == ["A > C > B", "C > A = B", "C > A > B", "C > A = B"]


TEXT = Path(__file__).parents[2] / "shared" / "paper" / "on-sampled-metrics-kdd20.txt"


@pytest.mark.skipif(not TEXT.is_file(), reason="the text of the paper is not there")
def test_published_tables_3_and_4_are_what_the_paper_prints() -> None:
    text = " ".join(TEXT.read_text().replace(" ± ", "±").replace(" ±", "±").split())
    for (_, name), row in TABLE_3.items():
        assert f"{name} {row}" in text
    for counts in TABLE_4.values():
        assert " ".join(map(str, counts)) in text


@cache
def table_3() -> list[movielens.Cell3]:
    return movielens.table_3(movielens.embedded_ranks())


def test_exact_metrics_of_y_and_z_are_the_published_ones() -> None:
    exact = {(c.recommender, c.metric): c for c in table_3() if c.column == "exact"}
    for name in ("Y", "Z"):
        for metric in ("recall@10", "ndcg@10"):
            assert f"{exact[name, metric].as_published:.2f}" == f"{exact[name, metric].published:.2f}"
    assert f"{exact['Y', 'ap'].as_published:.2f}" == "4.32"
    assert abs(exact["Z", "ap"].as_published - 4.44) < 0.03
    assert abs(exact["Y", "auc"].as_published - 85.33) < 0.02
    assert abs(exact["Z", "auc"].as_published - 74.73) < 0.3
    for metric in ("recall@10", "ndcg@10", "ap"):
        assert exact["X", metric].as_published < exact["Y", metric].as_published < exact["Z", metric].as_published


def test_sampled_and_corrected_cells_of_y_and_z() -> None:
    """All but AUC: its cells have a deviation of 0.04, below the differences between readings of the text."""
    cells = [c for c in table_3() if c.recommender in "YZ" and c.metric != "auc" and c.column != "exact"]
    assert len(cells) == 2 * 3 * 7
    assert [c for c in cells if not c.agrees] == []


def test_corrections_with_each_users_own_n_come_closer() -> None:
    exact = {(c.recommender, c.metric): c.as_published for c in table_3() if c.column == "exact"}
    for cell in table_3():
        if cell.column == "~bv(0.001)" and cell.metric != "auc" and cell.recommender in "YZ":
            truth = exact[cell.recommender, cell.metric]
            assert abs(cell.own_n - truth) < abs(cell.as_published - truth)


def test_table_4_within_the_binomial_error_of_100_repetitions() -> None:
    cells = movielens.table_4(movielens.embedded_ranks())
    assert len(cells) == 12 * 7
    assert [c for c in cells if not c.agrees] == []
