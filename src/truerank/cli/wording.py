"""Messages about arguments of functions, in terms of the options of a command."""

from __future__ import annotations

import re
from collections.abc import Sequence

import click

_ARGUMENT = re.compile(
    r"`(?P<name>\w+)`|\b(?P<set>\w+)=(?:'(?P<text>[^']*)'|(?P<flag>True|False)|\{'(?P<key>\w+)': \.\.\.\})"
)

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
