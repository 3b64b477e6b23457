"""ALS models of Spark: factors with the ids that they were trained with."""

from __future__ import annotations

from typing import Any

import numpy as np

from truerank.arrays import AnyArray
from truerank.scoring.factors import Factors
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the factors of an `ALSModel`, collected from Spark; float32 as there."""
    if not hasattr(model, "userFactors"):
        return None
    (user_ids, users), (item_ids, items) = _collected(model.userFactors), _collected(model.itemFactors)
    return Factors(users, items, user_ids=user_ids, item_ids=item_ids)


def _collected(frame: Any) -> tuple[AnyArray, AnyArray]:
    """Return the columns `id` and `features` of a Spark dataframe as arrays."""
    rows = frame.select("id", "features").collect()
    ids, features = zip(*rows, strict=True) if rows else ((), ())
    return np.array(ids, np.int64), np.array(features, np.float32).reshape(len(rows), -1)
