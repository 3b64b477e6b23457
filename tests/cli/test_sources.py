"""Files by name, and whether they are about the same instances."""

import os
from pathlib import Path

import pytest

import truerank as tr
from tests.cli.running import refusal
from truerank.cli.options import different_instances, named_paths


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


def test_a_file_with_an_equals_sign_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert named_paths(["k=64.npz"]) == {"k": "64.npz"}
    (tmp_path / "k=64.npz").touch()
    assert named_paths(["k=64.npz"]) == {"k=64": "k=64.npz"}
    (tmp_path / "64.npz").touch()
    with pytest.raises(tr.InputError, match=r"write '\./k=64\.npz' or 'k=\./64\.npz'\."):
        named_paths(["k=64.npz"])
    assert named_paths(["./k=64.npz", "k=./64.npz"]) == {"k=64": "./k=64.npz", "k": "./64.npz"}


READ = {
    "evaluate": ["x.csv", "-m", "ap", "--per-instance", "out.csv"],
    "evaluate --truth": ["run.csv", "--truth", "x.csv", "-m", "ap", "--per-instance", "out.csv"],
    "evaluate --by": ["ranks.npz", "--by", "x.csv", "-m", "ap", "--per-instance", "out.csv"],
    "explore": ["x.html", "-o", "out.html"],
    "rank": ["--factors", "u.npy", "i.npy", "--test", "x.npz", "-o", "out.npz"],
    "rank --train": ["--factors", "u.npy", "i.npy", "--train", "x.npz", "--test", "test.csv", "-o", "out.npz"],
    "rank --factors": ["--factors", "u.npy", "x.npz", "--test", "test.csv", "-o", "out.npz"],
    "recommend": ["--model", "x.csv", "-o", "out.csv"],
    "recommend --train": ["--model", "m.npz", "--train", "x.csv", "-o", "out.csv"],
    "report": ["x.html", "-o", "out.html"],
    "report --by": ["ranks.npz", "--by", "x.html", "-o", "out.html"],
    "reproduce": ["krichene-rendle", "--data", "x.zip", "--json", "out.zip"],
    "sample": ["ranks.npz", "b=x.npz", "-o", "out-{name}.npz"],
}
"""Arguments of every command that writes; the file x is read, and is the file out as well."""


@pytest.mark.parametrize("case", READ)
def test_an_output_may_not_be_an_input(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = next(Path(each.removeprefix("b=")) for each in READ[case] if each.removeprefix("b=").startswith("x."))
    source.touch()
    for name in ("out", "out-b"):
        os.link(source, f"{name}{source.suffix}")
    sentence = refusal(case.split()[0], *READ[case])
    assert sentence.endswith(f"is also read, as '{source}'; write to another file.")


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
