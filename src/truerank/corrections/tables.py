"""The values that a correction assigns to sampled ranks, for inspection."""

from __future__ import annotations

import numpy as np

from truerank.arrays import Floats
from truerank.corrections.corrected import Corrected
from truerank.corrections.counts import as_sampled, counted, terms_of_counts
from truerank.corrections.reading import metric as as_metric
from truerank.errors import InputError
from truerank.ranking.ranks import Ranks
from truerank.sampling.registry import AnyDesign, as_design


def correction_table(
    metric: str | Corrected,
    design: AnyDesign | None = None,
    *,
    n: int,
    m: int | None = None,
    replace: bool = False,
    i: int = 1,
    n_relevant: int = 1,
) -> Floats:
    """Return the m + 1 values of a corrected metric, for sampled ranks i, i + 1, ..., i + m.

    Parameters
    ----------
    metric : str or Corrected
        For instance ``"recall@10~bv(0.1)"``.
    design : SamplingDesign or str, optional
        How candidates are sampled; or give `m` and `replace` for uniform sampling.
    n : int
        Candidates before sampling.
    m : int, optional
        Sampled candidates.
    replace : bool
        Whether candidates are sampled with replacement.
    i, n_relevant : int
        Which relevant item from the top the table is for, of how many.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.correction_table("recall@10~rank", m=4, n=21).tolist()
    [1.0, 1.0, 0.0, 0.0, 0.0]
    >>> tr.correction_table("ap~cls", m=4, n=21).round(3).tolist()
    [0.725, 0.036, 0.036, 0.036, 0.036]
    """
    chosen = as_metric(metric)
    if not isinstance(chosen, Corrected):
        raise InputError(f"only corrected metrics have a table, got {chosen}; write {chosen}~bv(0.1).")
    if not 1 <= i <= n_relevant <= n:
        raise InputError(f"`i` must lie in 1..n_relevant and `n_relevant` in 1..n, got {i}, {n_relevant} and {n}.")
    drawn = as_design(design, m=m, replace=replace)
    ranks = as_sampled(Ranks.from_ranks([range(1, n_relevant + 1)], n=n), drawn)
    terms = terms_of_counts(chosen, ranks)
    if len(terms) > 1 or terms[0].weight is not None:
        raise InputError(f"{chosen} depends on grades and has no single table; only plain metrics have one.")
    return counted(terms[0], ranks, np.array([i - 1]))[0]
