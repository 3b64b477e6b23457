r"""Roulette: follow a proxy's order, and let fewer and fewer instances go on, each of which then counts for more.

Candidates are scored in levels of 12, 24, 48, ... in the order of the proxy. Instances whose relevant items may still
be in the top k pass to level l with the chance q_l; with Q_l = q_1 ... q_l and c_l the count above after level l,

.. math:: Y = f(c_0) + \sum_{l \ge 1} [f(c_l) - f(c_{l-1})] \, 1[\text{level } l \text{ reached}] / Q_l

has the expectation f(c_last), whatever the proxy: each level is chosen by chance alone, with a probability fixed before
it is scored. Since f of a metric cut at k depends on counts below k only, Y is a weighted sum of f over these counts,
and the weights are all that is kept.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from truerank.arrays import Ints, check_whole
from truerank.sampling.courses import run
from truerank.sampling.designs import DESIGNS, Rng
from truerank.sampling.drawing import draw_counts
from truerank.sampling.laws import HYPERGEOMETRIC
from truerank.sampling.roulette_games import RouletteCourse
from truerank.sampling.sequential import HeadFirst, require_drawn
from truerank.text_forms import write

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks


@dataclass(frozen=True)
class Roulette(HeadFirst):
    """Score in the order of a proxy, and stop ever more instances at random; those that go on count for more.

    Metrics cut at k or above are unbiased, whatever the proxy, at part of the cost of `HeadFirst`. The closer the proxy
    is to the scorer, the smaller the error. Errors are those of values that vary from instance to instance; when few
    changes decide about them, a note says that they can't be trusted. Candidates with the score of a relevant item
    stand above or below it at random.

    Parameters
    ----------
    k : int
        Deepest rank that counts.
    proxy : scorer, optional
        Anything that `truerank.rank` takes, quick to compute. None: the popularity of items in the training data.
    budget : int
        About how many irrelevant candidates to score per instance, on average.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> rng = np.random.default_rng(0)
    >>> scores = rng.normal(size=(400, 1_000))
    >>> test = [[user] for user in range(400)]
    >>> scores[np.arange(400), np.arange(400)] += 2.5
    >>> design = tr.Roulette(k=10, proxy=scores + rng.normal(size=scores.shape) / 2, budget=60)
    >>> ranks = tr.rank_sampled(scores, test=test, design=design, rng=1)
    >>> bool(50 < ranks.n_scored.mean() < 80)
    True
    >>> found, exact = tr.estimate(ranks, "ndcg@10"), tr.estimate(tr.rank(scores, test=test), "ndcg@10")
    >>> found.metric, bool(abs(found.mean - exact.mean) < 3 * found.standard_error)
    ('ndcg@10~unbiased', True)
    >>> print(design)
    roulette(60)@10
    """

    name = "roulette"
    breaks_ties: ClassVar[bool] = True
    budget: int = 100

    def __post_init__(self) -> None:
        super().__post_init__()
        check_whole("budget", self.budget)

    def __str__(self) -> str:
        return write(dataclasses.replace(self, proxy=None))

    @property
    def needs_estimator(self) -> bool:
        return True

    @property
    def n_count_weights(self) -> int:
        return self.k

    def enough_above(self, i: Ints) -> Ints:
        return np.maximum(self.k - i + 1, 0)

    def check_drawn(self, above: Ints, drawn: Ints | None) -> None:
        require_drawn(self, drawn)

    def course(self, ranks: Ranks, rng: np.random.Generator) -> RouletteCourse:
        return RouletteCourse(self, ranks, rng)

    def draw(self, ranks: Ranks, *, rng: Rng = None) -> Ranks:
        """Return what exact ranks would have shown if candidates came in a random order, as ranks tell of no proxy."""
        generator = np.random.default_rng(rng)
        untied = self.untied(ranks, generator)
        return run(self.course(untied, generator), _RandomOrder(untied, self, generator))


DESIGNS.add_built_in(Roulette)


class _RandomOrder:
    """Looks at candidates in a random order, drawn from exact ranks without ties."""

    def __init__(self, ranks: Ranks, design: Roulette, rng: np.random.Generator) -> None:
        self.ranks, self.enough, self.rng = ranks, design.enough_above(ranks.i), rng
        self.above, self.tied, self.drawn = (np.zeros_like(ranks.above) for _ in range(3))
        self.scored = np.zeros(len(ranks), dtype=np.int64)

    def open_instances(self) -> Ints:
        open_ = (self.above < self.enough) & (self.drawn < self.ranks.item_irrelevant)
        return np.unique(self.ranks.instance[open_])

    def look(self, places: Ints, start: int, size: int) -> None:
        chosen = np.zeros(len(self.ranks), dtype=np.bool_)
        chosen[places] = True
        items = np.flatnonzero(chosen[self.ranks.instance])
        bounds = np.concatenate([[0], np.cumsum(self.ranks.n_relevant[places])])
        left = self.ranks.draws[places] - start
        draws = np.minimum(size, left)
        above, none = self.ranks.above[items] - self.above[items], np.zeros(items.size, dtype=np.int64)
        found, _ = draw_counts(above, none, bounds, left, draws, HYPERGEOMETRIC, self.rng)
        self.above[items] += found
        self.scored[places] = start + draws
        self.drawn[items] = self.scored[self.ranks.instance[items]]
