"""Ranks of some users are the same rows as ranks of all."""

from typing import Any

import numpy as np
import pytest

import truerank as tr

RNG = np.random.default_rng(0)
TEST = [[int(item) for item in RNG.choice(30, size=user % 3, replace=False)] for user in range(90)]
SCORES = RNG.integers(0, 9, size=(90, 30)).astype(float)
ALL = tr.rank(SCORES, test=TEST)


@pytest.mark.parametrize("scorer", [SCORES, tr.Factors(SCORES, np.eye(30))], ids=["scores", "factors"])
@pytest.mark.parametrize("candidates", [None, [list(range(0, 30, 2))] * 90])
def test_the_same_rows(scorer: Any, candidates: Any) -> None:
    whole = tr.rank(scorer, test=TEST, candidates=candidates)
    some = tr.rank(scorer, test=TEST, candidates=candidates, users=20, rng=1)
    assert some.ids is not None
    assert whole.ids is not None
    assert len(some) == 20
    assert some == whole[np.isin(whole.ids, some.ids)]
    assert "20 of 60 users were ranked, drawn at random" in some.notes
    assert "30 users have no held-out item and are left out" in some.notes
    given = tr.rank(scorer, test=TEST, candidates=candidates, users=some.ids[::-1])
    assert given == some
    assert "20 of 60 users were ranked, as chosen" in given.notes


def test_every_user_is_equally_likely() -> None:
    times = np.zeros(90)
    for seed in range(600):
        ids = tr.rank(SCORES, test=TEST, users=6, rng=seed, threads=1).ids
        assert ids is not None
        times[ids] += 1
    assert ALL.ids is not None
    assert times[ALL.ids] == pytest.approx(60, abs=5 * np.sqrt(60))
    assert times.sum() == 3600


def test_all_users_if_there_are_no_more() -> None:
    whole = tr.rank(SCORES, test=TEST, users=1000, rng=0)
    assert whole == ALL
    assert whole.notes == ALL.notes


@pytest.mark.parametrize(
    ("users", "message"),
    [
        (0, "`users` must be a number from 1"),
        ([0], "`users` must have held-out items, but 0 has none"),
        (["ann"], "`users` must be ids such as 1, got 'ann'"),
        ([], "`users` must be a number from 1, or a list of ids"),
    ],
)
def test_wrong_users(users: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.rank(SCORES, test=TEST, users=users)


def test_users_by_name() -> None:
    test = tr.Interactions.of(TEST, "test", n_items=30)
    named = tr.Interactions(test.matrix, user_ids=np.array([f"user {number}" for number in range(90)]))
    some = tr.rank(SCORES, test=named, users=["user 5", "user 2"])
    assert some.ids is not None
    assert some.ids.tolist() == ["user 2", "user 5"]
