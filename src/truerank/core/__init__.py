"""What everything else builds on: ranks, checks, tables, text forms, threads, and the error for invalid input."""


class InputError(ValueError):
    """Input that can't be used; the message is one sentence: what is wrong, where, and what is allowed."""

    __module__ = "truerank"  # where callers find it; shown in tracebacks
