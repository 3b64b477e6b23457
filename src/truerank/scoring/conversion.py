"""Anything that can score, a function, a model of another library or an array, -> a `Scorer`."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import AnyArray, Ints
from truerank.core.errors import InputError
from truerank.scoring.library_models import adapted
from truerank.scoring.scorers import Factors, FunctionScorer, Ids, ScoreMatrix, Scorer, n_arguments


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


def as_scorer(model: Scoreable, data: Any = None, *, user_ids: Ids = None, item_ids: Ids = None) -> Scorer:
    """Return a scorer for any object that can provide scores.

    `truerank.rank` and `truerank.rank_sampled` call it themselves. Call it to give a model of another library what it
    does not keep: the names of its users and items, or the data it was trained on.

    Parameters
    ----------
    model : Scorer, model, array, sparse matrix or function
        Tried in this order: a `Scorer`, which stays as it is; an object with a method ``scores(users)``, which takes
        precedence over any other attributes; a model of a library that has an adapter; an array or sparse matrix of
        scores; an object with `user_factors` and `item_factors` (and `item_bias` if it has one); a function with one
        required argument, users, or two, users and items.
    data : optional
        What a model needs besides: for item-item models of implicit the interactions of the users; for RecTools its
        `Dataset`; for RecBole the data loader of the test set, or its `Dataset`.
    user_ids, item_ids : arrays, optional
        Names of the model's users and items in the order of their numbers, if the model has none or others.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> tr.as_scorer(np.eye(3))
    ScoreMatrix(3 users, 3 items)
    >>> tr.as_scorer(lambda users, items: items).pairs(np.array([0]), np.array([7])).tolist()
    [7.0]
    >>> test = tr.read_interactions({0: ["y"], 1: ["x"]})
    >>> tr.rank(tr.as_scorer(np.array([[0.9, 0.1], [0.2, 0.3]]), item_ids=["x", "y"]), test=test).rank.tolist()
    [2, 2]
    """
    scorer = _converted(model, data)
    return scorer if user_ids is None and item_ids is None else scorer.named(user_ids, item_ids)


def _converted(model: Any, data: Any) -> Scorer:
    if isinstance(model, Scorer):
        return model
    if isinstance(model, type):
        raise InputError(f"can't get scores from the class {model.__name__}; give an instance of it.")
    if callable(getattr(model, "scores", None)):
        return FunctionScorer(model.scores, **_attributes(model))
    if (scorer := adapted(model, data)) is not None:
        return scorer
    if sp.issparse(model) or hasattr(model, "__array__"):
        return ScoreMatrix(model)
    if hasattr(model, "user_factors") and hasattr(model, "item_factors"):
        return Factors(model.user_factors, model.item_factors, getattr(model, "item_bias", None))
    if callable(model):
        return FunctionScorer(model, pairs=n_arguments(model) == 2)
    name = type(model).__name__
    if callable(getattr(model, "fit", None)):
        raise InputError(
            f"{name} has no scores yet: fit it first, as in {name}(...).fit(train); if it is fitted, give its factors, "
            "similarity or score matrix, or a function."
        )
    raise InputError(f"can't get scores from {name}; give factors, a similarity, a score matrix or a function.")


def _attributes(model: Any) -> dict[str, Any]:
    """Return what a model of another library states about its users and items."""
    sizes = {name: getattr(model, name, None) for name in ("n_users", "n_items")}
    names: dict[str, Any] = {name: getattr(model, name, None) for name in ("user_ids", "item_ids")}
    stated = {name: size for name, size in sizes.items() if isinstance(size, int | np.integer)}
    return stated | {name: ids for name, ids in names.items() if np.ndim(ids) == 1}
