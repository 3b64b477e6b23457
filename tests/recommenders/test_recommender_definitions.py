"""Each recommender against its definition, written slowly."""

from itertools import product
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import truerank as tr
from tests.arrays import Floats
from truerank.kernels import library
from truerank.recommenders import ials
from truerank.recommenders import ials as least_squares
from truerank.recommenders.item_models import invert
from truerank.recommenders.models import FactorModel

RNG = np.random.default_rng(5)
TRAIN = sp.csr_array((RNG.random((40, 23)) < 0.2).astype(np.int8))
X = TRAIN.toarray().astype(np.float64)


def slow_loss(known: Floats, users: Floats, items: Floats, settings: tr.IALS) -> float:
    """Add up the paper's loss, one term after the other."""
    total = 0.0
    for u, i in product(range(len(users)), range(len(items))):
        y = sum(users[u, f] * items[i, f] for f in range(users.shape[1]))
        total += known[u, i] * (y - 1) ** 2 + settings.alpha * y**2
    for matrix, vectors in ((known, users), (known.T, items)):
        for row, vector in zip(matrix, vectors, strict=True):
            weight = (row.sum() + settings.alpha * len(row)) ** settings.frequency_exponent
            total += settings.regularization * weight * (vector**2).sum()
    return float(total)


@pytest.mark.parametrize("exponent", [0.0, 0.5, 1.0])
def test_ials_loss(exponent: float) -> None:
    ials = tr.IALS(factors=3, regularization=0.7, frequency_exponent=exponent)
    users, items = RNG.normal(size=(40, 3)), RNG.normal(size=(23, 3))
    expected = slow_loss(X, users, items, ials)
    assert ials.loss(FactorModel(users, items), TRAIN) == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize("exponent", [0.0, 1.0])
def test_ials_finds_a_stationary_point(exponent: float) -> None:
    """After many sweeps no small step in any direction lowers the loss."""
    ials = tr.IALS(factors=3, regularization=0.3, frequency_exponent=exponent, sweeps=1000, rng=1)
    model = ials.fit(TRAIN)
    start = np.concatenate([model.user_factors.ravel(), model.item_factors.ravel()])

    def loss(flat: Floats) -> float:
        users, items = flat[: 40 * 3].reshape(-1, 3), flat[40 * 3 :].reshape(-1, 3)
        return ials.loss(FactorModel(users, items), TRAIN)

    slopes = [(loss(start + step) - loss(start - step)) / 2e-4 for step in 1e-4 * np.eye(start.size)[::7]]
    assert np.abs(slopes).max() < 1e-4
    assert minimize(loss, start, method="BFGS", options={"maxiter": 3}).fun == pytest.approx(loss(start), rel=1e-6)


def test_every_sweep_lowers_the_loss() -> None:
    losses = [ials.loss(ials.fit(TRAIN), TRAIN) for ials in (tr.IALS(factors=5, sweeps=n, rng=2) for n in range(1, 8))]
    assert (np.diff(losses) < 0).all()


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 700), st.floats(0, 5), st.integers(0, 99))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_least_squares(d: int, n_rows: int, n_columns: int, alpha: float, seed: int) -> None:
    """Compiled and plain loops both solve the equations, the former with products in float32."""
    rng = np.random.default_rng(seed)
    matrix = sp.csr_array((rng.random((n_rows, n_columns)) < rng.random()).astype(np.float64))
    factors = rng.normal(size=(n_columns, d)).astype(np.float32).astype(np.float64)
    penalties = rng.uniform(0.5, 2.0, n_rows)
    for loops, error in ((library.load(), 2e-5), (None, 1e-10)):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "load", lambda loops=loops: loops)
            found = least_squares.solve(matrix, factors, alpha, penalties, threads=2)
        for row, v in enumerate(found):
            A = alpha * factors.T @ factors + penalties[row] * np.eye(d)
            A += factors.T @ (matrix.toarray()[row][:, None] * factors)
            expected = np.linalg.solve(A, factors.T @ matrix.toarray()[row])
            np.testing.assert_allclose(v, expected, rtol=0, atol=error * (1 + np.abs(expected).max()))


@given(st.integers(1, 40), st.integers(1, 9), st.integers(1, 90), st.floats(0, 5), st.integers(0, 99))
@settings(deadline=None, max_examples=40, derandomize=True)
def test_conjugate_gradients(d: int, n_rows: int, n_columns: int, alpha: float, seed: int) -> None:
    """Three steps from a start minimise the loss in the space that three gradients span."""
    rng = np.random.default_rng(seed)
    known = (rng.random((n_rows, n_columns)) < rng.random()).astype(np.float64)
    factors = rng.normal(size=(n_columns, d)).astype(np.float32).astype(np.float64)
    start, penalties = rng.normal(size=(n_rows, d)), rng.uniform(0.5, 2.0, n_rows)
    for loops in (library.load(), None):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(library, "load", lambda loops=loops: loops)
            found = least_squares.improve(sp.csr_array(known), factors, start, alpha, penalties, threads=2)
        for row in range(n_rows):
            A = alpha * factors.T @ factors + penalties[row] * np.eye(d) + factors.T @ (known[row][:, None] * factors)
            expected = best_of_gradients(A, factors.T @ known[row], start[row]) if known[row].any() else np.zeros(d)
            np.testing.assert_allclose(found[row], expected, rtol=0, atol=1e-3 * (1 + np.abs(expected).max()))


def best_of_gradients(A: Floats, b: Floats, x: Floats) -> Floats:
    """Return where x'Ax/2 - b'x is least in the space that three gradients span from x."""
    r = b - A @ x
    space, _ = np.linalg.qr(np.column_stack([r, A @ r, A @ (A @ r)])[:, : len(x)])
    return x + space @ np.linalg.solve(space.T @ A @ space, space.T @ r)


@pytest.mark.parametrize("factors", [63, 64, 65])
def test_many_factors_reach_the_same_loss(factors: int) -> None:
    losses = []
    for many in (10**9, 1):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(ials, "_MANY", many)
            learner = tr.IALS(factors=factors, regularization=0.5, sweeps=30, rng=0)
            losses.append(learner.loss(learner.fit(TRAIN), TRAIN))
    assert losses[1] == pytest.approx(losses[0], rel=1e-3)


@pytest.mark.parametrize("n", [1, 5, 64, 65, 200])
def test_inverse(n: int) -> None:
    rows = RNG.normal(size=(n + 5, n))
    matrix = rows.T @ rows + np.eye(n)
    found = invert(matrix, threads=2)
    np.testing.assert_allclose(found @ matrix, np.eye(n), atol=1e-12)
    np.testing.assert_array_equal(found, found.T)
    np.testing.assert_array_equal(found, invert(matrix, threads=1))


def test_says_when_the_regularization_is_too_small() -> None:
    with pytest.raises(tr.InputError, match="`regularization` is too small for these data"):
        tr.IALS(factors=8, alpha=0.0, regularization=1e-30, rng=0).fit(sp.csr_array(np.ones((500, 400))))


def slow_knn(known: Floats, knn: tr.ItemKNN) -> Floats:
    """Eq. 27 to 30, entry by entry; returns the scores of all users."""
    n = known.shape[1]
    s = np.zeros((n, n))
    for i, j in product(range(n), repeat=2):
        both, size = (known[:, i] * known[:, j]).sum(), known[:, i].sum() * known[:, j].sum()
        s[i, j] = 0.0 if size == 0 or (i == j and not knn.keep_self) else (both / np.sqrt(size)) ** knn.power
    if knn.neighbours is not None:
        closest = [np.argsort(-row.round(12), kind="stable")[: knn.neighbours] for row in s]
        for i, j in product(range(n), repeat=2):
            s[i, j] *= (i in closest[j]) if knn.keep == "column" else (j in closest[i])
    scores = np.zeros(known.shape)
    for i in range(n):
        row = s[i] / np.linalg.norm(s[i]) if knn.row_norm and s[i].any() else s[i]
        scores[:, i] = known @ row / (row.sum() if knn.divide and row.any() else 1.0)
    return scores


@pytest.mark.parametrize(("power", "neighbours"), [(1.0, None), (0.5, 1), (3.0, 4), (0.5, 23), (1.0, 99)])
@pytest.mark.parametrize("keep", ["row", "column"])
@pytest.mark.parametrize("options", list(product([False, True], repeat=3)))
def test_itemknn(power: float, neighbours: int | None, keep: Any, options: tuple[bool, bool, bool]) -> None:
    keep_self, row_norm, divide = options
    knn = tr.ItemKNN(power, neighbours, keep, keep_self=keep_self, row_norm=row_norm, divide=divide)
    model = knn.fit(TRAIN)
    exact = 1e-12 if sp.issparse(model.similarity) else 1e-5
    np.testing.assert_allclose(model.scores(np.arange(40)), slow_knn(X, knn), rtol=exact, atol=exact)


def test_equally_similar_items_get_equal_similarities() -> None:
    """Items 0 and 1 share 2 of 3 and 5 users, items 2 and 3 share 6 of 9 and 15: both 2 / sqrt(15)."""
    blocks = [[[0, 1]] * 2 + [[0]] * 1 + [[1]] * 3, [[2, 3]] * 6 + [[2]] * 3 + [[3]] * 9]
    similarity: Any = tr.ItemKNN(row_norm=False).fit(blocks[0] + blocks[1]).similarity
    dense = similarity.toarray() if hasattr(similarity, "toarray") else similarity
    assert dense[0, 1] == dense[2, 3] == pytest.approx(2 / np.sqrt(15), rel=1e-7)


def test_ease_minimises_its_loss() -> None:
    """Each column is the ridge regression of an item on all others."""
    weights = tr.EASE(regularization=2.0).fit(TRAIN).similarity
    for item in range(23):
        others = np.delete(np.arange(23), item)
        A = X[:, others].T @ X[:, others] + 2.0 * np.eye(22)
        np.testing.assert_allclose(weights[others, item], np.linalg.solve(A, X[:, others].T @ X[:, item]), atol=1e-6)
        assert weights[item, item] == 0


def test_without_the_compiled_library(monkeypatch: pytest.MonkeyPatch) -> None:
    train = [[0, 1], [0, 1, 2], [2, 3], [2]]
    ials = tr.IALS(factors=3, regularization=0.1, rng=0)
    expected = [ials.loss(ials.fit(train), train), tr.EASE(1.0).fit(train).similarity.sum()]
    monkeypatch.setattr(library, "load", lambda: None)
    found = [ials.loss(ials.fit(train), train), tr.EASE(1.0).fit(train).similarity.sum()]
    assert found == pytest.approx(expected, rel=1e-5)


def test_popularity_counts_users() -> None:
    np.testing.assert_array_equal(tr.Popularity().fit(TRAIN).scores(np.array([3])), [X.sum(axis=0)])
