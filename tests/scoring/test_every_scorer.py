"""One suite for all scorers: scores, pairs and counts against a dense matrix, names in any order, and wrong sizes."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr
from tests import reference
from tests.arrays import AnyArray, Ints
from truerank.scoring.conversion import as_scorer
from truerank.scoring.scorers import Scorer

N_USERS, N_ITEMS = 7, 11
RNG = np.random.default_rng(8)
# whole numbers, so that every order of additions gives the same scores, with many ties
USERS, ITEMS = (RNG.integers(-2, 3, size=(n, 3)).astype(np.float64) for n in (N_USERS, N_ITEMS))
BIAS = RNG.integers(-1, 2, size=N_ITEMS).astype(np.float64)
SIMILARITY = RNG.integers(0, 3, size=(N_ITEMS, N_ITEMS)).astype(np.float64)
HISTORY = (RNG.random((N_USERS, N_ITEMS)) < 0.4).astype(np.float64)
TEST = RNG.random((N_USERS, N_ITEMS)) < 0.25
TEST[3] = False
TRAIN = RNG.random((N_USERS, N_ITEMS)) < 0.2
PRODUCT, ADDED = USERS @ ITEMS.T, HISTORY @ SIMILARITY


class OwnScorer(tr.Scorer):
    """A scorer as a user would write it, with nothing but scores."""

    def __init__(self, matrix: AnyArray, user_ids: Any = None, item_ids: Any = None) -> None:
        self.matrix = matrix
        self.n_users, self.n_items = matrix.shape
        self.user_ids, self.item_ids = user_ids, item_ids

    def scores(self, users: Ints) -> AnyArray:
        return self.matrix[users]


class Foreign:
    """A model of another library: factors, a bias, and its own scores."""

    user_factors, item_factors = USERS, ITEMS

    def __init__(self, **names: Any) -> None:
        vars(self).update(names)

    def scores(self, users: Ints) -> AnyArray:
        return PRODUCT[users] + BIAS


Build = Callable[..., Scorer]
EVERY: dict[str, tuple[Build, AnyArray]] = {
    "factors": (lambda **names: tr.Factors(USERS, ITEMS, **names), PRODUCT),
    "bias": (lambda **names: tr.Factors(USERS, ITEMS, BIAS, **names), PRODUCT + BIAS),
    "float32": (lambda **names: tr.Factors(USERS.astype("f4"), ITEMS.astype("f4"), BIAS, **names), PRODUCT + BIAS),
    "similarity": (lambda **names: tr.Similarity(SIMILARITY, sp.csr_array(HISTORY), **names), ADDED),
    "sparse similarity": (
        lambda **names: tr.Similarity(sp.coo_array(SIMILARITY), sp.csr_array(HISTORY), **names),
        ADDED,
    ),
    "matrix": (lambda **names: tr.ScoreMatrix(PRODUCT, **names), PRODUCT),
    "sparse matrix": (lambda **names: tr.ScoreMatrix(sp.csr_array(PRODUCT), **names), PRODUCT),
    "whole numbers": (lambda **names: tr.ScoreMatrix(sp.csr_array(PRODUCT.astype(np.int64)), **names), PRODUCT),
    "function": (lambda **names: tr.FunctionScorer(lambda users: PRODUCT[users], n_items=N_ITEMS, **names), PRODUCT),
    "pairs": (
        lambda **names: tr.FunctionScorer(
            lambda users, items: PRODUCT[users, items], pairs=True, n_items=N_ITEMS, **names
        ),
        PRODUCT,
    ),
    "own": (lambda **names: OwnScorer(PRODUCT, **names), PRODUCT),
    "foreign": (lambda **names: as_scorer(Foreign(n_items=N_ITEMS, **names)), PRODUCT + BIAS),
}

every = pytest.mark.parametrize(("build", "dense"), EVERY.values(), ids=EVERY)


def slow_ranks(dense: AnyArray, train: AnyArray, test: AnyArray, ids: AnyArray) -> tr.Ranks:
    """Count one candidate after the other."""
    parts = []
    for user in np.flatnonzero(test.any(axis=1)):
        chosen = np.flatnonzero(~train[user] | test[user])
        above, tied = reference.count(dense[user, chosen].tolist(), test[user, chosen].tolist())
        parts.append(
            tr.Ranks(above=above, tied=tied, n_candidates=chosen.size, indptr=[0, len(above)], ids=[ids[user]])
        )
    return tr.Ranks.concatenate(parts)


def named(matrix: AnyArray, users: AnyArray, items: AnyArray) -> tr.Interactions:
    return tr.Interactions(sp.csr_array(matrix.astype(np.float32)), user_ids=users, item_ids=items)


@every
def test_scores_and_pairs(build: Build, dense: AnyArray) -> None:
    scorer = build()
    users = np.array([4, 0, 6])
    np.testing.assert_array_equal(scorer.scores(users), dense[users])
    rng = np.random.default_rng(1)
    rows, columns = rng.integers(0, N_USERS, 60), rng.integers(0, N_ITEMS, 60)
    np.testing.assert_array_equal(scorer.pairs(rows, columns), dense[rows, columns])
    assert scorer.pairs(rows[:0], columns[:0]).shape == (0,)


@given(st.integers(0, 10_000), st.integers(1, 5), st.integers(1, 12), st.integers(1, 4))
@settings(max_examples=30)
def test_any_small_model(seed: int, n_users: int, n_items: int, width: int) -> None:
    rng = np.random.default_rng(seed)
    users, items = (rng.integers(-2, 3, size=(n, width)).astype(np.float64) for n in (n_users, n_items))
    train, test, history = rng.random((3, n_users, n_items)) < 0.3
    test[0, 0] = True
    dense, similarity = users @ items.T, items @ items.T
    models: list[tuple[Any, AnyArray]] = [
        (tr.Factors(users, items), dense),
        (tr.Factors(users.astype("f4"), items.astype("f4")), dense),
        (tr.ScoreMatrix(sp.csr_array(dense)), dense),
        (tr.FunctionScorer(lambda some: dense[some], n_items=n_items), dense),
        (tr.Similarity(similarity, sp.csr_array(history)), history @ similarity),
        (tr.Similarity(sp.csr_array(similarity), sp.csr_array(history)), history @ similarity),
    ]
    for model, scores in models:
        expected = slow_ranks(scores, train, test, np.arange(n_users))
        assert tr.rank(model, train=sp.csr_array(train), test=sp.csr_array(test)) == expected


@every
def test_ranks_are_those_of_the_scores(build: Build, dense: AnyArray) -> None:
    expected = slow_ranks(dense, TRAIN, TEST, np.arange(N_USERS))
    train, test = sp.csr_array(TRAIN), sp.csr_array(TEST)
    assert tr.rank(build(), train=train, test=test) == expected
    assert tr.rank(build(), train=train, test=test, candidates=sp.csr_array(np.ones_like(TEST))) == expected


USER_NAMES, ITEM_NAMES = np.array([f"u{user}" for user in range(N_USERS)]), np.arange(N_ITEMS) * 10 + 5


@every
def test_names_in_any_order_give_the_same_ranks(build: Build, dense: AnyArray) -> None:
    """The data have the model's users and items in another order, and lack some that the model has."""
    rng = np.random.default_rng(2)
    scorer = build(user_ids=USER_NAMES, item_ids=ITEM_NAMES)
    for n_users, n_items in ((N_USERS, N_ITEMS), (N_USERS - 2, N_ITEMS - 3)):
        users, items = rng.permutation(N_USERS)[:n_users], rng.permutation(N_ITEMS)[:n_items]
        train, test, scores = (part[np.ix_(users, items)] for part in (TRAIN, TEST, dense))
        learned, held = (named(part, USER_NAMES[users], ITEM_NAMES[items]) for part in (train, test))
        split = tr.Split(learned, held)
        expected = slow_ranks(scores, train, test, USER_NAMES[users])
        assert tr.rank(scorer, split) == expected
        assert tr.rank(scorer, split, candidates=sp.csr_array(np.ones(test.shape))) == expected


@every
def test_users_without_held_out_items_need_not_be_known(build: Build, dense: AnyArray) -> None:
    names = np.append(USER_NAMES, "stranger")
    test = named(np.vstack([TEST, np.zeros((1, N_ITEMS), dtype=bool)]), names, ITEM_NAMES)
    expected = slow_ranks(dense, np.zeros_like(TEST), TEST, USER_NAMES)
    assert tr.rank(build(user_ids=USER_NAMES, item_ids=ITEM_NAMES), test=test) == expected


@every
def test_unknown_names_are_refused(build: Build, dense: AnyArray) -> None:
    other_users = np.where(USER_NAMES == "u5", "nobody", USER_NAMES)
    other_items = np.where(ITEM_NAMES == 25, 999, ITEM_NAMES)
    scorer = build(user_ids=USER_NAMES, item_ids=ITEM_NAMES)
    with pytest.raises(tr.InputError, match="the scorer does not know item 999: it is not among its `item_ids`"):
        tr.rank(scorer, test=named(TEST, USER_NAMES, other_items))
    with pytest.raises(tr.InputError, match="the scorer does not know user 'nobody'"):
        tr.rank(scorer, test=named(TEST, other_users, ITEM_NAMES))
    with pytest.raises(tr.InputError, match=r"`item_ids` are numbers, such as 5, but the data have text, such as '5'"):
        tr.rank(scorer, test=named(TEST, USER_NAMES, ITEM_NAMES.astype(str)))
    with pytest.raises(tr.InputError, match="the scorer does not know item 0"):
        tr.rank(build(item_ids=ITEM_NAMES), test=sp.csr_array(TEST))


@every
def test_names_of_the_scorer_are_numbers_where_the_data_have_none(build: Build, dense: AnyArray) -> None:
    order = np.random.default_rng(4).permutation(N_ITEMS)
    scorer = build(item_ids=np.argsort(order))
    expected = slow_ranks(dense[:, order], TRAIN, TEST, np.arange(N_USERS))
    assert tr.rank(scorer, train=sp.csr_array(TRAIN), test=sp.csr_array(TEST)) == expected


@every
def test_names_that_cannot_be(build: Build, dense: AnyArray) -> None:
    test = named(TEST, USER_NAMES, ITEM_NAMES)
    with pytest.raises(tr.InputError, match=r"`item_ids` must be distinct, got 5 twice"):
        tr.rank(build(item_ids=np.where(ITEM_NAMES == 15, 5, ITEM_NAMES)), test=test)
    with pytest.raises(
        tr.InputError, match=r"`user_ids` must have 7 entries, got shape \(3,\)|does not know user 'u4'"
    ):
        tr.rank(build(user_ids=USER_NAMES[:3]), test=test)


@every
@pytest.mark.parametrize("test", [sp.csr_array((N_USERS, 9)), sp.csr_array((N_USERS, 20))])
def test_another_number_of_items_is_refused(build: Build, dense: AnyArray, test: sp.csr_array) -> None:
    test = sp.lil_array(test)
    test[0, 0] = 1
    with pytest.raises(tr.InputError, match=f"`test` must have {N_ITEMS} items, got {test.shape[1]}"):
        tr.rank(build(), test=test.tocsr())
