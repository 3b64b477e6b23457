"""What fuzzers run: every reader, text form and command, and ranking by the compiled loops, on bytes that they invent.

A target fails by raising anything but the refusal of its input, and returns whether that went past the first check.
The compiled loops themselves have a target in C, tests/kernels/fuzzed_loops.c.
"""

import atexit
import contextlib
import os
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import click
import numpy as np

Target = Callable[[bytes], bool]

NUMBERS = ["0", "1", "2", "10", "-1", "0.1", "1.5", "1e9", "1e400", "nan", "007", "9223372036854775808"]
NUMBERS += ["replace", "cap=300", "gamma=0.1", "p=0.8", "decide=10", "x"]
METRICS = ["ap", "ndcg@10", "recall@10~bv(0.1)", "auc,rr", "coverage@1,novelty@1", "ndgc", "ap=0.1", "x"]
SOURCES = [
    "exact.npz",
    "a=exact.npz",
    "b=other.npz",
    "c=sampled.npz",
    "ranks.csv",
    "run.txt",
    "lists.csv",
    "nowhere.csv",
]
SAID = {  # what an option or argument may say, by its name; others may say what is in NUMBERS
    "metric": METRICS,
    "sources": SOURCES,
    "new": SOURCES,
    "against": SOURCES,
    "sampled_ranks": SOURCES,
    "lists": ["lists.csv", "a=lists.csv", "run.txt"],
    "published": ["a=0.3", "b=0.31", "ap=0.1", "a=0.3=1", "=", "x"],
    "evaluate": ["json:loads", "tests.hostile:damaged", "nosuch:x", "x"],
    "design": ["uniform(3)", "inverse(2)", "head-first(1, 1)", "popularity(2)", "x"],
    "column": ["user=user_id", "rank=2", "item=0", "a:user=x", "="],
    "format_of": ["csv", "trec", "run.txt=trec", "x"],
    "min": ["ap=0.1", "ap=2", "0.1"],
    "memory": ["1GB", "300MB", "1MB", "-1", "x"],
    "depth": ["1", "10", "all", "0", "x"],
    "title": ["<b>", "", "x"],
    "largest": ["1", "2", "9", "0", "x"],
    "cutoffs": ["5,10", "0", "x"],
    "baseline": ["a", "b", "nosuch"],
}
INPUTS = {
    "factors": ["users.npy", "items.npy", "exact.npz"],
    "names": ["users.txt", "items.txt", "run.txt"],
    "model": ["model.npz", "exact.npz"],
    "solution": ["solution.txt", "submission.txt"],
    "submission": ["submission.txt", "solution.txt"],
    "split": ["split", "run.txt"],
}
TABLES = ["qrels.txt", "run.txt", "lists.csv", "groups.csv", "test.tsv", "exact.npz", "nowhere.csv"]
OUTPUTS = {
    "output": ["out.npz", "out.csv", "out.html", "nowhere/out.csv"],
    "per_instance": ["out.csv", "nowhere/out.csv"],
}
TRAIN = [[3], [3], [0], [1]]
LEFT_OUT = {"data": "downloads", "reproduce": "takes seconds", "explore": "writes a page of a megabyte"}


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
    """Metrics, designs and sizes by their text forms, from a grammar or as they come; what is read parses back."""
    import truerank as tr

    kind, data = data[:1], data[1:]
    text = data.decode("utf-8", "replace") if kind < b"\x20" else _metric_text(Choices(data), kind < b"\xd0")
    try:
        return _read(text, kind)
    except tr.InputError as error:
        return _is_sentence(error) and not str(error).startswith(("unknown", "can't read"))


def _read(text: str, kind: bytes) -> bool:
    """Read a text form of the kind that the byte chooses; return that it was read."""
    import truerank as tr
    from truerank.core.samples import DESIGNS
    from truerank.core.threads import check_memory
    from truerank.recommending.list_metrics import LIST_METRICS

    if kind[:1] in (b"\x00", b"\x01"):
        assert check_memory(text) > 0
    elif kind[:1] in (b"\x02", b"\x03"):
        assert DESIGNS.read(str(DESIGNS.read(text))) == DESIGNS.read(text), text
    elif LIST_METRICS.has(text):
        assert LIST_METRICS.read(str(LIST_METRICS.read(text))) == LIST_METRICS.read(text), text
        tr.evaluate(_lists(), text, train=TRAIN)
    else:
        assert tr.metric(str(tr.metric(text))) == tr.metric(text), text
        tr.values(_exact(), text)
    return True


def _metric_text(choices: Choices, corrected: bool) -> str:
    metrics, corrections = _names()
    name = choices.of(metrics) + (f"({choices.of(NUMBERS)})" if choices.below(4) == 3 else "")
    cut = f"@{choices.of(NUMBERS)}" if choices.below(3) else ""
    if not corrected or choices.below(2):
        return name + cut
    arguments = ", ".join(choices.of(NUMBERS) for _ in range(choices.below(3)))
    return f"{name}{cut}~{choices.of(corrections)}" + (f"({arguments})" if arguments else "")


@cache
def _names() -> tuple[list[str], list[str]]:
    """Return all names of metrics, also of lists, and of corrections."""
    from truerank.estimators.corrected import CORRECTIONS
    from truerank.metrics.definitions import METRICS
    from truerank.recommending.list_metrics import LIST_METRICS

    return [*METRICS.names, *LIST_METRICS.names, "nosuch"], [*CORRECTIONS.names, "nosuch"]


def designs(data: bytes) -> bool:
    """Sampling designs by their text forms, drawn from exact ranks and evaluated."""
    import truerank as tr
    from truerank.core.samples import DESIGNS

    choices = Choices(data)
    arguments = ", ".join(choices.of(NUMBERS) for _ in range(choices.below(4)))
    text = f"{choices.of([*DESIGNS.names, 'nosuch'])}({arguments})"
    try:
        sampled = tr.rank_sampled(np.eye(4), test=[[0], [1], [2], [3]], design=text, rng=0)
        assert len(sampled) == 4
        tr.values(sampled, choices.of(["ap", "recall@2", "rr~cls"]))
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
    model: Any = tr.Factors((users * scale).astype(number), items.astype(number))
    depth = [None, 1 + choices.below(n_items)][choices.below(2)]
    threads = 1 + choices.below(2)
    k = 1 + choices.below(n_items)
    if choices.below(4) == 3:
        model = tr.ScoreMatrix((scale * users @ items.T).astype(number))
    ranks = tr.rank(model, train=train, test=test, depth=depth, threads=threads)
    for user, ((held_out,), seen) in enumerate(zip(test, train, strict=True)):
        scores = np.delete(items @ users[user], seen)
        own = items[held_out] @ users[user]
        above, tied = int((scores > own).sum()), int((scores == own).sum()) - 1
        if depth is None or above < depth:
            assert (ranks.above[user], ranks.tied[user]) == (above, tied), (user, held_out)
    best = tr.recommend(model, k=k, train=train)
    assert len(best) == n_users
    return True


def readers(data: bytes) -> bool:
    """Files for every reader: the first byte chooses a kind of file and the second one of its readers."""
    from tests.formats.test_hostile import FITTING, READERS, refusal

    names = list(_good_files())
    name = names[data[0] % len(names)] if data else names[0]
    fitting = FITTING[name.partition(".")[0]]
    path = _folder() / f"fuzzed-{os.getpid()}-{name}"
    path.write_bytes(data[2:])
    refused = refusal(READERS[fitting[data[1] % len(fitting) if len(data) > 1 else 0]], path, _folder())
    return refused is None or not any(text in refused for text in FIRST)


FIRST = (
    "can't ",
    "neither text nor",
    "is empty",
    "no header",
    "a header or",
    "not a store",
    "was not written",
    "no rows",
)
"""What refusals say of files that are not of the kind at all."""


def changed(data: bytes, rng: np.random.Generator) -> bytes:
    """Return an input of `readers` with a file that is edited within its format, or sometimes damaged."""
    from tests.edited_files import edited
    from tests.hostile import damaged

    content = data[2:]
    for _ in range(int(rng.integers(1, 3))):
        content = (edited if rng.integers(8) else damaged)(content, rng)
    return data[:2] + content


def commands(data: bytes) -> bool:
    """Command lines of every command: exit code 0 to 3, and one sentence where input is refused."""
    from tests.cli.running import run_here

    words = _command_line(Choices(data))
    with contextlib.chdir(_folder()):
        done = run_here(*words)
    assert done.exception is None or isinstance(done.exception, SystemExit), (words, done.exception)
    assert done.exit_code in range(4), (words, done.output)
    last = done.stderr.rstrip("\n").rpartition("\n")[2]
    assert done.exit_code != 2 or last.startswith(("truerank: ", "Error: ")), (words, done.stderr)
    return done.exit_code != 2 or not any(text in last for text in ("No such", "Missing", "Invalid value for"))


def _command_line(choices: Choices) -> list[str]:
    """Return a command with what it needs, mostly, and some of its options."""
    from truerank.cli.program import truerank

    names = [name for name in truerank.list_commands(click.Context(truerank)) if name not in LEFT_OUT]
    command = truerank.get_command(click.Context(truerank), name := choices.of(names))
    assert command is not None
    needed = [each for each in command.params if each.required and choices.below(16) != 15]
    others = [each for each in command.params if not each.required]
    chosen = [others[choices.below(len(others))] for _ in range(choices.below(5))] if others else []
    return [name, *(word for each in (*needed, *chosen) for word in _given(each, choices))]


def _given(parameter: click.Parameter, choices: Choices) -> list[str]:
    """Return what a parameter may be given as."""
    words = [parameter.opts[-1]] if isinstance(parameter, click.Option) else []
    if isinstance(parameter, click.Option) and parameter.is_flag:
        return words
    said = _said(parameter)
    count = parameter.nargs if parameter.nargs > 0 else 1 + choices.below(3)
    return words + [choices.of(said) for _ in range(count)]


def _said(parameter: click.Parameter) -> list[str]:
    name = str(parameter.name)
    if isinstance(parameter.type, click.Choice):
        return [*map(str, parameter.type.choices), "nosuch"]
    if isinstance(parameter.type, click.Path):
        return OUTPUTS.get(name) or INPUTS.get(name) or TABLES
    return SAID.get(name, NUMBERS)


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
def _lists() -> Any:
    import truerank as tr

    return tr.recommend(np.eye(4), k=2, train=TRAIN)


@cache
def _good_files() -> dict[str, bytes]:
    from tests.hostile import good_files

    return good_files()


@cache
def _folder() -> Path:
    """Return a folder of small valid files, in memory if possible, which the fuzzer's files join."""
    import truerank as tr
    from tests.formats.test_hostile import write_good
    from tests.hostile import GROUPS, RANKS, TREC_RUN

    folder = Path(tempfile.mkdtemp(dir="/dev/shm" if Path("/dev/shm").is_dir() else None))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    write_good(folder)
    for name, ranks in (("exact", [1, 2]), ("other", [2, 1])):
        tr.Ranks.from_ranks(ranks, n=9, ids=["x", "y"]).save(folder / f"{name}.npz")
    tr.rank_sampled(np.eye(2), test=[[0], [1]], design="uniform(1)", rng=0).save(folder / "sampled.npz")
    np.save(folder / "users.npy", np.ones((2, 1)))
    np.save(folder / "items.npy", np.ones((3, 1)))
    (folder / "model.npz").write_bytes(_good_files()["model.npz"])
    texts = {"run.txt": TREC_RUN, "test.tsv": "user\titem\n0\t0\n1\t0\n", "groups.csv": GROUPS, "ranks.csv": RANKS}
    for name, text in (texts | {"users.txt": "x\ny\n", "items.txt": "1\n2\n3\n"}).items():
        (folder / name).write_text(text)
    return folder
