"""Corrections by name: the built-in ones and those that users register."""

from __future__ import annotations

from typing import TypeVar

# importing a correction registers it
from truerank.corrections import bias_variance, closed_form, least_squares, literature, pooled, rank_estimate  # noqa: F401
from truerank.corrections.base import CORRECTIONS, Estimator

C = TypeVar("C", bound=type[Estimator])


def register_correction(kind: C) -> C:
    """Register a correction by its name, so that it can be written after a ~; a class decorator.

    Examples
    --------
    See `truerank.Correction`.
    """
    CORRECTIONS.add(kind)
    return kind


def read_correction(text: str) -> Estimator:
    """Return the correction that a text form describes.

    Examples
    --------
    >>> read_correction("bv(0.1)")
    BiasVariance(gamma=0.1, prior=None)
    """
    return CORRECTIONS.read(text)
