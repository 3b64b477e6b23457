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
    """The name of an axis and its initial scale, logarithmic or linear; the reader may change it if both make sense."""

    name: str
    log: bool = False
    switch: bool = False


@dataclass(frozen=True)
class TableBlock(PageBlock, kind="table"):
    """Rows that can be sorted by each column.

    `about` names the recommenders that each row is about; hiding any of them hides the row.
    """

    columns: Columns
    rows: Sequence[Sequence[Any]]
    about: Sequence[Sequence[str]] = ()

    def content(self) -> dict[str, Any]:
        return super().content() | {"columns": [{"name": name, "format": form} for name, form in self.columns]}


@dataclass(frozen=True)
class Curve:
    """A line of a chart; `end` is a dot beyond a break of the axis, such as the value without sampling."""

    name: str
    x: AnyArray | Sequence[float]
    y: AnyArray | Sequence[float]
    end: float | None = None


@dataclass(frozen=True)
class Mark:
    """A vertical line with a short text, which is listed below the chart, or stands at the line if it is `labelled`."""

    x: float
    text: str
    labelled: bool = False


@dataclass(frozen=True)
class Lines(PageBlock, kind="lines"):
    """Curves over a common axis. With `recommenders` each curve has its recommender's colour and is hidden with it.

    With a `baseline`, the name of a curve, the chart begins with the differences from it; the reader may change to the
    values.
    """

    x: Axis
    y: Axis
    curves: Sequence[Curve]
    marks: Sequence[Mark] = ()
    recommenders: bool = True
    baseline: str = ""


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

    `about` names the recommenders, the first of which gives the colour. The interval is hatched unless the mean is
    `determined`. `truth` is the exact value, if it is known.
    """

    row: str
    mean: float
    low: float
    high: float
    about: Sequence[str]
    determined: bool = True
    truth: float | None = None


@dataclass(frozen=True)
class Dots(PageBlock, kind="dots"):
    """Means with intervals, row by row, hollow where a mean lies outside its interval; `zero` marks 0, for differences.

    `together` lists groups of rows that are joined by a line.
    """

    x: Axis
    dots: Sequence[Dot]
    zero: bool = False
    interval: str = "95 % interval"
    together: Sequence[Sequence[str]] = ()


@dataclass(frozen=True)
class Panel:
    """A small chart of several: its title, how many units it is about, and its dots."""

    title: str
    size: str
    dots: Sequence[Dot]


@dataclass(frozen=True)
class Panels(PageBlock, kind="panels"):
    """Small charts of dots with the same rows and the same axis."""

    x: Axis
    panels: Sequence[Panel]
    interval: str = "95 % interval"


@dataclass(frozen=True)
class Pair:
    """The difference of two recommenders in a matrix of all pairs."""

    recommender: str
    baseline: str
    difference: float
    low: float
    high: float
    relative: float
    p_value: float
    kind: str
    winner: str | None
    finding: str


@dataclass(frozen=True)
class Matrix(PageBlock, kind="matrix"):
    """All pairs of the names: a row and a column for each."""

    x: Axis
    names: Sequence[str]
    pairs: Sequence[Pair]
    interval: str


@dataclass(frozen=True)
class Share:
    """The shares of users for whom a recommender is better, and worse, than another."""

    row: str
    better: float
    worse: float
    about: Sequence[str]


@dataclass(frozen=True)
class Shares(PageBlock, kind="shares"):
    """Shares of a whole, row by row: on the right of the middle those who are better off, on the left the others."""

    x: Axis
    shares: Sequence[Share]


@dataclass(frozen=True)
class Paragraph(PageBlock, kind="paragraph"):
    """A sentence or two."""

    text: str


@dataclass(frozen=True)
class FactList(PageBlock, kind="facts"):
    """Terms and their values."""

    facts: Mapping[str, str]


@dataclass(frozen=True)
class ByMetric(PageBlock, kind="by-metric"):
    """A block for each metric, of which the page shows that of the chosen metric."""

    blocks: Mapping[str, PageBlock]

    def content(self) -> dict[str, Any]:
        return {"kind": self.kind, "blocks": {name: block.content() for name, block in self.blocks.items()}}


@dataclass(frozen=True)
class Beside(PageBlock, kind="beside"):
    """Blocks that stand side by side where the page is wide."""

    blocks: Sequence[PageBlock]

    def content(self) -> dict[str, Any]:
        return {"kind": self.kind, "blocks": [block.content() for block in self.blocks]}


@dataclass(frozen=True)
class Section:
    """A section of a page: what it shows, how to read it, and what to know before trusting it.

    Two in a row that need only `half` of the page stand side by side where it is wide.
    """

    title: str
    text: str
    blocks: Sequence[PageBlock]
    notes: Sequence[str] = ()
    half: bool = False

    def content(self) -> dict[str, Any]:
        """Return what the page's scripts read."""
        return vars(self) | {"notes": list(self.notes), "blocks": [block.content() for block in self.blocks]}


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
