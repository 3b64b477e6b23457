"""Models of Cornac: ranks against its own scores, metrics against its own evaluator."""

import copy
from typing import Any

import numpy as np
import pytest
from cornac.data import Dataset
from cornac.eval_methods.base_method import ranking_eval
from cornac.metrics import AUC, MAP, MRR, NDCG, FMeasure, HitRatio, Precision, Recall
from cornac.models import BPR, EASE, MF, MostPop, UserKNN

import truerank as tr
from tests.models.data import check_ranks, events, shuffled, split
from truerank.scoring.conversion import as_scorer

MODELS = [
    MF(k=8, max_iter=20, seed=0, num_threads=1, verbose=False),
    BPR(k=8, max_iter=30, seed=0, num_threads=1, verbose=False),
    EASE(lamb=100, verbose=False),
    MostPop(),
    UserKNN(k=20, verbose=False),
]


METRICS = ["ndcg@10", "recall@10", "precision@10", "hr@10", "f1@10", "auc"]


def datasets() -> tuple[Dataset, Dataset]:
    maps: dict[str, dict[int, int]] = {"global_uid_map": {}, "global_iid_map": {}}
    parts = split().train, split().test
    train, test = (Dataset.build([(*pair, 1.0 + sum(pair) % 5) for pair in events(part)], **maps) for part in parts)
    return train, test


def fitted(model: Any) -> Any:
    return copy.deepcopy(model).fit(datasets()[0])


def own_scores(model: Any, user: int) -> dict[int, float]:
    scores = np.ravel(model.score(model.uid_map[user]))
    return {item: float(scores[number]) for item, number in model.iid_map.items()}


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_ranks(model: Any) -> None:
    trained = fitted(model)
    check_ranks(trained, lambda user: own_scores(trained, user))


def test_metrics_of_its_evaluator() -> None:
    train, test = datasets()
    trained = copy.deepcopy(MODELS[1]).fit(train)
    theirs = [NDCG(k=10), Recall(k=10), Precision(k=10), HitRatio(k=10), FMeasure(k=10), AUC()]
    means, _ = ranking_eval(trained, theirs, train, test)
    ranks = tr.rank(trained, split())
    ours = tr.evaluate(ranks, METRICS, convention="cornac")
    assert [cell.mean for cell in ours.estimates] == pytest.approx(means, abs=1e-9)
    assert ranking_eval(trained, [MRR(), MAP(), NDCG()], train, test)[0] == pytest.approx(
        [tr.estimate(ranks, metric).mean for metric in ("rr", "ap", "ndcg")], abs=1e-9
    )


def test_ties_in_auc_count_nothing() -> None:
    train, test = datasets()
    popularity = MostPop().fit(train)
    ranks = tr.rank(popularity, split())
    assert ranks.tied_share > 0.5
    ours = tr.evaluate(ranks, "auc", convention="cornac")["auc"].mean
    assert ours == pytest.approx(ranking_eval(popularity, [AUC()], train, test)[0][0])
    assert ours < tr.estimate(ranks, "auc").mean


def test_vectors_go_to_the_fast_loop() -> None:
    assert [isinstance(as_scorer(fitted(model)), tr.Factors) for model in MODELS] == [True, True, False, False, False]


def test_another_numbering_gives_the_same_ranks() -> None:
    model = fitted(MODELS[0])
    other, users, items = copy.copy(model), shuffled(model.num_users), shuffled(model.num_items)
    other.u_factors, other.i_factors = model.u_factors[users], model.i_factors[items]
    other.i_biases = model.i_biases[items]
    names = list(model.uid_map), list(model.iid_map)
    other.uid_map = {names[0][old]: new for new, old in enumerate(users)}
    other.iid_map = {names[1][old]: new for new, old in enumerate(items)}
    assert tr.rank(other, split()) == tr.rank(model, split())


def test_what_is_refused() -> None:
    with pytest.raises(tr.InputError, match="MF must be fitted before it can score"):
        tr.rank(MF(), split())
    with pytest.raises(tr.InputError, match="the scorer does not know item 9999"):
        tr.rank(fitted(MODELS[0]), test=tr.read_interactions({split().test.names[0]: [9_999]}))
