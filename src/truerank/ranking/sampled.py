"""Sample candidates, score those alone, and rank the held-out items among them."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, overload

import numpy as np
import pyarrow as pa

from truerank.arrays import AnyArray, Ints
from truerank.data.interactions import Interactions
from truerank.data.splits import Split
from truerank.errors import InputError
from truerank.ranking.exact import held_out
from truerank.ranking.lists import read_lists
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng, SamplingDesign
from truerank.sampling.pools import Pool
from truerank.sampling.uniform import UniformSampling, as_design
from truerank.scoring.scorers import as_scorer, score_pairs, to_numpy

DEFAULT_SIZE = 100


@overload
def rank_sampled(
    scorer: Mapping[str, Any],
    split: Split | None = None,
    *,
    train: Any = None,
    test: Any = None,
    design: SamplingDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Any = None,
    rng: Rng = None,
) -> dict[str, Ranks]: ...
@overload
def rank_sampled(
    scorer: Any,
    split: Split | None = None,
    *,
    train: Any = None,
    test: Any = None,
    design: SamplingDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Any = None,
    rng: Rng = None,
) -> Ranks: ...
def rank_sampled(
    scorer: Any,
    split: Split | None = None,
    *,
    train: Any = None,
    test: Any = None,
    design: SamplingDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Any = None,
    rng: Rng = None,
) -> Ranks | dict[str, Ranks]:
    """Return the ranks of held-out items among sampled candidates, scoring only those.

    Parameters
    ----------
    scorer : as for `truerank.rank`, or a dict of name to scorer
        Also a function ``score(users, items)`` of two equally long arrays, so that slow scorers (cross-encoders,
        language models) score the sample alone. Several scorers given together see the same sample.
    split, train, test : as for `truerank.rank`
    design : SamplingDesign, optional
        How to sample from each user's irrelevant candidates: all items but training and held-out ones.
    m : int, optional
        Short for ``design=UniformSampling(m, replace)``; 100 by default.
    replace : bool
        Whether an item may be sampled more than once.
    negatives : array or list of item numbers per user, optional
        Fixed negatives instead of sampled ones, e.g. from `truerank.read_negatives`. They are taken as a uniform
        sample without replacement; repeated ones count once, and held-out items among them are left out.
    rng : int or numpy.random.Generator, optional
        Seed.

    Returns
    -------
    Ranks, or dict of name to Ranks if several scorers were given
        With the `design` by which they were sampled, so that corrections apply.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.random.default_rng(0).normal(size=(50, 1000))
    >>> sampled = tr.rank_sampled(scores, test=[[user] for user in range(50)], m=100, rng=1)
    >>> sampled
    Ranks(50 instances, 50 relevant items, 101 of 1000 candidates sampled, no ties)
    """
    if split is not None:
        if train is not None or test is not None:
            raise InputError("give either a split, or `train` and `test`, not both.")
        train, test = split.train, split.test
    scorers = dict(scorer) if isinstance(scorer, Mapping) else {"": scorer}
    if test is None or not scorers:
        raise InputError("rank_sampled needs a scorer and `test`, the held-out items.")
    held = held_out(next(iter(scorers.values())), test)
    seen = None if train is None else Interactions.of(train, "train", n_users=held.n_users, n_items=held.n_items)
    users = np.flatnonzero(np.diff(held.indptr))
    if negatives is None:
        chosen = as_design(design, m=DEFAULT_SIZE if design is None and m is None else m, replace=replace)
        sample = _Sample(chosen.sample(_pool(users, seen, held), np.random.default_rng(rng)), chosen)
    else:
        sample = _given(users, negatives, held)
    catalogue = held.n_items - (0 if seen is None else np.diff(seen.indptr)[users] - seen.overlap(held)[users])
    ranks = {name: _rank(one, users, sample, held, catalogue) for name, one in scorers.items()}
    return ranks if isinstance(scorer, Mapping) else ranks[""]


@dataclass(frozen=True)
class _Sample:
    """The negatives of each user, the design that they follow, and what is unusual about them."""

    items: list[Ints]
    design: SamplingDesign
    notes: tuple[str, ...] = ()


def _pool(users: Ints, seen: Interactions | None, held: Interactions) -> Pool:
    excluded = [
        held.of_user(user) if seen is None else np.union1d(held.of_user(user), seen.of_user(user)) for user in users
    ]
    popularity = None if seen is None else np.bincount(seen.items, minlength=held.n_items)
    return Pool(held.n_items, excluded, popularity)


def _given(users: Ints, negatives: Any, held: Interactions) -> _Sample:
    """Take negatives as they are, and say what is unusual about them."""
    if len(negatives) <= int(users.max(initial=-1)):
        raise InputError(f"`negatives` must have a row for each user up to {users.max()}, got {len(negatives)} rows.")
    rows = [np.asarray(negatives[user], dtype=np.int64) for user in users]
    sampled = [np.setdiff1d(row, held.of_user(user)) for user, row in zip(users, rows, strict=True)]
    flat = np.concatenate(sampled) if sampled else np.zeros(0, dtype=np.int64)
    if flat.size and not 0 <= flat.min() <= flat.max() < held.n_items:
        raise InputError(f"`negatives` must hold items 0..{held.n_items - 1}, got {flat.min()}..{flat.max()}.")
    sizes = np.array([row.size for row in sampled])
    repeated = sum(row.size - np.unique(row).size for row in rows)
    relevant = sum(row.size for row in rows) - repeated - int(sizes.sum())
    notes = [f"{flat.size} negatives, of which {np.unique(flat).size} distinct items"]
    notes += [f"{repeated} negatives are repeated within a user and count once"] * (repeated > 0)
    notes += [f"{relevant} negatives are held-out items of their user and are left out"] * (relevant > 0)
    one = np.unique(sizes)
    return _Sample(sampled, UniformSampling(int(one[0]) if one.size == 1 else None), tuple(notes))


def _rank(scorer: Any, users: Ints, sample: _Sample, held: Interactions, catalogue: AnyArray | int) -> Ranks:
    relevant = [held.of_user(user) for user in users]
    both = [np.concatenate(pair) for pair in zip(relevant, sample.items, strict=True)]
    rows, items = _flat(users, both)
    scores = np.asarray(_scores(scorer, rows, items))
    if scores.shape != items.shape:
        raise InputError(f"`scorer` must return one score per pair ({items.size}), got shape {scores.shape}.")
    own_rows, own_items = _flat(users, relevant)
    listed = pa.table({"user": rows, "item": items, "score": scores})
    ranks = read_lists(listed, pa.table({"user": own_rows, "item": own_items}), depth="all", repeats="count once")
    return dataclasses.replace(
        ranks,
        ids=held.names[users],
        design=sample.design,
        n_catalogue=np.broadcast_to(catalogue, users.shape),
        notes=sample.notes,
    )


def _flat(users: Ints, items: list[Ints]) -> tuple[Ints, Ints]:
    flat = np.concatenate(items) if items else np.zeros(0, dtype=np.int64)
    return np.repeat(users, [own.size for own in items]), flat


def _scores(scorer: Any, users: Ints, items: Ints) -> AnyArray:
    if inspect.isfunction(scorer) and len(inspect.signature(scorer).parameters) >= 2:
        return to_numpy(scorer(users, items))
    return score_pairs(as_scorer(scorer), users, items)
