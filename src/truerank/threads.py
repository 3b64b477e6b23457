"""How many threads to work with."""

import os

import numpy as np

from truerank.errors import InputError


def available_threads() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None) -> int:
    """Return the number of threads that was asked for, or all that are available if it is None.

    Examples
    --------
    >>> check_threads(3)
    3
    """
    if threads is None:
        return available_threads()
    if isinstance(threads, bool) or not isinstance(threads, int | np.integer):
        raise InputError(f"`threads` must be a whole number, got {threads!r}.")
    if threads < 1:
        raise InputError(f"`threads` must be at least 1, got {threads}.")
    return int(threads)
