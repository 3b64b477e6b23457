"""How many threads to work with, and how to share work among them."""

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

_PATIENCE = 0.5  # seconds for threads to end after an interrupt; after that they end by themselves
_WAIT = 0.2  # seconds after which an interrupt is noticed where it does not end waiting, as on Windows


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


def share(
    run: Callable[[Task, Event], Result],
    tasks: Sequence[Task],
    threads: int,
    done: Callable[[Result], object] | None = None,
) -> list[Result]:
    """Run all tasks, and return their results in order.

    With one thread, or one task, everything happens in the calling thread. Otherwise that thread only waits,
    so that it can be interrupted at any time.

    Parameters
    ----------
    run : callable
        Takes a task, and an event that is set when the result is no longer wanted.
    tasks : sequence
    threads : int
    done : callable, optional
        Is given each result when it is there; always called in the calling thread.

    Raises
    ------
    Exception
        That of the first task, in their order, of those that failed.

    Examples
    --------
    >>> share(lambda number, stopped: number**2, [1, 2, 3], threads=2)
    [1, 4, 9]
    """
    tell = done or (lambda result: None)
    if threads == 1 or len(tasks) <= 1:
        return list(_run_here(run, tasks, tell))
    waiting, stopped = deque(enumerate(tasks)), Event()
    finished: SimpleQueue[_Finished] = SimpleQueue()
    arguments = (run, waiting, finished, stopped)
    workers = [Thread(target=_work, args=arguments, daemon=True) for _ in range(min(threads, len(tasks)))]
    try:
        for worker in workers:
            worker.start()
        return _collect(finished, len(workers), tell)
    except BaseException:
        waiting.clear()
        stopped.set()
        for worker in filter(Thread.is_alive, workers):
            worker.join(_PATIENCE / len(workers))
        raise


class _Finished(NamedTuple):
    """What became of the task at this place; a place of -1 means that a thread has ended."""

    place: int
    result: Any = None
    error: BaseException | None = None


def _run_here(run: Callable[[Any, Event], Any], tasks: Sequence[Any], tell: Callable[[Any], object]) -> Iterator[Any]:
    never = Event()
    for task in tasks:
        result = run(task, never)
        tell(result)
        yield result


def _work(
    run: Callable[[Any, Event], Any], waiting: deque[tuple[int, Any]], finished: SimpleQueue[_Finished], stopped: Event
) -> None:
    """Run the tasks that are still waiting, one after the other."""
    while waiting:
        try:
            place, task = waiting.popleft()
        except IndexError:  # another thread was faster
            break
        try:
            finished.put(_Finished(place, run(task, stopped)))
        except BaseException as error:
            waiting.clear()  # the tasks before it are finished
            finished.put(_Finished(place, error=error))
    finished.put(_Finished(-1))


def _collect(finished: SimpleQueue[_Finished], n_workers: int, tell: Callable[[Any], object]) -> list[Any]:
    """Wait for all threads to end; return the results in order, or raise the first error."""
    found: dict[int, _Finished] = {}
    while n_workers:
        try:
            one = finished.get(timeout=_WAIT)
        except Empty:
            continue
        if one.place < 0:
            n_workers -= 1
            continue
        found[one.place] = one
        if one.error is None:
            tell(one.result)
    for place in sorted(found):
        if (error := found[place].error) is not None:
            raise error
    return [found[place].result for place in sorted(found)]
