"""How many threads to use, and how to share work among them."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import Any, NamedTuple, TypeVar

import numpy as np

from truerank.errors import InputError

Task = TypeVar("Task")
Result = TypeVar("Result")

_PATIENCE = 0.5  # seconds to wait for threads after an interrupt; later they end by themselves
_WAIT = 0.2  # seconds until an interrupt is noticed if it does not end the wait, as on Windows


def available_threads() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None) -> int:
    """Return the requested number of threads, or the number available if it is None.

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


def share(
    run: Callable[[Task, Event], Result],
    tasks: Sequence[Task],
    threads: int,
    done: Callable[[Result], object] | None = None,
) -> list[Result]:
    """Run all tasks, and return their results in order.

    With one thread or one task, everything runs in the calling thread. Otherwise that thread only waits, so
    that it can be interrupted at any time.

    Parameters
    ----------
    run : callable
        Takes a task, and an event that is set once the result is no longer needed.
    tasks : sequence
    threads : int
    done : callable, optional
        Called with each result as soon as it is available, always in the calling thread.

    Raises
    ------
    Exception
        The exception of the first task, in order, that failed.

    Examples
    --------
    >>> share(lambda number, stopped: number**2, [1, 2, 3], threads=2)
    [1, 4, 9]
    """
    report = done or (lambda result: None)
    if threads == 1 or len(tasks) <= 1:
        return list(_run_here(run, tasks, report))
    waiting, stopped = deque(enumerate(tasks)), Event()
    finished: SimpleQueue[_Finished] = SimpleQueue()
    arguments = (run, waiting, finished, stopped)
    workers = [Thread(target=_work, args=arguments, daemon=True) for _ in range(min(threads, len(tasks)))]
    try:
        for worker in workers:
            worker.start()
        return _collect(finished, len(workers), report)
    except BaseException:
        waiting.clear()
        stopped.set()
        for worker in filter(Thread.is_alive, workers):
            worker.join(_PATIENCE / len(workers))
        raise


class _Finished(NamedTuple):
    """The outcome of the task with this number; the number -1 means that a thread has ended."""

    number: int
    result: Any = None
    error: BaseException | None = None


def _run_here(run: Callable[[Any, Event], Any], tasks: Sequence[Any], report: Callable[[Any], object]) -> Iterator[Any]:
    never = Event()
    for task in tasks:
        result = run(task, never)
        report(result)
        yield result


def _work(
    run: Callable[[Any, Event], Any], waiting: deque[tuple[int, Any]], finished: SimpleQueue[_Finished], stopped: Event
) -> None:
    """Run the tasks that are still waiting, one after another."""
    while waiting:
        try:
            number, task = waiting.popleft()
        except IndexError:  # another thread was faster
            break
        try:
            finished.put(_Finished(number, run(task, stopped)))
        except BaseException as error:
            waiting.clear()  # the tasks before it are finished
            finished.put(_Finished(number, error=error))
    finished.put(_Finished(-1))


def _collect(finished: SimpleQueue[_Finished], n_workers: int, report: Callable[[Any], object]) -> list[Any]:
    """Wait for all threads to end; return the results in order, or raise the first error."""
    found: dict[int, _Finished] = {}
    while n_workers:
        try:
            one = finished.get(timeout=_WAIT)
        except Empty:
            continue
        if one.number < 0:
            n_workers -= 1
            continue
        found[one.number] = one
        if one.error is None:
            report(one.result)
    for number in sorted(found):
        if (error := found[number].error) is not None:
            raise error
    return [found[number].result for number in sorted(found)]
