"""``truerank rank``."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank


def test_rank_and_evaluate(factors: list[object], tmp_path: Path) -> None:
    out = tmp_path / "ranks.parquet"
    done = truerank(*factors, "-o", out)
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines()[-1] == f"written to {str(out)!r}"
    assert tr.Ranks.load(out) == tr.Ranks.from_ranks([2, 1], n=[2, 3], ids=[0, 1])
    assert run_here("evaluate", out, "-m", "rr").exit_code == 0


def test_a_bias_is_added(factors: list[object], tmp_path: Path) -> None:
    np.save(tmp_path / "bias.npy", np.array([9.0, 0.0, 0.0]))
    assert run_here(*factors, "--bias", tmp_path / "bias.npy", "-o", tmp_path / "ranks.npz").exit_code == 0
    assert tr.Ranks.load(tmp_path / "ranks.npz").rank.tolist() == [1, 1]


def test_rows_of_factors_have_names(factors: list[object], tmp_path: Path) -> None:
    """Pairs are matched by name, whatever the order of the rows."""
    (tmp_path / "users.txt").write_text("ann\nbob\n")
    (tmp_path / "items.txt").write_text("x\ny\nz\n")
    (tmp_path / "train.tsv").write_text("user\titem\nann\tz\n")
    (tmp_path / "test.tsv").write_text("user\titem\nbob\tx\nann\tx\n")
    named = [*factors, "--names", tmp_path / "users.txt", tmp_path / "items.txt", "-o", tmp_path / "ranks.npz"]
    assert run_here(*named).exit_code == 0
    ranks = tr.Ranks.load(tmp_path / "ranks.npz")
    assert ranks.ids is not None
    assert ranks.items is not None
    assert dict(zip(ranks.ids.tolist(), ranks.rank.tolist(), strict=True)) == {"ann": 2, "bob": 1}
    assert ranks.items.tolist() == ["x", "x"]
    (tmp_path / "items.txt").write_text("x\ny\n")
    assert refusal(*named).endswith("items.txt' must have a name for each of the 3 rows of the factors, got 2.")
    (tmp_path / "items.txt").write_text("x\ny\nx\n")
    assert refusal(*named).endswith("items.txt' must have a different name on each line, got 'x' twice.")
    (tmp_path / "items.txt").write_text("x\ny\nw\n")
    assert refusal(*named).endswith("train.tsv', line 2: the item 'z' is not among the 3 names.")
    (tmp_path / "items.txt").write_bytes(b"\xff\n\n\n")
    assert "must be a text file in UTF-8, with one name per line" in refusal(*named)


@pytest.mark.parametrize(
    ("out", "message"),
    [
        ("ranks.xls", "must end in .parquet or .npz"),
        ("nowhere/ranks.npz", "there is no directory"),
        ("users.npy/ranks.npz", "not a directory"),
    ],
)
def test_the_output_is_checked_first(factors: list[object], tmp_path: Path, out: str, message: str) -> None:
    (tmp_path / "test.tsv").unlink()  # not even looked for
    assert message in refusal(*factors, "-o", tmp_path / out)


def test_input_is_checked_before_the_work(factors: list[object], tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("user\titem\n0\t3\n")
    assert "test.tsv', line 2: the item must lie in 0..2, got 3." in refusal(*factors, "-o", tmp_path / "ranks.npz")
    assert not (tmp_path / "ranks.npz").exists()


@pytest.mark.parametrize("content", [b"", b"not an array", b"\x93NUMPY\x01\x00v\x00{"])
def test_files_that_are_not_arrays(factors: list[object], tmp_path: Path, content: bytes) -> None:
    (tmp_path / "items.npy").write_bytes(content)
    assert "items.npy" in refusal(*factors, "-o", tmp_path / "ranks.npz")
    assert not (tmp_path / "ranks.npz").exists()


@pytest.mark.parametrize("threads", ["0", "-1", "1.5", "99999999999999999999"])
def test_threads(factors: list[object], tmp_path: Path, threads: str) -> None:
    message = f"--threads must be a whole number from 1 to 1,024, got {threads!r}."
    assert refusal(*factors, "-o", tmp_path / "ranks.npz", "--threads", threads) == message


def test_pairs_that_look_like_qrels(factors: list[object], tmp_path: Path) -> None:
    (tmp_path / "test.tsv").write_text("0 0 1 978300760\n1 0 2 978302109\n")
    out = tmp_path / "ranks.npz"
    assert refusal(*factors, "-o", out).endswith("give --format-of FILE=movielens.")
    assert run_here(*factors, "-o", out, "--format-of", "test=movielens").exit_code == 0
    assert tr.Ranks.load(out).rank.tolist() == [2, 1]


def test_spark_that_is_not_installed(factors: list[object], tmp_path: Path) -> None:
    if find_spec("pyspark"):
        pytest.skip("PySpark is installed")
    message = "Spark needs PySpark 4, which is not installed: pip install 'truerank[spark]'."
    assert refusal(*factors, "-o", tmp_path / "ranks.npz", "--engine", "spark") == message


def test_a_depth(factors: list[object], tmp_path: Path) -> None:
    assert run_here(*factors, "--depth", "1", "-o", tmp_path / "ranks.npz").exit_code == 0
    ranks = tr.Ranks.load(tmp_path / "ranks.npz")
    assert ranks.depth == 1
    assert tr.values(ranks, "recall@1").tolist() == [0, 1]
    assert refusal("evaluate", tmp_path / "ranks.npz", "-m", "auc").startswith("auc needs the whole ranking")
    assert (
        refusal(*factors, "--depth", "0", "-o", tmp_path / "a.npz") == "--depth must be a whole number from 1, got 0."
    )


@pytest.mark.parametrize("option", ["--threads", "--bias", "--depth"])
def test_options_of_the_local_engine(factors: list[object], tmp_path: Path, option: str) -> None:
    arguments = ["-o", tmp_path / "ranks.npz", "--engine", "spark", option, "2"]
    assert refusal(*factors, *arguments).startswith(f"{option} is for the local engine; ")


def test_candidates(factors: list[object], tmp_path: Path) -> None:
    (tmp_path / "candidates.tsv").write_text("0\t0 1\n1\t2 1\n")
    (tmp_path / "banned.txt").write_text("1\n")
    options = [*factors, "--candidates", tmp_path / "candidates.tsv", "--exclude", tmp_path / "banned.txt"]
    assert run_here(*options, "-o", tmp_path / "ranks.npz").exit_code == 0
    scorer = tr.Factors(np.load(tmp_path / "users.npy"), np.load(tmp_path / "items.npy"))
    train, test = ([[2], []], [[0], [0]])
    expected = tr.rank(scorer, train=train, test=test, candidates=[[0, 1], [2, 1]], exclude=[1])
    assert tr.Ranks.load(tmp_path / "ranks.npz").n_candidates.tolist() == expected.n_candidates.tolist()
    (tmp_path / "candidates.tsv").write_text("0\t0 9\n1\t2 1\n")
    assert "--candidates must hold items 0..2, got 9." in refusal(*options, "-o", tmp_path / "ranks.npz")


def test_repeated_pairs_are_noted(factors: list[object], tmp_path: Path) -> None:
    (tmp_path / "twice.tsv").write_text("0\t0\n0\t0\n1\t0\n")
    done = run_here(*factors, "--test", tmp_path / "twice.tsv", "-o", tmp_path / "ranks.npz")
    assert done.exit_code == 0
    assert "twice.tsv': 1 pair is repeated and counts once" in " ".join(done.stderr.split())
    assert tr.Ranks.load(tmp_path / "ranks.npz").above.size == 2
