"""Bets on users seen one by one: fair by enumeration, and rarely wrong however often one looks."""

import math
from collections.abc import Callable
from itertools import permutations, product

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats
from truerank.evaluation.anytime_tests import AnytimeOutcome, AnytimeTest, Bets
from truerank.evaluation.paired_tests import PairedSample


def slow_capital(values: list[float], m: float, population: int | None) -> list[float]:
    """Return the capital after each value by loops over values and horizons."""
    horizons = [4.0**power for power in range(3, 11)]
    if population is not None:
        horizons = [max(population / 2**power, 1.0) for power in range(7)]
    capitals = [1.0] * len(horizons)
    seen: list[float] = []
    found: list[float] = []
    squares = 0.0
    for value in values:
        mean = m if population is None else (population * m - sum(seen)) / (population - len(seen))
        variance = (0.25 + squares) / (len(seen) + 1) if seen else 0.25
        for place, horizon in enumerate(horizons):
            bet = min(math.sqrt(2 * math.log(40) / (variance * horizon)), 0.75 / mean) if 0 < mean < 1 else 0.0
            capitals[place] *= 1 + bet * (value - mean)
        seen.append(value)
        squares += (value - (0.5 + sum(seen)) / (len(seen) + 1)) ** 2
        found.append(sum(capitals) / len(capitals))
    return found


@pytest.mark.parametrize("population", [None, 40])
def test_capital_is_that_of_the_definition(population: int | None) -> None:
    values = np.random.default_rng(0).random(25)
    found = np.exp(Bets(values, population).log_capital(0.45))
    assert found == pytest.approx(slow_capital(values.tolist(), 0.45, population), rel=1e-10)


def test_bets_on_all_values_of_a_population_are_fair() -> None:
    values = np.array([0.9, 0.2, 0.55, 0.7, 0.1, 0.8])
    capitals = [np.exp(Bets(values[list(order)], 6).log_capital(values.mean())) for order in permutations(range(6))]
    assert np.mean(capitals, axis=0) == pytest.approx(np.ones(6), rel=1e-12)
    above = [np.exp(Bets(values[list(order)], 6).log_capital(values.mean() + 0.1)) for order in permutations(range(6))]
    assert (np.mean(above, axis=0) <= 1 + 1e-12).all()


def test_bets_on_new_values_are_fair() -> None:
    total = np.zeros(8)
    for sequence in product([0.0, 1.0], repeat=8):
        chance = 0.3 ** sum(sequence) * 0.7 ** (8 - sum(sequence))
        total += chance * np.exp(Bets(np.array(sequence), None).log_capital(0.3))
    assert total == pytest.approx(np.ones(8), rel=1e-12)


def test_once_all_are_seen_the_mean_is_known() -> None:
    differences = np.random.default_rng(1).normal(0.01, 0.2, size=500).clip(-1, 1)
    found = AnytimeOutcome(differences, 1.0, 500)
    assert found.p_value == 0
    assert found.confidence_interval(0.95) == pytest.approx((differences.mean(), differences.mean()), abs=1e-6)


@pytest.mark.parametrize("population", [None, 1_000])
def test_p_value_and_interval_agree(population: int | None) -> None:
    differences = np.random.default_rng(2).normal(0.05, 0.3, size=300).clip(-1, 1)
    found = AnytimeOutcome(differences, 1.0, population)
    p = found.p_value
    assert 1e-6 < p < 0.5
    assert found.confidence_interval(1 - p * 1.01).low > -1e-6 > found.confidence_interval(1 - p * 0.97).low - 1e-9
    low, high = found.confidence_interval(0.95)
    assert found.confidence_interval(0.99).low < low < differences.mean() < high


def looks(population: int | None, differences: Floats) -> tuple[bool, bool]:
    """Return whether a t-test after every tenth user, and bets, ever find a difference."""
    count = np.arange(1, differences.size + 1)
    means = np.cumsum(differences) / count
    deviations = np.sqrt(np.maximum(np.cumsum(differences**2) / count - means**2, 0.0))
    with np.errstate(divide="ignore", invalid="ignore"):
        statistic = np.abs(means / deviations) * np.sqrt(count - 1)
    by_t = (statistic[29::10] > stats.t.isf(0.025, count[29::10] - 1)).any()
    return bool(by_t), AnytimeOutcome(differences, 1.0, population).p_value <= 0.05


LAWS: dict[str, Callable[[np.random.Generator], Floats]] = {
    "normal": lambda rng: rng.normal(0, 0.2, size=1_000).clip(-1, 1),
    "rare losses": lambda rng: np.where(rng.random(1_000) < 0.01, -0.99, 0.01),
}


@pytest.mark.parametrize("law", LAWS)
@pytest.mark.parametrize("known", [False, True])
def test_looking_after_every_user_rarely_finds_what_is_not_there(law: str, known: bool) -> None:
    rng, times = np.random.default_rng(3), 300
    found = np.zeros(2)
    for _ in range(times):
        differences = LAWS[law](rng)
        if known:
            differences = (differences - differences.mean()).clip(-1, 1)
            differences -= differences.mean()
        found += looks(differences.size if known else None, differences)
    assert found[1] / times < 0.05 + 5 * (0.05 * 0.95 / times) ** 0.5
    assert found[0] / times > 0.15, "the t-test should be fooled here"


def test_instances_of_weights_or_of_fitted_metrics_are_refused() -> None:
    with pytest.raises(tr.InputError, match="one instance"):
        AnytimeTest().outcomes(PairedSample(np.zeros((2, 2)), np.array([1.0, 2.0])), [(0, 1)])
    with pytest.raises(tr.InputError, match="fitted metrics"):
        AnytimeTest().outcomes(PairedSample(np.zeros((2, 2)), np.ones(2), hidden=np.ones(2)), [(0, 1)])


def test_nothing_seen_and_nothing_possible() -> None:
    assert math.isnan(AnytimeOutcome(np.zeros(0), 1.0, None).p_value)
    assert AnytimeOutcome(np.zeros(5), 0.0, None).p_value == 1.0
    assert AnytimeOutcome(np.zeros(5), 1.0, None).p_value == 1.0
