"""Ctrl-C on a terminal: no traceback, exit code 130, within a second, whatever is going on."""

import os
import pty
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

import truerank as tr

START = """
import os, sys, truerank.cli
from truerank.cli import interruption

def watch(start=interruption.end_soon_after_interrupt):
    start()
    os.write(1, b"READY")

interruption.end_soon_after_interrupt = watch
truerank.cli.main(sys.argv[1:])
"""
"""Runs the command line, and tells when it has taken over from Python's own start."""

METRIC = """
import hashlib, threading, time, truerank as tr

@tr.register_metric
def slow(rank, i, n_relevant, n):
    print("WORKING", flush=True)
    {}
    return 1 / rank
"""
WORK = {
    "Python": "time.sleep(60)",
    "compiled code": "hashlib.pbkdf2_hmac('sha256', b'', b'', 10**9)",
    "many threads": "[threading.Thread(target=time.sleep, args=(60,)).start() for _ in range(9)]; time.sleep(60)",
    "a destructor": "type('A', (), {'__del__': lambda self: time.sleep(60)})(); time.sleep(60)",
    "a deaf function": "\n    while True:\n        try: time.sleep(60)\n        except KeyboardInterrupt: pass",
}


class Terminal:
    """A process on a terminal of its own, to which keys can be sent."""

    def __init__(self, *arguments: object) -> None:
        self._keys, terminal = pty.openpty()
        self.output = b""
        command = [sys.executable, "-c", START, *map(str, arguments)]
        self.process = subprocess.Popen(
            command, stdin=terminal, stdout=terminal, stderr=terminal, start_new_session=True, preexec_fn=_take_terminal
        )
        os.close(terminal)

    def press_ctrl_c(self) -> None:
        os.write(self._keys, b"\x03")

    def wait_for(self, word: bytes) -> None:
        while word not in self.output:
            self.output += self._read()

    def end(self) -> tuple[int, float]:
        """Return the exit code and how long it took."""
        start = time.perf_counter()
        while part := self._read():
            self.output += part
        code = self.process.wait(timeout=30)
        os.close(self._keys)
        return code, time.perf_counter() - start

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
def running(*arguments: object) -> Iterator[Terminal]:
    terminal = Terminal(*arguments)
    try:
        yield terminal
    finally:
        if terminal.process.poll() is None:
            terminal.process.kill()


def check_end(terminal: Terminal) -> None:
    code, seconds = terminal.end()
    assert code == 130, terminal.output
    assert b"Traceback" not in terminal.output
    assert seconds < 1.5  # a second, and some patience with a busy machine


@pytest.mark.parametrize("work", WORK.values(), ids=list(WORK))
def test_whatever_is_going_on(tmp_path: Path, work: str) -> None:
    (tmp_path / "slow.py").write_text(METRIC.format(work))
    tr.Ranks.from_ranks([1, 2], n=9).save(tmp_path / "ranks.npz")
    with running("evaluate", tmp_path / "ranks.npz", "-m", "slow", "--define", tmp_path / "slow.py") as terminal:
        terminal.wait_for(b"WORKING")
        time.sleep(0.1)
        terminal.press_ctrl_c()
        check_end(terminal)


def test_files_can_be_removed_first(tmp_path: Path) -> None:
    inside = 'print("INSIDE", flush=True); time.sleep(60)'
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
        assert terminal.end()[0] == -signal.SIGTERM


def test_a_process_that_was_told_to_ignore_ctrl_c_does_so(tmp_path: Path) -> None:
    (tmp_path / "slow.py").write_text(METRIC.format("time.sleep(1)"))
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
