"""How many scores are planned, against how many are spent."""

import math
from functools import cache
from typing import Any

import numpy as np
import pytest

import truerank as tr

RNG = np.random.default_rng(3)
TASTE, ITEMS = RNG.normal(size=(400, 4)), RNG.normal(size=(500, 4))
HELD = [np.argsort(-(ITEMS @ own + RNG.normal(scale=2, size=500)))[:1] for own in TASTE]
TEST = tr.Interactions.of(HELD, "test", n_items=500)
TRAIN = tr.Interactions.of([np.setdiff1d(RNG.permutation(500)[:20], own) for own in HELD], "train", n_items=500)
SPLIT = tr.Split(TRAIN, TEST)
MODEL = tr.Factors(TASTE, ITEMS)
EXACT = tr.rank(MODEL, SPLIT)


@cache
def sampled(design: Any, seed: int) -> tr.Ranks:
    return tr.rank_sampled(MODEL, SPLIT, design=design, rng=seed)


def spent(design: Any, seed: int) -> int:
    return int(sampled(design, seed).n_scored.sum())


@pytest.mark.parametrize("design", [100, "uniform(30, replace)", "popularity(20)"])
def test_fixed_designs_cost_what_they_say(design: Any) -> None:
    _, planned = tr.plan_scores(design, SPLIT).designs
    assert planned.scores == planned.low == planned.high == spent(design, 0)
    assert math.isnan(planned.error) == (design == "popularity(20)")


@pytest.mark.parametrize("design", ["inverse(2)", "inverse(5, 100)", "inverse(2, whole)"])
def test_sequential_designs_cost_what_is_expected(design: str) -> None:
    totals = [spent(design, seed) for seed in range(10)]
    planned = tr.plan_scores(design, SPLIT, like=MODEL).designs[1]
    assert planned.low < np.mean(totals) < planned.high
    assert planned.scores == pytest.approx(np.mean(totals), rel=0.08)
    unknown = tr.plan_scores(design, SPLIT).designs[1]
    assert unknown.low < min(totals) < max(totals) < unknown.high
    assert unknown.high <= EXACT.n_candidates.sum()


def test_ranges_from_a_pilot_of_few_users() -> None:
    """Of 40 pilots of 60 users, about 38 give ranges that hold what all users cost."""
    total, held = np.mean([spent("inverse(2)", seed) for seed in range(10)]), 0
    for seed in range(40):
        pilot = EXACT[np.random.default_rng(seed).choice(len(EXACT), 60, replace=False)]
        planned = tr.plan_scores("inverse(2)", SPLIT, like=pilot, rng=seed, metric="ap").designs[1]
        held += int(planned.low <= total <= planned.high)
    assert held >= 33, "binomial(40, 0.95) is below this with a chance of 0.0004"


def test_errors_are_those_of_the_evaluation() -> None:
    designs = ["inverse(2)", "inverse(10)"]
    plan = tr.plan_scores(designs, SPLIT, like=EXACT)
    for planned, design in zip(plan.designs[1:], designs, strict=True):
        runs = [sampled(design, seed) for seed in range(6)]
        intervals = [tr.estimate(ranks, "ndcg@10").confidence_interval() for ranks in runs]
        assert planned.error == pytest.approx(np.mean([(high - low) / 2 for low, high in intervals]), rel=0.35)
    low, high = tr.estimate(EXACT, "ndcg@10").confidence_interval()
    assert plan.designs[0].error == pytest.approx((high - low) / 2, rel=1e-12)
    more = tr.plan_scores([], like=EXACT, users=1600).designs[0]
    assert more.error == pytest.approx(plan.designs[0].error / 2, rel=0.15)


def test_a_sampled_pilot() -> None:
    pilot = tr.rank_sampled(MODEL, SPLIT, design="inverse(5)", users=200, rng=0)
    plan = tr.plan_scores("inverse(2)", SPLIT, like=pilot)
    assert plan.designs[1].low < spent("inverse(2)", 1) < plan.designs[1].high
    assert any("the pilot is sampled" in note for note in plan.notes)


def test_the_table_shows_money() -> None:
    plan = tr.plan_scores("inverse(2)", SPLIT, cost_per_score=0.01, users=100)
    assert plan.users == 100
    assert plan.designs[0].scores == pytest.approx(100 * 480, rel=0.01)
    assert f"{plan.designs[1].scores / 100:,.2f}" in str(plan)
    assert "cost" not in str(tr.plan_scores("inverse(2)", SPLIT))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "give a `split`, or the ranks of a pilot as `like`"),
        ({"like": EXACT, "users": 0}, "`users` must be a whole number from 1, got 0"),
        ({"like": EXACT, "cost_per_score": -1}, "`cost_per_score` must be a number from 0, got -1"),
        ({"like": EXACT, "designs": 1000}, "`m` must be at most the number of irrelevant candidates"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"designs": 10} | options
    with pytest.raises(tr.InputError, match=message):
        tr.plan_scores(**given)


def test_a_wanted_error_chooses_how_much_is_decided() -> None:
    pilot = tr.Ranks.from_ranks(np.random.default_rng(3).geometric(0.02, size=400), n=800)
    options: dict[str, Any] = {"like": pilot, "users": 1_500, "metric": "recall@10"}
    shares = [0.5, 0.3, 0.2, 0.1, 0.02]
    fixed = tr.plan_scores([tr.InverseSampling(2, decide=10, beyond=beyond) for beyond in shares], **options).designs[
        1:
    ]
    assert [each.scores for each in fixed] == sorted(each.scores for each in fixed), "more is decided, more is scored"
    wanted = (fixed[1].error + fixed[3].error) / 2
    _, chosen = tr.plan_scores("inverse(decide=10)", error=wanted, **options).designs
    assert chosen.error <= wanted
    assert fixed[0].scores < chosen.scores < fixed[-1].scores
    _, best = tr.plan_scores("inverse(decide=10)", error=1e-9, **options).designs
    assert best.design == "inverse(decide=10, beyond=0.01)", "none is good enough"
    _, plain = tr.plan_scores("inverse(2)", error=wanted, **options).designs
    assert plain.design == "inverse"
    with pytest.raises(tr.InputError, match="`error` must be a number above 0, got 0"):
        tr.plan_scores("inverse(decide=10)", error=0, **options)
