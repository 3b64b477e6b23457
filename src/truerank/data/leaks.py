"""Whether something that is held out can be learned from: pairs in both parts, and events out of order."""

from __future__ import annotations

from typing import Literal

import numpy as np
import scipy.sparse as sp

from truerank.data.interactions import Interactions
from truerank.errors import InputError


def check_pairs(train: Interactions, test: Interactions) -> None:
    """Raise `InputError` if a pair of user and item is in both."""
    if both := int(train.overlap(test).sum()):
        pairs = "1 pair is" if both == 1 else f"{both} pairs are"
        raise InputError(f"{pairs} both in train and in test, first {_first_shared(train, test)}.")


def check_times(train: Interactions, test: Interactions, within: Literal["user", "all"]) -> None:
    """Raise `InputError` if a training event is later than a held-out one, of its user or of any."""
    learned, held = train.times, test.times
    if learned is None or held is None:
        raise InputError("whether events are in order can't be checked without their times.")
    if not learned.size or not held.size:
        return
    if within == "all":
        limit = np.full(learned.size, held.min())
    else:
        with_test = np.flatnonzero(np.diff(test.indptr))
        first = np.full(train.n_users, learned.max())
        first[with_test] = np.minimum.reduceat(held, test.indptr[with_test])
        limit = first[train.users]
    if late := int((learned > limit).sum()):
        user = train.names[train.users[np.argmax(learned > limit)]]
        whose = "of its user " if within == "user" else ""
        events = "1 training event is" if late == 1 else f"{late} training events are"
        raise InputError(f"{events} later than a held-out event {whose}(first user {user}).")


def _first_shared(train: Interactions, test: Interactions) -> str:
    both = sp.coo_array(train.matrix.astype(np.bool_).multiply(test.matrix.astype(np.bool_)))
    return f"user {train.names[both.row[0]]} with item {train.item_names[both.col[0]]}"
