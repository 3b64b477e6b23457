"""What becomes which scorer, and what is refused."""

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests.arrays import AnyArray, Ints
from truerank.scoring.conversion import as_scorer

USERS, ITEMS, BIAS = np.array([[1.0], [1.0]]), np.array([[3.0], [2.0], [1.0]]), np.array([0.0, 5.0, 0.0])


class Biased:
    """A foreign model whose scores are more than the product of its factors."""

    user_factors, item_factors = USERS, ITEMS

    def scores(self, users: Ints) -> AnyArray:
        return USERS[users] @ ITEMS.T + BIAS


class WithFactors:
    user_factors, item_factors = USERS, ITEMS


class WithBias(WithFactors):
    item_bias = BIAS


def test_own_scores_win_over_factors() -> None:
    assert tr.rank(Biased(), test=[[1], [0]]).rank.tolist() == [1, 2]
    assert tr.rank(WithFactors(), test=[[1], [0]]).rank.tolist() == [2, 1]
    assert tr.rank(WithBias(), test=[[1], [0]]).rank.tolist() == [1, 2]
    assert isinstance(as_scorer(WithFactors()), tr.Factors)


def test_own_scores_of_another_width_are_refused() -> None:
    """A model of 3 items and a test of 9 is an error, whether the model tells its size or not."""
    test = sp.csr_array(np.eye(2, 9))
    with pytest.raises(tr.InputError, match=r"of shape \(2, 9\), got float64 of shape \(2, 3\)"):
        tr.rank(Biased(), test=test)
    told = Biased()
    told.n_items = 3  # type: ignore[attr-defined]
    with pytest.raises(tr.InputError, match="`test` must have 3 items, got 9"):
        tr.rank(told, test=test)
    with pytest.raises(tr.InputError, match=r"must return scores of shape \(2, 9\), got \(2, 3\)"):
        tr.rank(Biased(), test=test, candidates=sp.csr_array(np.ones((2, 9))))
    told.n_users = 5  # type: ignore[attr-defined]
    with pytest.raises(tr.InputError, match="`test` must have 5 users, got 2"):
        tr.rank(told, test=sp.csr_array(np.eye(2, 3)))


def test_names_of_a_foreign_model() -> None:
    model = Biased()
    model.item_ids = ["c", "b", "a"]  # type: ignore[attr-defined]
    test = tr.read_interactions({0: ["a"], 1: ["b", "c"]})
    assert tr.rank(model, test=test).rank.tolist() == [3, 1, 2]


@pytest.mark.parametrize(
    ("scorer", "message"),
    [
        (5, "can't get scores from int"),
        (Biased, "can't get scores from the class Biased; give an instance of it"),
        ([1], "can't get scores from list"),
        ({"a": 1}, "can't get scores from int"),
        (
            lambda users, items, device: items,
            "must take users, or users and items, got one that takes users, items, device",
        ),
        (np.zeros(3), "`matrix` must be two-dimensional, got 1 dimensions"),
        (np.array([["a"]]), "`matrix` must hold real numbers, got values of type <U1"),
        (np.zeros((2, 3)) * 1j, "`matrix` must hold real numbers, got values of type complex128"),
        (sp.csr_array(np.eye(2, 3) * 1j), "`matrix` must hold real numbers, got values of type complex128"),
        (lambda users: np.zeros((len(users), 3)) * 1j, "scores must hold real numbers, got values of type complex128"),
        (lambda users: np.zeros(len(users)), r"must return scores of shape \(2, n_items\), got \(2,\)"),
        (lambda users: [[1.0, 2.0], [3.0]], "scores must be an array"),
    ],
)
def test_what_gives_no_scores(scorer: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.rank(scorer, test=[[0], [1]])


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: tr.Factors(USERS * 1j, ITEMS), "`user_factors` must hold real numbers, got values of type complex128"),
        (lambda: tr.Factors(USERS, ITEMS, BIAS * 1j), "`item_bias` must hold real numbers"),
        (lambda: tr.Factors(USERS, ITEMS, user_ids=["a"]), r"`user_ids` must have 2 entries, got shape \(1,\)"),
        (lambda: tr.Factors(USERS, ITEMS, item_ids=[["a"]] * 3), r"`item_ids` must have 3 entries, got shape \(3, 1\)"),
        (
            lambda: tr.Similarity(np.ones((3, 4)), [[0]]),
            r"`similarity` must have as many rows as columns, got shape \(3, 4",
        ),
        (lambda: tr.Similarity(np.ones(3), [[0]]), "`similarity` must be two-dimensional"),
        (lambda: tr.Similarity(np.eye(3), [[3]]), r"`history` must hold items 0\.\.2, got 3\.\.3"),
        (lambda: tr.FunctionScorer(len, n_items=2.5), "`n_items` must be a whole number from 0, got 2.5"),  # type: ignore[arg-type]
        (lambda: tr.FunctionScorer(len, n_items=-1), "`n_items` must be a whole number from 0, got -1"),
        (lambda: tr.FunctionScorer(len, n_items=2, item_ids=["a"]), r"`item_ids` must have 2 entries"),
        (lambda: tr.Scorer(), "abstract"),  # type: ignore[abstract]
    ],
)
def test_what_is_no_scorer(build: Any, message: str) -> None:
    with pytest.raises((tr.InputError, TypeError), match=message):
        build()


def test_more_lists_than_users() -> None:
    with pytest.raises(tr.InputError, match="`test` must have 2 users, got 3"):
        tr.rank(np.zeros((2, 3)), test=[[0], [1], [2]])


def test_callable_objects_and_methods() -> None:
    class Model:
        def __call__(self, users: Ints) -> AnyArray:
            return USERS[users] @ ITEMS.T

        def score(self, users: Ints, items: Ints) -> AnyArray:
            return (USERS[users] * ITEMS[items]).sum(axis=1)

        def with_options(self, users: Ints, batch: int = 7) -> AnyArray:
            return USERS[users] @ ITEMS.T

    test = sp.csr_array(np.array([[0, 1, 0], [0, 0, 1]]))
    for scorer in (Model(), Model().score, Model().with_options):
        assert tr.rank(scorer, test=test).rank.tolist() == [2, 3]
