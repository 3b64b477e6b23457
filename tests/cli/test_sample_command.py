"""``truerank sample``."""

from pathlib import Path

import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank


def test_samples_are_those_of_the_library(toy: dict[str, Path], tmp_path: Path) -> None:
    done = truerank("sample", toy["C"], "-m", "99", "--seed", "3", "-o", tmp_path / "sampled.npz")
    assert done.returncode == 0, done.stderr
    sampled = tr.UniformSampling(99).draw(tr.Ranks.load(toy["C"]), rng=3)
    assert tr.Ranks.load(tmp_path / "sampled.npz") == sampled


def test_several_files(toy: dict[str, Path], tmp_path: Path) -> None:
    files = [toy["A"], f"best={toy['C']}"]
    done = run_here("sample", *files, "-m", "99", "--seed", "3", "--replace", "-o", tmp_path / "s-{name}.parquet")
    assert done.exit_code == 0, done.output
    for name, source in {"A": "A", "best": "C"}.items():
        expected = tr.UniformSampling(99, replace=True).draw(tr.Ranks.load(toy[source]), rng=3)
        assert tr.Ranks.load(tmp_path / f"s-{name}.parquet") == expected
    message = "--output must contain {name} to write 2 files, got 's.npz'."
    assert refusal("sample", *files, "-o", "s.npz") == message


def test_a_dry_run_shows_what_it_would_cost(toy: dict[str, Path], tmp_path: Path) -> None:
    done = run_here("sample", toy["C"], "--design", "inverse(2)", "-o", tmp_path / "sampled.npz", "--dry-run")
    assert done.exit_code == 0, done.output
    planned = tr.plan_scores("inverse(2)", like=tr.Ranks.load(toy["C"]))
    assert f" {planned.designs[1].scores:,} " in done.output
    assert not (tmp_path / "sampled.npz").exists()


def test_through_a_pipe(toy: dict[str, Path]) -> None:
    done = run_here("sample", toy["C"], "-m", "99", "--seed", "3", "-o", "-")
    assert done.stdout_bytes.startswith(b"PAR1")
    assert "5 instances" in done.stderr
    corrected = run_here("correct", "-", "-m", "recall@10~cls", "-f", "json", stdin=done.stdout_bytes)
    assert corrected.exit_code == 0, corrected.output


@pytest.mark.parametrize(
    ("size", "message"),
    [
        ("0", "--m must be a whole number from 1 to"),
        ("10000", "-m must be at most the number of irrelevant candidates"),
        ("x", "must be a whole number"),
    ],
)
def test_bad_sample_sizes(toy: dict[str, Path], tmp_path: Path, size: str, message: str) -> None:
    assert message.removeprefix("-") in refusal("sample", toy["A"], "-m", size, "-o", tmp_path / "sampled.npz")
    assert not (tmp_path / "sampled.npz").exists()


def test_catalogues_that_are_too_large_to_draw_from(tmp_path: Path) -> None:
    (tmp_path / "ranks.csv").write_text(f"rank,n\n5,{10**10}\n")
    arguments = ["sample", tmp_path / "ranks.csv", "-m", "9", "-o", tmp_path / "sampled.npz"]
    assert refusal(*arguments).endswith("got 9,999,999,995; with --replace any number is possible.")
    assert run_here(*arguments, "--replace").exit_code == 0


def test_a_directory_that_is_missing(toy: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "A.parquet").unlink()  # not even looked for
    path = tmp_path / "nowhere" / "sampled.npz"
    message = f"can't write {str(path)!r}: there is no directory {str(path.parent)!r}."
    assert refusal("sample", toy["A"], "-m", "9", "-o", path) == message


def test_a_design_by_its_text_form(toy: dict[str, Path], tmp_path: Path) -> None:
    done = run_here("sample", toy["C"], "--design", "inverse(1)", "--seed", "3", "-o", tmp_path / "s.parquet")
    assert done.exit_code == 0, done.output
    sampled = tr.InverseSampling(1).draw(tr.Ranks.load(toy["C"]), rng=3)
    assert tr.Ranks.load(tmp_path / "s.parquet") == sampled
    table = run_here("correct", tmp_path / "s.parquet", "-m", "ap,ndcg@10,ndcg@10~monotone", "-f", "tsv")
    assert table.exit_code == 0, table.output
    rows = [line.split("\t") for line in table.stdout.splitlines()]
    column = rows[0].index("metric")
    assert [row[column] for row in rows[1:]] == ["ap~unbiased", "ndcg@10~smooth", "ndcg@10~monotone"]
    means = [float(row[rows[0].index("mean")]) for row in rows[1:]]
    assert means[0] == pytest.approx(tr.estimate(sampled, "ap~unbiased").mean, rel=1e-12)


def test_designs_that_are_refused(toy: dict[str, Path], tmp_path: Path) -> None:
    def message(*arguments: str) -> str:
        return refusal("sample", toy["A"], *arguments, "-o", tmp_path / "s.npz")

    assert message("--design", "invers(2)") == "unknown sampling design 'invers(2)'; did you mean 'inverse(2)'?"
    assert message("--design", "inverse(2)", "-m", "9") == "give either --design, or -m and --replace, not both."
    assert "drawing from ranks needs uniform sampling" in message("--design", "popularity(9)")


@pytest.mark.parametrize(
    ("text", "design", "name"),
    [("inverse(2)", tr.InverseSampling(2), "~smooth"), ("head-first@5", tr.HeadFirst(5), "")],
)
def test_designs_for_the_top(
    toy: dict[str, Path], tmp_path: Path, text: str, design: tr.SamplingDesign, name: str
) -> None:
    done = run_here("sample", toy["C"], f"x={toy['A']}", "--design", text, "--seed", "3", "-o", tmp_path / "{name}.npz")
    assert done.exit_code == 0, done.output
    sampled = design.draw(tr.Ranks.load(toy["C"]), rng=3)
    assert tr.Ranks.load(tmp_path / "C.npz") == sampled
    command = "correct" if name else "evaluate"
    table = run_here(command, f"c={tmp_path / 'C.npz'}", f"a={tmp_path / 'x.npz'}", "-m", "ndcg@5", "-f", "tsv")
    assert table.exit_code == 0, table.output
    rows = [line.split("\t") for line in table.stdout.splitlines()]
    assert [row[rows[0].index("recommender")] for row in rows[1:]] == ["c", "a"]
    assert {row[rows[0].index("metric")] for row in rows[1:]} == {f"ndcg@5{name}"}
    mean = tr.estimate(sampled, "ndcg@5").mean
    assert float(rows[1][rows[0].index("mean")]) == pytest.approx(mean, rel=1e-12, abs=1e-15)
