"""Ctrl-C ends the process within a second, even while compiled code or another thread is busy."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

INTERRUPTED = 128 + signal.SIGINT
"""Exit code of a process that Ctrl-C has ended."""

_SECONDS = 0.7
"""Time to remove temporary files and to stop threads."""


def end_soon_after_interrupt() -> None:
    """Start to watch for Ctrl-C, for the rest of this process.

    Python raises `KeyboardInterrupt` only once the main thread is back in Python code, and waits for all other threads
    before it exits. Both may take long, so after a moment the process is ended from here.
    """
    if os.name != "posix" or signal.getsignal(signal.SIGINT) is not signal.default_int_handler:
        return
    sys.unraisablehook = _report_all_but_interrupts
    read, write = os.pipe()
    os.set_blocking(write, False)
    signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    threading.Thread(target=_watch, args=(read,), name="interruption", daemon=True).start()


def _report_all_but_interrupts(what: sys.UnraisableHookArgs) -> None:
    """Be silent if Ctrl-C came in a callback of a compiled library, which can't raise."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)


def _watch(signals: int) -> None:
    """Wait for the number of the signal, which Python writes here at once."""
    while os.read(signals, 1) != bytes([signal.SIGINT]):
        pass
    time.sleep(_SECONDS)
    os._exit(INTERRUPTED)
