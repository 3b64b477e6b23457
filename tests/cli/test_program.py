"""How commands are found, and what a process says and returns when something goes wrong."""

import fcntl
import io
import os
import re
import resource
import stat
import subprocess
import sys
import termios
import threading
import time
import warnings
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

import truerank as tr
from tests.cli.running import refusal, run_here, truerank
from truerank.cli import program
from truerank.cli.output import _COLOURED, buffered

COMMANDS = [
    "audit",
    "check-evaluator",
    "compare",
    "consistency",
    "correct",
    "data",
    "evaluate",
    "explore",
    "gate",
    "lists",
    "marp",
    "plan",
    "rank",
    "recommend",
    "report",
    "reproduce",
    "sample",
]


def test_commands_are_found_in_the_files_of_the_folder() -> None:
    assert program.truerank.list_commands(click.Context(program.truerank)) == COMMANDS


def test_version_tells_which_loops_run() -> None:
    done = truerank("--version", TRUERANK_LOOPS="numpy")
    assert re.fullmatch(r"truerank 0\S+\nPython 3\S+, numpy \S+, scipy \S+, pyarrow \S+, loops numpy\n", done.stdout)
    done = truerank("--version", TRUERANK_LOOPS="fast")
    assert (done.returncode, done.stdout) == (2, "")
    assert "TRUERANK_LOOPS must be one of" in done.stderr


def test_no_command_of_that_name() -> None:
    done = truerank("evalute")
    assert (done.returncode, done.stdout) == (2, "")
    assert "No such command 'evalute'. Did you mean 'evaluate'?" in done.stderr
    assert "Did you mean" not in truerank("xyzzy").stderr


def columns(width: int, *arguments: object, color: bool = False, **env: str) -> str:
    done = CliRunner().invoke(program.truerank, [*map(str, arguments)], env={"COLUMNS": str(width), **env}, color=color)
    assert done.exit_code == 0, done.output
    return done.output


def test_what_is_shown_fits_the_terminal(toy: dict[str, Path], tmp_path: Path) -> None:
    (tmp_path / "groups.csv").write_text(
        "id,group\n" + "".join(f"{u},{'few' if u % 2 else 'many'}\n" for u in range(5))
    )
    for name, path in toy.items():
        run_here("sample", path, "-m", "100", "--seed", "1", "-o", tmp_path / f"sampled-{name}.parquet")
    sampled = [tmp_path / f"sampled-{name}.parquet" for name in toy]
    for arguments in (
        ["evaluate", *toy.values(), "-m", "ndcg@10,recall@10,ap,auc,precision@100"],
        ["evaluate", *toy.values(), "-m", "ndcg@10,recall@10,ap", "--by", tmp_path / "groups.csv"],
        ["compare", *toy.values(), "-m", "ndcg@10,ap", "--margin", "0.2"],
        ["compare", *toy.values(), "-m", "ap", "--by", tmp_path / "groups.csv"],
        ["compare", *sampled, "-m", "ndcg@10,ndcg@10~bv(0.1)"],
        ["correct", *sampled, "-m", "ndcg@10~bv(0.1),ap~bv(0.1),recall@10~cls"],
        ["plan", toy["A"], toy["B"], "-m", "ap"],
        ["audit", "X=recall@10:0.66", "Y=recall@10:0.56", "--sampled", "100", "--candidates", "3706", "--users", "60"],
        ["consistency", *toy.values(), "-m", "ap"],
    ):
        words = set(columns(1_000, *arguments).split())
        for width in (60, 80):
            narrow = columns(width, *arguments)
            assert max(map(len, narrow.splitlines())) <= width, narrow
            rest = re.sub(r"^note: left out to fit: .*(\n  .*)*", "", narrow, flags=re.MULTILINE)
            assert words >= set(rest.split()), "no word is broken"


def test_colour_only_where_it_is_wanted(toy: dict[str, Path]) -> None:
    arguments = ["evaluate", toy["A"], "-m", "ap"]
    plain = columns(80, *arguments)
    assert "note:" in plain
    assert "\x1b" not in plain
    assert "\x1b[33mnote:\x1b[0m" in columns(80, *arguments, color=True)
    assert columns(80, *arguments, color=True, NO_COLOR="1") == plain


def test_a_long_word_is_searched_once_for_what_is_coloured() -> None:
    """Searching from each of its letters on would take hours."""
    assert _COLOURED.sub("", "x" * 1_000_000 + "\nB is better") == "x" * 1_000_000 + "\n"


def package(folder: Path, code: str) -> dict[str, str]:
    """Install a package with a command `hello` into a folder, and return the environment to find it."""
    (folder / "greetings.py").write_text(code)
    facts = folder / "greetings-1.0.dist-info"
    facts.mkdir()
    (facts / "METADATA").write_text("Metadata-Version: 2.1\nName: greetings\nVersion: 1.0\n")
    (facts / "entry_points.txt").write_text("[truerank.commands]\nhello = greetings:hello\n")
    return {"PYTHONPATH": f"{folder}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"}


def test_a_command_from_outside(tmp_path: Path) -> None:
    code = """
import click, truerank as tr

@click.command()
@click.option("--times", "k", type=int, default=1)
def hello(k):
    "Greet the world."
    if k > 2:
        raise tr.InputError("`k` must be at most 2.")
    click.echo("hello " * k)
"""
    env = package(tmp_path, code)
    assert truerank("hello", "--times", "2", **env).stdout == "hello hello \n"
    assert "Greet the world." in truerank("--help", **env).stdout
    refused = truerank("hello", "--times", "3", **env)
    assert (refused.returncode, refused.stderr) == (2, "truerank: --times must be at most 2.\n")


def test_a_command_from_outside_that_does_not_load(tmp_path: Path) -> None:
    env = package(tmp_path, "raise RuntimeError('no world')")
    done = truerank("hello", **env)
    message = "truerank: the command 'hello' (greetings:hello) can't be loaded: no world\n"
    assert (done.returncode, done.stderr) == (2, message)
    assert truerank("evaluate", "--help", **env).returncode == 0


@pytest.fixture
def ranks(tmp_path: Path) -> Path:
    tr.Ranks.from_ranks(range(1, 5_001), n=10_000).save(tmp_path / "ranks.npz")
    return tmp_path / "ranks.npz"


@pytest.fixture(params=["", "1"], ids=["buffered", "unbuffered"])
def unbuffered(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Set PYTHONUNBUFFERED for new processes, as containers do, or remove it."""
    monkeypatch.setenv("PYTHONUNBUFFERED", request.param)


def into(output: int, *arguments: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "truerank", *map(str, arguments)]
    return subprocess.run(command, stdout=output, stderr=subprocess.PIPE, check=False)


@pytest.mark.usefixtures("unbuffered")
@pytest.mark.parametrize("arguments", [["evaluate", "-m", "ap"], ["--help"], ["evaluate", "--help"]])
def test_a_reader_that_has_left_is_not_an_error_to_talk_about(ranks: Path, arguments: list[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    done = into(write, *arguments, *([] if "--help" in arguments else [ranks]))
    os.close(write)
    assert (done.returncode, done.stderr) == (141, b"")


MANY = ["-m", ",".join(f"recall@{k}" for k in range(1, 60)), "-f", "csv"]


@pytest.mark.usefixtures("unbuffered")
@pytest.mark.parametrize("arguments", [MANY, ["-m", "ap", "--per-instance", "-"]], ids=["text", "file"])
def test_a_reader_that_leaves_early(ranks: Path, arguments: list[str]) -> None:
    read, write = os.pipe()
    size = fcntl.fcntl(write, fcntl.F_SETPIPE_SZ, 4096)
    command = [sys.executable, "-m", "truerank", "evaluate", str(ranks), *arguments]
    process = subprocess.Popen(command, stdout=write, stderr=subprocess.PIPE)
    os.close(write)
    while int.from_bytes(fcntl.ioctl(read, termios.FIONREAD, bytes(4)), sys.byteorder) < size:
        assert process.poll() is None
        time.sleep(0.01)
    os.close(read)  # the system has taken a part, and will take no more
    process.communicate()
    assert process.returncode == 141


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave processes out of `make coverage` that may not write a file as large as its own."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


@pytest.mark.usefixtures("unbuffered", "unmeasured")
@pytest.mark.parametrize("arguments", [MANY, ["-m", "ap", "--per-instance", "-"]], ids=["text", "file"])
def test_a_disk_that_fills_up(ranks: Path, tmp_path: Path, arguments: list[str]) -> None:
    with (tmp_path / "out").open("wb") as out:
        done = subprocess.run(
            [sys.executable, "-m", "truerank", "evaluate", str(ranks), *arguments],
            preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (3_000, 3_000)),
            stdout=out,
            stderr=subprocess.PIPE,
            check=False,
        )
    assert done.returncode == 2
    assert done.stderr.endswith(b"truerank: can't write the output: File too large.\n")


class Slow(io.RawIOBase):
    """A file that takes a few bytes at a time."""

    def __init__(self) -> None:
        self.taken = b""

    def writable(self) -> bool:
        return True

    def write(self, content: object, /) -> int:
        part = bytes(memoryview(content))[:5]  # type: ignore[arg-type]
        self.taken += part
        return len(part)


def test_a_file_that_takes_a_part_at_a_time() -> None:
    raw = Slow()
    unbuffered = io.TextIOWrapper(raw, "utf-8", write_through=True)  # type: ignore[type-var]
    click.echo("all of this text", file=buffered(unbuffered))
    assert raw.taken == b"all of this text\n"


@pytest.mark.usefixtures("unbuffered")
@pytest.mark.parametrize("arguments", [["evaluate", "-m", "ap"], ["--help"]])
def test_standard_output_that_is_full(ranks: Path, arguments: list[str]) -> None:
    with Path("/dev/full").open("wb") as full:
        done = into(full.fileno(), *arguments, *([] if "--help" in arguments else [ranks]))
    message = b"truerank: can't write the output: No space left on device.\n"
    assert (done.returncode, done.stderr) == (2, message)


def test_what_was_computed_is_printed_even_if_it_cannot_be_written(ranks: Path, factors: list[object]) -> None:
    message = "truerank: '/dev/full': No space left on device.\n"
    done = truerank("evaluate", ranks, "-m", "ap", "--per-instance", "/dev/full")
    assert (done.returncode, done.stderr) == (2, message)
    assert "0.0018" in done.stdout
    done = truerank(*factors, "-o", "/dev/full")
    assert (done.returncode, done.stderr) == (2, message)
    assert done.stdout.startswith("Ranks(2 instances, 2 relevant items")


@pytest.mark.usefixtures("unmeasured")
def test_a_full_disk_leaves_the_earlier_file(ranks: Path, tmp_path: Path) -> None:
    out = tmp_path / "values.csv"
    out.write_text("earlier")
    done = subprocess.run(
        [sys.executable, "-m", "truerank", "evaluate", str(ranks), "-m", "ap", "--per-instance", str(out)],
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, 10_000)),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, f"truerank: {str(out)!r}: File too large.\n")
    assert "0.0018" in done.stdout
    assert out.read_text() == "earlier"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["ranks.npz", "values.csv"]


def test_a_named_pipe_is_written_to(ranks: Path, tmp_path: Path) -> None:
    fifo, lines = tmp_path / "values.csv", []
    os.mkfifo(fifo)
    reader = threading.Thread(target=lambda: lines.extend(fifo.read_text().splitlines()))
    reader.start()
    done = truerank("evaluate", ranks, "-m", "ap", "--per-instance", fifo)
    reader.join()
    assert done.returncode == 0, done.stderr
    assert len(lines) == 5_001
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_too_little_memory_is_one_sentence(toy: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def consistency(*_: object, **__: object) -> None:
        raise MemoryError

    monkeypatch.setattr(tr, "consistency", consistency)
    message = "there is not enough memory for this input."
    assert refusal("consistency", toy["A"], toy["B"], "-m", "ap") == message


def test_warnings_are_notes(toy: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    found = tr.consistency({name: tr.Ranks.load(toy[name]) for name in "AB"}, "ap")

    def consistency(*_: object, **__: object) -> tr.Consistency:
        warnings.warn("this takes long.", RuntimeWarning, stacklevel=1)
        return found

    monkeypatch.setattr(tr, "consistency", consistency)
    with warnings.catch_warnings():
        warnings.simplefilter("default")
        done = run_here("consistency", toy["A"], toy["B"], "-m", "ap")
    assert (done.exit_code, done.stdout, done.stderr) == (0, f"{found}\n", "note: this takes long.\n")


def test_an_error_of_our_own_is_not_hidden(toy: dict[str, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    def consistency(*_: object, **__: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(tr, "consistency", consistency)
    done = run_here("consistency", toy["A"], toy["B"], "-m", "ap")
    assert isinstance(done.exception, ZeroDivisionError)


BROKEN = """
import truerank.cli
from truerank.cli import {module}
def broken(*_, **__): raise ZeroDivisionError("a bug")
{module}.{name} = broken
truerank.cli.main(["--help"])
"""


@pytest.mark.parametrize(
    ("module", "name"),
    [("program", "buffered"), ("program", "_own_commands"), ("interruption", "end_soon_after_interrupt")],
)
def test_an_error_of_our_own_is_no_verdict(module: str, name: str) -> None:
    code = BROKEN.format(module=module, name=name)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (70, "")
    assert done.stderr.startswith("Traceback")
    assert done.stderr.endswith("ZeroDivisionError: a bug\n")


def test_standard_input_that_is_closed() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "truerank", "evaluate", "-", "-m", "ap"],
        preexec_fn=lambda: os.close(0),
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (2, "truerank: can't read standard input: it is closed.\n")


def test_a_file_of_definitions_that_exits(ranks: Path, tmp_path: Path) -> None:
    (tmp_path / "metrics.py").write_text("import sys\nsys.exit(1)\n")
    sentence = refusal("evaluate", ranks, "-m", "ap", "--define", tmp_path / "metrics.py")
    assert sentence.endswith("metrics.py' fails in line 2: SystemExit: 1")


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shell_completion(shell: str) -> None:
    assert "truerank" in truerank(_TRUERANK_COMPLETE=f"{shell}_source").stdout


def test_shell_completion_of_metrics() -> None:
    done = truerank(_TRUERANK_COMPLETE="bash_complete", COMP_WORDS="truerank evaluate -m nd", COMP_CWORD="3")
    assert "ndcg" in done.stdout
