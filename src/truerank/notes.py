"""Wording of notes and messages: numbers with their nouns, and what a note is about."""

from collections.abc import Iterable, Mapping


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
