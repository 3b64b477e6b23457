"""`convention=` gives what implicit, RecBole and Cornac print, on random scores.

The data have ties, a user with few candidates and one without relevant items, and go through each tool's own evaluator.
Where it orders equal scores arbitrarily, its number must lie between our bounds for ties, and equal ours if we are
given the lists in its order.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
import torch
from cornac.data import Dataset
from cornac.eval_methods.base_method import ranking_eval
from cornac.metrics import AUC, MRR, NDCG, FMeasure, HitRatio, Precision, Recall
from cornac.models import Recommender
from implicit.als import AlternatingLeastSquares
from implicit.evaluation import ranking_metrics_at_k
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.model.abstract_recommender import GeneralRecommender
from recbole.trainer import Trainer

import truerank as tr
from tests.arrays import AnyArray, Bools
from truerank.core.conventions import CONVENTIONS, Definition
from truerank.evaluation.per_instance import Ties

pytestmark = pytest.mark.filterwarnings("ignore")  # of RecBole's use of pandas and PyTorch

N_USERS, N_ITEMS = 40, 36
BOUNDS: tuple[Ties, Ties] = ("pessimistic", "optimistic")
WITHOUT_RELEVANT, FEW_CANDIDATES = 3, 5
CUTOFFS = [1, 5, 20, None]
Lists = dict[int, list[int]]
SINGLE = 1e-7  # RecBole's GAUC is computed in single precision


class Study(NamedTuple):
    """Scores of all items for all users, and which of them are in the training and in the test set."""

    scores: AnyArray
    train: Bools
    test: Bools

    def ranks(self) -> tr.Ranks:
        train, test = (sp.csr_array(part.astype(np.float32)) for part in (self.train, self.test))
        return tr.rank(tr.ScoreMatrix(self.scores), train=train, test=test)

    def truth(self) -> dict[int, dict[int, int]]:
        """Return the grade of all items for all users, so that a user may have only irrelevant ones."""
        return {user: dict(enumerate(row)) for user, row in enumerate(self.test.astype(int).tolist())}


def study(*, ties: bool, few: bool) -> Study:
    """Return random data; one user has nothing in the test set and, if `few` is set, another one only 8 candidates."""
    rng = np.random.default_rng(0)
    scores = rng.random((N_USERS, N_ITEMS)).argsort(axis=1).astype(np.float32)
    part = rng.choice(["train", "test", "neither"], size=scores.shape, p=[0.2, 0.3, 0.5])
    part[WITHOUT_RELEVANT] = np.where(part[WITHOUT_RELEVANT] == "test", "neither", part[WITHOUT_RELEVANT])
    if few:
        part[FEW_CANDIDATES] = ["test"] * 3 + ["neither"] * 5 + ["train"] * (N_ITEMS - 8)
    return Study(scores // 5 if ties else scores, part == "train", part == "test")


def by_implicit(given: Study, k: int | None, folder: Path) -> tuple[dict[str, float], Lists]:
    assert k is not None
    model = AlternatingLeastSquares(factors=N_USERS, num_threads=1)
    model.user_factors, model.item_factors = np.eye(N_USERS, dtype=np.float32), given.scores.T.copy()
    train, test = (sp.csr_matrix(part.astype(np.float32)) for part in (given.train, given.test))
    users = np.arange(N_USERS)
    lists = model.recommend(users, train, N=k)[0].tolist()
    values = ranking_metrics_at_k(model, train, test, K=k, show_progress=False, num_threads=1)
    return values, dict(zip(users.tolist(), lists, strict=True))


class Table(GeneralRecommender):  # type: ignore[misc]
    """A model of RecBole whose scores are given, in its numbering."""

    def __init__(self, config: Any, dataset: Any, scores: AnyArray) -> None:
        super().__init__(config, dataset)
        users, items = (
            [int(name) for name in dataset.field2id_token[field][1:]] for field in (self.USER_ID, self.ITEM_ID)
        )
        table = torch.zeros(len(users) + 1, len(items) + 1)
        table[1:, 1:] = torch.from_numpy(scores[np.ix_(users, items)])
        self.weight = torch.nn.Parameter(table)

    def full_sort_predict(self, interaction: Any) -> torch.Tensor:
        return self.weight[interaction[self.USER_ID]].detach().clone()


def by_recbole(given: Study, k: int | None, folder: Path) -> tuple[dict[str, float], Lists]:
    names = ["Recall", "NDCG", "MRR", "Hit", "Precision", "MAP"] if k else ["GAUC"]
    config = Config(
        model="BPR",
        dataset="given",
        config_dict={
            "data_path": str(folder), "benchmark_filename": ["train", "valid", "test"], "metrics": names,
            "valid_metric": f"NDCG@{k}" if k else "GAUC", "topk": [k or 1], "metric_decimal_place": 12,
            "state": "ERROR", "use_gpu": False, "eval_args": {"mode": "full", "order": "RO", "group_by": "user"},
            "checkpoint_dir": str(folder), "load_col": {"inter": ["user_id", "item_id"]},
        },
    )  # fmt: skip
    parts = {"train": given.train, "valid": np.zeros_like(given.train), "test": given.test}
    (folder / "given").mkdir()
    for name, part in parts.items():
        rows = pd.DataFrame(np.argwhere(part), columns=["user_id:token", "item_id:token"])
        rows.to_csv(folder / "given" / f"given.{name}.inter", sep="\t", index=False)
    train, _, test = data_preparation(config, create_dataset(config))
    trainer = Trainer(config, Table(config, train.dataset, given.scores))
    found = trainer.evaluate(test, load_best_model=False)
    items = [int(name) for name in train.dataset.field2id_token["item_id"][1:]]
    scores = np.where(given.train, -np.inf, given.scores)[:, items]
    padded = torch.from_numpy(np.pad(scores, ((0, 0), (1, 0)), constant_values=-np.inf))
    best = torch.topk(padded, k or 1).indices.numpy() - 1
    lists = {user: [items[place] for place in best[user] if scores[user, place] > -np.inf] for user in given.truth()}
    return {name.partition("@")[0]: value for name, value in found.items()}, lists


class Given(Recommender):  # type: ignore[misc]
    """A model of Cornac whose scores are given."""

    def __init__(self, scores: AnyArray) -> None:
        super().__init__(name="given", trainable=False)
        self.scores = scores

    def score(self, user_idx: int, item_idx: Any = None) -> AnyArray:
        return self.scores[user_idx]


def cornac_metrics(k: int | None) -> list[Any]:
    if k is None:
        return [MRR(), NDCG(), AUC()]
    return [kind(k=k) for kind in (Precision, Recall, HitRatio, FMeasure, NDCG)]


def by_cornac(given: Study, k: int | None, folder: Path) -> tuple[dict[str, float], Lists]:
    numbers = {number: number for number in range(N_ITEMS)}, {number: number for number in range(N_USERS)}
    maps = {"global_iid_map": dict(numbers[0]), "global_uid_map": dict(numbers[1])}
    candidate = int(np.argmin(given.train[WITHOUT_RELEVANT]))
    disliked = [(WITHOUT_RELEVANT, candidate, 0.5)]  # below the rating from which an item is relevant
    rows = [[(*pair, 1.0) for pair in np.argwhere(part).tolist()] for part in (given.train, given.test)]
    train, test = Dataset.build(rows[0], **maps), Dataset.build(rows[1] + disliked, **maps)
    model = Given(given.scores).fit(train)
    metrics = cornac_metrics(k)
    candidates = {user: np.flatnonzero(~given.train[user]) for user in given.truth()}
    lists = {user: model.rank(user, items, k=k or -1)[0][:k].tolist() for user, items in candidates.items()}
    values = ranking_eval(model, metrics, train, test)[0]
    return {type(metric).__name__: value for metric, value in zip(metrics, values, strict=True)}, lists


TOOLS: dict[str, Callable[[Study, int | None, Path], tuple[dict[str, float], Lists]]] = {
    "implicit": by_implicit,
    "recbole": by_recbole,
    "cornac": by_cornac,
}
CASES = [pytest.param(tool, k, id=f"{tool}-{k}") for tool in TOOLS for k in CUTOFFS if (tool, k) != ("implicit", None)]


def asked(tool: str, k: int | None, *, ruled: bool | None = None) -> dict[str, Definition]:
    """Return the metrics with this cut-off, or without any; only those with a rule for ties, or only the others."""
    texts = (text.replace("@k", f"@{k}") for text in CONVENTIONS[tool].metrics if ("@k" in text) == (k is not None))
    found = {text: CONVENTIONS[tool].definition(text) for text in texts}
    return {text: one for text, one in found.items() if ruled is None or (one.ties is not None) == ruled}


def ours(ranks: tr.Ranks, tool: str, metrics: dict[str, Definition], ties: Ties = "expected") -> dict[str, float]:
    table = tr.evaluate(ranks, list(metrics), convention=tool, ties=ties)
    return {one.theirs.lower(): table[text].mean for text, one in metrics.items()}


def theirs(values: dict[str, float], metrics: dict[str, Definition]) -> dict[str, float]:
    found = {name.lower(): value for name, value in values.items()}
    return {one.theirs.lower(): found[one.theirs.lower()] for one in metrics.values()}


def copes(tool: str, k: int | None) -> bool:
    """Whether a tool takes users with fewer candidates than k."""
    return tool != "cornac" or k != 20


@pytest.mark.parametrize(("tool", "k"), CASES)
def test_without_ties(tool: str, k: int | None, tmp_path: Path, surroundings: None) -> None:
    given, metrics = study(ties=False, few=copes(tool, k)), asked(tool, k)
    values, _ = TOOLS[tool](given, k, tmp_path)
    assert ours(given.ranks(), tool, metrics) == pytest.approx(theirs(values, metrics), abs=SINGLE)


@pytest.mark.parametrize("tool", ["recbole", "cornac"])
def test_ties_for_which_there_is_a_rule(tool: str, tmp_path: Path, surroundings: None) -> None:
    given, metrics = study(ties=True, few=True), asked(tool, None, ruled=True)
    values, _ = TOOLS[tool](given, None, tmp_path)
    assert list(metrics) == ["auc"]
    assert ours(given.ranks(), tool, metrics) == pytest.approx(theirs(values, metrics), abs=SINGLE)


@pytest.mark.parametrize(("tool", "k"), [case for case in CASES if case.id != "recbole-None"])
def test_ties_in_arbitrary_order(tool: str, k: int | None, tmp_path: Path, surroundings: None) -> None:
    given, metrics = study(ties=True, few=copes(tool, k)), asked(tool, k, ruled=False)
    values, lists = TOOLS[tool](given, k, tmp_path)
    expected, ranks = theirs(values, metrics), given.ranks()
    listed = tr.read_lists(lists, given.truth(), depth="all" if k is None else k)
    assert ours(listed, tool, metrics) == pytest.approx(expected, abs=SINGLE)
    low, high = (ours(ranks, tool, metrics, ties=how) for how in BOUNDS)
    assert all(low[name] <= value <= high[name] for name, value in expected.items())
    assert all(low[name] < high[name] for name in {"ndcg", "mrr", "map"} & set(expected))


def test_cornac_needs_k_candidates(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="kth"):
        by_cornac(study(ties=False, few=True), 20, tmp_path)
