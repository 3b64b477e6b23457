"""Sample candidates, score only these, and rank the held-out items among them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, NoReturn, overload

import numpy as np
import scipy.sparse as sp
from tqdm import tqdm

from truerank.arrays import AnyArray, Ints, as_ints
from truerank.data.interactions import Interactions, PerUser
from truerank.data.splits import Split
from truerank.errors import InputError
from truerank.notes import counted
from truerank.ranking.among_samples import rank_among_samples
from truerank.ranking.held_out import HeldOut
from truerank.ranking.ranks import Ranks
from truerank.ranking.rounds import Asked, rank_in_rounds
from truerank.sampling.designs import Rng, SamplingDesign
from truerank.sampling.pools import ItemLists, Pool
from truerank.sampling.registry import AnyDesign, as_design
from truerank.sampling.sequential import SequentialDesign
from truerank.sampling.uniform import UniformSampling
from truerank.scoring.conversion import Scoreable
from truerank.scoring.scorer import Scorer
from truerank.threads import check_threads

Negatives = Sequence[Sequence[int]] | Sequence[AnyArray] | AnyArray
"""The items of each user, by user number."""

DEFAULT_SIZE = 100

_ODDITIES = (
    ("repeats another of its user and counts as a draw", "repeat another of their user and count as draws"),
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
    design: AnyDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Negatives | None = None,
    rng: Rng = None,
    most_scores: int | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> dict[str, Ranks]: ...
@overload
def rank_sampled(
    scorer: Scoreable,
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    design: AnyDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Negatives | None = None,
    rng: Rng = None,
    most_scores: int | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Ranks: ...
def rank_sampled(
    scorer: Scoreable | Mapping[str, Scoreable],
    split: Split | None = None,
    *,
    train: PerUser | None = None,
    test: PerUser | None = None,
    design: AnyDesign | None = None,
    m: int | None = None,
    replace: bool = False,
    negatives: Negatives | None = None,
    rng: Rng = None,
    most_scores: int | None = None,
    threads: int | None = None,
    progress: bool = False,
) -> Ranks | dict[str, Ranks]:
    """Return the ranks of held-out items among sampled candidates, scoring only those.

    Parameters
    ----------
    scorer : as for `truerank.rank`, or a dict of name to scorer
        Also a function ``score(users, items)`` of two arrays of the same length, so that slow scorers
        (cross-encoders, language models) score only the sample. Several scorers given together see the same sample.
    split, train, test : as for `truerank.rank`
    design : SamplingDesign or str, optional
        How to sample from each user's irrelevant candidates: all items but training and held-out ones. Its text form
        will do, as in ``"inverse(2)"``. Designs that stop when enough is known (`InverseSampling`, `HeadFirst`,
        `Roulette`) ask for pairs in batches over all users.
    m : int, optional
        Short for ``design=UniformSampling(m, replace)``; 100 by default.
    replace : bool
        Whether an item may be sampled more than once.
    negatives : array or list of item numbers per user, optional
        Fixed negatives instead of sampled ones, e.g. from `truerank.read_negatives`. They are taken as a uniform
        sample: with replacement if a user has one several times, each of which counts, and without
        replacement otherwise. Held-out items among them are left out.
    rng : int or numpy.random.Generator, optional
        Seed.
    most_scores : int, optional
        The scores that may be spent in total, for each scorer. Inverse sampling then ends all draws when they are used
        up, as far as possible at the same number; a design that would need more is refused.
    threads : int, optional
        One per processor by default; the result does not depend on it. Functions and models of other libraries are
        called by the calling thread only.
    progress : bool
        Whether to show a progress bar, on a terminal only.

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
    chosen = as_design(design, m=DEFAULT_SIZE if design is None and m is None else m, replace=replace)
    how = _How(_checked_most(most_scores), check_threads(threads), progress)
    held = HeldOut.of([*scorers.values(), *chosen.proxies], split, train=train, test=test)
    ranked = held.scorers[: len(scorers)]
    if negatives is None:
        found = held.noted(rank_by_design(chosen, held, ranked, np.random.default_rng(rng), how=how))
    else:
        found = _among_given(_given(negatives, held), held, ranked, how)
    ranks = dict(zip(scorers, found, strict=True))
    return ranks if isinstance(scorer, Mapping) else ranks[""]


class _How(NamedTuple):
    """How much may be spent, and how to work."""

    most: int | None = None
    threads: int = 1
    progress: bool = False

    def bar(self, n_users: int) -> tqdm[NoReturn]:
        return tqdm(total=n_users, desc="users", disable=None if self.progress else True, delay=0.5)

    def check(self, needed: int, design: SamplingDesign) -> None:
        """Refuse a design that needs more scores than may be spent."""
        if self.most is not None and needed > self.most:
            raise InputError(f"{design} needs {needed} scores, but `most_scores` is {self.most}.")


_ALONE = _How()


def _checked_most(most: int | None) -> int | None:
    number: object = most
    if most is not None and (isinstance(number, bool) or not isinstance(number, int | np.integer) or most < 1):
        raise InputError(f"`most_scores` must be a whole number from 1, got {most!r}.")
    return most


def rank_by_design(
    design: SamplingDesign,
    held: HeldOut,
    scorers: Sequence[Scorer],
    rng: np.random.Generator,
    popularity: Ints | None = None,
    how: _How = _ALONE,
) -> list[Ranks]:
    """Rank by each scorer; all of them see the same candidates, or the same order of candidates.

    `popularity` counts the training interactions of each item, unless those of `held` are all there are.
    """
    return design.ranked(_Work(_pool(held, len(scorers), popularity), held, scorers, rng, how))


@dataclass(frozen=True, eq=False)
class _Work:
    """What is to be ranked, and the ways to do it from which a design chooses."""

    pool: Pool
    held: HeldOut
    scorers: Sequence[Scorer]
    rng: np.random.Generator
    how: _How

    def among_samples(self, design: SamplingDesign) -> list[Ranks]:
        size, seed = design.size, int(self.rng.integers(2**63))
        self.how.check(size * len(self.pool) + self.held.test.items.size, design)

        def sample_of(number: int, start: int, stop: int) -> Sequence[Ints]:
            return design.sample(self.pool.part(start, stop), np.random.default_rng([seed, number]))

        with self.how.bar(len(self.pool)) as bar:
            found = rank_among_samples(
                self.scorers, self.held, sample_of, size, threads=self.how.threads, progress=bar.update
            )
        return [_finished(ranks, self.held, design) for ranks in found]

    def in_rounds(self, design: SequentialDesign) -> list[Ranks]:
        design.check(self.pool.sizes, 1)
        most = self.how.most
        if most is not None and not design.can_end_anywhere:
            raise InputError(
                f"{design} can't be ended by `most_scores`; use Roulette with a budget, or InverseSampling."
            )
        self.how.check(self.held.test.items.size + len(self.pool), design)
        order, found = design.order(self.pool, self.rng), []
        for scorer in self.scorers:
            with self.how.bar(len(self.pool)) as bar:
                asked = Asked(scorer, self.how.threads, bar.update)
                catalogue = _catalogue(self.held)
                found.append(rank_in_rounds(asked, self.held, design, order, catalogue, self.rng, most))
        return found


def _among_given(sample: _Sample, held: HeldOut, scorers: Sequence[Scorer], how: _How) -> list[Ranks]:
    total = sum(own.size for own in sample.items)
    how.check(total + held.test.items.size, sample.design)
    mean = total // max(len(sample.items), 1)
    with how.bar(len(sample.items)) as bar:
        found = rank_among_samples(
            scorers,
            held,
            lambda number, start, stop: sample.items[start:stop],
            mean,
            threads=how.threads,
            progress=bar.update,
        )
    return [_finished(ranks, held, sample.design, sample.notes) for ranks in found]


def _finished(ranks: Ranks, held: HeldOut, design: SamplingDesign, notes: tuple[str, ...] = ()) -> Ranks:
    return dataclasses.replace(ranks, design=design, n_catalogue=_catalogue(held), notes=(*held.notes, *notes))


@dataclass(frozen=True)
class _Sample:
    """The negatives of each user, the design that they follow, and what is unusual about them."""

    items: list[Ints]
    design: SamplingDesign
    notes: tuple[str, ...] = ()


def _pool(held: HeldOut, n_ranked: int, popularity: Ints | None) -> Pool:
    """Return what is sampled from: for each user all items but training and held-out ones."""
    left_out = _stored(held.test)
    if held.excluded is not None:
        left_out = left_out + _stored(held.excluded)
    if held.train is not None and popularity is None:
        popularity = np.bincount(held.train.items, minlength=held.test.n_items)
    if held.users.size < held.test.n_users:
        left_out = left_out[held.users]
    left_out.sort_indices()
    excluded = ItemLists(left_out.indptr.astype(np.int64), left_out.indices.astype(np.int64))
    return Pool(held.test.n_items, excluded, popularity, held.users, held.scorers[n_ranked:])


def _stored(part: Interactions) -> sp.csr_array:
    """Return a matrix with a 1 at each stored entry, whatever its value."""
    return sp.csr_array((np.ones(part.items.size, np.int8), part.items, part.indptr), shape=part.shape)


def _given(negatives: Negatives, held: HeldOut) -> _Sample:
    """Return the given negatives, and notes on what is unusual about them."""
    users, n_items = held.users, held.test.n_items
    if len(negatives) <= int(users.max(initial=-1)):
        raise InputError(f"`negatives` must have a row for each user up to {users.max()}, got {len(negatives)} rows.")
    rows = [as_ints("negatives", negatives[user]) for user in users]
    sampled = [np.sort(row[~np.isin(row, held.test.of_user(user))]) for user, row in zip(users, rows, strict=True)]
    flat = np.concatenate([*sampled, np.zeros(0, dtype=np.int64)])
    if flat.size and not 0 <= flat.min() <= flat.max() < n_items:
        raise InputError(f"`negatives` must hold items 0..{n_items - 1}, got {flat.min()}..{flat.max()}.")
    sizes = np.array([row.size for row in sampled])
    one = np.unique(sizes)
    repeated = _n_repeated(sampled)
    design = UniformSampling(int(one[0]) if one.size == 1 and one[0] else None, replace=repeated > 0)
    return _Sample(
        sampled,
        design,
        (f"{flat.size} negatives, of which {np.unique(flat).size} distinct items", *_odd(rows, sampled, held)),
    )


def _odd(rows: list[Ints], sampled: list[Ints], held: HeldOut) -> list[str]:
    """Return notes on how many negatives are repeated, relevant, or training items."""
    repeated = _n_repeated(sampled)
    relevant = sum(row.size for row in rows) - sum(row.size for row in sampled)
    trained = 0
    if held.excluded is not None:
        own = [held.excluded.of_user(user) for user in held.users]
        trained = sum(int(np.isin(row, items).sum()) for row, items in zip(sampled, own, strict=True))
    return [
        counted(number, f"negative {one}", f"negatives {many}")
        for number, (one, many) in zip((repeated, relevant, trained), _ODDITIES, strict=True)
        if number
    ]


def _n_repeated(rows: list[Ints]) -> int:
    return sum(row.size - np.unique(row).size for row in rows)


def _catalogue(held: HeldOut) -> Ints:
    """Candidates of each user before sampling: all items but excluded ones that are not held out."""
    if held.excluded is None:
        return np.full(held.users.size, held.test.n_items)
    left_out = np.diff(held.excluded.indptr) - held.excluded.overlap(held.test)
    return held.test.n_items - left_out[held.users]
