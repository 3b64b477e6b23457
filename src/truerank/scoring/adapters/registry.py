"""Finds the adapter for a model: by the library that its class, or a class it derives from, comes from."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from importlib.util import find_spec
from typing import Any, TypeVar

from truerank.scoring.scorer import Scorer

Adapter = Callable[[Any, Any], Scorer | None]
"""Takes a model and the data it needs besides, or None; returns None for an object that is not a model."""

A = TypeVar("A", bound=Adapter)
_REGISTERED: dict[str, Adapter] = {}


def register_adapter(library: str) -> Callable[[A], A]:
    """Register a function that turns the models of a library into scorers; a decorator.

    Parameters
    ----------
    library : str
        The top-level package of the models' classes. The function is called for their objects and those of derived
        classes, and takes precedence over an adapter that comes with truerank.

    Examples
    --------
    >>> import fractions, numpy as np, truerank as tr
    >>> @tr.register_adapter("fractions")
    ... def adapt(model, data):
    ...     return tr.ScoreMatrix([[float(model), 0.5]])
    >>> tr.rank(fractions.Fraction(1, 3), test=[[0]]).rank.tolist()
    [2]
    """

    def register(adapter: A) -> A:
        _REGISTERED[library] = adapter
        return adapter

    return register


def adapted(model: Any, data: Any) -> Scorer | None:
    """Return the scorer of the first adapter that accepts the model, or None."""
    for library in dict.fromkeys(kind.__module__.partition(".")[0] for kind in type(model).__mro__):
        adapter = _REGISTERED.get(library) or _built_in(library)
        scorer = None if adapter is None else adapter(model, data)
        if scorer is not None:
            return scorer
    return None


def _built_in(library: str) -> Adapter | None:
    """Return the function `adapt` of the file for this library, if there is one."""
    name = f"{__package__}.{library}_models"
    return import_module(name).adapt if find_spec(name) else None
