"""``truerank plan``."""

import json
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank


@pytest.fixture
def files(tmp_path: Path) -> list[Path]:
    """Return files of ranks of an old and a better new recommender."""
    rng = np.random.default_rng(0)
    for name, chance in {"old": 0.02, "new": 0.03}.items():
        ranks = tr.Ranks.from_ranks(rng.geometric(chance, 300).clip(1, 400), n=400, ids=np.arange(300))
        ranks.save(tmp_path / f"{name}.parquet")
    return [tmp_path / "old.parquet", tmp_path / "new.parquet"]


def test_table_and_conclusions(files: list[Path]) -> None:
    done = truerank(
        "plan", *files, "-m", "rr", "--design", "20", "--design", "50", "--design", "inverse(2)", "--seed", "1"
    )
    assert (done.returncode, done.stderr) == (0, "")
    pilot = {path.stem: tr.Ranks.load(path) for path in files}
    found = tr.plan(pilot, "rr", [20, 50, tr.InverseSampling(2)], rng=1)
    assert done.stdout == "\n".join([str(found), *found.conclusions]) + "\n"
    assert done.stdout.splitlines()[-1].startswith("rr: the expected order is correct from ")


@pytest.mark.parametrize(
    ("form", "start"), [("markdown", "| metric"), ("latex", "\\begin{tabular}"), ("tsv", "metric\t")]
)
def test_forms(files: list[Path], form: str, start: str) -> None:
    done = run_here("plan", *files, "-m", "rr", "--design", "20", "-f", form)
    assert done.stdout.startswith(start)
    assert "rr: the expected order" in done.stderr


def test_json_has_the_numbers(files: list[Path]) -> None:
    rows = json.loads(run_here("plan", *files, "-m", "rr,rr~bv(0.1)", "--design", "20", "-f", "json").stdout)["rows"]
    assert [(row["metric"], row["design"], row["m"]) for row in rows] == [
        ("rr", "all candidates", None),
        ("rr", "uniform(20)", 20),
        ("rr~bv(0.1)", "uniform(20)", 20),
    ]


def test_refusals(files: list[Path]) -> None:
    assert "two recommenders, got 1" in refusal("plan", files[0], "-m", "rr")
    assert "`m` must be a whole number from 1, got 0" in refusal("plan", *files, "-m", "rr", "--design", "0")
    assert "--probability must be a number" in refusal("plan", *files, "-m", "rr", "--probability", "0.4")
    assert "unknown sampling design" in refusal("plan", *files, "-m", "rr", "--design", "spiral(2)")
