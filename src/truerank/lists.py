"""Ranked lists and a ground truth -> ranks, without sorting or looping over what is in order already."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.errors import InputError
from truerank.formats.columns import check_chosen
from truerank.formats.tables import Source, by_role, load
from truerank.ranks import Ranks

# a table of item codes is indexed directly while ids span no more than this; beyond, ids are hashed
_WIDEST_SPAN = 2**31
# rows looked up at once: their temporaries stay in the cache
_ROWS = 1 << 15


def read_lists(
    run: Source,
    truth: Source,
    *,
    depth: int | Literal["all"] | None = None,
    columns: Mapping[str, str] | None = None,
) -> Ranks:
    """Return where ranked lists put the relevant items.

    Parameters
    ----------
    run : path, dataframe, dict or list
        The lists: one row per user and item with a score (the higher the better), or a rank, or
        neither, in which case the rows of a user are in order. Also ``{user: {item: score}}``,
        ``{user: [best, second, ...]}``, a list of lists or a 2-D array (users are 0, 1, ...).
        Files: TREC run, CSV, TSV, Parquet, JSONL, also gzipped; "-" is standard input.
    truth : path, dataframe, dict or list
        The relevant items in the same forms. With a relevance column (as in TREC qrels), those
        above 0 are relevant. The instances are the users named here.
    depth : int or "all", optional
        Where the lists were cut; the longest list by default. "all" says that each list holds
        every candidate, so that any metric can be computed.
    columns : dict, optional
        Columns by role ("user", "item", "score", "rank", "relevance") where their names are not
        the usual ones.

    Returns
    -------
    Ranks
        With `depth` set unless it is "all". An item missing from a cut list is below it: metrics
        with k up to the depth are exact, others are refused. Items with equal scores tie. `notes`
        tells of users without list or truth.

    Examples
    --------
    >>> import truerank as tr
    >>> run = {"ann": ["b", "a", "c"], "bob": ["c", "b", "a"]}
    >>> ranks = tr.read_lists(run, {"ann": ["a"], "bob": ["c", "x"]})
    >>> tr.values(ranks, "recall@3").tolist()
    [1.0, 0.5]
    >>> tr.values(ranks, "recall@5")
    Traceback (most recent call last):
    ...
    truerank.errors.InputError: recall@5 looks at rank 5, but these lists are cut at depth 3.
    """
    (lists, run_name), (facts, truth_name) = load(run, "score"), load(truth, "relevance")
    check_chosen(columns, lists.column_names, facts.column_names)
    lists = by_role(lists, run_name, ("user", "item"), columns)
    facts = by_role(facts, truth_name, ("user", "item"), columns)
    lists, facts = _comparable(lists, facts)
    relevant = _Truth.of(facts)
    return _to_ranks(_Lists.of(lists, relevant), relevant, depth)


def _comparable(lists: pa.Table, facts: pa.Table) -> tuple[pa.Table, pa.Table]:
    """Give the ids of both one type: whole numbers if both have numbers, else text."""
    for role in ("user", "item"):
        kinds = (lists[role].type, facts[role].type)
        numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in kinds)
        kind = pa.int64() if numbers else pa.large_string()
        lists, facts = _cast(lists, role, kind), _cast(facts, role, kind)
    return lists, facts


def _cast(table: pa.Table, role: str, kind: pa.DataType) -> pa.Table:
    if table[role].type == kind:
        return table
    try:
        return table.set_column(table.column_names.index(role), role, table[role].cast(kind))
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(f"the {role} ids must be whole numbers or text ({str(error).splitlines()[0]}).") from error


@dataclass(frozen=True)
class _Truth:
    """The relevant (user, item) pairs as sorted whole numbers, user by user."""

    users: pa.Array
    items: _Codes
    keys: Ints
    n_relevant: Ints
    notes: tuple[str, ...]

    @classmethod
    def of(cls, facts: pa.Table) -> _Truth:
        encoded = _column(facts, "user").dictionary_encode()
        users, user = encoded.dictionary, encoded.indices.to_numpy().astype(np.int64)
        item = _column(facts, "item")
        if "relevance" in facts.column_names:
            kept = _floats(facts, "relevance") > 0
            user, item = user[kept], item.filter(pa.array(kept))
        items = _Codes.of(item)
        keys = np.sort(user * items.span + items.encode(item))
        keys = keys[np.diff(keys, prepend=-1) > 0]
        repeated = user.size - keys.size
        notes = (f"{repeated} repeated rows of the truth count once",) if repeated else ()
        return cls(users, items, keys, np.bincount(keys // items.span, minlength=len(users)), notes)

    def name(self, position: int) -> str:
        """Say which user and item a key stands for."""
        user, item = divmod(int(self.keys[position]), self.items.span)
        return f"item {self.items.decode(item)!r} of user {self.users[user].as_py()!r}"


@dataclass(frozen=True)
class _Codes:
    """Small whole numbers for the relevant items: their distance from the least id, or a hash table."""

    least: int | None
    span: int
    distinct: pa.Array | None

    @classmethod
    def of(cls, items: pa.Array) -> _Codes:
        if pa.types.is_integer(items.type) and len(items):
            ends = pc.min_max(items)
            least, span = ends["min"].as_py(), ends["max"].as_py() - ends["min"].as_py() + 1
            if span <= _WIDEST_SPAN:
                return cls(least, span, None)
        distinct = items.unique()
        return cls(None, max(len(distinct), 1), distinct)

    def encode(self, items: pa.Array) -> Ints:
        """Return the code of each item, something outside 0..span-1 for those that are not relevant."""
        if self.distinct is None:
            return items.to_numpy(zero_copy_only=False).astype(np.int64, copy=False) - np.int64(self.least or 0)
        return _index_in(items, self.distinct)

    def decode(self, code: int) -> Any:
        return code + (self.least or 0) if self.distinct is None else self.distinct[code].as_py()


@dataclass(frozen=True)
class _Lists:
    """Lists in order, one below the other: row `starts[g]` is the top of list g."""

    starts: Ints
    user: Ints
    scores: Floats | None
    hits: Ints
    """Rows that hold a relevant item of their user, ascending."""
    found: Ints
    """Which relevant item each of them holds, as a position in the truth."""

    @classmethod
    def of(cls, lists: pa.Table, truth: _Truth) -> _Lists:
        names = _column(lists, "user")
        scores = _scores(lists)
        items = truth.items.encode(_column(lists, "item"))
        starts = _changes(names)
        group = names.take(pa.array(starts)).dictionary_encode()
        list_of = group.indices.to_numpy().astype(np.int64)
        row_list = np.repeat(list_of, np.diff(np.append(starts, len(names))))
        in_order = len(group.dictionary) == starts.size and _never_rises(scores, starts)
        if not in_order:
            order = np.argsort(row_list, kind="stable") if scores is None else np.lexsort((-scores, row_list))
            items, row_list = items[order], row_list[order]
            scores = None if scores is None else scores[order]
            starts = np.flatnonzero(np.diff(row_list, prepend=-1))
        user_of_list = _index_in(group.dictionary, truth.users)
        row_user = user_of_list[row_list]
        hits, found = _find(row_user, items, truth)
        return cls(np.append(starts, items.size), user_of_list[row_list[starts]], scores, hits, found)


def _to_ranks(lists: _Lists, truth: _Truth, depth: int | Literal["all"] | None) -> Ranks:
    _check_once(lists, truth)
    sizes = np.diff(lists.starts)
    longest = int(sizes.max(initial=0))
    if depth == "all":
        n_candidates = _whole_lists(lists, truth, sizes)
    else:
        depth = longest if depth is None else depth
        if depth < longest:
            raise InputError(f"`depth` must be at least the length of the longest list ({longest}), got {depth}.")
        n_candidates = depth + truth.n_relevant
    cut = None if depth == "all" else max(depth, 1)
    indptr = np.concatenate([[0], np.cumsum(truth.n_relevant)])
    # what no list holds stays below them all
    above = np.full(truth.keys.size, 0 if cut is None else depth, dtype=np.int64)
    tied = np.zeros(truth.keys.size, dtype=np.int64)
    top = lists.starts[np.searchsorted(lists.starts, lists.hits, side="right") - 1]
    place = np.arange(lists.hits.size) - np.searchsorted(lists.hits, top)
    slot = indptr[truth.keys[lists.found] // truth.items.span] + place
    above[slot], tied[slot] = _count(lists, top)
    notes = (*truth.notes, *_notes(lists, truth, sizes, cut))
    return Ranks(
        above=above,
        tied=tied,
        n_candidates=n_candidates,
        indptr=indptr,
        ids=truth.users.to_numpy(zero_copy_only=False),
        depth=cut,
        notes=notes,
    )


def _count(lists: _Lists, top: Ints) -> tuple[Ints, Ints]:
    """Irrelevant rows above each hit in its list, and tied with it."""
    first, end = _tied_rows(lists)

    def irrelevant(since: Ints, until: Ints) -> Ints:
        hits = np.searchsorted(lists.hits, until) - np.searchsorted(lists.hits, since)
        return until - since - hits

    return irrelevant(top, first), irrelevant(first, end)


def _tied_rows(lists: _Lists) -> tuple[Ints, Ints]:
    """First row with the score of each hit, and the row after the last."""
    if lists.scores is None:
        return lists.hits, lists.hits + 1
    same = lists.scores[1:] == lists.scores[:-1]
    same[lists.starts[1:-1] - 1] = False
    if not same.any():
        return lists.hits, lists.hits + 1
    breaks = np.concatenate([[0], np.flatnonzero(~same) + 1, [same.size + 1]])
    at = np.searchsorted(breaks, lists.hits, side="right")
    return breaks[at - 1], breaks[at]


def _check_once(lists: _Lists, truth: _Truth) -> None:
    times = np.bincount(lists.found, minlength=truth.keys.size)
    if np.any(times > 1):
        raise InputError(f"{truth.name(int(np.argmax(times > 1)))} stands more than once in the list.")


def _whole_lists(lists: _Lists, truth: _Truth, sizes: Ints) -> Ints:
    """Candidates of each user when the lists hold them all."""
    n_candidates = np.zeros(len(truth.users), dtype=np.int64)
    known = lists.user >= 0
    n_candidates[lists.user[known]] = sizes[known]
    missing = np.ones(truth.keys.size, dtype=np.bool_)
    missing[lists.found] = False
    if missing.any():
        name = truth.name(int(np.argmax(missing)))
        raise InputError(f"with depth='all' each list holds every candidate, but {name} is in none.")
    return n_candidates


def _notes(lists: _Lists, truth: _Truth, sizes: Ints, cut: int | None) -> list[str]:
    without_truth = int((lists.user < 0).sum())
    without_list = len(truth.users) - (lists.user.size - without_truth)
    short = 0 if cut is None else int((sizes[lists.user >= 0] < cut).sum())
    counts = {
        "listed users are not in the truth and are left out": without_truth,
        "users of the truth have no list: their relevant items count as below it": without_list,
        f"lists are shorter than the depth {cut}: items missing from them count as below it": short,
    }
    return [f"{count} {text}" for text, count in counts.items() if count]


def _column(table: pa.Table, name: str) -> pa.Array:
    column = table[name]
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


def _floats(table: pa.Table, name: str) -> Floats:
    column = table[name]
    if not (pa.types.is_integer(column.type) or pa.types.is_floating(column.type) or pa.types.is_boolean(column.type)):
        raise InputError(f"the {name} must be numbers, got {column.type}.")
    return column.to_numpy().astype(np.float64, copy=False)


def _scores(lists: pa.Table) -> Floats | None:
    """Return what orders the lists, the higher the better; None if the rows are in order."""
    if "score" in lists.column_names:
        scores = _floats(lists, "score")
    elif "rank" in lists.column_names:
        scores = -_floats(lists, "rank")
    else:
        return None
    if np.any(bad := np.isnan(scores)):
        row = int(np.argmax(bad))
        user, item = lists["user"][row].as_py(), lists["item"][row].as_py()
        raise InputError(f"the score of item {item!r} for user {user!r} is NaN (row {row + 1}).")
    return scores


def _never_rises(scores: Floats | None, starts: Ints) -> bool:
    if scores is None:
        return True
    rises: Bools = scores[1:] > scores[:-1]
    rises[starts[1:] - 1] = False
    return not rises.any()


def _changes(names: pa.Array) -> Ints:
    """Rows whose name differs from that of the row before."""
    if len(names) == 0:
        return np.zeros(0, dtype=np.int64)
    if pa.types.is_integer(names.type):
        plain: AnyArray = names.to_numpy(zero_copy_only=False)
        changed: Bools = plain[1:] != plain[:-1]
    else:
        changed = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(changed) + 1])


def _index_in(names: pa.Array, known: pa.Array) -> Ints:
    """Position of each name among the known ones, -1 for the others."""
    return pc.fill_null(pc.index_in(names, value_set=known), -1).to_numpy(zero_copy_only=False).astype(np.int64)


def _find(user: Ints, item: Ints, truth: _Truth) -> tuple[Ints, Ints]:
    """Return the rows that hold a relevant item of their user, and its position in the truth.

    Few rows do. A table of marks with a stretch of slots per user, hence always in the cache, rules
    out most others; a binary search decides on the rest.
    """
    width = 1 << int(16 * truth.keys.size / max(len(truth.users), 1)).bit_length()
    marks = np.zeros((len(truth.users) + 1) * width, dtype=np.bool_)
    marks[_slots(*divmod(truth.keys, truth.items.span), width)] = True
    rows = np.concatenate(
        [
            start + np.flatnonzero(marks[_slots(user[start : start + _ROWS], item[start : start + _ROWS], width)])
            for start in range(0, user.size, _ROWS)
        ]
        or [np.zeros(0, dtype=np.int64)]
    )
    rows = rows[(user[rows] >= 0) & (item[rows] >= 0) & (item[rows] < truth.items.span)]
    keys = user[rows] * truth.items.span + item[rows]
    place = np.minimum(np.searchsorted(truth.keys, keys), truth.keys.size - 1)
    hit = truth.keys[place] == keys
    return rows[hit], place[hit]


def _slots(user: Ints, item: Ints, width: int) -> Ints:
    """Slot of a pair in the table of marks; unknown users, -1, share the last stretch."""
    mixed = (item * np.int64(0x9E3779B1)) >> np.int64(15)
    return user * width + (mixed & np.int64(width - 1))
