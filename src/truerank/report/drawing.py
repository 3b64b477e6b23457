"""Curves and bars as figures for print; these functions draw and compute nothing.

Every curve differs from its neighbours in colour, lightness and dashes, so that a greyscale copy is readable.
Figures need no display and change no settings of matplotlib.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, ParamSpec, TypeVar

import numpy as np

from truerank.arrays import AnyArray
from truerank.errors import InputError
from truerank.formats.writing import make_folder, replacing

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

FORMATS = ("svg", "pdf", "png")
LOOKS: list[tuple[str, Any]] = [
    ("#000000", "-"),
    ("#7f2704", (0, (6, 2))),
    ("#2171b5", (0, (1, 1.2))),
    ("#41ab5d", (0, (6, 2, 1, 2))),
    ("#e6a532", (0, (3, 1.2))),
    ("#a8d3ea", "-"),
]
"""Colour and dashes of the first, second, ... curve of a panel, from dark to light."""
_HATCHES = ("", "///", "...", "xxx", "|||", "ooo")
_STYLE: dict[str, Any] = {
    "font.size": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.titlesize": 9,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "svg.hashsalt": "truerank",
    "pdf.fonttype": 42,
}


P = ParamSpec("P")
Drawn = TypeVar("Drawn")


def check_matplotlib() -> None:
    """Raise `InputError` if matplotlib is not installed."""
    if find_spec("matplotlib") is None:
        raise InputError("figures need matplotlib, which truerank's extra 'plots' installs.")


def styled(draw: Callable[P, Drawn]) -> Callable[P, Drawn]:
    """Make a function draw in the style of this module, whatever the user's settings."""

    @wraps(draw)
    def drawn(*args: P.args, **options: P.kwargs) -> Drawn:
        check_matplotlib()
        import matplotlib.style

        with matplotlib.style.context(["default", _STYLE]):
            return draw(*args, **options)

    return drawn


def panels(count: int, *, columns: int = 2) -> tuple[Figure, list[Axes]]:
    """Return a figure as wide as a page, and its panels in reading order."""
    from matplotlib.figure import Figure

    rows = -(-count // columns)
    figure = Figure(figsize=(7.0, 2.6 * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False).ravel().tolist()


def curves(axes: Axes, x: AnyArray | Sequence[float], lines: Mapping[str, AnyArray]) -> None:
    """Draw one line per name, styled by `LOOKS`."""
    _check_count("curves", lines, len(LOOKS))
    for (colour, dashes), (name, y) in zip(LOOKS, lines.items(), strict=False):
        axes.plot(x, y, color=colour, linestyle=dashes, label=name)


def bars(axes: Axes, groups: Sequence[str], heights: Mapping[str, AnyArray]) -> None:
    """Draw a group of adjacent bars for each entry of `groups`, one bar per name."""
    _check_count("bars", heights, len(_HATCHES))
    width = 0.8 / len(heights)
    for number, ((colour, _), (name, height)) in enumerate(
        zip(LOOKS[::2] + LOOKS[1::2], heights.items(), strict=False)
    ):
        at = np.arange(len(groups)) + (number - (len(heights) - 1) / 2) * width
        face = colour if number == 0 else "white"
        axes.bar(at, height, width, facecolor=face, edgecolor=colour, hatch=_HATCHES[number], label=name)
    axes.set_xticks(range(len(groups)), groups)


def _check_count(name: str, given: Mapping[str, AnyArray], most: int) -> None:
    if len(given) > most:
        raise InputError(f"a panel holds at most {most} {name} that can be told apart in greyscale, got {len(given)}.")


def mark(axes: Axes, x: float, text: str, *, words_left: bool) -> None:
    """Draw a vertical line with a label at its foot."""
    axes.axvline(x, color="0.5", linewidth=0.8, linestyle=":")
    axes.annotate(
        text,
        (x, 0),
        (-3 if words_left else 3, 3),
        xycoords=("data", "axes fraction"),
        textcoords="offset points",
        ha="right" if words_left else "left",
    )


@styled
def save(figure: Figure, folder: str | Path, name: str, formats: Sequence[str] = ("svg",)) -> list[Path]:
    """Write a figure into a directory, once per format; the same figure gives the same bytes."""
    unknown = [form for form in formats if form not in FORMATS]
    if unknown:
        raise InputError(f"the format of a figure must be one of {', '.join(FORMATS)}, got {unknown[0]!r}.")
    make_folder(folder)
    paths = [Path(folder) / f"{name}.{form}" for form in formats]
    undated: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}
    for path, form in zip(paths, formats, strict=True):
        with replacing(path) as (file,):
            figure.savefig(file, format=form, dpi=200, metadata=undated[form])
    return paths
