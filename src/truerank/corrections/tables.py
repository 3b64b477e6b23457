"""The values that a correction assigns to sampled ranks, for looking at."""

from __future__ import annotations

import dataclasses

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.corrected import Cell, Corrected
from truerank.errors import InputError
from truerank.metrics.names import metric as as_metric
from truerank.sampling.designs import SamplingDesign


def table(text: str | Corrected, *, m: int, n: int, replace: bool = False, i: int = 1, n_relevant: int = 1) -> Floats:
    """Return the m + 1 values of a corrected metric, for sampled ranks i, i + 1, ..., i + m.

    Parameters
    ----------
    text : str or Corrected
        For instance ``"recall@10~bv(0.1)"``.
    m, n : int
        Sampled candidates, and candidates before sampling.
    replace : bool
        Whether candidates are sampled with replacement.
    i, n_relevant : int
        Which relevant item from the top the table is for, of how many.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.table("recall@10~rank", m=4, n=21).tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> tr.table("ap~cls", m=4, n=21).round(3).tolist()
    [0.725, 0.036, 0.036, 0.036, 0.036]
    """
    chosen = as_metric(text)
    if not isinstance(chosen, Corrected):
        raise InputError(f"only corrected metrics have a table, got {chosen}; write {chosen}~bv(0.1).")
    if not 1 <= i <= n_relevant <= n:
        raise InputError(f"`i` must lie in 1..n_relevant and `n_relevant` in 1..n, got {i}, {n_relevant} and {n}.")
    design = SamplingDesign(m, replace)
    design.check(np.array([n - n_relevant]))
    return dataclasses.replace(chosen, design=design).tables([Cell(i, n_relevant, n)])[0]
