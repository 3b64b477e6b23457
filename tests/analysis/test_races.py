"""Races: the same verdicts as with all users, rarely a wrong one, and no users ranked in vain."""

from typing import Any

import numpy as np
import pytest

import truerank as tr


def study(chances: Any, users: int, seed: int = 0) -> tuple[dict[str, Any], tr.Split]:
    """Return scores that put the held-out item first for a share of the users of each recommender, and the split."""
    rng = np.random.default_rng(seed)
    scores = rng.random((2, users, 12))
    scores[:, :, 0] = np.where(rng.random((2, users)) < np.array(chances)[:, None], 2.0, -1.0)
    train = tr.Interactions.of([[]] * users, "", n_users=users, n_items=12)
    test = tr.Interactions.of([[0]] * users, "", n_users=users, n_items=12)
    return dict(zip("AB", scores, strict=True)), tr.Split(train, test)


def test_a_clear_race_ends_early_with_a_valid_interval() -> None:
    scores, split = study([0.3, 0.6], 4_000)
    found = tr.race(scores, split, "rr", rng=1)
    assert found.difference.finding.winner == "B"
    assert found.decided
    assert found.users < 600
    assert len(found.ranks["A"]) == found.users == found.difference.n
    exact = tr.rank(scores, split)
    mean = tr.values(exact["A"], "rr").mean() - tr.values(exact["B"], "rr").mean()
    low, high = found.difference.confidence_interval()
    assert low < mean < high
    assert (found.difference.recommender, found.difference.baseline) == ("A", "B")
    assert found.conclusion == f"B is better, after {found.users} of 4,000 users."
    assert str(found).endswith(found.conclusion)


def test_ranks_are_those_of_the_users_ranked_all_together() -> None:
    scores, split = study([0.3, 0.6], 1_000)
    found, exact = tr.race(scores, split, "rr", rng=1), tr.rank(scores, split)
    for name, own in found.ranks.items():
        assert own.ids is not None
        assert np.array_equal(own.above, exact[name].above[own.ids])
        assert np.unique(own.ids).size == len(own)
        assert not np.array_equal(own.ids, np.sort(own.ids))


def test_equal_recommenders_are_settled_by_a_margin_or_by_all_users() -> None:
    scores, split = study([0.3, 0.3], 2_000)
    scores["B"] = scores["A"].copy()
    settled = tr.race(scores, split, "rr", margin=0.05, rng=1)
    assert settled.difference.finding.kind == "equivalent"
    assert settled.users < 2_000
    last = tr.race(scores, split, "rr", rng=1)
    assert (last.users, last.decided) == (2_000, False)
    assert last.difference.verdict == "no difference found"


def test_all_users_determine_the_order_of_these_but_not_of_new_users() -> None:
    scores, split = study([0.300, 0.305], 800, seed=3)
    these, new = (tr.race(scores, split, "rr", new_users=new, rng=1) for new in (False, True))
    exact = {name: tr.values(own, "rr").mean() for name, own in tr.rank(scores, split).items()}
    assert these.difference.finding.winner == max(exact, key=lambda name: exact[name])
    assert (new.decided, new.users) == (False, 800)


def test_a_race_can_be_cut_short() -> None:
    scores, split = study([0.30, 0.31], 1_000)
    found = tr.race(scores, split, "rr", most=150, rng=1)
    assert (found.users, found.population, found.decided) == (150, 1_000, False)


def test_wrong_verdicts_are_rare_although_every_round_is_looked_at() -> None:
    scores, split = study([0.5, 0.5], 600)
    scores["A"][:, 0] = np.where(np.arange(600) < 300, 2.0, -1.0)  # sorted, so that a fixed order would deceive
    scores["B"][:, 0] = np.where(np.arange(600) >= 300, 2.0, -1.0)
    times = 60
    wrong = sum(
        tr.race(scores, split, "recall@1", rng=seed).difference.finding.kind == "better" for seed in range(times)
    )
    assert wrong / times < 0.05 + 5 * (0.05 * 0.95 / times) ** 0.5


def test_names_of_users_are_kept() -> None:
    data = tr.read_interactions({"user": list("abcd"), "item": list("wxyz")})
    split = tr.Split(data, data, repeats="hold out")
    found = tr.race({"A": np.eye(4), "B": 1 - np.eye(4)}, split, "rr", rng=0)
    names = found.ranks["A"].ids
    assert names is not None
    assert sorted(names.tolist()) == list("abcd")


def test_what_can_not_race() -> None:
    scores, split = study([0.3, 0.6], 50)
    with pytest.raises(tr.InputError, match="exactly two recommenders, by name, got 1"):
        tr.race({"A": scores["A"]}, split, "rr")
    with pytest.raises(tr.InputError, match="`most` must be a whole number from 2, got 1"):
        tr.race(scores, split, "rr", most=1)
    with pytest.raises(tr.InputError, match="`margin` must be a number from 0"):
        tr.race(scores, split, "rr", margin=-1)
    few, lonely = study([0.3, 0.6], 1)
    with pytest.raises(tr.InputError, match="at least two users with held-out items, got 1"):
        tr.race(few, lonely, "rr")
