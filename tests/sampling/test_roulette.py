"""Roulette: unbiased whatever the proxy, within its budget, with errors that are right or doubted."""

from __future__ import annotations

import numpy as np
import pytest

import truerank as tr
from tests.sampling.test_every_design import EXACT
from truerank.arrays import Floats
from truerank.sampling.roulette_games import Level, doubt

METRICS = ["ndcg@4", "recall@4", "ap@4", "rr@2", "gndcg@3", "gndcg@4"]
NESTED = [[1, 3, 30], [2], [5, 6], [3, 4, 5, 6, 7], [4], [60]]


def small(grades: bool) -> tr.Ranks:
    marks = [[1.0 + (rank + place) % 3 for place, rank in enumerate(own)] for own in NESTED] if grades else None
    return tr.Ranks.from_ranks(NESTED, n=[60, 70, 65, 61, 90, 80], grades=marks)


def test_unbiased_over_many_games() -> None:
    """Each instance on its own, also those with several relevant items; games with few instances stop many of them."""
    exact, design, rng = small(grades=True), tr.Roulette(4, budget=20), np.random.default_rng(1)
    games = [design.draw(exact, rng=rng) for _ in range(800)]
    for metric in METRICS:
        found = np.array([tr.values(game, metric) for game in games])
        error = found.std(axis=0) / len(found) ** 0.5
        assert (found.std(axis=0) > 0).any(), "nothing was left to chance"
        assert (np.abs(found.mean(axis=0) - tr.values(exact, metric)) <= 5 * error + 1e-12).all(), metric


def telescoped(counts: list[int], chances: list[float], i: int, k: int) -> Floats:
    """The weights of counts by the definition: 1, then what each level adds, over the chance to reach it."""
    weights = np.zeros(k + 1)
    weights[min(counts[0], k - i + 1)] += 1
    for before, after, chance in zip(counts[:-1], counts[1:], chances[1:], strict=True):
        weights[min(after, k - i + 1)] += 1 / chance
        weights[min(before, k - i + 1)] -= 1 / chance
    return weights[: k - i + 1]


def test_weights_against_the_definition() -> None:
    exact = small(grades=False)
    design = tr.Roulette(4, budget=20)
    course = design.course(exact, np.random.default_rng(3))
    rng = np.random.default_rng(4)
    paths, chances = [[0] for _ in exact.above], [1.0]
    reached = np.zeros(exact.above.size, dtype=int)
    above, scored = np.zeros_like(exact.above), np.zeros(len(exact), dtype=np.int64)
    for level in range(4):
        places = course.chosen(np.arange(len(exact)))
        items = np.flatnonzero(np.isin(exact.instance, places))
        above[items] += rng.integers(0, 2, items.size)
        scored[places] += 12 << level
        chances.append(course.chance)
        course.saw(places, above, scored)
        for item in items.tolist():
            paths[item].append(int(above[item]))
            reached[item] = level + 1
    assert 0 < (reached < 4).mean() < 1, "some are stopped"
    for item, path in enumerate(paths):
        i = int(exact.i[item])
        expected = telescoped(path, chances[: len(path)], i, 4) if i <= 4 else np.zeros(0)
        np.testing.assert_allclose(course.weights[item, : expected.size], expected, atol=1e-12)
        assert not course.weights[item, expected.size :].any()


@pytest.mark.parametrize("quality", ["close", "far", "popularity"])
def test_scoring_follows_the_proxy(quality: str) -> None:
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(500, 600))
    test = [rng.choice(600, 1 + user % 3, replace=False).tolist() for user in range(500)]
    for user, own in enumerate(test):
        scores[user, own] += rng.exponential(2.5)
    train = [np.setdiff1d(rng.choice(600, 20), own).tolist() for own in test]
    noise = rng.normal(size=scores.shape)
    proxy = {"close": scores + noise / 3, "far": noise, "popularity": None}[quality]
    asked: list[int] = []

    def slow(users: np.ndarray, items: np.ndarray) -> np.ndarray:
        asked.append(users.size)
        return np.asarray(scores[users, items])

    exact = tr.rank(scores, train=train, test=test)
    scorer = tr.PairFunctionScorer(slow, n_items=600)
    spent, means = [], []
    for seed in range(8):
        asked.clear()
        design = tr.Roulette(10, proxy, budget=90)
        ranks = tr.rank_sampled(scorer, train=train, test=test, design=design, rng=seed)
        assert sum(asked) == ranks.n_scored.sum()
        assert len(asked) < 20
        spent.append(ranks.n_scored.mean())
        means.append(tr.estimate(ranks, "ndcg@10").mean)
    assert 80 < np.mean(spent) < 105
    truth = tr.estimate(exact, "ndcg@10").mean
    assert abs(np.mean(means) - truth) < 5 * np.std(means, ddof=1) / 8**0.5
    if quality == "close":
        assert np.std(means) < 0.05 * truth


def test_a_large_budget_is_exact() -> None:
    exact = small(grades=False)
    ranks = tr.Roulette(4, budget=10_000).draw(exact, rng=1)
    np.testing.assert_allclose(tr.values(ranks, "ndcg@4"), tr.values(exact, "ndcg@4"), atol=1e-12)
    assert ranks.notes == ()


def test_errors_that_rest_on_few_changes_are_doubted() -> None:
    def level(chance: float, changed: int) -> Level:
        return Level(chance, 1_000, changed, 0.5 * changed, 0.5)

    assert doubt([level(1.0, 0)], 0.05, 6_000, "roulette@10") == (), "all were looked at"
    assert doubt([level(1.0, 9), level(0.2, 400)], 0.05, 6_000, "roulette@10") == ()
    (note,) = doubt([level(1.0, 9), level(0.02, 0)], 0.05, 6_000, "roulette@10")
    assert note.startswith("the errors of roulette@10 can't be trusted: they rest on few changes far down")
    assert "inverse sampling" in note
    assert doubt([level(1.0, 9), level(0.02, 0)], 0.05, 600_000, "roulette@10") == (), "it does not matter"


def test_the_doubt_reaches_the_table() -> None:
    rng = np.random.default_rng(0)
    exact = tr.Ranks.from_ranks(np.where(rng.random(300) < 0.3, rng.integers(8, 12, 300), 3_000), n=4_000)
    ranks = tr.Roulette(10, budget=40).draw(exact, rng=2)
    table = tr.evaluate(ranks, ["ndcg@10"])
    assert table.metrics == ("ndcg@10~unbiased",)
    assert any("use inverse sampling, a closer proxy or a larger budget" in note for note in table.notes)


def test_what_roulette_does_not_tell() -> None:
    ranks = tr.Roulette(3, budget=9).draw(EXACT, rng=1)
    with pytest.raises(
        tr.InputError, match=r"ap needs ranks below 3, where roulette\(9\)@3 tells nothing; use a metric"
    ):
        tr.evaluate(ranks, "ap")
    with pytest.raises(tr.InputError, match="ndcg@4 needs ranks below 3"):
        tr.values(ranks, "ndcg@4")
    with pytest.raises(tr.InputError, match="needs uniform sampling"):
        tr.values(ranks, "ndcg@3~smooth")
    with pytest.raises(tr.InputError, match="`budget` must be a whole number from 1, got 0"):
        tr.Roulette(budget=0)
    with pytest.raises(tr.InputError, match=r"only exact ranks can be sampled"):
        tr.Roulette(3).draw(ranks)
    fields = {name: getattr(ranks, name) for name in ("above", "n_candidates", "indptr", "n_catalogue", "drawn")}
    with pytest.raises(tr.InputError, match=r"`count_weights` must have the shape \(6, 3\) under roulette\(9\)@3"):
        tr.Ranks(**fields, design=ranks.design)
    with pytest.raises(tr.InputError, match=r"`count_weights` must have the shape \(6, 0\) under inverse"):
        tr.Ranks(**fields, design=tr.InverseSampling(20), count_weights=ranks.count_weights)
