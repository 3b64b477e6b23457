"""Ctrl-C ends the process within a second, even while compiled code or another thread is busy."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time

INTERRUPTED = 128 + signal.SIGINT
"""Exit code of a process that Ctrl-C has ended."""

_SECONDS = 0.4
"""Time to remove temporary files and to stop threads."""


def end_soon_after_interrupt() -> None:
    """Start a thread that waits for Ctrl-C for the rest of this process.

    Python raises `KeyboardInterrupt` only once the main thread is back in Python code, and waits for all other threads
    before it exits; both may take long. Libraries lose signals: pyarrow handles them itself while it reads a CSV file,
    and forgets one that comes late. So the signal is blocked in all other threads, passed on to the main thread, and
    soon afterwards this thread ends the process.
    """
    if os.name == "posix" and signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        sys.unraisablehook = _report_all_but_interrupts
        signal.signal(_passed_on(), signal.default_int_handler)
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        threading.Thread(target=_wait, name="interruption", daemon=True).start()


def _wait() -> None:
    main = threading.main_thread().ident
    signal.sigwait({signal.SIGINT})
    if main is not None:
        signal.pthread_kill(main, _passed_on())
    time.sleep(_SECONDS)
    os._exit(INTERRUPTED)


def _passed_on() -> int:
    """Return a signal that nothing else uses; not every system has real-time signals."""
    return getattr(signal, "SIGRTMIN", signal.SIGUSR1)


def _report_all_but_interrupts(what: sys.UnraisableHookArgs) -> None:
    """Be silent if Ctrl-C came in a callback of a compiled library, which can't raise an exception."""
    if not issubclass(what.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(what)
