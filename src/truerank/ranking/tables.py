"""Tables that hold ranks themselves -> `Ranks`."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pyarrow as pa

from truerank.arrays import AnyArray, Floats
from truerank.errors import InputError
from truerank.formats.columns import check_chosen, find_columns
from truerank.formats.tables import Source, by_role, load
from truerank.ranking.ranks import Ranks
from truerank.ranking.truth import floats


def read_ranks(source: Source, *, columns: Mapping[str, str] | None = None) -> Ranks:
    """Read ranks that were saved, or a table that lists them.

    Parameters
    ----------
    source : path or dataframe
        What `Ranks.save` wrote, or one row per relevant item with a rank (1 is the best) and the
        number of candidates (`n`). Rows of one user (`user_id`) are one instance; without a user
        column each row is its own. A relevance column holds grades. Files as for `truerank.read_lists`.
    columns : dict, optional
        Columns by role ("user", "rank", "n_candidates", "relevance") where their names are not the usual ones.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> frame = pd.DataFrame({"user_id": ["ann", "bob", "ann"], "rank": [5, 1, 3], "n": [10, 4, 10]})
    >>> ranks = tr.read_ranks(frame)
    >>> ranks.ids.tolist(), ranks.rank.tolist()
    (['ann', 'bob'], [3, 5, 1])
    """
    if isinstance(source, str | Path) and str(source).endswith(".npz"):
        return Ranks.load(source)
    table, where = load(source, "score")
    if {"above", "tied", "n_candidates"} <= set(table.column_names):
        return Ranks.from_arrow(table)
    check_chosen(columns, table.column_names)
    if "item" in (roles := find_columns(table.column_names, columns)) and "n_candidates" not in roles:
        raise InputError(f"{where} holds ranked lists, not ranks; their truth is needed too (read_lists, --truth).")
    rows = by_role(table, where, ("rank", "n_candidates"), columns)
    return _one_each(rows) if "user" not in rows.column_names else _by_user(rows, where)


def read_sampled(
    source: Source,
    *,
    m: int | None = None,
    n: int | None = None,
    replace: bool = False,
    columns: Mapping[str, str] | None = None,
) -> Ranks:
    """Read ranks that were found among sampled candidates, saved or in a table.

    Parameters
    ----------
    source : path or dataframe
        What `Ranks.save` wrote, or one row per relevant item with its sampled rank, and columns for
        the candidates sampled (`m`) and before sampling (`n`) unless they are given here.
    m, n : int, optional
        Candidates sampled, and before sampling, the same for all; an error if the source says otherwise.
    replace : bool
        Whether they were sampled with replacement.
    columns : dict, optional
        Columns by role ("user", "rank", "m", "n_candidates").

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> tr.read_sampled(pd.DataFrame({"rank": [1, 17, 3]}), m=100, n=3541)
    Ranks(3 instances, 3 relevant items, 101 of 3541 candidates sampled, no ties)
    """
    if isinstance(source, str | Path) and str(source).endswith(".npz"):
        return _require_sampled(Ranks.load(source), repr(str(source)), m, n, replace)
    table, where = load(source, "score")
    if {"above", "tied", "n_candidates"} <= set(table.column_names):
        return _require_sampled(Ranks.from_arrow(table), where, m, n, replace)
    check_chosen(columns, table.column_names)
    rows = by_role(table, where, ("rank",), columns)
    given = {"m": m, "n_candidates": n}
    for role, number in given.items():
        if number is None and role not in rows.column_names:
            raise InputError(f"{where} does not say how many candidates there were; give `{role[0]}` or such a column.")
        if number is not None and role in rows.column_names:
            _check_agrees(role[0], number, rows[role].to_numpy(), where)
    sampled = rows["m"].to_numpy() if m is None else m
    if "user" not in rows.column_names:
        candidates = rows["n_candidates"].to_numpy() if n is None else n
        return Ranks.from_sampled(
            rows["rank"].to_numpy(), m=sampled, n=candidates, replace=replace, grades=_grades(rows)
        )
    if n is not None:
        rows = rows.drop_columns([name for name in rows.column_names if name == "n_candidates"])
        rows = rows.append_column("n_candidates", pa.array(np.full(len(rows), n)))
    ranks, candidates, names, grades = _grouped(rows, where)
    draws = np.unique(sampled)
    return Ranks.from_sampled(
        ranks, m=draws[0] if draws.size == 1 else sampled, n=candidates, replace=replace, ids=names, grades=grades
    )


def _require_sampled(ranks: Ranks, where: str, m: int | None, n: int | None, replace: bool) -> Ranks:
    if ranks.design is None or ranks.n_catalogue is None:
        raise InputError(f"{where} holds exact ranks, which need no correction.")
    _check_agrees("m", m, ranks.draws, where)
    _check_agrees("n", n, ranks.n_catalogue, where)
    if replace and not getattr(ranks.design, "replace", False):
        raise InputError(f"`replace` contradicts {where}, whose candidates were sampled without replacement.")
    return ranks


def _check_agrees(name: str, given: int | None, stored: AnyArray, where: str) -> None:
    """Refuse a number that contradicts what the file says itself."""
    if given is not None and np.any(other := stored != given):
        raise InputError(f"`{name}` {given} contradicts {where}, which says {stored[other][0]}.")


def _one_each(rows: pa.Table) -> Ranks:
    return Ranks.from_ranks(rows["rank"].to_numpy(), rows["n_candidates"].to_numpy(), grades=_grades(rows))


def _by_user(rows: pa.Table, where: str) -> Ranks:
    ranks, n, names, grades = _grouped(rows, where)
    return Ranks.from_ranks(ranks, n, ids=names, grades=grades)


def _grades(rows: pa.Table) -> Floats | None:
    return floats(rows, "relevance") if "relevance" in rows.column_names else None


def _grouped(rows: pa.Table, where: str) -> tuple[list[AnyArray], AnyArray, AnyArray, list[Floats] | None]:
    """Ranks, candidates, name and grades of each user, in order of appearance."""
    encoded = rows["user"].combine_chunks().dictionary_encode()
    user = encoded.indices.to_numpy()
    order = np.argsort(user, kind="stable")
    starts = np.flatnonzero(np.diff(user[order], prepend=-1))
    n = rows["n_candidates"].to_numpy()[order]
    if np.any(bad := n != np.repeat(n[starts], np.diff(np.append(starts, n.size)))):
        name = encoded.dictionary[user[order][np.argmax(bad)]].as_py()
        raise InputError(f"{where} gives user {name!r} more than one number of candidates.")
    ranks = np.split(rows["rank"].to_numpy()[order], starts[1:])
    grades = _grades(rows)
    split = None if grades is None else np.split(grades[order], starts[1:])
    return ranks, n[starts], encoded.dictionary.to_numpy(zero_copy_only=False), split
