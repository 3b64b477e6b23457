"""Models, arrays and functions of any kind -> a `Scorer`."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Ints
from truerank.errors import InputError
from truerank.scoring.factors import Factors
from truerank.scoring.functions import FunctionScorer, PairFunctionScorer
from truerank.scoring.matrix import ScoreMatrix
from truerank.scoring.scorer import Scorer


class HasScores(Protocol):
    """A model with its own method that returns scores."""

    def scores(self, users: Ints) -> Any:
        """Return the scores of these users for all items."""


class HasFactors(Protocol):
    """A model with factors, such as those of implicit."""

    user_factors: Any
    item_factors: Any


Scoreable = Scorer | HasScores | HasFactors | AnyArray | Callable[[Ints], Any] | Callable[[Ints, Ints], Any] | Any
"""What `as_scorer` accepts; also any SciPy sparse matrix, and tensors."""


def as_scorer(given: Scoreable) -> Scorer:
    """Return a scorer for any object that can provide scores.

    Tried in this order: a `Scorer`, which is returned unchanged; an object with a method ``scores(users)``, which takes
    precedence over any other attributes; an array or sparse matrix of scores; an object with
    `user_factors` and `item_factors` (and `item_bias` if it has one); a function with one
    required argument, users, or two, users and items.

    Examples
    --------
    >>> import numpy as np
    >>> as_scorer(np.eye(3))
    ScoreMatrix(3 users, 3 items)
    >>> as_scorer(lambda users, items: items).pairs(np.array([0]), np.array([7])).tolist()
    [7.0]
    """
    model: Any = given
    if isinstance(model, Scorer):
        return model
    if isinstance(model, type):
        raise InputError(f"can't get scores from the class {model.__name__}; give an instance of it.")
    if callable(getattr(model, "scores", None)):
        return FunctionScorer(model.scores, **_attributes(model))
    if sp.issparse(model) or hasattr(model, "__array__"):
        return ScoreMatrix(model)
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        return Factors(model.user_factors, model.item_factors, getattr(model, "item_bias", None))
    if callable(model):
        return PairFunctionScorer(model) if _arguments(model) == 2 else FunctionScorer(model)
    raise InputError(
        f"can't get scores from {type(model).__name__}; give factors, a similarity, a score matrix or a function."
    )


def _attributes(model: Any) -> dict[str, Any]:
    """Return what a model of another library states about its users and items."""
    sizes = {name: getattr(model, name, None) for name in ("n_users", "n_items")}
    names: dict[str, Any] = {name: getattr(model, name, None) for name in ("user_ids", "item_ids")}
    stated = {name: size for name, size in sizes.items() if isinstance(size, int | np.integer)}
    return stated | {name: ids for name, ids in names.items() if np.ndim(ids) == 1}


def _arguments(function: Callable[..., Any]) -> int:
    """Return how many arguments a function requires; 1 if it has no signature."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # some functions written in C
        return 1
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    needed = [one for one in parameters if one.kind in positional and one.default is one.empty]
    if len(needed) > 2:
        names = ", ".join(one.name for one in needed)
        raise InputError(f"a scoring function must take users, or users and items, got one that takes {names}.")
    return len(needed)
