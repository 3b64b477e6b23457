"""The exception for input that can't be used."""


class InputError(ValueError):
    """Input that can't be used; the message is one sentence: what is wrong, where, and what is allowed."""
