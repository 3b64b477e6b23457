"""What commands print and write: results on standard output, notes on standard error."""

from __future__ import annotations

import dataclasses
import io
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TextIO

import click

from truerank.cli.wording import in_options

if TYPE_CHECKING:
    from truerank.analysis.plans import Plan
    from truerank.evaluation.comparisons import Comparison
    from truerank.evaluation.estimate_tables import Evaluation
    from truerank.lists.recommendations import Recommendations
    from truerank.ranking.ranks import Ranks

STANDARD_OUTPUT = ("-", "/dev/stdout")


def buffered(stream: TextIO) -> TextIO:
    """Return a text stream that writes everything or raises.

    An unbuffered one, as standard output is with PYTHONUNBUFFERED, ignores that the system took a part only.
    """
    raw = getattr(stream, "buffer", None)
    if not isinstance(raw, io.RawIOBase):
        return stream
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, stream.errors, line_buffering=True)


def on_one_line(text: str) -> str:
    r"""Return a message that may quote a file, with line breaks and control characters escaped.

    Examples
    --------
    >>> print(on_one_line("there is no column 'rank\n\x1b[2J' in 'größe.csv'."))
    there is no column 'rank\n\x1b[2J' in 'größe.csv'.
    """
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        click.echo(f"note: {on_one_line(_for_command(note))}", err=True)


def _for_command(note: str) -> str:
    """Return a note that refers to the options of the running command instead of arguments."""
    context = click.get_current_context(silent=True)
    return note if context is None else in_options(note, context.command.params)


def show_table(table: Evaluation | Comparison | Plan, form: str, *, aside: bool = False) -> None:
    """Print a table; its notes are part of the readable form, and go to standard error beside the others.

    `aside` means that standard output is used for something else.
    """
    worded = dataclasses.replace(table, notes=tuple(map(_for_command, table.notes)))
    if form == "table":
        click.echo(str(worded), err=aside)
    else:
        click.echo(getattr(worded, f"to_{form}")(), err=aside)
        show_notes(worded.notes)


def describe_and_write(result: Ranks | Recommendations, path: str, write: Callable[[str], object]) -> None:
    """Print a description of a result and write it; the description is printed even if writing fails."""
    aside = path in STANDARD_OUTPUT
    click.echo(str(result), err=aside)
    show_notes(result.notes)
    write(path)
    if not aside:
        click.echo(f"written to {path!r}")


def write_values(path: str, ranks: Mapping[str, Ranks], metrics: Iterable[Any], **options: Any) -> None:
    """Write the values of each instance: a column per metric, and one for the recommender if there are several."""
    import numpy as np

    from truerank.evaluation.per_instance import values
    from truerank.formats.writing import write_columns

    ids = [range(len(one)) if one.ids is None else one.ids.tolist() for one in ranks.values()]
    names = np.repeat(list(ranks), [len(one) for one in ranks.values()])
    columns: dict[str, Any] = {"recommender": names} if len(ranks) > 1 else {}
    columns["instance"] = [name for part in ids for name in part]
    for metric in metrics:
        columns[str(metric)] = np.concatenate([values(one, metric, **options) for one in ranks.values()])
    write_columns(path, columns)
