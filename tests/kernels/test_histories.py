"""Scores of item-item matrices against exact sums rounded at each step, and their counts against loops."""

from fractions import Fraction
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

import truerank as tr
from tests.kernels.test_counts import as_rows, random_lists, slow_counts
from truerank.kernels import library
from truerank.kernels import scores as score_blocks
from truerank.kernels.histories import count_histories, score_histories

NUMBERS = (np.float32, np.float64)
FORMS = {"dense": np.asarray, "fortran": np.asfortranarray, "sparse": sp.csr_array}


@pytest.fixture(params=["compiled", "numpy"])
def path(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    if request.param == "numpy":
        monkeypatch.setattr(library, "load", lambda: None)
    return str(request.param)


def draw(number: Any, n_users: int, n_items: int, whole: bool) -> tuple[Any, Any]:
    """Return histories and a similarity, of which many entries are 0."""
    rng = np.random.default_rng(n_items)
    shapes = ((n_users, n_items), (n_items, n_items))
    parts = [rng.integers(-3, 4, shape) if whole else rng.standard_normal(shape) for shape in shapes]
    parts = [np.where(rng.random(part.shape) < 0.3, part, 0).astype(number) for part in parts]
    return sp.csr_array(parts[0]), parts[1]


def chain(weights: Any, entries: Any) -> float:
    """Add products one after the other, with one rounding each."""
    total = Fraction(0)
    for weight, entry in zip(weights, entries, strict=True):
        total = Fraction(float(Fraction(float(weight)) * Fraction(float(entry)) + total))
    return float(total)


@pytest.mark.parametrize("form", FORMS)
def test_a_score_is_a_chain_in_the_order_of_the_history(form: str) -> None:
    histories, similarity = draw(np.float64, 7, 35, whole=False)
    found = score_histories(histories, FORMS[form](similarity))
    for user in range(7):
        part = slice(*histories.indptr[user : user + 2])
        items = histories.indices[part]
        assert found[user].tolist() == [chain(histories.data[part], similarity[items, i]) for i in range(35)]


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_items", [1, 31, 64, 65, 300])
def test_scores_equal_the_product(path: str, number: Any, form: str, n_items: int) -> None:
    histories, similarity = draw(number, 9, n_items, whole=True)  # sums are exact in every order
    found = score_histories(histories, FORMS[form](similarity))
    assert found.dtype == number
    np.testing.assert_array_equal(found, histories.toarray() @ similarity)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("threads", [1, 3])
def test_counts_equal_loops(path: str, number: Any, form: str, threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(score_blocks, "USERS_PER_BLOCK", 5)
    histories, similarity = draw(number, 23, 90, whole=True)
    rng = np.random.default_rng(0)
    train, test = random_lists(rng, 23, 90, 20), random_lists(rng, 23, 90, 7)
    counts = count_histories(histories, FORMS[form](similarity), train, test, threads=threads)
    assert as_rows(counts) == slow_counts(histories.toarray() @ similarity, train, test)


def test_entries_of_a_sparse_similarity_may_come_twice_and_in_any_order(path: str) -> None:
    histories = sp.csr_array(np.array([[1.0, 2.0, 0.0]]))
    twice = sp.csr_array((np.array([1.0, 2.0, 4.0, 8.0]), np.array([2, 0, 2, 1]), np.array([0, 3, 4, 4])), shape=(3, 3))
    assert score_histories(histories, twice).tolist() == [[2.0, 16.0, 5.0]]
    assert twice.nnz == 4


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_bad_score_is_named(path: str, form: str, bad: float) -> None:
    histories, similarity = draw(np.float64, 9, 40, whole=True)
    similarity[:, 17] = 0
    similarity[histories.indices[-1], 17] = bad
    users = np.flatnonzero(histories.toarray()[:, histories.indices[-1]])
    train, test = random_lists(np.random.default_rng(1), 9, 1, 0), random_lists(np.random.default_rng(1), 9, 1, 1)
    first = next(user for user in users if test.indptr[user] < test.indptr[user + 1])
    with pytest.raises(tr.InputError, match=f"scores must be finite, got (nan|-?inf) for user {first} and item 17"):
        count_histories(histories, FORMS[form](similarity), train, test)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("item", [-1, 40, 2**31 - 1])
def test_histories_outside_the_similarity_are_refused(form: str, item: int) -> None:
    histories, similarity = draw(np.float64, 9, 40, whole=True)
    histories.indices[3] = item
    with pytest.raises(ValueError, match="not within their arrays"):
        score_histories(histories, FORMS[form](similarity))


@pytest.mark.parametrize("item", [-1, 40, 2**31 - 1])
def test_entries_outside_the_similarity_are_refused(item: int) -> None:
    histories, similarity = draw(np.float64, 9, 40, whole=True)
    wrong = sp.csr_array(similarity)
    assert wrong.has_canonical_format  # so that SciPy does not look again
    wrong.indices[-1] = item
    with pytest.raises(ValueError, match="not within their arrays"):
        score_histories(histories, wrong)
