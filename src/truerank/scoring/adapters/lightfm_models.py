"""Models of LightFM: representations of users and items, and the item biases."""

from __future__ import annotations

from typing import Any

from truerank.scoring.factors import Factors
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return the factors of a model trained without features; a user's bias is the same for all items."""
    if not hasattr(model, "get_user_representations"):
        return None
    _, users = model.get_user_representations()
    biases, items = model.get_item_representations()
    return Factors(users, items, biases)
