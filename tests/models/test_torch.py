"""PyTorch modules, embedding layers and functions of tensors."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import truerank as tr
from tests.arrays import Ints
from tests.models.data import check_ranks, shuffled, split
from truerank.kernels import tensors as counting
from truerank.scoring.conversion import as_scorer


class Product(nn.Module):  # type: ignore[misc]
    """Scores of all items for a batch of users."""

    def __init__(self, n_users: int, n_items: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.users, self.items = nn.Embedding(n_users, 8), nn.Embedding(n_items, 8)
        self.dropout = nn.Dropout(0.5)

    def forward(self, users: torch.Tensor) -> torch.Tensor:
        return self.dropout(self.users(users)) @ self.items.weight.T


class Pairs(Product):
    """Scores of user-item pairs."""

    def forward(self, users: torch.Tensor, items: torch.Tensor) -> torch.Tensor:  # type: ignore[override]
        return (self.dropout(self.users(users)) * self.items(items)).sum(-1)


def module(kind: type[Product]) -> Product:
    return kind(*split().train.shape).eval()


def own_scores(model: Product, user: int) -> dict[int, float]:
    train = split().train
    row = int(np.flatnonzero(train.names == user)[0])
    scores = model.users.weight[row] @ model.items.weight.T
    return dict(zip(train.item_names.tolist(), scores.tolist(), strict=True))


@pytest.mark.parametrize("kind", [Product, Pairs])
def test_modules(kind: type[Product]) -> None:
    model = module(kind)
    check_ranks(model, lambda user: own_scores(model, user))


def test_embedding_layers_go_to_the_fast_loop() -> None:
    model = module(Product)
    check_ranks(tr.Factors(model.users, model.items), lambda user: own_scores(model, user))
    with pytest.raises(tr.InputError, match=r"give tr.Factors\(user_embedding, item_embedding\)"):
        tr.rank(model.users, split())


def test_functions_and_half_precision() -> None:
    model = module(Product)
    half = tr.Factors(model.users.weight.bfloat16(), model.items.weight.bfloat16())
    assert half.user_factors.dtype == np.float32
    ranks = tr.rank(lambda users: model(torch.as_tensor(users)), split())
    assert ranks == tr.rank(model, split())


def test_batch_size() -> None:
    model, sizes = module(Product), []

    def score(users: Ints) -> Any:
        sizes.append(len(users))
        return model(torch.as_tensor(users))

    ranks = tr.rank(tr.FunctionScorer(score, batch_size=7), split())
    assert ranks == tr.rank(model, split())
    assert max(sizes) == 7


def test_functions_run_in_the_callers_thread() -> None:
    """So what was set there holds, and modes in which PyTorch may block if several threads call it do no harm."""
    model, tracked = module(Product), []

    def score(users: Ints) -> Any:
        scores = model(torch.as_tensor(users))
        tracked.append(scores.requires_grad)
        return scores

    scorer = tr.FunctionScorer(score, batch_size=7)
    with torch.autograd.set_detect_anomaly(True):
        ranks = tr.rank(scorer, split(), threads=4)
    assert all(tracked)
    tracked.clear()
    with torch.no_grad():
        assert tr.rank(scorer, split(), threads=4) == ranks == tr.rank(model, split())
    assert not any(tracked)


def test_another_numbering_gives_the_same_ranks() -> None:
    model, train = module(Product), split().train
    users, items = shuffled(train.n_users), shuffled(train.n_items)
    other = module(Product)
    with torch.no_grad():
        other.users.weight.copy_(model.users.weight[users])
        other.items.weight.copy_(model.items.weight[items])
    named = tr.as_scorer(other, user_ids=train.names[users], item_ids=train.item_names[items])
    assert tr.rank(named, split()).rank.tolist() == tr.rank(tr.as_scorer(model), split()).rank.tolist()


def test_training_mode_is_refused() -> None:
    with pytest.raises(tr.InputError, match="Product is in training mode, in which dropout is random"):
        tr.rank(module(Product).train(), split())


def test_tensors_are_score_matrices() -> None:
    scores = module(Product)(torch.arange(split().train.n_users))
    assert isinstance(as_scorer(scores), tr.ScoreMatrix)


def batches(size: int, dtype: torch.dtype) -> tuple[tr.Ranks, tr.Ranks]:
    """Return ranks counted from tensors in batches, and those of `rank`, with many ties."""
    rng = np.random.default_rng(3)
    scores = rng.integers(0, 9, (40, 30)) / 4
    relevant, exclude = rng.random((2, *scores.shape)) < 0.1
    counter = tr.RankCounter()
    for first in range(0, len(scores), size):
        rows = slice(first, first + size)
        marks = torch.as_tensor(relevant[rows]), torch.as_tensor(exclude[rows])
        counter.update(torch.as_tensor(scores[rows], dtype=dtype), marks[0], exclude=marks[1], ids=np.arange(40)[rows])
    listed = [[np.flatnonzero(row) for row in mask] for mask in (exclude, relevant)]
    return counter.ranks(), tr.rank(scores, train=listed[0], test=listed[1])


@pytest.fixture(params=["cpu", "another device"])
def device(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no second device here, so tensors are counted as they are on one, some rows at a time."""
    if request.param != "cpu":
        monkeypatch.setattr(counting, "is_on_a_device", torch.is_tensor)
        monkeypatch.setattr(counting, "_COMPARED", 100)


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32, torch.float64])
@pytest.mark.parametrize("size", [1, 7, 40])
def test_counter(size: int, dtype: torch.dtype) -> None:
    ours, expected = batches(size, dtype)
    assert expected.tied_share > 0.5
    assert ours == expected


@pytest.mark.usefixtures("device")
def test_counter_takes_item_numbers_and_lists() -> None:
    scores = module(Product)(torch.arange(5))
    held = torch.tensor([3, 1, 4, 1, 5])
    by_tensor, by_list, by_array = tr.RankCounter(), tr.RankCounter(), tr.RankCounter()
    by_tensor.update(scores, held)
    by_list.update(scores, [[int(item)] for item in held])
    by_array.update(scores.detach().numpy(), held.numpy())
    assert by_tensor.ranks() == by_list.ranks() == by_array.ranks()


@pytest.mark.usefixtures("device")
@pytest.mark.parametrize("depth", [None, 10])
@pytest.mark.parametrize("graded", [False, True])
def test_factors_are_counted_on_their_device(graded: bool, depth: int | None) -> None:
    """Small whole numbers, whose products are exact on every device, so that many scores tie."""
    data, generator = split(), torch.Generator().manual_seed(0)
    if graded:
        matrix = data.test.matrix.copy()
        matrix.data = np.random.default_rng(0).integers(1, 4, matrix.nnz).astype(np.float32)
        data = tr.Split(data.train, tr.Interactions(matrix, data.test.user_ids, data.test.item_ids))
    sizes = {"n_users": data.train.n_users, "n_items": data.train.n_items}
    users, items = (torch.randint(-3, 4, (size, 8), generator=generator).float() for size in sizes.values())
    bias = torch.randint(0, 3, (sizes["n_items"],), generator=generator)
    expected = tr.rank(tr.Factors(users.numpy(), items.numpy(), bias.numpy()), data, depth=depth)
    assert expected.tied_share > 0.1
    found = tr.rank(tr.Factors(users, items, bias), data, depth=depth)
    assert found == expected
    names = {"user_ids": data.train.names[::-1], "item_ids": data.train.item_names[::-1]}
    reversed_ = tr.Factors(nn.Embedding.from_pretrained(users.flip(0)), items.flip(0), bias.flip(0), **names)
    assert (reversed_.tensors is None) == (counting.is_on_a_device(users) is False)
    assert tr.rank(reversed_, data, depth=depth) == expected


def test_factors_of_half_precision_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are widened, so that sums are in single precision; those of a trained model differ in rounding alone."""
    monkeypatch.setattr(counting, "is_on_a_device", torch.is_tensor)
    model = module(Product)
    half = tr.Factors(model.users.weight.bfloat16(), model.items.weight.bfloat16())
    assert half.tensors is not None
    assert half.tensors.scores(np.array([0])).dtype == torch.float32
    check_ranks(tr.Factors(model.users, model.items), lambda user: own_scores(model, user))
    with torch.no_grad():
        model.items.weight[3] = torch.nan
    with pytest.raises(tr.InputError, match="scores must be finite"):
        tr.rank(tr.Factors(model.users, model.items), split())


def test_only_the_counts_leave_the_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """There is no second device here, so what is copied to the CPU is observed instead."""
    counter, moved = tr.RankCounter(), []
    to_cpu = torch.Tensor.cpu

    def observed(tensor: Any) -> Any:
        moved.append(tensor.shape)
        return to_cpu(tensor)

    monkeypatch.setattr(torch.Tensor, "cpu", observed)
    monkeypatch.setattr(counting, "is_on_a_device", torch.is_tensor)
    counter.update(torch.rand(50, 1_000), torch.arange(50))
    assert not moved
    counter.ranks()
    assert max(shape.numel() for shape in moved) == 50


def test_counter_refuses_scores_that_are_not_finite() -> None:
    with pytest.raises(tr.InputError, match="scores must be finite, got nan for user 0 and item 1"):
        tr.RankCounter().update(torch.tensor([[0.0, torch.nan, 1.0]]), torch.tensor([0]))


def test_counter_refuses_scores_that_are_not_finite_on_a_device(monkeypatch: pytest.MonkeyPatch) -> None:
    """It does not wait for the device in a training loop, so that the refusal comes with the ranks."""
    monkeypatch.setattr(counting, "is_on_a_device", torch.is_tensor)
    counter = tr.RankCounter()
    counter.update(torch.tensor([[0.0, torch.nan, 1.0]]), torch.tensor([0]))
    with pytest.raises(tr.InputError, match="scores must be finite, got NaN or an infinity"):
        counter.ranks()
