"""Waiting for what must happen, however busy the computer is."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

HANGS = 900.0
"""Seconds after which something that should have happened never will; no test depends on less."""


@contextmanager
def no_new_threads() -> Iterator[None]:
    """Check that threads which start inside come to an end; those of earlier tests may end meanwhile."""
    before = set(threading.enumerate())
    yield
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(HANGS)
    assert not any(map(threading.Thread.is_alive, started))
