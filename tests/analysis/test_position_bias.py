"""A test of whether the place shown matters: right about both, at the level that it promises."""

import itertools
from typing import Any

import numpy as np
import pytest

import truerank as tr

N_USERS, N_SHOWN = 30, 10


def study(rng: np.random.Generator, pull: float, n_orders: int) -> tuple[tr.Ranks, tr.Candidates]:
    """Return ranks by a model that likes what it reads first, and what it read; users differ in how easy they are."""
    quality = np.tile(rng.normal(size=(N_USERS, N_SHOWN)), (n_orders, 1))
    quality[:, 0] += np.tile(rng.normal(1.0, 2.0, N_USERS), n_orders)
    shown = rng.permuted(np.tile(np.arange(N_SHOWN), (len(quality), 1)), axis=1)
    scores = np.take_along_axis(quality, shown, axis=1) + 0.2 * rng.normal(size=shown.shape) - pull * np.arange(N_SHOWN)
    users, orders = np.tile(np.arange(N_USERS), n_orders), np.repeat(np.arange(n_orders), N_USERS)
    own = scores[shown == 0][:, None]
    ranks = tr.Ranks(above=(scores > own).sum(axis=1), n_candidates=N_SHOWN, ids=users, items=np.zeros(users.size, int))
    return ranks, tr.Candidates(shown.ravel(), np.repeat(users, N_SHOWN), np.repeat(orders, N_SHOWN))


@pytest.mark.parametrize("n_orders", [1, 3])
def test_level_and_power(n_orders: int) -> None:
    """Rejections at 10 percent: as many as promised without bias, within five standard errors; nearly all with it."""
    n_studies, level = 150, 0.1
    rng = np.random.default_rng(n_orders)
    found = [tr.position_bias(*study(rng, 0.0, n_orders), replicates=99, rng=rng).p_value for _ in range(n_studies)]
    assert abs(np.mean(np.array(found) <= level) - level) < 5 * np.sqrt(level * (1 - level) / n_studies)
    for pull in (0.6, -0.6):  # towards what is shown first, or last
        biased = [tr.position_bias(*study(rng, pull, n_orders), replicates=99, rng=rng) for _ in range(20)]
        assert np.mean([each.p_value <= level for each in biased]) > 0.9
        assert all(np.sign(each.correlation) == np.sign(each.change) == np.sign(pull) for each in biased)


def test_the_statistic_by_definition() -> None:
    shown = {"a": ["x", "p", "q"], "b": ["p", "x", "q"], "c": ["q", "p", "x"], "d": ["x", "q", "p"]}
    answers = {"a": ["x", "p", "q"], "b": ["x", "p", "q"], "c": ["p", "q", "x"], "d": ["q", "x", "p"]}
    ranks = tr.read_lists(answers, {user: ["x"] for user in shown}, candidates=shown)
    place, rank = np.array([0.0, 0.5, 1.0, 0.0]), np.array([0.0, 0.0, 1.0, 0.5])
    found = tr.position_bias(ranks, shown, replicates=999, rng=0)
    assert found.correlation == pytest.approx(np.corrcoef(place, rank)[0, 1], rel=1e-12)
    assert found.change == pytest.approx(np.polyfit(place, rank, 1)[0] * 2, rel=1e-12)
    assert [(row.instances, row.share_above) for row in found] == [(2, 0.25), (1, 0.0), (1, 1.0)]
    # of the 12 distinct arrangements of two zeros, a half and a one, count those at least as strong
    orders = [np.array(order) for order in set(itertools.permutations(place.tolist()))]
    strength = [abs((order - 0.375) @ (rank - 0.375)) for order in orders]
    exact = np.mean(np.array(strength) >= abs((place - 0.375) @ (rank - 0.375)) - 1e-12)
    assert found.p_value == pytest.approx(exact, abs=5 * np.sqrt(exact * (1 - exact) / 999))


@pytest.mark.parametrize(
    ("shown", "message"),
    [
        ({"a": ["x", "y"]}, "`candidates` must show user 'b' as many lists as there are instances"),
        (["x", "y"], "`candidates` must be a dict of user to items"),
        ({"a": ["x", "y"], "b": ["x", "y"]}, "always shown at the same place"),
    ],
)
def test_refused(shown: Any, message: str) -> None:
    ranks = tr.read_lists({"a": ["x", "y"], "b": ["y", "x"]}, {"a": ["x"], "b": ["x"]}, candidates=["x", "y"])
    with pytest.raises(tr.InputError, match=message):
        tr.position_bias(ranks, shown)
    with pytest.raises(tr.InputError, match="must know their users and items"):
        tr.position_bias(tr.Ranks.from_ranks([1], n=2), shown)
