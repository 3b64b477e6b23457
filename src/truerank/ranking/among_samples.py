"""`rank_sampled`: the rank of each held-out item among sampled candidates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any, NamedTuple, Unpack, overload

import numpy as np

from truerank.core import checks
from truerank.core.checks import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Rng,
    as_rng,
    check_pairs,
    check_whole,
    slices,
)
from truerank.core.csr import bounds, owners
from truerank.core.ranks import Ranks
from truerank.core.samples import Sample
from truerank.core.score_arrays import weight_above
from truerank.core.threads import Memory, bounded, check_threads, fitting, progress_bar, share
from truerank.data.candidates import Listed
from truerank.data.interactions import Interactions, PerUser
from truerank.data.splits import Split
from truerank.formats.text_files import read_negatives
from truerank.kernels.draws import Draws
from truerank.kernels.factors import SampledCounts
from truerank.kernels.user_blocks import Lists, Progress
from truerank.ranking.held_out import HeldOut, RankOptions, Unknown, Users, seed_with
from truerank.sampling import designs
from truerank.sampling.designs import AnyDesign, SamplingDesign, SequentialDesign
from truerank.sampling.pools import ItemLists, ListedPool, Order, Pool
from truerank.scoring.conversion import Scoreable
from truerank.scoring.scorers import Scorer, count_pairs

if TYPE_CHECKING:
    from truerank.scoring.score_store import AnyStore

# pairs that a scorer is asked for at once: many, since slow ones work in batches
_PAIRS = 1 << 20
_BYTES_PER_PAIR = 64
# the same in rounds, and by each of several threads if the scorer allows them
_CHUNK = 2_000_000
_PER_THREAD = 1 << 18

Negatives = str | Path | Sequence[Sequence[int]] | Sequence[AnyArray] | AnyArray
"""A file, or the items of each user, by user number."""

DEFAULT_SIZE = 100

_ODDITIES = (
    ("repeats another of its user and counts as a draw", "repeat another of their user and count as draws"),
    ("is a held-out item of its user and is left out", "are held-out items of their user and are left out"),
    ("is a training item of its user", "are training items of their user"),
)


class SampleOptions(RankOptions, total=False):
    """The keyword arguments of `rank_sampled`."""

    design: AnyDesign
    negatives: Negatives | None
    most_scores: int | None


@overload
def rank_sampled(
    scorer: Mapping[str, Scoreable], split: Split | None = None, **options: Unpack[SampleOptions]
) -> dict[str, Ranks]: ...
@overload
def rank_sampled(scorer: Scoreable, split: Split | None = None, **options: Unpack[SampleOptions]) -> Ranks: ...
@bounded
def rank_sampled(
    scorer: Scoreable | Mapping[str, Scoreable],
    split: Split | None = None,
    *,
    design: AnyDesign = DEFAULT_SIZE,
    negatives: Negatives | None = None,
    train: PerUser | None = None,
    test: PerUser | None = None,
    candidates: Listed | None = None,
    exclude: Listed | None = None,
    unknown: Unknown = "refuse",
    keep_train: bool | None = None,
    users: Users | None = None,
    rng: Rng = None,
    most_scores: int | None = None,
    threads: int | None = None,
    progress: bool = False,
    store: AnyStore | None = None,
    memory: Memory | None = None,
) -> Ranks | dict[str, Ranks]:
    """Return the ranks of held-out items among sampled candidates, without scoring the others.

    Parameters
    ----------
    scorer : as for `truerank.rank`, or a dict of name to scorer
        Also a function ``score(users, items)`` of two arrays of the same length, so that slow scorers
        (cross-encoders, language models) score only the sample. Several scorers given together see the same sample.
    split, train, test, candidates, exclude, unknown, keep_train, users : as for `truerank.rank`
    design : SamplingDesign, str or int
        How to sample from each user's irrelevant candidates: all items, or `candidates`, except training and held-out
        ones. An int is the number to sample uniformly; text forms are accepted, such as ``"uniform(100, replace)"`` or
        ``"inverse(2)"``. Designs that stop when enough is known (`InverseSampling`, `HeadFirst`) ask for pairs in
        batches over all users.
    negatives : path, array, or list of item numbers per user, optional
        Fixed negatives instead of a `design`. A file is in the NCF format, plain or compressed: each line holds a user,
        or the pair ``(user,item)`` with the held-out item, and its negatives, separated by tabs. They are taken as a
        uniform sample: with replacement if any negative of a user is repeated (each repetition counts), and without
        replacement otherwise. Held-out items among them are left out.
    rng : int or numpy.random.Generator, optional
        Seed for the draw of users and for the sample. With a `store` it is 0 by default, so that the same call asks for
        the same pairs.
    most_scores : int, optional
        The number of scores that may be spent in total by each scorer. When they are used up, inverse sampling ends all
        draws, as far as possible at the same number; any other design that would need more is refused.
    threads : int, optional
        One per processor by default; the result does not depend on it. Functions and models of other libraries are
        called by the calling thread only.
    progress : bool
        Whether to show a progress bar, on a terminal only. For functions of pairs it counts scores, users, calls and,
        if the function has a `cost_per_score`, the money spent.
    store : path or ScoreStore, optional
        A database that keeps every score of a pair as soon as a call has returned it. After an exception, Ctrl-C or a
        killed process, the same call asks only for what is missing, and returns what an uninterrupted call would have.
        With the same `rng`, candidates of a user come in the same order under every uniform or inverse design, so that
        a larger sample, or more users, costs only the difference. Scores are stored by the name of the model (the name
        of the scorer in a dict, else that of the function or class, unless a `ScoreStore` names it) and the ids of
        users and items.
    memory : str or int, optional
        Memory that the call may use, as in `truerank.rank`.

    Returns
    -------
    Ranks, or dict of name to Ranks if several scorers were given
        With the `design` by which they were sampled, so that corrections apply; `n_scored` counts the scores spent.

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
    chosen, workers = designs.as_design(design), check_threads(threads)
    generator, scorers = as_rng(seed_with(store, rng)), scorer.values() if isinstance(scorer, Mapping) else [scorer]
    # before users are drawn, so that it does not depend on them
    fixed_order = None if store is None else int(generator.integers(2**63))
    given, n_ranked = [*scorers, *chosen.proxies], len(scorers)
    held = HeldOut.of(
        given,
        split,
        train=train,
        test=test,
        candidates=candidates,
        exclude=exclude,
        unknown=unknown,
        keep_train=keep_train,
        users=users,
        rng=generator,
    )
    fixed = None if negatives is None else _given(negatives, held)
    total = _n_scores(chosen, held) if fixed is None else fixed.total + held.test.items.size
    with held.paying(scorer, held.scorers[:n_ranked], store, progress, total) as (ranked, shown):
        effort = Effort(most_scores, workers, shown, fixed_order)
        if fixed is None:
            found = rank_by_design(chosen, held, ranked, generator, effort=effort)
        else:
            found = _rank_among(fixed, held, ranked, effort)
    return held.finished(found, scorer)


def _n_scores(design: SamplingDesign, held: HeldOut) -> int | None:
    """Return how many scores a design needs; None if that is known only after scoring."""
    if isinstance(design, SequentialDesign):
        return None
    return held.test.items.size + design.size * held.users.size


class Effort(NamedTuple):
    """How much may be spent, and how to work."""

    most: int | None = None
    threads: int = 1
    progress: bool = False
    seed: int | None = None
    """Seed of each user's order of candidates, the same in all calls; None for another order in each call."""

    def check(self, needed: int, design: SamplingDesign) -> None:
        """Refuse a design that needs more scores than may be spent."""
        if self.most is not None and needed > self.most:
            more = f"`most_scores` is {self.most}; rank fewer `users`, drawn at random"
            raise InputError(f"{design} needs {needed} scores, but {more}.")


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
    if isinstance(design, SequentialDesign):
        pool = _pool(held, len(scorers), popularity, effort.seed, nested=True)
        return _rank_in_rounds(design, pool, held, scorers, rng, effort)
    seed, total = int(rng.integers(2**63)), design.size * held.users.size
    effort.check(total + held.test.items.size, design)
    draws = design.draws(held.test.n_items, seed) if effort.seed is None and held.listed is None else None
    found = [None if draws is None else _rank_drawn(draws, design, held, scorer, effort) for scorer in scorers]
    if None not in found:
        return [ranks for ranks in found if ranks is not None]
    nested = effort.seed is not None
    pool = _pool(held, len(scorers), popularity, effort.seed if nested else seed, nested=nested)

    def sample(number: int, start: int, stop: int) -> _Drawn:
        part = pool.part(start, stop)
        drawn = design.sample(part, np.random.default_rng([seed, number]))
        return drawn, design.weights(part, drawn)

    others = [scorer for scorer, ranks in zip(scorers, found, strict=True) if ranks is None]
    rest = iter(_rank_among(_Samples(design, sample, total), held, others, effort))
    return [next(rest) if ranks is None else ranks for ranks in found]


def _rank_drawn(draws: Draws, design: SamplingDesign, held: HeldOut, scorer: Scorer, effort: Effort) -> Ranks | None:
    """Rank by a scorer that counts draws without listing them; None if it can't."""
    test, users = held.test, held.users
    training = held.excluded or Interactions.of([], "train", n_users=test.n_users, n_items=test.n_items)
    n_trained, n_relevant = (np.diff(each.indptr)[users] for each in (training, test))
    if np.any(test.n_items - n_trained - n_relevant < draws.size):  # unless items are in both lists
        design.check(held.n_candidates - n_relevant, draws.size)
    train, held_out = (Lists(each.indptr, each.items) for each in (training, test))
    with progress_bar("users", effort.progress, total=users.size) as bar:
        counts = scorer.count_drawn(train, held_out, draws, threads=effort.threads, progress=bar.update)
    if counts is None:
        return None
    both = np.diff(bounds(counts.seen)[test.indptr])[users]
    same = None if held.grades is None else _same_scores(scorer, test, counts.order)
    sample = Sample(design, test.n_items - n_trained + both)
    n_candidates = n_relevant + draws.size
    return held.ranks(counts.order, counts.above, counts.tied, n_candidates, same, sample=sample, notes=held.notes)


def _same_scores(scorer: Scorer, test: Interactions, order: Ints) -> Bools:
    """Return for each relevant item, from the top, whether it has the score of the one before it."""
    scores = checks.to_numpy(scorer.pairs(test.users, test.items.astype(np.int64)), "scores")[order]
    same: Bools = np.diff(scores, prepend=np.nan) == 0
    same[test.indptr[:-1][np.diff(test.indptr) > 0]] = False
    return same


_Drawn = tuple[Sequence[Ints], Sequence[Floats] | None]
"""The sampled items of each of some users, and the weight of each item, if it is known."""


class _Samples(NamedTuple):
    """Samples for blocks of users, which don't depend on the number of threads, and the design that they follow."""

    design: SamplingDesign
    of: Callable[[int, int, int], _Drawn]
    """From the number of a block, and the first and the last of its users, to what is sampled for each."""
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
        items, weights = samples.of(start // step, start, stop)
        given = held, start, stop, ItemLists.of(items), weights
        pairs = [] if stopped.is_set() else zip(scorers, counts, strict=True)
        return [_count_block(scorer, count, *given) for scorer, count in pairs]

    counts = [scorer.for_samples(samples.total) for scorer in scorers]
    threads = fitting(effort.threads, _BYTES_PER_PAIR * _PAIRS) if all(scorer.concurrent for scorer in scorers) else 1
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
    estimated: Floats
    """Estimated number of candidates above, among all of them; NaN if chances are unknown."""


def _count_block(
    scorer: Scorer,
    count: Callable[..., SampledCounts],
    held: HeldOut,
    start: int,
    stop: int,
    sample: ItemLists,
    weights: Sequence[Floats] | None,
) -> _Block:
    """Score the relevant and the sampled items of some users, and count."""
    users, test = held.users[start:stop], held.test
    ends = np.append(test.indptr[users], test.indptr[users[-1] + 1]).astype(np.int64)
    first, last = ends[0], ends[-1]
    own, sampled = Lists(ends - first, test.items[first:last].astype(np.int64)), Lists(sample.indptr, sample.items)
    if weights is None:
        counts, estimated = count(users, own, sampled), np.full(last - first, np.nan)
    else:
        counts, scores = count_pairs(scorer, users, own, sampled)
        estimated = _weighed(counts, owners(ends), scores, sample.indptr, np.concatenate(weights))
    same = np.diff(counts.scores, prepend=np.nan) == 0
    same[own.indptr[:-1]] = False
    return _Block(counts.above, counts.tied, counts.order + first, same, np.diff(sample.indptr), estimated)


def _weighed(counts: SampledCounts, user: Ints, scores: AnyArray, indptr: Ints, weights: Floats) -> Floats:
    """Return the total weight of the sampled items above each relevant item, whose user is given."""
    inside = np.arange(np.diff(indptr).max()) < np.diff(indptr)[:, None]
    table, each = np.full(inside.shape, -np.inf, scores.dtype), np.zeros(inside.shape)
    table[inside], each[inside] = scores, weights
    return weight_above(table, each, user, counts.above, counts.tied)


def _ranks(blocks: Sequence[_Block], samples: _Samples, held: HeldOut) -> Ranks:
    parts: Sequence[Any] = blocks or [(np.zeros(0, dtype=np.int64),) * 6]
    above, tied, order, same, sampled, estimated = map(np.concatenate, zip(*parts, strict=True))
    weighed = samples.design.unequal_chances and not np.isnan(estimated).any()
    n_candidates = np.diff(held.test.indptr)[held.users] + sampled
    sample = Sample(samples.design, held.n_candidates, estimated=estimated if weighed else None)
    notes = (*held.notes, *samples.notes)
    return held.ranks(order, above, tied, n_candidates, same, sample=sample, notes=notes)


def _pool(held: HeldOut, n_ranked: int, popularity: Ints | None, seed: int | None, *, nested: bool) -> Pool:
    """Return what is sampled from: for each user all items, or all listed ones, except training and held-out ones."""
    if held.train is not None and popularity is None:
        popularity = np.bincount(held.train.items, minlength=held.test.n_items)
    marks = held.marks()
    if held.users.size < held.test.n_users:
        marks = marks[held.users]
    marks.sort_indices()
    indptr, items = marks.indptr.astype(np.int64), marks.indices.astype(np.int64)
    more = (popularity, held.users, held.with_unknown(held.scorers[n_ranked:], n_ranked), seed, nested)
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
    rows = [checks.as_ints("negatives", each[user]) for user in users]
    sampled = [np.sort(row[~np.isin(row, held.test.of_user(user))]) for user, row in zip(users, rows, strict=True)]
    flat = np.concatenate([*sampled, np.zeros(0, dtype=np.int64)])
    if flat.size and not 0 <= flat.min() <= flat.max() < n_items:
        raise InputError(f"`negatives` must hold items 0..{n_items - 1}, got {flat.min()}..{flat.max()}.")
    n_repeated = sum(row.size - np.unique(row).size for row in sampled)
    one = np.unique([row.size for row in sampled])
    design = designs.UniformSampling(int(one[0]) if one.size == 1 and one[0] else None, replace=n_repeated > 0)
    sizes = f"{flat.size} negatives, of which {np.unique(flat).size} distinct items"
    notes = (sizes, *_odd(rows, sampled, n_repeated, held))
    return _Samples(design, lambda number, start, stop: (sampled[start:stop], None), flat.size, notes)


def _odd(rows: list[Ints], sampled: list[Ints], n_repeated: int, held: HeldOut) -> list[str]:
    """Return notes on how many negatives are repeated, relevant, or training items."""
    relevant = sum(row.size for row in rows) - sum(row.size for row in sampled)
    trained = 0
    if held.excluded is not None:
        own = [held.excluded.of_user(user) for user in held.users]
        trained = sum(int(np.isin(row, items).sum()) for row, items in zip(sampled, own, strict=True))
    return [
        checks.counted(number, f"negative {one}", f"negatives {many}")
        for number, (one, many) in zip((n_repeated, relevant, trained), _ODDITIES, strict=True)
        if number
    ]


def _rank_in_rounds(
    design: SequentialDesign,
    pool: Pool,
    held: HeldOut,
    scorers: Sequence[Scorer],
    rng: np.random.Generator,
    effort: Effort,
) -> list[Ranks]:
    """Score candidates in growing batches, for all users at once, until enough is known about each relevant item."""
    design.check(pool.sizes, 1)
    if effort.most is not None and not design.can_end_anywhere:
        raise InputError(f"{design} can't be ended by `most_scores`; use InverseSampling.")
    n_relevant = held.test.items.size
    effort.check(n_relevant + len(pool), design)
    order, found = design.order(pool, rng), []
    for scorer in scorers:
        with progress_bar("users", effort.progress, total=len(pool)) as bar:
            rounds = _Rounds(_Asked(scorer, effort.threads, bar.update), held, design, order, rng)
            rounds.run(None if effort.most is None else effort.most - n_relevant)
        found.append(rounds.found())
    return found


@dataclass(frozen=True)
class _Asked:
    """A scorer of pairs, and what to call when users are done."""

    scorer: Scorer
    threads: int
    progress: Progress

    def scores(self, users: Ints, items: Ints) -> Floats:
        """Return the scores of pairs, or refuse them if one is not finite."""
        threads = self.threads if self.scorer.concurrent else 1
        step = _PER_THREAD if threads > 1 else max(users.size, 1)

        def part(start: int, stopped: Event) -> Floats:
            some = slice(start, start + step)
            scores = checks.to_numpy(self.scorer.pairs(users[some], items[some]), "scores")
            return scores.astype(np.float64, copy=False)

        scores = np.concatenate(share(part, range(0, max(users.size, 1), step), threads))
        check_pairs(scores, users, items)
        return scores


class _Rounds:
    """The relevant items of each instance from the top, and what has been counted so far for each of them.

    Attributes
    ----------
    ranks : Ranks
        All zero: which relevant items there are, and how many candidates.
    scores, keys : arrays of float, one per relevant item
        Its score, and a key that orders equal scores at random.
    above, tied, drawn : arrays of int, one per relevant item
    scored : array of int, one per instance
    open : array of bool, one per relevant item
        Whether more must be known about it.
    """

    def __init__(
        self, asked: _Asked, held: HeldOut, design: SequentialDesign, order: Order, rng: np.random.Generator
    ) -> None:
        self.asked, self.users, self.design, self.order, self.rng = asked, held.users, design, order, rng
        n_relevant = np.diff(held.test.indptr)[held.users]
        users = np.repeat(held.users, n_relevant)
        scores = asked.scores(users, held.test.items)
        keys = rng.random(scores.size)
        down = np.lexsort((-keys, -scores, users))
        self.scores, self.keys = scores[down], keys[down]
        self.ranks = Ranks(
            above=np.zeros(scores.size, dtype=np.int64),
            n_candidates=held.n_candidates,
            indptr=bounds(n_relevant),
            ids=held.test.owners[held.users],
            grades=None if held.grades is None else held.grades[down],
            notes=held.notes,
        )
        self.above, self.tied, self.drawn = np.zeros((3, scores.size), dtype=np.int64)
        self.scored = np.zeros(len(self.ranks), dtype=np.int64)
        self.open = np.ones(scores.size, dtype=np.bool_)

    def run(self, left: int | None) -> None:
        """Look at batch after batch of the open instances, until none is open or no score is left.

        When scores run out, all draws end, as far as possible at the same number.
        """
        start, last = 0, int(self.ranks.draws.max(initial=0))
        last = last if self.design.cap is None else min(last, self.design.cap)
        while start < last:
            batch, places = min(designs.next_batch(start), last - start), self.open_instances()
            size = batch if left is None else min(batch, left // max(places.size, 1))
            if not places.size or not size:
                return
            before = int(self.scored[places].sum())
            self.look(places, start, size)
            if left is not None:
                left -= int(self.scored[places].sum()) - before
            if size < batch:
                return
            start += batch
            self.asked.scorer.expect(self._still_needed() if left is None else min(self._still_needed(), left))

    def _still_needed(self) -> int:
        """Return about how many candidates of all open instances remain to be scored, at the rate of hits so far."""
        missing = np.maximum(self.design.enough - self.above, 1) * (self.drawn + 1) / (self.above + 1)
        most = self.ranks.item_irrelevant if self.design.cap is None else self.design.cap
        needed = np.zeros(len(self.ranks))
        np.maximum.at(needed, self.ranks.instance, np.where(self.open, np.minimum(missing, most - self.drawn), 0))
        return int(needed.sum())

    def found(self) -> Ranks:
        """Return the ranks as the design sees them."""
        counts = {"above": self.above, "tied": self.tied, "drawn": self.drawn, "scored": self.scored}
        return self.design.found(self.ranks, **counts)

    def open_instances(self) -> Ints:
        return np.unique(self.ranks.instance[self.open])

    def look(self, places: Ints, start: int, size: int) -> None:
        """Score the next candidates of some instances, and count them for each of their open items."""
        for part in slices(places.size, _CHUNK // size):
            self._look(places[part], start, size)
        self.asked.progress(places.size - np.isin(places, self.open_instances()).sum())

    def _look(self, places: Ints, start: int, size: int) -> None:
        items = self.order.part(places, start, start + size)
        sizes = np.array([own.size for own in items])
        scores = self.asked.scores(np.repeat(self.users[places], sizes), np.concatenate(items))
        inside = np.arange(size) < sizes[:, None]
        table = np.full(inside.shape, -np.inf)
        table[inside] = scores
        self.scored[places] = start + sizes
        keys = self.rng.random(table.shape) if self.design.breaks_ties else None
        n_relevant = self.ranks.n_relevant[places]
        for place in range(int(n_relevant.max(initial=0))):
            at = self.ranks.indptr[places] + np.minimum(place, n_relevant - 1)
            rows = np.flatnonzero((n_relevant > place) & self.open[at])
            self._count(at[rows], start, table[rows], None if keys is None else keys[rows], sizes[rows])

    def _count(self, at: Ints, start: int, table: AnyArray, keys: AnyArray | None, sizes: Ints) -> None:
        """Count the candidates in the rows of a table for one item each, until enough is known about it."""
        score = self.scores[at, None]
        higher, equal = table > score, table == score
        if keys is not None:
            higher |= equal & (keys > self.keys[at, None])
            equal[:] = False
        steps, ends = self._ends(at, higher, sizes)
        self.above[at] += (higher & steps).sum(axis=1)
        self.tied[at] += (equal & steps).sum(axis=1)
        self.drawn[at] = start + ends
        # an instance whose candidates have run out is not asked again
        ended = self.design.ended(self.above[at], self.drawn[at], self.ranks.item_irrelevant[at])
        self.open[at] = ~ended & (sizes == table.shape[1])

    def _ends(self, at: Ints, higher: Bools, sizes: Ints) -> tuple[Bools, Ints]:
        """Return which candidates count, and how many: those up to the one after which enough is known, or all."""
        counts = self.above[at, None] + np.cumsum(higher, axis=1)
        draws = self.drawn[at, None] + np.arange(1, higher.shape[1] + 1)
        reached = self.design.ended(counts, draws, self.ranks.item_irrelevant[at, None])
        done = reached.any(axis=1) & (not self.design.counts_whole_batches)
        ends = np.where(done, reached.argmax(axis=1) + 1, sizes)
        return np.arange(higher.shape[1]) < ends[:, None], ends
