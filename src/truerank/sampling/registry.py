"""Sampling designs by name: the built-in ones and those that users register."""

from __future__ import annotations

from typing import Any, TypeVar

from truerank.errors import InputError

# importing a design registers it
from truerank.sampling import popularity, roulette, sequential  # noqa: F401
from truerank.sampling.designs import DESIGNS, SamplingDesign
from truerank.sampling.uniform import UniformSampling

AnyDesign = SamplingDesign | str
"""A sampling design, or its text form."""

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


def as_design(design: AnyDesign | None, *, m: int | None = None, replace: bool = False) -> SamplingDesign:
    """Return the design, also from its text form, or the uniform one that `m` and `replace` are short for.

    Examples
    --------
    >>> as_design("inverse(2)"), as_design(None, m=100)
    (InverseSampling(m=None, hits=2, most=None, whole=False), UniformSampling(m=100, replace=False))
    """
    given: Any = design
    if given is None:
        return UniformSampling(m, replace)
    if m is not None or replace:
        raise InputError("give either `design`, or `m` and `replace`, not both.")
    if isinstance(given, str):
        return read_design(given)
    if not isinstance(given, SamplingDesign):
        raise InputError(f"`design` must be a sampling design, or a text such as 'uniform(100)', got {given!r}.")
    return given
