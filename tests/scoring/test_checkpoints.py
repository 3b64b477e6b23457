"""Long jobs that are killed continue where they were, to the same bytes, and notice other inputs."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import AnyArray, Ints
from tests.cli.running import refusal, run_here
from tests.patience import HANGS
from truerank.formats.writing import replacing
from truerank.scoring import checkpoints

RNG = np.random.default_rng(11)
USERS, ITEMS = RNG.normal(size=(700, 6)), RNG.normal(size=(90, 6)).round(1)
TRAIN = [RNG.choice(90, 5, replace=False) for _ in range(700)]
TEST = [RNG.choice(90, user % 4, replace=False) for user in range(700)]
MODELS: dict[str, Callable[[], Any]] = {
    "factors": lambda: tr.Factors(USERS, ITEMS),
    "function": lambda: tr.FunctionScorer(lambda users: USERS[users] @ ITEMS.T, n_items=90, batch_size=64),
    "matrix": lambda: (USERS @ ITEMS.T).round(1),
    "item model": lambda: tr.ItemKNN().fit(TRAIN),
}


@pytest.fixture(autouse=True)
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkpoints, "users_per_block", lambda n_items: 50)


class Stopped(Exception):  # noqa: N818
    pass


def stop_after(n_parts: int, call: Callable[[], object]) -> None:
    """Call something, and let writing fail once so many files have been written."""
    left = [None] * n_parts

    def fail_later(*paths: Any) -> Any:
        if not left:
            raise Stopped
        left.pop()
        return replacing(*paths)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(checkpoints, "replacing", fail_later)
        with pytest.raises(Stopped):
            call()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
@pytest.mark.parametrize("graded", [False, True])
def test_ranks_continue(tmp_path: Path, model: Callable[[], Any], graded: bool) -> None:
    test: Any = TEST
    if graded:
        test = tr.Interactions.of(TEST, "test", n_users=700, n_items=90).matrix.copy()
        test.data[:] = np.random.default_rng(0).integers(1, 4, test.data.size)
    whole = tr.rank(model(), train=TRAIN, test=test)
    for n_parts in (0, 1, 3, 4):
        stop_after(n_parts, lambda: tr.rank(model(), train=TRAIN, test=test, checkpoint=tmp_path / "parts"))
    parts = sorted((tmp_path / "parts").glob("count-0-*.npz"))
    assert len(parts) == 8
    written = [part.stat().st_mtime_ns for part in parts]
    found = tr.rank(model(), train=TRAIN, test=test, checkpoint=tmp_path / "parts", threads=2)
    assert found == whole
    assert [part.stat().st_mtime_ns for part in parts] == written, "finished parts are not computed again"
    found.save(tmp_path / "found.npz")
    whole.save(tmp_path / "whole.npz")
    assert (tmp_path / "found.npz").read_bytes() == (tmp_path / "whole.npz").read_bytes()


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_lists_continue(tmp_path: Path, model: Callable[[], Any]) -> None:
    whole = tr.recommend(model(), train=TRAIN, k=7)
    stop_after(4, lambda: tr.recommend(model(), train=TRAIN, k=7, checkpoint=tmp_path))
    for _ in range(2):
        found = tr.recommend(model(), train=TRAIN, k=7, checkpoint=tmp_path)
        assert np.array_equal(found.items, whole.items)
        assert found.scores is not None
        assert whole.scores is not None
        assert np.array_equal(found.scores, whole.scores)
    assert tr.recommend(model(), train=TRAIN, k=3, checkpoint=tmp_path).items.shape[-1] < whole.items.size


@pytest.mark.parametrize("model", MODELS.values(), ids=list(MODELS))
def test_ranks_down_to_a_depth_continue(tmp_path: Path, model: Callable[[], Any]) -> None:
    whole = tr.rank(model(), train=TRAIN, test=TEST, depth=5)
    stop_after(4, lambda: tr.rank(model(), train=TRAIN, test=TEST, depth=5, checkpoint=tmp_path))
    assert tr.rank(model(), train=TRAIN, test=TEST, depth=5, checkpoint=tmp_path) == whole
    assert tr.rank(model(), train=TRAIN, test=TEST, depth=2, checkpoint=tmp_path).depth == 2


def test_several_scorers_have_folders_of_their_own(tmp_path: Path) -> None:
    both = {"one": tr.Factors(USERS, ITEMS), "two": tr.Factors(USERS, -ITEMS)}
    for _ in range(2):
        assert tr.rank(both, test=TEST, checkpoint=tmp_path) == tr.rank(both, test=TEST)


def test_nothing_held_out(tmp_path: Path) -> None:
    assert len(tr.rank(np.eye(3), test=[[], [], []], checkpoint=tmp_path)) == 0


def rows(users: Ints) -> AnyArray:
    return USERS[users] @ ITEMS.T


def other_rows(users: Ints) -> AnyArray:
    return USERS[users] @ ITEMS.T * 2


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"scorer": tr.Factors(USERS, ITEMS + 1e-9)}, "`scorer`"),
        ({"scorer": tr.Factors(USERS, ITEMS, np.zeros(90))}, "`scorer`"),
        ({"train": [*TRAIN[:-1], [1]]}, "`train`"),
        ({"test": [*TEST[:-1], [1]]}, "`test`"),
        ({"scorer": -USERS @ ITEMS.T, "train": TRAIN[::-1]}, "`scorer`, `train`"),
    ],
)
def test_other_inputs_are_refused(tmp_path: Path, change: dict[str, Any], named: str) -> None:
    given: dict[str, Any] = {"scorer": tr.Factors(USERS, ITEMS), "train": TRAIN, "test": TEST, "checkpoint": tmp_path}
    tr.rank(**given)
    with pytest.raises(tr.InputError, match=f"was begun with another {named}; finish that job with"):
        tr.rank(**given | change)
    tr.rank(**given)


def test_other_functions_are_refused(tmp_path: Path) -> None:
    given: dict[str, Any] = {"test": tr.Interactions.of(TEST, "test", n_items=90), "checkpoint": tmp_path}
    tr.rank(rows, **given)
    tr.rank(rows, **given)
    with pytest.raises(tr.InputError, match="another `scorer`"):
        tr.rank(other_rows, **given)


def test_refusals(tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match="`checkpoint` is for ranks among all items without a `store`"):
        tr.rank(rows, test=TEST, candidates=TEST, checkpoint=tmp_path)
    (tmp_path / "file").touch()
    with pytest.raises(tr.InputError, match="is not a directory"):
        tr.rank(USERS @ ITEMS.T, test=TEST, checkpoint=tmp_path / "file")
    tr.rank(USERS @ ITEMS.T, test=TEST, checkpoint=tmp_path / "parts")
    (part, *_) = (tmp_path / "parts").glob("*.npz")
    part.write_bytes(part.read_bytes()[:100])
    with pytest.raises(tr.InputError, match="is damaged; delete it, and it is computed again"):
        tr.rank(USERS @ ITEMS.T, test=TEST, checkpoint=tmp_path / "parts")


RUN = """
import contextlib, importlib, os, signal, sys
import numpy as np
import truerank as tr
from truerank.cli.program import truerank as program
from truerank.scoring import checkpoints

checkpoints.users_per_block = lambda n_items: 5
output, n_kills, *command = sys.argv[1:]

def run(*arguments):
    try:
        program.main([*command, *arguments])
    except SystemExit as end:
        return end.code or 0

# what is needed is loaded before kills begin; a fork runs it, because after Arrow has started threads a fork may hang
reading, writing = os.pipe()
if not os.fork():
    code = run("-o", "whole" + output)
    with os.fdopen(writing, "w") as pipe:
        pipe.write("\\n".join(sys.modules))
    os._exit(code)
os.close(writing)
for name in os.fdopen(reading).read().split():
    with contextlib.suppress(ImportError):
        importlib.import_module(name)
assert os.wait()[1] == 0
rng = np.random.default_rng(0)
killed = 0
while killed < int(n_kills):
    wait = rng.uniform(0.004, 0.06)
    if not (child := os.fork()):
        # ends the process as SIGKILL does, after so much of its own time, however busy the computer is
        signal.setitimer(signal.ITIMER_PROF, wait)
        code = run("-o", output, "--resume", "--threads", "1")
        os._exit(code)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status) or status == 0, status
    if os.WIFSIGNALED(status):
        killed += 1
        if os.path.exists(output):
            assert open(output, "rb").read() == open("whole" + output, "rb").read()
    else:
        assert open(output, "rb").read() == open("whole" + output, "rb").read()
        os.remove(output)
assert run("-o", output, "--resume") == 0
assert open(output, "rb").read() == open("whole" + output, "rb").read()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("command", "output"), [("rank", "ranks.parquet"), ("recommend", "lists.csv")])
def test_killed_at_any_moment(tmp_path: Path, command: str, output: str) -> None:
    """Forty kills each; files are the same bytes as of a run that was not killed, and nothing else is left behind."""
    np.save(tmp_path / "users.npy", USERS)
    np.save(tmp_path / "items.npy", ITEMS)
    for name, lists in (("train", TRAIN), ("test", TEST)):
        pairs = [f"{user}\t{item}" for user, own in enumerate(lists) for item in own]
        (tmp_path / f"{name}.tsv").write_text("\n".join(["user_id\titem_id", *pairs]))
    arguments = [command, "--factors", "users.npy", "items.npy", "--train", "train.tsv"]
    arguments += ["--test", "test.tsv"] if command == "rank" else ["-k", "5"]
    before = {path.name for path in tmp_path.iterdir()}
    done = subprocess.run(
        [sys.executable, "-c", RUN, output, "40", *arguments],
        cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert {path.name for path in tmp_path.iterdir()} - before == {output, f"whole{output}"}


def test_the_command_line_refuses(tmp_path: Path) -> None:
    np.save(tmp_path / "users.npy", USERS)
    np.save(tmp_path / "items.npy", ITEMS)
    (tmp_path / "test.tsv").write_text("0\t1\n1\t5\n")
    files = ["--factors", tmp_path / "users.npy", tmp_path / "items.npy", "--test", tmp_path / "test.tsv"]
    assert "--resume needs a file as --output" in refusal("rank", *files, "-o", "-", "--resume")
    assert "--resume is for the local engine" in refusal(
        "rank", *files, "-o", tmp_path / "out.npz", "--resume", "--engine", "spark"
    )
    output = tmp_path / "out.npz"
    tr.rank(tr.Factors(USERS, -ITEMS), test=[[1], [5]], checkpoint=f"{output}.checkpoint")
    assert "was begun with another" in refusal("rank", *files, "-o", output, "--resume")
    assert not output.exists()
    done = run_here("rank", *files, "-o", output)
    assert done.exit_code == 0, done.output
