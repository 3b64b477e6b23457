"""What an interval is, and what it may assume."""

from __future__ import annotations

from typing import Literal, NamedTuple

Assumption = Literal["nothing", "falling"]
"""What may be assumed of the exact ranks; "falling": a deeper rank is never more likely, among the top tenth of the
candidates, for the first relevant item of an instance."""


class Interval(NamedTuple):
    """Lower and upper end of a confidence interval."""

    low: float
    high: float
