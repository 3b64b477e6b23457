"""Ranks that are in another process, as dataframes: which engine evaluates them there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Protocol

from truerank.metrics.base import Metric

if TYPE_CHECKING:
    from truerank.evaluation.estimate_tables import Evaluation
    from truerank.evaluation.paired_differences import Compared, Task
    from truerank.evaluation.paired_tests import PairedTest

ENGINES = {"pyspark": "truerank.engines.spark_tables"}
"""Modules that are an `Engine`, by the library that the dataframes belong to."""


class Engine(Protocol):
    """Evaluates dataframes of ranks where they are."""

    def evaluate(self, ranks: Mapping[str, Any], metrics: Sequence[Metric], **options: Any) -> Evaluation:
        """Return what `truerank.evaluate` returns."""

    def differences(
        self, ranks: Mapping[str, Any], metrics: Sequence[Metric], task: Task, test: PairedTest, **options: Any
    ) -> Compared:
        """Return the differences of `truerank.compare`."""


def engine_of(ranks: Mapping[str, Any]) -> Engine | None:
    """Return the engine for these ranks; None if they are in this process.

    Examples
    --------
    >>> import truerank as tr
    >>> engine_of({"A": tr.Ranks.from_ranks([1], n=5)}) is None
    True
    """
    libraries = {type(one).__module__.partition(".")[0] for one in ranks.values()}
    names = libraries & set(ENGINES)
    return import_module(ENGINES[names.pop()]) if names else None
