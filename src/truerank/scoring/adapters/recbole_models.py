"""Models of RecBole: their method `full_sort_predict`, without the padding item; ids by the dataset's tokens."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.scoring.adapters.torch_models import check_mode
from truerank.scoring.functions import FunctionScorer
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a trained model.

    `data` is the data loader of the test set, or a dataset. The instances of a sequential model are the rows of the
    test set, of which each user may have one.
    """
    from recbole.model.abstract_recommender import AbstractRecommender, SequentialRecommender

    if not isinstance(model, AbstractRecommender):
        return None
    dataset = getattr(data, "dataset", data)
    if not hasattr(dataset, "field2id_token"):
        raise InputError(f"{type(model).__name__} keeps no ids; give tr.as_scorer(model, test_data) of RecBole.")
    check_mode(model)
    users, rows = _rows(dataset) if isinstance(model, SequentialRecommender) else _users(dataset)

    def scores(numbers: Ints) -> AnyArray:
        import torch

        with torch.inference_mode():
            flat = model.full_sort_predict(rows[numbers].to(model.device))
        return flat.view(numbers.size, -1)[:, 1:]  # item 0 is padding

    return FunctionScorer(
        scores,
        user_ids=_names(dataset, dataset.uid_field, users),
        item_ids=_names(dataset, dataset.iid_field, np.arange(1, dataset.item_num)),
    )


def _users(dataset: Any) -> tuple[Ints, Any]:
    """Return all users, and what the model reads of each."""
    import torch
    from recbole.data.interaction import Interaction

    users = np.arange(1, dataset.user_num)  # user 0 is padding
    return users, dataset.join(Interaction({dataset.uid_field: torch.as_tensor(users)}))


def _rows(dataset: Any) -> tuple[Ints, Any]:
    """Return the user of each row of a test set, and the rows, with the sequence of items before each."""
    users = dataset.inter_feat[dataset.uid_field].numpy()
    if np.unique(users).size < users.size:
        raise InputError("each user must have one row in the test set of a sequential model, as in leave-one-out.")
    return users, dataset.inter_feat


def _names(dataset: Any, field: str, numbers: Ints) -> AnyArray:
    """Return tokens; as numbers if all of them are, since RecBole keeps every id as text."""
    tokens = np.asarray(dataset.id2token(field, numbers)).astype(np.str_)
    if not np.char.isdecimal(tokens).all():
        return tokens
    whole = tokens.astype(np.int64)
    return whole if np.array_equal(whole.astype(np.str_), tokens) else tokens
