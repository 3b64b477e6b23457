"""The designs that benchmarks/estimators.py compares at equal budgets, and the estimators that it tries for each."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

import truerank as tr
from truerank.core.checks import Ints

GAMMAS = (0.001, 0.003, 0.01, 0.03, 0.1, 0.3)
FIXED = ["monotone", "smooth", "em", "mes", "mn", "bv(auto)", *(f"bv({gamma:g})" for gamma in GAMMAS)]
MOST_HITS, DEEP, SHALLOW = 8, 0.3, 1 / 16

Draw = Callable[[str, int], tr.Ranks]
"""From the name of a recommender and a seed to sampled ranks."""


@dataclass(frozen=True)
class Plan:
    """A design at a budget, how to draw by it, and the estimators to try."""

    budget: int
    design: str
    draw: Draw
    estimators: list[str]


def fixed(ranks: dict[str, tr.Ranks], budget: int) -> Plan:
    design = tr.UniformSampling(budget)
    return Plan(budget, str(design), lambda name, seed: design.draw(ranks[name], rng=seed), FIXED)


@dataclass(frozen=True)
class Uncapped:
    """What inverse sampling without a cap draws for each user, of all recommenders together."""

    ranks: dict[str, tr.Ranks]
    kept: dict[int, Ints] = field(default_factory=dict)

    def draws(self, hits: int) -> Ints:
        if hits not in self.kept:
            drawn = (tr.InverseSampling(hits).draw(one, rng=0).draws for one in self.ranks.values())
            self.kept[hits] = np.concatenate(list(drawn))
        return self.kept[hits]

    def cost(self, hits: int) -> float:
        return float(self.draws(hits).mean())

    def cap(self, hits: int, budget: int) -> int:
        """Return the largest cap that costs no more than the budget; draws that it does not end stay as they are."""
        low, high = 1, int(self.draws(hits).max())
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if np.minimum(self.draws(hits), middle).mean() <= budget else (low, middle)
        return low


def inverse(ranks: dict[str, tr.Ranks], free: Uncapped, budget: int) -> Plan:
    """Return inverse sampling that costs the budget: the fewest hits that would cost more without a cap, and a cap.

    One hit more and a smaller cap serve metrics cut at k, and AP has accuracy to spare, as long as the cap is at least
    0.3 of the candidates. Where it is below a sixteenth, nearly all draws end there, and one hit more costs little.
    """
    median = float(np.median(np.concatenate([one.draws for one in ranks.values()])))
    hits = next(hits for hits in range(1, MOST_HITS + 1) if hits == MOST_HITS or free.cost(hits) >= budget)
    hits += free.cap(hits + 1, budget) >= DEEP * median or free.cap(hits, budget) < SHALLOW * median
    design = tr.InverseSampling(hits, most=free.cap(hits, budget))
    return Plan(
        budget, str(design), lambda name, seed: design.draw(ranks[name], rng=seed), ["monotone", "smooth", "em"]
    )


def uncapped(ranks: dict[str, tr.Ranks], free: Uncapped, hits: int) -> Plan:
    design = tr.InverseSampling(hits)
    estimators = ["unbiased", "monotone", "smooth", "em"]
    return Plan(
        round(free.cost(hits)), f"inverse({hits})", lambda name, seed: design.draw(ranks[name], rng=seed), estimators
    )


def plans(ranks: dict[str, tr.Ranks], budgets: list[int], kinds: list[str]) -> Iterator[Plan]:
    free = Uncapped(ranks)
    for budget in budgets:
        if "fixed" in kinds:
            yield fixed(ranks, budget)
        if "inverse" in kinds:
            yield inverse(ranks, free, budget)
    if "uncapped" in kinds:
        yield from (uncapped(ranks, free, hits) for hits in (1, 2, 3))
