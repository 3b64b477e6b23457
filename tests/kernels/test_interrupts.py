"""Ctrl-C on a terminal, while threads count and the progress bar is drawn."""

import os
import random
import select
import sys
import time

import pytest

from tests.patience import HANGS

pty = pytest.importorskip("pty", reason="pseudo-terminals need Unix")
termios = pytest.importorskip("termios")

TIMES = 100
SCRIPT = """
import sys, time
import numpy as np, scipy.sparse as sp, tqdm
import truerank as tr
from truerank.kernels import scores

# Python drops an interrupt that comes in a destructor, and says so; it has to be repeated
sys.unraisablehook = lambda dropped: print("DROPPED", repr(dropped), flush=True)

# the bar is drawn from the beginning and after every user, each of which is a block
plain = tqdm.tqdm
tqdm.tqdm = lambda *given, **options: plain(*given, **{**options, "delay": 0, "mininterval": 0, "miniters": 1})
scores.SCORES_PER_BLOCK = 100

def slow(users):
    time.sleep(0.001)
    return np.zeros((len(users), 100))

test = sp.csr_array((np.ones(10**5), (np.arange(10**5), np.zeros(10**5, int))), shape=(10**5, 100))
tr.rank(slow, test=test[:9])  # imports what it needs
while True:
    print("READY", flush=True)
    try:
        tr.rank(slow, test=test, threads=4, progress=True)
    except KeyboardInterrupt:
        print("INTERRUPTED", flush=True)
"""


class Terminal:
    """What a process writes to its terminal."""

    def __init__(self, file: int) -> None:
        self.file, self.unread = file, b""
        termios.tcsetwinsize(file, (24, 80))

    def wait_for(self, *words: bytes, before: bytes = b"\0") -> bytes:
        """Read up to one of these words, which must come before another one; return it."""
        while not (found := [word for word in words if word in self.unread]):
            assert before not in self.unread, self.unread[:500]
            assert select.select([self.file], [], [], HANGS)[0], f"none of {words}, but {self.unread[-500:]!r}"
            self.unread += os.read(self.file, 2**16)
        first = min(found, key=self.unread.index)
        self.unread = self.unread.partition(first)[2]
        return first

    def interrupt(self) -> None:
        os.write(self.file, b"\x03")  # the terminal makes an interrupt of it


def test_none_of_a_hundred_interrupts_hangs() -> None:
    rng = random.Random(0)
    child, file = pty.fork()
    if child == 0:
        os.execv(sys.executable, [sys.executable, "-c", SCRIPT])
    try:
        terminal = Terminal(file)
        for _ in range(TIMES):
            terminal.wait_for(b"READY")
            terminal.wait_for(b"users:")  # the bar is there
            time.sleep(rng.uniform(0, 0.03))
            terminal.interrupt()
            while terminal.wait_for(b"INTERRUPTED", b"DROPPED", before=b"READY") == b"DROPPED":
                terminal.interrupt()
    finally:
        os.kill(child, 9)
        os.waitpid(child, 0)
        os.close(file)
