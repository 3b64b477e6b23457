"""`truerank.torch.RankMetric` with torchmetrics and without it, in one process, in two, and in a loop of Lightning."""

import copy
import importlib.util
import json
import math
import os
import pickle
import sys
import warnings
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch import distributed, multiprocessing, nn

import truerank as tr
from tests.models.data import split

METRICS = ["ndcg@10", "recall@3", "ap", "auc", "mean-rank"]
ROWS, ITEMS = 40, 30


def module(without: str | None = None) -> ModuleType:
    """Return `truerank.torch`, loaded as if a library were missing."""
    if without is None:
        return tr.torch
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(sys.modules, without, None)
        spec = importlib.util.spec_from_file_location("plain_torch", tr.torch.__file__)
        assert spec is not None
        assert spec.loader is not None
        loaded = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(loaded)
        return loaded


@pytest.fixture(params=[None, "torchmetrics"], ids=["torchmetrics", "plain"])
def kind(request: pytest.FixtureRequest) -> Any:
    return module(request.param).RankMetric


def batches(size: int) -> list[tuple[torch.Tensor, torch.Tensor, torch.Tensor]]:
    """Return scores with many ties, the relevant items and those left out, as masks; some rows have none."""
    rng = np.random.default_rng(3)
    scores = torch.as_tensor(rng.integers(0, 9, (ROWS, ITEMS)) / 4, dtype=torch.float32)
    relevant, exclude = (torch.as_tensor(rng.random((ROWS, ITEMS)) < 0.1) for _ in range(2))
    return [tuple(each[at : at + size] for each in (scores, relevant, exclude)) for at in range(0, ROWS, size)]


def expected(metrics: list[str] = METRICS) -> dict[str, float]:
    """Return the means of `evaluate` for the ranks of `rank`."""
    ((scores, relevant, exclude),) = batches(ROWS)
    lists = [[np.flatnonzero(row) for row in mask.numpy()] for mask in (exclude, relevant)]
    ranks = tr.rank(scores.numpy(), train=lists[0], test=lists[1])
    assert ranks.tied_share > 0.5
    return {name: tr.estimate(ranks, name).mean for name in metrics}


def computed(metric: Any) -> dict[str, float]:
    return {name: float(mean) for name, mean in metric.compute().items()}


def test_means_are_those_of_evaluate(kind: Any) -> None:
    found = []
    for size in (1, 7, ROWS):
        metric = kind(METRICS)
        for scores, relevant, exclude in batches(size):
            metric.update(scores, relevant, exclude=exclude)
        found.append(computed(metric))
    assert found[0] == found[1] == found[2]
    assert found[0] == pytest.approx(expected(), rel=1e-15)


def test_forward_returns_the_means_of_the_batch(kind: Any) -> None:
    metric, alone = kind(METRICS), []
    for scores, relevant, exclude in batches(20):
        batch = kind(METRICS)
        batch.update(scores, relevant, exclude=exclude)
        alone.append(metric(scores, relevant, exclude=exclude) == batch.compute())
    assert alone == [True, True]
    assert computed(metric) == pytest.approx(expected(), rel=1e-15)


def test_reset_device_and_copies(kind: Any) -> None:
    metric = kind("recall@3")
    ((scores, relevant, exclude),) = batches(ROWS)
    metric.update(scores, relevant, exclude=exclude)
    other = copy.deepcopy(metric)
    metric.reset()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # torchmetrics warns if there was no update
        assert math.isnan(computed(metric)["recall@3"])
    assert computed(other) == pytest.approx(expected(["recall@3"]), rel=1e-15)
    assert other.to("meta").device.type == "meta"


def test_pickles() -> None:
    metric = tr.torch.RankMetric("recall@3")
    metric.update(*batches(ROWS)[0][:2])
    assert computed(pickle.loads(pickle.dumps(metric))) == computed(metric)


def test_positive_and_negative_scores(kind: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    positive, negative = torch.rand(30, generator=generator), torch.rand(30, 20, generator=generator)
    metric = kind(["auc", "recall@10~bv(0.1)"])
    for at in range(0, 30, 7):
        metric.update(tr.Ranks.from_scores(positive[at : at + 7], negative[at : at + 7], n=1_000))
    table = tr.evaluate(tr.Ranks.from_scores(positive, negative, n=1_000), ["auc", "recall@10~bv(0.1)"])
    assert computed(metric) == pytest.approx({name: table[name].mean for name in table.metrics}, rel=1e-13)


def test_rows_without_a_value_are_left_out(kind: Any) -> None:
    """Every candidate of the second row is relevant, so that it has no AUC."""
    metric = kind(["auc", "recall@1"])
    metric.update(torch.tensor([[0.1, 0.2], [0.3, 0.4]]), [[0], [0, 1]])
    assert computed(metric) == {"auc": 0.0, "recall@1": 0.25}


def test_refusals() -> None:
    metric, ranks = tr.torch.RankMetric("ap"), tr.Ranks.from_ranks([300], n=5_000)
    for wrong, message in (
        (lambda: tr.torch.RankMetric([]), "RankMetric needs at least one metric"),
        (lambda: tr.torch.RankMetric("ndgc@10"), "did you mean 'ndcg@10'"),
        (lambda: metric.update(torch.ones(2, 3)), "give the `relevant` items of each row"),
        (lambda: metric.update(ranks, [[1]]), "give either Ranks, or scores with `relevant`"),
        (lambda: metric.update(torch.tensor([[torch.nan, 1.0]]), [[0]]), "scores must be finite"),
        (
            lambda: metric.update(tr.InverseSampling(2, most=3).draw(ranks, rng=0)),
            "ap~monotone looks at all instances together",
        ),
    ):
        with pytest.raises(tr.InputError, match=message):
            wrong()


def work(rank: int, folder: str, without: str | None) -> None:
    """Count the batches of one of two processes, which have different numbers of them."""
    os.environ["GLOO_SOCKET_IFNAME"] = "lo"
    distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=2)
    metric = module(without).RankMetric(METRICS)
    for scores, relevant, exclude in batches(7)[:4] if rank == 0 else batches(7)[4:]:
        metric.update(scores, relevant, exclude=exclude)
    found = computed(metric)
    own = metric.sums.tolist()
    Path(folder, f"{rank}.json").write_text(json.dumps([found, own, computed(metric)]))
    distributed.destroy_process_group()


@pytest.mark.parametrize("without", [None, "torchmetrics"])
def test_two_processes(without: str | None, tmp_path: Path) -> None:
    """Both get the means of all batches, to the last bit, and keep their own sums."""
    multiprocessing.spawn(work, (str(tmp_path), without), nprocs=2)
    one = tr.torch.RankMetric(METRICS)
    ((scores, relevant, exclude),) = batches(ROWS)
    one.update(scores, relevant, exclude=exclude)
    first, second = (json.loads((tmp_path / f"{rank}.json").read_text()) for rank in (0, 1))
    assert first[0] == second[0] == first[2] == second[2] == computed(one)
    assert (np.array(first[1]) + np.array(second[1])).tolist() == one.sums.tolist()


class Towers(nn.Module):  # type: ignore[misc]
    def __init__(self, n_users: int, n_items: int) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(n_users, 8), nn.Embedding(n_items, 8)

    def forward(self, users: torch.Tensor) -> torch.Tensor:
        return self.users(users) @ self.items.weight.T


@pytest.mark.filterwarnings("ignore")
def test_lightning(tmp_path: Path) -> None:
    """Two epochs of training; the last validation has the metrics of `rank`."""
    pytest.importorskip("lightning", reason="install the extra 'models'")
    import lightning

    data = split()
    known = [torch.as_tensor(data.train.of_user(user)).long() for user in range(data.train.n_users)]
    held = np.flatnonzero(np.diff(data.test.indptr))

    class Loop(lightning.LightningModule):  # type: ignore[misc]
        def __init__(self) -> None:
            super().__init__()
            torch.manual_seed(0)
            self.model, self.ranking = Towers(*data.train.shape), tr.torch.RankMetric(["ndcg@10", "recall@10"])

        def training_step(self, users: torch.Tensor, _: int) -> torch.Tensor:
            targets = torch.stack([known[user][0] for user in users.tolist()])
            return nn.functional.cross_entropy(self.model(users), targets)

        def validation_step(self, users: torch.Tensor, _: int) -> None:
            lists = [[part.of_user(user) for user in users.tolist()] for part in (data.test, data.train)]
            self.ranking.update(self.model(users), lists[0], exclude=lists[1])

        def on_validation_epoch_end(self) -> None:
            self.log_dict(self.ranking.compute())
            self.ranking.reset()

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return torch.optim.Adam(self.parameters(), lr=0.05)

    quiet = {"logger": False, "enable_checkpointing": False, "enable_progress_bar": False}
    trainer = lightning.Trainer(
        max_epochs=2, accelerator="cpu", enable_model_summary=False, default_root_dir=tmp_path, **quiet
    )
    loop = Loop()
    users = torch.arange(data.train.n_users), torch.as_tensor(held)
    trainer.fit(loop, *(torch.utils.data.DataLoader(each, batch_size=16) for each in users))
    ranks = tr.rank(loop.model.eval(), data)
    logged = {name: float(value) for name, value in trainer.callback_metrics.items()}
    assert logged == pytest.approx({name: tr.estimate(ranks, name).mean for name in logged}, rel=1e-6)
    assert set(logged) == {"ndcg@10", "recall@10"}
