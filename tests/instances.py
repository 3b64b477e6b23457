"""Small instances: scores, what is relevant, and the ranks they mean."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import TypeVar

import numpy as np
import scipy.sparse as sp
from hypothesis import strategies as st

import truerank as tr
from tests import reference
from tests.arrays import Ints
from truerank.sampling.pools import Pool


@dataclass(frozen=True)
class FirstItems(tr.SamplingDesign):
    """The first candidates, a design without a law."""

    name = "first-items"

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        return [pool.candidates(user)[: self.size] for user in range(len(pool))]


Instance = tuple[list[float], list[bool]]
Grade = TypeVar("Grade", bool, float)


@st.composite
def instances(draw: st.DrawFn, max_candidates: int = 6, max_score: int = 3) -> Instance:
    """Draw up to six candidates with few different scores, so that many tie."""
    scores = draw(st.lists(st.integers(0, max_score).map(float), min_size=1, max_size=max_candidates))
    relevant = draw(st.lists(st.booleans(), min_size=len(scores), max_size=len(scores)))
    return scores, relevant


def ranks_of(*given: Instance) -> tr.Ranks:
    """Return the ranks of instances, by the slow definition of `above` and `tied`."""
    counted = [reference.count(*instance) for instance in given]
    return tr.Ranks(
        above=[number for above, _ in counted for number in above],
        tied=[number for _, tied in counted for number in tied],
        n_candidates=[len(scores) for scores, _ in given],
        indptr=np.cumsum([0] + [len(above) for above, _ in counted]),
    )


def all_small_and_some_larger(grades: Sequence[Grade], small: int, seed: int) -> list[tuple[list[float], list[Grade]]]:
    """Return all instances of few candidates, and 300 random ones of up to six, in which many tie."""
    every = [
        ([float(score) for score, _ in items], [grade for _, grade in items])
        for size in range(1, small + 1)
        for items in product(product(range(size), dict.fromkeys(grades)), repeat=size)
    ]
    rng = np.random.default_rng(seed)
    for size in rng.integers(small + 1, 7, 300):
        chosen = rng.integers(0, len(grades), size)
        every.append((rng.integers(0, 4, size).astype(float).tolist(), [grades[at] for at in chosen]))
    return every


def without_ties(grades: Sequence[Grade], seed: int) -> list[tuple[list[float], list[Grade]]]:
    """Return 300 random instances of up to twelve candidates."""
    rng = np.random.default_rng(seed)
    return [
        (rng.permutation(size).astype(float).tolist(), [grades[at] for at in rng.integers(0, len(grades), size)])
        for size in rng.integers(1, 13, 300)
    ]


@cache
def tied_instances() -> tuple[list[list[list[bool]]], tr.Ranks]:
    """Return the rankings that each of many instances with ties may mean, and their ranks."""
    found = all_small_and_some_larger([False, True], small=3, seed=0)
    return [list(reference.orders(*instance)) for instance in found], ranks_of(*found)


@cache
def untied_instances() -> tuple[list[list[bool]], tr.Ranks]:
    """Return the rankings of instances without ties, and their ranks."""
    found = without_ties([False, True], seed=1)
    return [next(reference.orders(*instance)) for instance in found], ranks_of(*found)


def sparse(rng: np.random.Generator, n_rows: int, n_columns: int, density: float) -> sp.csr_array:
    """Return a matrix with random numbers at random places; SciPy's own name for the generator is not that of 1.13."""
    places = rng.choice(n_rows * n_columns, round(density * n_rows * n_columns), replace=False)
    return sp.csr_array((rng.random(len(places)), np.divmod(places, n_columns)), shape=(n_rows, n_columns))
