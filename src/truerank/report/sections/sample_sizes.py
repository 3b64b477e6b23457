"""What sampled candidates would have shown, by their number (Figures 2 and 6 of Krichene & Rendle)."""

from __future__ import annotations

import numpy as np

from truerank.analysis.orders import Consistency
from truerank.arrays import Ints
from truerank.report.blocks import Axis, ByMetric, Curve, Lines, Mark, Section
from truerank.report.material import Material
from truerank.report.wording import shown_name

_TEXT = (
    "The metric that an evaluation with m sampled candidates shows on average, for every m. The dots on the right are "
    "the exact metric. Where curves cross, a dotted line marks the first m at which the order is another one: a study "
    "with fewer candidates would have reported the opposite."
)
_POINTS = 80


def section(material: Material) -> Section | None:
    """Return a chart of the chosen metric against the number of sampled candidates."""
    if not material.orders:
        return None
    charts = {metric: sample_size_chart(found) for metric, found in material.orders.items()}
    return Section("Sampled candidates", _TEXT, [ByMetric(charts)], material.sample_note)


def sample_size_chart(found: Consistency) -> Lines:
    """Return the curves, with a mark wherever two recommenders change places."""
    at = _thinned(found.sizes)
    curves = [Curve(name, found.sizes[at], curve[at], found.exact[name]) for name, curve in found.curves.items()]
    marks = [Mark(flip.m, f"from m = {flip.m:,}: {flip.better} above {flip.worse}") for flip in found.flips]
    y = Axis(f"expected {shown_name(found.metric)}", switch=True)
    return Lines(Axis("sampled candidates m", log=True, switch=True), y, curves, marks)


def _thinned(sizes: Ints) -> Ints:
    """Return the positions of about as many sizes as a chart can show, evenly spaced by their logarithm."""
    wanted = np.geomspace(sizes[0], sizes[-1], _POINTS)
    return np.unique(np.searchsorted(sizes, wanted).clip(0, sizes.size - 1))
