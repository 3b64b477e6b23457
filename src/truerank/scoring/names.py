"""Matches the names of users and items in the data with those of a scorer."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Ints, as_ids
from truerank.errors import InputError


def optional_ids(name: str, given: ArrayLike | None, size: int) -> AnyArray | None:
    """Return names as `as_ids` does, or None if none are given."""
    return None if given is None else as_ids(name, given, size)


def match_names(names: AnyArray, own: AnyArray, needed: Ints, role: str) -> Ints | None:
    """Return the position of each name among the scorer's own names, -1 if it is not there.

    Parameters
    ----------
    names, own : arrays
        Names in the data, and names of the scorer.
    needed : array of int
        Positions of the names that the scorer must have.
    role : {"user", "item"}

    Returns
    -------
    array of int, or None if all names are the same

    Raises
    ------
    InputError
        If a needed name is missing, or the scorer has a name twice.

    Examples
    --------
    >>> import numpy as np
    >>> match_names(np.array(["b", "x", "a"]), np.array(["a", "b"]), np.array([0, 2]), "item").tolist()
    [1, -1, 0]
    """
    if np.array_equal(names, own):
        return None
    order = np.argsort(own, kind="stable")
    ascending = own[order]
    if np.any(twice := ascending[1:] == ascending[:-1]):
        raise InputError(
            f"the scorer's `{role}_ids` must be distinct, got {ascending.tolist()[int(np.argmax(twice))]!r} twice."
        )
    if _is_text(names) != _is_text(own):
        kinds = {True: "text", False: "numbers"}
        raise InputError(
            f"the scorer's `{role}_ids` are {kinds[_is_text(own)]}, such as {_first(own)}, but the data have "
            f"{kinds[_is_text(names)]}, such as {_first(names)}."
        )
    nearest = np.minimum(np.searchsorted(ascending, names), max(own.size - 1, 0))
    found = ascending[nearest] == names if own.size else np.zeros(names.size, dtype=np.bool_)
    if not found[needed].all():
        missing = names.tolist()[int(needed[np.argmin(found[needed])])]
        raise InputError(f"the scorer does not know {role} {missing!r}: it is not among its `{role}_ids`.")
    return np.where(found, order[nearest], -1)


def _is_text(ids: AnyArray) -> bool:
    return ids.dtype.kind in "US"


def _first(ids: AnyArray) -> str:
    return repr(ids.tolist()[0]) if ids.size else "none"
