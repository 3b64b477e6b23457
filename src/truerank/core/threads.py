"""How many threads to use, how to share work among them, and a bar that shows its progress."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar, cast

from truerank.core.checks import check_whole

if TYPE_CHECKING:
    from tqdm import tqdm

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
    check_whole("threads", threads)
    return int(threads)


def progress_bar(
    what: str, shown: bool, work: Iterable[Any] | None = None, *, delay: float = 0.5, **options: Any
) -> tqdm[Any]:
    """Return a bar that counts what is done, shown on a terminal only, and only if it takes longer than the delay.

    Parameters
    ----------
    what : str
        What is counted.
    shown : bool
        False: nothing is counted, and tqdm is not imported.
    work : iterable, optional
        What to loop over; without it the caller updates the bar.
    delay : float
        Seconds.
    **options
        Others of tqdm, such as `total`.

    Examples
    --------
    >>> list(progress_bar("letters", False, "abc"))
    ['a', 'b', 'c']
    """
    if not shown:
        return cast("tqdm[Any]", _Uncounted(work))
    from tqdm import tqdm

    return tqdm(work, desc=what, disable=None, delay=delay, **options)


class _Uncounted:
    """What takes the place of a bar that is not shown."""

    def __init__(self, work: Iterable[Any] | None) -> None:
        self._work: Iterable[Any] = () if work is None else work

    def __iter__(self) -> Iterator[Any]:
        return iter(self._work)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def update(self, done: float = 1) -> None:
        pass

    def clear(self) -> None:
        pass

    def close(self) -> None:
        pass


def share(
    run: Callable[[Task, Event], Result],
    tasks: Sequence[Any],
    threads: int,
    done: Callable[[Result], object] | None = None,
    prepare: Callable[[Any], Task] | None = None,
) -> list[Result]:
    """Run all tasks, and return their results in order.

    With one thread or one task, everything runs in the calling thread. Otherwise that thread only prepares tasks
    and waits, so that it can be interrupted at any time.

    Parameters
    ----------
    run : callable
        Takes a task, as prepared, and an event that is set once the result is no longer needed.
    tasks : sequence
    threads : int
    done : callable, optional
        Called with each result as soon as it is available, always in the calling thread.
    prepare : callable, optional
        Called with each task, in order and always in the calling thread, shortly before it is run; it returns what
        `run` takes. For what must not run in several threads at a time.

    Raises
    ------
    Exception
        The exception of the first task, in order, that failed.

    Examples
    --------
    >>> share(lambda number, stopped: number**2, [1, 2, 3], threads=2)
    [1, 4, 9]
    """
    report, prepared = done or (lambda result: None), tasks if prepare is None else map(prepare, tasks)
    stopped, results = Event(), []
    if threads == 1 or len(tasks) <= 1:
        for task in prepared:
            results.append(run(task, stopped))
            report(results[-1])
        return results
    queues, n_workers = _Queues(), min(threads, len(tasks))
    workers = [Thread(target=_work, args=(run, queues, stopped), daemon=True) for _ in range(n_workers)]
    try:
        for worker in workers:
            _start(worker)
        results = _collect(queues, prepared, len(tasks) if prepare is None else n_workers + 1, report)
    except BaseException:
        stopped.set()
        queues.end(n_workers)
        for worker in filter(Thread.is_alive, workers):
            worker.join(_PATIENCE / n_workers)
        raise
    queues.end(n_workers)
    return results


def _start(worker: Thread) -> None:
    """Start a thread; an interrupt while its lock is taken, which CPython reports as an error, remains an interrupt."""
    try:
        worker.start()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        raise


class _Finished(NamedTuple):
    """The outcome of the task with this number."""

    number: int
    result: Any = None
    error: BaseException | None = None


class _Queues:
    """Tasks with their numbers, where None tells a thread to end, and the outcomes of finished tasks."""

    def __init__(self) -> None:
        self.waiting: SimpleQueue[tuple[int, Any] | None] = SimpleQueue()
        self.finished: SimpleQueue[_Finished] = SimpleQueue()
        self.failed = Event()

    def end(self, n_workers: int) -> None:
        """Let the threads end once they have finished what they run."""
        self.drop()
        for _ in range(n_workers):
            self.waiting.put(None)

    def drop(self) -> int:
        """Discard the tasks that no thread has begun; return how many."""
        number = 0
        with suppress(Empty):
            while True:
                self.waiting.get_nowait()
                number += 1
        return number

    def next_finished(self) -> _Finished:
        while True:
            with suppress(Empty):
                return self.finished.get(timeout=_WAIT)


def _work(run: Callable[[Any, Event], Any], queues: _Queues, stopped: Event) -> None:
    """Run the tasks that are waiting, one after another, until one has failed."""
    while not queues.failed.is_set() and (waiting := queues.waiting.get()) is not None:
        number, task = waiting
        try:
            queues.finished.put(_Finished(number, run(task, stopped)))
        except BaseException as error:
            queues.failed.set()
            queues.finished.put(_Finished(number, error=error))


def _collect(queues: _Queues, tasks: Iterable[Any], ahead: int, report: Callable[[Any], object]) -> list[Any]:
    """Keep `ahead` tasks with the threads until all are done; return the results in order, or raise the first error.

    When a task fails, all before it have been begun, so they are waited for.
    """
    found: dict[int, _Finished] = {}
    supply, n_open = enumerate(tasks), 0
    while True:
        if queues.failed.is_set():
            n_open -= queues.drop()
        else:
            for task in itertools.islice(supply, ahead - n_open):
                queues.waiting.put(task)
                n_open += 1
        if not n_open:
            break
        one = queues.next_finished()
        found[one.number], n_open = one, n_open - 1
        if one.error is None:
            report(one.result)
    in_order = [found[number] for number in sorted(found)]
    for one in in_order:
        if one.error is not None:
            raise one.error
    return [one.result for one in in_order]
