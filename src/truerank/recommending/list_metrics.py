"""Metrics of recommended lists, such as coverage, novelty and diversity."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, as_number, check_cutoff, refuse_masked
from truerank.core.text_forms import Named, Registry
from truerank.data.interactions import Interactions
from truerank.recommending.recommendations import Recommendations
from truerank.scoring.scorers import match_names

GROUPS = 200
"""Groups of users that the jackknife leaves out; they determine a standard error to about 5 %."""
_AT_ONCE = 1 << 22  # counts in memory at a time


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
        A vector per item.
    reference : Recommendations, optional
        The lists of another recommender.
    history : Interactions, optional
        The training interactions, with their own numbers.
    grades : sparse matrix of shape (n_lists, n_items), optional
        How relevant items are: 1 plus the grade of each judged item; an item that is not stored is not judged.
    """

    popularity: Ints | None = None
    n_users: int = 0
    n_unlisted: int = 0
    vectors: Floats | None = None
    reference: Recommendations | None = None
    history: Interactions | None = None
    grades: sp.csr_array | None = None

    @classmethod
    def of(
        cls,
        lists: Recommendations,
        train: Interactions | None = None,
        vectors: AnyArray | None = None,
        reference: Recommendations | None = None,
        truth: Interactions | None = None,
    ) -> Surroundings:
        """Return what is given in the numbering of the lists, whose items are matched by name."""
        given = None if vectors is None else _vectors(lists, vectors)
        grades = None if truth is None else _grades(lists, truth)
        if train is None:
            return cls(vectors=given, reference=reference, grades=grades)
        place = match_names(lists.item_ids, train.item_names, np.zeros(0, np.int64), "item")
        n_users = int(np.count_nonzero(np.diff(train.indptr)))
        n_unlisted = 0 if place is None else train.n_items - int(np.count_nonzero(place >= 0))
        return cls(_popularity(lists, train, place), n_users, n_unlisted, given, reference, train, grades)

    def listed(self, lists: Recommendations) -> sp.csr_array:
        """Return the training interactions of the users of the lists, in the numbering of the lists."""
        if self.history is None:
            raise InputError("the training interactions are missing.")
        return _in_numbers_of(lists, self.history, np.ones(self.history.items.size))


def _in_numbers_of(lists: Recommendations, given: Interactions, values: Floats) -> sp.csr_array:
    """Return interactions as a matrix of the lists' users and items, without those that the lists do not know."""
    rows, items = _matched(given.names, lists.user_ids, "user"), _matched(given.item_names, lists.item_ids, "item")
    row, item = rows[given.users], items[given.items]
    both = (row >= 0) & (item >= 0)
    shape = (len(lists), lists.n_items)
    return sp.coo_array((values[both], (row[both], item[both])), shape=shape).tocsr()


def _grades(lists: Recommendations, truth: Interactions) -> sp.csr_array:
    return _in_numbers_of(lists, truth, 1.0 + truth.values)


def _popularity(lists: Recommendations, train: Interactions, place: Ints | None) -> Ints:
    counts = np.bincount(train.items, minlength=train.n_items)
    own = counts if place is None else np.where(place < 0, 0, np.append(counts, 0)[place])
    if lists.items.size and not own[lists.items].any():
        raise InputError("no listed item is in `train`: the ids do not match.")
    return own.astype(np.int64)


def _vectors(lists: Recommendations, vectors: AnyArray) -> Floats:
    refuse_masked(vectors, "`item_vectors`")
    given = np.asarray(vectors, dtype=np.float64)
    if given.ndim != 2 or len(given) != lists.n_items:
        raise InputError(f"`item_vectors` must have a row for each of {lists.n_items} items, got shape {given.shape}.")
    lengths = np.linalg.norm(given, axis=1)
    bad = ~((lengths > 0) & np.isfinite(lengths))
    bad[np.setdiff1d(np.arange(lists.n_items), lists.items)] = False  # only the listed ones matter
    if bad.any():
        item = lists.item_ids.tolist()[int(np.argmax(bad))]
        raise InputError(f"`item_vectors` must be finite and not 0, but that of item {item!r} is not.")
    return given


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
        """Return what to know before trusting it."""
        return ()


class CountMetric(ListMetric):
    """A metric of how many lists each item is in.

    Its standard error is that of the jackknife, which leaves out one group of users at a time. The bootstrap draws
    users with replacement, so it finds fewer items than the same number of distinct users has: its errors are too
    small.
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


@dataclass(frozen=True)
class Coverage(CountMetric):
    """Share of the catalogue that is recommended to at least one user (Ge et al., 2010)."""

    name = "coverage"
    k: int

    def of_counts(self, counts: Floats) -> Floats:
        return (counts > 0).mean(axis=-1)


@dataclass(frozen=True)
class Gini(CountMetric):
    """Gini index of how often items are recommended: 0 if all equally often, near 1 if a few take everything.

    It covers the whole catalogue, including items that are never recommended, and lacks the factor n / (n - 1).
    """

    name = "gini"
    k: int

    def of_counts(self, counts: Floats) -> Floats:
        n = counts.shape[-1]
        weights = 2 * np.arange(1, n + 1) - n - 1
        with np.errstate(invalid="ignore"):  # NaN if all lists are empty
            return np.sort(counts, axis=-1) @ weights / (n * counts.sum(axis=-1))


@dataclass(frozen=True)
class Entropy(CountMetric):
    """Shannon entropy, in bits, of an item drawn from the lists; 2 to its power is the effective number of items."""

    name = "entropy"
    k: int

    def of_counts(self, counts: Floats) -> Floats:
        with np.errstate(invalid="ignore"):  # NaN if all lists are empty
            shares = counts / counts.sum(axis=-1, keepdims=True)
        return -(shares * np.log2(np.where(shares == 0, 1, shares))).sum(axis=-1)


@dataclass(frozen=True)
class MeanPopularity(PerListMetric):
    """Mean number of training users of the recommended items (Yin et al., 2012)."""

    name = "popularity"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        return _means(lists, _known_popularity(self, given).astype(np.float64))


@dataclass(frozen=True)
class TailShare(PerListMetric):
    """Share of a list that is in the long tail (Abdollahpouri et al., 2019).

    The head is the smallest set of most popular items that have 1 - `share` of the training interactions; the tail is
    the rest. Of equally popular items, those with lower numbers come first.
    """

    name = "tail-share"
    k: int
    share: float = 0.2

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.share < 1:
            raise InputError(f"the share of {self.name} must lie between 0 and 1, got {self.share:g}.")

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        return _means(lists, self.tail(_known_popularity(self, given)).astype(np.float64))

    def tail(self, popularity: Ints) -> Bools:
        """Return which items are in the tail."""
        order = np.argsort(-popularity, kind="stable")
        taken = np.cumsum(popularity[order])
        head = int(np.searchsorted(taken, (1 - self.share) * taken[-1])) + 1
        tail = np.ones(popularity.size, np.bool_)
        tail[order[:head]] = False
        return tail


@dataclass(frozen=True)
class Novelty(PerListMetric):
    """Mean self-information of the recommended items, -log2 of the share of training users who have them.

    Zhou et al. (2010). An item without training users counts as if it had one.
    """

    name = "novelty"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        popularity = np.maximum(_known_popularity(self, given), 1)
        return _means(lists, np.log2(given.n_users / popularity))

    def notes(self, lists: Recommendations, given: Surroundings) -> tuple[str, ...]:
        new = int((_known_popularity(self, given)[np.unique(lists.items)] == 0).sum())
        return (f"{self}: {new} recommended items have no training user and count as if they had one",) if new else ()


@dataclass(frozen=True)
class IntraListDistance(PerListMetric):
    """Mean cosine distance between two items of a list (Smyth and McClave, 2001); lists of one item have none."""

    name = "intra-list-distance"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        if given.vectors is None:
            raise self.needed("`item_vectors`, one row per item")
        sizes = lists.sizes.astype(np.float64)
        shape, ones = (len(lists), lists.n_items), np.ones(lists.items.size)
        lengths = np.linalg.norm(given.vectors, axis=1, keepdims=True)
        unit = given.vectors / np.where(lengths > 0, lengths, 1)
        totals = sp.csr_array((ones, lists.items, lists.indptr), shape=shape) @ unit
        # |sum of vectors|^2 is the sum of all cosines, those of items with themselves included
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(sizes > 1, 1 - (np.square(totals).sum(axis=1) - sizes) / (sizes * (sizes - 1)), np.nan)


@dataclass(frozen=True)
class Overlap(PerListMetric):
    """Share of a list that the first recommender of the table also recommends to the same user.

    Divided by the length of the longer list, which is k unless the user has fewer candidates.
    """

    name = "overlap"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        place, length = _by_reference(self, lists, given)
        longer = np.where(length > 0, np.maximum(length, lists.sizes), np.nan)
        return _sums(lists, place > 0) / longer


@dataclass(frozen=True)
class RankBiasedOverlap(Overlap):
    """Rank-biased overlap with the list that the first recommender of the table has for the same user.

    A reader who continues to the next rank with probability p compares the two lists down to the rank at which they
    stop: 1 if the lists are the same in the same order, 0 if they share nothing. Beyond rank k, or the end of the
    shorter list, the share of common items is assumed to stay the same (RBO_ext).

    References
    ----------
    Webber, Moffat & Zobel, TOIS 2010, eq. 30.
    """

    name = "rbo"
    p: float = 0.9

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < as_number(self.p) < 1.0:
            raise InputError(f"the p of rbo(p)@k must lie between 0 and 1, got {self.p}.")

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        place, length = _by_reference(self, lists, given)
        depth = np.minimum(length, lists.sizes)
        depths = np.arange(self.k + 1)
        beyond = np.where(depths > 0, np.power(self.p, depths) / np.maximum(depths, 1), 0.0)
        weights = (1.0 - self.p) / self.p * np.cumsum(beyond)
        # an item is in both lists from the larger of its two ranks on
        last, since = depth[lists.users], np.maximum(place, lists.ranks).astype(np.int64)
        shared = (place > 0) & (since <= last)
        added = weights[last] - weights[np.where(shared, since, 1) - 1] + beyond[last]
        return np.where(length > 0, _sums(lists, np.where(shared, added, 0.0)), np.nan)


@dataclass(frozen=True)
class Personalisation(ListMetric):
    """One minus the mean cosine between the lists of two users: 0 if all have the same items, 1 if none share any.

    Empty lists are left out. Its standard error is that of the jackknife over users.
    """

    name = "personalisation"
    k: int

    def measure(self, lists: Recommendations, given: Surroundings) -> Measured:
        """Return the mean over all pairs of users."""
        some = lists.sizes > 0
        n, own = int(some.sum()), np.flatnonzero(some)
        if n < 2:
            return Measured(math.nan, math.nan, n, is_mean=False)
        weights = 1 / np.sqrt(lists.sizes[lists.users])
        total = np.bincount(lists.items, weights, minlength=lists.n_items)
        # the squared length of a sum of unit vectors is the sum of all cosines, those with themselves included
        cosines = float(total @ total) - n
        of_user = np.bincount(lists.users, total[lists.items] * weights, minlength=len(lists))[own] - 1
        without = 1 - (cosines - 2 * of_user) / max((n - 1) * (n - 2), 1)
        error = math.sqrt((n - 1) * without.var()) if n > 2 else math.nan
        return Measured(1 - cosines / (n * (n - 1)), error, n, is_mean=False)


@dataclass(frozen=True)
class Serendipity(PerListMetric):
    """Mean over a list of how unexpected its relevant items are: their rank by popularity minus that in the list.

    Ranks are divided by the number of items, an item that popularity ranks higher than the list does counts 0, and the
    sum is divided by k, as in RecTools. An item is relevant if its grade is above 0. Of equally popular items, the one
    with the lower number ranks higher by popularity.
    """

    name = "serendipity"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        popularity, grades = _known_popularity(self, given), _known_grades(self, given)
        place = np.empty(popularity.size, np.int64)
        place[np.argsort(-popularity, kind="stable")] = np.arange(1, popularity.size + 1)
        rank = np.arange(lists.items.size) - lists.indptr[lists.users] + 1
        gap = np.maximum(place[lists.items] - rank, 0) / popularity.size
        relevant = _stored(grades, lists) > 1
        return _sums(lists, gap * relevant) / self.k


@dataclass(frozen=True)
class Calibration(PerListMetric):
    """Distance between the categories of a list and of the user's training items; 0 if all shares are equal.

    The Kullback-Leibler divergence of the list's shares from the history's, in nats; a share `mix` of the list's is
    replaced by the history's, so that it is finite. `item_vectors` has a row per item with its weight in each category;
    an item in several categories is divided among them. Undefined for users without training items.

    References
    ----------
    Steck, RecSys 2018.
    """

    name = "calibration"
    k: int
    mix: float = 0.01

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0 < self.mix < 1:
            raise InputError(f"the mix of {self.name} must lie between 0 and 1, got {self.mix:g}.")

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        if given.history is None or given.vectors is None:
            raise self.needed("`train`, and the categories of items as `item_vectors`")
        if (given.vectors < 0).any():
            raise InputError(f"{self} needs `item_vectors` of weights from 0.")
        totals = given.vectors.sum(axis=1, keepdims=True)
        shares = given.vectors / np.where(totals > 0, totals, 1)
        shape = (len(lists), lists.n_items)
        own = sp.csr_array((np.ones(lists.items.size), lists.items, lists.indptr), shape=shape)
        past, shown = (_rows_to_one(matrix @ shares) for matrix in (given.listed(lists), own))
        mixed = (1 - self.mix) * shown + self.mix * past
        with np.errstate(divide="ignore", invalid="ignore"):
            parts = np.where(past > 0, past * np.log(past / mixed), past)  # NaN where there is no history
        return parts.sum(axis=1)


@dataclass(frozen=True)
class Judged(PerListMetric):
    """Share of the first k items whose relevance the truth states.

    Grades of 0 are judgements, too. Divided by k, even for shorter lists, as in ir-measures.
    """

    name = "judged"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        return _sums(lists, _stored(_known_grades(self, given), lists) > 0) / self.k


def _rows_to_one(values: Floats) -> Floats:
    totals = values.sum(axis=1, keepdims=True)
    with np.errstate(invalid="ignore"):
        return values / np.where(totals > 0, totals, np.nan)


def _stored(matrix: sp.csr_array, lists: Recommendations) -> Floats:
    """Return the entries of a matrix at the items of the lists, 0 where it has none."""
    return np.asarray(matrix[lists.users, lists.items], dtype=np.float64).ravel() if lists.items.size else np.zeros(0)


def _sums(lists: Recommendations, values: AnyArray) -> Floats:
    return np.bincount(lists.users, values, minlength=len(lists)).astype(np.float64)


def _known_grades(metric: PerListMetric, given: Surroundings) -> sp.csr_array:
    if given.grades is None:
        raise metric.needed("`truth`, the relevant items")
    return given.grades


def _by_reference(metric: PerListMetric, lists: Recommendations, given: Surroundings) -> tuple[Floats, Ints]:
    """Return the rank of each listed item in the reference's list, 0 if it is missing there, and the lengths."""
    if given.reference is None:
        raise metric.needed("lists of at least two recommenders")
    other = given.reference.cut(metric.k)
    row, item = _matched(other.user_ids, lists.user_ids, "user"), _matched(other.item_ids, lists.item_ids, "item")
    rows, items = row[other.users], item[other.items]
    both = (rows >= 0) & (items >= 0)
    place = sp.csr_array((other.ranks[both], (rows[both], items[both])), shape=(len(lists), lists.n_items))
    length = np.zeros(len(lists), np.int64)
    length[row[row >= 0]] = other.sizes[row >= 0]
    return _stored(place, lists), length


def _matched(names: AnyArray, among: AnyArray, role: str) -> Ints:
    place = match_names(names, among, np.zeros(0, np.int64), role)
    return np.arange(names.size) if place is None else place


def _means(lists: Recommendations, of_item: Floats) -> Floats:
    """Return the mean over each list of a number per item; NaN for an empty list."""
    sizes = np.where(lists.sizes > 0, lists.sizes, np.nan)
    return np.bincount(lists.users, of_item[lists.items], minlength=len(lists)) / sizes


def _known_popularity(metric: PerListMetric, given: Surroundings) -> Ints:
    if given.popularity is None:
        raise metric.needed("`train`, the training interactions")
    return given.popularity


LIST_METRICS: Registry[ListMetric] = Registry(
    "metric of lists",
    "'coverage@10' or 'tail-share(0.2)@10'",
    aliases={
        "catalogue-coverage": "coverage", "catalog-coverage": "coverage", "item-coverage": "coverage",
        "gini-index": "gini", "shannon-entropy": "entropy",
        "arp": "popularity", "average-popularity": "popularity", "aplt": "tail-share",
        "mean-self-information": "novelty", "miuf": "novelty",
        "ild": "intra-list-distance", "intra-list-diversity": "intra-list-distance", "intersection": "overlap",
        "rank-biased-overlap": "rbo",
        "personalization": "personalisation", "kl": "calibration", "miscalibration": "calibration",
    },
)  # fmt: skip
LIST_METRICS.add_built_in(
    Coverage, Gini, Entropy, MeanPopularity, TailShare, Novelty, IntraListDistance, Overlap,
    RankBiasedOverlap, Personalisation, Serendipity, Calibration, Judged,
)  # fmt: skip
