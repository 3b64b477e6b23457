"""Plans against simulation."""

import math
from typing import Any

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from truerank.papers.krichene_rendle_2020.movielens import embedded

RNG = np.random.default_rng(3)
OLD, NEW = RNG.geometric(0.02, size=400).clip(1, 300), RNG.geometric(0.03, size=400).clip(1, 300)
PILOT = {"old": tr.Ranks.from_ranks(OLD, n=300), "new": tr.Ranks.from_ranks(NEW, n=300)}


def test_probability_on_these_users_is_that_of_simulated_runs() -> None:
    found = tr.plan(PILOT, ["rr", "rr~bv(0.1)"], 20).designs
    design = tr.UniformSampling(20)
    for each in found[1:]:
        rights = []
        for seed in range(200):
            rng = np.random.default_rng(seed)
            old, new = (tr.values(design.draw(one, rng=rng), each.metric).mean() for one in PILOT.values())
            rights.append(new > old)
        error = math.sqrt(each.probability * (1 - each.probability) / 200)
        assert np.mean(rights) == pytest.approx(each.probability, abs=5 * error + 0.005)


def test_that_many_users_establish_the_order_with_that_probability() -> None:
    exact = tr.plan(PILOT, "recall@10", design=[]).designs[0]
    assert (exact.m, exact.right, exact.probability, exact.repetitions) == (None, True, 1.0, 1)
    difference = tr.values(PILOT["new"], "recall@10") - tr.values(PILOT["old"], "recall@10")
    drawn = RNG.choice(difference, size=(4000, int(exact.users))).mean(axis=1)
    # means of few 0s and 1s are lumpy: an even chance counts half
    assert np.mean(drawn > 0) + np.mean(drawn == 0) / 2 == pytest.approx(0.95, abs=0.03)


def test_designs_that_need_too_many_candidates_are_left_out_with_a_note() -> None:
    found = tr.plan(PILOT, "rr", [20, 299, 300])
    assert [each.m for each in found.designs] == [None, 20, 299]
    assert "uniform(300) is left out: some user has fewer candidates" in found.notes
    assert not any("left out" in note for note in tr.plan(PILOT, "rr").notes)


@pytest.mark.parametrize("probability", [0.8, 0.95])
def test_how_many_users_a_test_takes(probability: float) -> None:
    """The multiple in the note gives a normal test at 5 % that power."""
    found = tr.plan(PILOT, "rr", [], probability=probability)
    times = float(found.notes[-1].split("at least ")[1].split(" times")[0])
    power = stats.norm.sf(stats.norm.ppf(0.975) - stats.norm.ppf(probability) * times**0.5)
    assert power == pytest.approx(probability, abs=0.01)


def test_an_order_that_sampling_reverses_is_never_established() -> None:
    toy = {
        "A": tr.Ranks.from_ranks([100, 100, 100, 100, 100], n=10_000),
        "C": tr.Ranks.from_ranks([212, 2, 743, 5342, 1548], n=10_000),
    }
    exact, sampled = tr.plan(toy, "ap", design=[99]).designs
    assert (exact.right, sampled.right) == (True, False)
    assert math.isinf(sampled.users)
    assert math.isinf(sampled.repetitions)
    assert sampled.probability < 0.5
    assert "never" in str(tr.plan(toy, "ap", design=[99]))


def test_sizes_and_wrong_arguments() -> None:
    assert [each.m for each in tr.plan(PILOT, "rr", design=[10, 1000]).designs] == [None, 10]
    with pytest.raises(tr.InputError, match="two recommenders"):
        tr.plan({"old": PILOT["old"]}, "rr")
    with pytest.raises(tr.InputError, match="`probability`"):
        tr.plan(PILOT, "rr", probability=95)
    with pytest.raises(tr.InputError, match="whole rankings"):
        tr.plan({name: tr.Ranks(above=[2], n_candidates=9, depth=5) for name in PILOT}, "rr@3")


def test_figure_6_of_the_paper() -> None:
    study = {name: embedded().ranks[name] for name in "XY"}
    [plain] = tr.plan(study, "recall@10", design=[950, 970], probability=0.6).sizes
    assert plain.right_from == 956  # published: more than 1,000
    assert plain.enough is not None
    assert 956 < plain.enough < 1_000
    found = tr.plan(study, "recall@10~bv(0.1)", design=[48, 56, 60], probability=0.52)
    [corrected], at_60 = found.sizes, found.designs[-1]
    assert corrected.right_from == 52  # published: less than 60
    assert (at_60.right, at_60.m, at_60.scores) == (True, 60, 60.0)


def test_enough_candidates_establish_the_order() -> None:
    found = tr.plan(PILOT, "recall@10", design=[10, 100])
    [sizes] = found.sizes
    assert sizes.enough is not None
    below, at = (tr.plan(PILOT, "recall@10", design=[size]).designs[1] for size in (sizes.enough - 1, sizes.enough))
    assert below.probability < 0.95 <= at.probability
    assert found.conclusions[-1].startswith(f"recall@10: the expected order is correct from {sizes.right_from}")


@pytest.mark.parametrize("other", [[3, 2, 1], [2, 1, 3]])
def test_equally_good_recommenders_have_no_order(other: list[int]) -> None:
    same = {"A": tr.Ranks.from_ranks([1, 2, 3] * 20, n=9), "B": tr.Ranks.from_ranks(other * 20, n=9)}
    found = tr.plan(same, ["rr", "ndcg@2"], [4, tr.InverseSampling(2)], rng=0)
    assert {each.right for each in found.designs} == {None}
    assert all(math.isnan(each.probability) and math.isinf(each.users) for each in found.designs)
    assert {(each.ordered, each.right_from, each.enough) for each in found.sizes} == {(False, None, None)}
    assert all("there is no order to show" in sentence for sentence in found.conclusions)
    assert "wrong" not in " ".join(found.conclusions)
    assert str(found).count("no order") == len(found.designs)


def test_a_plan_says_if_the_pilot_does_not_show_the_order_that_it_assumes() -> None:
    assert not any("verdict" in note for note in tr.plan(PILOT, "rr", design=[20]).notes)
    few = {name: one[:10] for name, one in PILOT.items()}
    (note,) = [note for note in tr.plan(few, ["rr", "rr~bv(0.1)"], 20).notes if "verdict" in note]
    assert note.startswith("rr: the verdict on the pilot is 'no difference found', so the order of its means")
    assert tr.compare(few, "rr")["new", "old"].verdict == "no difference found"
    sampled = {name: tr.UniformSampling(20).draw(one, rng=1) for name, one in PILOT.items()}
    assert any(
        "not determined by this sample" in note for note in tr.plan(sampled, "recall@5", design=[20], rng=1).notes
    )


def test_a_sampled_pilot_says_about_the_same_as_an_exact_one() -> None:
    rng = np.random.default_rng(5)
    old, new = rng.geometric(0.01, size=2_000).clip(1, 1_000), rng.geometric(0.02, size=2_000).clip(1, 1_000)
    pilot = {"old": tr.Ranks.from_ranks(old, n=1_000), "new": tr.Ranks.from_ranks(new, n=1_000)}
    sampled = {name: tr.UniformSampling(200).draw(one, rng=9) for name, one in pilot.items()}
    exact, found = (tr.plan(ranks, "rr~bv(0.1)", design=[100], rng=1) for ranks in (pilot, sampled))
    assert any("smooth law" in note for note in found.notes)
    for a, b in zip(exact.designs, found.designs, strict=True):
        assert (a.design, a.right) == (b.design, b.right)
        assert b.difference == pytest.approx(a.difference, rel=0.35)
        assert b.users == pytest.approx(a.users, rel=0.8)


def test_inverse_sampling_is_planned_by_draws() -> None:
    design, pilot = tr.InverseSampling(2), {name: one[:20] for name, one in PILOT.items()}
    found = tr.plan(pilot, "rr", design, rng=0).designs[1]
    assert (found.design, found.m, found.right) == ("inverse", None, True)
    draws = [[tr.estimate(design.draw(one, rng=seed), "rr").mean for one in pilot.values()] for seed in range(100)]
    differences = np.diff(draws, axis=1).ravel()
    assert found.difference == pytest.approx(differences.mean(), abs=5 * differences.std() / math.sqrt(20))
    z = stats.norm.ppf(found.probability)
    assert z == pytest.approx(differences.mean() / differences.std(), rel=0.4)
    assert found.scores == pytest.approx(np.mean([design.draw(PILOT["new"], rng=1).n_scored]), rel=0.5)


def test_designs_in_all_their_forms() -> None:
    given: list[Any] = [20, "uniform(20)", tr.UniformSampling(20), np.int64(20)]
    found = tr.plan(PILOT, "rr", given)
    assert found == tr.plan(PILOT, "rr", design=20)
    assert [each.design for each in found.designs] == ["all candidates", "uniform(20)"]
    with pytest.raises(tr.InputError, match="the number of candidates to sample must be given"):
        tr.plan(PILOT, "rr", "uniform")


def test_sampling_with_replacement_is_told_apart() -> None:
    found = tr.plan(PILOT, "recall@10", [30, "uniform(30, replace)", "uniform(1000, replace)"])
    assert [each.design for each in found.designs[1:]] == [
        "uniform(30)",
        "uniform(30, replace)",
        "uniform(1000, replace)",
    ]
    assert found.designs[2].difference == pytest.approx(
        tr.risk(PILOT["new"], "recall@10", "uniform(30, replace)").mean
        - tr.risk(PILOT["old"], "recall@10", "uniform(30, replace)").mean
    )
    assert [each.design for each in found.sizes] == ["uniform", "uniform(replace)"]
    assert found.conclusions[1].startswith("recall@10: the expected order is correct from ")
    assert found.conclusions[2].startswith("recall@10 with uniform(replace): the expected order is correct from ")


def runs_of(rng: np.random.Generator, users: int, runs: int, start: float, spread: float) -> list[tr.Ranks]:
    """Return runs whose share of users with the item on top varies."""
    chances = start + spread * rng.standard_normal((runs, 1)).clip(-2, 2)
    return [tr.Ranks.from_ranks(np.where(own, 1, 500), n=1_000) for own in rng.random((runs, users)) < chances]


def test_a_plan_of_runs_gives_the_right_order_as_often_as_it_says() -> None:
    rng = np.random.default_rng(0)
    pilot = {name: runs_of(rng, 3_000, 30, start, 0.02) for name, start in {"A": 0.30, "B": 0.33}.items()}
    found = tr.plan(pilot, "recall@10")
    row = found["recall@10", "all candidates, 5 runs each"]
    assert 0 < row["users"] < math.inf
    times = 100
    right = 0
    for _ in range(times):
        means = [
            np.mean([tr.values(run, "recall@10").mean() for run in runs_of(rng, int(row["users"]), 5, start, 0.02)])
            for start in (0.30, 0.33)
        ]
        right += means[1] > means[0]
    # the pilot's own difference and variances, which the plan takes for true, are near those of the law
    assert right / times == pytest.approx(0.95, abs=0.07)


def test_more_users_do_not_replace_runs() -> None:
    rng = np.random.default_rng(1)
    pilot = {name: runs_of(rng, 2_000, 10, start, 0.03) for name, start in {"A": 0.30, "B": 0.33}.items()}
    found = tr.plan(pilot, "recall@10")
    assert found["recall@10", "all candidates, 1 run each"]["users"] == math.inf
    users = [each.users for each in found.designs]
    assert users == sorted(users, reverse=True)
    assert "all candidates, 1 run each" in str(found)
    assert found.conclusions[0] == "recall@10 with all candidates, 1 run each: no number of users shows the order."


def test_plans_of_runs_need_several_exact_ones() -> None:
    rng = np.random.default_rng(2)
    pilot = {name: runs_of(rng, 100, 2, 0.3, 0.01) for name in "AB"}
    with pytest.raises(tr.InputError, match="a plan of several runs needs exact ranks, and no `design`"):
        tr.plan(pilot, "recall@10", 10)
    with pytest.raises(tr.InputError, match="needs exact ranks"):
        tr.plan({name: [tr.UniformSampling(9).draw(run, rng=0) for run in own] for name, own in pilot.items()}, "ap")
    with pytest.raises(tr.InputError, match="at least two runs of one"):
        tr.plan({name: own[:1] for name, own in pilot.items()}, "recall@10")
    alone = tr.plan({"A": pilot["A"], "B": pilot["B"][0]}, "recall@10")
    assert len(alone.designs) == 6
    same = tr.plan({"A": pilot["A"], "B": pilot["A"]}, "recall@10")
    assert all(each.right is None for each in same.designs)
