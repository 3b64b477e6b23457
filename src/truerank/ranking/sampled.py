"""Sample candidates, score only these, and rank the held-out items among them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from truerank.arrays import AnyArray, Ints, as_ints
from truerank.data.interactions import PerUser
from truerank.data.splits import Split
from truerank.errors import InputError
from truerank.notes import counted
from truerank.ranking.held_out import HeldOut
from truerank.ranking.pairs import rank_pairs
from truerank.ranking.ranks import Ranks
from truerank.ranking.rounds import rank_in_rounds
from truerank.sampling.designs import Rng, SamplingDesign
from truerank.sampling.pools import Pool
from truerank.sampling.uniform import UniformSampling, as_design
from truerank.scoring.conversion import Scoreable
from truerank.scoring.scorer import Scorer

Negatives = Sequence[Sequence[int]] | Sequence[AnyArray] | AnyArray
"""The items of each user, by user number."""

DEFAULT_SIZE = 100

_ODDITIES = (
    ("is repeated within a user and counts once", "are repeated within a user and count once"),
    ("is a held-out item of its user and is left out", "are held-out items of their user and are left out"),
    ("is a training item of its user", "are training items of their user"),
)


@overload
def rank_sampled(
    scorer: Mapping[str, Scoreable],
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    design: SamplingDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Negatives | None = None,
    rng: Rng = None,
) -> dict[str, Ranks]: ...
@overload
def rank_sampled(
    scorer: Scoreable,
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    design: SamplingDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Negatives | None = None,
    rng: Rng = None,
) -> Ranks: ...
def rank_sampled(
    scorer: Scoreable | Mapping[str, Scoreable],
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    design: SamplingDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Negatives | None = None,
    rng: Rng = None,
) -> Ranks | dict[str, Ranks]:
    """Return the ranks of held-out items among sampled candidates, scoring only those.

    Parameters
    ----------
    scorer : as for `truerank.rank`, or a dict of name to scorer
        Also a function ``score(users, items)`` of two arrays of the same length, so that slow scorers
        (cross-encoders, language models) score only the sample. Several scorers given together see the same sample.
    split, train, test : as for `truerank.rank`
    design : SamplingDesign, optional
        How to sample from each user's irrelevant candidates: all items but training and held-out ones. Designs that
        stop when they have seen enough, `InverseSampling` and `HeadFirst`, ask for pairs in batches over all users.
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
        With the `design` by which they were sampled, so that corrections apply; `n_scored` tells what was spent.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.random.default_rng(0).normal(size=(50, 1000))
    >>> sampled = tr.rank_sampled(scores, test=[[user] for user in range(50)], m=100, rng=1)
    >>> sampled
    Ranks(50 instances, 50 relevant items, 101 of 1000 candidates sampled, no ties)
    """
    if negatives is not None and design is not None:
        raise InputError("give either `negatives` or `design`, not both.")
    scorers = scorer if isinstance(scorer, Mapping) else {"": scorer}
    proxies = () if design is None else design.proxies
    held = HeldOut.of([*scorers.values(), *proxies], split, train=train, test=test)
    if negatives is None:
        chosen = as_design(design, m=DEFAULT_SIZE if design is None and m is None else m, replace=replace)
        ranked = rank_by_design(chosen, held, held.scorers[: len(scorers)], np.random.default_rng(rng))
    else:
        sample = _given(negatives, held)
        ranked = [_rank(one, sample, held) for one in held.scorers]
    ranks = dict(zip(scorers, ranked, strict=True))
    return ranks if isinstance(scorer, Mapping) else ranks[""]


def rank_by_design(
    design: SamplingDesign,
    held: HeldOut,
    scorers: Sequence[Scorer],
    rng: np.random.Generator,
    popularity: Ints | None = None,
) -> list[Ranks]:
    """Rank by each scorer; all of them see the same candidates, or the same order of candidates.

    `popularity` counts the training interactions of each item, unless those of `held` are all there are.
    """
    pool = _pool(held, len(scorers), popularity)
    if design.sequential is None:
        sample = _Sample(design.sample(pool, rng), design)
        return [_rank(scorer, sample, held) for scorer in scorers]
    design.check(pool.sizes, 1)
    order = design.sequential.order(pool, rng)
    return [rank_in_rounds(scorer, held, design.sequential, order, _catalogue(held), rng) for scorer in scorers]


@dataclass(frozen=True)
class _Sample:
    """The negatives of each user, the design that they follow, and what is unusual about them."""

    items: list[Ints]
    design: SamplingDesign
    notes: tuple[str, ...] = ()


def _pool(held: HeldOut, n_ranked: int, popularity: Ints | None) -> Pool:
    own = [held.test.of_user(user) for user in held.users]
    proxies = held.scorers[n_ranked:]
    if held.train is None:
        return Pool(held.test.n_items, own, users=held.users, proxies=proxies)
    excluded = [np.union1d(items, held.train.of_user(user)) for user, items in zip(held.users, own, strict=True)]
    if popularity is None:
        popularity = np.bincount(held.train.items, minlength=held.test.n_items)
    return Pool(held.test.n_items, excluded, popularity, held.users, proxies)


def _given(negatives: Negatives, held: HeldOut) -> _Sample:
    """Return the given negatives, and notes on what is unusual about them."""
    users, n_items = held.users, held.test.n_items
    if len(negatives) <= int(users.max(initial=-1)):
        raise InputError(f"`negatives` must have a row for each user up to {users.max()}, got {len(negatives)} rows.")
    rows = [as_ints("negatives", negatives[user]) for user in users]
    sampled = [np.setdiff1d(row, held.test.of_user(user)) for user, row in zip(users, rows, strict=True)]
    flat = np.concatenate([*sampled, np.zeros(0, dtype=np.int64)])
    if flat.size and not 0 <= flat.min() <= flat.max() < n_items:
        raise InputError(f"`negatives` must hold items 0..{n_items - 1}, got {flat.min()}..{flat.max()}.")
    sizes = np.array([row.size for row in sampled])
    one = np.unique(sizes)
    design = UniformSampling(int(one[0]) if one.size == 1 and one[0] else None)
    return _Sample(
        sampled,
        design,
        (f"{flat.size} negatives, of which {np.unique(flat).size} distinct items", *_odd(rows, sampled, held)),
    )


def _odd(rows: list[Ints], sampled: list[Ints], held: HeldOut) -> list[str]:
    """Return notes on how many negatives are repeated, relevant, or training items."""
    repeated = sum(row.size - np.unique(row).size for row in rows)
    relevant = sum(row.size for row in rows) - repeated - sum(row.size for row in sampled)
    trained = 0
    if held.train is not None:
        own = [held.train.of_user(user) for user in held.users]
        trained = sum(int(np.isin(row, items).sum()) for row, items in zip(sampled, own, strict=True))
    return [
        counted(number, f"negative {one}", f"negatives {many}")
        for number, (one, many) in zip((repeated, relevant, trained), _ODDITIES, strict=True)
        if number
    ]


def _rank(scorer: Scorer, sample: _Sample, held: HeldOut) -> Ranks:
    users, relevant = held.users, [held.test.of_user(user) for user in held.users]
    both = [np.concatenate(pair) for pair in zip(relevant, sample.items, strict=True)]
    rows = np.repeat(users, [own.size for own in both])
    items = np.concatenate([*both, np.zeros(0, dtype=np.int64)])
    mark = [np.arange(listed.size) < own.size for own, listed in zip(relevant, both, strict=True)]
    hits = np.concatenate([*mark, np.zeros(0, dtype=np.bool_)])
    ranks = rank_pairs(rows, items, scorer.pairs(rows, items), hits, held.grades)
    notes = (*held.notes, *sample.notes)
    return held.named(ranks, design=sample.design, n_catalogue=_catalogue(held), notes=notes)


def _catalogue(held: HeldOut) -> Ints:
    """Candidates of each user before sampling: all items but training items that are not held out."""
    if held.train is None:
        return np.full(held.users.size, held.test.n_items)
    left_out = np.diff(held.train.indptr) - held.train.overlap(held.test)
    return held.test.n_items - left_out[held.users]
