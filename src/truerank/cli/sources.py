"""Files of ranks given on the command line: their names, and whether they are about the same instances."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING

from truerank.errors import InputError

if TYPE_CHECKING:
    from truerank.evaluation.estimate_tables import Evaluation
    from truerank.evaluation.groups import Groups
    from truerank.ranking.ranks import Ranks

STANDARD_INPUT = "-"


def named_paths(texts: Sequence[str]) -> dict[str, str]:
    """Return paths by name, from NAME=PATH or from a path alone, which is named by its file.

    Where a file is called NAME=PATH, and there is none called PATH, it is that file.

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
            raise InputError(f"{first} are both named {name!r}; give each its own name, as in NAME={path}.")
        paths[name] = path
    if list(paths.values()).count(STANDARD_INPUT) > 1:
        raise InputError("only one file can be standard input (-).")
    return paths


def _named(text: str) -> tuple[str, str]:
    """Split NAME=PATH; an = after a slash, or in the name of an existing file, belongs to the path."""
    name, found, path = text.partition("=")
    if not found or "/" in name or (Path(text).exists() and not Path(path).exists()):
        return _stem(text), text
    if not name or not path:
        raise InputError(f"a file is given as PATH, or as NAME=PATH, got {text!r}.")
    if Path(text).exists():
        raise InputError(f"there are files {text!r} and {path!r}; write './{text}' or '{name}=./{path}'.")
    return name, path


def check_output(output: str | None, *inputs: str | None) -> None:
    """Refuse to write over a file that is read, whatever it is called; call it before any work."""
    from truerank.formats.writing import is_stream

    if output is None or is_stream(output):
        return
    for path in filter(None, inputs):
        if _same_file(output, path):
            raise InputError(f"the output {output!r} is also read, as {path!r}; write to another file.")


def _same_file(a: str, b: str) -> bool:
    with suppress(OSError, ValueError):  # one of them does not exist
        return Path(a).samefile(b)
    return False


def _stem(path: str) -> str:
    return "recommender" if path == STANDARD_INPUT else Path(path.removesuffix(".gz")).stem or path


def read_groups(path: str | None) -> Groups | None:
    """Return the groups in a file whose first column holds ids of instances and whose second one names of groups."""
    from truerank.evaluation.groups import by_column
    from truerank.formats.columns import INTERACTIONS, Contents
    from truerank.formats.rows import load_opened
    from truerank.formats.tables import open_source

    if path is None:
        return None
    roles, columns = ("user", "group"), {"user": 0, "group": 1}
    usual = {"user": INTERACTIONS.roles["user"], "group": ("group", "segment", "cohort", "class", "kind")}
    hint = "give it a first line with the names user and group"
    contents = Contents("groups", usual, roles, "group", unnamed={2: roles}, header_hint=hint)
    opened = open_source(path, contents, columns, None)
    if len(opened.names) != 2:
        raise InputError(f"{path!r} must have two columns, ids and names of groups, got {', '.join(opened.names)}.")
    return by_column(load_opened(opened, contents, columns).table)


def noted(table: Evaluation, ranks: Mapping[str, Ranks]) -> Evaluation:
    """Return a table with a note if its recommenders are about different instances."""
    difference = different_instances(ranks)
    if difference is None:
        return table
    note = f"the rows are about different instances and can't be compared: {difference}"
    return dataclasses.replace(table, notes=(*table.notes, note))


def different_instances(ranks: Mapping[str, Ranks]) -> str | None:
    """Return a sentence on the first two recommenders that are about different instances, None if all agree."""
    return next(filter(None, (_difference(*pair) for pair in pairwise(ranks.items()))), None)


def _difference(a: tuple[str, Ranks], b: tuple[str, Ranks]) -> str | None:
    import numpy as np

    (name_a, ranks_a), (name_b, ranks_b) = a, b
    if ranks_a.ids is None or ranks_b.ids is None:
        if len(ranks_a) == len(ranks_b):
            return None
        return f"{name_a!r} has {len(ranks_a)} instances, {name_b!r} has {len(ranks_b)}"
    if np.array_equal(ranks_a.ids, ranks_b.ids):
        return None
    ids_a, ids_b = (set(map(str, ids.tolist())) for ids in (ranks_a.ids, ranks_b.ids))
    if only := ids_a - ids_b:
        return f"{len(only)} of {name_a!r} are not in {name_b!r}, for instance {min(only)!r}"
    if only := ids_b - ids_a:
        return f"{len(only)} of {name_b!r} are not in {name_a!r}, for instance {min(only)!r}"
    return None
