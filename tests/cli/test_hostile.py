"""Hostile files in every place where a command reads one: exit code 2 and one sentence, never a traceback."""

import itertools
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.cli.conftest import QRELS, RUN
from tests.cli.running import run_here
from tests.hostile import CORPUS, damaged
from truerank.papers.krichene_rendle_2020 import movielens as experiment
from truerank.papers.krichene_rendle_2020 import reproduction
from truerank.papers.krichene_rendle_2020 import reproduction as paper_report

pytestmark = pytest.mark.filterwarnings("ignore:Reading `.npy`")  # of an old version, which damage looks like

Arguments = Callable[[Path, Path], list[object]]

PLACES: dict[str, Arguments] = {
    "evaluate": lambda file, _: ["evaluate", file, "-m", "ap"],
    "evaluate a run": lambda file, good: ["evaluate", file, "-t", good / "qrels.txt", "-m", "ap@1"],
    "evaluate --truth": lambda file, good: ["evaluate", good / "run.txt", "-t", file, "-m", "ap@1"],
    "evaluate two": lambda file, good: ["evaluate", f"a={good}/exact.npz", f"b={file}", "-m", "ap"],
    "evaluate --define": lambda file, good: ["evaluate", good / "exact.npz", "-m", "ap", "--define", file],
    "evaluate --by": lambda file, good: ["evaluate", good / "exact.npz", "-m", "ap", "--by", file],
    "compare": lambda file, good: ["compare", f"a={good}/exact.npz", f"b={file}", "-m", "ap"],
    "gate": lambda file, good: ["gate", file, "--against", f"b={good}/exact.npz", "-m", "ap", "--margin", "0"],
    "sample": lambda file, good: ["sample", file, "-m", "1", "-o", good / "out.npz"],
    "correct": lambda file, _: ["correct", file, "-m", "ap~cls"],
    "correct a study": lambda file, _: ["correct", file, "-m", "ap~cls", "--sampled", "2", "--candidates", "9"],
    "consistency": lambda file, good: ["consistency", f"a={good}/exact.npz", f"b={file}", "-m", "ap", "--largest", "2"],
    "rank users": lambda file, good: ["rank", "--factors", file, good / "items.npy", *held_out(good)],
    "rank items": lambda file, good: ["rank", "--factors", good / "users.npy", file, *held_out(good)],
    "rank --bias": lambda file, good: [*rank(good), "--bias", file, *held_out(good)],
    "rank --train": lambda file, good: [*rank(good), "--train", file, *held_out(good)],
    "rank --test": lambda file, good: [*rank(good), "--test", file, "-o", good / "out.npz"],
    "recommend --model": lambda file, good: ["recommend", "--model", file, "-o", good / "out.csv"],
    "recommend --train": lambda file, good: ["recommend", *rank(good)[1:], "--train", file, "-o", good / "out.csv"],
    "lists": lambda file, good: ["lists", file, "--train", good / "run.csv", "-m", "coverage@1,novelty@1"],
    "lists --train": lambda file, good: ["lists", good / "run.csv", "--train", file, "-m", "coverage@1,novelty@1"],
    "lists --truth": lambda file, good: [*lists(good), "--truth", file, "-m", "rr@1"],
    "marp --solution": lambda file, good: [*marp(), "--solution", file, "--submission", good / "submission.txt"],
    "marp --submission": lambda file, good: [*marp(), "--solution", good / "solution.txt", "--submission", file],
    "reproduce --data": lambda file, _: ["reproduce", "krichene-rendle", "--data", file],
}
"""Every place for a file: the command with the file there, and good files everywhere else."""


def rank(good: Path) -> list[object]:
    return ["rank", "--factors", good / "users.npy", good / "items.npy"]


def held_out(good: Path) -> list[object]:
    return ["--test", good / "test.tsv", "-o", good / "out.npz"]


def lists(good: Path) -> list[object]:
    return ["lists", good / "run.csv", "--train", good / "run.csv"]


def marp() -> list[object]:
    return ["marp", "--cutoffs", "1"]


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder of small valid files."""
    folder = tmp_path_factory.mktemp("good")
    exact = tr.Ranks.from_ranks([1, 2], n=9, ids=["x", "y"])
    for suffix in ("npz", "parquet"):
        exact.save(folder / f"exact.{suffix}")
        tr.UniformSampling(3).draw(exact, rng=0).save(folder / f"sampled.{suffix}")
    tr.Popularity().fit([[0, 1], [2]]).save(folder / "model.npz")
    np.save(folder / "users.npy", np.ones((2, 1)))
    np.save(folder / "items.npy", np.ones((3, 1)))
    texts = {
        "ranks.csv": "user_id,rank,n\nx,1,9\ny,2,9\n",
        "ranks.jsonl": '{"user_id": "x", "rank": 1, "n": 9}\n{"user_id": "y", "rank": 2, "n": 9}\n',
        "study.csv": "user_id,rank,m,n\nx,1,2,9\ny,2,2,9\n",
        "run.csv": "user,item,score\nq1,a,3\nq1,b,2\nq2,c,1\n",
        "run.txt": RUN,
        "qrels.txt": QRELS,
        "test.tsv": "user\titem\n0\t0\n1\t0\n",
        "solution.txt": "1:1:1|9,2|8\n2:0:3|9\n",
        "ratings.dat": "1::10::5::978300760\n1::20::3::978302109\n2::10::4::978301968\n2::30::4::978300275\n",
        "submission.txt": "1: 1, 2\n2: 4, 5\n",
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture(autouse=True)
def _quick_reproduction(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Read the ratings of a reproduction, but learn, draw and report nothing."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(experiment, "from_split", lambda _split: experiment.embedded())
    monkeypatch.setattr(reproduction, "tables", lambda _study: iter([]))
    monkeypatch.setattr(reproduction, "draw", lambda *_: iter([]))
    monkeypatch.setattr(paper_report, "write_paper_report", lambda *_: "report.html")


def outcome(arguments: list[object]) -> int:
    """Run a command, check how it ended, and return its exit code."""
    done = run_here(*arguments)
    assert done.exception is None or isinstance(done.exception, SystemExit), (arguments, done.exception)
    assert done.exit_code in ((0, 1, 2, 3) if arguments[0] == "gate" else (0, 2)), (arguments, done.output)
    if done.exit_code == 2:
        notes = [line for line in done.stderr.splitlines() if not line.startswith("note: ")]
        assert len(notes) == 1, done.stderr
        assert notes[0].startswith("truerank: "), done.stderr
    return done.exit_code


@pytest.mark.parametrize("place", PLACES)
@pytest.mark.parametrize("name", ["missing.csv", ".", "missing/ranks.npz", "x" * 300])
def test_paths_that_are_not_files(place: str, name: str, good: Path, tmp_path: Path) -> None:
    assert outcome(PLACES[place](tmp_path / name, good)) == 2


RANKS = ["exact.npz", "exact.parquet", "ranks.csv", "ranks.jsonl"]
SAMPLED = ["sampled.npz", "sampled.parquet", "study.csv"]
FITTING: dict[str, list[str]] = {
    "evaluate": RANKS,
    "evaluate a run": ["run.txt", "run.csv"],
    "evaluate --truth": ["qrels.txt"],
    "evaluate two": RANKS,
    "sample": RANKS,
    "correct": SAMPLED,
    "consistency": RANKS,
    "rank users": ["users.npy"],
    "rank items": ["items.npy"],
    "rank --train": ["test.tsv"],
    "rank --test": ["test.tsv"],
    "recommend --model": ["model.npz"],
    "recommend --train": ["test.tsv"],
    "lists": ["run.csv"],
    "lists --train": ["run.csv"],
    "marp --solution": ["solution.txt"],
    "marp --submission": ["submission.txt"],
    "reproduce --data": ["ratings.dat"],
}
"""Valid files for each place."""

CASES = [(place, name) for place, names in FITTING.items() for name in names]


@pytest.mark.parametrize(("place", "name"), CASES)
def test_the_valid_files_are_valid(place: str, name: str, good: Path) -> None:
    assert outcome(PLACES[place](good / name, good)) == 0


@pytest.mark.parametrize(("place", "name"), CASES)
def test_damaged_files(place: str, name: str, good: Path, tmp_path: Path, n_attacks: int) -> None:
    rng = np.random.default_rng(list(f"{place} {name}".encode()))
    content, codes = (good / name).read_bytes(), []
    for _ in range(-(-n_attacks // len(CASES) // 4)):
        (tmp_path / name).write_bytes(damaged(content, rng))
        codes.append(outcome(PLACES[place](tmp_path / name, good)))
    assert 2 in codes


OWN_READERS = (
    "evaluate",
    "evaluate a run",
    "evaluate --by",
    "rank users",
    "rank --train",
    "recommend --model",
    "marp --solution",
)
"""Places that try all of the corpus; others read by the same functions, and try one third each, in turn."""


@pytest.mark.parametrize("place", PLACES)
def test_the_corpus(place: str, good: Path, tmp_path: Path) -> None:
    codes = []
    named = zip([*CORPUS.values(), b"\xff 1", b"\xa0"], itertools.cycle(["file", "file.npz"]), strict=False)
    start, step = (0, 1) if place in OWN_READERS else (list(PLACES).index(place) % 3, 3)
    for content, name in itertools.islice(named, start, None, step):
        (tmp_path / name).write_bytes(content)
        codes.append(outcome(PLACES[place](tmp_path / name, good)))
    assert 2 in codes


@pytest.mark.parametrize("place", PLACES)
def test_files_of_another_kind(place: str, good: Path) -> None:
    codes = {path.name: outcome(PLACES[place](path, good)) for path in sorted(good.iterdir()) if path.stem != "out"}
    assert 2 in codes.values()
