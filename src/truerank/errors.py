"""The exception for input that can't be used."""

import re
from collections.abc import Iterator
from contextlib import contextmanager

_LINE = re.compile(r"^(?:\S*\.)?InputError: (.+)$", re.MULTILINE)


class InputError(ValueError):
    """Input that can't be used; the message is one sentence: what is wrong, where, and what is allowed."""


@contextmanager
def raised_elsewhere() -> Iterator[None]:
    r"""Raise the `InputError` of another process as one of this process; engines pass on its traceback only.

    Examples
    --------
    >>> with raised_elsewhere():
    ...     raise RuntimeError("Traceback:\n  in line 3\ntruerank.errors.InputError: `k` must be at least 1, got 0.")
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: `k` must be at least 1, got 0.
    """
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if (found := _LINE.search(str(error))) is None:
            raise
        raise InputError(found[1]) from error
