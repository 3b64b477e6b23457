"""Whether training reveals what is held out: pairs in both parts, and training events that come later."""

from __future__ import annotations

from typing import Literal

import numpy as np

from truerank.arrays import Bools
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.notes import counted

Order = Literal["user", "all"]


def check_pairs(train: Interactions, test: Interactions) -> None:
    """Raise `InputError` if a pair of user and item is in both."""
    shared = train.contains(test)
    if both := int(shared.sum()):
        at = int(np.argmax(shared))
        first = f"user {test.names[test.users[at]]} with item {test.item_names[test.items[at]]}"
        raise InputError(f"{counted(both, 'pair is', 'pairs are')} both in train and in test, first {first}.")


def check_times(train: Interactions, test: Interactions, within: Order) -> None:
    """Raise `InputError` if a training event is later than a held-out one, of its user or of any."""
    if train.times is None or test.times is None:
        raise InputError("whether events are in order can't be checked without their times.")
    late = later(train, test, within)
    if late.any():
        user = train.names[train.users[np.argmax(late)]]
        whose = "of its user " if within == "user" else ""
        events = counted(int(late.sum()), "training event is", "training events are")
        raise InputError(f"{events} later than a held-out event {whose}(first user {user}).")


def later(train: Interactions, test: Interactions, within: Order) -> Bools:
    """Return for each training event whether it is later than a held-out one; all False without times."""
    learned, held = train.times, test.times
    if learned is None or held is None or not learned.size or not held.size:
        return np.zeros(train.items.size, dtype=np.bool_)
    if within == "all":
        return learned > held.min()
    with_test = np.flatnonzero(np.diff(test.indptr))
    first = np.full(train.n_users, learned.max())
    first[with_test] = np.minimum.reduceat(held, test.indptr[with_test])
    return learned > first[train.users]
