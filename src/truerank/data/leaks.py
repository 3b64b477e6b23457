"""Checks for leaks: pairs that are in both parts, and training events later than held-out ones."""

from __future__ import annotations

from typing import Literal

import numpy as np

from truerank.arrays import Bools
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.notes import counted

Order = Literal["user", "all"]


def check_pairs(train: Interactions, test: Interactions) -> None:
    """Raise `InputError` if a user-item pair is in both."""
    shared = train.contains(test)
    if both := int(shared.sum()):
        at = int(np.argmax(shared))
        first = f"user {test.names[test.users[at]]} with item {test.item_names[test.items[at]]}"
        raise InputError(f"{counted(both, 'pair is', 'pairs are')} both in train and in test, first {first}.")


def check_times(train: Interactions, test: Interactions, within: Order) -> None:
    """Raise `InputError` if a training event is later than a held-out one of the same user, or of any user."""
    if train.times is None or test.times is None:
        raise InputError("`train` and `test` must both have times for their order to be checked.")
    late = later(train, test, within)
    if late.any():
        user = train.names[train.users[np.argmax(late)]]
        whose = "of the same user " if within == "user" else ""
        events = counted(int(late.sum()), "training event is", "training events are")
        raise InputError(f"{events} later than a held-out event {whose}(first user {user}).")


def later(train: Interactions, test: Interactions, within: Order) -> Bools:
    """Return for each training event whether it is later than a held-out one; all False without times."""
    trained, held = train.times, test.times
    if trained is None or held is None or not trained.size or not held.size:
        return np.zeros(train.items.size, dtype=np.bool_)
    if within == "all":
        return trained > held.min()
    with_test = np.flatnonzero(np.diff(test.indptr))
    first = np.full(train.n_users, trained.max())
    first[with_test] = np.minimum.reduceat(held, test.indptr[with_test])
    return trained > first[train.users]
