"""Krichene & Rendle (KDD 2020), as printed."""

import pytest

import truerank as tr
from truerank.papers.krichene_rendle_2020 import toy
from truerank.papers.krichene_rendle_2020.published import TABLE_1

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


def test_a_wrong_digit_would_be_seen() -> None:
    assert not toy.Cell("A", "auc", "0.991", 0.9901).agrees


def test_the_orders_that_table_1_implies() -> None:
    cells = toy.table_1()
    assert [toy.order(cells, metric) for metric in TABLE_1["A"]] == ["A > C > B", "C > A = B", "C > A > B", "C > A = B"]
