"""Candidates sampled with unequal chances: what is unbiased, what has bounds, and what is refused."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from itertools import permutations, product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import truerank as tr
from tests.arrays import Floats
from truerank.sampling.pools import Pool

SCORES = np.array([5.0, 4.0, 3.0, 2.0, 1.0, 0.0])
CHANCES = np.array([0.9, 0.3, 0.5, 0.2, 0.6, 0.4])
RELEVANT = np.array([3.5, 1.0])
EXACT = tr.Ranks.from_scores(RELEVANT[None], SCORES[None])


def every_sample() -> tuple[list[tr.Ranks], list[float]]:
    """Return the ranks in all samples that contain each candidate by a chance of its own, and how likely each is.

    Ranks need a candidate: where there is none, one below all relevant items stands for it.
    """
    found, chances = [], []
    for chosen in product([False, True], repeat=SCORES.size):
        inside = np.array(chosen)
        chances.append(float(np.where(inside, CHANCES, 1 - CHANCES).prod()))
        mask = inside[None] if inside.any() else None
        if mask is None:
            found.append(tr.Ranks.from_scores(RELEVANT[None], [[-1.0]], n=8, inclusion=[[1.0]]))
        else:
            found.append(
                tr.Ranks.from_scores(RELEVANT[None], SCORES[None], n=8, inclusion=CHANCES[None], negative_mask=mask)
            )
    return found, chances


@pytest.mark.parametrize("metric", ["auc", "mean-rank"])
def test_unbiased_over_all_samples(metric: str) -> None:
    found, chances = every_sample()
    mean = sum(chance * tr.values(one, metric).item() for one, chance in zip(found, chances, strict=True))
    assert mean == pytest.approx(tr.values(EXACT, metric).item(), rel=1e-12)


def test_draws_with_replacement_count_each_time() -> None:
    """All pairs of draws, by chances that add up to 1; how often a candidate is drawn on average is twice its own."""
    each = CHANCES / CHANCES.sum()
    mean = 0.0
    for one, other in product(range(SCORES.size), repeat=2):
        drawn = [[one, other]]
        ranks = tr.Ranks.from_scores([3.5], SCORES[drawn], n=7, replace=True, inclusion=2 * each[drawn])
        mean += each[one] * each[other] * tr.values(ranks, "auc").item()
    assert mean == pytest.approx(1 - 2 / 6, rel=1e-12)


@pytest.mark.parametrize("metric", ["recall@2", "ndcg@3", "ap", "rr@4"])
def test_bounds_hold_in_every_sample(metric: str) -> None:
    truth = tr.values(EXACT, metric).item()
    for one in every_sample()[0]:
        low, high = (tr.values(one, tr.estimators.Corrected(tr.metric(metric), bound)).item() for bound in bounds())
        assert low <= truth + 1e-12
        assert truth - 1e-12 <= high
        assert tr.values(one, metric).item() == pytest.approx((low + high) / 2)


def bounds() -> list[Any]:
    from truerank.estimators.bounds import Bound

    return [Bound(upper=False), Bound(upper=True)]


def logged(rng: np.random.Generator, users: int) -> tuple[tr.Ranks, Floats]:
    """Return ranks among candidates drawn by popularity mixed with uniform draws, and the exact AUC of each user."""
    n_items, m = 300, 40
    popularity = 1.0 / (1 + np.arange(n_items))
    each = 0.7 * popularity / popularity.sum() + 0.3 / n_items
    scores = rng.normal(size=(users, n_items)) + 2.0 * popularity
    relevant = rng.normal(size=users) + 0.8
    drawn = np.stack([rng.choice(n_items, m, p=each) for _ in range(users)])
    negative = np.take_along_axis(scores, drawn, axis=1)
    ranks = tr.Ranks.from_scores(relevant, negative, n=n_items + 1, replace=True, inclusion=m * each[drawn])
    return ranks, (scores < relevant[:, None]).mean(axis=1)


def test_mixed_designs_are_weighted_and_covered() -> None:
    rng, times, covered, gaps, plain = np.random.default_rng(0), 150, 0, [], []
    truth = stats.norm.cdf((0.8 - 2.0 / (1 + np.arange(300))) / 2**0.5).mean()
    for _ in range(times):
        ranks, exact = logged(rng, 100)
        found = tr.estimate(ranks, "auc")
        low, high = found.confidence_interval()
        covered += low <= truth <= high
        gaps.append(found.mean - exact.mean())
        plain.append((1 - ranks.above / ranks.draws).mean() - exact.mean())
    assert abs(np.mean(gaps)) < 5 * np.std(gaps) / times**0.5
    assert np.mean(plain) < -0.05, "popular candidates score higher"
    assert covered / times > 0.95 - 5 * (0.95 * 0.05 / times) ** 0.5


def test_files_slices_and_joins_keep_the_estimates(tmp_path: Path) -> None:
    ranks, _ = logged(np.random.default_rng(1), 6)
    for name in ("ranks.parquet", "ranks.npz"):
        ranks.save(tmp_path / name)
        assert tr.Ranks.load(tmp_path / name) == ranks
    again = tr.Ranks.concatenate([ranks[[0, 1]], ranks[2:]])
    assert again == ranks
    assert again.estimated is not None
    assert tr.values(ranks[[3]], "auc").item() == tr.values(ranks, "auc")[3]


def test_one_pool_for_all_rows() -> None:
    pool, chance = np.array([0.2, 0.6, 0.6]), np.array([0.5, 0.25, 0.1])
    ranks = tr.Ranks.from_scores([0.4, 0.6, 0.1], pool, n=30, inclusion=chance)
    assert ranks.estimated is not None
    assert ranks.estimated.tolist() == [14.0, 7.0, 16.0]
    assert "errors are not independent" in ranks.notes[0]


def test_what_can_not_be_said() -> None:
    ranks, _ = logged(np.random.default_rng(1), 50)
    with pytest.raises(tr.InputError, match=r"recall@10 has no unbiased estimate .*; use recall@10~possible"):
        tr.values(ranks, "recall@10~unbiased")
    for correction in ("smooth", "bv(0.1)"):
        with pytest.raises(tr.InputError, match="needs uniform sampling"):
            tr.values(ranks, f"recall@10~{correction}")
    found = tr.estimate(ranks, "recall@10")
    assert not found.determined
    assert found.metric == "recall@10~possible"
    both = tr.compare({"A": ranks, "B": ranks}, ["auc", "recall@10"])
    assert {each.verdict for each in both.differences} == {"no difference found", "not determined by this sample"}


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"inclusion": [[0.5]]}, "`inclusion` is about a sample: give `n`"),
        ({"n": 9, "inclusion": [0.5]}, r"`inclusion` must have the shape of `negative`, \(1, 1\), got \(1,\)"),
        ({"n": 9, "inclusion": [[0.0]]}, r"`inclusion` must be above 0 and finite, got 0.0 at \[0, 0\]"),
        ({"n": 9, "inclusion": [[1.5]]}, r"`inclusion` must be at most 1 without replacement, got 1.5 at \[0, 0\]"),
    ],
)
def test_wrong_chances(options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks.from_scores([1.0], [[0.5]], **options)
    with pytest.raises(tr.InputError, match=r"a sample by uniform\(2\) has no `estimated` counts"):
        tr.Ranks(above=[0], n_candidates=3, sample=tr.Sample("uniform(2)", 9, estimated=[1.5]))


TRAIN = [[0, 1, 2], [0, 1], [0, 3], [0, 4]]
POPULARITY = {0: 4, 1: 2, 2: 1, 4: 1}
"""Training interactions of the irrelevant candidates of further users, who have the held-out items 3 and 5."""
OF_USER = np.array([0.5, 0.2, 0.9, 0.3, 0.3, 0.4])


@dataclass(frozen=True)
class Drawn(tr.PopularitySampling):
    """Popularity sampling that has drawn these items for each user, in this order."""

    orders: tuple[tuple[int, ...], ...] = field(default=(), metadata={"only_in_code": True})

    def sample(self, pool: Any, rng: np.random.Generator) -> list[Any]:
        return [np.array(own) for own in self.orders]


def in_training(n_users: int) -> dict[str, Any]:
    """Return data of the users of `TRAIN`, and those of users with held-out items, who are ranked."""
    more = n_users + len(TRAIN)
    test: list[list[int]] = [[] for _ in TRAIN]
    users = np.arange(len(TRAIN), more)
    return {"train": [*TRAIN, *([[]] * n_users)], "test": [*test, *([[3, 5]] * n_users)], "users": users}


def chances_of_orders(design: tr.PopularitySampling) -> dict[tuple[int, ...], float]:
    """Return how likely all that can be drawn is, drawn one after the other."""
    weight = {item: count**design.power for item, count in POPULARITY.items()}
    total = sum(weight.values())
    each = {item: (1 - design.uniform) * own / total + design.uniform / 4 for item, own in weight.items()}
    assert design.m is not None
    chances = {}
    for order in product(each, repeat=design.m) if design.replace else permutations(each, design.m):
        chances[order], left = 1.0, 1.0
        for item in order:
            chances[order] *= each[item] / left
            left -= 0.0 if design.replace else each[item]
    return chances


@cache
def every_order(text: str) -> tuple[tr.Ranks, Floats]:
    """Return ranks with a user for everything that can be drawn, and how likely it is."""
    design = tr.Sample(text, 9).design
    assert isinstance(design, tr.PopularitySampling)
    chances = chances_of_orders(design)
    drawn = Drawn(design.m, design.power, design.replace, design.uniform, tuple(chances))
    scores = np.tile(OF_USER, (len(TRAIN) + len(chances), 1))
    ranks = tr.rank_sampled(scores, design=drawn, **in_training(len(chances)))
    return ranks, np.array(list(chances.values()))


def exact_ranks() -> tr.Ranks:
    return tr.rank(np.tile(OF_USER, (len(TRAIN) + 1, 1)), **in_training(1))


DESIGNS = [
    "popularity(1)",
    "popularity(2)",
    "popularity(3, 0.5)",
    "popularity(4)",
    "popularity(2, uniform=0.3)",
    "popularity(3, uniform=1)",
    "popularity(1, replace)",
    "popularity(3, replace)",
    "popularity(3, 0.5, replace, uniform=0.3)",
]


@pytest.mark.parametrize("text", DESIGNS)
@pytest.mark.parametrize("metric", ["auc", "mean-rank"])
def test_popularity_sampling_is_unbiased_over_all_draws(text: str, metric: str) -> None:
    ranks, chances = every_order(text)
    assert chances.sum() == pytest.approx(1.0, rel=1e-12)
    found = tr.values(ranks, f"{metric}~unbiased")
    assert found @ chances == pytest.approx(tr.values(exact_ranks(), metric).item(), rel=1e-12)


@pytest.mark.parametrize("text", DESIGNS)
@pytest.mark.parametrize("metric", ["recall@1", "ndcg@3", "ap", "rr@2"])
@pytest.mark.parametrize("how", ["optimistic", "pessimistic"])
def test_popularity_sampling_has_bounds_that_hold(text: str, metric: str, how: Any) -> None:
    exact, (ranks, _) = tr.values(exact_ranks().break_ties(how), metric).item(), every_order(text)
    low, high = (tr.values(ranks, tr.estimators.Corrected(tr.metric(metric), bound)) for bound in bounds())
    assert low.max() <= exact + 1e-12
    assert exact - 1e-12 <= high.min()
    np.testing.assert_allclose(tr.values(ranks, f"{metric}~possible"), (low + high) / 2, atol=1e-15)


@pytest.mark.parametrize("text", ["popularity(3)", "popularity(2, 0.5, replace, uniform=0.3)"])
def test_items_are_in_the_order_in_which_they_were_drawn(text: str) -> None:
    """The weights without replacement depend on it."""
    design, times = tr.Sample(text, 9).design, 3_000
    assert isinstance(design, tr.PopularitySampling)
    pool = Pool(6, [np.array([3, 5])] * times, np.array([4, 2, 1, 1, 1, 0]))
    found = Counter(tuple(own.tolist()) for own in design.sample(pool, np.random.default_rng(1)))
    chances = chances_of_orders(design)
    assert set(found) <= set(chances)
    assert stats.chisquare([found[key] for key in chances], [chances[key] * times for key in chances]).pvalue > 1e-4


def test_a_candidate_without_a_chance_leaves_auc_open(tmp_path: Path) -> None:
    """Item 5 has no training interactions; it is a candidate if it is not held out."""
    data: dict[str, Any] = {"train": TRAIN, "test": [[], [], [1], []], "users": [2]}
    scores = np.tile(OF_USER, (4, 1))
    plain = tr.rank_sampled(scores, design="popularity(2)", rng=1, **data)
    assert plain.estimated is None
    needed = r"auc~unbiased needs a chance above 0 for every candidate, which popularity\(2\) lacks; mix it"
    with pytest.raises(tr.InputError, match=needed):
        tr.values(plain, "auc~unbiased")
    assert 0 < tr.values(plain, "ap~possible").item() < 1, "bounds need no chances"
    mixed = tr.rank_sampled(scores, design="popularity(2, uniform=0.1)", rng=1, **data)
    assert np.isfinite(tr.values(mixed, "auc~unbiased")).all()
    for name in ("ranks.parquet", "ranks.npz"):
        mixed.save(tmp_path / name)
        assert tr.Ranks.load(tmp_path / name) == mixed
    for ranks, better in ((plain, "possible"), (mixed, "unbiased")):
        assert f"or use auc~{better}" in " ".join(tr.estimate(ranks, "auc").notes)
    assert "or use recall@2~possible" in " ".join(tr.estimate(mixed, "recall@2").notes)


def test_uniform_draws_alone_weigh_the_same() -> None:
    scores = np.random.default_rng(0).normal(size=(30, 60))
    test, train = [[user] for user in range(30)], [[59 - user % 5] for user in range(30)]
    ranks = tr.rank_sampled(scores, train=train, test=test, design="popularity(12, uniform=1, replace)", rng=1)
    np.testing.assert_allclose(tr.values(ranks, "auc~unbiased"), tr.values(ranks, "auc"), atol=1e-14)


def test_users_whose_candidates_nobody_has_are_sampled_uniformly_as_far_as_allowed() -> None:
    train, test = [[0], [0]], [[1], [2]]
    ranks = tr.rank_sampled(np.eye(2, 4), train=train, test=test, design="popularity(1, uniform=0.5)", rng=1)
    assert ranks.estimated is not None
    assert set(ranks.estimated.tolist()) <= {0.0, 1.0, 2.0}
    with pytest.raises(tr.InputError, match="`m` must be at most the number of items with training interactions left"):
        tr.rank_sampled(np.eye(2, 4), train=train, test=test, design="popularity(1)", rng=1)
    for wrong in (-0.1, 1.1, float("nan"), "half", None):
        with pytest.raises(tr.InputError, match="`uniform` must be a number from 0 to 1"):
            tr.PopularitySampling(5, uniform=wrong)  # type: ignore[arg-type]
