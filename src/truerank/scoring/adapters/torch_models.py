"""PyTorch modules that score a batch of users, or of user-item pairs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from truerank.arrays import Ints
from truerank.errors import InputError
from truerank.scoring.functions import FunctionScorer, PairFunctionScorer, n_arguments
from truerank.scoring.scorer import Scorer


def adapt(model: Any, data: Any) -> Scorer | None:
    """Return a scorer that calls a module with tensors of user numbers, and of item numbers if it takes two."""
    import torch

    if not isinstance(model, torch.nn.Module):
        return None
    if isinstance(model, torch.nn.Embedding):
        raise InputError("an Embedding holds vectors, not scores; give tr.Factors(user_embedding, item_embedding).")
    check_mode(model)
    function = on_its_device(model)
    return PairFunctionScorer(function) if n_arguments(model.forward) == 2 else FunctionScorer(function)


def check_mode(model: Any) -> None:
    """Refuse a module in training mode."""
    if model.training:
        raise InputError(
            f"{type(model).__name__} is in training mode, in which dropout is random; call model.eval() first."
        )


def on_its_device(model: Any) -> Callable[..., Any]:
    """Return a function of arrays that calls a module on its device, without gradients."""
    import torch

    def score(*numbers: Ints) -> Any:
        device = next((part.device for part in model.parameters()), torch.device("cpu"))
        with torch.inference_mode():
            return model(*(torch.as_tensor(part, device=device) for part in numbers))

    return score
