"""Models of RecTools: ranks against its own scores, metrics against its own evaluator."""

import copy
from functools import cache
from typing import Any

import pandas as pd
import pytest
from implicit.als import AlternatingLeastSquares
from implicit.nearest_neighbours import CosineRecommender
from rectools import metrics as theirs
from rectools.dataset import Dataset, IdMap
from rectools.models import (
    EASEModel,
    ImplicitALSWrapperModel,
    ImplicitItemKNNWrapperModel,
    PopularModel,
    PureSVDModel,
)
from rectools.models.rank import Distance

import truerank as tr
from tests.models.data import check_ranks, events, shuffled, split
from tests.pages import run_block
from truerank.scoring.conversion import as_scorer

MODELS = [
    PureSVDModel(factors=8),
    ImplicitALSWrapperModel(AlternatingLeastSquares(factors=8, iterations=2, random_state=0, num_threads=1)),
    EASEModel(regularization=100),
    ImplicitItemKNNWrapperModel(CosineRecommender(K=20, num_threads=1)),
    PopularModel(),
]


def frame(part: tr.Interactions) -> pd.DataFrame:
    pairs = pd.DataFrame(events(part), columns=["user_id", "item_id"])
    return pairs.assign(weight=1.0, datetime=pd.Timestamp("2026-01-01"))


@cache
def dataset() -> Any:
    return Dataset.construct(frame(split().train))


def fitted(model: Any) -> Any:
    return copy.deepcopy(model).fit(dataset())


def own_scores(model: Any, user: int) -> dict[int, float]:
    """Return the scores of its recommendations; the items it leaves out are below them."""
    listed = model.recommend([user], dataset(), k=split().train.n_items, filter_viewed=False)
    sign = -1 if getattr(model, "u2i_dist", None) is Distance.EUCLIDEAN else 1
    found = dict(zip(listed["item_id"].tolist(), (sign * listed["score"]).tolist(), strict=True))
    lowest = min(found.values()) - 1
    return {item: found.get(item, lowest) for item in split().train.item_names.tolist()}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_ranks(model: Any) -> None:
    trained = fitted(model)
    check_ranks(tr.as_scorer(trained, dataset()), lambda user: own_scores(trained, user))
    vectors = isinstance(model, PureSVDModel | ImplicitALSWrapperModel)
    assert isinstance(as_scorer(trained, dataset()), tr.Factors if vectors else tr.FunctionScorer)


@pytest.mark.parametrize("distance", list(Distance))
def test_every_distance(distance: Distance) -> None:
    trained = fitted(MODELS[0])
    trained.u2i_dist = distance
    check_ranks(tr.as_scorer(trained, dataset()), lambda user: own_scores(trained, user))


def test_metrics_of_its_evaluator() -> None:
    trained = fitted(MODELS[0])
    lists = trained.recommend(split().test.names, dataset(), k=10, filter_viewed=True)
    chosen = {
        "ndcg@10": theirs.NDCG(10), "ap@10": theirs.MAP(10), "recall@10": theirs.Recall(10),
        "precision@10": theirs.Precision(10), "rr@10": theirs.MRR(10),
    }  # fmt: skip
    found = theirs.calc_metrics(chosen, reco=lists, interactions=frame(split().test))
    ranks = tr.rank(tr.as_scorer(trained, dataset()), split())
    ours = tr.evaluate(ranks, list(chosen), convention="rectools")
    assert {text: ours[text].mean for text in chosen} == pytest.approx(found)


def test_another_numbering_gives_the_same_ranks() -> None:
    model, data = fitted(MODELS[0]), dataset()
    other, users, items = copy.copy(model), shuffled(data.user_id_map.size), shuffled(data.item_id_map.size)
    other.user_factors, other.item_factors = model.user_factors[users], model.item_factors[items]
    renamed = Dataset(
        IdMap(data.user_id_map.external_ids[users]), IdMap(data.item_id_map.external_ids[items]), data.interactions
    )
    assert tr.rank(tr.as_scorer(other, renamed), split()) == tr.rank(tr.as_scorer(model, data), split())


def test_what_is_refused() -> None:
    with pytest.raises(tr.InputError, match=r"keeps no ids; give tr.as_scorer\(model, dataset\) with its Dataset"):
        tr.rank(fitted(MODELS[0]), split())
    unknown = tr.read_interactions({int(split().test.names[0]): [9_999]})
    with pytest.raises(tr.InputError, match="the scorer does not know item 9999"):
        tr.rank(tr.as_scorer(fitted(MODELS[0]), dataset()), test=unknown)


def test_the_example_of_the_documentation() -> None:
    model = fitted(MODELS[0])
    names = {"tr": tr, "model": model, "dataset": dataset(), "split": split()}
    run_block("models.md", "tr.as_scorer(model, dataset)", names)
    assert names["ranks"] == tr.rank(tr.as_scorer(model, dataset()), split())
