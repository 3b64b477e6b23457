"""Pipelines of LensKit: ranks against its own scores, metrics against its own evaluator."""

import copy
from typing import Any

import numpy as np
import pandas as pd
import pytest
from lenskit.als import BiasedMFScorer, ImplicitMFScorer
from lenskit.basic import PopScorer
from lenskit.batch import recommend
from lenskit.data import ItemList, ItemListCollection, Vocabulary, from_interactions_df
from lenskit.knn import ItemKNNScorer
from lenskit.metrics import NDCG, Hit, Recall, RecipRank, RunAnalysis
from lenskit.metrics.reranking import rank_biased_overlap
from lenskit.pipeline import topn_pipeline

import truerank as tr
from tests.models.data import check_ranks, events, shuffled, split
from truerank.scoring.conversion import as_scorer

KINDS = {"ndcg": NDCG, "recall": Recall, "rr": RecipRank, "hr": Hit}
METRICS = [f"{name}@10" for name in KINDS]


def frame(part: tr.Interactions) -> pd.DataFrame:
    return pd.DataFrame(events(part), columns=["user_id", "item_id"]).assign(rating=4.0)


def trained(scorer: Any) -> Any:
    pipeline = topn_pipeline(scorer, n=split().train.n_items)
    pipeline.train(from_interactions_df(frame(split().train)))
    return pipeline


def embeddings(**settings: Any) -> Any:
    return trained(ImplicitMFScorer(embedding_size=8, epochs=3, **settings))


def own_scores(pipeline: Any, user: int) -> dict[int, float]:
    items = split().train.item_names
    scores = pipeline.run("scorer", query=user, items=ItemList(items)).scores()
    lowest = np.nanmin(scores) - 1
    return dict(zip(items.tolist(), np.where(np.isnan(scores), lowest, scores).tolist(), strict=True))


@pytest.mark.parametrize(
    "scorer",
    [ImplicitMFScorer(embedding_size=8, epochs=3), ItemKNNScorer(k=20, feedback="implicit"), PopScorer()],
    ids=lambda scorer: type(scorer).__name__,
)
def test_ranks(scorer: Any) -> None:
    pipeline = trained(scorer)
    check_ranks(pipeline, lambda user: own_scores(pipeline, user))
    assert isinstance(as_scorer(pipeline), tr.FunctionScorer)


def test_trained_embeddings_go_to_the_fast_loop() -> None:
    pipeline = embeddings(user_embeddings="prefer")
    assert isinstance(as_scorer(pipeline), tr.Factors)
    check_ranks(pipeline, lambda user: own_scores(pipeline, user))


def test_users_learned_again_from_their_history_score_otherwise() -> None:
    """Without "prefer" a pipeline does not use the trained vectors of users, so neither may the adapter."""
    again, kept = embeddings(), embeddings(user_embeddings="prefer")
    user = int(split().train.names[0])
    assert own_scores(again, user) != pytest.approx(own_scores(kept, user), rel=1e-3)


def test_metrics_of_its_evaluator() -> None:
    pipeline = embeddings(user_embeddings="prefer")
    truth = ItemListCollection.from_df(frame(split().test)[["user_id", "item_id"]], ["user_id"])
    lists = recommend(pipeline, list(truth.keys()), n=10, n_jobs=1)
    analysis = RunAnalysis()
    for metric in (NDCG(10), Recall(10), RecipRank(10), Hit(10)):
        analysis.add_metric(metric)
    found = analysis.measure(lists, truth).list_metrics(fill_missing=False)
    theirs = found[["NDCG@10", "Recall@10", "RecipRank@10", "Hit@10"]].mean().tolist()
    ours = tr.evaluate(tr.rank(pipeline, split()), METRICS, convention="lenskit")
    assert [cell.mean for cell in ours.estimates] == pytest.approx(theirs)


def test_another_numbering_gives_the_same_ranks() -> None:
    pipeline = embeddings(user_embeddings="prefer")
    component, ranks = pipeline.component("scorer"), tr.rank(pipeline, split())
    users, items = shuffled(len(component.users)), shuffled(len(component.items))
    kept = copy.copy(vars(component))
    component.user_embeddings, component.item_embeddings = (
        kept["user_embeddings"][users],
        kept["item_embeddings"][items],
    )
    component.users, component.items = (
        Vocabulary(kept[name].ids()[order], reorder=False) for name, order in (("users", users), ("items", items))
    )
    assert tr.rank(pipeline, split()) == ranks


def test_biases_are_not_left_out() -> None:
    """The embeddings of the explicit model are only a part of its scores."""
    assert isinstance(
        as_scorer(trained(BiasedMFScorer(embedding_size=8, epochs=1, user_embeddings="prefer"))), tr.FunctionScorer
    )


def test_what_is_refused() -> None:
    with pytest.raises(tr.InputError, match="no trained component 'history-lookup'"):
        tr.rank(topn_pipeline(PopScorer()), split())


def lists() -> tuple[dict[int, list[int]], dict[int, list[int]]]:
    """Return lists of different lengths and relevant items; two users have no list, one has nothing relevant."""
    rng = np.random.default_rng(0)
    run = {user: rng.permutation(60)[: rng.integers(5, 20)].tolist() for user in range(38)}
    truth = {user: rng.permutation(60)[: rng.integers(1, 16)].tolist() for user in range(40)}
    return run, truth | {3: []}


def collection(of_users: dict[int, list[int]]) -> Any:
    ordered = {user: ItemList(np.array(items, np.int64), ordered=True) for user, items in of_users.items()}
    return ItemListCollection.from_dict(ordered, "user_id")


def test_convention_on_lists() -> None:
    run, truth = lists()
    metrics = {f"{name}@{k}": kind(k) for name, kind in KINDS.items() for k in (1, 10, 20)}
    analysis = RunAnalysis()
    for text, metric in metrics.items():
        analysis.add_metric(metric, label=text)
    with np.errstate(invalid="ignore"):  # it divides 0 by 0 where nothing is relevant
        found = analysis.measure(collection(run), collection(truth)).list_summary()["mean"]
    marked = [(user, item, 1) for user, items in truth.items() for item in items] + [(3, 0, 0)]
    judged = pd.DataFrame(marked, columns=["user", "item", "relevance"])
    ranks = tr.read_lists(run, judged, depth=20, convention="lenskit")
    ours = tr.evaluate(ranks, list(metrics), convention="lenskit")
    assert {text: ours[text].mean for text in metrics} == pytest.approx(found.to_dict())


def test_rank_biased_overlap_of_lenskit() -> None:
    """It leaves out what is beyond the end of the lists, and divides by the weights of the rest."""
    rng, p, k = np.random.default_rng(3), 0.85, 8
    for _ in range(5):
        rows = [rng.permutation(12)[:k].tolist() for _ in range(2)]
        theirs = rank_biased_overlap(*(ItemList(item_ids=row, ordered=True) for row in rows), n=k)
        lists = {name: tr.read_recommendations({"u": row}) for name, row in zip("ab", rows, strict=True)}
        found = tr.evaluate(lists, f"rbo({p})@{k}")["b", f"rbo({p})@{k}"].mean
        beyond = len({*rows[0]} & {*rows[1]}) / k
        assert found == pytest.approx((1 - p**k) * theirs + p**k * beyond, abs=1e-12)
