"""Options that several commands share, and what they read."""

from __future__ import annotations

import dataclasses
import math
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import wraps
from importlib import import_module
from itertools import pairwise
from pathlib import Path
from typing import Any

import click

import truerank as tr

STANDARD_INPUT = "-"


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """Return paths by name, from NAME=PATH or from a path alone, which is named after its file.

    If a file is called NAME=PATH and none is called PATH, the text is a path.

    Examples
    --------
    >>> named_paths(["als=runs/1.parquet", "runs/bpr.csv.gz"])
    {'als': 'runs/1.parquet', 'bpr': 'runs/bpr.csv.gz'}
    >>> named_paths(["./k=64.npz"])
    {'k=64': './k=64.npz'}
    """
    paths: dict[str, str] = {}
    for name, path in map(_named, texts):
        if name in paths:
            first = f"{paths[name]!r} and {path!r}"
            raise tr.InputError(f"{first} are both named {name!r}; give each its own name, as in NAME={path}.")
        paths[name] = path
    if list(paths.values()).count(STANDARD_INPUT) > 1:
        raise tr.InputError("only one file can be standard input (-).")
    return paths


def _named(text: str) -> tuple[str, str]:
    """Split NAME=PATH; an = after a slash, or in the name of an existing file, belongs to the path."""
    name, found, path = text.partition("=")
    if not found or "/" in name or (Path(text).exists() and not Path(path).exists()):
        return _stem(text), text
    if not name or not path:
        raise tr.InputError(f"a file is given as PATH, or as NAME=PATH, got {text!r}.")
    if Path(text).exists():
        raise tr.InputError(f"there are files {text!r} and {path!r}; write './{text}' or '{name}=./{path}'.")
    return name, path


def read_all(sources: Mapping[str, str], columns: Mapping[str, str] = {}, **options: Any) -> dict[str, tr.Ranks]:
    """Return the ranks in files by name; the columns are those that --column names."""
    roles = by_role(columns, "user", "rank", "relevance", "m", "n")
    return {name: tr.read_ranks(path, **roles, **options) for name, path in sources.items()}


def check_output(output: str | None, *inputs: str | None) -> None:
    """Refuse to write over a file that is read, whatever it is called; call it before any work."""
    from truerank.formats.writing import is_stream

    if output is None or is_stream(output):
        return
    for path in filter(None, inputs):
        if _same_file(output, path):
            raise tr.InputError(f"the output {output!r} is also read, as {path!r}; write to another file.")


@contextmanager
def resuming(output: str, resume: bool) -> Iterator[str | None]:
    """Yield the directory beside an output that keeps finished parts; it is removed once the output is written."""
    from truerank.formats.writing import is_stream

    if resume and is_stream(output):
        raise tr.InputError("--resume needs a file as --output, beside which finished parts are kept.")
    folder = f"{output}.checkpoint" if resume else None
    yield folder
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


resume_option = click.option(
    "--resume",
    is_flag=True,
    help="Keep finished parts in OUT.checkpoint until OUT is written, and continue with those of an earlier run.",
)


def _same_file(a: str, b: str) -> bool:
    with suppress(OSError, ValueError):  # one of them does not exist
        return Path(a).samefile(b)
    return False


def _stem(path: str) -> str:
    return "recommender" if path == STANDARD_INPUT else Path(path.removesuffix(".gz")).stem or path


def _read_id_columns(path: str, contents: str, roles: tuple[str, ...]) -> Any:
    """Return a table with ids of users in the first column, and what else the file says about them."""
    from truerank.formats.arrow_tables import open_source
    from truerank.formats.columns import INTERACTIONS, Contents, some
    from truerank.formats.rows import load_opened

    columns = dict(zip(roles, range(len(roles)), strict=True))
    usual = {"user": INTERACTIONS.roles["user"], "group": ("group", "segment", "cohort", "class", "kind")}
    own = {role: usual[role] for role in roles}
    hint = f"give it a first line with the name{'s' if len(roles) > 1 else ''} {' and '.join(roles)}"
    about = Contents(contents, own, roles[-1], {len(roles): roles}, needed=roles, header_hint=hint)
    opened = open_source(path, about, columns, None)
    if len(opened.names) != len(roles):
        needed = "two columns, ids and names of groups" if len(roles) > 1 else "one column, ids of users"
        raise tr.InputError(f"{path!r} must have {needed}, got {some(opened.names)}.")
    return load_opened(opened, about, columns).table


def read_groups(path: str | None) -> tr.Groups | None:
    """Return the groups in a file whose first column holds ids of instances and whose second one names of groups."""
    return None if path is None else tr.by_column(_read_id_columns(path, "groups", ("user", "group")))


_GROUPS = {"activity": "by_activity", "popularity": "by_popularity"}
"""Groups that a split determines, and the function that makes them."""


@dataclass(frozen=True)
class Inputs:
    """What commands read besides the files of the recommenders: the truth, the users who count, and their groups."""

    truth: str | None
    depth: Any
    users: str | None
    by: str | None
    split: str | None
    train: str | None
    columns: dict[str, str]
    formats: dict[str, str]

    @property
    def paths(self) -> list[str]:
        """The files among them, which no output may overwrite."""
        by = None if self.by in _GROUPS else self.by
        return [path for path in (self.truth, self.users, by, self.train) if path]

    def ranks(self, sources: Mapping[str, str], **how: Any) -> dict[str, tr.Ranks]:
        """Return the ranks in files, or those of the relevant items in ranked lists, of the chosen users."""
        return self._of_users(self._plain_ranks(sources) if self.truth is None else self._ranked_lists(sources, **how))

    def sampled(self, sources: Mapping[str, str]) -> dict[str, tr.Ranks]:
        """Return sampled ranks in files, of the chosen users."""
        return self._of_users(read_all(sources))

    def recommended(self, sources: Mapping[str, str], split: tr.Split | None) -> dict[str, tr.Recommendations]:
        """Return recommended lists in files, of the chosen users; the catalogue is that of the split."""
        train = None if split is None else split.train
        roles = ("user", "item", "score", "rank") if self.truth else ()  # otherwise --column is about ranks
        named: dict[str, Any] = {role: self.columns[role] for role in roles if role in self.columns}
        found = {name: tr.read_recommendations(path, train, **named) for name, path in sources.items()}
        if self.users is None:
            return found
        return {name: self._of_chosen(name, one, one.user_ids, one.keep) for name, one in found.items()}

    def groups(self, ranks: Mapping[str, tr.Ranks], *, uses_split: bool = False) -> tr.Groups | None:
        """Return the groups to show separately; the split is refused if nothing uses it."""
        if self.by not in _GROUPS:
            if (self.split or self.train) and not uses_split:
                option = "--split" if self.split else "--train"
                raise tr.InputError(f"{option} applies only to --by activity and --by popularity.")
            return read_groups(self.by)
        split = self.data(ranks)
        if split is None:
            raise tr.InputError(f"--by {self.by} needs the training events: give --split or --train.")
        groups: tr.Groups = getattr(tr, _GROUPS[self.by])(split)
        return groups

    def data(self, ranks: Mapping[str, tr.Ranks]) -> tr.Split | None:
        """Return the split that the ranks are about, if it is known."""
        if self.split is not None:
            return tr.read_split(self.split)
        if self.train is None:
            return None
        import numpy as np

        one = next(iter(ranks.values()))
        if one.items is None or one.ids is None:
            raise tr.InputError("--train needs ranks that name users and items, as those of lists do; give --split.")
        held = {"user": np.repeat(one.ids, one.n_relevant), "item": one.items}
        return tr.read_split(self.train, held)

    def _ranked_lists(self, sources: Mapping[str, str], **how: Any) -> dict[str, tr.Ranks]:
        if self.truth == STANDARD_INPUT and (len(sources) > 1 or STANDARD_INPUT in sources.values()):
            raise tr.InputError("--truth can be standard input only with a single run, which is a file.")
        how |= by_role(self.columns, "user", "item", "score", "rank", "relevance")
        how |= {f"{source}_format": form for source, form in self.formats.items()}
        return {name: tr.read_lists(path, self.truth, depth=self.depth, **how) for name, path in sources.items()}

    def _plain_ranks(self, sources: Mapping[str, str]) -> dict[str, tr.Ranks]:
        for option, given in {"--depth": self.depth, "--format-of": self.formats}.items():
            if given:
                raise tr.InputError(f"{option} applies only to ranked lists, which need --truth.")
        return read_all(sources, self.columns)

    def _of_users(self, ranks: dict[str, tr.Ranks]) -> dict[str, tr.Ranks]:
        if self.users is None:
            return ranks
        return {name: self._of_chosen(name, one, one.ids, one.__getitem__) for name, one in ranks.items()}

    def _of_chosen(self, name: str, given: Any, ids: Any, keep: Callable[[Any], Any]) -> Any:
        """Return what is about the users who count, whether ids are text or numbers, with a note on missing users."""
        import numpy as np

        from truerank.core.checks import counted

        wanted = {str(user) for user in _read_id_columns(str(self.users), "users", ("user",))["user"].to_pylist()}
        own = (np.arange(len(given)) if ids is None else ids).astype(np.str_)
        chosen = np.isin(own, list(wanted))
        if not chosen.any():
            raise tr.InputError(f"no user of {name!r} is in {self.users!r}, which has {min(wanted)!r} for example.")
        kept, missing = keep(chosen), len(wanted.difference(own.tolist()))
        verbs = (f"of {len(wanted)} users in {self.users!r} {verb} not in the results" for verb in ("is", "are"))
        return dataclasses.replace(kept, notes=(*kept.notes, counted(missing, *verbs))) if missing else kept


def _read_depth(_ctx: click.Context, param: click.Parameter, text: str | None) -> int | str | None:
    return text if text in (None, "all") else read_whole(text, param, also=", or 'all'")


def reads_inputs(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give a command the options that `Inputs` holds, which it takes as its argument `inputs`."""

    @wraps(command)
    def run(**given: Any) -> Any:
        own = {field.name: given.pop(field.name) for field in dataclasses.fields(Inputs)}
        return command(inputs=Inputs(**own), **given)

    decorated: Callable[..., Any] = run
    for option in reversed(_INPUTS):
        decorated = option(decorated)
    return decorated


def noted(table: tr.Evaluation, ranks: Mapping[str, tr.Ranks]) -> tr.Evaluation:
    """Return a table with a note if its recommenders are about different instances."""
    difference = different_instances(ranks)
    if difference is None:
        return table
    note = f"the rows are about different instances and can't be compared: {difference}"
    return dataclasses.replace(table, notes=(*table.notes, note))


def different_instances(ranks: Mapping[str, tr.Ranks]) -> str | None:
    """Return a sentence on the first two recommenders that are about different instances, None if all agree."""
    return next(filter(None, (_difference(*pair) for pair in pairwise(ranks.items()))), None)


def _difference(a: tuple[str, tr.Ranks], b: tuple[str, tr.Ranks]) -> str | None:
    (name_a, ranks_a), (name_b, ranks_b) = a, b
    if ranks_a.ids is None or ranks_b.ids is None:
        if len(ranks_a) == len(ranks_b):
            return None
        return f"{name_a!r} has {len(ranks_a)} instances, {name_b!r} has {len(ranks_b)}"
    ids_a, ids_b = ranks_a.ids.tolist(), ranks_b.ids.tolist()
    if ids_a == ids_b:
        return None
    ids = {name_a: set(map(str, ids_a)), name_b: set(map(str, ids_b))}
    for one, other in ((name_a, name_b), (name_b, name_a)):
        if only := ids[one] - ids[other]:
            return f"{len(only)} of {one!r} are not in {other!r}, for instance {min(only)!r}"
    return None


FORMATS = ("table", "csv", "tsv", "json", "latex", "markdown", "html")
TEXT_FORMATS = ("csv", "csv-header", "csv-no-header", "movielens", "trec")

LARGEST = 10**12
"""Largest number that an option takes, unless it says otherwise."""

Callback = Callable[[click.Context, click.Parameter, Any], Any]
"""What click calls with the text of an option."""
Decorator = Callable[[Callable[..., Any]], Callable[..., Any]]

_LONGEST = 1_000
_NUMBER = re.compile(r"[-+]?([0-9]{1,300}(\.[0-9]{0,300})?|\.[0-9]{1,300})([eE][-+]?[0-9]{1,3})?")
# outside parentheses and before a name: the comma of marp@5,10 stands before a digit
_BETWEEN_METRICS = re.compile(r",\s*(?=[a-z])(?![^(]*\))", re.IGNORECASE)


def _read_number(text: str, param: click.Parameter, smallest: float, largest: float, strictly: bool) -> float:
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if smallest <= value <= largest and math.isfinite(value) and not (strictly and value in (smallest, largest)):
        return value
    bounds = f" from {smallest:g}" if largest == math.inf else f" between {smallest:g} and {largest:g}"
    allowed = "a finite number" if smallest == -math.inf else f"a number{bounds}"
    raise tr.InputError(f"{option_name(param)} must be {allowed}, got {shortened(text)}.")


def read_whole(text: str, param: click.Parameter, smallest: int = 1, largest: int = LARGEST, *, also: str = "") -> int:
    """Return a text as a number, or raise `InputError`; `also` states what else is allowed.

    Examples
    --------
    >>> read_whole("-1", click.Option(["--seed"]), smallest=0, largest=9)
    Traceback (most recent call last):
    ...
    truerank.InputError: --seed must be a whole number from 0 to 9, got '-1'.
    """
    if re.fullmatch("[0-9]{1,18}", text) and smallest <= int(text) <= largest:
        return int(text)
    allowed = f"a whole number from {smallest:,} to {largest:,}{also}"
    raise tr.InputError(f"{option_name(param)} must be {allowed}, got {shortened(text)}.")


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
            raise tr.InputError(f"--metric takes up to {_LONGEST:,} characters at once, got {len(text):,}.")
    return tuple(part for text in texts for part in _BETWEEN_METRICS.split(text))


def _read_columns(_ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
    columns: dict[str, str] = {}
    for pair in pairs:
        role, found, column = pair.partition("=")
        if not (role and found and column):
            raise tr.InputError(f"{option_name(param)} takes ROLE=NAME, as in user=customer, got {shortened(pair)}.")
        if role in columns:
            both = f"{shortened(columns[role])} and {shortened(column)}"
            raise tr.InputError(f"{option_name(param)} gives the {role} two columns, {both}.")
        columns[role] = column
    return columns


def by_role(columns: Mapping[str, str], *roles: str) -> dict[str, Any]:
    """Return the columns as keywords of a reader, which has these roles."""
    for role in columns:
        if role not in roles:
            raise tr.InputError(f"--column has no role {shortened(role)}; choose from {', '.join(roles)}.")
    return dict(columns)


def _read_minima(_ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, float]:
    minima: dict[str, float] = {}
    for pair in pairs:
        metric, found, least = pair.rpartition("=")
        if not (metric and found and least):
            raise tr.InputError(f"{option_name(param)} takes METRIC=X, as in ndcg@10=0.05, got {shortened(pair)}.")
        minima[metric] = _read_number(least, param, -math.inf, math.inf, False)
    return minima


@dataclass(frozen=True)
class Margins:
    """The loss that a gate accepts: in general, and for some metrics; a share is relative to the measured old mean."""

    given: dict[str, tuple[float, bool]]
    """Number and whether it is a share, by metric; the general one has no name."""

    def check(self, metrics: Sequence[str]) -> None:
        """Refuse a margin for a metric that is not evaluated, and a metric without a margin."""
        named = [str(tr.metric(each)) for each in metrics]
        for name in self.given:
            if name and name not in named:
                raise tr.InputError(f"--margin names {name}, which is not among the metrics {', '.join(named)}.")
        for name in named:
            if "" not in self.given and name not in self.given:
                raise tr.InputError(f"--margin has no number for {name}; give it as in --margin {name}=0.002.")

    def of(self, metric: str, mean: float) -> float:
        """Return the margin of a metric with this old mean; that of a plain metric also applies to its estimators."""
        names = (metric, metric.partition("~")[0], "")
        number, is_share = next(self.given[name] for name in names if name in self.given)
        return number * abs(mean) if is_share else number


def _read_margins(_ctx: click.Context, param: click.Parameter, texts: tuple[str, ...]) -> Margins:
    margins: dict[str, tuple[float, bool]] = {}
    for text in texts:
        name, _, number = text.rpartition("=")
        metric, share = str(tr.metric(name)) if name else "", number.endswith("%")
        if metric in margins:
            raise tr.InputError(f"{option_name(param)} is given twice{f' for {metric}' if metric else ''}.")
        value = _read_number(number.removesuffix("%"), param, 0.0, math.inf, False)
        margins[metric] = (value / 100 if share else value, share)
    return Margins(margins)


margins_option = click.option(
    "--margin", "margins", metavar="[METRIC=]X[%]", multiple=True, required=True, callback=_read_margins,
    help="Smallest unacceptable loss, e.g. 0.002, or 1% of the old mean; with 0, the new one must be better. May be "
    "repeated, for metrics with a margin of their own.",
)  # fmt: skip


def _complete_metric(_ctx: click.Context, _param: click.Parameter, incomplete: str) -> list[str]:
    from truerank.metrics.definitions import METRICS

    return [name for name in METRICS.names if name.startswith(incomplete.lower())]


def writable(module: str | None = None, endings: str = "ENDINGS") -> Callback:
    """Return a callback that checks whether a path can be written, with one of the endings that a module names."""

    def check(path: str) -> str:
        from truerank.formats.writing import check_writable

        check_writable(path, getattr(import_module(f"truerank.{module}"), endings) if module else ())
        return path

    return _reading(check)


def _reading(read: Callable[[Any], Any]) -> Callback:
    """Return a callback that reads what is given, whatever the option."""
    return lambda _ctx, _param, given: None if given is None else read(given)


def sources_argument(what: str, *, required: bool = True) -> Decorator:
    """Return the argument for files, each of which may have a name before it."""
    files = f"[NAME=]{what}..."
    shown = files if required else f"[{files}]"
    return click.argument("sources", metavar=shown, nargs=-1, required=required, callback=_reading(named_paths))


def sources_option(name: str, parameter: str, what: str, text: str) -> Decorator:
    """Return an option for files of some of the recommenders, each named after its recommender; it may be repeated."""
    return click.option(
        name, parameter, metavar=f"[NAME=]{what}", multiple=True, callback=_reading(named_paths),
        help=f"{text} May be repeated, with the NAME of each recommender.",
    )  # fmt: skip


def path_option(*names: str, **settings: Any) -> Decorator:
    """Return an option that takes a path."""
    return click.option(*names, **{"metavar": "FILE", "type": click.Path(), **settings})


def output_option(endings: str, *names: str, callback: Callback | None = None, more: str = "") -> Decorator:
    """Return the option for the file that a command writes."""
    text = f"The {endings} file to write; - is standard output{more}."
    return path_option("-o", "--output", *names, metavar="OUT", required=True, callback=callback, help=text)


def choice_option(name: str, choices: Sequence[str], text: str, **settings: Any) -> Decorator:
    """Return an option that takes one of several words, by default the first."""
    kind = click.Choice(choices)
    return click.option(name, **{"type": kind, "default": choices[0], "show_default": True, "help": text, **settings})


def metrics_option(
    text: str = "For instance ndcg@10, or 'ndcg@10~bv(0.1)' on sampled ranks.{repeated}", *, required: bool = True
) -> Decorator:
    """Return the option for metrics, which may be repeated."""
    return click.option(
        "-m", "--metric", "metrics", metavar="METRIC", multiple=True, required=required,
        callback=_reading(split_metrics), shell_complete=_complete_metric,
        help=text.format(repeated=" May be repeated, or hold several metrics separated by commas."),
    )  # fmt: skip


def whole_option(*names: str, smallest: int = 1, largest: int = LARGEST, **settings: Any) -> Decorator:
    """Return an option that takes a whole number within bounds, in ordinary digits."""

    def read(_ctx: click.Context, param: click.Parameter, text: str | None) -> int | None:
        return None if text is None else read_whole(text, param, smallest, largest)

    return click.option(*names, **{"metavar": "N", "callback": read, **settings})


def number_option(*names: str, between: tuple[float, float] | None = None, **settings: Any) -> Decorator:
    """Return an option that takes a number of at least 0, or one strictly between two bounds, which has a default."""

    def read(_ctx: click.Context, param: click.Parameter, text: str | None) -> float | None:
        return None if text is None else _read_number(text, param, *(between or (0.0, math.inf)), between is not None)

    return click.option(*names, **{"metavar": "X", "callback": read, "show_default": between is not None, **settings})


def factors_option(more: str = "", *, required: bool = False) -> Decorator:
    """Return the option for two files of factors; `more` is what else they may be."""
    text = f"Factors of the users and of the items, one row each{more}."
    return path_option("--factors", nargs=2, metavar="USERS.npy ITEMS.npy", required=required, help=text)


def seed_option(what: str) -> Decorator:
    """Return the option for the seed of what is random."""
    return whole_option("--seed", "rng", smallest=0, largest=10**18 - 1, help=f"Seed of {what}.")


names_option = path_option(
    "--names", nargs=2, metavar="USERS.txt ITEMS.txt",
    help="A name per row of the factors, one per line; users and items in the files of pairs are then these names.",
)  # fmt: skip
model_option = path_option("--model", metavar="MODEL.npz", help="A model saved by truerank, instead of factors.")


def read_names(path: str, n: int) -> list[str]:
    """Return the names in a file, one per line, of which there must be n."""
    from truerank.formats.sources import locate, unreadable

    file = locate(path)
    with unreadable(str(file)):
        content = file.read()
    try:
        names = content.decode().splitlines()
    except UnicodeDecodeError as error:
        raise tr.InputError(f"{path!r} must be a text file in UTF-8, with one name per line.") from error
    if len(names) != n:
        raise tr.InputError(f"{path!r} must have a name for each of the {n} rows of the factors, got {len(names)}.")
    if len(set(names)) != n:
        twice = next(name for name in names if names.count(name) > 1)
        raise tr.InputError(f"{path!r} must have a different name on each line, got {shortened(twice)} twice.")
    return names


metric_option = click.option(
    "-m", "--metric", metavar="METRIC", required=True, shell_complete=_complete_metric, help="For instance ndcg@10."
)
assume_option = choice_option(
    "--assume",
    ["nothing", "falling", "smooth"],
    "What intervals of the exact metric may assume about the top tenth of the candidates; falling: a deeper rank is "
    "never more likely; smooth: in addition, a rank twice as deep is at least a quarter as likely.",
)
columns_option = click.option(
    "-c", "--column", "columns", multiple=True, callback=_read_columns, metavar="ROLE=NAME",
    help="Name a column, e.g. user=customer. May be repeated.",
)  # fmt: skip


def formats_option(*sources: str) -> Decorator:
    """Return the option for the formats of text files whose content does not determine them."""

    def read(_ctx: click.Context, param: click.Parameter, pairs: tuple[str, ...]) -> dict[str, str]:
        formats: dict[str, str] = {}
        for pair in pairs:
            source, _, form = pair.partition("=")
            if source not in sources or form not in TEXT_FORMATS or source in formats:
                allowed = f"{' or '.join(sources)} with one of {', '.join(TEXT_FORMATS)}, as in {sources[-1]}=trec"
                raise tr.InputError(f"{option_name(param)} takes {allowed}, each once, got {shortened(pair)}.")
            formats[source] = form
        return formats

    kinds = f"{' or '.join(sources)}) where its content fits two: {', '.join(TEXT_FORMATS)}"
    return click.option(
        "--format-of", "formats", multiple=True, callback=read, metavar="FILE=FORMAT",
        help=f"Format of a text file ({kinds}.",
    )  # fmt: skip


def candidates_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the options for what may be recommended."""
    forms = "a column of items, and of users or times (since, until); or a user, a tab and items on each line"
    for option in (
        choice_option("--unknown", ["refuse", "last", "drop"], "What to do with items and users that a model lacks."),
        path_option("--exclude", help="Items that are not candidates, in the same forms."),
        path_option("--candidates", help=f"Which items are candidates: {forms}."),
    ):
        command = option(command)
    return command


ranks_output_option = output_option(".parquet or .npz", callback=writable("formats.rank_files"))
page_option = output_option(".html", "path", callback=writable("formats.writing", "PAGE_ENDINGS"))
per_instance_option = path_option(
    "--per-instance",
    metavar="OUT",
    callback=writable("formats.writing", "COLUMN_ENDINGS"),
    help="Also write the values of each instance to a .csv, .tsv, .jsonl or .parquet file.",
)
groups_option = path_option("--by", help="Show groups separately: a file with ids of instances and names of groups.")
_INPUTS = (
    path_option(
        "-t", "--truth", metavar="QRELS",
        help="The relevant items, if the files hold ranked lists; - is standard input.",
    ),
    click.option(
        "--depth", metavar="N|all", callback=_read_depth,
        help="Where the lists were cut (default: the longest list), or 'all' if they hold every candidate.",
    ),
    path_option("--users", help="Count only the users in this file: a column of ids called user."),
    path_option(
        "--by", metavar="GROUPS",
        help="Show groups separately: activity (of users), popularity (of the relevant items), or a file with ids of "
        "instances and names of groups.",
    ),
    path_option(
        "--split", metavar="DIR",
        help="What the ranks are about, a directory with train and test files, for --by activity and popularity.",
    ),
    path_option("--train", help="Training pairs (user_id, item_id), instead of --split."),
    columns_option,
    formats_option("run", "truth"),
)  # fmt: skip
test_option = choice_option(
    "--test", ["likelihood", "t", "bootstrap", "randomisation", "anytime"], "How differences are tested."
)
level_option = number_option("--level", default="0.95", between=(0.0, 1.0), help="Confidence level.")
unmatched_option = choice_option("--unmatched", ["refuse", "drop"], "What to do with instances that only some have.")
minimum_option = click.option(
    "--min", "minima", multiple=True, callback=_read_minima, metavar="METRIC=X",
    help="Exit with code 1 if the mean of a metric is below X. May be repeated.",
)  # fmt: skip
threads_option = whole_option("--threads", largest=1_024, help="Threads to use (default: one per processor).")
bias_option = path_option("--bias", metavar="BIAS.npy", help="One number per item, added to its scores.")
format_option = click.option(
    "-f", "--format", "form", type=click.Choice(FORMATS), default="table", show_default=True, help="Output format."
)
