"""Corrected metrics: ``recall@10~bv(0.1)`` reads a sampled rank and estimates what the exact one is worth.

A correction is a table of m + 1 values per needed (i, |R|, n): what to add for the i-th of |R| relevant items
when h of the m sampled candidates stand above it. Because a metric is a sum over its relevant items, correcting
each term corrects the metric, whatever their dependence (for |R| = 1 this is section 5 of Krichene & Rendle).
"""

from __future__ import annotations

import dataclasses
import re
from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple, cast

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.corrections import least_squares, spectral
from truerank.corrections.priors import Prior, prior_counts
from truerank.errors import InputError
from truerank.metrics import Metric
from truerank.ranks import Ranks
from truerank.sampling.designs import SamplingDesign


class Cell(NamedTuple):
    """The i-th of `n_relevant` relevant items of an instance with n candidates."""

    i: int
    n_relevant: int
    n: int

    @property
    def n_irrelevant(self) -> int:
        """Candidates that a sample is drawn from."""
        return self.n - self.n_relevant


@dataclass(frozen=True)
class Correction(ABC):
    """A way to turn sampled counts into estimates of a metric's terms."""

    @abstractmethod
    def correction(text: str) -> Correction:
    """Return the correction that a text names: rank, rank(interpolate), ls, cls or bv(gamma).

    Examples
    --------
    >>> correction("bv(0.1)")
    BiasVariance(gamma=0.1, prior=None)
    """
    plain: dict[str, Correction] = {"rank": RankEstimate(), "rank(interpolate)": RankEstimate(interpolate=True)}
    plain |= {"ls": LeastSquares(), "cls": ConstrainedLeastSquares()}
    if text in plain:
        return plain[text]
    form = re.fullmatch(r"bv\((\d*\.?\d+(?:e-?\d+)?)\)", text)
    if form is None:
        known = "~rank, ~rank(interpolate), ~ls, ~cls and ~bv(gamma) with gamma in (0, 1], as in ~bv(0.1)"
        raise InputError(f"unknown correction '~{text}'; known are {known}.")
    return BiasVariance(float(form[1]))


def _term(metric: Metric, cell: Cell) -> least_squares.Term:
    i, n_relevant, n = (np.array([number]) for number in cell)

    def term(g: Floats) -> Floats:
        return metric.term(cast("Ints", np.asarray(g) + cell.i), i, n_relevant, n)

    return term


def _problem(metric: Metric, design: SamplingDesign, cell: Cell, prior: Prior | None) -> least_squares.Problem:
    cutoff = metric.cutoff(np.array([cell.n_relevant]))
    return least_squares.problem(
        _term(metric, cell),
        cell.n_irrelevant,
        design.m,
        replace=design.replace,
        prior=None if prior is None else prior_counts(prior, cell.n_irrelevant),
        breaks=() if cutoff is None else (int(cutoff[0]) - cell.i + 1,),
        smooth=metric.smooth,
    )
