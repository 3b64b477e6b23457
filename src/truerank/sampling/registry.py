"""Sampling designs by name: the built-in ones and those that users register."""

from __future__ import annotations

from typing import TypeVar

# importing a design registers it
from truerank.sampling import popularity, roulette, sequential, uniform  # noqa: F401
from truerank.sampling.designs import DESIGNS, SamplingDesign

D = TypeVar("D", bound=type[SamplingDesign])


def register_design(kind: D) -> D:
    """Register a sampling design by its name, so that ranks sampled by it can be stored; a class decorator.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import numpy as np, truerank as tr
    >>> @tr.register_design
    ... @dataclass(frozen=True)
    ... class FirstItems(tr.SamplingDesign):
    ...     name = "first-items"
    ...     def sample(self, pool, rng):
    ...         return [pool.candidates(user)[: self.size] for user in range(len(pool))]
    >>> ranks = tr.rank_sampled(np.array([[0.1, 0.4, 0.3, 0.2]]), test=[[3]], design=FirstItems(2))
    >>> ranks.rank.tolist(), str(ranks.design)
    ([2], 'first-items(2)')
    """
    DESIGNS.add(kind)
    return kind


def read_design(text: str) -> SamplingDesign:
    """Return the sampling design that a text form describes.

    Examples
    --------
    >>> read_design("uniform(100, replace)")
    UniformSampling(m=100, replace=True)
    """
    return DESIGNS.read(text)
