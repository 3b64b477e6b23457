"""Options and arguments that several commands share, and how their texts are read."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Sequence
from typing import Any

import click

from truerank.cli.sources import named_paths
from truerank.corrections.assumptions import ASSUMPTIONS
from truerank.errors import InputError

FORMATS = ("table", "csv", "tsv", "json", "latex", "markdown", "html")
TEXT_FORMATS = ("csv", "csv-header", "csv-no-header", "movielens", "trec")

LARGEST = 10**12
"""Largest number that an option takes, unless it says otherwise."""

Callback = Callable[[click.Context, click.Parameter, Any], Any]
"""What click calls with the text of an option."""

_LONGEST = 1_000
_NUMBER = re.compile(r"[-+]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][-+]?[0-9]{1,3})?")
# outside parentheses and before a name: the comma of marp@5,10 stands before a digit
_BETWEEN_METRICS = re.compile(r",\s*(?=[a-z])(?![^(]*\))", re.IGNORECASE)


def whole(smallest: int = 1, largest: int = LARGEST) -> Callback:
    """Return a callback that reads a whole number within bounds, in ordinary digits."""

    def read(_ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
        return None if text is None else read_whole(text, param, smallest, largest)

    return read


def number(smallest: float, largest: float = math.inf, *, strictly: bool = False) -> Callback:
    """Return a callback that reads a number within bounds, which it may not equal if `strictly` is set."""

    def read(_ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
        return None if text is None else _read_number(text, param, smallest, largest, strictly)

    return read


def _read_number(text: str, param: click.Parameter, smallest: float, largest: float, strictly: bool) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if smallest <= value <= largest and math.isfinite(value) and not (strictly and value in (smallest, largest)):
        return value
    bounds = f"from {smallest:g}" if largest == math.inf else f"between {smallest:g} and {largest:g}"
    raise InputError(f"{option_name(param)} must be a number {bounds}, got {shortened(text)}.")


read_seed = whole(0, 10**18 - 1)


def read_whole(
    text: str, param: click.Parameter, smallest: int = 1, largest: int = LARGEST, otherwise: str = ""
) -> int:
    """Return the number that a text is, or raise `InputError`; `otherwise` states what else is allowed.

    Examples
    --------
    >>> read_whole("-1", click.Option(["--seed"]), smallest=0, largest=9)
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: --seed must be a whole number from 0 to 9, got '-1'.
    """
    if re.fullmatch("[0-9]{1,18}", text) and smallest <= int(text) <= largest:
        return int(text)
    allowed = f"a whole number from {smallest:,} to {largest:,}{otherwise}"
    raise InputError(f"{option_name(param)} must be {allowed}, got {shortened(text)}.")


def option_name(param: click.Parameter) -> str:
    """Return what to call an option in a message."""
    return max(param.opts, key=len)


def shortened(text: str) -> str:
    """Return a text as a message quotes it: its beginning, if it is long."""
    return repr(text if len(text) <= 60 else f"{text[:57]}...")


def split_metrics(texts: Sequence[str]) -> tuple[str, ...]:
    """Return single metrics from texts that may hold several, separated by commas.

    Examples
    --------
    >>> split_metrics(["ndcg@10,recall@10", "marp@5,10,dcg(exp)@5"])
    ('ndcg@10', 'recall@10', 'marp@5,10', 'dcg(exp)@5')
    """
    for text in texts:
        if len(text) > _LONGEST:
            raise InputError(f"--metric takes up to {_LONGEST:,} characters at once, got {len(text):,}.")
    return tuple(part for text in texts for part in _BETWEEN_METRICS.split(text))


def read_metrics(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> tuple[str, ...]:
    """Read metrics from an option that may be repeated."""
    return split_metrics(texts)


def _read_columns(_ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for pair in pairs:
        role, found, column = pair.partition("=")
        if not (role and found and column):
            raise InputError(f"{option_name(param)} takes ROLE=NAME, as in user=customer, got {shortened(pair)}.")
        if role in columns:
            both = f"{shortened(columns[role])} and {shortened(column)}"
            raise InputError(f"{option_name(param)} gives the {role} two columns, {both}.")
        columns[role] = column
    return columns


def by_role(columns: dict[str, str], *roles: str) -> dict[str, Any]:
    """Return the columns as keywords of a reader, which has these roles."""
    for role in columns:
        if role not in roles:
            raise InputError(f"--column has no role {shortened(role)}; choose from {', '.join(roles)}.")
    return dict(columns)


def _read_minima(_ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
    minima: dict[str, float] = {}
    for pair in pairs:
        metric, found, least = pair.rpartition("=")
        if not (metric and found and least):
            raise InputError(f"{option_name(param)} takes METRIC=X, as in ndcg@10=0.05, got {shortened(pair)}.")
        minima[metric] = _read_number(least, param, -math.inf, math.inf, False)
    return minima


def _read_sources(_ctx: click.Context, _param: click.Parameter, texts: tuple[str, ...]) -> dict[str, str]:
    return named_paths(texts)


def _complete_metric(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from truerank.metrics.registry import METRICS

    return [name for name in METRICS.names if name.startswith(incomplete.lower())]


def _check_ranks_path(_ctx: click.Context, _param: click.Parameter, path: str) -> str:
    from truerank.ranking.files import check_path

    check_path(path)
    return path


def _check_page_path(_ctx: click.Context, _param: click.Parameter, path: str) -> str:
    from truerank.formats.writing import PAGE_ENDINGS, check_writable

    check_writable(path, PAGE_ENDINGS)
    return path


def _check_values_path(_ctx: click.Context, _param: click.Parameter, path: str | None) -> str | None:
    from truerank.formats.writing import COLUMN_ENDINGS, check_writable

    if path is not None:
        check_writable(path, COLUMN_ENDINGS)
    return path


def sources_argument(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the argument for files, each of which may have a name before it."""
    return click.argument("sources", metavar=f"[NAME=]{what}...", nargs=-1, required=True, callback=_read_sources)


def optional_sources_argument(what: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the same for a command that needs no files."""
    return click.argument("sources", metavar=f"[[NAME=]{what}...]", nargs=-1, callback=_read_sources)


metric_option = click.option(
    "-m",
    "--metric",
    metavar="METRIC",
    required=True,
    shell_complete=_complete_metric,
    help="For instance ap or ndcg@10.",
)


def _metrics_option(**settings: Any) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    return click.option(
        "-m",
        "--metric",
        "metrics",
        metavar="METRIC",
        multiple=True,
        callback=read_metrics,
        shell_complete=_complete_metric,
        help="For instance ndcg@10, or 'ndcg@10~bv(0.1)' on sampled ranks. May be repeated, or hold several metrics "
        "separated by commas.",
        **settings,
    )


metrics_option = _metrics_option(required=True)
optional_metrics_option = _metrics_option()
assume_option = click.option(
    "--assume",
    type=click.Choice(ASSUMPTIONS),
    default="nothing",
    show_default=True,
    help="What intervals of the exact metric may assume of the top tenth of the candidates; falling: a deeper rank is "
    "never more likely; smooth: besides, a rank twice as deep is at least a quarter as likely.",
)
columns_option = click.option(
    "-c",
    "--column",
    "columns",
    multiple=True,
    callback=_read_columns,
    metavar="ROLE=NAME",
    help="Name a column, e.g. user=customer. May be repeated.",
)


def formats_option(*sources: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return the option for the formats of text files that can't be told from their content."""

    def read(_ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
        formats: dict[str, str] = {}
        for pair in pairs:
            source, _, form = pair.partition("=")
            if source not in sources or form not in TEXT_FORMATS or source in formats:
                allowed = f"{' or '.join(sources)} with one of {', '.join(TEXT_FORMATS)}, as in {sources[-1]}=trec"
                raise InputError(f"{option_name(param)} takes {allowed}, each once, got {shortened(pair)}.")
            formats[source] = form
        return formats

    return click.option(
        "--format-of",
        "formats",
        multiple=True,
        callback=read,
        metavar="FILE=FORMAT",
        help=f"Format of a text file ({' or '.join(sources)}) where its content fits two: {', '.join(TEXT_FORMATS)}.",
    )


output_option = click.option(
    "-o",
    "--output",
    metavar="OUT",
    required=True,
    type=click.Path(),
    callback=_check_ranks_path,
    help="The .parquet or .npz file to write; - is standard output.",
)
page_option = click.option(
    "-o",
    "--output",
    "path",
    metavar="OUT",
    required=True,
    type=click.Path(),
    callback=_check_page_path,
    help="The .html file to write; - is standard output.",
)
groups_option = click.option(
    "--by",
    metavar="FILE",
    type=click.Path(),
    help="Show groups separately: a table of the ids of instances and the names of their groups.",
)
test_option = click.option(
    "--test",
    type=click.Choice(["likelihood", "t", "bootstrap", "randomisation"]),
    default="likelihood",
    show_default=True,
    help="How differences are tested.",
)
level_option = click.option(
    "--level",
    metavar="X",
    default="0.95",
    show_default=True,
    callback=number(0.0, 1.0, strictly=True),
    help="Confidence level.",
)
unmatched_option = click.option(
    "--unmatched",
    type=click.Choice(["refuse", "drop"]),
    default="refuse",
    show_default=True,
    help="What to do with instances that only some of the recommenders have.",
)
minimum_option = click.option(
    "--min",
    "minima",
    multiple=True,
    callback=_read_minima,
    metavar="METRIC=X",
    help="Exit with code 1 if the mean of a metric is below X. May be repeated.",
)
per_instance_option = click.option(
    "--per-instance",
    metavar="OUT",
    type=click.Path(),
    callback=_check_values_path,
    help="Also write the values of each instance to a .csv, .tsv, .jsonl or .parquet file.",
)
format_option = click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="How to print."
)
