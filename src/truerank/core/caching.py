"""Results that are kept for the next call, up to a total number of bytes; `clear` forgets them."""

from __future__ import annotations

import sys
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import fields, is_dataclass
from functools import wraps
from threading import Lock
from typing import Any, ParamSpec, TypeVar

import numpy as np

LIMIT = 1 << 26
"""Bytes that all functions together may keep: 64 MiB."""

# keys hold thousands of them
_PLAIN = frozenset((int, float, str, type(None)))
_COLLECTIONS = (tuple, list, frozenset, set)

P = ParamSpec("P")
R = TypeVar("R")


class _Key(tuple[Any, ...]):
    """A tuple that is hashed once: a key may hold thousands of cases."""

    def __hash__(self) -> int:
        if "hash" not in vars(self):
            vars(self)["hash"] = super().__hash__()
        return vars(self)["hash"]


class Cache:
    """Values by key; the least recently used are forgotten when together they take more bytes than allowed."""

    def __init__(self, limit: int) -> None:
        self.limit, self.size = limit, 0
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = Lock()

    def get(self, key: Hashable, compute: Callable[[], R]) -> R:
        """Return the value of a key; if there is none, compute it, and keep it unless it alone is too large."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key][0]
        value = compute()
        if (size := size_of((key, value))) <= self.limit:
            with self._lock:
                self.size += size - self._entries.pop(key, (None, 0))[1]
                self._entries[key] = value, size
                while self.size > self.limit:
                    self.size -= self._entries.popitem(last=False)[1][1]
        return value

    def clear(self) -> None:
        """Forget everything."""
        with self._lock:
            self._entries.clear()
            self.size = 0


_CACHE = Cache(LIMIT)


def cached(function: Callable[P, R]) -> Callable[P, R]:
    """Cache the results of a function whose arguments are hashable and whose results are never modified.

    Examples
    --------
    >>> @cached
    ... def square(x):
    ...     print("computed")
    ...     return x * x
    >>> square(3), square(3)
    computed
    (9, 9)
    """

    @wraps(function)
    def found(*args: P.args, **kwargs: P.kwargs) -> R:
        key = _Key((function, args, tuple(kwargs.items())))
        return _CACHE.get(key, lambda: function(*args, **kwargs))

    return found


def clear() -> None:
    """Forget the tables that corrections, bounds and laws have kept, at most 64 MiB of them."""
    _CACHE.clear()


def size_of(value: Any) -> int:
    """Return roughly how many bytes a value takes, including everything that it holds.

    Examples
    --------
    >>> size_of((np.zeros(1_000), {"a": np.zeros(500)})) // 1_000
    12
    """
    if type(value) in _PLAIN:
        return sys.getsizeof(value)
    if isinstance(value, np.ndarray):
        # a view keeps the whole array
        return int((value if value.base is None else np.asarray(value.base)).nbytes)
    if isinstance(value, tuple) and _PLAIN.issuperset(map(type, value)):
        return sys.getsizeof(value) + sum(map(sys.getsizeof, value))
    return sys.getsizeof(value) + sum(map(size_of, _parts(value)))


def _parts(value: Any) -> Iterable[Any]:
    if isinstance(value, _COLLECTIONS):
        return value
    if isinstance(value, Mapping):
        return [*value, *value.values()]
    if is_dataclass(value) and not isinstance(value, type):
        return [getattr(value, field.name) for field in fields(value)]
    return ()
