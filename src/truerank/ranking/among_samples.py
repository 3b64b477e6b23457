"""`rank_sampled`: the rank of each held-out item among sampled candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any, NamedTuple, Unpack, overload

import numpy as np

from truerank.core.checks import AnyArray, Bools, InputError, Ints, as_ints, as_rng, check_whole, counted, to_numpy
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.samples import Rng, Sample
from truerank.core.threads import check_threads, progress_bar, share
from truerank.data.interactions import PerUser
from truerank.data.splits import Split
from truerank.formats.text_files import read_negatives
from truerank.kernels.factors import count_sampled
from truerank.kernels.user_blocks import check_pairs
from truerank.ranking.held_out import HeldOut, RankOptions, Users
from truerank.ranking.sequential import Asked, rank_in_rounds
from truerank.sampling.designs import AnyDesign, SamplingDesign, SequentialDesign, UniformSampling, as_design
from truerank.sampling.pools import ItemLists, ListedPool, Pool
from truerank.scoring.conversion import Scoreable
from truerank.scoring.scorers import Scorer

# pairs that a scorer is asked for at once: many, since slow ones work in batches
_PAIRS = 1 << 20

Negatives = str | Path | Sequence[Sequence[int]] | Sequence[AnyArray] | AnyArray
"""A file, or the items of each user, by user number."""

DEFAULT_SIZE = 100

_ODDITIES = (
    ("repeats another of its user and counts as a draw", "repeat another of their user and count as draws"),
    ("is a held-out item of its user and is left out", "are held-out items of their user and are left out"),
    ("is a training item of its user", "are training items of their user"),
)


class SampleOptions(RankOptions, total=False):
    """What `rank_sampled` takes by keyword."""

    design: AnyDesign
    negatives: Negatives | None
    most_scores: int | None


@overload
def rank_sampled(
    scorer: Mapping[str, Scoreable], split: Split | None = None, **options: Unpack[SampleOptions]
) -> dict[str, Ranks]: ...
@overload
def rank_sampled(scorer: Scoreable, split: Split | None = None, **options: Unpack[SampleOptions]) -> Ranks: ...
def rank_sampled(
    scorer: Scoreable | Mapping[str, Scoreable],
    split: Split | None = None,
    *,
    design: AnyDesign = DEFAULT_SIZE,
    negatives: Negatives | None = None,
    train: PerUser | None = None,
    test: PerUser | None = None,
    candidates: PerUser | None = None,
    keep_train: bool | None = None,
    users: Users | None = None,
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
    split, train, test, candidates, keep_train, users : as for `truerank.rank`
    design : SamplingDesign, str or int
        How to sample from each user's irrelevant candidates: all items, or `candidates`, except training and held-out
        ones. An int is the number to sample uniformly, and text forms will do, as in ``"uniform(100, replace)"`` or
        ``"inverse(2)"``. Designs that stop when enough is known (`InverseSampling`, `HeadFirst`) ask for pairs in
        batches over all users.
    negatives : path, array, or list of item numbers per user, optional
        Fixed negatives instead of a `design`, also from a file in the NCF format, plain or compressed: a user, or the
        pair ``(user,item)`` with the held-out item, and its negatives on each line, separated by tabs. They are taken
        as a uniform sample: with replacement if a user has one several times, each of which counts, and without
        replacement otherwise. Held-out items among them are left out.
    rng : int or numpy.random.Generator, optional
        Seed for the draw of users and for the sample.
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
        With the `design` by which they were sampled, so that corrections apply; `n_scored` is what was spent.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.random.default_rng(0).normal(size=(50, 1000))
    >>> sampled = tr.rank_sampled(scores, test=[[user] for user in range(50)], rng=1)
    >>> sampled
    Ranks(50 instances, 50 relevant items, 101 of 1000 candidates sampled, no ties)
    """
    for name, other in (("design", design != DEFAULT_SIZE), ("candidates", candidates is not None)):
        if negatives is not None and other:
            raise InputError(f"give either `negatives` or `{name}`, not both.")
    if most_scores is not None:
        check_whole("most_scores", most_scores)
    chosen, effort = as_design(design), Effort(most_scores, check_threads(threads), progress)
    generator, scorers = as_rng(rng), scorer.values() if isinstance(scorer, Mapping) else [scorer]
    given, n_ranked = [*scorers, *chosen.proxies], len(scorers)
    held = HeldOut.of(
        given,
        split,
        train=train,
        test=test,
        candidates=candidates,
        keep_train=keep_train,
        users=users,
        rng=generator,
    )
    if negatives is None:
        found = rank_by_design(chosen, held, held.scorers[:n_ranked], generator, effort=effort)
    else:
        found = _rank_among(_given(negatives, held), held, held.scorers, effort)
    return held.finished(found, scorer)


class Effort(NamedTuple):
    """How much may be spent, and how to work."""

    most: int | None = None
    threads: int = 1
    progress: bool = False

    def check(self, needed: int, design: SamplingDesign) -> None:
        """Refuse a design that needs more scores than may be spent."""
        if self.most is not None and needed > self.most:
            raise InputError(f"{design} needs {needed} scores, but `most_scores` is {self.most}.")


def rank_by_design(
    design: SamplingDesign,
    held: HeldOut,
    scorers: Sequence[Scorer],
    rng: np.random.Generator,
    popularity: Ints | None = None,
    effort: Effort = Effort(),  # noqa: B008
) -> list[Ranks]:
    """Rank by each scorer; all of them see the same candidates, or the same order of candidates.

    `popularity` counts the training interactions of each item, unless those of `held` are all there are.
    """
    pool = _pool(held, len(scorers), popularity)
    if isinstance(design, SequentialDesign):
        return _rank_in_rounds(design, pool, held, scorers, rng, effort)
    seed = int(rng.integers(2**63))

    def sample(number: int, start: int, stop: int) -> Sequence[Ints]:
        return design.sample(pool.part(start, stop), np.random.default_rng([seed, number]))

    return _rank_among(_Samples(design, sample, design.size * len(pool)), held, scorers, effort)


def _rank_in_rounds(
    design: SequentialDesign,
    pool: Pool,
    held: HeldOut,
    scorers: Sequence[Scorer],
    rng: np.random.Generator,
    effort: Effort,
) -> list[Ranks]:
    design.check(pool.sizes, 1)
    if effort.most is not None and not design.can_end_anywhere:
        raise InputError(f"{design} can't be ended by `most_scores`; use InverseSampling.")
    effort.check(held.test.items.size + len(pool), design)
    order, found = design.order(pool, rng), []
    for scorer in scorers:
        with progress_bar("users", effort.progress, total=len(pool)) as bar:
            asked = Asked(scorer, effort.threads, bar.update)
            found.append(rank_in_rounds(asked, held, design, order, rng, effort.most))
    return found


class _Samples(NamedTuple):
    """Samples for blocks of users, which don't depend on the number of threads, and the design that they follow."""

    design: SamplingDesign
    of: Callable[[int, int, int], Sequence[Ints]]
    """From the number of a block, and the first and the last of its users, to the sampled items of each."""
    total: int
    """How many items are sampled for all users together."""
    notes: tuple[str, ...] = ()


def _rank_among(samples: _Samples, held: HeldOut, scorers: Sequence[Scorer], effort: Effort) -> list[Ranks]:
    """Return the ranks by each scorer, which is asked for about a million pairs at a time; all see the same samples."""
    n_users, n_relevant = held.users.size, held.test.items.size
    effort.check(samples.total + n_relevant, samples.design)
    each = samples.total // max(n_users, 1) + n_relevant // max(n_users, 1)
    step = max(_PAIRS // max(each, 1), 1)

    def run(start: int, stopped: Event) -> list[_Block]:
        stop = min(start + step, n_users)
        sample = ItemLists.of(samples.of(start // step, start, stop))
        return [] if stopped.is_set() else [_count_block(one, held, start, stop, sample) for one in scorers]

    threads = effort.threads if all(scorer.concurrent for scorer in scorers) else 1
    with progress_bar("users", effort.progress, total=n_users) as bar:
        starts = range(0, n_users, step)
        blocks = share(run, starts, threads, lambda found: found and bar.update(found[0].n_sampled.size))
    return [_ranks([block[place] for block in blocks], samples, held) for place in range(len(scorers))]


class _Block(NamedTuple):
    """Per relevant item of some users, from the top: candidates above and tied, and which entry of the data it is."""

    above: Ints
    tied: Ints
    order: Ints
    same_score: Bools
    n_sampled: Ints
    """One per user."""


def _count_block(scorer: Scorer, held: HeldOut, start: int, stop: int, sample: ItemLists) -> _Block:
    """Score the relevant and the sampled items of some users, and count."""
    users, test = held.users[start:stop], held.test
    ends = np.append(test.indptr[users], test.indptr[users[-1] + 1]).astype(np.int64)
    first, last = ends[0], ends[-1]
    rows = np.repeat(np.concatenate([users, users]), np.concatenate([np.diff(ends), np.diff(sample.indptr)]))
    items = np.concatenate([test.items[first:last].astype(np.int64), sample.items])
    scores = np.ascontiguousarray(to_numpy(scorer.pairs(rows, items), "scores"))
    check_pairs(scores, rows, items)
    counts = count_sampled(scores[: last - first], ends - first, scores[last - first :], sample.indptr)
    same = np.diff(counts.scores, prepend=np.nan) == 0
    same[(ends - first)[:-1]] = False
    return _Block(counts.above, counts.tied, counts.order + first, same, np.diff(sample.indptr))


def _ranks(blocks: Sequence[_Block], samples: _Samples, held: HeldOut) -> Ranks:
    parts: Sequence[Any] = blocks or [(np.zeros(0, dtype=np.int64),) * 5]
    above, tied, order, same, sampled = map(np.concatenate, zip(*parts, strict=True))
    n_relevant = np.diff(held.test.indptr)[held.users]
    return Ranks(
        above=above,
        tied=tied,
        n_candidates=n_relevant + sampled,
        indptr=bounds(n_relevant),
        ids=held.test.names[held.users],
        grades=None if held.grades is None else held.grades[order],
        same_score=None if held.grades is None else same,
        items=held.test.item_names[held.test.items[order]],
        sample=Sample(samples.design, held.n_candidates),
        notes=(*held.notes, *samples.notes),
    )


def _pool(held: HeldOut, n_ranked: int, popularity: Ints | None) -> Pool:
    """Return what is sampled from: for each user all items, or all listed ones, except training and held-out ones."""
    if held.train is not None and popularity is None:
        popularity = np.bincount(held.train.items, minlength=held.test.n_items)
    marks = held.marks()
    if held.users.size < held.test.n_users:
        marks = marks[held.users]
    marks.sort_indices()
    indptr, items = marks.indptr.astype(np.int64), marks.indices.astype(np.int64)
    more = (popularity, held.users, held.scorers[n_ranked:])
    if held.listed is None:
        return Pool(held.test.n_items, ItemLists(indptr, items), *more)
    irrelevant = marks.data == 1
    return ListedPool.of(held.test.n_items, ItemLists(bounds(irrelevant)[indptr], items[irrelevant]), *more)


def _given(negatives: Negatives, held: HeldOut) -> _Samples:
    """Return the given negatives, and notes on what is unusual about them."""
    users, n_items = held.users, held.test.n_items
    each = read_negatives(negatives) if isinstance(negatives, str | Path) else negatives
    if len(each) <= int(users.max(initial=-1)):
        raise InputError(f"`negatives` must have a row for each user up to {users.max()}, got {len(each)} rows.")
    rows = [as_ints("negatives", each[user]) for user in users]
    sampled = [np.sort(row[~np.isin(row, held.test.of_user(user))]) for user, row in zip(users, rows, strict=True)]
    flat = np.concatenate([*sampled, np.zeros(0, dtype=np.int64)])
    if flat.size and not 0 <= flat.min() <= flat.max() < n_items:
        raise InputError(f"`negatives` must hold items 0..{n_items - 1}, got {flat.min()}..{flat.max()}.")
    n_repeated = sum(row.size - np.unique(row).size for row in sampled)
    one = np.unique([row.size for row in sampled])
    design = UniformSampling(int(one[0]) if one.size == 1 and one[0] else None, replace=n_repeated > 0)
    sizes = f"{flat.size} negatives, of which {np.unique(flat).size} distinct items"
    notes = (sizes, *_odd(rows, sampled, n_repeated, held))
    return _Samples(design, lambda number, start, stop: sampled[start:stop], flat.size, notes)


def _odd(rows: list[Ints], sampled: list[Ints], n_repeated: int, held: HeldOut) -> list[str]:
    """Return notes on how many negatives are repeated, relevant, or training items."""
    relevant = sum(row.size for row in rows) - sum(row.size for row in sampled)
    trained = 0
    if held.excluded is not None:
        own = [held.excluded.of_user(user) for user in held.users]
        trained = sum(int(np.isin(row, items).sum()) for row, items in zip(sampled, own, strict=True))
    return [
        counted(number, f"negative {one}", f"negatives {many}")
        for number, (one, many) in zip((n_repeated, relevant, trained), _ODDITIES, strict=True)
        if number
    ]
