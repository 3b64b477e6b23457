"""Which users to rank, if not all: a random sample, or given ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Bools, Ints
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.notes import counted
from truerank.sampling.designs import Rng

Users = int | Sequence[Any] | AnyArray
"""A number of users to draw, or the ids of users."""


def choose_users(test: Interactions, users: Users, rng: Rng) -> tuple[Bools, tuple[str, ...]]:
    """Return which held-out entries belong to the chosen users, and a note.

    Parameters
    ----------
    test : Interactions
        Held-out items.
    users : int, or list of ids
        How many users with held-out items to draw, all of them if there are fewer; or which ones.
    rng : int or numpy.random.Generator, optional
        Seed of the draw.

    Examples
    --------
    >>> test = Interactions.of([[0], [1], [], [0, 1]], "test")
    >>> choose_users(test, [3], None)
    (array([False, False,  True,  True]), ('1 of 3 users was ranked, as chosen',))
    """
    held = np.flatnonzero(np.diff(test.indptr))
    if isinstance(users, int | np.integer) and not isinstance(users, bool):
        if users < 1:
            raise InputError(f"`users` must be a number from 1, or the ids of users, got {users}.")
        rows = np.sort(np.random.default_rng(rng).choice(held, min(int(users), held.size), replace=False))
        how = "drawn at random"
    else:
        rows, how = _find(test, held, np.asarray(users)), "as chosen"
    kept = np.isin(test.users, rows)
    words = (f"of {held.size} users was ranked, {how}", f"of {held.size} users were ranked, {how}")
    return kept, () if rows.size == held.size else (counted(rows.size, *words),)


def _find(test: Interactions, held: Ints, ids: AnyArray) -> Ints:
    """Return the rows of the given users, all of whom must have held-out items."""
    names = test.names[held]
    if ids.ndim != 1 or ids.size == 0:
        raise InputError("`users` must be a number from 1, or a list of ids.")
    if (names.dtype.kind == "U") != (ids.dtype.kind in "UOT"):
        raise InputError(f"`users` must be ids such as {names.tolist()[0]!r}, got {ids.tolist()[0]!r}.")
    if np.any(unknown := ~np.isin(ids.astype(names.dtype) if ids.dtype.kind in "OT" else ids, names)):
        raise InputError(f"`users` must have held-out items, but {ids[unknown].tolist()[0]!r} has none.")
    return held[np.isin(names, ids)]
