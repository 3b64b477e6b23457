"""Models of RecBole 1.2.1: ranks against its own scores, metrics against its own evaluator.

It is installed without its dependencies, since it wants an old version of ray, and it uses names that NumPy 2 has
removed, which are put back for these tests.
"""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from recbole.config import Config
from recbole.data import create_dataset, data_preparation
from recbole.data.interaction import Interaction
from recbole.model.general_recommender import BPR
from recbole.model.sequential_recommender import GRU4Rec
from recbole.trainer import Trainer
from recbole.utils import init_seed

import truerank as tr
from tests.models.data import check_ranks, events, shuffled, split
from tests.pages import run_block

pytestmark = pytest.mark.filterwarnings("ignore")  # of its use of pandas and PyTorch

RANDOM = {"split": {"RS": [0.7, 0.1, 0.2]}, "order": "RO", "group_by": "user", "mode": "full"}
LAST = {"split": {"LS": "valid_and_test"}, "order": "TO", "group_by": "user", "mode": "full"}
NEGATIVES = {"distribution": "uniform", "sample_num": 1, "alpha": 1.0, "dynamic": False, "candidate_num": 0}


SMALL = {"embedding_size": 8, "hidden_size": 8, "num_layers": 1, "MAX_ITEM_LIST_LENGTH": 5, "learning_rate": 0.02}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, surroundings: None) -> Path:
    """Return a folder with an .inter file."""
    torch.set_num_threads(1)
    path = tmp_path_factory.mktemp("recbole")
    (path / "ml").mkdir()
    pairs = pd.DataFrame(events(split().train), columns=["user_id:token", "item_id:token"])
    pairs.assign(**{"timestamp:float": range(len(pairs))}).to_csv(path / "ml" / "ml.inter", sep="\t", index=False)
    return path


class Study:
    """A trained model, its data loaders, what its evaluator reports, and the same split for us."""

    def __init__(self, kind: Any, folder: Path, settings: dict[str, Any], metrics: list[str]) -> None:
        given = {
            "data_path": str(folder), "checkpoint_dir": str(folder / "saved"), "epochs": 3, "eval_args": settings,
            "metrics": metrics, "topk": [10], "metric_decimal_place": 12, "state": "ERROR", "use_gpu": False,
            "show_progress": False, "load_col": {"inter": ["user_id", "item_id", "timestamp"]},
            "train_neg_sample_args": None if settings is LAST else NEGATIVES, **SMALL,
        }  # fmt: skip
        config = Config(model=kind.__name__, dataset="ml", config_dict=given)
        init_seed(0, True)
        train, valid, self.test = data_preparation(config, create_dataset(config))
        self.model = kind(config, train.dataset)
        trainer = self.trainer = Trainer(config, self.model)
        trainer.fit(train, valid, saved=False, show_progress=False)
        self.reported = trainer.evaluate(self.test, load_best_model=False)
        self.model.eval()
        seen = [] if settings is LAST else [*pairs(train), *pairs(valid)]
        self.split = tr.read_split(as_frame(seen or pairs(train)), as_frame(pairs(self.test)))


def pairs(loader: Any) -> list[tuple[int, int]]:
    """Return users and items by the names that they have in the file."""
    data = loader.dataset
    names = (data.id2token(field, data.inter_feat[field].numpy()) for field in (data.uid_field, data.iid_field))
    return [(int(user), int(item)) for user, item in zip(*names, strict=True)]


def as_frame(rows: list[tuple[int, int]]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["user", "item"])


@pytest.fixture(scope="module")
def general(folder: Path) -> Study:
    return Study(BPR, folder, RANDOM, ["Recall", "NDCG", "MRR", "Hit", "Precision", "MAP", "GAUC"])


@pytest.fixture(scope="module")
def sequential(folder: Path) -> Study:
    return Study(GRU4Rec, folder, LAST, ["Recall", "NDCG", "MRR", "Hit"])


def test_ranks(general: Study) -> None:
    data = general.test.dataset

    def own_scores(user: int) -> dict[int, float]:
        number = data.token2id(data.uid_field, [str(user)])
        scores = general.model.full_sort_predict(Interaction({data.uid_field: np.asarray(number)})).detach().numpy()
        return {int(item): scores[at] for at, item in enumerate(data.field2id_token[data.iid_field]) if at}

    check_ranks(tr.as_scorer(general.model, general.test), own_scores, general.split)


def test_the_example_of_the_documentation(general: Study, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    pytest.importorskip("ray.tune")  # which RecBole imports together with the function
    from recbole.quick_start import load_data_and_model

    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TORCH_FORCE_NO_WEIGHTS_ONLY_LOAD", "1")  # as the page says
    (tmp_path / "saved").mkdir()
    general.trainer.saved_model_file = "saved/BPR.pth"
    general.trainer._save_checkpoint(0, verbose=False)
    names = {"tr": tr, "split": general.split, "load_data_and_model": load_data_and_model}
    run_block("models.md", "load_data_and_model", names)
    assert names["ranks"] == tr.rank(tr.as_scorer(general.model, general.test), general.split)


def test_metrics_of_its_evaluator(general: Study) -> None:
    ranks = tr.rank(tr.as_scorer(general.model, general.test), general.split)
    metrics = ["recall@10", "ndcg@10", "rr@10", "hr@10", "precision@10", "ap@10", "auc"]
    ours = tr.evaluate(ranks, metrics, convention="recbole")
    assert [cell.mean for cell in ours.estimates] == pytest.approx(list(general.reported.values()), abs=1e-9)
    assert abs(ours["auc"].mean - tr.estimate(ranks, "auc").mean) > 1e-4, "GAUC is weighted by relevant items"


def test_sequential_models_rank_the_rows_of_the_test_set(sequential: Study) -> None:
    """RecBole does not leave out the history of a sequential model's users."""
    ranks = tr.rank(tr.as_scorer(sequential.model, sequential.test), sequential.split, keep_train=True)
    ours = tr.evaluate(ranks, ["recall@10", "ndcg@10", "rr@10", "hr@10"], convention="recbole")
    assert [cell.mean for cell in ours.estimates] == pytest.approx(list(sequential.reported.values()), abs=1e-9)


def test_another_numbering_gives_the_same_ranks(general: Study) -> None:
    model, data = copy.deepcopy(general.model), copy.copy(general.test.dataset)
    data.field2id_token = dict(data.field2id_token)
    for field, layer in ((data.uid_field, model.user_embedding), (data.iid_field, model.item_embedding)):
        order = np.append(0, 1 + shuffled(len(layer.weight) - 1))  # the padding stays
        layer.weight.data = layer.weight.data[order]
        data.field2id_token[field] = data.field2id_token[field][order]
    expected = tr.rank(tr.as_scorer(general.model, general.test), general.split)
    assert tr.rank(tr.as_scorer(model, data), general.split).rank.tolist() == expected.rank.tolist()


def test_what_is_refused(general: Study, sequential: Study) -> None:
    with pytest.raises(tr.InputError, match=r"BPR keeps no ids; give tr.as_scorer\(model, test_data\) of RecBole"):
        tr.rank(general.model, general.split)
    with pytest.raises(tr.InputError, match="each user must have one row in the test set of a sequential model"):
        tr.as_scorer(sequential.model, general.test)
