"""Krichene & Rendle (KDD 2020), as printed."""

import pytest

import truerank as tr
from truerank.papers.krichene_rendle_2020 import toy
from truerank.papers.krichene_rendle_2020.published import TABLE_1, TABLE_2

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
