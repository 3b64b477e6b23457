"""What an item at each rank adds to the exact, the sampled and the corrected metric (Figures 3 and 4)."""

from __future__ import annotations

import numpy as np

from truerank.analysis.risks import risk
from truerank.arrays import Floats
from truerank.corrections.bias_variance import BiasVariance
from truerank.corrections.corrected import Corrected
from truerank.evaluation.per_instance import values
from truerank.metrics.base import Metric
from truerank.ranking.ranks import Ranks
from truerank.report.blocks import Axis, ByMetric, Curve, Lines, Section
from truerank.report.material import Material
from truerank.report.wording import shown_name
from truerank.sampling.uniform import UniformSampling

_TEXT = (
    "What one relevant item adds to the metric, by its true rank, among {n:,} candidates. The sampled metric, from "
    "{m:,} of them, is flatter than the exact one, but for AUC: it hardly tells the top from what comes after it. A "
    "correction brings it closer, at the cost of variance: more of it with a smaller gamma."
)
_CORRECTIONS = (BiasVariance(0.1), BiasVariance(0.01))
_POINTS = 120


def section(material: Material) -> Section | None:
    """Return a chart for each metric, from what can be computed for one relevant item."""
    n = material.typical_n
    if n is None or n < 2:
        return None
    m = min(material.m, n - 1)
    charts, notes = material.per_metric(lambda metric: weight_chart(metric.estimated, n, m))
    return Section("Weight of each rank", _TEXT.format(n=n, m=m), [ByMetric(charts)], notes)


def weight_chart(metric: Metric, n: int, m: int) -> Lines:
    """Return the exact, sampled and corrected weights of ranks 1..n, for an instance with one relevant item."""
    ranks = np.unique(np.geomspace(1, n, _POINTS).round().astype(np.int64))
    exact = Ranks.from_ranks(ranks, n=n)
    curves = {"exact": values(exact, metric), f"sampled, m = {m:,}": _expected(exact, metric, m)}
    for correction in _CORRECTIONS:
        curves[f"corrected by {correction}"] = _expected(exact, Corrected(metric, correction), m)
    y = Axis(shown_name(str(metric)))
    shown = [Curve(name, ranks, curve) for name, curve in curves.items()]
    return Lines(Axis("true rank", log=True, switch=True), y, shown, recommenders=False)


def _expected(ranks: Ranks, metric: Metric, m: int) -> Floats:
    return risk(ranks, metric, UniformSampling(m)).expected
