"""Sampling designs: which candidates are sampled, in which order, when draws end, and the law of the sampled count.

Under uniform sampling that law is known, so metrics can be corrected. Under sampling by popularity, which is common, it
is not known, because it depends on which items stand above.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Rng,
    as_number,
    as_rng,
    check_whole,
    distinct_columns,
)
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.samples import DESIGNS, Design
from truerank.kernels.draws import Draws, Way
from truerank.sampling.laws import BINOMIAL, HYPERGEOMETRIC, AnyCounts, Law, draw_counts, draw_until
from truerank.sampling.pools import FixedOrder, Order, Pool, RandomOrder, ScoreOrder

# candidates of each instance in the first batch; each further one adds a quarter of what was drawn, which bounds the
# waste
_FIRST, _GROWTH = 16, 0.25
# shares of the candidates that plans choose from
_BEYOND = (0.5, 0.4, 0.3, 0.25, 0.2, 0.15, 0.1, 0.07, 0.05, 0.03, 0.02, 0.01)


class Stops(NamedTuple):
    """What ended the draws for each relevant item: the first `hits` candidates above it, or a limit.

    Attributes
    ----------
    hits : int
    limit : array of int
        The most draws that there could have been.
    open_until : array of int
        The last number of draws at which the design checked whether to stop, and continued.
    """

    hits: int
    limit: Ints
    open_until: Ints


@dataclass(frozen=True)
class SamplingDesign(Design):
    """A way to rank relevant items among sampled irrelevant candidates instead of all of them.

    To add one, subclass as a frozen dataclass, give it a `name`, and decorate it with `truerank.register`; files store
    its text form.

    Parameters
    ----------
    m : int, optional
        Irrelevant candidates sampled for each instance. None: each instance has its own number, as for candidates
        that somebody else has sampled.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, truerank as tr
    >>> @tr.register
    ... @dataclass(frozen=True)
    ... class FirstItems(tr.SamplingDesign):
    ...     name = "first-items"
    ...     def sample(self, pool, rng):
    ...         return [pool.candidates(user)[: self.size] for user in range(len(pool))]
    >>> ranks = tr.rank_sampled(np.array([[0.1, 0.4, 0.3, 0.2]]), test=[[3]], design=FirstItems(2))
    >>> ranks.rank.tolist(), str(ranks.design)
    ([2], 'first-items(2)')
    """

    replace = False
    """Whether a candidate may be sampled more than once."""

    @property
    def proxies(self) -> tuple[Any, ...]:
        """Scorers that the design uses besides the one that is evaluated."""
        return ()

    @property
    def law_of_draws(self) -> Law | None:
        """The law of the count above among any number of uniform draws; None if draws are not uniform."""
        return None

    def law(self, what: str) -> Law:
        """Return the law of the sampled count, for `what`; designs without one raise an error that names it."""
        reason = f"under {self} the sampled rank depends on which items stand above"
        raise InputError(f"{what} needs uniform sampling: {reason}.")

    def log_likelihood(self, above: AnyCounts, drawn: AnyCounts, count: AnyArray, n_irrelevant: AnyCounts) -> Floats:
        """Return the log likelihood of each `count` among all candidates, given the sample, up to a constant.

        Only uniform designs have a likelihood; arguments broadcast.
        """
        if self.law_of_draws is None:
            what = "estimating the law of the ranks needs uniform sampling"
            raise InputError(f"{what}, but these were sampled by {self}.")
        return self.law_of_draws.log_likelihood(above, drawn, count, n_irrelevant)

    def possible_counts(self, above: Ints, drawn: Ints, n_irrelevant: Ints) -> tuple[Ints, Ints]:
        """Return the least and the largest count among all candidates that could have produced this sample."""
        below = drawn - above
        if self.replace:
            above, below = np.minimum(above, 1), np.minimum(below, 1)
        return above, n_irrelevant - below

    def stops(self, ranks: Ranks) -> Stops | None:
        """Return what ended the draws for each relevant item of ranks by this design; None if that isn't known."""
        return None

    @property
    def decides_below(self) -> int:
        """Items with fewer candidates above than this may be known exactly; `inclusion` is the chance. 0: none are."""
        return 0

    def inclusion(self, count: AnyCounts, n_irrelevant: AnyCounts) -> Floats:
        """Return the chance that an item with this many above, fewer than `decides_below`, is known exactly."""
        return np.ones(np.broadcast_shapes(np.shape(count), np.shape(n_irrelevant)))

    def variants(self) -> Sequence[SamplingDesign]:
        """Return designs to plan with instead, from few scores with large errors to many scores with small errors."""
        return (self,)

    @abstractmethod
    def sample(self, pool: Pool, rng: np.random.Generator) -> Sequence[Ints]:
        """Return the sampled items of each user of a pool."""

    def draws(self, n_items: int, seed: int) -> Draws | None:
        """Return how a compiled loop draws what `sample` draws from a pool with this seed; None if none can."""
        return None

    def weights(self, pool: Pool, sample: Sequence[Ints]) -> Sequence[Floats] | None:
        """Return the weight of each sampled item if `unequal_chances`; None if some candidate could not be sampled.

        Weights are valid if those of the sampled items of any group add up, on average, to the size of the group.
        """
        return None

    def draw(self, ranks: Ranks, *, rng: Rng = None) -> Ranks:
        """Return what exact ranks would have been in a sample, drawn from their exact distribution.

        The relevant items of an instance share a sample, and ties are sampled too.
        """
        law = self.law("drawing from ranks")
        _check_exact(ranks)
        self.check(ranks.draws[ranks.n_relevant > 0], self.size)
        draws = np.full(len(ranks), self.size)
        counts = (ranks.above, ranks.tied, ranks.indptr, ranks.draws, draws)
        above, tied = draw_counts(*counts, law, as_rng(rng))
        return ranks.sampled(self, draws, above=above, tied=tied)


@dataclass(frozen=True)
class UniformSampling(SamplingDesign):
    """Rank the relevant items among m irrelevant candidates that are sampled uniformly.

    Parameters
    ----------
    m : int, optional
        Irrelevant candidates sampled for each instance. None: each instance has its own number.
    replace : bool
        Whether a candidate may be sampled more than once.

    Examples
    --------
    The chance that an item at rank 100 of 10,000 comes first among 99 sampled candidates:

    >>> import truerank as tr
    >>> float(tr.UniformSampling(99).pmf(1, rank=100, n=10_000).round(4))
    0.3716

    Exact ranks become sampled ones without any score:

    >>> exact = tr.Ranks.from_ranks([100, 2], n=10_000)
    >>> tr.UniformSampling(99).draw(exact, rng=1)
    Ranks(2 instances, 2 relevant items, 100 of 10000 candidates sampled, no ties)
    """

    name = "uniform"
    keeps_unbiased = True
    replace: bool = False

    @property
    def law_of_draws(self) -> Law:
        return BINOMIAL if self.replace else HYPERGEOMETRIC

    def law(self, what: str = "the law") -> Law:
        """Return the law of the sampled count: binomial with replacement, hypergeometric without."""
        return self.law_of_draws

    def check(self, n_irrelevant: Ints, draws: ArrayLike) -> None:
        super().check(n_irrelevant, draws)
        if not self.replace:
            _require_enough("`m`", n_irrelevant, draws)

    def sample(self, pool: Pool, rng: np.random.Generator) -> Sequence[Ints]:
        """Draw for all users at once."""
        sizes, m = pool.sizes, self.size
        self.check(sizes, m)
        if self.replace:
            return pool.repeated(m, rng)
        users = np.arange(len(pool))
        return pool.distinct(users, np.full(users.size, m), rng)

    def draws(self, n_items: int, seed: int) -> Draws:
        return Draws(n_items, seed, self.size, Way.REPEATED if self.replace else Way.DISTINCT)

    def pmf(self, sampled_rank: ArrayLike, *, rank: ArrayLike, n: ArrayLike, i: int = 1, n_relevant: int = 1) -> Floats:
        """Return the probability of a sampled rank given the true one (eq. 15).

        Parameters
        ----------
        sampled_rank, rank : array of int
            Rank among sample and relevant items, and among all n candidates.
        n : array of int
            Candidates.
        i, n_relevant : int
            The position of the item among the relevant ones, from the top, and their number.
        """
        return self.law().pmf(*self._counts(sampled_rank, rank, n, i, n_relevant))

    def cdf(self, sampled_rank: ArrayLike, *, rank: ArrayLike, n: ArrayLike, i: int = 1, n_relevant: int = 1) -> Floats:
        """Return the probability that the sampled rank is at most this; arguments as for `pmf`."""
        return self.law().cdf(*self._counts(sampled_rank, rank, n, i, n_relevant))

    def _counts(
        self, sampled_rank: ArrayLike, rank: ArrayLike, n: ArrayLike, i: int, n_relevant: int
    ) -> tuple[Ints, Ints, int, Ints]:
        above, irrelevant = np.asarray(rank) - i, np.asarray(n) - n_relevant
        self.check(np.atleast_1d(irrelevant), self.size)
        if np.any((above < 0) | (above > irrelevant)):
            raise InputError("`rank` must lie in i..n - n_relevant + i for the i-th relevant item.")
        return np.asarray(sampled_rank) - i, above, self.size, irrelevant


@dataclass(frozen=True)
class PopularitySampling(SamplingDesign):
    """Sample candidates with probability proportional to their number of training interactions to a power.

    Each candidate is drawn with a known chance from those that are left, so its weight is known, too: ``auc~unbiased``
    and ``mean-rank~unbiased`` are exactly unbiased. Metrics at the top have bounds only, as in ``recall@10~possible``.

    Parameters
    ----------
    m : int
        Irrelevant candidates sampled for each instance.
    power : float
        1 is proportional to popularity; smaller powers are closer to uniform.
    replace : bool
        Whether a candidate may be sampled more than once; each of its draws counts.
    uniform : float
        Share of the draws that are uniform, from 0 to 1. Above 0, items without training interactions can be sampled,
        too; otherwise there is no unbiased estimate for all candidates.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores, train = np.array([[0.1, 0.4, 0.3, 0.2]] * 2), [[], [0, 1]]
    >>> design = tr.PopularitySampling(2, uniform=0.5)
    >>> sampled = tr.rank_sampled(scores, train=train, test=[[3], []], design=design, rng=1)
    >>> str(design), tr.values(sampled, "auc~unbiased").round(3).tolist()
    ('popularity(2, uniform=0.5)', [0.767])
    >>> tr.rank_sampled(scores, train=train, test=[[3], []], design=tr.PopularitySampling(3))
    Traceback (most recent call last):
    ...
    truerank.InputError: `m` must be at most the number of items with training interactions left to sample, got 3.

    References
    ----------
    Des Raj, Some estimators in sampling with varying probabilities without replacement, JASA 1956: the weights of
    draws without replacement, which depend on the order in which candidates were drawn.
    """

    name = "popularity"
    unequal_chances = True
    power: float = 1.0
    replace: bool = False
    uniform: float = field(default=0.0, metadata={"by_name": True})

    def __post_init__(self) -> None:
        super().__post_init__()
        if not np.isfinite(as_number(self.power)):
            shown = f"an array of shape {np.shape(self.power)}" if np.ndim(self.power) else repr(self.power)
            raise InputError(f"`power` must be a finite number, got {shown}; popularity is counted in `train`.")
        if not 0 <= as_number(self.uniform) <= 1:
            raise InputError(f"`uniform` must be a number from 0 to 1, got {self.uniform!r}.")

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        self.check(pool.sizes, self.size)
        return [self._sample_one(pool, user, rng) for user in range(len(pool))]

    def _sample_one(self, pool: Pool, user: int, rng: np.random.Generator) -> Ints:
        """Return the sampled items of a user, in the order in which they were drawn."""
        chances = self._chances(pool, user)
        if int((chances > 0).sum()) < (1 if self.replace else self.size):
            most = "the number of items with training interactions left to sample"
            raise InputError(f"`m` must be at most {most}, got {self.m}.")
        drawn = rng.choice(chances.size, self.size, replace=self.replace, p=chances, shuffle=False)
        return pool.items_at(user, drawn)

    def _chances(self, pool: Pool, user: int) -> Floats:
        """Return the chance that each candidate of a user is drawn first; 0 for all if nothing can be drawn."""
        if pool.popularity is None:
            raise InputError("popularity-weighted sampling needs training interactions; give `train`.")
        with np.errstate(divide="ignore"):
            popularity = np.power(pool.popularity[pool.candidates(user)].astype(np.float64), self.power)
        total = popularity.sum()
        if not np.isfinite(total) or not (total or self.uniform):
            return np.zeros(popularity.size)
        share = self.uniform if total else 1.0
        return (1 - share) * popularity / (total or 1.0) + share / popularity.size

    def weights(self, pool: Pool, sample: Sequence[Ints]) -> list[Floats] | None:
        found = []
        for user, items in enumerate(sample):
            chances = self._chances(pool, user)
            if not np.all(chances > 0):
                return None
            found.append(self._weigh(chances[np.searchsorted(pool.candidates(user), items)]))
        return found

    def _weigh(self, chance: Floats) -> Floats:
        """Return the weights of draws: 1 / expected number of draws or, without replacement, those of Des Raj."""
        if self.replace:
            return 1 / (self.size * chance)
        later = self.size - 1 - np.arange(self.size)
        left = np.maximum(1 - (np.cumsum(chance) - chance), chance)
        return (left / chance + later) / self.size


@dataclass(frozen=True)
class SequentialDesign(SamplingDesign):
    """A design under which each relevant item has its own number of draws, determined while scoring.

    A subclass says in which order candidates are scored (`order`), how many candidates above an item end its draws
    (`enough`, or `ended` if that is not a single number), and turns the counts into ranks (`found`).
    """

    m: int | None = field(default=None, init=False, metadata={"only_in_code": True})
    breaks_ties: ClassVar[bool] = False
    """Whether candidates that tie with a relevant item come before or after it at random."""
    can_end_anywhere: ClassVar[bool] = False
    """Whether estimates remain valid when all draws end before enough is known."""

    def check(self, n_irrelevant: Ints, draws: ArrayLike) -> None:
        super().check(n_irrelevant, draws)
        _require_enough(_DRAWS, n_irrelevant, draws)

    @property
    @abstractmethod
    def enough(self) -> int:
        """How many candidates above a relevant item end its draws."""

    def ended(self, above: Ints, drawn: AnyCounts, n_irrelevant: AnyCounts) -> Bools:
        """Whether the draws for an item end when `above` of `drawn` stand above it; arguments broadcast."""
        return above >= self.enough

    @property
    def cap(self) -> int | None:
        """The number of draws that ends those for any item."""
        return None

    @property
    def counts_whole_batches(self) -> bool:
        """Whether draws of a batch after enough is known count too."""
        return False

    @abstractmethod
    def order(self, pool: Pool, rng: np.random.Generator) -> Order:
        """Return the order in which candidates are scored."""

    @abstractmethod
    def found(self, ranks: Ranks, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        """Return ranks from what was counted.

        Parameters
        ----------
        ranks : Ranks
            The relevant items with all their candidates; its counts are placeholders.
        above, tied, drawn : arrays of int, one per relevant item
            Candidates above and tied among those drawn.
        scored : array of int, one per instance
            Irrelevant candidates scored.
        """

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        raise InputError(f"{self} can't be drawn without scores, because they decide when it stops.")

    def draw(self, ranks: Ranks, *, rng: Rng = None) -> Ranks:
        """Return what exact ranks would have shown if candidates came in a random order, with ties broken at random."""
        _check_exact(ranks)
        self.check(ranks.draws[ranks.n_relevant > 0], 1)
        generator = as_rng(rng)
        untied = ranks.break_ties("random", rng=generator) if ranks.has_ties else ranks
        drawn, above = self._draw_counts(untied, generator)
        scored = np.zeros(len(ranks), dtype=np.int64)
        np.maximum.at(scored, ranks.instance, drawn)
        return self.found(untied, above=above, tied=np.zeros_like(above), drawn=drawn, scored=scored)

    def _draw_counts(self, ranks: Ranks, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return the draws for each relevant item of exact ranks without ties, and how many of them are above it."""
        return draw_until(ranks.above, ranks.indptr, ranks.draws, self.enough, self.cap, rng, self._ends(ranks))

    def _ends(self, ranks: Ranks) -> Ints | None:
        """Return the numbers of draws at which those for an item can end; None if any."""
        return batch_ends(int(ranks.draws.max(initial=0))) if self.counts_whole_batches else None


@dataclass(frozen=True)
class InverseSampling(SequentialDesign):
    """Draw candidates without replacement until `hits` of them stand above the relevant item.

    Items at high ranks get many draws and others few, so the top of the ranking is seen well at a small cost: about
    hits times n times AP draws per relevant item. The relevant items of an instance share their draws, and each has
    its own end. Candidates with the score of a relevant item stand above or below it at random, so these ranks have no
    ties.

    With `decide`, draws continue for items that may be in the top: those that have fewer than `hits` above them after a
    share `beyond` of their candidates. Their draws end when `decide` stand above, or when all candidates are drawn and
    the rank is known. The draws for an item with g < `decide` above continue with the chance that at most `hits` - 1 of
    them are among those first draws. That chance is known, and the contribution of the item is divided by it. So every
    metric cut at `decide` or less has an exactly unbiased estimate, whatever the law of the ranks, and AP, RR and AUC
    keep theirs.

    Parameters
    ----------
    hits : int
        Number of candidates above at which the draws for a relevant item end. If fewer exist, all candidates are drawn.
    most : int, optional
        Largest number of draws. Items that reach this cap have no unbiased estimate. With `decide`: draws continue
        after at most this number, if `beyond` is a larger one.
    whole : bool
        Whether draws continue to the end of the batch in which enough stand above. `truerank.rank_sampled` scores that
        batch anyway, and estimators that fit the law of the ranks gain from it; unbiased estimates exist only for
        metrics cut at `decide`.
    decide : int, optional
        Number of candidates above at which draws end for items that may be in the top; above `hits`.
    beyond : float
        Share of the candidates, between 0 and 1, after which draws continue for items with fewer than `hits` above. A
        smaller share gives smaller errors and takes more scores; `truerank.plan_scores` compares shares.

    Examples
    --------
    >>> import truerank as tr
    >>> exact = tr.Ranks.from_ranks([[3, 40], [500]], n=1_000)
    >>> ranks = tr.InverseSampling(hits=2).draw(exact, rng=1)
    >>> ranks.above.tolist(), ranks.drawn.tolist(), ranks.n_scored.tolist()
    ([2, 2, 2], [766, 6, 5], [768, 6])
    >>> print(tr.InverseSampling(2, most=300))
    inverse(2, 300)
    >>> ranks = tr.InverseSampling(hits=2, whole=True).draw(exact, rng=1)
    >>> ranks.above.tolist(), ranks.drawn.tolist(), ranks.n_scored.tolist()
    ([2, 2, 7], [998, 125, 16], [1000, 17])

    An item at rank 3 of 1,000 has two above it. It is decided unless both are among the first 200 draws:

    >>> design = tr.InverseSampling(hits=2, decide=10, beyond=0.2)
    >>> float(design.inclusion(2, 999).round(2))
    0.96
    >>> print(design)
    inverse(decide=10)
    >>> ranks = design.draw(exact, rng=1)
    >>> ranks.above.tolist(), ranks.drawn.tolist()
    ([2, 2, 2], [998, 6, 5])
    >>> tr.values(ranks, "recall@10").round(2).tolist()
    [0.52, 0.0]
    """

    name = "inverse"
    needs_estimator = True
    law_of_draws = HYPERGEOMETRIC
    breaks_ties: ClassVar[bool] = True
    hits: int = 2
    most: int | None = None
    whole: bool = False
    decide: int | None = field(default=None, metadata={"by_name": True})
    beyond: float = field(default=0.2, metadata={"by_name": True})

    def __post_init__(self) -> None:
        check_whole("hits", self.hits, floats=True)
        if self.most is not None:
            check_whole("most", self.most, floats=True)
        if self.decide is not None:
            check_whole("decide", self.decide, self.hits + 1, floats=True)
        if not 0 < as_number(self.beyond) < 1:
            raise InputError(f"`beyond` must be a share of the candidates between 0 and 1, got {self.beyond!r}.")

    @property
    def enough(self) -> int:
        return self.hits

    @property
    def cap(self) -> int | None:
        return self.most if self.decide is None else None

    @property
    def can_end_anywhere(self) -> bool:  # type: ignore[override]
        return self.decide is None

    @property
    def counts_whole_batches(self) -> bool:
        return self.whole

    @property
    def decides_below(self) -> int:
        return self.hits if self.decide is None else self.decide

    def variants(self) -> Sequence[SamplingDesign]:
        return (self,) if self.decide is None else [replace(self, beyond=beyond) for beyond in _BEYOND]

    def line(self, n_irrelevant: AnyCounts) -> Ints:
        """Return after how many draws those for items with fewer than `hits` above continue, by number of candidates.

        Enough candidates are left that draws may continue for every item with fewer than `decide` above.
        """
        N = np.asarray(n_irrelevant)
        if self.decide is None:
            return N
        latest = np.minimum((self.beyond * N).astype(np.int64), N - (self.decide - self.hits))
        latest = np.maximum(latest if self.most is None else np.minimum(latest, self.most), 0)
        if not self.whole:
            return latest
        batches = np.append(0, batch_ends(int(latest.max(initial=0))))
        return batches[np.searchsorted(batches, latest, side="right") - 1]

    def inclusion(self, count: AnyCounts, n_irrelevant: AnyCounts) -> Floats:
        """Return the chance that fewer than `hits` of the candidates above are drawn up to the line."""
        if self.decide is None:
            return super().inclusion(count, n_irrelevant)
        g, N = np.broadcast_arrays(count, n_irrelevant)
        first, which = distinct_columns(g.ravel(), N.ravel())  # few differ
        few, own = g.ravel()[first], N.ravel()[first]
        return HYPERGEOMETRIC.cdf(self.hits - 1, few, self.line(own), own)[which].reshape(g.shape)

    def ended(self, above: Ints, drawn: AnyCounts, n_irrelevant: AnyCounts) -> Bools:
        return above >= np.where(drawn <= self.line(n_irrelevant), self.hits, self.decides_below)

    def _draw_counts(self, ranks: Ranks, rng: np.random.Generator) -> tuple[Ints, Ints]:
        if self.decide is None:
            return super()._draw_counts(ranks, rng)
        N, ends = ranks.draws, self._ends(ranks)
        line = self.line(N)
        drawn, above = draw_until(ranks.above, ranks.indptr, N, self.hits, line, rng, ends)
        on = np.flatnonzero(above < self.hits)
        indptr = bounds(np.bincount(ranks.instance[on], minlength=len(ranks)))
        drawn[on], above[on] = draw_until(ranks.above[on], indptr, N, self.decide, None, rng, ends, (line, above[on]))
        return drawn, above

    def order(self, pool: Pool, rng: np.random.Generator) -> Order:
        return RandomOrder(pool, rng)

    def found(self, ranks: Ranks, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        return ranks.sampled(self, scored, above=above, tied=tied, drawn=drawn)

    def stops(self, ranks: Ranks) -> Stops | None:
        if self.decide is not None:
            return None
        N, drawn = ranks.item_irrelevant, ranks.item_draws
        limit = N if self.most is None else np.minimum(N, self.most)
        open_until, ends = drawn - 1, drawn
        if self.whole:
            batches = np.append(0, batch_ends(int(drawn.max(initial=0))))
            at = np.searchsorted(batches, drawn)
            open_until, ends = batches[at - 1], np.minimum(batches[at], limit)
        by_rule = (drawn == np.where(ranks.above < self.hits, limit, ends)) & (ranks.tied == 0)
        possible = ranks.above - self.hits < drawn - open_until
        return Stops(self.hits, limit, open_until) if np.all(by_rule & possible) else None

    def check_drawn(self, above: Ints, drawn: Ints | None) -> None:
        _require_drawn(self, drawn)
        most = self.decides_below
        if not self.whole and np.any(above > most):
            at = int(np.argmax(above > most))
            raise InputError(f"`above` must be at most {most} under {self}, got {above[at]} at position {at}.")

    def law(self, what: str) -> Any:
        rule = f"the same number of draws for each item of an instance, but {self} draws until enough stand above"
        raise InputError(f"{what} needs {rule}; use ~unbiased (ap, rr, auc), ~smooth or ~monotone.")


@dataclass(frozen=True)
class HeadFirst(SequentialDesign):
    """Score candidates in the order of a proxy, and stop as soon as a relevant item can't be in the top k.

    Metrics cut at k or less are exact, whatever the proxy; the closer it is to the scorer, the fewer scores are spent.
    The ranks have the depth k, so `truerank.evaluate` refuses metrics that look deeper.

    Parameters
    ----------
    k : int
        The depth to which ranks are exact.
    proxy : scorer, optional
        Anything that `truerank.rank` takes, quick to compute. None: the popularity of items in the training data.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.random.default_rng(0).random((20, 500))
    >>> test = [[user] for user in range(20)]
    >>> ranks = tr.rank_sampled(scores, test=test, design=tr.HeadFirst(k=10, proxy=scores + 0.1), rng=1)
    >>> ranks.depth, bool(ranks.n_scored.mean() < 100)
    (10, True)
    >>> exact = tr.rank(scores, test=test)
    >>> bool((tr.values(ranks, "ndcg@10") == tr.values(exact, "ndcg@10")).all())
    True
    """

    name = "head-first"
    k: int = 10
    proxy: Any = field(default=None, compare=False, metadata={"only_in_code": True})

    def __post_init__(self) -> None:
        check_whole("k", self.k, floats=True)

    @property
    def enough(self) -> int:
        return self.k

    @property
    def proxies(self) -> tuple[Any, ...]:
        return () if self.proxy is None else (self.proxy,)

    def order(self, pool: Pool, rng: np.random.Generator) -> Order:
        if pool.proxies:
            return ScoreOrder(pool, pool.proxies[0], rng)
        if pool.popularity is None:
            raise InputError("an order by popularity needs training interactions; give `train`, or a `proxy`.")
        among_equal = rng.random(pool.n_items)
        return FixedOrder(pool, np.lexsort((among_equal, -pool.popularity)))

    def found(self, ranks: Ranks, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        return ranks.cut(self.k, above=above, tied=tied, scored=scored + ranks.n_relevant)

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"


@dataclass(frozen=True)
class StoppedSampling(SamplingDesign):
    """Candidates drawn uniformly without replacement, until some rule ended the draws for each relevant item.

    For data from elsewhere, see `Ranks.from_draws`. The rule may depend on what was drawn, but on nothing else that is
    known about the candidates; estimators that fit the law of the ranks need not know the rule.
    """

    name = "stopped"
    needs_estimator = True
    law_of_draws = HYPERGEOMETRIC
    m: int | None = field(default=None, init=False, metadata={"only_in_code": True})

    @property
    def distinct(self) -> bool:
        """Whether no candidate was drawn twice."""
        return True

    def check(self, n_irrelevant: Ints, draws: ArrayLike) -> None:
        super().check(n_irrelevant, draws)
        if self.distinct:
            _require_enough(_DRAWS, n_irrelevant, draws)

    def check_drawn(self, above: Ints, drawn: Ints | None) -> None:
        _require_drawn(self, drawn)

    @property
    def size(self) -> int:
        raise self._refusal()

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        raise self._refusal()

    def _refusal(self) -> InputError:
        return InputError(f"{self} describes data from elsewhere; sample by UniformSampling or InverseSampling.")


@dataclass(frozen=True)
class WeightedSampling(StoppedSampling):
    """Candidates drawn with known, unequal chances, so that each counts 1 / chance.

    For data from elsewhere, see `Ranks.from_scores` and its `inclusion`.

    Parameters
    ----------
    replace : bool
        Whether a candidate may have been sampled more than once.
    """

    name = "weighted"
    law_of_draws = None  # type: ignore[assignment]
    unequal_chances = True
    replace: bool = False

    @property
    def distinct(self) -> bool:
        return not self.replace


DESIGNS.add_built_in(UniformSampling, PopularitySampling, InverseSampling, StoppedSampling, WeightedSampling, HeadFirst)


AnyDesign = SamplingDesign | str | int
"""A sampling design, its text form, or the number of candidates to sample uniformly."""


def as_design(design: AnyDesign | Design) -> SamplingDesign:
    """Return a design, given as such, as its text form or as a number of candidates.

    Examples
    --------
    >>> as_design("inverse(2)").hits, as_design(100)
    (2, UniformSampling(m=100, replace=False))
    """
    given: Any = design
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return UniformSampling(int(given))
    if isinstance(given, str):
        return cast("SamplingDesign", DESIGNS.read(given))
    if not isinstance(given, SamplingDesign):
        raise InputError(f"`design` must be a sampling design, or a text such as 'uniform(100)', got {given!r}.")
    return given


def next_batch(start: int) -> int:
    """Return the size of the next batch of each instance after this many draws."""
    return max(_FIRST, int(start * _GROWTH))


def batch_ends(last: int) -> Ints:
    """Return after how many draws batches end, up to the batch that holds the last draw.

    Examples
    --------
    >>> batch_ends(100).tolist()
    [16, 32, 48, 64, 80, 100]
    """
    ends = [next_batch(0)]
    while ends[-1] < last:
        ends.append(ends[-1] + next_batch(ends[-1]))
    return np.array(ends)


def _check_exact(ranks: Ranks) -> None:
    if ranks.design is not None or ranks.depth is not None:
        raise InputError("only exact ranks can be sampled, but these ranks are already sampled or cut.")


_DRAWS = "the number of draws"


def _require_enough(what: str, n_irrelevant: Ints, draws: ArrayLike) -> None:
    """Refuse more draws without replacement than there are candidates."""
    left, drawn = np.broadcast_arrays(n_irrelevant, draws)
    if np.any(left < drawn):
        at = int(np.argmax(left < drawn))
        most = f"the number of irrelevant candidates ({left[at]} for some instance)"
        raise InputError(f"{what} must be at most {most} when sampling without replacement, got {drawn[at]}.")


def _require_drawn(design: Design, drawn: Ints | None) -> None:
    """Refuse ranks without their numbers of draws."""
    if drawn is None:
        raise InputError(f"under {design} each relevant item has its own number of draws, but `drawn` is missing.")
