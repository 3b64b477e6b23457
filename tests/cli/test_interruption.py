"""Ctrl-C on a terminal: no traceback, exit code 130, and soon, whatever is going on."""

import os
import pty
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.patience import HANGS

START = """
import os, sys, truerank.cli
from truerank.cli import interruption

interruption._SECONDS = float(sys.argv.pop(1))

def watch(start=interruption.end_soon_after_interrupt):
    start()
    os.write(1, b"READY")

interruption.end_soon_after_interrupt = watch
truerank.cli.main(sys.argv[1:])
"""
"""Runs the command line with so much time to end, and tells when it has taken over from Python's own start."""

METRIC = """
import hashlib, threading, time, truerank as tr

@tr.register
def slow(rank, i, n_relevant, n):
    print("WORKING", flush=True)
    {}
    return 1 / rank
"""
WORK = {
    "Python": "time.sleep(10**6)",
    "compiled code": "while True: hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
    "many threads": "[threading.Thread(target=time.sleep, args=(10**6,)).start() for _ in range(9)]; time.sleep(10**6)",
    "a destructor": "type('A', (), {'__del__': lambda self: time.sleep(10**6)})(); time.sleep(10**6)",
    "a deaf function": "\n    while True:\n        try: time.sleep(10**6)\n        except KeyboardInterrupt: pass",
}
"""None of it ends by itself."""

AT_ONCE, AT_LEISURE = 0.4, 60.0
"""Seconds to end: as in the program; and so many that a busy computer has time to remove files."""


class Terminal:
    """A process on a terminal of its own, to which keys can be sent."""

    def __init__(self, seconds: float, *arguments: object) -> None:
        self._keys, terminal = pty.openpty()
        self.output = b""
        command = [sys.executable, "-c", START, str(seconds), *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, preexec_fn=_take_terminal
        )
        os.close(terminal)
        self._guard = threading.Timer(HANGS, self.process.kill)
        self._guard.start()

    def press_ctrl_c(self) -> None:
        os.write(self._keys, b"\x03")

    def wait_for(self, word: bytes) -> None:
        while word not in self.output:
            part = self._read()
            assert part, f"no {word!r}, but {self.output!r}"
            self.output += part

    def end(self) -> int:
        """Return the exit code."""
        while part := self._read():
            self.output += part
        return self.process.wait()

    def close(self) -> None:
        self._guard.cancel()
        self.process.kill()
        self.process.wait()
        os.close(self._keys)

    def _read(self) -> bytes:
        try:
            return os.read(self._keys, 1 << 16)
        except OSError:  # the other end is closed
            return b""


def _take_terminal() -> None:
    """Make standard input the controlling terminal, whose Ctrl-C is a signal."""
    import fcntl
    import termios

    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # which a shell lets its background jobs ignore


@contextmanager
def running(*arguments: object, seconds: float = AT_LEISURE) -> Iterator[Terminal]:
    terminal = Terminal(seconds, *arguments)
    try:
        yield terminal
    finally:
        terminal.close()


def check_end(terminal: Terminal) -> None:
    assert terminal.end() == 130, terminal.output
    assert b"Traceback" not in terminal.output


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_whatever_is_going_on(tmp_path: Path, work: str) -> None:
    (tmp_path / "slow.py").write_text(METRIC.format(work))
    tr.Ranks.from_ranks([1, 2], n=9).save(tmp_path / "ranks.npz")
    arguments = ["evaluate", tmp_path / "ranks.npz", "-m", "slow", "--define", tmp_path / "slow.py"]
    with running(*arguments, seconds=AT_ONCE) as terminal:
        terminal.wait_for(b"WORKING")
        time.sleep(0.1)
        terminal.press_ctrl_c()
        check_end(terminal)


def test_files_can_be_removed_first(tmp_path: Path) -> None:
    inside = 'print("INSIDE", flush=True); time.sleep(10**6)'
    work = f"\n    try: {inside}\n    finally: open({str(tmp_path / 'removed')!r}, 'w').close()"
    (tmp_path / "slow.py").write_text(METRIC.format(work))
    tr.Ranks.from_ranks([1, 2], n=9).save(tmp_path / "ranks.npz")
    with running("evaluate", tmp_path / "ranks.npz", "-m", "slow", "--define", tmp_path / "slow.py") as terminal:
        terminal.wait_for(b"INSIDE")
        terminal.press_ctrl_c()
        check_end(terminal)
    assert (tmp_path / "removed").exists()


@pytest.fixture(scope="module")
def factors(tmp_path_factory: pytest.TempPathFactory) -> list[object]:
    """Return `rank` with work for many seconds, and a progress bar."""
    folder, rng = tmp_path_factory.mktemp("factors"), np.random.default_rng(0)
    np.save(folder / "users.npy", rng.normal(size=(200_000, 64)).astype(np.float32))
    np.save(folder / "items.npy", rng.normal(size=(50_000, 64)).astype(np.float32))
    lines = [f"{user}\t{item}\n" for user, item in enumerate(rng.integers(50_000, size=200_000).tolist())]
    (folder / "test.tsv").write_text("user\titem\n" + "".join(lines))
    options = ["--test", folder / "test.tsv", "-o", folder / "ranks.npz"]
    return ["rank", "--factors", folder / "users.npy", folder / "items.npy", *options]


@pytest.mark.parametrize("delay", [0.0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.8, 1.2, 2.0])
def test_at_any_moment_with_progress(factors: list[object], delay: float) -> None:
    with running(*factors) as terminal:
        terminal.wait_for(b"READY")
        time.sleep(delay)
        terminal.press_ctrl_c()
        check_end(terminal)
    folder = Path(str(factors[-1])).parent
    assert {path.name for path in folder.iterdir()} == {"users.npy", "items.npy", "test.tsv"}


def test_impatient_users(factors: list[object]) -> None:
    with running(*factors) as terminal:
        terminal.wait_for(b"READY")
        time.sleep(0.5)
        for _ in range(5):
            terminal.press_ctrl_c()
            time.sleep(0.01)
        check_end(terminal)


def test_termination_is_left_to_the_system(factors: list[object]) -> None:
    with running(*factors) as terminal:
        terminal.wait_for(b"READY")
        time.sleep(0.5)
        terminal.process.send_signal(signal.SIGTERM)
        assert terminal.end() == -signal.SIGTERM


def test_a_process_that_was_told_to_ignore_ctrl_c_does_so(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(METRIC.format("time.sleep(0.1)"))
    tr.Ranks.from_ranks([1, 2], n=9).save(tmp_path / "ranks.npz")
    arguments = ["evaluate", tmp_path / "ranks.npz", "-m", "slow", "--define", tmp_path / "slow.py"]
    process = subprocess.Popen(
        [sys.executable, "-m", "truerank", *map(str, arguments)],
        stdout=subprocess.PIPE,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN),
    )
    assert process.stdout is not None
    assert process.stdout.readline() == b"WORKING\n"
    process.send_signal(signal.SIGINT)
    assert b"0.7500" in process.communicate()[0]
    assert process.returncode == 0
