"""Files by name, and whether they are about the same instances."""

import pytest

import truerank as tr
from truerank.cli.sources import different_instances, named_paths


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a.parquet"], {"a": "a.parquet"}),
        (["runs/a.parquet", "runs/b.parquet"], {"a": "runs/a.parquet", "b": "runs/b.parquet"}),
        (["als=x/a.npz", "b.csv.gz"], {"als": "x/a.npz", "b": "b.csv.gz"}),
        (["als=a=b.npz"], {"als": "a=b.npz"}),
        (["./lr=0.1/a.npz"], {"a": "./lr=0.1/a.npz"}),
        (["-"], {"recommender": "-"}),
        (["als=-", "b.npz"], {"als": "-", "b": "b.npz"}),
        ([".npz"], {".npz": ".npz"}),
        (["/"], {"/": "/"}),
    ],
)
def test_names(texts: list[str], expected: dict[str, str]) -> None:
    assert named_paths(texts) == expected


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a=1.npz", "a=2.npz"], "'1.npz' and '2.npz' are both named 'a'; give each its own name, as in NAME=2.npz"),
        (["x/a.npz", "y/a.npz"], "are both named 'a'"),
        (["a.npz", "a.npz"], "are both named 'a'"),
        (["=a.npz"], "a file is given as PATH, or as NAME=PATH, got '=a.npz'"),
        (["a="], "a file is given as PATH, or as NAME=PATH, got 'a='"),
        (["a=-", "b=-"], "only one file can be standard input"),
    ],
)
def test_names_that_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        named_paths(texts)


def ranks(*ids: int | str, named: bool = True) -> tr.Ranks:
    return tr.Ranks.from_ranks([1] * len(ids), n=5, ids=list(ids) if named else None)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (ranks("x", "y"), ranks("x", "y"), None),
        (ranks("x", "y"), ranks("y", "x"), None),
        (ranks(1, 2), ranks("1", "2"), None),
        (ranks("x", "y"), ranks("x"), "1 of 'a' are not in 'b', for instance 'y'"),
        (ranks("x"), ranks("x", "y", "z"), "2 of 'b' are not in 'a', for instance 'y'"),
        (ranks("x", "y", named=False), ranks("x", "y"), None),
        (ranks("x", named=False), ranks("x", "y"), "'a' has 1 instances, 'b' has 2"),
    ],
)
def test_instances(a: tr.Ranks, b: tr.Ranks, message: str | None) -> None:
    assert different_instances({"a": a, "b": b}) == message
    assert different_instances({"a": a}) is None
