"""``truerank consistency``."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank

ORDERS = [
    "m >= 1 A > C > B",
    "m >= 73 A > B > C",
    "m >= 281 A > C > B",
    "m >= 438 C > A > B",
    "m >= 954 C > B > A",
]
"""Section 4.2 of the paper."""


@pytest.mark.parametrize(("named", "run"), [(True, run_here), (False, truerank)])
def test_consistency(toy: dict[str, Path], named: bool, run: Callable[..., Any]) -> None:
    files = [f"{name}={path}" if named else str(path) for name, path in toy.items()]
    done = run("consistency", *files, "-m", "ap", "--replace", "--largest", "1000")
    lines = [" ".join(line.split()) for line in done.stdout.splitlines()]
    assert lines[1:6] == ORDERS
    assert lines[-1] == "exact order from m = 954"


def test_one_recommender_is_not_enough(toy: dict[str, Path]) -> None:
    assert "at least two" in refusal("consistency", toy["A"], "-m", "ap")


def test_a_name_that_is_repeated(toy: dict[str, Path]) -> None:
    message = refusal("consistency", f"A={toy['A']}", f"A={toy['B']}", "-m", "ap")
    assert "are both named 'A'; give each its own name" in message


def test_different_instances(tmp_path: Path) -> None:
    for name, ids in {"a": ["x", "y"], "b": ["x", "z"]}.items():
        tr.Ranks.from_ranks([1, 2], n=9, ids=ids).save(tmp_path / f"{name}.npz")
    message = refusal("consistency", tmp_path / "a.npz", tmp_path / "b.npz", "-m", "ap")
    assert message.endswith("on the same instances only: 1 of 'a' are not in 'b', for instance 'y'.")


def test_sizes_that_would_not_fit_into_memory(toy: dict[str, Path]) -> None:
    files = [f"{name}={path}" for name, path in toy.items()]
    message = "--largest must be a whole number from 1 to 1,000,000, got '99999999999'."
    assert refusal("consistency", *files, "-m", "ap", "--largest", "99999999999") == message


def test_catalogues_of_any_size(tmp_path: Path) -> None:
    for name, places in {"a": [1, 10**9], "b": [10**4, 10**5]}.items():
        (tmp_path / f"{name}.csv").write_text("rank,n\n" + "".join(f"{place},{10**12}\n" for place in places))
    done = run_here("consistency", tmp_path / "a.csv", tmp_path / "b.csv", "-m", "recall@10")
    assert done.exit_code == 0, done.output
    assert done.stdout.splitlines()[-2].split() == ["exact", "a", ">", "b"]


def test_sizes_beyond_the_candidates(toy: dict[str, Path]) -> None:
    files = [f"{name}={path}" for name, path in toy.items()]
    assert "irrelevant candidates" in refusal("consistency", *files, "-m", "ap", "--largest", "10000")
    assert run_here("consistency", *files, "-m", "ap", "--largest", "10").exit_code == 0
