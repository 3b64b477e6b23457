"""Plans against simulation."""

import math

import numpy as np
import pytest

import truerank as tr

RNG = np.random.default_rng(3)
OLD, NEW = RNG.geometric(0.02, size=400).clip(1, 300), RNG.geometric(0.03, size=400).clip(1, 300)
PILOT = {"old": tr.Ranks.from_ranks(OLD, n=300), "new": tr.Ranks.from_ranks(NEW, n=300)}


def test_probability_on_these_users_is_that_of_simulated_runs() -> None:
    found = tr.plan(PILOT, ["rr", "rr~bv(0.1)"], sizes=[20]).designs
    design = tr.UniformSampling(20)
    for each in found[1:]:
        rights = []
        for seed in range(400):
            rng = np.random.default_rng(seed)
            old, new = (tr.values(design.draw(one, rng=rng), each.metric).mean() for one in PILOT.values())
            rights.append(new > old)
        error = math.sqrt(each.probability * (1 - each.probability) / 400)
        assert np.mean(rights) == pytest.approx(each.probability, abs=5 * error + 0.005)


def test_so_many_users_bring_the_order_out_with_that_probability() -> None:
    exact = tr.plan(PILOT, "recall@10", sizes=[]).designs[0]
    assert (exact.m, exact.right, exact.probability, exact.repetitions) == (None, True, 1.0, 1)
    difference = tr.values(PILOT["new"], "recall@10") - tr.values(PILOT["old"], "recall@10")
    drawn = RNG.choice(difference, size=(4000, int(exact.users))).mean(axis=1)
    # means of few 0s and 1s are lumpy: an even chance counts half
    assert np.mean(drawn > 0) + np.mean(drawn == 0) / 2 == pytest.approx(0.95, abs=0.03)


def test_an_order_that_sampling_reverses_never_comes_out() -> None:
    toy = {
        "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
        "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
    }
    exact, sampled = tr.plan(toy, "ap", sizes=[99]).designs
    assert (exact.right, sampled.right) == (True, False)
    assert math.isinf(sampled.users)
    assert math.isinf(sampled.repetitions)
    assert sampled.probability < 0.5
    assert "never" in str(tr.plan(toy, "ap", sizes=[99]))


def test_sizes_and_wrong_arguments() -> None:
    assert [each.m for each in tr.plan(PILOT, "rr", sizes=[10, 1000]).designs] == [None, 10]
    with pytest.raises(tr.InputError, match="two recommenders"):
        tr.plan({"old": PILOT["old"]}, "rr")
    with pytest.raises(tr.InputError, match="`probability`"):
        tr.plan(PILOT, "rr", probability=95)
    with pytest.raises(tr.InputError, match="must be exact"):
        tr.plan({name: tr.UniformSampling(5).draw(one, rng=0) for name, one in PILOT.items()}, "rr")
