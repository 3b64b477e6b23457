"""Models of Cornac: vectors where a model has them, else its method `score`; ids by its maps."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.scoring.factors import Factors
from truerank.scoring.functions import FunctionScorer
from truerank.scoring.scorer import Scorer

# of the range of a user's scores: what another order of float32 additions may change
_ROUNDING = 1e-5


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a fitted recommender, with the ids that it was trained with."""
    from cornac.models import recommender

    if not isinstance(model, recommender.Recommender):
        return None
    if model.uid_map is None:
        raise InputError(f"{type(model).__name__} must be fitted before it can score.")
    ids: dict[str, Any] = {
        "user_ids": _names(model.uid_map, model.num_users),
        "item_ids": _names(model.iid_map, model.num_items),
    }
    by_score = FunctionScorer(lambda users: _scores(model, users), **ids)
    if not recommender.is_ann_supported(model) or sp.issparse(users := model.get_user_vectors()):
        return by_score
    kinds = {
        recommender.MEASURE_DOT: Factors,
        recommender.MEASURE_COSINE: Factors.cosine,
        recommender.MEASURE_L2: Factors.euclidean,
    }
    vectors = users[: model.num_users], model.get_item_vectors()[: model.num_items]
    factors = kinds[model.get_vector_measure()](*vectors, **ids)
    return factors if _same_order(factors, by_score) else by_score


def _same_order(factors: Factors, by_score: FunctionScorer) -> bool:
    """Whether vectors order the items of the first user as `score` does, which they do not for every model."""
    ours, theirs = (scorer.scores(np.zeros(1, np.int64))[0] for scorer in (factors, by_score))
    falling = theirs[np.argsort(-ours)]
    return bool(np.all(np.diff(falling) <= _ROUNDING * np.ptp(falling)))


def _names(numbers: dict[Any, int], size: int) -> AnyArray:
    """Return the ids by number; those beyond `size` belong to users or items without training events."""
    return np.array([name for name, number in sorted(numbers.items(), key=lambda pair: pair[1]) if number < size])


def _scores(model: Any, users: Ints) -> AnyArray:
    return np.stack([np.ravel(model.score(user))[: model.num_items] for user in users.tolist()])
