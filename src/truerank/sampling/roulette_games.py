"""One game of `truerank.Roulette`: who passes to the next level, what that is worth, and how far to trust it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.sampling.courses import Course

if TYPE_CHECKING:
    from truerank.ranking.ranks import Ranks
    from truerank.sampling.roulette import Roulette

_FIRST = 12
# the least chance to reach a level: so many over the candidates, within these limits
_SCORED_IN_FULL, _LEAST, _MOST = 70, 0.005, 0.02
# how a level differs from the one before, at most: the part of the instances that stay open, and of the squared changes
_OPEN = (0.3, 1.0)
_CHANGE = (0.25, 1.0)
_STEPS = 60
# the error is not trusted if a plausible number of changes makes it so many times larger, and it matters
_DOUBT, _MATTERS = 1.5, 0.02


class Level(NamedTuple):
    """What a level showed: how many instances reached it, with which chance, and how their NDCG@k changed."""

    chance: float
    reached: int
    changed: int
    squares: float
    """Sum of the squared changes."""
    at_stake: float
    """Mean square of the NDCG@k before the level, which a change can take away."""

    @property
    def change(self) -> float:
        """Mean squared change per instance, as if one more instance had lost all."""
        return (self.squares + self.at_stake) / (self.reached + 1)


class RouletteCourse(Course):
    """One game: which instances have reached the present level, with which chance, and the weights of their counts."""

    def __init__(self, design: Roulette, ranks: Ranks, rng: np.random.Generator) -> None:
        super().__init__(design, ranks)
        self.rng, self.budget = rng, design.budget
        self.enough = design.enough_above(ranks.i)
        self.ideal = self._gains(np.zeros_like(ranks.above))
        self.count = np.zeros_like(ranks.above)
        self.weights = np.zeros((ranks.above.size, design.k))
        self.weights[self.enough > 0, 0] = 1.0
        self.alive = np.ones(len(ranks), dtype=np.bool_)
        self.chance, self.spent = 1.0, 0
        self.levels: list[Level] = []

    def size(self, start: int) -> int:
        return start + _FIRST

    def chosen(self, open_: Ints) -> Ints:
        """Return as many instances as the budget allows, drawn at random from those that have come so far."""
        left = open_[self.alive[open_]]
        if not self.levels or not left.size:
            return left
        game = _Game(self.levels, left.size, len(self.ranks) * self.budget - self.spent, self.ranks.draws)
        number = int(np.clip(round(game.share() * left.size), 1, left.size))
        kept = np.sort(self.rng.choice(left, number, replace=False))
        self.alive[:] = False
        self.alive[kept] = True
        self.chance *= number / left.size
        return kept

    def saw(self, places: Ints, above: Ints, scored: Ints) -> None:
        before = self._ndcg()[places]
        changed = np.flatnonzero(self.alive[self.ranks.instance] & (above != self.count))
        self._weigh(changed, -1 / self.chance)
        self.count[changed] = above[changed]
        self._weigh(changed, 1 / self.chance)
        change = self._ndcg()[places] - before
        self.spent = int(scored.sum())
        stake, squares = float(np.square(before).mean()), float(np.square(change).sum())
        self.levels.append(Level(self.chance, places.size, int(np.count_nonzero(change)), squares, stake))

    def found(self, *, above: Ints, tied: Ints, drawn: Ints, scored: Ints) -> Ranks:
        note = doubt(
            self.levels, float(self._ndcg().sum()) / max(len(self.ranks), 1), len(self.ranks), str(self.design)
        )
        # draws for lower items end at smaller counts, which are at least those of the items before
        shift = self.ranks.instance * (int(above.max(initial=0)) + 1)
        return self.ranks.sampled(
            self.design,
            scored,
            above=np.maximum.accumulate(above + shift) - shift,
            tied=np.zeros_like(tied),
            drawn=scored[self.ranks.instance],
            count_weights=self.weights,
            notes=(*self.ranks.notes, *note),
        )

    def _weigh(self, items: Ints, weight: float) -> None:
        """Add a weight to the present counts of items, unless they are out."""
        inside = items[self.count[items] < self.enough[items]]
        self.weights[inside, self.count[inside]] += weight

    def _ndcg(self) -> Floats:
        return self._gains(self.count) / np.where(self.ideal > 0, self.ideal, 1.0)

    def _gains(self, count: Ints) -> Floats:
        """Return the discounted gain of each instance at these counts."""
        gains = np.where(count < self.enough, 1 / np.log2(count + self.ranks.i + 1), 0.0)
        return np.bincount(self.ranks.instance, gains, minlength=len(self.ranks)).astype(np.float64)


@dataclass(frozen=True)
class _Game:
    """Decides how many instances pass to the next level.

    The chance Q of a level adds change / Q to the variance and size * Q to the cost of each instance that is open
    there, so the best chances are proportional to sqrt(change / size). How many instances stay open, and how large
    changes are, is extrapolated from the levels so far; the decision is made anew before each level.
    """

    levels: Sequence[Level]
    left: int
    budget: int
    n_irrelevant: Ints

    def share(self) -> float:
        """Return the part of the instances that are left to be taken."""
        chance, sizes = self.levels[-1].chance, self._sizes()
        wish = np.sqrt(self._changes(sizes.size) / sizes)
        cost = self._open(sizes.size) / chance * sizes
        floor = min(chance, float(np.clip(_SCORED_IN_FULL / np.mean(self.n_irrelevant), _LEAST, _MOST)))

        def chances(factor: float) -> Floats:
            return np.clip(factor * wish, floor, chance)

        low, high = np.log(floor / wish.max()), np.log(chance / wish.min())
        for _ in range(_STEPS):
            middle = (low + high) / 2
            fits = float(chances(np.exp(middle)) @ cost) <= self.budget
            low, high = (middle, high) if fits else (low, middle)
        return float(chances(np.exp(low))[0]) / chance

    def _sizes(self) -> Floats:
        """Sizes of the levels to come."""
        scored, end = _FIRST * ((1 << len(self.levels)) - 1), float(np.mean(self.n_irrelevant))
        sizes: list[float] = []
        while scored < end or not sizes:
            sizes.append(max(min(scored + _FIRST, end - scored), 1.0))
            scored += scored + _FIRST
        return np.array(sizes)

    def _open(self, n_levels: int) -> Floats:
        """Instances that reach each level to come if none is stopped by chance."""
        stay = np.clip(self.left / self.levels[-1].reached, *_OPEN)
        # those that stay longest are in the top k
        shares = 1 - (1 - stay) * 0.5 ** np.arange(1, n_levels)
        return self.left * np.cumprod(np.concatenate([[1.0], shares]))

    def _changes(self, n_levels: int) -> Floats:
        last = self.levels[-1].change
        before = self.levels[-2].change if len(self.levels) > 1 else last
        return last * np.clip(last / max(before, 1e-300), *_CHANGE) ** np.arange(1, n_levels + 1)


def doubt(levels: Sequence[Level], mean: float, instances: int, name: str) -> tuple[str, ...]:
    """Return a note if the error rests on so few changes that it may well be much larger."""
    seen = likely = 0.0
    for level in levels:
        factor = (1 / level.chance - 1) / level.chance / instances**2
        size = level.squares / level.changed if level.changed else level.at_stake
        # the upper end of a 95 % interval for the expectation of a Poisson variable
        most = level.changed + 1 + 1.645 * np.sqrt(level.changed + 0.75) if level.changed else 3.0
        seen, likely = seen + factor * level.squares, likely + factor * size * most
    if not mean or np.sqrt(likely) <= max(_DOUBT * np.sqrt(seen), _MATTERS * mean):
        return ()
    return (
        f"the errors of {name} can't be trusted: they rest on few changes far down, and may be "
        f"{np.sqrt(likely) / mean:.0%} of the metric".replace("%", " %")
        + "; use inverse sampling, a closer proxy or a larger budget",
    )
