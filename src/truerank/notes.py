"""Wording of notes and messages that count something."""


def counted(number: int, one: str, many: str) -> str:
    """Return the number with the singular or plural wording.

    Examples
    --------
    >>> counted(1, "user has", "users have"), counted(3, "user has", "users have")
    ('1 user has', '3 users have')
    """
    return f"{number} {one if number == 1 else many}"
