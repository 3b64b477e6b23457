"""Popular items are more likely to be sampled: a common design, for which no correction is known."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from truerank.arrays import Floats, Ints
from truerank.errors import InputError
from truerank.sampling.designs import DESIGNS, SamplingDesign
from truerank.sampling.pools import Pool


@dataclass(frozen=True)
class PopularitySampling(SamplingDesign):
    """Sample candidates with probability proportional to their number of training interactions to a power.

    Parameters
    ----------
    m : int
        Irrelevant candidates sampled for each instance.
    power : float
        1 is proportional to popularity; the smaller, the closer to uniform.
    replace : bool
        Whether a candidate may be sampled more than once.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> scores = np.array([[0.1, 0.4, 0.3, 0.2]])
    >>> design = tr.PopularitySampling(1, power=50.0)
    >>> tr.rank_sampled(scores, train=[[]], test=[[3]], design=design)
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: `m` must be at most the items with training interactions left to sample, got 1.
    """

    name = "popularity"
    power: float = 1.0
    replace: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        power: Any = self.power
        if not isinstance(power, int | float | np.integer | np.floating) or not np.isfinite(power):
            shown = f"an array of shape {np.shape(power)}" if np.ndim(power) else repr(power)
            raise InputError(f"`power` must be a finite number, got {shown}; how popular items are is seen in `train`.")

    def sample(self, pool: Pool, rng: np.random.Generator) -> list[Ints]:
        if pool.popularity is None:
            raise InputError("popularity-weighted sampling counts training interactions; give `train`.")
        weights = np.power(pool.popularity.astype(np.float64), self.power)
        self.check(pool.sizes, self.size)
        return [self._sample_one(excluded, weights, rng) for excluded in pool.excluded]

    def _sample_one(self, excluded: Ints, weights: Floats, rng: np.random.Generator) -> Ints:
        left = weights.copy()
        left[excluded] = 0.0
        if not np.all(np.isfinite(left)) or int((left > 0).sum()) < (1 if self.replace else self.size):
            raise InputError(f"`m` must be at most the items with training interactions left to sample, got {self.m}.")
        return rng.choice(weights.size, self.size, replace=self.replace, p=left / left.sum(), shuffle=False)


DESIGNS.add_built_in(PopularitySampling)
