"""Small files that several commands read."""

import os
from pathlib import Path

import numpy as np
import pytest

import truerank as tr

RUN = "q1 Q0 a 1 3.0 x\nq1 Q0 b 2 2.0 x\nq2 Q0 a 1 1.5 x\nq2 Q0 c 2 1.0 x\n"
QRELS = "q1 0 b 1\nq2 0 c 1\nq2 0 z 1\n"


@pytest.fixture(scope="session")
def without_pandas(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with a pandas that can't be imported."""
    folder = tmp_path_factory.mktemp("without-pandas")
    (folder / "pandas.py").write_text("raise ModuleNotFoundError\n")
    return folder


@pytest.fixture(autouse=True)
def _plain_installation(without_pandas: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Hide pandas from new processes: PyArrow would import it, which takes as long as all else that a command does."""
    monkeypatch.setenv("PYTHONPATH", str(without_pandas), prepend=os.pathsep)


@pytest.fixture
def lists(tmp_path: Path) -> tuple[Path, Path]:
    (tmp_path / "run.txt").write_text(RUN)
    (tmp_path / "qrels.txt").write_text(QRELS)
    return tmp_path / "run.txt", tmp_path / "qrels.txt"


@pytest.fixture
def toy(tmp_path: Path) -> dict[str, Path]:
    """Return files with the ranks of the paper's toy example."""
    ranks = {"A": [100] * 5, "B": [40, 40, 8437, 9266, 4482], "C": [212, 2, 743, 5342, 1548]}
    for name, numbers in ranks.items():
        tr.Ranks.from_ranks(numbers, n=10_000).save(tmp_path / f"{name}.parquet")
    return {name: tmp_path / f"{name}.parquet" for name in ranks}


@pytest.fixture
def factors(tmp_path: Path) -> list[object]:
    """Return `rank` with all its files, but without its output."""
    np.save(tmp_path / "users.npy", np.array([[1.0], [-1.0]]))
    np.save(tmp_path / "items.npy", np.array([[1.0], [2.0], [3.0]]))
    (tmp_path / "train.tsv").write_text("user\titem\n0\t2\n")
    (tmp_path / "test.tsv").write_text("user\titem\n0\t0\n1\t0\n")
    pairs = ["--train", tmp_path / "train.tsv", "--test", tmp_path / "test.tsv"]
    return ["rank", "--factors", tmp_path / "users.npy", tmp_path / "items.npy", *pairs]
