"""How many threads and how much memory to use, how to share work among threads, and a bar that shows its progress."""

from __future__ import annotations

import itertools
import os
import re
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar, copy_context
from functools import cache, wraps
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Event, Thread
from typing import TYPE_CHECKING, Any, NamedTuple, ParamSpec, Self, TypeVar, cast

from truerank.core.checks import InputError, check_whole

if TYPE_CHECKING:
    from tqdm import tqdm

Task = TypeVar("Task")
Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")
Memory = str | int
"""A size as text, such as "2GB", or a number of bytes."""

_PATIENCE = 0.5  # seconds to wait for threads after an interrupt; later they end by themselves
_ADDRESSES_PER_THREAD = 72 << 20  # which Linux reserves for the heap and the stack of a thread
_WAIT = 0.2  # seconds until an interrupt is noticed if it does not end the wait, as on Windows


def available_threads() -> int:
    """Return the number of processors that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def check_threads(threads: int | None) -> int:
    """Return the requested number of threads, or the number available if it is None; fewer if addresses are scarce.

    Examples
    --------
    >>> check_threads(3)
    3
    """
    if threads is not None:
        check_whole("threads", threads)
    wanted = available_threads() if threads is None else int(threads)
    return max(min([wanted, *(left // 2 // _ADDRESSES_PER_THREAD for left in _addresses_left())]), 1)


def _addresses_left() -> Iterator[int]:
    """Yield how many bytes this process may add to its address space, if that is limited, as by ``ulimit -v``."""
    with suppress(OSError):  # only Linux says how large it is
        for limit in _of_address_space():
            yield limit - int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")


_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}
_SIZE = re.compile(r"([0-9]{1,18}(?:\.[0-9]{0,9})?) ?([kmgt]?i?)b?", re.IGNORECASE | re.ASCII)
_LEAST = 2 * 10**8
"""Any less would not hold a block of scores and what is computed from it."""
_limit: ContextVar[int | None] = ContextVar("memory", default=None)


def check_memory(memory: Memory) -> int:
    """Return a size in bytes.

    Examples
    --------
    >>> check_memory("2GB"), check_memory("1.5 GiB"), check_memory(500_000_000)
    (2000000000, 1610612736, 500000000)
    """
    found = _SIZE.fullmatch(memory) if isinstance(memory, str) else None
    if found is not None and found[2].lower() in _UNITS:
        size = int(float(found[1]) * _UNITS[found[2].lower()])
    else:
        size = memory if isinstance(memory, int) and not isinstance(memory, bool) else 0
    if size < _LEAST:
        raise InputError(f"`memory` must be a size of at least {_LEAST // 10**6} MB, such as '2GB', got {memory!r}.")
    return size


def bounded(function: Callable[Arguments, Result]) -> Callable[Arguments, Result]:
    """Let the keyword `memory` of a function bound the memory that it and everything it calls use."""

    @wraps(function)
    def call(*args: Arguments.args, **options: Arguments.kwargs) -> Result:
        with memory_bound(cast("Memory | None", options.get("memory"))):
            return function(*args, **options)

    return call


@contextmanager
def memory_bound(memory: Memory | None) -> Iterator[None]:
    """Bound the memory used inside the block, unless `memory` is None; work that does not fit raises `InputError`."""
    token = _limit.set(_limit.get() if memory is None else check_memory(memory))
    try:
        yield
    except MemoryError as error:
        reason = str(error).rstrip(".") or "none is left"
        raise InputError(f"this needs more memory than is available ({reason}).") from error
    finally:
        _limit.reset(token)


def memory_limit() -> int:
    """Return how many bytes may be used: as many as the caller allows, or else half of the total memory."""
    return _limit.get() or max(total_memory() // 2, _LEAST)


def fitting(most: int, each: int) -> int:
    """Return how many of `most` things, such as threads, fit into memory together if each takes `each` bytes.

    Examples
    --------
    >>> with memory_bound("1GB"):
    ...     fitting(16, 300_000_000), fitting(2, 300_000_000)
    (3, 2)
    """
    require_memory(each, "a single block")
    return min(most, memory_limit() // max(each, 1))


def require_memory(size: int, what: str) -> None:
    """Raise `InputError` if something does not fit into the memory that may be used."""
    if size > (limit := memory_limit()):
        raise InputError(f"{what} needs {_megabytes(size)}, but `memory` is {_megabytes(limit)}.")


def _megabytes(size: int) -> str:
    return f"{size / 10**6:,.0f} MB"


@cache
def total_memory() -> int:
    """Return how many bytes this process can have: those of the computer, or fewer within a container or limits."""
    return min([_installed(), *_of_control_groups(Path("/")), *_of_address_space()])


def _installed() -> int:
    if sys.platform != "win32":
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    import ctypes

    kilobytes = ctypes.c_ulonglong()
    ctypes.windll.kernel32.GetPhysicallyInstalledSystemMemory(ctypes.byref(kilobytes))
    return kilobytes.value << 10


def _of_control_groups(root: Path) -> Iterator[int]:
    """Yield the limits of the control groups of Linux, version 1 or 2, that this process is in, and of those above."""
    with suppress(OSError):
        for line in (root / "proc/self/cgroup").read_text().splitlines():
            _, controllers, path = line.split(":", 2)
            if "memory" in controllers.split(","):
                yield from _limits_above(root / "sys/fs/cgroup/memory", path, "memory.limit_in_bytes")
            elif not controllers:
                yield from _limits_above(root / "sys/fs/cgroup", path, "memory.max")


def _limits_above(base: Path, path: str, name: str) -> Iterator[int]:
    own = base / path.strip("/")
    for folder in (own, *own.parents):
        with suppress(OSError, ValueError):  # "max" means no limit; a container does not see the folders outside
            if folder.is_relative_to(base):
                yield int((folder / name).read_text())


def _of_address_space() -> Iterator[int]:
    with suppress(ImportError):  # Windows
        import resource

        limit = resource.getrlimit(resource.RLIMIT_AS)[0]
        if limit != resource.RLIM_INFINITY:
            yield limit


def progress_bar(
    what: str, shown: bool, work: Iterable[Any] | None = None, *, delay: float = 0.5, **options: Any
) -> tqdm[Any]:
    """Return a progress bar, shown on a terminal only, and only if the work takes longer than the delay.

    Parameters
    ----------
    what : str
        What is counted.
    shown : bool
        False: nothing is counted, and tqdm is not imported.
    work : iterable, optional
        Iterable to loop over; without it the caller updates the bar.
    delay : float
        Seconds.
    **options
        Other options of tqdm, such as `total`.

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
    """Stand-in for a bar that is not shown."""

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
        `run` takes. Meant for work that must not run in several threads at a time.

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
    workers = [
        Thread(target=copy_context().run, args=(_work, run, queues, stopped), daemon=True) for _ in range(n_workers)
    ]
    try:
        n_started = sum(1 for _ in itertools.takewhile(_start, workers))
        if not n_started:
            raise MemoryError("no thread can be started")
        results = _collect(queues, prepared, len(tasks) if prepare is None else n_started + 1, report)
    except BaseException:
        stopped.set()
        queues.end(n_workers)
        for worker in filter(Thread.is_alive, workers):
            worker.join(_PATIENCE / n_workers)
        raise
    queues.end(n_workers)
    return results


def _start(worker: Thread) -> bool:
    """Start a thread; return whether there was room for it.

    An interrupt while its lock is taken, which CPython reports as an error, remains an interrupt.
    """
    try:
        worker.start()
    except RuntimeError as error:
        if isinstance(error.__context__, KeyboardInterrupt):
            raise error.__context__ from None
        if "can't start new thread" not in str(error):
            raise
        return False
    return True


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
    """Keep `ahead` tasks queued for the threads until all are done; return results in order, or raise the first error.

    When a task fails, all before it have been started, so they are waited for.
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
