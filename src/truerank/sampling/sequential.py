"""Designs that score candidate after candidate and stop when enough of them stand above the relevant item."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from truerank.arrays import AnyArray, Floats, Ints, check_whole
from truerank.errors import InputError
from truerank.sampling import likelihoods
from truerank.sampling.courses import Course, batch_ends
from truerank.sampling.designs import DESIGNS, Counts, Rng, SamplingDesign, Stops, WaysToRank
from truerank.sampling.drawing import draw_until
from truerank.sampling.orders import FixedOrder, Order, RandomOrder, ScoreOrder
from truerank.sampling.pools import Pool

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class SequentialDesign(SamplingDesign):
    """A design under which each relevant item has a number of draws of its own, found while scoring.

    A subclass tells in which order candidates are scored (`order`), how many above an item end its draws
    (`enough_above`), and turns the counts into ranks (`found`). Which instances go on may depend on more (`course`).
    """

    m: int | None = field(default=None, init=False, metadata={"only_in_code": True})
    breaks_ties: ClassVar[bool] = False
    """Whether candidates with the score of a relevant item come before or after it at random."""
    can_end_anywhere: ClassVar[bool] = False
    """Whether estimates hold when all draws end before enough is known."""

    @property
    def counts_whole_batches(self) -> bool:
        """Whether what a batch drew after enough was known counts too."""
        return False

    def ranked(self, ways: WaysToRank) -> list[Ranks]:
        return ways.in_rounds(self)

    def enough_above(self, i: Ints) -> Ints:
        """Return how many candidates above end the draws for the i-th relevant items of their instances."""
        raise NotImplementedError

    @property
    def cap(self) -> int | None:
        """How many draws end those of any item."""
        return None

    def order(self, pool: Pool, rng: np.random.Generator) -> Order:
        """Return the order in which candidates are scored."""
        raise NotImplementedError

    def course(self, ranks: Ranks, rng: np.random.Generator) -> Course:
        """Return how a run of the design goes on."""
        return Course(self, ranks)

    def untied(self, ranks: Ranks, rng: np.random.Generator) -> Ranks:
        """Return exact ranks to draw from, with ties broken at random; refuse others."""
        if ranks.design is not None or ranks.depth is not None:
            raise InputError("only exact ranks can be sampled, but these ranks are already sampled or cut.")
        self.check(ranks.draws[ranks.n_relevant > 0], 1)
        return ranks.break_ties("random", rng=rng) if ranks.has_ties else ranks

    def found(self, ranks: Ranks, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        """Return ranks from what was counted.

        Parameters
        ----------
        ranks : Ranks
            The relevant items with all their candidates; its counts are to be replaced.
        above, tied, drawn : arrays of int, one per relevant item
            Candidates above and tied among those drawn.
        scored : array of int, one per instance
            Irrelevant candidates scored.
        """
        raise NotImplementedError

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        raise InputError(f"{self} can't be drawn without scores, because they decide when it stops.")

    def _drawn_until(self, ranks: Ranks, hits: int, rng: Rng) -> Ranks:
        """Draw from exact ranks in a random order until `hits` stand above each item."""
        generator = np.random.default_rng(rng)
        untied = self.untied(ranks, generator)
        ends = batch_ends(int(ranks.draws.max(initial=0))) if self.counts_whole_batches else None
        drawn, above = draw_until(untied.above, ranks.indptr, ranks.draws, hits, self.cap, generator, ends)
        scored = np.zeros(len(ranks), dtype=np.int64)
        np.maximum.at(scored, ranks.instance, drawn)
        return self.found(untied, above=above, tied=np.zeros_like(above), drawn=drawn, scored=scored)


@dataclass(frozen=True)
class InverseSampling(SequentialDesign):
    """Draw candidates without replacement until `hits` of them stand above the relevant item.

    Items at high ranks get many draws and others few, so the top of the ranking is seen well at a small cost: about
    hits times n times AP draws per relevant item. The relevant items of an instance share their draws, and each has
    its own end. Candidates with the score of a relevant item stand above or below it at random, so these ranks have no
    ties.

    Parameters
    ----------
    hits : int
        Number of candidates above that ends the draws for a relevant item. If fewer exist, all candidates are drawn.
    most : int, optional
        Largest number of draws. Items that this cap reaches have no unbiased estimate.
    whole : bool
        Whether draws go on to the end of the batch in which enough stand above. `truerank.rank_sampled` has to score
        that batch anyway, and estimators that fit the law of the ranks gain from it; unbiased estimates don't exist.

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
    """

    name = "inverse"
    breaks_ties: ClassVar[bool] = True
    can_end_anywhere: ClassVar[bool] = True
    hits: int = 2
    most: int | None = None
    whole: bool = False

    def __post_init__(self) -> None:
        check_whole("hits", self.hits)
        if self.most is not None:
            check_whole("most", self.most)

    def enough_above(self, i: Ints) -> Ints:
        return np.full_like(i, self.hits)

    @property
    def cap(self) -> int | None:
        return self.most

    @property
    def counts_whole_batches(self) -> bool:
        return self.whole

    @property
    def needs_estimator(self) -> bool:
        return True

    def order(self, pool: Pool, rng: np.random.Generator) -> Order:
        return RandomOrder(pool, rng)

    def found(self, ranks: Ranks, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        return ranks.sampled(self, scored, above=above, tied=tied, drawn=drawn)

    def log_likelihood(self, above: Counts, drawn: Counts, count: AnyArray, n_irrelevant: Counts) -> Floats:
        return likelihoods.without_replacement(above, drawn, count, n_irrelevant)

    def stops(self, ranks: Ranks) -> Stops | None:
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
        require_drawn(self, drawn)
        if not self.whole and np.any(above > self.hits):
            at = int(np.argmax(above > self.hits))
            raise InputError(f"`above` must be at most {self.hits} under {self}, got {above[at]} at position {at}.")

    def draw(self, ranks: Ranks, *, rng: Rng = None) -> Ranks:
        return self._drawn_until(ranks, self.hits, rng)

    def law(self, what: str) -> Any:
        raise InputError(
            f"{what} needs the same number of draws for each item of an instance, but {self} draws until enough stand "
            "above; use ~unbiased (ap, rr, auc), ~smooth or ~monotone."
        )


@dataclass(frozen=True)
class StoppedSampling(SamplingDesign):
    """Candidates drawn uniformly without replacement, until some rule ended the draws for each relevant item.

    For data from elsewhere, see `Ranks.from_draws`. The rule may depend on what was drawn, but on nothing else that is
    known of the candidates; estimators that fit the law of the ranks need not know it.
    """

    name = "stopped"
    m: int | None = field(default=None, init=False, metadata={"only_in_code": True})

    @property
    def needs_estimator(self) -> bool:
        return True

    def log_likelihood(self, above: Counts, drawn: Counts, count: AnyArray, n_irrelevant: Counts) -> Floats:
        return likelihoods.without_replacement(above, drawn, count, n_irrelevant)

    def check_drawn(self, above: Ints, drawn: Ints | None) -> None:
        require_drawn(self, drawn)

    @property
    def size(self) -> int:
        raise self._refusal()

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        raise self._refusal()

    def _refusal(self) -> InputError:
        return InputError(f"{self} describes data from elsewhere; sample by UniformSampling or InverseSampling.")


def require_drawn(design: SamplingDesign, drawn: Ints | None) -> None:
    """Refuse ranks without their numbers of draws."""
    if drawn is None:
        raise InputError(f"under {design} each relevant item has its own number of draws, but `drawn` is missing.")


@dataclass(frozen=True)
class HeadFirst(SequentialDesign):
    """Score candidates in the order of a proxy, and stop as soon as a relevant item can't be in the top k.

    Metrics cut at k or above are exact, whatever the proxy; the closer it is to the scorer, the fewer scores are spent.
    The ranks have the depth k, so `truerank.evaluate` refuses metrics that look deeper.

    Parameters
    ----------
    k : int
        Deepest rank to be known.
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
        check_whole("k", self.k)

    def enough_above(self, i: Ints) -> Ints:
        return np.full_like(i, self.k)

    @property
    def proxies(self) -> tuple[Any, ...]:
        return () if self.proxy is None else (self.proxy,)

    def order(self, pool: Pool, rng: np.random.Generator) -> Order:
        if pool.proxies:
            return ScoreOrder(pool, pool.proxies[0], rng)
        if pool.popularity is None:
            raise InputError("the order by popularity counts training interactions; give `train`, or a `proxy`.")
        among_equal = rng.random(pool.n_items)
        return FixedOrder(pool, np.lexsort((among_equal, -pool.popularity)))

    def found(self, ranks: Ranks, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        """Put items that are not in the top k below all that are, and below their ties."""
        out = above >= self.k
        lowest = np.full(len(ranks), self.k)
        np.maximum.at(lowest, ranks.instance[~out], (above + tied)[~out])
        below = np.minimum(lowest[ranks.instance], ranks.item_irrelevant)
        return ranks.cut(
            self.k, above=np.where(out, below, above), tied=np.where(out, 0, tied), scored=scored + ranks.n_relevant
        )

    def __str__(self) -> str:
        return f"{self.name}@{self.k}"

    def draw(self, ranks: Ranks, *, rng: Rng = None) -> Ranks:
        """Return what exact ranks would have shown if candidates came in a random order, as ranks tell of no proxy."""
        return self._drawn_until(ranks, self.k, rng)


DESIGNS.add_built_in(InverseSampling, StoppedSampling, HeadFirst)
