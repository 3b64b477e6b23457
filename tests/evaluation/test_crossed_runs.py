"""Users crossed with runs, against the analysis of variance, Welch's test, and simulated studies."""

import math

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Bools, Floats
from truerank.evaluation.crossed_runs import RunsOutcome, RunVariance
from truerank.evaluation.intervals import Interval
from truerank.evaluation.paired_tests import LikelihoodTest, PairedSample, StudentOutcome, StudentTest


def anova(values: Floats | Bools) -> tuple[float, float]:
    """Return the variances of runs and of the rest by the textbook: loops over runs and users."""
    runs, users = values.shape
    mean = values.mean()
    of_runs = sum(users * (values[j].mean() - mean) ** 2 for j in range(runs)) / (runs - 1)
    rest = 0.0
    for j in range(runs):
        for u in range(users):
            rest += (values[j, u] - values[j].mean() - values[:, u].mean() + mean) ** 2
    rest /= (runs - 1) * (users - 1)
    return (of_runs - rest) / users, rest


def test_components_are_those_of_the_analysis_of_variance() -> None:
    rng = np.random.default_rng(0)
    values = rng.random((4, 7)) + rng.random((4, 1)) + rng.random((1, 7))
    found, (between, rest) = RunVariance.of(values, np.ones(7)), anova(values)
    assert found.between == pytest.approx(between, rel=1e-12)
    assert found.within == pytest.approx(rest, rel=1e-12)
    assert found.error == pytest.approx(max(between, 0) / 4, rel=1e-12)


def test_runs_that_treat_all_users_alike_give_welchs_degrees_of_freedom() -> None:
    one, other = np.array([0.1, 0.25, 0.2]), np.array([0.3, 0.31, 0.28, 0.35])
    parts = [RunVariance.of(np.tile(runs[:, None], 50), np.ones(50)) for runs in (one, other)]
    found, welch = parts[0] + parts[1], stats.ttest_ind(one, other, equal_var=False)
    assert found.freedom == pytest.approx(welch.df, rel=1e-9)
    assert found.error == pytest.approx(one.var(ddof=1) / 3 + other.var(ddof=1) / 4, rel=1e-9)


def test_users_of_different_sizes_count_by_their_instances() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((3, 40)) + rng.random((3, 1))
    whose = np.repeat(np.arange(20), 2)
    sums = np.array([np.bincount(whose, row) for row in values])
    found = RunVariance.of(sums, np.full(20, 2.0))
    again = RunVariance.of(sums / 2, np.ones(20))
    assert found.error == pytest.approx(again.error, rel=1e-9)
    assert found.freedom == again.freedom == 2


@pytest.mark.parametrize("shape", [(1, 10), (3, 1)])
def test_a_single_run_shows_nothing(shape: tuple[int, int]) -> None:
    assert RunVariance.of(np.random.default_rng(0).random(shape), np.ones(shape[1])) == RunVariance()


def test_without_variance_of_runs_the_outcome_is_that_of_the_users() -> None:
    sample = PairedSample.of(np.random.default_rng(0).random((50, 2)), largest=np.ones(2))
    [users] = LikelihoodTest().outcomes(sample, [(0, 1)])
    found = RunsOutcome(users, Interval(*2 * [sample.difference((0, 1))]), 50, RunVariance())
    assert found.p_value == users.p_value
    assert found.confidence_interval(0.9) == users.confidence_interval(0.9)


@pytest.mark.parametrize("freedom", [1.0, 2.0, 4.7, 18.0])
@pytest.mark.parametrize("error", [1e-6, 1e-4, 1e-2])
def test_p_value_and_interval_agree(freedom: float, error: float) -> None:
    runs = RunVariance(error=error, spread=1.2 * error, freedom=freedom)
    found = RunsOutcome(StudentOutcome(0.02, 0.005, 300), Interval(0.02, 0.02), 300, runs)
    p = found.p_value
    assert found.confidence_interval(1 - p * 0.99).low < 0 < found.confidence_interval(1 - min(p * 1.01, 0.999)).low
    assert p > StudentOutcome(0.02, 0.005, 300).p_value


def study(
    rng: np.random.Generator, users: int, runs: tuple[int, int], of_runs: float, rest: float = 0.5
) -> list[Floats]:
    """Return the values of both recommenders, which are equally good: an array of runs by users each."""
    of_users = rng.normal(size=users)
    return [
        0.5 * of_users * (1 - 2 * place)
        + of_runs / users**0.5 * rng.normal(size=(count, 1))
        + rest * rng.normal(size=(count, users))
        for place, count in enumerate(runs)
    ]


@pytest.mark.parametrize(
    ("runs", "of_runs"), [((3, 3), 0.0), ((3, 3), 1.0), ((3, 3), 5.0), ((5, 3), 2.0), ((3, 1), 0.0), ((10, 10), 3.0)]
)
def test_intervals_hold_for_new_runs(runs: tuple[int, int], of_runs: float) -> None:
    rng, users, times = np.random.default_rng(5), 60, 1_500
    held = missed_by_users = 0
    for _ in range(times):
        values = study(rng, users, runs, of_runs)
        sample = PairedSample.of(np.column_stack([own.mean(axis=0) for own in values]))
        [alone] = StudentTest().outcomes(sample, [(0, 1)])
        variance = RunVariance.of(values[0], np.ones(users)) + RunVariance.of(values[1], np.ones(users))
        low, high = RunsOutcome(alone, Interval(*2 * [sample.difference((0, 1))]), users, variance).confidence_interval(
            0.95
        )
        held += low <= 0 <= high
        low, high = alone.confidence_interval(0.95)
        missed_by_users += not low <= 0 <= high
    assert 0.94 - 5 * (0.06 * 0.94 / times) ** 0.5 < held / times < 0.965 + 5 * (0.04 * 0.96 / times) ** 0.5
    if of_runs >= 3:
        assert missed_by_users / times > 0.15, "the simulation does not show what goes wrong without runs"


def test_an_undefined_outcome_stays_undefined() -> None:
    found = RunsOutcome(
        StudentOutcome(0.1, math.nan, 1), Interval(0.1, 0.1), 1, RunVariance(error=0.1, spread=0.1, freedom=2.0)
    )
    assert math.isnan(found.p_value)
    assert math.isnan(found.confidence_interval(0.95).low)


def ranks_of(values: Bools) -> list[tr.Ranks]:
    """Return runs of ranks 1 and 500 by an array of runs by users."""
    return [tr.Ranks.from_ranks(np.where(own > 0, 1, 500), n=1_000) for own in values]


def test_equal_recommenders_whose_runs_differ_are_not_told_apart() -> None:
    rng = np.random.default_rng(7)
    times, found, alone = 60, 0, 0
    for _ in range(times):
        runs = {
            name: ranks_of(rng.random((3, 800)) < 0.3 + 0.04 * rng.standard_normal((3, 1)).clip(-2, 2)) for name in "AB"
        }
        [difference] = tr.compare(runs, "recall@10")
        found += difference.finding.kind == "better"
        users = difference.outcome.users if isinstance(difference.outcome, RunsOutcome) else difference.outcome
        alone += users.p_value <= 0.05
    assert found / times < 0.05 + 5 * (0.05 * 0.95 / times) ** 0.5
    assert alone / times > 0.2, "means over runs should deceive here"


def test_compare_takes_any_number_of_runs_and_states_where_the_error_comes_from() -> None:
    rng = np.random.default_rng(8)
    values = {
        "A": rng.random((4, 300)) < 0.3,
        "B": rng.random((2, 300)) < [[0.3], [0.5]],
        "C": rng.random((1, 300)) < 0.4,
    }
    result = tr.compare({name: ranks_of(own) for name, own in values.items()}, "recall@10")
    for found in result:
        own = [values[name] for name in (found.recommender, found.baseline)]
        variance = sum(max(anova(each)[0], 0.0) / len(each) for each in own if len(each) > 1)
        assert found.run_error == pytest.approx(variance**0.5, rel=1e-9)
        users = np.mean(own[0], axis=0) - np.mean(own[1], axis=0)
        assert found.standard_error == pytest.approx(
            math.hypot(users.std(ddof=1) / 300**0.5, found.run_error), rel=1e-9
        )
        assert found.user_error == pytest.approx(users.std(ddof=1) / 300**0.5, rel=1e-9)
    assert "from users, runs" in str(result)


def test_runs_of_groups_and_of_users_with_several_instances() -> None:
    rng = np.random.default_rng(9)
    ids = np.repeat(np.arange(100), 2)
    runs = {
        name: [tr.Ranks.from_ranks(np.where(rng.random(200) < chance, 1, 500), n=1_000, ids=ids) for chance in chances]
        for name, chances in {"A": (0.2, 0.4, 0.3), "B": (0.25, 0.5)}.items()
    }
    result = tr.compare(runs, "recall@10", by={user: ("even", "odd")[user % 2] for user in range(100)})
    for group, parity in {"even": 0, "odd": 1}.items():
        rows = ids % 2 == parity
        variances = []
        for own in runs.values():
            sums = np.array([np.bincount(ids[rows] // 2, tr.values(run, "recall@10")[rows]) for run in own])
            variances.append(RunVariance.of(sums, np.full(50, 2.0)).error)
        assert result["B", "A", "recall@10", group].run_error == pytest.approx(sum(variances) ** 0.5, rel=1e-9)
        assert result["B", "A", "recall@10", group].n_units == 50


def test_bounds_of_sampled_runs_hold_for_new_runs() -> None:
    rng = np.random.default_rng(10)
    exact = {
        name: [tr.Ranks.from_ranks(rng.geometric(chance, 600).clip(1, 300), n=300) for chance in (0.05, 0.06, 0.08)]
        for name in "AB"
    }
    sampled = {name: [tr.UniformSampling(250).draw(run, rng=rng) for run in own] for name, own in exact.items()}
    found = tr.compare(sampled, "recall@10")[0]
    assert found.bounded
    one = tr.compare({name: own[:1] for name, own in sampled.items()}, "recall@10")[0]
    assert np.ptp(found.confidence_interval()) > np.ptp(one.confidence_interval())


def test_more_users_do_not_settle_what_runs_leave_open() -> None:
    rng = np.random.default_rng(11)
    runs = {"A": ranks_of(rng.random((3, 400)) < [[0.2], [0.3], [0.4]]), "B": ranks_of(rng.random((1, 400)) < 0.32)}
    [found] = tr.compare(runs, "recall@10")
    assert found.run_error > found.user_error
    assert found.instances_needed() == math.inf
    [alone] = tr.compare({name: own[:1] for name, own in runs.items()}, "recall@10")
    assert alone.instances_needed() < math.inf
