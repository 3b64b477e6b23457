"""Probabilities that relevant items were logged, for weighting logs in which some items are shown more than others."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from truerank.core.checks import AnyArray, Floats, InputError, Ints, as_frame, as_number, check_choice
from truerank.core.ranks import Ranks
from truerank.metrics.definitions import Metric

if TYPE_CHECKING:
    from truerank.data.interactions import PerUser

Form = Literal["power", "labels"]
"""How a propensity depends on the number of training interactions."""

# the constants of Jain, Prabhu and Varma (KDD 2016) for most of their data
_LABEL_OFFSET = 1.5
# smaller propensities have weights whose squares might overflow
_LEAST = 1e-100


@dataclass(frozen=True, eq=False)
class Propensity:
    """The chance that a relevant item was logged, for each item, or for each user and item.

    Only ratios matter: weights are normalised.

    Parameters
    ----------
    items : array
        Names of items, as in `Ranks.items`.
    chance : array of float
        Above 0 and at most 1, or 0 for items that are never held out.
    ids : array, optional
        The id of the instance for each row, where chances depend on both user and item.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks(above=[0, 20], n_candidates=100, items=["hit", "niche"])
    >>> seen = tr.Propensity(items=["hit", "niche"], chance=[0.8, 0.2])
    >>> tr.evaluate(ranks, "recall@10", propensity=seen)["recommender", "recall@10"].mean
    0.2
    """

    items: AnyArray
    chance: Floats
    ids: AnyArray | None = None

    def __post_init__(self) -> None:
        try:
            chance = np.asarray(self.chance, dtype=np.float64)
        except (TypeError, ValueError):
            raise InputError(f"`chance` must be an array of numbers, got {self.chance!r}.") from None
        own = {"items": np.asarray(self.items), "chance": chance}
        own |= {} if self.ids is None else {"ids": np.asarray(self.ids)}
        for name, each in own.items():
            if each.shape != (chance.size,):
                raise InputError(f"`{name}` must be one-dimensional and have the length of `chance` ({chance.size}).")
        if np.any(wrong := ~((chance >= 0) & (chance <= 1))):
            at = int(np.argmax(wrong))
            raise InputError(f"a propensity must lie in 0..1, got {chance[at]} for item {own['items'][at].item()!r}.")
        vars(self).update(own)

    @classmethod
    def of(cls, given: Propensity | Mapping[Any, float] | Any) -> Propensity:
        """Return propensities from a dict of item to propensity, or from a dataframe.

        The columns are items and propensities or, where there are three, ids of instances, items and propensities.
        """
        if isinstance(given, Propensity):
            return given
        if isinstance(given, Mapping):
            return cls(np.asarray(list(given)), np.asarray(list(given.values())))
        import narwhals as nw

        table = as_frame(given, eager_only=True, pass_through=True)
        if not isinstance(table, nw.DataFrame) or len(table.columns) not in (2, 3):
            kinds = "a Propensity, a dict from item to propensity, or a dataframe of items and propensities"
            raise InputError(f"`propensity` must be {kinds}, got {type(given).__name__}.")
        *ids, items, chance = (np.asarray(table[name].to_list()) for name in table.columns)
        return cls(items, chance, *ids)

    def clipped(self, least: float) -> Propensity:
        """Return propensities of at least `least`, for smaller errors at the cost of a bias."""
        if not 0 < as_number(least) <= 1:
            raise InputError(f"the least propensity must be above 0 and at most 1, got {least!r}.")
        return Propensity(self.items, np.maximum(self.chance, least), self.ids)

    def weights(self, ranks: Ranks) -> Floats:
        """Return 1 / propensity of each relevant item."""
        if ranks.items is None:
            raise InputError("`propensity` needs ranks that know their items, as those of tr.rank do (Ranks.items).")
        place = _found(self.items, ranks.items)
        if self.ids is not None:
            ids = np.arange(len(ranks)) if ranks.ids is None else ranks.ids
            place = _found_pairs(self.ids, self.items, ids[ranks.instance], ranks.items)
        chance = np.append(self.chance, np.nan)[place]  # there may be no propensities at all
        wrongs = {
            "has no propensity": place < 0,
            "has a propensity of 0": chance == 0,
            f"has a propensity below {_LEAST:g}": chance < _LEAST,
        }
        for what, wrong in wrongs.items():
            if wrong.any():
                name = ranks.items[int(np.argmax(wrong))].item()
                raise InputError(f"the relevant item {name!r} {what}; see `Propensity.clipped` and `offset`.")
        return 1.0 / chance


def _found(own: AnyArray, wanted: AnyArray) -> Ints:
    """Return the place of each wanted value, -1 if it is not there."""
    if (own.dtype.kind in "UOT") != (wanted.dtype.kind in "UOT"):
        own, wanted = own.astype(np.str_), wanted.astype(np.str_)
    if not own.size:
        return np.full(wanted.size, -1)
    order = np.argsort(own, kind="stable")
    place = order[np.minimum(np.searchsorted(own, wanted, sorter=order), own.size - 1)]
    return np.where(own[place] == wanted, place, -1)


def _found_pairs(ids: AnyArray, items: AnyArray, wanted_ids: AnyArray, wanted_items: AnyArray) -> Ints:
    """Return the place of each wanted pair, -1 if it is not there."""
    names, things = np.unique(ids), np.unique(items)
    own = _found(names, ids) * things.size + _found(things, items)
    id_at, item_at = _found(names, wanted_ids), _found(things, wanted_items)
    return _found(own, np.where((id_at < 0) | (item_at < 0), -1, id_at * things.size + item_at))


def popularity_propensity(
    train: PerUser, power: float = 0.5, *, form: Form = "power", offset: float | None = None, clip: float | None = None
) -> Propensity:
    r"""Return propensities that grow with the number of training interactions :math:`N_i` of an item.

    Parameters
    ----------
    train : Interactions, sparse matrix, or list of item numbers per user
    power : float
        0 weights all items equally. Yang et al. (RecSys 2018) estimate it from the data; it is rarely known more
        precisely than as a range, so try several values.
    form : {"power", "labels"}
        "power" is :math:`((N_i + o) / (\max N + o))^{power}` with the offset o. "labels" is the form of extreme
        classification (Jain, Prabhu and Varma, KDD 2016), :math:`1 / p = 1 + C (N_i + o)^{-power}` with
        :math:`C = (\log n - 1)(o + 1)^{power}` and n users; a power of 0.55 is usual.
    offset : float, optional
        0 by default, so that items without training interactions have a propensity of 0; 1.5 for "labels".
    clip : float, optional
        Smallest propensity; see `Propensity.clipped`. None: propensities are not clipped.

    References
    ----------
    L. Yang, Y. Cui, Y. Xuan, C. Wang, S. Belongie, D. Estrin, "Unbiased offline recommender evaluation for
    missing-not-at-random implicit feedback", RecSys 2018. H. Jain, Y. Prabhu, M. Varma, "Extreme multi-label loss
    functions for recommendation, tagging, ranking and other missing label applications", KDD 2016.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.popularity_propensity([[0, 1], [0], [0], [0]], power=0.5).chance.tolist()
    [1.0, 0.5]
    >>> tr.popularity_propensity([[0, 1], [0], [0], [0]], power=0.55, form="labels").chance.round(3).tolist()
    [0.8, 0.721]
    """
    from truerank.data.interactions import Interactions

    check_choice("form", form, get_args(Form))
    if not 0 <= as_number(power) < math.inf:
        raise InputError(f"`power` must be a number from 0, got {power!r}.")
    added = {"power": 0.0, "labels": _LABEL_OFFSET}[form] if offset is None else offset
    if not 0 <= as_number(added) < math.inf:
        raise InputError(f"`offset` must be a number from 0, got {offset!r}.")
    events = Interactions.of(train, "train")
    counts = np.bincount(events.items, minlength=events.n_items) + float(added)
    if form == "power":
        chance = (counts / (counts.max(initial=0.0) or 1.0)) ** power
    else:
        constant = max(math.log(max(events.n_users, 1)) - 1.0, 0.0) * (added + 1.0) ** power
        chance = counts**power / (counts**power + constant)
    found = Propensity(events.item_names, chance)
    return found if clip is None else found.clipped(clip)


def check_weighted(metric: Metric, ranks: Ranks) -> None:
    """Refuse metrics that item weights can't correct: those that depend on other relevant items, and biased ones."""
    if metric.of_all_instances:
        raise InputError(f"{metric} is of all instances together; with `propensity` use recall@k, ndcg@k or auc.")
    if not metric.unbiased(ranks):
        raise InputError(f"`propensity` needs exact ranks or unbiased estimates, but {metric} is estimated with bias.")
    later = ranks.i > 1
    for part in metric.estimated.terms(ranks):
        if part.term.shape == "affine" or not later.any():
            continue
        rank, i, n_relevant, n = (each[later] for each in (ranks.rank, ranks.i, ranks.item_n_relevant, part.n))
        if np.any(part.term.term(rank, i, n_relevant, n) != part.term.term(rank, np.ones_like(i), n_relevant, n)):
            counts = "counts the other relevant items above each one, of which a log shows only some"
            raise InputError(f"{metric} {counts}; with `propensity` use recall@k, ndcg@k or auc.")
