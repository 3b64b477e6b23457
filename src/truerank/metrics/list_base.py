"""What a metric of recommended lists is, and what it may need besides the lists.

A `CountMetric` depends on how often each item is recommended to anybody. It is no mean over users, so it can't be
averaged over batches: counts are added up, and the metric is computed once. A `PerListMetric` has a value for each
list, whose mean over users is reported.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from truerank.arrays import AnyArray, Floats, Ints, refuse_masked
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.lists.recommendations import Recommendations
from truerank.metrics.base import check_cutoff
from truerank.scoring.names import match_names
from truerank.text_forms import Named

GROUPS = 200
"""Groups of users that the jackknife leaves out; they determine a standard error to about 5 %."""
_AT_ONCE = 1 << 22  # counts held at once


@dataclass(frozen=True, eq=False)
class Surroundings:
    """What metrics may need besides the lists, in the numbering of their items.

    Attributes
    ----------
    popularity : array of int, optional
        Training users of each item.
    n_users : int
        Training users.
    n_unlisted : int
        Training items that are not in the catalogue of the lists; they could have been recommended as well.
    vectors : array of shape (n_items, d), optional
        Vectors of length 1, one per item.
    reference : Recommendations, optional
        The lists of another recommender.
    """

    popularity: Ints | None = None
    n_users: int = 0
    n_unlisted: int = 0
    vectors: Floats | None = None
    reference: Recommendations | None = None

    @classmethod
    def of(
        cls,
        lists: Recommendations,
        train: Interactions | None = None,
        vectors: AnyArray | None = None,
        reference: Recommendations | None = None,
    ) -> Surroundings:
        """Return what is given in the numbering of the lists, whose items are matched by name."""
        unit = None if vectors is None else _of_length_one(lists, vectors)
        if train is None:
            return cls(vectors=unit, reference=reference)
        place = match_names(lists.item_ids, train.item_names, np.zeros(0, np.int64), "item")
        n_users = int(np.count_nonzero(np.diff(train.indptr)))
        n_unlisted = 0 if place is None else train.n_items - int(np.count_nonzero(place >= 0))
        return cls(_popularity(lists, train, place), n_users, n_unlisted, unit, reference)


def _popularity(lists: Recommendations, train: Interactions, place: Ints | None) -> Ints:
    counts = np.bincount(train.items, minlength=train.n_items)
    own = counts if place is None else np.where(place < 0, 0, np.append(counts, 0)[place])
    if lists.items.size and not own[lists.items].any():
        raise InputError("no listed item is in `train`: the ids do not match.")
    return own.astype(np.int64)


def _of_length_one(lists: Recommendations, vectors: AnyArray) -> Floats:
    refuse_masked(vectors, "`item_vectors`")
    given = np.asarray(vectors, dtype=np.float64)
    if given.ndim != 2 or len(given) != lists.n_items:
        raise InputError(
            f"`item_vectors` must have one row for each of {lists.n_items} items, got shape {given.shape}."
        )
    lengths = np.linalg.norm(given, axis=1)
    bad = ~((lengths > 0) & np.isfinite(lengths))
    bad[np.setdiff1d(np.arange(lists.n_items), lists.items)] = False  # only the listed ones matter
    if bad.any():
        item = lists.item_ids.tolist()[int(np.argmax(bad))]
        raise InputError(f"`item_vectors` must be finite and not 0, but that of item {item!r} is not.")
    return given / np.where(lengths > 0, lengths, 1)[:, None]


class Measured(NamedTuple):
    """A metric of lists with its standard error."""

    value: float
    standard_error: float
    n: int
    """Lists for which it is defined."""
    is_mean: bool
    """Whether it is a mean over the lists, so that values of different users can be averaged."""


class ListMetric(Named, ABC):
    """A metric of the first k items of lists; subclasses are frozen dataclasses with a `name`.

    It describes the lists and does not judge them: whether more is better depends on what they are for.
    """

    k: int

    def __post_init__(self) -> None:
        check_cutoff(self.name, self.k)

    @abstractmethod
    def measure(self, lists: Recommendations, given: Surroundings) -> Measured:
        """Return the metric of lists that have at most k items."""

    def notes(self, lists: Recommendations, given: Surroundings) -> tuple[str, ...]:
        """What to know before trusting it."""
        return ()


class CountMetric(ListMetric):
    """A metric of how many lists each item is in.

    Its standard error is that of the jackknife, which leaves out one group of users at a time. The bootstrap, which
    draws users with replacement, finds fewer items than as many other users would have: its errors are too small.
    """

    @abstractmethod
    def of_counts(self, counts: Floats) -> Floats:
        """Return the metric of counts, one per item along the last axis."""

    def measure(self, lists: Recommendations, given: Surroundings) -> Measured:
        """Return the metric of all lists, with the error of the jackknife."""
        n_items = lists.n_items + given.n_unlisted
        value = float(self.of_counts(np.bincount(lists.items, minlength=n_items).astype(np.float64)))
        if len(lists) < 2:
            return Measured(value, math.nan, len(lists), is_mean=False)
        without = np.concatenate([self.of_counts(counts) for counts in counts_without(lists, n_items)])
        error = math.sqrt((without.size - 1) * without.var())
        return Measured(value, error, len(lists), is_mean=False)


class PerListMetric(ListMetric):
    """A metric of each list."""

    @abstractmethod
    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        """Return one value per list, which has at most k items; NaN where it is undefined."""

    def measure(self, lists: Recommendations, given: Surroundings) -> Measured:
        """Return the mean over the lists where the metric is defined."""
        values = self.of_lists(lists, given)
        defined = values[~np.isnan(values)]
        error = float(defined.std(ddof=1)) / math.sqrt(defined.size) if defined.size > 1 else math.nan
        return Measured(float(defined.mean()) if defined.size else math.nan, error, defined.size, is_mean=True)

    def needed(self, what: str) -> InputError:
        """Return the error for something that is missing."""
        return InputError(f"{self} needs {what}.")


def counts_without(lists: Recommendations, n_items: int) -> Iterator[Floats]:
    """Return how many lists each item is in without each group of users in turn, some groups at a time."""
    groups, total = min(GROUPS, len(lists)), np.bincount(lists.items, minlength=n_items)
    group, at_once = lists.users % groups, max(_AT_ONCE // max(n_items, 1), 1)
    for start in range(0, groups, at_once):
        size = min(at_once, groups - start)
        own = (group >= start) & (group < start + size)
        cells = (group[own] - start) * n_items + lists.items[own]
        yield (total - np.bincount(cells, minlength=size * n_items).reshape(size, n_items)).astype(np.float64)
