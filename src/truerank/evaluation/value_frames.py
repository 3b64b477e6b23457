"""The values of instances as a dataframe."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from truerank.corrections.reading import AnyMetric, as_metrics
from truerank.display.dataframes import Backend, frame
from truerank.errors import InputError
from truerank.evaluation.per_instance import Ties, checked_terms, sums, untied
from truerank.ranking.ranks import Ranks
from truerank.sampling.designs import Rng

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl
    import pyarrow as pa

Named = Ranks | Mapping[str, Ranks]
Metrics = AnyMetric | Iterable[AnyMetric]


@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Literal["pandas"] = "pandas", ties: Ties = ..., rng: Rng = ...
) -> pd.DataFrame: ...
@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Literal["polars"], ties: Ties = ..., rng: Rng = ...
) -> pl.DataFrame: ...
@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Literal["pyarrow"], ties: Ties = ..., rng: Rng = ...
) -> pa.Table: ...
@overload
def values_frame(
    ranks: Named, metrics: Metrics, *, backend: Backend, ties: Ties = ..., rng: Rng = ...
) -> pd.DataFrame | pl.DataFrame | pa.Table: ...
def values_frame(
    ranks: Named,
    metrics: Metrics,
    *,
    backend: Backend = "pandas",
    ties: Ties = "expected",
    rng: Rng = None,
) -> Any:
    """Return the metrics of each instance as a dataframe: one row per instance, one column per metric.

    Parameters
    ----------
    ranks : Ranks, or dict of name to Ranks
        One recommender, or several, whose rows have their name in a column `recommender`.
    metrics : list of str, Metric or function (or one of them)
    backend : {"pandas", "polars", "pyarrow"}
        Library of the dataframe.
    ties, rng : as for `truerank.values`

    Returns
    -------
    dataframe
        With columns `recommender` (for several), `id` (the position where there are no ids), and one per metric, which
        is NaN where the metric is undefined.

    Examples
    --------
    >>> import truerank as tr
    >>> tr.values_frame(tr.Ranks.from_ranks([1, 4], n=9, ids=["ann", "bob"]), ["rr", "recall@3"])
        id    rr  recall@3
    0  ann  1.00       1.0
    1  bob  0.25       0.0
    """
    chosen, several = as_metrics(metrics), not isinstance(ranks, Ranks)
    named = {"": ranks} if isinstance(ranks, Ranks) else dict(ranks)
    if not named or not chosen:
        raise InputError("values_frame needs at least one recommender and one metric.")
    broken = untied(named, ties, rng)
    ids = [np.arange(len(one)) if one.ids is None else one.ids for one in named.values()]
    columns: dict[str, Any] = {"recommender": np.repeat(list(named), list(map(len, ids))).tolist()} if several else {}
    columns["id"] = np.concatenate(ids).tolist()
    for metric in chosen:
        columns[str(metric)] = np.concatenate([sums(one, checked_terms(one, metric)) for one in broken.values()])
    return frame(columns, backend)
