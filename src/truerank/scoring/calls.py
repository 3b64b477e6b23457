"""Calls of a scoring function of pairs: in batches, several at a time, repeated where they fail, ended if they hang."""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from threading import Event, Lock, Thread
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints, as_number, check_whole, to_numpy
from truerank.core.threads import share

if TYPE_CHECKING:
    import asyncio

Keep = Callable[[Ints, AnyArray], object]
"""Takes the positions of pairs and their scores as soon as a call has returned them, in whichever thread made it."""

_AT_ONCE = 16  # calls of an async function
_PER_CALL = 100  # pairs, where the scores of each call are kept or several calls run at a time
_FIRST_PAUSE, _LONGEST_PAUSE = 0.5, 60.0  # seconds
_GIVE_UP = 20  # pairs in a row that fail
_SHOWN = 3  # pairs in a message
_WAIT = 0.2  # seconds until a call that waits notices that it is no longer needed


class ScoringError(RuntimeError):
    """Pairs that could not be scored after all repetitions; nothing is put in their place.

    Attributes
    ----------
    pairs : tuple of (user, item)
        Their ids, or their numbers if they have none.
    """

    __module__ = "truerank"  # where callers find it, as tracebacks say

    def __init__(self, message: str, pairs: Sequence[tuple[Any, Any]] = ()) -> None:
        super().__init__(message)
        self.pairs = tuple(pairs)


class Failure(NamedTuple):
    """The position of a pair that could not be scored, and the last exception."""

    position: int
    error: Exception


def failed(failures: Sequence[Failure], users: AnyArray, items: AnyArray, more: str) -> ScoringError:
    """Return the error for some of these pairs, which names the first ones; `more` says what happens to the others."""
    ordered = sorted(failures, key=lambda each: each.position)
    places = np.array([each.position for each in ordered])
    pairs = list(zip(users[places].tolist(), items[places].tolist(), strict=True))
    shown = [
        f"user {user!r} and item {item!r} ({_described(each.error)})"
        for (user, item), each in zip(pairs[:_SHOWN], ordered, strict=False)
    ]
    dots = ", ..." if len(pairs) > _SHOWN else ""
    return ScoringError(f"{len(pairs)} of {users.size} pairs have no score: {', '.join(shown)}{dots}; {more}", pairs)


def _described(error: Exception) -> str:
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


@dataclass(frozen=True)
class Calls:
    """How a function ``score(users, items)`` is called; it may be ``async``.

    Attributes
    ----------
    function : callable
    batch_size : int, optional
        Largest number of pairs in one call. None: all at once, or 100 if smaller calls have an advantage.
    concurrency : int, optional
        Calls at a time. None: 16 for an async function, otherwise 1, by the calling thread.
    retries : int
        How often a call that raised an exception is repeated, after pauses of 0.5, 1, 2, ... seconds. Then its pairs
        are asked for one by one, and those that fail are put aside. 0: the exception ends everything.
    timeout : float, optional
        Seconds after which a call has failed.
    """

    function: Callable[..., Any]
    batch_size: int | None = None
    concurrency: int | None = None
    retries: int = 0
    timeout: float | None = None

    def __post_init__(self) -> None:
        for name in ("batch_size", "concurrency"):
            if getattr(self, name) is not None:
                check_whole(name, getattr(self, name))
        check_whole("retries", self.retries, 0)
        if self.timeout is not None and not 0 < as_number(self.timeout) < np.inf:
            raise InputError(f"`timeout` must be a number of seconds above 0, got {self.timeout!r}.")

    @property
    def at_once(self) -> int:
        """Calls at a time."""
        return self.concurrency or (_AT_ONCE if is_async(self.function) else 1)

    def run(self, users: Ints, items: Ints, keep: Keep | None) -> tuple[AnyArray, list[Failure]]:
        """Return the scores of all pairs, NaN where there is none, and the pairs that failed.

        Scores of each call are passed to `keep` at once, so that they survive an exception in another call.
        """
        eager = keep is not None or self.at_once > 1
        size = self.batch_size or (_PER_CALL if eager else max(items.size, 1))
        parts = [np.arange(start, min(start + size, items.size)) for start in range(0, items.size, size)]
        run = _Run(self, users, items, keep)
        found = share(run.ask, parts, self.at_once)
        scores = np.concatenate([np.zeros(0, np.float32), *(one for one, _ in found)])
        return scores, [failure for _, failures in found for failure in failures]


class _Run:
    """One round of calls; counts how many pairs in a row have failed."""

    def __init__(self, calls: Calls, users: Ints, items: Ints, keep: Keep | None) -> None:
        self.calls, self.users, self.items = calls, users, items
        self.keep = keep or (lambda positions, scores: None)
        self.lock, self.in_a_row = Lock(), 0

    def ask(self, part: Ints, stopped: Event) -> tuple[AnyArray, list[Failure]]:
        """Return the scores of some pairs, and those that failed."""
        try:
            scores = self._repeated(part, stopped)
        except InputError:
            raise
        except Exception as error:
            if not self.calls.retries:
                raise
            return self._one_by_one(part, stopped, error)
        self.in_a_row = 0
        self.keep(part, scores)
        return scores, []

    def _one_by_one(self, part: Ints, stopped: Event, error: Exception) -> tuple[AnyArray, list[Failure]]:
        if part.size > 1:
            found = [self.ask(one, stopped) for one in np.split(part, part.size)]
            return np.concatenate([one for one, _ in found]), [failure for _, own in found for failure in own]
        failure = Failure(int(part[0]), error)
        with self.lock:
            self.in_a_row += 1
        if self.in_a_row >= _GIVE_UP:
            what = f"no more are asked for, since {_GIVE_UP} pairs in a row have failed."
            raise failed([failure], self.users, self.items, what) from error
        return np.full(1, np.nan), [failure]

    def _repeated(self, part: Ints, stopped: Event) -> AnyArray:
        pause = _FIRST_PAUSE
        for left in range(self.calls.retries, -1, -1):
            try:
                return self._checked(self._once(part, stopped), part)
            except InputError:
                raise
            except Exception:
                if not left or stopped.wait(pause):
                    raise
                pause = min(2 * pause, _LONGEST_PAUSE)
        raise AssertionError

    def _once(self, part: Ints, stopped: Event) -> Any:
        function, timeout = self.calls.function, self.calls.timeout
        users, items = self.users[part], self.items[part]
        if timeout is not None and not is_async(function):
            return _in_time(lambda: function(users, items), timeout)
        given = function(users, items)
        return _awaited(given, timeout, stopped) if inspect.isawaitable(given) else given

    def _checked(self, given: Any, part: Ints) -> AnyArray:
        scores = to_numpy(given, "scores")
        if scores.ndim == 0 and part.size == 1:
            return scores.reshape(1)
        if scores.shape != part.shape:
            raise InputError(f"the scorer must return one score per pair ({part.size}), got shape {scores.shape}.")
        return scores


def is_async(function: Callable[..., Any]) -> bool:
    """Whether a function, or an object that can be called like one, has to be awaited.

    Examples
    --------
    >>> async def ask(users, items): ...
    >>> is_async(ask), is_async(len)
    (True, False)
    """
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def _awaited(given: Awaitable[Any], timeout: float | None, stopped: Event) -> Any:
    """Wait for the result of an async function, which runs in its own loop: the caller may be inside another."""
    import asyncio

    async def wait() -> Any:
        return await asyncio.wait_for(given, timeout)

    future = asyncio.run_coroutine_threadsafe(wait(), _loop(os.getpid()))
    while True:
        try:
            return future.result(_WAIT)
        except TimeoutError as error:
            if future.done() and future.exception() is error:
                raise _too_long(timeout) from None
            if stopped.is_set():
                future.cancel()
                raise
        except BaseException:
            future.cancel()
            raise


@functools.cache
def _loop(_process: int) -> asyncio.AbstractEventLoop:
    """Return the loop of this process: one for all calls, since clients keep connections that belong to their loop."""
    import asyncio

    loop = asyncio.new_event_loop()
    Thread(target=loop.run_forever, name="calls of async functions", daemon=True).start()
    return loop


def _in_time(call: Callable[[], Any], timeout: float) -> Any:
    """Call in another thread, which is abandoned if it takes too long."""
    found: list[Any] = []

    def run() -> None:
        try:
            found.append((call(), None))
        except BaseException as error:
            found.append((None, error))

    thread = Thread(target=run, daemon=True)
    thread.start()
    thread.join(timeout)
    if not found:
        raise _too_long(timeout)
    result, error = found[0]
    if error is not None:
        raise error
    return result


def _too_long(timeout: float | None) -> TimeoutError:
    return TimeoutError(f"no answer within {timeout:g} s" if timeout else "no answer in time")
