"""One of each kind, added from outside in a few lines: a metric, a correction, a design, a scorer."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import truerank as tr
from tests.arrays import AnyArray, Floats, Ints
from truerank.estimators import Case, Law
from truerank.metrics import Term
from truerank.sampling.pools import Pool


@tr.register
@dataclass(frozen=True)
class LogRank(tr.metrics.PlainMetric):
    name = "log-rank"
    shape = "smooth"
    base: float = 2.0

    def term(self, rank: Ints, i: Ints, n_relevant: Ints, n: Ints) -> Floats:
        return np.log(rank) / np.log(self.base) / n_relevant


@tr.register
@dataclass(frozen=True)
class Halved(tr.estimators.Correction):
    """Half of what the metric is worth at the scaled count."""

    name = "halved"
    share: float = 0.5

    def solve(self, term: Term, law: Law, case: Case) -> tr.estimators.CorrectionTable:
        counts = np.floor(np.arange(case.m + 1) * case.N / case.m)
        return tr.estimators.CorrectionTable(self.share * case.count_term(term)(counts))


@tr.register
@dataclass(frozen=True)
class EverySecond(tr.SamplingDesign):
    """Candidates at even places, a design without a law."""

    name = "every-second"

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        return [pool.candidates(user)[::2][: self.size] for user in range(len(pool))]


def test_a_metric_from_outside() -> None:
    ranks = tr.Ranks(above=[0, 3], tied=[0, 4], n_candidates=100)
    by_hand = [0.0, np.log2(np.arange(4, 9)).mean()]
    np.testing.assert_allclose(tr.values(ranks, "log-rank"), by_hand, rtol=1e-13)
    assert tr.metric("log-rank(10)") == LogRank(10.0)
    sampled = tr.risk(tr.Ranks.from_ranks([5], n=100), "log-rank~bv(0.01)", design=50)
    assert abs(sampled.mean_bias) < 0.1


def test_a_correction_from_outside() -> None:
    sampled = tr.Ranks.from_sampled([1, 3], m=10, n=101)
    np.testing.assert_allclose(tr.values(sampled, "ap~halved"), [0.5, 0.5 / 21])
    np.testing.assert_allclose(tr.values(sampled, "ap~halved(1)"), [1.0, 1 / 21])
    assert str(tr.metric("AP ~ Halved(0.25)")) == "ap~halved(0.25)"
    with pytest.raises(tr.InputError, match="did you mean 'halved'"):
        tr.metric("ap~halfed")


def test_a_design_from_outside(tmp_path: Path) -> None:
    scores = np.array([[0.9, 0.1, 0.8, 0.7, 0.2, 0.5]])
    ranks = tr.rank_sampled(scores, test=[[3]], design=EverySecond(3))
    assert ranks.rank.tolist() == [3], "items 0, 2 and 5 are sampled, two of them with a higher score"
    ranks.save(tmp_path / "sampled.npz")
    assert tr.Ranks.load(tmp_path / "sampled.npz").design == EverySecond(3)
    with pytest.raises(tr.InputError, match=r"ap~cls needs uniform sampling: under every-second\(3\)"):
        tr.values(ranks, "ap~cls")


class Model:
    """A model of no library, with an item bias that its factors do not show."""

    user_factors, item_factors = np.ones((2, 1)), np.array([[1.0], [2.0], [3.0]])

    def scores(self, users: Ints) -> AnyArray:
        return np.tile([3.0, 2.0, 1.0], (len(users), 1))


def test_a_scorer_from_outside() -> None:
    assert tr.rank(Model(), test=[[0], [2]]).rank.tolist() == [1, 3]


def test_names_of_built_in_corrections_are_taken_before_any_is_used() -> None:
    script = """
from dataclasses import dataclass
import truerank as tr
try:
    @tr.register
    @dataclass(frozen=True)
    class Mine(tr.estimators.Correction):
        name = "bv"
        def solve(self, term, law, case): ...
except tr.InputError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout == "the correction name 'bv' is taken.\n"
