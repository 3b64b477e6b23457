"""How the texts of options are read."""

import click
import pytest

import truerank as tr
from truerank.cli.options import read_whole, split_metrics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ndcg@10", ["ndcg@10"]),
        ("ndcg@10,recall@10", ["ndcg@10", "recall@10"]),
        ("ndcg@10, recall@10", ["ndcg@10", "recall@10"]),
        ("marp@5,10", ["marp@5,10"]),
        ("marp@5,10,ap,marp@5", ["marp@5,10", "ap", "marp@5"]),
        ("rbp(0.8),dcg(exp)@5,AUC", ["rbp(0.8)", "dcg(exp)@5", "AUC"]),
        ("ap~bv(0.1),ap~cls", ["ap~bv(0.1)", "ap~cls"]),
        ("mine(a, b),ap", ["mine(a, b)", "ap"]),
        ("P_10,map", ["P_10", "map"]),
    ],
)
def test_several_metrics_in_one_text(text: str, expected: list[str]) -> None:
    assert list(split_metrics([text])) == expected
    assert list(split_metrics([text, "rr"])) == [*expected, "rr"]


@pytest.mark.parametrize("text", ["1", "007", "999999999999"])
def test_whole_numbers(text: str) -> None:
    assert read_whole(text, click.Option(["--depth"])) == int(text)


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "+1", "1.0", "1e3", "1_0", " 1", "²", "٣", "x", str(10**12 + 1), "9" * 5_000]
)
def test_what_is_not_a_whole_number(text: str) -> None:
    with pytest.raises(
        tr.InputError, match="--depth must be a whole number from 1 to 1,000,000,000,000, got"
    ) as refused:
        read_whole(text, click.Option(["-d", "--depth"]))
    assert len(str(refused.value)) < 150
