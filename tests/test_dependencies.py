"""The versions that pyproject.toml allows: whatever pip chooses among them works."""

import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

FOLDER = Path(__file__).parents[1]
NEEDED = [
    Requirement(text) for text in tomllib.loads((FOLDER / "pyproject.toml").read_text())["project"]["dependencies"]
]
PYTHONS = ["3.11", "3.12", "3.13", "3.14"]


def allows(package: str, version: str, python: str) -> bool:
    here = [each for each in NEEDED if each.marker is None or each.marker.evaluate({"python_version": python})]
    (only,) = (each for each in here if each.name == package)
    return version in only.specifier


@pytest.mark.parametrize("python", PYTHONS)
def test_pyarrow_26_needs_numpy_2(python: str) -> None:
    assert not (allows("numpy", "1.26.4", python) and allows("pyarrow", "26.0.1", python))


def test_rectools_wants_numpy_below_2_before_python_3_13() -> None:
    assert all(allows("numpy", "1.26.4", python) for python in ("3.11", "3.12"))


@pytest.mark.parametrize("python", PYTHONS)
def test_lenskit_wants_pyarrow_20_or_newer_and_cornac_numpy_2(python: str) -> None:
    assert allows("pyarrow", "25.0.1", python)
    assert allows("numpy", "2.4.6", python)


@pytest.mark.parametrize(
    "name", ["constraints.txt", "constraints-models.txt", "constraints-peers.txt", "constraints-spark.txt"]
)
def test_constraints_are_within_the_bounds(name: str) -> None:
    lines = (FOLDER / name).read_text().splitlines()
    pinned = {each.name: each for each in map(Requirement, lines) if each.marker is None or each.marker.evaluate()}
    for needed in NEEDED:
        if needed.name in pinned and (needed.marker is None or needed.marker.evaluate()):
            (version,) = pinned[needed.name].specifier
            assert version.version in needed.specifier
