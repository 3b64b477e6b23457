"""Tables that hold ranks themselves -> `Ranks`."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any, cast

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints, check_whole, distinct_columns, frozen, shown, slices
from truerank.core.csr import Grouped, bounds
from truerank.core.ranks import Ranks
from truerank.core.threads import Memory, bounded
from truerank.formats.arrow_tables import open_source
from truerank.formats.columns import LISTS, RANKS, Column, chosen_columns, find_columns
from truerank.formats.ids import as_names, numbered
from truerank.formats.rank_files import from_opened
from truerank.formats.rows import Rows, load_opened
from truerank.formats.sources import Source
from truerank.formats.text_files import Format, with_header

_ROWS = 1 << 20  # checked at once, so that temporary arrays are small


@bounded
def read_ranks(
    source: Source,
    *,
    m: int | str | None = None,
    n: int | str | None = None,
    replace: bool = False,
    user: Column = None,
    session: Column = None,
    rank: Column = None,
    relevance: Column = None,
    header: bool | None = None,
    format: Format | None = None,  # noqa: A002
    memory: Memory | None = None,
) -> Ranks:
    """Read saved ranks, or a table of ranks: exact ones, or ranks among sampled candidates.

    Parameters
    ----------
    source : path or dataframe
        What `Ranks.save` wrote, or one row per relevant item with its rank (1 is the best). Rows of one user are one
        instance; without a column of users each row is an instance. Files are read as by `truerank.read_lists`.
    m : int or str, optional
        For ranks among sampled candidates: how many irrelevant ones were sampled for each instance, or the name of the
        column that holds it. A table with a column `m` holds sampled ranks.
    n : int or str, optional
        Candidates of each instance, before sampling, or the name of the column with it; by default the column `n`.
    replace : bool
        Whether the candidates were sampled with replacement.
    user, rank, relevance : str or int, optional
        Columns by name, or by number from 0, where their names are not the usual ones. `relevance` holds grades.
    session : str or int, optional
        A column of sessions: rows of the same user and session are then one instance, with the user as its id, so that
        errors are clustered by user. It is never guessed.
    header : bool, optional
        Whether the first line of a text file holds the names of the columns; detected by default.
    format : {"csv"}, optional
        The format of a text file, if it is not detected.
    memory : str or int, optional
        Memory that reading may use, as in `truerank.read_interactions`.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> frame = pd.DataFrame({"user_id": ["ann", "bob", "ann"], "rank": [5, 1, 3], "n": [10, 4, 10]})
    >>> ranks = tr.read_ranks(frame)
    >>> ranks.ids.tolist(), ranks.rank.tolist()
    (['ann', 'bob'], [3, 5, 1])
    >>> tr.read_ranks(pd.DataFrame({"rank": [1, 17, 3]}), m=100, n=3541)
    Ranks(3 instances, 3 relevant items, 101 of 3541 candidates sampled, no ties)
    """
    if isinstance(source, str | Path) and str(source).lower().endswith(".npz"):
        return _as_saved(Ranks.load(source), repr(str(source)), {"m": m, "n": n}, replace)
    columns = {"user": user, "session": session, "rank": rank, "relevance": relevance}
    columns |= {role: column for role, column in (("m", m), ("n", n)) if isinstance(column, str)}
    opened = open_source(source, RANKS, chosen_columns(columns), with_header(format, header))
    if {"above", "tied", "n_candidates"} <= set(opened.names):
        return _as_saved(from_opened(opened), opened.name, {"m": m, "n": n}, replace)
    found = find_columns(opened.names, RANKS, {}, opened.name)
    if n is None and "n" not in found and "item" in find_columns(opened.names, LISTS, {}, opened.name):
        raise InputError(f"{opened.name} holds ranked lists, not ranks{RANKS.lists_need}.")
    return _to_ranks(load_opened(opened, RANKS, columns), m, n, replace)


def _as_saved(ranks: Ranks, name: str, given: Mapping[str, int | str | None], replace: bool) -> Ranks:
    """Refuse numbers of candidates that contradict the saved ranks."""
    sampled = ranks.design is not None and ranks.n_catalogue is not None
    stored = {"m": ranks.draws if sampled else None, "n": ranks.n_catalogue if sampled else ranks.n_candidates}
    for role, number in given.items():
        own = stored[role]
        if number is not None and own is None:
            raise InputError(f"{name} holds exact ranks, so `{role}` can't be given.")
        if number is not None and own is not None and np.any(other := own != number):
            raise InputError(f"`{role}` {number} contradicts {name}, which says {own[other][0]}.")
    if replace and not getattr(ranks.design, "replace", False):
        raise InputError(f"`replace` contradicts {name}, whose candidates were sampled without replacement.")
    return ranks


def _per_row(rows: Rows, role: str, given: int | str | None) -> Ints | None:
    """Return a number of candidates for each row: from its column, or as given."""
    column = rows.whole(role) if role in rows else None
    if column is not None and np.any(bad := column < 1):
        row = int(np.argmax(bad))
        raise rows.error(row, f"{role} must be at least 1, got {column[row]}")
    if given is None or isinstance(given, str):
        return column
    check_whole(role, given, otherwise=", or the name of a column")
    if column is not None and np.any(bad := column != given):
        row = int(np.argmax(bad))
        raise InputError(f"`{role}` {given} contradicts {rows.place(row)}, which says {column[row]}.")
    return np.full(len(rows), given, dtype=np.int64)


def _to_ranks(rows: Rows, m: int | str | None, n: int | str | None, replace: bool) -> Ranks:
    """Return the ranks in a table; columns are dropped as soon as they are no longer needed."""
    instance, names, n_instances = _instances(rows)
    m_each = _one_each(rows, "m", _per_row(rows, "m", m), instance, n_instances)
    n_each = _one_each(rows, "n", _per_row(rows, "n", n), instance, n_instances)
    if n_each is None:
        raise InputError(f"{rows.name} does not state the number of candidates; give `n`, or a column n.")
    if m_each is None and replace:
        raise InputError("`replace` applies to sampled ranks only; give `m`, or a column m.")
    notes, rows = rows.notes, rows.without("user", "session", "n", "m")
    indptr = bounds(np.bincount(instance, minlength=n_instances))
    _check_ranks(rows, n_each if m_each is None else m_each + np.diff(indptr), instance)

    in_order = None if np.all(instance[1:] >= instance[:-1]) else np.argsort(instance, kind="stable")

    def per_instance(column: AnyArray) -> Grouped:
        return Grouped(column if in_order is None else column[in_order], frozen(indptr))

    ranks = per_instance(rows.whole("rank"))
    grades = per_instance(rows.numbers("relevance")) if "relevance" in rows else None
    del instance, rows
    options: dict[str, Any] = {"ids": names, "grades": grades}
    if m_each is None:
        found = Ranks.from_ranks(ranks, n_each, **options)
    else:
        found = Ranks.from_sampled(ranks, m=m_each, n=n_each, replace=replace, **options)
    return dataclasses.replace(found, notes=notes) if notes else found


def _check_ranks(rows: Rows, most: Ints, instance: AnyArray) -> None:
    ranks = rows.whole("rank")
    for part in slices(ranks.size, _ROWS):
        limit = most[instance[part]]
        if np.any(bad := (ranks[part] < 1) | (ranks[part] > limit)):
            at = int(np.argmax(bad))
            row = part.start + at
            raise rows.error(row, f"the rank must lie in 1..{limit[at]}, got {ranks[row]}{_hits_hint(ranks)}")


def _hits_hint(ranks: Ints) -> str:
    """Return advice on hits, if the ranks look like hits."""
    if np.any((ranks != 0) & (ranks != 1)):
        return ""
    return "; 0 and 1 look like hits, not ranks: give their mean to `audit`, as the recall at their cut-off"


def _instances(rows: Rows) -> tuple[AnyArray, AnyArray | None, int]:
    """Return the instance of each row, their names, and how many there are."""
    if "user" in rows:
        distinct, (codes,) = numbered(rows.table["user"])
        names = frozen(as_names(distinct, "user"))
        if "session" not in rows:
            return codes, names, names.size
        first, instance = distinct_columns(codes, numbered(rows.table["session"])[1][0])
        return instance, names[codes[first]], first.size
    if "session" in rows:
        raise InputError(f"{rows.name} has sessions, but no column of users.")
    if rows.parents is not None:
        distinct, instance = np.unique(rows.parents, return_inverse=True)
        return instance, None, distinct.size
    return np.arange(len(rows)), None, len(rows)


def _one_each(rows: Rows, role: str, values: Ints | None, instance: AnyArray, n_instances: int) -> Ints | None:
    """Return the one number of each instance, which all of its rows must have; None if rows have none."""
    if values is None:
        return None
    each: Ints = np.zeros(n_instances, dtype=np.int64)
    for part in slices(values.size, _ROWS):
        each[instance[part]] = values[part]
    for part in slices(values.size, _ROWS):
        if np.any(bad := each[instance[part]] != values[part]):
            row = part.start + int(np.argmax(bad))
            user = f"user {shown(rows.ids('user')[row].as_py())}" if "user" in rows else "one row"
            raise rows.error(row, f"{user} has more than one {role}, {values[row]} and {each[instance[row]]}")
    return cast("Ints", frozen(each))
