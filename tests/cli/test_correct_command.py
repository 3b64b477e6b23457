"""``truerank correct``."""

import json
from pathlib import Path

import pytest

import truerank as tr
from tests.cli.running import refusal, run_here, truerank


def mean(output: str) -> float:
    return json.loads(output)["rows"][0]["mean"]


@pytest.fixture
def sampled(tmp_path: Path) -> Path:
    exact = tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000)
    tr.UniformSampling(99).draw(exact, rng=3).save(tmp_path / "sampled.npz")
    return tmp_path / "sampled.npz"


@pytest.fixture
def study(tmp_path: Path) -> Path:
    (tmp_path / "study.csv").write_text("rank\n1\n17\n3\n")
    return tmp_path / "study.csv"


def test_files_that_say_how_they_were_sampled(sampled: Path) -> None:
    done = truerank("correct", sampled, "-m", "ap~bv(0.1)", "-f", "json")
    assert mean(done.stdout) == tr.estimate(tr.Ranks.load(sampled), "ap~bv(0.1)").mean


def test_somebody_elses_study(study: Path) -> None:
    arguments = [study, "-m", "recall@10~cls", "-f", "json"]
    done = run_here("correct", *arguments, "--sampled", "100", "--candidates", "3541", "--replace")
    expected = tr.estimate(tr.Ranks.from_sampled([1, 17, 3], m=100, n=3541, replace=True), "recall@10~cls")
    assert mean(done.stdout) == expected.mean
    message = "does not state the number of candidates; give --candidates, or a column n."
    assert refusal("correct", *arguments).endswith(message)
    message = "holds exact ranks, which need no correction; give --sampled if they were sampled."
    assert refusal("correct", *arguments, "--candidates", "3541").endswith(message)


def test_several_recommenders(study: Path, tmp_path: Path) -> None:
    (tmp_path / "other.csv").write_text("rank\n2\n2\n2\n")
    sizes = ["--sampled", "100", "--candidates", "3541"]
    done = run_here("correct", f"ours={study}", tmp_path / "other.csv", "-m", "recall@10~cls,ap~cls", *sizes)
    assert [line.split()[0] for line in done.stdout.splitlines()[1:3]] == ["ours", "other"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--sampled", "50"], "--sampled 50 contradicts {}, which says 99."),
        (["--candidates", "50"], "--candidates 50 contradicts {}, which says 10000."),
        (["--replace"], "--replace contradicts {}, whose candidates were sampled without replacement."),
    ],
)
def test_options_that_contradict_the_file(sampled: Path, arguments: list[str], message: str) -> None:
    assert refusal("correct", sampled, "-m", "ap~cls", *arguments) == message.format(repr(str(sampled)))


@pytest.mark.parametrize("option", ["--sampled", "--candidates"])
def test_options_that_contradict_a_column(tmp_path: Path, option: str) -> None:
    (tmp_path / "study.csv").write_text("rank,m,n\n1,100,3541\n17,100,3541\n")
    done = run_here("correct", tmp_path / "study.csv", "-m", "ap~cls", "--sampled", "100", "--candidates", "3541")
    assert done.exit_code == 0, done.output
    message = refusal("correct", tmp_path / "study.csv", "-m", "ap~cls", option, "99")
    assert message.startswith(f"{option} 99 contradicts")
    columns = ["-c", "m=m", "-c", "n=n"]
    message = refusal("correct", tmp_path / "study.csv", "-m", "ap~cls", option, "99", *columns)
    assert message == f"{option} is given both as a number and as a column."


def test_columns_by_name(tmp_path: Path) -> None:
    (tmp_path / "study.csv").write_text("place,drawn,of\n1,100,3541\n17,100,3541\n")
    names = ["-c", "rank=place", "-c", "m=drawn", "-c", "n=of"]
    done = run_here("correct", tmp_path / "study.csv", "-m", "ap~cls", *names, "-f", "json")
    assert mean(done.stdout) == tr.estimate(tr.Ranks.from_sampled([1, 17], m=100, n=3541), "ap~cls").mean
    message = refusal("correct", tmp_path / "study.csv", "-m", "ap~cls")
    assert message.endswith("found place, drawn, of; name its column with --column rank=NAME.")
    message = refusal("correct", tmp_path / "study.csv", "-m", "ap~cls", "-c", "place=rank")
    assert message == "--column has no role 'place'; choose from user, rank, relevance, m, n."


def test_hits_are_no_ranks(tmp_path: Path) -> None:
    (tmp_path / "study.csv").write_text("rank,m,n\n1,100,3541\n0,100,3541\n")
    message = refusal("correct", tmp_path / "study.csv", "-m", "ap~cls")
    assert message.endswith(
        "got 0; 0 and 1 look like hits, not ranks: give their mean to `audit`, as the recall at their cut-off."
    )
    (tmp_path / "study.csv").write_text("rank,m,n\n7,100,3541\n0,100,3541\n")
    assert refusal("correct", tmp_path / "study.csv", "-m", "ap~cls").endswith("the rank must lie in 1..101, got 0.")


def test_exact_ranks_need_no_correction(tmp_path: Path) -> None:
    tr.Ranks.from_ranks([1], n=9).save(tmp_path / "exact.npz")
    assert "holds exact ranks" in refusal("correct", tmp_path / "exact.npz", "-m", "ap~cls")


@pytest.mark.parametrize("form", ["table", "json", "csv"])
def test_notes_name_options_instead_of_arguments(tmp_path: Path, form: str) -> None:
    tr.Ranks.from_sampled([1, 5, 30], m=100, n=3_541).save(tmp_path / "ranks.npz")
    done = run_here("correct", tmp_path / "ranks.npz", "-m", "recall@10~bv(0.1)", "-f", form)
    assert "or try --assume falling" in done.output
    assert "assume=" not in done.output
