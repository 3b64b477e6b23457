"""Graded metrics of ir-measures and scikit-learn on random lists: equal to 1e-9 where definitions coincide."""

import shutil

import numpy as np
import pytest

import truerank as tr
from tests.arrays import Floats

irm = pytest.importorskip("ir_measures", reason="install the extra 'peers'")
sklearn = pytest.importorskip("sklearn.metrics", reason="install the extra 'peers'")

N_USERS, N_ITEMS = 30, 40


def make(*, distinct_scores: bool) -> tuple[Floats, Floats]:
    """Return scores and grades of 0 to 3, of which each user has one that is not 0."""
    rng = np.random.default_rng(5)
    grades = rng.choice([0.0, 0.0, 0.0, 1.0, 2.0, 3.0], size=(N_USERS, N_ITEMS))
    grades[:, 0] = 2.0
    # multiples of 1/16 are exact in single precision, in which the TREC tools compare
    scores = rng.permuted(np.tile(np.arange(N_ITEMS) / 16.0, (N_USERS, 1)), axis=1)
    return (scores if distinct_scores else np.floor(scores * 3)), grades


def nested(table: Floats) -> dict[str, dict[str, float]]:
    return {f"u{user:02d}": {f"i{item:02d}": value for item, value in enumerate(row)} for user, row in enumerate(table)}


def ours(metric: str, scores: Floats, grades: Floats) -> Floats:
    return tr.values(tr.read_lists(nested(scores), nested(grades), depth="all"), metric)


def by_ir_measures(measure: str, scores: Floats, grades: Floats) -> Floats:
    qrels = {user: {item: int(grade) for item, grade in row.items()} for user, row in nested(grades).items()}
    found = {
        result.query_id: result.value for result in irm.iter_calc([irm.parse_measure(measure)], qrels, nested(scores))
    }
    return np.array([found[user] for user in qrels])


def by_sklearn(name: str, k: int | None, scores: Floats, grades: Floats) -> Floats:
    score = getattr(sklearn, name)
    return np.array([score(true[None], given[None], k=k) for true, given in zip(grades, scores, strict=True)])


@pytest.mark.parametrize("k", [1, 5, 30])
def test_ir_measures_has_the_linear_gain(k: int) -> None:
    data = make(distinct_scores=True)
    np.testing.assert_allclose(by_ir_measures(f"nDCG@{k}", *data), ours(f"gndcg@{k}", *data), atol=1e-9)


def test_ir_measures_on_whole_rankings() -> None:
    data = make(distinct_scores=True)
    np.testing.assert_allclose(by_ir_measures("nDCG", *data), ours("gndcg", *data), atol=1e-9)


@pytest.mark.parametrize("k", [1, 5, 30])
def test_ir_measures_with_exponential_gains(k: int) -> None:
    data = make(distinct_scores=True)
    theirs = by_ir_measures(f"nDCG(gains={{0:0,1:1,2:3,3:7}})@{k}", *data)
    np.testing.assert_allclose(theirs, ours(f"gndcg(exp)@{k}", *data), atol=1e-9)


@pytest.mark.skipif(shutil.which("perl") is None, reason="gdeval is a Perl script")
@pytest.mark.parametrize("grade", [1, 3])
@pytest.mark.parametrize("k", [1, 5, 20])
def test_expected_reciprocal_rank_of_gdeval(grade: int, k: int) -> None:
    """Its users are numbers, its largest grade is 4, and it prints five digits."""
    scores, grades = make(distinct_scores=True)
    same = np.where(grades > 0, grade, 0)
    run, truth = (
        {str(user): {f"i{item}": each for item, each in enumerate(row)} for user, row in enumerate(table.tolist(), 1)}
        for table in (scores, same)
    )
    theirs = {each.query_id: each.value for each in irm.iter_calc([irm.ERR @ k], truth, run)}
    found = ours(f"err({(2**grade - 1) / 16})@{k}", scores, same)
    np.testing.assert_allclose([theirs[user] for user in truth], found, atol=6e-6)


@pytest.mark.parametrize("distinct_scores", [True, False])
@pytest.mark.parametrize("k", [1, 5, 30, None])
@pytest.mark.parametrize(("theirs", "metric"), [("ndcg_score", "gndcg"), ("dcg_score", "dcg")])
def test_sklearn_also_averages_over_ties(theirs: str, metric: str, k: int | None, distinct_scores: bool) -> None:
    data = make(distinct_scores=distinct_scores)
    text = metric if k is None else f"{metric}@{k}"
    np.testing.assert_allclose(by_sklearn(theirs, k, *data), ours(text, *data), atol=1e-9)


@pytest.mark.parametrize("k", [1, 5, None])
def test_sklearn_with_exponential_gains(k: int | None) -> None:
    scores, grades = make(distinct_scores=False)
    text = "gndcg(exp)" if k is None else f"gndcg(exp)@{k}"
    theirs = by_sklearn("ndcg_score", k, scores, 2.0**grades - 1.0)
    np.testing.assert_allclose(theirs, ours(text, scores, grades), atol=1e-9)


def test_documented_difference_sklearn_scores_users_without_relevant_items_0() -> None:
    scores, grades = np.array([[2.0, 1.0]]), np.zeros((1, 2))
    assert by_sklearn("ndcg_score", None, scores, grades)[0] == 0.0
    assert np.isnan(ours("gndcg", scores, grades)[0])


def test_documented_difference_binary_ndcg_of_graded_truth() -> None:
    """The paper's NDCG sees only what is relevant; ir-measures' nDCG sees grades."""
    scores, grades = make(distinct_scores=True)
    assert np.abs(by_ir_measures("nDCG@5", scores, grades) - ours("ndcg@5", scores, grades)).max() > 0.01
    binary = (grades > 0).astype(np.float64)
    np.testing.assert_allclose(by_ir_measures("nDCG@5", scores, binary), ours("ndcg@5", scores, grades), atol=1e-9)
