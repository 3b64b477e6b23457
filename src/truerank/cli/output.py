"""What commands print, in terms of their own options."""

from __future__ import annotations

import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Any, TextIO, cast

import click

import truerank as tr

if TYPE_CHECKING:
    from truerank.core.tables import Tabular

_VALUE = r"'(?P<text>[^']*)'|(?P<flag>True|False)|\{'(?P<key>\w+)': \.\.\.\}"
_ARGUMENT = re.compile(rf"`(?P<name>\w+)`|\b(?P<set>\w+)=(?:{_VALUE})")

_FLAGS = {"True": "csv-header", "False": "csv-no-header"}


def in_options(message: str, parameters: Sequence[click.Parameter]) -> str:
    """Replace arguments, which messages write as `name`, name='text' or name={'key': ...}, by options.

    The parameters of a command's function have the names of the library's arguments. Arguments for which the
    command has no option are left unchanged.

    Examples
    --------
    >>> names = ["--sampled", "m"], ["--depth"], ["-c", "--column", "columns"]
    >>> options = [click.Option(name) for name in names]
    >>> in_options("`m` must be a whole number from 1, got 0; `rank` is fine.", options)
    '--sampled must be a whole number from 1, got 0; `rank` is fine.'
    >>> in_options("with depth='all' each list holds every candidate.", options)
    'with --depth all each list holds every candidate.'
    >>> in_options("name it with columns={'user': ...}.", options)
    'name it with --column user=NAME.'
    >>> in_options("name its column with rank='...'.", options)
    'name its column with --column rank=NAME.'
    >>> in_options("give truth_format='trec'.", [click.Option(["--format-of", "formats"])])
    'give --format-of truth=trec.'
    >>> in_options("give format='csv'.", [click.Option(["--format-of", "formats"])])
    'give --format-of FILE=csv.'
    >>> in_options("give run_header=False.", [click.Option(["--format-of", "formats"])])
    'give --format-of run=csv-no-header.'
    """
    options = {each.name: max(each.opts, key=len) for each in parameters if isinstance(each, click.Option)}

    def replaced(found: re.Match[str]) -> str:
        name = found["name"] or found["set"]
        if found["flag"] and name.endswith("header"):
            name = name.removesuffix("header") + "format"
        form = _FLAGS.get(found["flag"], found["text"])
        if name.endswith("format") and "formats" in options and form:
            file = name.removesuffix("format").removesuffix("_") or "FILE"
            return f"{options['formats']} {file}={form}"
        if found["text"] == "..." and "columns" in options:
            return f"{options['columns']} {name}=NAME"
        option = options.get(name)
        if option is None or found["flag"]:
            return found[0]
        value = f"{found['key']}=NAME" if found["key"] else found["text"]
        return option if value is None else f"{option} {value}"

    return _ARGUMENT.sub(replaced, message)


STANDARD_OUTPUT = ("-", "/dev/stdout")


def buffered(stream: TextIO) -> TextIO:
    """Return a text stream that writes everything or raises.

    An unbuffered stream, as standard output is with PYTHONUNBUFFERED, ignores that the system wrote only a part.
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


_COLOURED = re.compile(
    r"(?P<yellow>^note:|^cannot tell|not determined(?: by this sample)?)"
    r"|(?P<green>^passes|(?<!\S)\S+ is (?:better|best))"
    r"|(?P<red>^fails|^truerank:)",
    re.MULTILINE,
)
"""Words that are coloured, by the name of their colour."""


def say(text: str, *, err: bool = False) -> None:
    """Print a text for people, in colour if the terminal has it; `click.echo` removes colours elsewhere."""
    click.echo(_COLOURED.sub(_coloured, text), err=err)


def _coloured(found: re.Match[str]) -> str:
    return click.style(found[0], found.lastgroup)


def width() -> int:
    """Return the width of the terminal, or the variable COLUMNS, or else 80."""
    return get_terminal_size().columns


def say_sentence(sentence: str, *, err: bool = False) -> None:
    """Print a sentence in lines that fit, broken between words."""
    from truerank.core.tables import wrapped  # which loads NumPy

    say(wrapped(sentence, width()), err=err)


def show_notes(notes: Iterable[str]) -> None:
    """Print notes on standard error."""
    for note in notes:
        say_sentence(f"note: {on_one_line(_for_command(note))}", err=True)


def _for_command(note: str) -> str:
    """Return a note that refers to the options of the running command instead of arguments."""
    context = click.get_current_context(silent=True)
    return note if context is None else in_options(note, context.command.params)


def show_table(result: Tabular[Any], form: str, *, aside: bool = False, conclusions: Iterable[str] = ()) -> None:
    """Print a result and its conclusions; notes are part of the readable form, and go to standard error with others.

    `aside` means that standard output is used for something else.
    """
    table = result.to_table()
    notes = tuple(map(_for_command, table.notes))
    if form == "table":
        say(replace(table, notes=notes).to_text(width()), err=aside)
    else:
        worded: Any = replace(cast("Any", result), notes=notes) if notes else result
        click.echo(getattr(worded, f"to_{form}")(), err=aside)
        show_notes((*table.conclusions, *notes))
    for sentence in conclusions:
        say_sentence(sentence, err=form != "table")


def describe_and_write(result: tr.Ranks | tr.Recommendations, path: str, write: Callable[[str], object]) -> None:
    """Print a description of a result and write it; the description is printed even if writing fails."""
    click.echo(str(result), err=path in STANDARD_OUTPUT)
    show_notes(result.notes)
    write(path)
    say_written(path)


def say_written(path: str) -> None:
    """Print where a result is, unless standard output is the result."""
    if path not in STANDARD_OUTPUT:
        click.echo(f"written to {path!r}")


def write_values(path: str, ranks: Mapping[str, tr.Ranks], metrics: Iterable[tr.Metric], **options: Any) -> None:
    """Write the values of each instance: a column per metric, and one for the recommender if there are several."""
    from truerank.formats.writing import write_columns

    given = ranks if len(ranks) > 1 else next(iter(ranks.values()))
    frame = tr.values_frame(given, metrics, backend="pyarrow", **options)
    names = ["instance" if name == "id" else name for name in frame.column_names]
    write_columns(path, dict(zip(names, frame.columns, strict=True)))
