"""Metrics of the recommended lists themselves: what they cover, how popular, new and varied the items are.

`docs/recommending.md` has the formulas and references.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.errors import InputError
from truerank.lists.recommendations import Recommendations
from truerank.metrics.list_base import CountMetric, ListMetric, PerListMetric, Surroundings
from truerank.scoring.names import match_names
from truerank.text_forms import Registry


@dataclass(frozen=True)
class Coverage(CountMetric):
    """Share of the catalogue that is recommended to anybody (Ge et al., 2010)."""

    name = "coverage"
    k: int

    def of_counts(self, counts: Floats) -> Floats:
        return (counts > 0).mean(axis=-1)


@dataclass(frozen=True)
class Gini(CountMetric):
    """Gini index of how often items are recommended: 0 if all equally often, near 1 if a few take everything.

    Over the whole catalogue, items that are never recommended included, and without the factor n / (n - 1).
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
    """Shannon entropy, in bits, of the item in a random place of the lists; 2 to its power is an effective number."""

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

    The tail is what remains without the smallest set of most popular items that have 1 - `share` of the training
    interactions, of equally popular ones those with the lower numbers.
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
        totals = _membership(lists) @ given.vectors
        # |sum of vectors|^2 is the sum of all cosines, those of items with themselves included
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(sizes > 1, 1 - (np.square(totals).sum(axis=1) - sizes) / (sizes * (sizes - 1)), np.nan)


@dataclass(frozen=True)
class Overlap(PerListMetric):
    """Share of a list that the first recommender of the table recommends to the same user as well.

    Divided by the longer of the two lists, k unless the user has fewer candidates.
    """

    name = "overlap"
    k: int

    def of_lists(self, lists: Recommendations, given: Surroundings) -> Floats:
        if given.reference is None:
            raise self.needed("lists of at least two recommenders")
        other = given.reference.cut(self.k)
        row, item = _places(other.user_ids, lists.user_ids, "user"), _places(other.item_ids, lists.item_ids, "item")
        rows, items = row[other.users], item[other.items]
        both = (rows >= 0) & (items >= 0)
        shared = np.isin(lists.users * lists.n_items + lists.items, (rows * lists.n_items + items)[both])
        lengths = np.zeros(len(lists), np.int64)
        lengths[row[row >= 0]] = other.sizes[row >= 0]
        longer = np.where(lengths > 0, np.maximum(lengths, lists.sizes), np.nan)
        return np.bincount(lists.users[shared], minlength=len(lists)) / longer


def _places(names: AnyArray, among: AnyArray, role: str) -> Ints:
    place = match_names(names, among, np.zeros(0, np.int64), role)
    return np.arange(names.size) if place is None else place


def _membership(lists: Recommendations) -> sp.csr_array:
    """Return a matrix with a row per list, and 1 at the items in it."""
    return sp.csr_array((np.ones(lists.items.size), lists.items, lists.indptr), shape=(len(lists), lists.n_items))


def _means(lists: Recommendations, of_item: Floats) -> Floats:
    """Return the mean over each list of a number that each item has; NaN for an empty list."""
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
    },
)  # fmt: skip
LIST_METRICS.add_built_in(Coverage, Gini, Entropy, MeanPopularity, TailShare, Novelty, IntraListDistance, Overlap)
