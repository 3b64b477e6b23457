"""A table of users with their ranked lists and relevant items -> ranks."""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np
import pyarrow as pa

from truerank.errors import InputError
from truerank.formats.ids import as_names
from truerank.ranking.lists import read_lists
from truerank.ranking.ranks import Ranks


def rank_listed(table: pa.Table, depth: int | Literal["all"]) -> Ranks:
    """Return the ranks of the relevant items of some users in their lists.

    Parameters
    ----------
    table : pyarrow.Table
        A row per user: `user`, `held` (a list of relevant items), perhaps `grades`, and the list itself in `item` and
        `score` or `rank`; these are null for a user without a list.
    depth : int or "all"
        As for `truerank.read_lists`.

    Examples
    --------
    >>> rows = [{"user": "ann", "held": ["a"], "item": ["b", "a"], "score": [2.0, 1.0]},
    ...         {"user": "bob", "held": ["a"], "item": None, "score": None}]
    >>> ranks = rank_listed(pa.Table.from_pylist(rows), depth=2)
    >>> ranks.ids.tolist(), ranks.rank.tolist()
    (['ann', 'bob'], [2, 3])
    """
    value = "score" if "score" in table.column_names else "rank"
    run = _flat(table, {"item": "item", value: value})
    truth = _flat(table, {"held": "item", "grades": "relevance"})
    if any(column.null_count for part in (run, truth) for column in part.columns):
        raise InputError("lists and relevant items must not hold nulls, but some do.")
    # Whether any id matches is known of all users only. One more user, whose list does, lets every batch pass.
    extra = pa.table({"user": [len(table)], "item": truth["item"].slice(0, 1), value: [1.0], "relevance": [1.0]})
    both = [pa.concat_tables([part, extra.select(part.column_names)]) for part in (run, truth)]
    ranks = read_lists(*both, depth=depth, user="user", item="item", **{value: value})  # type: ignore[arg-type]
    assert ranks.ids is not None
    ranks = ranks[ranks.ids < len(table)]
    return dataclasses.replace(ranks, ids=as_names(table["user"].combine_chunks(), "user")[ranks.ids], notes=())


def _flat(table: pa.Table, columns: dict[str, str]) -> pa.Table:
    """Return a row per entry of the lists, with the number of the row that it came from.

    They are in the order of the items, so that ties don't depend on the order of a list, which Spark leaves open.
    """
    lists = {new: table[old].combine_chunks() for old, new in columns.items() if old in table.column_names}
    sizes = lists["item"].value_lengths().fill_null(0).to_numpy(zero_copy_only=False)
    users = {"user": np.repeat(np.arange(len(table)), sizes)}
    flat = pa.table(users | {name: column.flatten() for name, column in lists.items()})
    return flat.sort_by([("user", "ascending"), ("item", "ascending")])
