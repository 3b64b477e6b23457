"""What a fuzzer runs: every reader, text form, command and compiled loop, on bytes that it invents.

``make fuzz`` runs it for a while on each target, guided by coverage, from the inputs in tests/corpora on. An input is
kept there, as a line of base64, if it reaches code that the others don't; tests/test_fuzzing.py replays them. A target
fails by raising anything but the refusal of its input, and returns whether the input went past the first check.

    python tests/fuzzing.py texts --runs 1000000
"""

import argparse
import base64
import contextlib
import csv
import importlib
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

Target = Callable[[bytes], bool]

CORPORA = Path(__file__).with_name("corpora")
COUNTS = Path(__file__).parents[1] / "benchmarks/results/fuzzing.csv"
NAMES = ["ndcg", "recall", "precision", "ap", "auc", "rr", "rp", "rbp", "err", "mean-rank", "amri", "lauc", "nosuch"]
CORRECTIONS = ["cls", "bv", "ls", "rank", "em", "mes", "mn", "smooth", "monotone", "nosuch"]
DESIGNS = ["uniform", "inverse", "popularity", "head-first", "stopped", "nosuch"]
NUMBERS = ["0", "1", "2", "10", "-1", "0.1", "1.5", "1e9", "1e400", "nan", "007", "9223372036854775808"]
NUMBERS += ["replace", "cap=300", "gamma=0.1", "p=0.8", "x"]
COMMANDS = ["evaluate", "compare", "gate", "sample", "correct", "consistency", "rank", "recommend", "lists", "audit"]
VALUES = ["ap", "ndcg@10", "recall@10~bv(0.1)", "0.01", "-0.1", "3", "90", "json", "uniform(3)", "inverse(2)", "=", "x"]
FILES = [
    "exact.npz",
    "a=exact.npz",
    "b=exact.npz",
    "run.txt",
    "qrels.txt",
    "users.npy",
    "items.npy",
    "test.tsv",
    "out.npz",
]
OPTIONS = [
    "-m",
    "-o",
    "-f",
    "--against",
    "--margin",
    "--sampled",
    "--candidates",
    "--level",
    "--by",
    "--seed",
    "--truth",
]
OPTIONS += ["--depth", "--factors", "--test", "--train", "--design", "--help"]
WORDS = [*COMMANDS, *VALUES, *FILES, *OPTIONS]


class Choices:
    """Decisions, one per byte, and zeros when there are no more."""

    def __init__(self, data: bytes) -> None:
        self.bytes = iter(data)

    def below(self, size: int) -> int:
        return next(self.bytes, 0) % size

    def of(self, options: list[str]) -> str:
        return options[self.below(len(options))]

    def numbers(self, *shape: int) -> Any:
        """Return small whole numbers."""
        size = int(np.prod(shape))
        return np.array([self.below(17) - 8 for _ in range(size)], np.int64).reshape(shape)


def texts(data: bytes) -> bool:
    """Metrics and designs by their text forms, from a grammar or as they come; what is read prints and parses back."""
    import truerank as tr

    kind, data = data[:1], data[1:]
    text = data.decode("utf-8", "replace") if kind < b"\x20" else _metric_text(Choices(data), kind < b"\xd0")
    try:
        metric = tr.metric(text)
        assert tr.metric(str(metric)) == metric, text
        tr.values(_exact(), metric)
    except tr.InputError as error:
        return _is_sentence(error) and not str(error).startswith(("unknown", "can't read"))
    return True


def _metric_text(choices: Choices, corrected: bool) -> str:
    name = choices.of(NAMES) + (f"({choices.of(NUMBERS)})" if choices.below(4) == 3 else "")
    cut = f"@{choices.of(NUMBERS)}" if choices.below(3) else ""
    if not corrected or choices.below(2):
        return name + cut
    arguments = ", ".join(choices.of(NUMBERS) for _ in range(choices.below(3)))
    return f"{name}{cut}~{choices.of(CORRECTIONS)}" + (f"({arguments})" if arguments else "")


def designs(data: bytes) -> bool:
    """Sampling designs by their text forms, drawn from exact ranks and evaluated."""
    import truerank as tr

    choices = Choices(data)
    arguments = ", ".join(choices.of(NUMBERS) for _ in range(choices.below(4)))
    ranks, text = _exact(), f"{choices.of(DESIGNS)}({arguments})"
    try:
        sampled = tr.rank_sampled(np.eye(4), test=[[0], [1], [2], [3]], design=text, rng=0)
        assert len(sampled) == len(ranks)
    except tr.InputError as error:
        return _is_sentence(error) and not str(error).startswith("unknown")
    return True


def kernels(data: bytes) -> bool:
    """Ranks and lists of whole-number factors, whose scores are exact in any order, against counting in NumPy."""
    import truerank as tr

    choices = Choices(data)
    n_users, n_items, d = 1 + choices.below(5), 1 + choices.below(40), 1 + choices.below(19)
    users, items = choices.numbers(n_users, d), choices.numbers(n_items, d)
    scale = 2.0 ** (choices.below(60) - 30)
    number = np.float32 if choices.below(2) else np.float64
    test = [[choices.below(n_items)] for _ in range(n_users)]
    train = [sorted({choices.below(n_items) for _ in range(choices.below(6))} - set(own)) for own in test]
    model = tr.Factors((users * scale).astype(number), items.astype(number))
    depth = [None, 1 + choices.below(n_items)][choices.below(2)]
    ranks = tr.rank(model, train=train, test=test, depth=depth, threads=1 + choices.below(2))
    for user, ((held_out,), seen) in enumerate(zip(test, train, strict=True)):
        scores = np.delete(items @ users[user], seen)
        own = items[held_out] @ users[user]
        above, tied = int((scores > own).sum()), int((scores == own).sum()) - 1
        if depth is None or above < depth:
            assert (ranks.above[user], ranks.tied[user]) == (above, tied), (user, held_out)
    best = tr.recommend(model, k=1 + choices.below(n_items), train=train)
    assert len(best) == n_users
    return True


def readers(data: bytes) -> bool:
    """Files for every reader: the first byte chooses a kind of file and the second one of its readers."""
    from tests.formats.test_hostile import FITTING, READERS, outcome

    names = sorted(_good_files())
    name = names[data[0] % len(names)] if data else names[0]
    fitting = FITTING[name.partition(".")[0]]
    path = _folder() / f"fuzzed-{os.getpid()}-{name}"
    path.write_bytes(data[2:])
    return outcome(READERS[fitting[data[1] % len(fitting) if len(data) > 1 else 0]], path, _folder()) is not None


def commands(data: bytes) -> bool:
    """Command lines, each byte a word: exit code 0 to 3, and one sentence where input is refused."""
    from tests.cli.running import run_here

    words = [COMMANDS[byte % len(COMMANDS)] for byte in data[:1]] + [WORDS[byte % len(WORDS)] for byte in data[1:12]]
    with contextlib.chdir(_folder()):
        done = run_here(*words)
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    assert done.exit_code in range(4), (words, done.output)
    return done.exit_code != 2 or "No such" not in done.stderr


TARGETS: dict[str, Target] = {each.__name__: each for each in (texts, designs, kernels, readers, commands)}


def _is_sentence(error: Exception) -> bool:
    text = str(error)
    assert "\n" not in text
    assert text.endswith((".", "?")), text
    return True


@cache
def _exact() -> Any:
    import truerank as tr

    return tr.Ranks.from_ranks([1, 3, 2, 8], n=9)


@cache
def _good_files() -> dict[str, bytes]:
    from tests.hostile import good_files

    return good_files()


@cache
def _folder() -> Path:
    """Return a folder of small valid files, which the fuzzer's files join."""
    import truerank as tr
    from tests.hostile import LISTS, SOLUTION, SUBMISSION, TREC_QRELS, TREC_RUN

    folder = Path(tempfile.mkdtemp())
    tr.Ranks.from_ranks([1, 2], n=9, ids=["x", "y"]).save(folder / "exact.npz")
    np.save(folder / "users.npy", np.ones((2, 1)))
    np.save(folder / "items.npy", np.ones((3, 1)))
    texts = {"lists.csv": LISTS, "qrels.txt": TREC_QRELS, "run.txt": TREC_RUN, "test.tsv": "user\titem\n0\t0\n1\t0\n"}
    for name, text in (texts | {"solution.txt": SOLUTION, "submission.txt": SUBMISSION}).items():
        (folder / name).write_text(text)
    return folder


def seeds(target: str) -> Iterator[bytes]:
    """Return what is kept of earlier runs and random bytes, and for readers a valid file of each kind."""
    kept = CORPORA / f"{target}.txt"
    yield from map(base64.b64decode, kept.read_text().split() if kept.exists() else [])
    yield from map(np.random.default_rng(0).bytes, (30, 300, 1_000))
    if target == "readers":
        yield from (bytes([at, 0]) + content for at, (_, content) in enumerate(sorted(_good_files().items())))


def fuzz(target: str, runs: int, folder: Path) -> None:
    """Run one target in this process, until it fails or has run so often."""
    import atheris

    import truerank

    with atheris.instrument_imports(include=["truerank"]):
        for module in pkgutil.walk_packages(truerank.__path__, "truerank."):
            if not module.name.endswith("__main__") and "-" not in module.name:  # a compiled library is no module
                importlib.import_module(module.name)
    counts = [0, 0]

    def one(data: bytes) -> None:
        counts[TARGETS[target](data)] += 1
        if sum(counts) == runs or not sum(counts) % 1_000:
            _counts_in(folder).write_text(f"{sum(counts)} {counts[1]}")

    def mutate(data: bytes, size: int, seed: int) -> bytes:
        from tests.hostile import damaged

        changed = data[:2] + damaged(data[2:], np.random.default_rng(seed)) if seed % 2 else atheris.Mutate(data, size)
        return changed[:size]

    structured = {"custom_mutator": mutate} if target == "readers" else {}
    atheris.Setup(
        [sys.argv[0], f"-runs={runs}", "-max_len=4096", "-len_control=0", "-timeout=60", str(folder)], one, **structured
    )
    atheris.Fuzz()


def fuzz_apart(target: str, runs: int, folder: Path) -> int:
    """Run one target in a process of its own; return its exit code."""
    command = [sys.executable, __file__, target, "--runs", str(runs), "--folder", str(folder)]
    return subprocess.run(command, check=False).returncode


def fuzz_loops(_: str, runs: int, folder: Path) -> int:
    """Run what `make fuzz-loops` has built, and leave in the folder only inputs that reach code no other one does.

    Memory is used again soon, because pages that are new take long.
    """
    build = Path(__file__).parents[1] / "build"
    program = [str(build / "fuzzed-loops"), "-max_len=64", "-entropic=0", f"-artifact_prefix={build}/"]
    settings = {"FUZZ_COUNTS": str(_counts_in(folder)), "ASAN_OPTIONS": "quarantine_size_mb=1"}
    status = subprocess.run([*program, f"-runs={runs}", str(folder)], check=False, env=os.environ | settings).returncode
    found = folder.rename(folder.with_name(folder.name + ".found"))
    folder.mkdir()
    subprocess.run([*program, "-merge=1", "-use_counters=0", str(folder), str(found)], check=True)
    shutil.rmtree(found)
    return status


def _counts_in(folder: Path) -> Path:
    """Return the file beside a folder in which a process writes how many inputs it tried, and how many went on."""
    return folder.with_name(folder.name + ".counts")


def add(target: str, inputs: int, further: int) -> None:
    """Add to the counts of all runs."""
    rows = {row["target"]: row for row in csv.DictReader(COUNTS.open())} if COUNTS.exists() else {}
    row = rows.setdefault(target, {"target": target, "inputs": "0", "past the first check": "0"})
    row["inputs"] = str(int(row["inputs"]) + inputs)
    row["past the first check"] = str(int(row["past the first check"]) + further)
    with COUNTS.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(row), lineterminator="\n")
        writer.writeheader()
        writer.writerows(rows[each] for each in sorted(rows))


def keep(target: str, folder: Path, most: int = 500) -> None:
    """Keep the smallest inputs that cover the most."""
    found = sorted((path.read_bytes() for path in folder.iterdir()), key=len)[:most]
    CORPORA.mkdir(exist_ok=True)
    lines = sorted(base64.b64encode(each).decode() for each in found if len(each) < 500)
    (CORPORA / f"{target}.txt").write_text("\n".join(lines) + "\n")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("target", choices=[*TARGETS, "loops"])
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, help="go on in this folder, in this process, and keep nothing")
    given = parser.parse_args()
    if given.folder:
        return fuzz(given.target, given.runs, given.folder)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for at, content in enumerate(seeds(given.target)):
            (folder / str(at)).write_bytes(content)
        run = fuzz_loops if given.target == "loops" else fuzz_apart
        status = run(given.target, given.runs, folder)
        keep(given.target, folder)
        add(given.target, *map(int, _counts_in(folder).read_text().split()))
        _counts_in(folder).unlink()
    sys.exit(status)


if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))
    main()
