"""PyTorch modules, embedding layers and functions of tensors."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import nn

import truerank as tr
from tests.models.data import check_ranks, shuffled, split
from truerank.arrays import Ints
from truerank.scoring.conversion import as_scorer


class Product(nn.Module):
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


def test_another_numbering_gives_the_same_ranks() -> None:
    model, train = module(Product), split().train
    users, items = shuffled(train.n_users), shuffled(train.n_items)
    other = module(Product)
    with torch.no_grad():
        other.users.weight.copy_(model.users.weight[users])
        other.items.weight.copy_(model.items.weight[items])
    named = tr.as_scorer(other, user_ids=train.names[users], item_ids=train.item_names[items])
    assert tr.rank(named, split()).rank.tolist() == tr.rank(model, split()).rank.tolist()


def test_training_mode_is_refused() -> None:
    with pytest.raises(tr.InputError, match="Product is in training mode, in which dropout is random"):
        tr.rank(module(Product).train(), split())


def test_tensors_are_score_matrices() -> None:
    scores = module(Product)(torch.arange(split().train.n_users))
    assert isinstance(as_scorer(scores), tr.ScoreMatrix)
