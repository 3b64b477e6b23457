"""Every reader on files that are hostile or damaged: a result or one sentence, nothing else."""

import shutil
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.hostile import CORPUS, LISTS, SOLUTION, SUBMISSION, TREC_QRELS, attacks, good_files, saved_split
from truerank.cli.options import read_groups, read_names
from truerank.data.event_files import read_pairs
from truerank.formats.sources import load_array
from truerank.formats.text_files import read_negatives
from truerank.papers.vlnet import read_vlnet

Reader = Callable[[Path, Path], object]


def model(path: Path, _: Path) -> object:
    """Load a model and let the compiled loops use it."""
    loaded = tr.load_model(path)
    return tr.rank(loaded, test=[[0]] + [[]] * (loaded.n_users - 1)) if 0 < loaded.n_users < 100 else loaded


def ranks(path: Path, _: Path) -> object:
    return tr.values(tr.Ranks.load(path), "recall@1")


def store(path: Path, _: Path) -> object:
    """Look up a score in a store, and add one."""
    for beside in ("-journal", "-shm", "-wal"):
        Path(f"{path}{beside}").unlink(missing_ok=True)
    with tr.ScoreStore(path, "model") as opened:
        opened.add(["cid"], ["a"], [0.5])
        return opened.scores(["ann", "bob", "cid"], ["a", "b", "a"]).size + len(opened) + len(opened.models)


def tables(path: Path, _: Path) -> object:
    return tr.values(tr.read_ranks(path), "recall@1")


def split_file(name: str) -> Reader:
    """Return a reader of a saved split, one of whose files is replaced."""

    def read(path: Path, folder: Path) -> object:
        target = folder / "split" / name
        whole = target.read_bytes()
        try:
            target.write_bytes(path.read_bytes())
            return tr.Split.load(folder / "split")
        finally:
            target.write_bytes(whole)

    return read


READERS: dict[str, Reader] = {
    "recommendations": lambda path, _: tr.read_recommendations(path),
    "groups": lambda path, _: read_groups(str(path)),
    "names": lambda path, _: read_names(str(path), 2),
    "store": store,
    "interactions": lambda path, _: tr.read_interactions(path),
    "ratings": lambda path, _: tr.read_interactions(path, min_rating=2),
    "numbered columns": lambda path, _: tr.read_interactions(path, user=1, item=0),
    "csv": lambda path, _: tr.read_interactions(path, format="csv"),
    "movielens": lambda path, _: tr.read_interactions(path, format="movielens"),
    "lists": lambda path, good: tr.read_lists(path, good / "qrels.txt"),
    "whole lists": lambda path, good: tr.read_lists(path, good / "qrels.txt", depth="all"),
    "truth": lambda path, good: tr.read_lists(good / "lists.csv", path),
    "trec truth": lambda path, good: tr.read_lists(good / "lists.csv", path, truth_format="trec"),
    "train": lambda path, good: tr.read_split(path, good / "lists.csv"),
    "test": lambda path, good: tr.read_split(good / "lists.csv", path),
    "tables of ranks": tables,
    "sampled": lambda path, _: tr.read_ranks(path, m=9, n=90, replace=True),
    "ranks": ranks,
    "candidates": lambda path, _: tr.read_candidates(path),
    "answers": lambda path, good: tr.read_lists(path, good / "qrels.txt", candidates=["a", "b"], invalid="last"),
    "pairs": lambda path, _: read_pairs(path, (10, 10)),
    "negatives": lambda path, _: read_negatives(path),
    "array": lambda path, _: np.asarray(load_array(path)).sum(),
    "model": model,
    "solution": lambda path, good: read_vlnet(path, good / "submission.txt"),
    "submission": lambda path, good: read_vlnet(good / "solution.txt", path),
    "split": lambda path, _: tr.Split.load(path),
    "users of a split": split_file("users.parquet"),
    "events of a split": split_file("train.parquet"),
}


@pytest.fixture(scope="module")
def good(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_good(tmp_path_factory.mktemp("good"))


def write_good(folder: Path) -> Path:
    """Write the files that readers of two files need besides."""
    (folder / "lists.csv").write_text(LISTS)
    (folder / "qrels.txt").write_text(TREC_QRELS)
    (folder / "solution.txt").write_text(SOLUTION)
    (folder / "submission.txt").write_text(SUBMISSION)
    (folder / "split").mkdir()
    for name, content in saved_split().items():
        (folder / "split" / name).write_bytes(content)
    return folder


def refusal(read: Reader, path: Path, good: Path) -> str | None:
    """Read a file; return the one sentence by which it was refused, or None if it was read."""
    try:
        read(path, good)
    except tr.InputError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert len(sentence) < 1_000, sentence
        assert sentence.endswith((".", "?")), sentence
        return sentence
    return None


@pytest.mark.parametrize("reader", READERS)
def test_readers_refuse_the_corpus_in_one_sentence(reader: str, good: Path, tmp_path: Path) -> None:
    for number, (name, content) in enumerate(CORPUS.items()):
        path = tmp_path / f"{number}.{('npz', 'csv')[number % 2]}"
        path.write_bytes(content)
        try:
            refusal(READERS[reader], path, good)
        except Exception as error:
            raise AssertionError(f"{reader} of {name} ({path.name})") from error
        path.unlink()


@pytest.mark.parametrize("reader", sorted({*READERS} - {"store"}))  # a store is made where there is none
def test_readers_refuse_what_is_not_a_file(reader: str, good: Path, tmp_path: Path) -> None:
    for path in (
        tmp_path,
        tmp_path / "nowhere.csv",
        tmp_path / "nowhere.npz",
        tmp_path / ("x" * 300),
        Path("a\0b.csv"),
    ):
        try:
            refused = refusal(READERS[reader], path, good)
        except (OSError, ValueError) as error:
            # the helper that replaces a file of a split can't read these either
            assert reader.endswith("of a split"), error  # noqa: PT017
        else:
            assert refused


FITTING = {
    "lists": ("lists", "whole lists", "truth", "tables of ranks", "interactions", "recommendations", "answers"),
    "run": ("lists", "whole lists", "recommendations"),
    "qrels": ("truth", "trec truth"),
    "interactions": ("interactions", "ratings", "numbered columns", "csv", "test"),
    "ratings": ("interactions", "ratings", "movielens", "pairs"),
    "data": ("interactions", "ratings", "train"),
    "latin": ("interactions", "tables of ranks", "lists"),
    "ranks": ("tables of ranks", "ranks", "sampled"),
    "sampled": ("tables of ranks", "sampled"),
    "model": ("model",),
    "factors": ("model",),
    "array": ("array",),
    "test": ("negatives",),
    "solution": ("solution",),
    "submission": ("submission",),
    "groups": ("groups",),
    "names": ("names",),
    "candidates": ("candidates",),
    "events": ("events of a split", "interactions"),
    "users": ("users of a split",),
    "scores": ("store",),
}
"""Readers of each kind of good file, by the beginning of its name."""


def test_good_files_are_good(good: Path, tmp_path: Path) -> None:
    for name, content in good_files().items():
        path = tmp_path / name
        path.write_bytes(content)
        assert refusal(READERS[FITTING[name.partition(".")[0]][0]], path, good) is None, name


def test_readers_survive_damaged_files(n_attacks: int, good: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for attack, (name, content) in enumerate(attacks(n_attacks)):
        path = tmp_path / name
        path.write_bytes(content)
        readers = FITTING[name.partition(".")[0]]
        reader = str(rng.choice(readers))
        try:
            refusal(READERS[reader], path, good)
        except Exception as error:
            shutil.copy(path, Path(tmp_path.parent) / f"attack-{attack}-{name}")
            raise AssertionError(f"{reader} of attack {attack}: {content[:200]!r}") from error
