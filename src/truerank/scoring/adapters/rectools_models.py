"""Models of RecTools: vectors and their distance where a model has them, else its recommendations of all items."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.scoring.adapters.unscored import below_others
from truerank.scoring.factors import Factors
from truerank.scoring.functions import FunctionScorer, n_arguments
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a fitted model, with the ids of the dataset that it was fitted on."""
    from rectools.dataset import Dataset
    from rectools.models.base import ModelBase
    from rectools.models.rank import Distance

    if not isinstance(model, ModelBase):
        return None
    if not isinstance(data, Dataset):
        raise InputError(f"{type(model).__name__} keeps no ids; give tr.as_scorer(model, dataset) with its Dataset.")
    ids = {"user_ids": data.user_id_map.external_ids, "item_ids": data.item_id_map.external_ids}
    if not hasattr(model, "get_vectors"):
        return FunctionScorer(lambda users: _scores(model, data, users), **ids)
    kinds = {Distance.DOT: Factors, Distance.COSINE: Factors.cosine, Distance.EUCLIDEAN: Factors.euclidean}
    vectors = model.get_vectors(data) if n_arguments(model.get_vectors) else model.get_vectors()
    return kinds[model.u2i_dist](*vectors, **ids)


def _scores(model: Any, data: Any, users: Ints) -> AnyArray:
    """Return the scores of all items; those that the model does not recommend tie below the others."""
    names = data.user_id_map.convert_to_external(users)
    listed = model.recommend(names, data, k=data.item_id_map.size, filter_viewed=False)
    order = np.argsort(users)
    rows = order[np.searchsorted(users[order], data.user_id_map.convert_to_internal(listed["user_id"]))]
    scores = np.full((users.size, data.item_id_map.size), np.nan)
    scores[rows, data.item_id_map.convert_to_internal(listed["item_id"])] = listed["score"]
    return below_others(scores)
