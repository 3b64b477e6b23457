"""The exception for input that can't be used, and how notes count things."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager

_LINE = re.compile(r"^(?:\S*\.)?InputError: (.+)$", re.MULTILINE)


class InputError(ValueError):
    """Input that can't be used; the message is one sentence: what is wrong, where, and what is allowed."""

    __module__ = "truerank"  # where callers find it, as tracebacks say


@contextmanager
def raised_elsewhere() -> Iterator[None]:
    r"""Raise the `InputError` of another process as one of this process; engines pass on its traceback only.

    Examples
    --------
    >>> with raised_elsewhere():
    ...     raise RuntimeError("Traceback:\n  in line 3\ntruerank.InputError: `k` must be at least 1, got 0.")
    Traceback (most recent call last):
    ...
    truerank.InputError: `k` must be at least 1, got 0.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if (found := _LINE.search(str(error))) is None:
            raise
        raise InputError(found[1]) from error


def counted(number: int, one: str, many: str) -> str:
    """Return the number with the singular or plural wording.

    Examples
    --------
    >>> counted(1, "user has", "users have"), counted(3, "user has", "users have")
    ('1 user has', '3 users have')
    """
    return f"{number} {one if number == 1 else many}"


def by_name(notes: Mapping[str, Iterable[str]]) -> tuple[str, ...]:
    """Return all notes once; one that does not apply to all starts with the names of those it applies to.

    Examples
    --------
    >>> by_name({"A": ["few users", "ties"], "B": ["few users"]})
    ('few users', 'A: ties')
    """
    about: dict[str, list[str]] = {}
    for name, own in notes.items():
        for note in dict.fromkeys(own):
            about.setdefault(note, []).append(name)
    return tuple(note if len(names) == len(notes) else f"{', '.join(names)}: {note}" for note, names in about.items())
