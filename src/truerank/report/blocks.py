"""What the sections of a page are made of: tables, charts and facts as plain data, which the page's scripts draw.

A block knows nothing of HTML. It holds unrounded numbers; the page rounds those it shows and copies them in full.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

from truerank.core.checks import AnyArray

Format = Literal[
    "text", "digits", "number", "signed", "interval", "estimate", "share", "signed-share", "p-value", "count"
]
"""How a column is shown; digits are numbers as text, an interval is a pair of numbers, an estimate a mean and its
interval."""
Columns = Sequence[tuple[str, Format]]
"""The columns of a table: their names, and how they are shown."""


@dataclass(frozen=True)
class PageBlock:
    """A part of a section."""

    kind: ClassVar[str]

    def __init_subclass__(cls, kind: str) -> None:
        cls.kind = kind

    def content(self) -> dict[str, Any]:
        """Return what the page's scripts read."""
        return {"kind": self.kind, **{name.rstrip("_"): _plain(value) for name, value in vars(self).items()}}


@dataclass(frozen=True)
class Axis:
    """The name of an axis, and how it begins: logarithmic or linear, which the reader may change if both make sense."""

    name: str
    log: bool = False
    switch: bool = False


@dataclass(frozen=True)
class TableBlock(PageBlock, kind="table"):
    """Rows that can be sorted by each column.

    `about` names the recommenders that each row is about; the row is hidden with any of them.
    """

    columns: Columns
    rows: Sequence[Sequence[Any]]
    about: Sequence[Sequence[str]] = ()

    def content(self) -> dict[str, Any]:
        return super().content() | {"columns": [{"name": name, "format": form} for name, form in self.columns]}


@dataclass(frozen=True)
class Curve:
    """A line of a chart; `end` is a dot beyond its last point, such as the value without sampling."""

    name: str
    x: AnyArray | Sequence[float]
    y: AnyArray | Sequence[float]
    end: float | None = None


@dataclass(frozen=True)
class Mark:
    """A vertical line with a few words."""

    x: float
    text: str


@dataclass(frozen=True)
class Lines(PageBlock, kind="lines"):
    """Curves over a common axis. With `recommenders` each curve has the colour of its recommender and hides with it."""

    x: Axis
    y: Axis
    curves: Sequence[Curve]
    marks: Sequence[Mark] = ()
    recommenders: bool = True


@dataclass(frozen=True)
class Heights:
    """The bars of one recommender, one per group."""

    name: str
    y: AnyArray | Sequence[float]


@dataclass(frozen=True)
class Bars(PageBlock, kind="bars"):
    """Adjacent bars for each group, one per recommender."""

    x: Axis
    y: Axis
    groups: Sequence[str]
    bars: Sequence[Heights]


@dataclass(frozen=True)
class Dot:
    """A mean with its interval, in a row of its own.

    `about` names the recommenders, the first of which gives the colour. Rows of a `group` are labelled by it, once.
    """

    row: str
    mean: float
    low: float
    high: float
    about: Sequence[str]
    group: str = ""


@dataclass(frozen=True)
class Dots(PageBlock, kind="dots"):
    """Means with intervals, row by row, hollow where a mean lies outside; `zero` marks 0, for differences."""

    x: Axis
    dots: Sequence[Dot]
    zero: bool = False
    interval: str = "95 % interval"


@dataclass(frozen=True)
class Paragraph(PageBlock, kind="paragraph"):
    """A sentence or two."""

    text: str


@dataclass(frozen=True)
class FactList(PageBlock, kind="facts"):
    """Terms and what they are."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class ByMetric(PageBlock, kind="by-metric"):
    """A block for each metric, of which the page shows that of the chosen metric."""

    blocks: Mapping[str, PageBlock]

    def content(self) -> dict[str, Any]:
        return {"kind": self.kind, "blocks": {name: block.content() for name, block in self.blocks.items()}}


@dataclass(frozen=True)
class Section:
    """A section of a page: what it shows, how to read it, and what to know before trusting it."""

    title: str
    text: str
    blocks: Sequence[PageBlock]
    notes: Sequence[str] = ()

    def content(self) -> dict[str, Any]:
        """Return what the page's scripts read."""
        blocks = [block.content() for block in self.blocks]
        return {"title": self.title, "text": self.text, "notes": list(self.notes), "blocks": blocks}


def _plain(value: Any) -> Any:
    """Return a value as JSON has it: arrays and tuples as lists, parts of blocks as objects."""
    if hasattr(value, "__dataclass_fields__"):
        return {name: _plain(part) for name, part in vars(value).items()}
    if isinstance(value, str) or value is None:
        return value
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if hasattr(value, "tolist"):
        return value.tolist()
    return [_plain(part) for part in value] if isinstance(value, Sequence) else value
