"""Models of Cornac: vectors where a model has them, else its method `score`; ids by its maps."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.scoring.factors import Factors
from truerank.scoring.functions import FunctionScorer
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a fitted recommender, with the ids that it was trained with."""
    from cornac.models import recommender

    if not isinstance(model, recommender.Recommender):
        return None
    if model.uid_map is None:
        raise InputError(f"{type(model).__name__} must be fitted before it can score.")
    ids = {
        "user_ids": _names(model.uid_map, model.num_users),
        "item_ids": _names(model.iid_map, model.num_items),
    }
    if not recommender.is_ann_supported(model):
        return FunctionScorer(lambda users: _scores(model, users), **ids)
    kinds = {
        recommender.MEASURE_DOT: Factors,
        recommender.MEASURE_COSINE: Factors.cosine,
        recommender.MEASURE_L2: Factors.euclidean,
    }
    users, items = model.get_user_vectors()[: model.num_users], model.get_item_vectors()[: model.num_items]
    return kinds[model.get_vector_measure()](users, items, **ids)


def _names(numbers: dict[Any, int], size: int) -> AnyArray:
    """Return the ids by number; those beyond `size` belong to users or items without training events."""
    return np.array([name for name, number in sorted(numbers.items(), key=lambda pair: pair[1]) if number < size])


def _scores(model: Any, users: Ints) -> AnyArray:
    return np.stack([np.asarray(model.score(user))[: model.num_items] for user in users.tolist()])
