"""Models of implicit: ranks against its own scores, metrics against its own evaluator."""

import warnings
from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from implicit.als import AlternatingLeastSquares
from implicit.bpr import BayesianPersonalizedRanking
from implicit.evaluation import ranking_metrics_at_k
from implicit.lmf import LogisticMatrixFactorization
from implicit.nearest_neighbours import BM25Recommender, CosineRecommender
from implicit.utils import ParameterWarning

import truerank as tr
from tests.arrays import AnyArray
from tests.models.data import check_ranks, shuffled, split
from truerank.scoring.conversion import as_scorer

FACTORS = [
    AlternatingLeastSquares(factors=16, iterations=3, random_state=0, num_threads=1),
    BayesianPersonalizedRanking(factors=15, iterations=5, random_state=0, num_threads=1),
    LogisticMatrixFactorization(factors=8, iterations=5, random_state=0, num_threads=1),
]
NEIGHBOURS = [CosineRecommender(K=30, num_threads=1), BM25Recommender(K=30, num_threads=1)]


def fitted(model: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", category=ParameterWarning)  # of implicit's own conversions
        model.fit(matrix(split().train), show_progress=False)
    return model


def matrix(part: tr.Interactions) -> sp.csr_matrix:
    """Return the older class of matrix, with 32-bit indices, which implicit requires."""
    indices, indptr = (array.astype(np.int32) for array in (part.matrix.indices, part.matrix.indptr))
    return sp.csr_matrix((part.matrix.data, indices, indptr), shape=part.shape)


def own_scores(model: Any, user: int) -> dict[int, float]:
    train = split().train
    row = int(np.flatnonzero(train.names == user)[0])
    items, scores = model.recommend(row, matrix(train)[row], N=train.n_items, filter_already_liked_items=False)
    unlisted = dict.fromkeys(train.item_names.tolist(), 0.0)
    return unlisted | dict(zip(train.item_names[items].tolist(), scores.tolist(), strict=True))


@pytest.mark.parametrize("model", FACTORS + NEIGHBOURS, ids=lambda model: type(model).__name__)
def test_ranks_and_metrics(model: Any) -> None:
    trained = fitted(model)
    ranks = check_ranks(trained, lambda user: own_scores(trained, user))
    sizes = split().train, split().test
    theirs = ranking_metrics_at_k(trained, *map(matrix, sizes), K=10, show_progress=False, num_threads=1)
    ours = tr.evaluate(ranks, ["precision@10", "ap@10", "ndcg@10"], convention="implicit")
    assert [cell.mean for cell in ours.estimates] == pytest.approx([theirs[k] for k in ("precision", "map", "ndcg")])


def test_factors_go_to_the_fast_loop() -> None:
    assert isinstance(as_scorer(fitted(FACTORS[0])), tr.Factors)
    assert isinstance(as_scorer(fitted(NEIGHBOURS[0]), split().train), tr.Similarity)


def test_another_numbering_gives_the_same_ranks() -> None:
    model, train = fitted(FACTORS[0]), split().train
    users, items = shuffled(train.n_users), shuffled(train.n_items)
    other = AlternatingLeastSquares(factors=16)
    other.user_factors, other.item_factors = model.user_factors[users], model.item_factors[items]
    named = tr.as_scorer(other, user_ids=train.names[users], item_ids=train.item_names[items])
    assert tr.rank(named, split()) == tr.rank(model, split())
    assert tr.rank_sampled(named, split(), rng=0) == tr.rank_sampled(model, split(), rng=0)


def test_another_numbering_of_neighbours() -> None:
    model, train = fitted(NEIGHBOURS[0]), split().train
    users, items = shuffled(train.n_users), shuffled(train.n_items)
    other = CosineRecommender(K=30)
    other.similarity = sp.csr_matrix(model.similarity[items][:, items])
    history = tr.Interactions(sp.csr_array(train.matrix[users][:, items]), train.names[users], train.item_names[items])
    assert tr.rank(tr.as_scorer(other, history), split()).rank.tolist() == tr.rank(model, split()).rank.tolist()


def test_factors_on_a_gpu_are_fetched() -> None:
    """There is no GPU here: an object with the interface of implicit's `Matrix`, which is not an array."""

    class OnGPU:
        def __init__(self, array: AnyArray) -> None:
            self.to_numpy = lambda: array

    model = fitted(FACTORS[0])
    other = AlternatingLeastSquares(factors=16)
    other.user_factors, other.item_factors = OnGPU(model.user_factors), OnGPU(model.item_factors)
    assert tr.rank(other, split()) == tr.rank(model, split())


def test_what_is_refused() -> None:
    with pytest.raises(tr.InputError, match="CosineRecommender keeps no histories of users; give `train`"):
        tr.rank(fitted(NEIGHBOURS[0]), test=split().test)
    with pytest.raises(tr.InputError, match=r"`test` must have \d+ users, got 3"):
        tr.rank(fitted(FACTORS[0]), test=sp.csr_array(np.eye(3)))
    with pytest.raises(tr.InputError, match="AlternatingLeastSquares must be fitted before it can score"):
        tr.rank(AlternatingLeastSquares(), split())
