"""The one exception that means "what you gave me can't be used"."""


class InputError(ValueError):
    """Input that can't be used; the message is one sentence: what, where, and what is allowed."""
