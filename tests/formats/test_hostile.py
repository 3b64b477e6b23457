"""Every reader on files that are hostile or damaged: a result or one sentence, nothing else."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.hostile import CORPUS, LISTS, SOLUTION, SUBMISSION, TREC_QRELS, attacks, good_files
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
    folder = tmp_path_factory.mktemp("good")
    (folder / "lists.csv").write_text(LISTS)
    (folder / "qrels.txt").write_text(TREC_QRELS)
    (folder / "solution.txt").write_text(SOLUTION)
    (folder / "submission.txt").write_text(SUBMISSION)
    tr.leave_k_out(tr.read_interactions(folder / "lists.csv"), rng=0).save(folder / "split")
    return folder


def outcome(read: Reader, path: Path, good: Path) -> Any:
    """Read a file; return what was read, or None if it was refused in one sentence."""
    try:
        return read(path, good)
    except tr.InputError as error:
        sentence = str(error)
        assert "\n" not in sentence
        assert len(sentence) < 1_000, sentence
        assert sentence.endswith((".", "?")), sentence
        return None


@pytest.mark.parametrize("reader", READERS)
def test_readers_refuse_the_corpus_in_one_sentence(reader: str, good: Path, tmp_path: Path) -> None:
    for number, (name, content) in enumerate(CORPUS.items()):
        path = tmp_path / f"{number}.{('npz', 'csv')[number % 2]}"
        path.write_bytes(content)
        try:
            outcome(READERS[reader], path, good)
        except Exception as error:
            raise AssertionError(f"{reader} of {name} ({path.name})") from error
        path.unlink()


@pytest.mark.parametrize("reader", READERS)
def test_readers_refuse_what_is_not_a_file(reader: str, good: Path, tmp_path: Path) -> None:
    for path in (
        tmp_path,
        tmp_path / "nowhere.csv",
        tmp_path / "nowhere.npz",
        tmp_path / ("x" * 300),
        Path("a\0b.csv"),
    ):
        try:
            found = outcome(READERS[reader], path, good)
        except (OSError, ValueError) as error:
            # the helper that replaces a file of a split can't read these either
            assert reader.endswith("of a split"), error  # noqa: PT017
        else:
            assert found is None


FITTING = {
    "lists": ("lists", "whole lists", "truth", "tables of ranks", "interactions"),
    "run": ("lists", "whole lists"),
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
}
"""Readers of each kind of good file, by the beginning of its name."""


def test_good_files_are_good(good: Path, tmp_path: Path) -> None:
    for name, content in good_files().items():
        path = tmp_path / name
        path.write_bytes(content)
        assert outcome(READERS[FITTING[name.partition(".")[0]][0]], path, good) is not None, name


def test_readers_survive_damaged_files(n_attacks: int, good: Path, tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    for attack, (name, content) in enumerate(attacks(n_attacks)):
        path = tmp_path / name
        path.write_bytes(content)
        readers = FITTING[name.partition(".")[0]]
        reader = str(rng.choice(readers))
        try:
            outcome(READERS[reader], path, good)
        except Exception as error:
            shutil.copy(path, Path(tmp_path.parent) / f"attack-{attack}-{name}")
            raise AssertionError(f"{reader} of attack {attack}: {content[:200]!r}") from error
