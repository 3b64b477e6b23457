"""Models of implicit: factors, or item-item similarities applied to the users' histories."""

from __future__ import annotations

from typing import Any

from truerank.errors import InputError
from truerank.scoring.factors import Factors
from truerank.scoring.scorer import Scorer
from truerank.scoring.similarity import Similarity


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a model; biases are among its factors, and its users and items have no names."""
    if getattr(model, "similarity", None) is not None:
        if data is None:
            raise InputError(
                f"{type(model).__name__} keeps no histories of users; give `train`, or tr.as_scorer(model, user_items)."
            )
        return Similarity(model.similarity, data)
    factors = [getattr(model, name, None) for name in ("user_factors", "item_factors")]
    return None if any(part is None for part in factors) else Factors(*map(_on_cpu, factors))


def _on_cpu(factors: Any) -> Any:
    """Return the factors of a model on the GPU as an array."""
    return factors.to_numpy() if hasattr(factors, "to_numpy") else factors
