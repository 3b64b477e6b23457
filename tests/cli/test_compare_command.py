"""``truerank compare``, ``truerank gate`` and ``truerank evaluate --min``."""

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """Return files of ranks: a is good, b is about as good, c is bad."""
    rng = np.random.default_rng(0)
    good = rng.integers(1, 20, 400)
    places = {"a": good, "b": np.maximum(good + rng.integers(-1, 2, 400), 1), "c": good + 30}
    for name, numbers in places.items():
        tr.Ranks.from_ranks(numbers, n=60, ids=np.arange(400)).save(tmp_path / f"{name}.parquet")
    return {name: tmp_path / f"{name}.parquet" for name in places}


def test_compare(files: dict[str, Path]) -> None:
    done = truerank("compare", *files.values(), "-m", "rr,ndcg@10")
    assert (done.returncode, done.stderr) == (0, "")
    *_, first, second = done.stdout.splitlines()
    assert first.startswith("rr: ")
    assert second == "ndcg@10: a is better than c; no difference from b was found. One of a, b is best (95 %)."
    ranks = {name: tr.Ranks.load(path) for name, path in files.items()}
    assert str(tr.compare(ranks, ["rr", "ndcg@10"])).splitlines()[0] in done.stdout


def test_compare_with_a_baseline_as_json(files: dict[str, Path]) -> None:
    done = run_here("compare", *files.values(), "-m", "rr", "--baseline", "b", "--margin", "0.5", "-f", "json")
    rows = json.loads(done.stdout)["rows"]
    assert [(row["recommender"], row["baseline"]) for row in rows] == [("a", "b"), ("c", "b")]
    assert done.stderr.splitlines()[-1].startswith("rr: ")
    assert "worse than b: c" in done.stderr


def test_compare_groups(files: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text("id,kind\n" + "".join(f"{u},{['even', 'odd'][u % 2]}\n" for u in range(400)))
    done = run_here("compare", files["a"], files["c"], "-m", "rr", "--by", tmp_path / "groups.csv")
    assert done.stdout.splitlines()[-2:] == ["even, rr: a is better.", "odd, rr: a is better."]
    table = run_here("evaluate", files["a"], "-m", "rr", "--by", tmp_path / "groups.csv").stdout
    assert [line.split()[1] for line in table.splitlines()[1:3]] == ["even", "odd"]


def test_resampling_is_seeded(files: dict[str, Path]) -> None:
    arguments = ["compare", files["a"], files["b"], "-m", "rr", "--test", "bootstrap", "--replicates", "200"]
    assert run_here(*arguments, "--seed", "1").stdout == run_here(*arguments, "--seed", "1").stdout
    assert run_here(*arguments, "--seed", "1").stdout != run_here(*arguments, "--seed", "2").stdout


@pytest.mark.parametrize(
    ("new", "old", "margin", "code", "words"),
    [
        ("a", "c", "0", 0, "passes: a is better than c: rr"),
        ("b", "a", "0.1", 0, "passes: b is not worse than a by 0.1 or more: rr"),
        ("c", "a", "0.01", 1, "fails: c is worse than a by more than 0.01: rr"),
        ("a", "a", "0", 3, "cannot tell whether new is better than old: rr"),
    ],
)
def test_gate(files: dict[str, Path], new: str, old: str, margin: str, code: int, words: str) -> None:
    done = run_here("gate", files[new], "--against", files[old], "-m", "rr", "--margin", margin)
    assert done.exit_code == code
    assert done.stdout.startswith(words)
    assert done.stdout.count("\n") == 1


def test_a_gate_passes_only_by_all_metrics(files: dict[str, Path]) -> None:
    gate = ["gate", files["b"], "--against", files["a"], "-m", "rr,ndcg@10"]
    done = run_here(*gate, "--margin", "0.1")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "passes: 2 of 2 pass.")
    done = run_here(*gate, "--margin", "0.1", "--margin", "ndcg@10=0.0001")
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (3, "cannot tell: 1 of 2 pass, 1 of 2 cannot tell.")
    done = run_here(
        "gate", files["c"], "--against", files["a"], "-m", "rr,mean-rank", "--margin", "50", "--margin", "rr=0"
    )
    assert (done.exit_code, done.stdout.splitlines()[-1]) == (1, "fails: 1 of 2 pass, 1 of 2 fail.")
    assert "--margin has no number for ndcg@10" in refusal(*gate, "--margin", "rr=0.1")
    assert "--margin names ap, which is not among" in refusal(*gate, "--margin", "0.1", "--margin", "ap=0.1")
    assert refusal(*gate, "--margin", "1", "--margin", "2") == "--margin is given twice."


@pytest.mark.parametrize(("level", "two_sided"), [("0.95", 0.9), ("0.99", 0.98), ("0.8", 0.6)])
def test_a_gate_shows_levels_without_rounding_errors(files: dict[str, Path], level: str, two_sided: float) -> None:
    done = run_here(
        "gate", files["c"], "--against", files["a"], "-m", "rr", "--margin", "0.01", "--level", level, "-f", "json"
    )
    assert [check["level"] for check in json.loads(done.stdout)["checks"]] == [two_sided]


def test_a_metric_under_two_names_is_one_check_of_a_gate(files: dict[str, Path]) -> None:
    gate = ["gate", files["b"], "--against", files["a"], "--margin", "0.1", "-f", "json", "-m"]
    assert json.loads(run_here(*gate, "rr,mrr,rr").stdout) == json.loads(run_here(*gate, "rr").stdout)


def test_each_check_of_a_gate_is_tested_by_itself_to_pass_and_jointly_to_fail(files: dict[str, Path]) -> None:
    """All must pass, so a false pass needs a false one of each: no adjustment; one false failure is enough to fail."""
    ranks = {name: tr.Ranks.load(files[name]) for name in "ab"}
    alone = tr.compare(ranks, "rr")["b", "a"]
    joint = tr.compare(ranks, ["rr", "ndcg@10", "ap", "recall@5"])["b", "a", "rr"]
    margin = -(alone.gain_interval(0.9).low + joint.gain_interval(2 * joint.adjusted_level - 1).low) / 2
    assert alone.not_worse(margin)
    assert not joint.not_worse(margin)
    margins = ["--margin", "1", "--margin", f"rr={margin}"]
    gate = ["gate", files["b"], "--against", files["a"], "-m", "rr,ndcg@10,ap,recall@5", *margins]
    assert run_here(*gate).stdout.splitlines()[0].startswith("passes: b is not worse than a")


def test_a_relative_margin_is_a_share_of_the_old_mean(files: dict[str, Path]) -> None:
    mean = tr.estimate(tr.Ranks.load(files["a"]), "rr").mean
    gate = ["gate", files["b"], "--against", files["a"], "-m", "rr", "-f", "json"]
    found = json.loads(run_here(*gate, "--margin", "2.5%").stdout)["checks"][0]
    assert found["margin"] == pytest.approx(0.025 * mean, rel=1e-12)
    absolute = json.loads(run_here(*gate, "--margin", str(0.025 * mean)).stdout)["checks"][0]
    assert (found["decision"], found["low"], found["high"]) == tuple(
        absolute[name] for name in ("decision", "low", "high")
    )


def test_a_gate_by_group_in_every_format(
    files: dict[str, Path], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "groups.csv").write_text("id,kind\n" + "".join(f"{u},{['x|y', 'odd'][u % 2]}\n" for u in range(400)))
    summary = tmp_path / "summary.md"
    monkeypatch.setenv("GITHUB_STEP_SUMMARY", str(summary))
    gate = [
        "gate",
        files["c"],
        "--against",
        files["a"],
        "-m",
        "rr",
        "--margin",
        "0.01",
        "--by",
        tmp_path / "groups.csv",
    ]
    assert run_here(*gate).exit_code == 1
    marked = run_here(*gate, "-f", "markdown")
    assert marked.exit_code == 1
    assert marked.stdout.splitlines()[0] == "**fails**: c against a"
    assert summary.read_text() == 2 * marked.stdout
    assert marked.stdout.splitlines()[4].startswith(r"| rr in x\|y | ")
    suite = ElementTree.fromstring(run_here(*gate, "-f", "junit").stdout)
    assert {name: suite.get(name) for name in ("tests", "failures", "errors")} == {
        "tests": "2",
        "failures": "2",
        "errors": "0",
    }
    assert [case.get("name") for case in suite] == ["rr in x|y", "rr in odd"]
    rows = json.loads(run_here(*gate, "-f", "json").stdout)
    assert (rows["decision"], [row["group"] for row in rows["checks"]]) == ("fails", ["x|y", "odd"])
    even = np.arange(0, 400, 2)
    alone = tr.compare({name: tr.Ranks.load(files[name])[even] for name in "ac"}, "rr")["c", "a"]
    assert rows["checks"][0]["difference"] == pytest.approx(alone.difference, rel=1e-12)


def test_a_gate_that_cannot_tell_says_how_many_would_do(files: dict[str, Path], tmp_path: Path) -> None:
    for name in "ab":
        tr.Ranks.load(files[name])[:40].save(tmp_path / f"few-{name}.npz")
    done = run_here(
        "gate", tmp_path / "few-b.npz", "--against", tmp_path / "few-a.npz", "-m", "rr", "--margin", "0.001"
    )
    assert done.exit_code == 3
    ranks = {name: tr.Ranks.load(tmp_path / f"few-{name}.npz") for name in "ab"}
    needed = int(tr.compare(ranks, "rr")["b", "a"].instances_needed(0.001))
    assert f"about {needed:,} instances would settle it" in done.stdout


def test_bad_input(files: dict[str, Path], tmp_path: Path) -> None:
    tr.Ranks.load(files["b"])[:10].save(tmp_path / "few.npz")
    gate = ["gate", tmp_path / "few.npz", "--against", files["a"], "-m", "rr"]
    assert "390 instances of 'a'" in refusal(*gate, "--margin", "0")
    assert "leave such instances out with --unmatched drop" in refusal(*gate, "--margin", "0")
    assert run_here(*gate, "--margin", "0", "--unmatched", "drop").exit_code == 3
    assert refusal(*gate, "--margin", "-1") == "--margin must be a number from 0, got '-1'."
    for wrong in ("x", ".", "-.", ".e1", "+", "1.5.", "nan", "inf"):
        assert refusal(*gate, f"--margin={wrong}") == f"--margin must be a number from 0, got '{wrong}'."
    assert refusal(*gate, "--margin", "0", "--level", ".") == "--level must be a number between 0 and 1, got '.'."
    assert "--level must be a number between 0 and 1" in refusal(*gate, "--margin", "0", "--level", "1")
    assert "--level must lie between 0.5 and 1" in refusal(*gate, "--margin", "0", "--level", "0.4")
    assert "at least two recommenders" in refusal("compare", files["a"], "-m", "rr")
    assert "--baseline must be 'a' or 'b'" in refusal("compare", files["a"], files["b"], "-m", "rr", "--baseline", "x")
    assert "must have two columns" in refusal("compare", files["a"], files["b"], "-m", "rr", "--by", files["a"])


def test_only_worse_ends_a_gate_with_1(files: dict[str, Path], tmp_path: Path) -> None:
    gate = ["gate", files["a"], "--against", files["b"], "-m", "rr", "--margin", "0.1"]
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for wrong in (
        [*gate[:1], tmp_path / "none.parquet", *gate[2:]],
        [*gate[:1], tmp_path / "broken.parquet", *gate[2:]],
        [*gate[:5], "nothing@10", *gate[6:]],
        [*gate, "--level", "."],
        [*gate, "--seed", "x"],
        [*gate, "--test", "wilcoxon"],
        gate[:-2],
        [*gate, "--unknown"],
    ):
        assert run_here(*wrong).exit_code == 2, wrong


def test_minimum(files: dict[str, Path]) -> None:
    mean = tr.estimate(tr.Ranks.load(files["a"]), "rr").mean
    passes = run_here("evaluate", files["a"], "-m", "ap", "--min", f"rr={mean - 1e-9}")
    assert (passes.exit_code, passes.stderr) == (0, "")
    fails = run_here("evaluate", files["a"], files["c"], "-m", "rr", "--min", f"RR={mean + 1e-9}")
    assert fails.exit_code == 1
    assert [line.split(" is ")[0] for line in fails.stderr.splitlines()] == ["fails: rr of a", "fails: rr of c"]
    assert "METRIC=X" in refusal("evaluate", files["a"], "-m", "rr", "--min", "rr")
    for least in ("high", "nan", "inf"):
        sentence = refusal("evaluate", files["a"], "-m", "rr", "--min", f"rr={least}")
        assert f"--min must be a finite number, got '{least}'" in sentence


def test_an_order_that_sampled_ranks_leave_open(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    for name in "ab":
        exact = tr.Ranks.from_ranks(rng.integers(1, 500, 300), n=500, ids=np.arange(300))
        tr.UniformSampling(20).draw(exact, rng=1).save(tmp_path / f"{name}.parquet")
    paths = tmp_path / "a.parquet", tmp_path / "b.parquet"
    shown = run_here("compare", *paths, "-m", "recall@10", "--assume", "falling", "--same-candidates").stdout
    assert shown.splitlines()[-1] == "recall@10: not determined by this sample."
    assert "if deeper ranks are never more likely" in shown
    done = run_here("gate", paths[0], "--against", paths[1], "-m", "recall@10", "--margin", "0.01")
    assert (done.exit_code, done.stdout.splitlines()[-1][:40]) == (3, "cannot tell whether a is worse than b by")
    assert done.stdout.endswith("the sampled candidates do not determine it, so rank all of them.\n")
