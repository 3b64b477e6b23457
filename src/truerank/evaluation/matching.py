"""Ranks of several recommenders -> the same ranks on the same instances, in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

import numpy as np

from truerank.arrays import AnyArray
from truerank.errors import InputError
from truerank.notes import counted
from truerank.ranking.ranks import Ranks

Unmatched = Literal["refuse", "drop"]
"""What to do with instances that only some recommenders have."""

_SHOWN = 3


def matched(ranks: Mapping[str, Ranks], unmatched: Unmatched = "refuse") -> tuple[dict[str, Ranks], tuple[str, ...]]:
    """Return the ranks on their common instances, in the order of the first recommender, and notes.

    Instances are matched by id, or by position if there are no ids. An id that occurs several times, as for a user with
    several sessions, is matched only if all recommenders list the same ids in the same order.

    Parameters
    ----------
    ranks : dict of name to Ranks
    unmatched : {"refuse", "drop"}
        What to do with instances that only some recommenders have: raise `InputError`, or drop and count them.

    Examples
    --------
    >>> a = Ranks.from_ranks([1, 2, 3], n=9, ids=["ann", "bob", "cyd"])
    >>> b = Ranks.from_ranks([4, 5], n=9, ids=["cyd", "ann"])
    >>> both, notes = matched({"A": a, "B": b}, "drop")
    >>> both["B"].rank.tolist(), notes
    ([5, 4], ('A: 1 instance that not all recommenders have is left out',))
    """
    if unmatched not in get_args(Unmatched):
        raise InputError(f"`unmatched` must be 'refuse' or 'drop', got {unmatched!r}.")
    if any(one.ids is None for one in ranks.values()):
        return dict(ranks), _by_position(ranks)
    ids = _comparable({name: _ids(one) for name, one in ranks.items()})
    first = next(iter(ids.values()))
    notes: tuple[str, ...] = ()
    same = dict(ranks)
    if not all(np.array_equal(first, own) for own in ids.values()):
        same, notes = _by_id(ranks, ids, unmatched)
    _check_same_truth(same)
    return same, notes


def _ids(ranks: Ranks) -> AnyArray:
    return np.arange(len(ranks)) if ranks.ids is None else ranks.ids


def _comparable(ids: Mapping[str, AnyArray]) -> dict[str, AnyArray]:
    """Return ids of one type: text, if some are text and others are numbers."""
    mixed = len({own.dtype.kind == "U" for own in ids.values()}) > 1
    return {name: own.astype(np.str_) if mixed else own for name, own in ids.items()}


def _by_position(ranks: Mapping[str, Ranks]) -> tuple[str, ...]:
    """Check that there are as many instances everywhere, and say that positions match them."""
    if any(one.ids is not None for one in ranks.values()):
        without = next(name for name, one in ranks.items() if one.ids is None)
        raise InputError(f"instances are matched by id, but the ranks of {without!r} have none.")
    sizes = {name: len(one) for name, one in ranks.items()}
    if len(set(sizes.values())) > 1:
        found = ", ".join(f"{name!r} has {size}" for name, size in sizes.items())
        raise InputError(f"without ids, recommenders must have the same number of instances, but {found}.")
    _check_same_truth(ranks)
    return ("the instances have no ids and are matched by position",)


def _by_id(
    ranks: Mapping[str, Ranks], ids: Mapping[str, AnyArray], unmatched: Unmatched
) -> tuple[dict[str, Ranks], tuple[str, ...]]:
    for name, own in ids.items():
        _check_distinct(name, own)
    common = _common(ids)
    extra = {name: own[~np.isin(own, common)] for name, own in ids.items()}
    if unmatched == "refuse":
        for name, alone in extra.items():
            _check_none(name, alone)
    if common.size == 0:
        raise InputError(f"the recommenders {', '.join(map(repr, ids))} have no instance in common.")
    words = ("instance that not all recommenders have is", "instances that not all recommenders have are")
    notes = [f"{name}: {counted(alone.size, *words)} left out" for name, alone in extra.items() if alone.size]
    return {name: one[_positions(ids[name], common)] for name, one in ranks.items()}, tuple(notes)


def _check_distinct(name: str, ids: AnyArray) -> None:
    distinct, times = np.unique(ids, return_counts=True)
    if distinct.size < ids.size:
        twice = distinct[times > 1].tolist()[0]
        raise InputError(
            f"the id {twice!r} occurs several times in {name!r}, so all recommenders must list the same ids "
            "in the same order."
        )


def _check_none(name: str, alone: AnyArray) -> None:
    if alone.size:
        shown = ", ".join(map(repr, alone[:_SHOWN].tolist())) + (", ..." if alone.size > _SHOWN else "")
        raise InputError(
            f"{counted(alone.size, 'instance', 'instances')} of {name!r} ({shown}) are missing from another "
            "recommender; leave them out with unmatched='drop'."
        )


def _common(ids: Mapping[str, AnyArray]) -> AnyArray:
    """Return the ids that all have, in the order of the first."""
    first, *others = ids.values()
    everywhere = np.ones(first.size, dtype=np.bool_)
    for own in others:
        everywhere &= np.isin(first, own)
    return first[everywhere]


def _positions(ids: AnyArray, wanted: AnyArray) -> AnyArray:
    order = np.argsort(ids)
    return order[np.searchsorted(ids, wanted, sorter=order)]


def _check_same_truth(ranks: Mapping[str, Ranks]) -> None:
    """Refuse instances that have another number of relevant items for one recommender than for another."""
    (first, one), *others = ranks.items()
    for name, other in others:
        if np.any(differ := one.n_relevant != other.n_relevant):
            at = int(np.argmax(differ))
            instance = repr(_ids(one)[at].item())
            raise InputError(
                f"recommenders must be asked for the same items, but instance {instance} has {one.n_relevant[at]} "
                f"relevant items for {first!r} and {other.n_relevant[at]} for {name!r}."
            )
