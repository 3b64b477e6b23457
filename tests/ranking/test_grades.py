"""Grades of held-out items: in the right order, with ties among them, and what a value of 0 means."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr
from tests import reference
from tests.arrays import AnyArray

GRADED = ["gndcg", "gndcg(exp)@3", "dcg@3", "weighted-recall@3", "rp@3"]


def slow_values(scores: AnyArray, train: AnyArray, test: AnyArray, metric: str) -> list[float]:
    """Return the mean over all orders of equally scored candidates, user by user."""
    found = []
    for user in np.flatnonzero((test > 0).any(axis=1)):
        chosen = np.flatnonzero(~train[user] | (test[user] > 0))
        grades = np.maximum(test[user, chosen], 0).tolist()
        values = [reference.GRADED[metric](order) for order in reference.orders(scores[user, chosen].tolist(), grades)]
        found.append(float(np.mean(values)))
    return found


def forms(scores: AnyArray) -> dict[str, Any]:
    """Return the same scores from each way of counting."""
    n_items = scores.shape[1]
    return {
        "matrix": scores,
        "factors": tr.Factors(scores, np.eye(n_items)),
        "float32": tr.Factors(scores.astype(np.float32), np.eye(n_items, dtype=np.float32)),
        "function": lambda users: scores[users],
        "pairs": lambda users, items: scores[users, items],
    }


@given(seed=st.integers(0, 10_000))
@settings(max_examples=15, deadline=None)
def test_graded_metrics_of_all_orders(seed: int) -> None:
    """Few different scores, so that relevant items tie with each other, with and without irrelevant ones."""
    rng = np.random.default_rng(seed)
    n_users, n_items = 4, 6
    scores = rng.integers(0, rng.integers(2, 7), (n_users, n_items)).astype(np.float64)
    train = rng.random((n_users, n_items)) < 0.25
    test = rng.integers(1, 4, (n_users, n_items)) * (rng.random((n_users, n_items)) < 0.6)
    test[0, :2] = 2
    everything = sp.csr_array(np.ones((n_users, n_items)))
    expected = {metric: slow_values(scores, train, test, metric) for metric in GRADED}
    for name, form in forms(scores).items():
        for candidates in (None, everything):
            ranks = tr.rank(form, train=sp.csr_array(train), test=sp.csr_array(test), candidates=candidates, threads=2)
            for metric, values in expected.items():
                np.testing.assert_allclose(tr.values(ranks, metric), values, rtol=1e-12, err_msg=f"{name} {metric}")


def test_who_shares_a_score() -> None:
    """Places 0 to 6 with scores 9, 9, 8, 7, 7, 7, 6, in which nothing irrelevant stands."""
    scores = np.array([[9.0, 7, 6, 9, 8, 7, 7, 1, 0]])
    test = sp.csr_array(np.array([[1, 2, 3, 4, 5, 6, 7, 0, 0]]))
    for form in forms(scores).values():
        ranks = tr.rank(form, test=test)
        assert ranks.same_score is not None
        assert ranks.same_score.tolist() == [False, True, False, False, True, True, False]
        assert ranks.grades is not None
        assert sorted(ranks.grades[:2]) == [1, 4]
        assert sorted(ranks.grades[3:6]) == [2, 6, 7]
        assert ranks.grades[[2, 6]].tolist() == [5, 3]


def test_held_out_training_items_share_scores_too() -> None:
    scores, graded = np.array([[5.0, 5.0, 5.0, 1.0]]), sp.csr_array(np.array([[1, 2, 3, 0]]))
    for form in forms(scores).values():
        ranks = tr.rank(form, train=[[0, 1]], test=graded)
        assert ranks.same_score is not None
        assert ranks.same_score.tolist() == [False, True, True]
        assert ranks.n_candidates.tolist() == [4]


def test_plain_metrics_and_ranks_do_not_depend_on_grades() -> None:
    rng = np.random.default_rng(0)
    scores, test = rng.integers(0, 9, (20, 30)) * 1.0, sp.csr_array(rng.integers(0, 5, (20, 30)))
    graded, plain = tr.rank(scores, test=test), tr.rank(scores, test=sp.csr_array(test.astype(bool)))
    assert plain.grades is None
    assert graded.grades is not None
    assert graded.above.tolist() == plain.above.tolist()
    for metric in ("ap", "ndcg@10", "auc"):
        np.testing.assert_array_equal(tr.values(graded, metric), tr.values(plain, metric))


def test_weights_are_grades_and_ratings_are_not() -> None:
    events = {"ann": {"a": 5.0, "b": 2.0}, "bob": {"c": 3.0, "a": 1.0}}
    data = tr.read_interactions(events)
    assert data.ratings is not None
    assert tr.rank(np.eye(2, 3), test=data).grades is None
    weighted = tr.Interactions(sp.csr_array((data.ratings, data.items, data.indptr)), data.user_ids, data.item_ids)
    ranks = tr.rank(np.array([[1.0, 2, 3], [1, 2, 3]]), test=weighted)
    assert ranks.grades is not None
    assert ranks.grades.tolist() == [2.0, 5.0, 3.0, 1.0]
    split = tr.Split(tr.Interactions.of([[2], [1]], "train"), weighted)
    assert tr.rank(np.array([[1.0, 2, 3], [1, 2, 3]]), split).grades is not None


@pytest.mark.parametrize("candidates", [None, [[0, 1, 2, 3, 4]] * 2])
@pytest.mark.parametrize("value", [0.0, -1.0])
def test_a_held_out_value_of_zero_is_not_relevant(candidates: Any, value: float) -> None:
    """Items 0 and 1 are held out with values 2 and `value`; item 1 is above 0 and is an ordinary candidate."""
    entries = (np.array([2.0, value, value]), np.array([0, 1, 3]), np.array([0, 2, 3]))
    test = sp.csr_array(entries, shape=(2, 5))
    ranks = tr.rank(np.array([[3.0, 4, 2, 1, 0]] * 2), test=test, candidates=candidates)
    assert (ranks.above.tolist(), ranks.n_candidates.tolist()) == ([1], [5])
    assert ranks.grades is not None
    assert ranks.grades.tolist() == [2.0]
    assert ranks.notes == (
        "2 held-out entries are 0 or below and are not relevant",
        "1 user has no held-out item and is left out",
    )


@pytest.mark.parametrize("as_lists", [True, False])
def test_zeros_in_train_and_candidates_are_entries(as_lists: bool) -> None:
    train, allowed = sp.csr_array(np.array([[0.0, 1, 0, 0]])), sp.csr_array(np.array([[1.0, 1, 1, 0]]))
    train.data[:], allowed.data[:] = 0, 0
    scores = np.array([[4.0, 3, 2, 1]])
    assert tr.rank(scores, train=train, test=[[3]]).n_candidates.tolist() == [3]
    among = tr.rank(scores, train=train, test=[[3]], candidates=[[0, 1, 2]] if as_lists else allowed)
    assert (among.above.tolist(), among.n_candidates.tolist()) == ([2], [3])


def test_values_that_are_no_grades() -> None:
    test = sp.csr_array(np.array([[0, np.nan], [1, 0]]))
    with pytest.raises(tr.InputError, match="values of `test` must be finite, got nan for user 0 and item 1"):
        tr.rank(np.eye(2), test=test)


def test_sampled_ranks_carry_grades() -> None:
    """All candidates are sampled, so that sampled values are the exact ones."""
    rng = np.random.default_rng(5)
    scores = rng.permuted(np.tile(np.arange(12.0), (30, 1)), axis=1)
    test = sp.csr_array((np.arange(1, 61).reshape(30, 2).ravel() % 5 + 1.0, np.tile([3, 7], 30), np.arange(0, 61, 2)))
    test.resize((30, 12))
    sampled = tr.rank_sampled(scores, test=test, design=10, rng=0)
    np.testing.assert_allclose(tr.values(sampled, "gndcg"), tr.values(tr.rank(scores, test=test), "gndcg"), rtol=1e-12)
