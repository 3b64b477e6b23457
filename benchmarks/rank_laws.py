"""Laws of the ranks of two recommenders, with known expectations, for the benchmark of verdicts.

Each user has one relevant item among 1,201 candidates. A pair says where both recommenders put it: mostly the laws are
chosen to break something. Metrics are written out here, so that the truth does not come from what is tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache

import numpy as np
from scipy import sparse, stats
from scipy.optimize import linprog

from truerank.core.checks import Floats, Ints

N = 1_201
K = 10
_RANKS = np.arange(1.0, N + 1)
VALUES: dict[str, Floats] = {
    "recall@10": np.where(_RANKS <= K, 1.0, 0.0),
    "ndcg@10": np.where(_RANKS <= K, 1 / np.log2(_RANKS + 1), 0.0),
    "ap": 1 / _RANKS,
}
"""Metrics of one relevant item at each rank."""


@dataclass(frozen=True, eq=False)
class Law:
    """Where the relevant item of a user stands.

    Attributes
    ----------
    above, tied : arrays of int
        Candidates above it, and tied with it.
    chances : array of float
        The probability of each of these places.
    """

    above: Ints
    tied: Ints
    chances: Floats

    def draw(self, size: int, rng: np.random.Generator) -> Ints:
        """Return the candidates above and tied of so many users, in two rows."""
        places = np.searchsorted(np.cumsum(self.chances)[:-1], rng.random(size), side="right")
        return np.array([self.above[places], self.tied[places]])

    def mean(self, metric: str) -> float:
        """Return the expectation of a metric, over users and random orders of ties."""
        totals = np.append(0.0, np.cumsum(VALUES[metric]))
        return float(self.chances @ ((totals[self.above + self.tied + 1] - totals[self.above]) / (self.tied + 1)))

    @property
    def key(self) -> bytes:
        return b"".join(each.tobytes() for each in (self.above, self.tied, self.chances.round(12)))


def at_ranks(chances: Floats) -> Law:
    """Return the law with a chance for each rank from 1 on."""
    above = np.flatnonzero(chances > 0)
    return Law(above, np.zeros_like(above), chances[above] / chances.sum())


def power(exponent: float) -> Law:
    return at_ranks(_RANKS**-exponent)


def evenly(first: int, last: int) -> Law:
    return at_ranks(np.where((first <= _RANKS) & (last >= _RANKS), 1.0, 0.0))


def hump(centre: float, width: float) -> Law:
    return at_ranks(stats.norm.pdf(np.log(_RANKS), np.log(centre), width))


def in_a_tie(above: int, tied: int) -> Law:
    return Law(np.array([above]), np.array([tied]), np.ones(1))


def mixed(*shares: tuple[float, Law]) -> Law:
    return Law(
        np.concatenate([law.above for _, law in shares]),
        np.concatenate([law.tied for _, law in shares]),
        np.concatenate([share * law.chances for share, law in shares]),
    )


def like(law: Law, metric: str, good: Law, bad: Law) -> Law:
    """Return the mixture of a good and a bad law that has the expectation of another one."""
    least, most = bad.mean(metric), good.mean(metric)
    share = (law.mean(metric) - least) / (most - least)
    return mixed((share, good), (1 - share, bad))


FIRST, LAST, ANYWHERE = evenly(1, 1), evenly(N, N), evenly(1, N)


@dataclass(frozen=True, eq=False)
class Part:
    """A share of the users, with the laws of A and of B, which are independent; B None: where A has it."""

    share: float
    a: Law
    b: Law | None = None


@dataclass(frozen=True, eq=False)
class Pair:
    """Two recommenders, A and B, on the same users.

    Attributes
    ----------
    name : str
    metric : str
        Which it is a trial for.
    parts : sequence of Part
    alike_under : str
        The design under which A and B look exactly alike, so that any order found is a guess; empty: none.
    """

    name: str
    metric: str
    parts: Sequence[Part]
    alike_under: str = ""

    def draw(self, size: int, rng: np.random.Generator) -> tuple[Ints, Ints]:
        """Return for A and for B what `Law.draw` does."""
        shares = np.cumsum([part.share for part in self.parts])[:-1]
        chosen = np.searchsorted(shares, rng.random(size), side="right")
        a, b = np.empty((2, size), dtype=np.int64), np.empty((2, size), dtype=np.int64)
        for at, part in enumerate(self.parts):
            users = np.flatnonzero(chosen == at)
            a[:, users] = part.a.draw(users.size, rng)
            b[:, users] = a[:, users] if part.b is None else part.b.draw(users.size, rng)
        return a, b

    @property
    def laws(self) -> tuple[Law, Law]:
        """The law of each recommender."""
        a = mixed(*((part.share, part.a) for part in self.parts))
        return a, mixed(*((part.share, part.b or part.a) for part in self.parts))

    def gain(self, metric: str) -> float:
        """Return by how much B is better than A; 0 if it is so up to rounding."""
        a, b = (law.mean(metric) for law in self.laws)
        return 0.0 if abs(b - a) < 1e-9 else b - a


def apart(name: str, metric: str, a: Law, b: Law, alike_under: str = "") -> Pair:
    return Pair(name, metric, [Part(1.0, a, b)], alike_under)


def lost(share: float, metric: str, good: Law = FIRST, bad: Law = LAST) -> Pair:
    """Return a pair in which B puts the items of a few users last, and all others where A has them."""
    return Pair(f"{share:.1%} of the users lose all", metric, [Part(share, good, bad), Part(1 - share, good)])


def traded(share: float, metric: str) -> Pair:
    """Return a pair in which as many users lose as gain."""
    moved = [Part(share, FIRST, LAST), Part(share, LAST, FIRST)]
    return Pair(f"{share:.1%} of the users gain all, as many lose", metric, [*moved, Part(1 - 2 * share, LAST)])


def pairs() -> list[Pair]:
    """Return all pairs."""
    return [*_smooth(), *_few_differ(), *_humps(), *_equal_means(), *_ties(), *_alike()]


def _smooth() -> list[Pair]:
    return [
        apart("power laws, equal", "ndcg@10", power(1), power(1)),
        apart("power laws, flat and equal", "recall@10", power(0.5), power(0.5)),
        apart("power laws, one steeper", "ap", power(0.8), power(1)),
        apart("power laws, one far steeper", "ndcg@10", power(0.5), power(1.5)),
        apart("random order against a power law", "recall@10", ANYWHERE, power(0.7)),
        apart("all first against a power law", "ap", FIRST, power(1)),
    ]


def _few_differ() -> list[Pair]:
    rare = mixed((0.005, FIRST), (0.995, LAST))
    small = [Part(0.05, evenly(2, 2), evenly(9, 10)), Part(0.35, evenly(10, 10), evenly(9, 9)), Part(0.6, power(1))]
    return [
        Pair("the same ranks", "ndcg@10", [Part(1.0, power(1))]),
        lost(0.1, "recall@10"),
        lost(0.02, "recall@10"),
        lost(0.01, "ndcg@10"),
        lost(0.005, "ap"),
        lost(0.001, "recall@10"),
        Pair("2.0% of the users gain all", "ndcg@10", [Part(0.02, LAST, FIRST), Part(0.98, LAST)]),
        traded(0.05, "recall@10"),
        traded(0.01, "ap"),
        Pair("a few lose much, many gain little", "ndcg@10", small),
        Pair("a tenth of the users differ", "ap", [Part(0.1, power(1), power(1)), Part(0.9, LAST)]),
        Pair("the same but for a twentieth", "recall@10", [Part(0.05, power(1), power(1)), Part(0.95, power(1))]),
        apart("hits are rare", "recall@10", rare, rare),
    ]


def _humps() -> list[Pair]:
    def half(first: int, last: int) -> Law:
        return mixed((0.5, evenly(first, last)), (0.5, evenly(200, N)))

    few = mixed((0.08, evenly(1, 10)), (0.92, evenly(200, N)))
    return [
        apart("half at 11 to 20 against 8 % in the top 10", "recall@10", half(11, 20), few),
        apart("half at 11 to 99 against a flat power law", "recall@10", half(11, 99), power(0.5)),
        apart("half at 8 to 59 against half at 2 to 7", "ndcg@10", half(8, 59), half(2, 7)),
        apart("a hump at 30 against one at 300", "ap", hump(30, 0.3), hump(300, 0.3)),
        apart("all at 10 against all at 11", "recall@10", evenly(10, 10), evenly(11, 11)),
        apart("all at 11 against all at 15", "ndcg@10", evenly(11, 11), evenly(15, 15)),
        apart(
            "all at 15 against 30 % first", "ndcg@10", evenly(15, 15), mixed((0.3, FIRST), (0.7, evenly(1000, 1000)))
        ),
    ]


def _equal_means() -> list[Pair]:
    top, straddling, low = evenly(1, 10), evenly(6, 15), hump(12, 0.2)
    mixture = like(straddling, "recall@10", top, evenly(11, 20))
    return [
        apart("all at 6 to 15, or as many in the top 10", "recall@10", straddling, mixture),
        apart("all in the top 10, or first and last", "ndcg@10", top, like(top, "ndcg@10", FIRST, LAST)),
        apart("a power law, or first and last", "ap", power(1), like(power(1), "ap", FIRST, LAST)),
        apart("a hump at 12, or first and last", "recall@10", low, like(low, "recall@10", FIRST, LAST)),
    ]


def _ties() -> list[Pair]:
    blocks = mixed(*((0.1, in_a_tie(20 * at, 19)) for at in range(10)))
    return [
        apart("a tie of 20, or the same without ties", "recall@10", in_a_tie(0, 19), evenly(1, 20)),
        apart("ties of 20 against a power law", "ndcg@10", blocks, power(1)),
        apart("all candidates tie, or stand last", "ap", in_a_tie(0, N - 1), LAST),
    ]


def _alike() -> list[Pair]:
    """Return pairs that a sample can't, or can hardly, tell apart although their metrics differ as much as can be."""
    found = []
    many, few = (np.unique(np.geomspace(1, N, size).astype(np.int64)) - 1 for size in (400, 70))
    for m, metric in ((20, "ndcg@10"), (100, "recall@10"), (100, "ap")):
        a, b = alike(uniform_chances(m, many), many, metric, 0.0)
        found.append(apart(f"alike among {m}: worst case for {metric}", metric, a, b, f"uniform({m})"))
    for cap, metric in ((N - 1, "recall@10"), (100, "ndcg@10")):
        a, b = alike(stopped_chances(2, cap, few), few, metric, 0.01)
        found.append(apart(f"nearly alike in {cap:,} draws: worst case for {metric}", metric, a, b))
    return found


def uniform_chances(m: int, counts: Ints) -> Floats:
    """Return the chance of each sampled count (columns) for each count of all candidates (rows)."""
    return np.asarray(stats.hypergeom.pmf(np.arange(m + 1), N - 1, counts[:, None], m))


def stopped_chances(hits: int, cap: int, counts: Ints) -> Floats:
    """Return the chance of each outcome of draws that end with so many hits, or at the cap.

    The columns are the draw of the last hit, and then the number of hits of draws that end at the cap.
    """
    left, above, draw = N - 1, counts[:, None], np.arange(hits, cap + 1)
    before = stats.hypergeom.pmf(hits - 1, left, above, draw - 1)
    last = before * np.maximum(above - hits + 1, 0) / (left - draw + 1)
    return np.hstack([last, stats.hypergeom.pmf(np.arange(hits), left, above, cap)])


def alike(chances: Floats, counts: Ints, metric: str, distance: float) -> tuple[Law, Law]:
    """Return the laws whose metrics differ most although what samples show of them differs by no more than a distance.

    Parameters
    ----------
    chances : array of shape (n_counts, n_outcomes)
        Of the outcomes of a sample, for each count of candidates above.
    counts : array of int
    metric : str
    distance : float
        In total variation.
    """
    size, outcomes = chances.shape
    gaps, values, none = np.hstack([chances.T, -chances.T]), VALUES[metric][counts], np.zeros(outcomes)
    masses = np.repeat(np.eye(3)[:2], (size, size, outcomes), axis=1)
    # a variable per count for each law, and one per outcome that is at least the distance there
    aim, each = np.concatenate([-values, values, none]), sparse.eye_array(outcomes)
    within = sparse.block_array([[gaps, -each], [-gaps, -each], [None, np.ones((1, outcomes))]]).tocsr()
    found = linprog(aim, within, np.concatenate([none, none, [2 * distance]]), masses, [1.0, 1.0], method="highs")
    if not found.success:
        raise RuntimeError(found.message)
    laws = []
    for start in (0, size):
        at = np.zeros(N)
        at[counts] = np.maximum(found.x[start : start + size], 0.0)
        laws.append(at_ranks(at))
    return laws[0], laws[1]


@cache
def all_pairs() -> dict[str, Pair]:
    """Return the pairs by name; the linear programmes are solved once."""
    return {pair.name: pair for pair in pairs()}
