"""Models of implicit: factors, or item-item similarities applied to the users' histories."""

from __future__ import annotations

from typing import Any

from truerank.errors import InputError
from truerank.scoring.factors import Factors
from truerank.scoring.scorer import Scorer
from truerank.scoring.similarity import Similarity


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of a model; biases are among its factors, and its users and items have no names."""
    learned = [name for name in ("user_factors", "similarity") if hasattr(model, name)]
    if not learned:
        return None
    if getattr(model, learned[0]) is None:
        raise InputError(f"{type(model).__name__} must be fitted before it can score.")
    if learned == ["user_factors"]:
        return Factors(_on_cpu(model.user_factors), _on_cpu(model.item_factors))
    if data is None:
        raise InputError(
            f"{type(model).__name__} keeps no histories of users; give `train`, or tr.as_scorer(model, user_items)."
        )
    return Similarity(model.similarity, data)


def _on_cpu(factors: Any) -> Any:
    """Return the factors of a model on the GPU as an array."""
    return factors.to_numpy() if hasattr(factors, "to_numpy") else factors
