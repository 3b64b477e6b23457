"""What sampled candidates would have shown, by their number (Figures 2 and 6 of Krichene & Rendle)."""

from __future__ import annotations

from truerank.analysis.orders import Consistency, consistency
from truerank.report.blocks import Axis, ByMetric, Curve, Lines, Mark, Section
from truerank.report.material import Material
from truerank.report.wording import shown_name

_TEXT = (
    "The metric that an evaluation with m sampled candidates shows on average, for every m. The dots on the right are "
    "the exact metric. "
)
_FLIPS = (
    "Each dotted line is where two recommenders change places: a study with fewer candidates would have reported the "
    "opposite, on average."
)
_NO_FLIPS = "By none of these metrics do two recommenders change places."
# about 50 sizes for some thousand candidates
_GROWTH = 0.17


def section(material: Material) -> Section | None:
    """Return a chart of the chosen metric against the number of sampled candidates."""
    if not material.exact or len(material.ranks) < 2:
        return None
    charts, notes = material.per_metric(
        lambda metric: sample_size_chart(consistency(material.sample, metric, growth=_GROWTH))
    )
    text = _TEXT + (_FLIPS if any(chart.marks for chart in charts.values()) else _NO_FLIPS)
    return Section("Sampled candidates", text, [ByMetric(charts)], (*material.sample_note, *notes))


def sample_size_chart(found: Consistency) -> Lines:
    """Return the curves, with a mark wherever two recommenders change places."""
    curves = [Curve(name, found.sizes, curve, found.exact[name]) for name, curve in found.curves.items()]
    marks = [Mark(flip.m, f"from m = {flip.m:,} on {flip.better} is above {flip.worse}") for flip in found.flips]
    y = Axis(f"expected {shown_name(found.metric)}", switch=True)
    return Lines(Axis("sampled candidates m", log=True, switch=True), y, curves, marks)
