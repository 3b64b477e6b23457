"""Ranked lists and a ground truth -> ranks, without sorting or looping over what is in order already."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.arrays import AnyArray, Bools, Floats, Ints
from truerank.errors import InputError
from truerank.formats.columns import check_chosen
from truerank.formats.tables import Source, by_role, load
from truerank.ranking.ranks import Ranks
from truerank.ranking.truth import Truth, column, find, floats, index_in


def read_lists(
    run: Source,
    truth: Source,
    *,
    depth: int | Literal["all"] | None = None,
    columns: Mapping[str, str] | None = None,
    repeats: Literal["refuse", "count once"] = "refuse",
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
        above 0 are relevant, and it is their grade. The instances are the users named here.
    depth : int or "all", optional
        Where the lists were cut; the longest list by default. "all" says that each list holds
        every candidate, so that any metric can be computed.
    columns : dict, optional
        Columns by role ("user", "item", "score", "rank", "relevance") where their names are not
        the usual ones.
    repeats : {"refuse", "count once"}
        What to do about a relevant item that stands in a list more than once: an error, or its first place counts and
        the others are as if something irrelevant stood there.

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
    if repeats not in ("refuse", "count once"):
        raise InputError(f"`repeats` must be 'refuse' or 'count once', got {repeats!r}.")
    (lists, run_name), (facts, truth_name) = load(run, "score"), load(truth, "relevance")
    check_chosen(columns, lists.column_names, facts.column_names)
    lists = by_role(lists, run_name, ("user", "item"), columns)
    facts = by_role(facts, truth_name, ("user", "item"), columns)
    lists, facts = _comparable(lists, facts)
    relevant = Truth.of(facts)
    found = _Lists.of(lists, relevant)
    return _to_ranks(found.without_repeats() if repeats == "count once" else found, relevant, depth)


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
class _Lists:
    """Lists in order, one below the other, and the rows in them that are hits."""

    starts: Ints
    """Row of the top of each list, and at last the number of rows."""
    user: Ints
    """Whose list it is, -1 if the truth does not know."""
    scores: Floats | None
    hits: Ints
    """Rows that hold a relevant item of their user, ascending."""
    found: Ints
    """Which relevant item each of them holds, as a position in the truth."""

    @classmethod
    def of(cls, lists: pa.Table, truth: Truth) -> _Lists:
        names, scores = column(lists, "user"), _scores(lists)
        items = truth.items.encode(column(lists, "item"))
        starts = _changes(names)
        encoded = names.take(pa.array(starts)).dictionary_encode()
        group = encoded.indices.to_numpy()
        if len(encoded.dictionary) < starts.size or _rises(scores, starts):
            order, starts = _sorted_rows(np.repeat(group, np.diff(starts, append=len(names))), scores)
            group, items = np.arange(starts.size), items[order]
            scores = None if scores is None else scores[order]
        user = index_in(encoded.dictionary, truth.users)[group]
        hits, found = find(user, np.diff(starts, append=items.size), items, truth)
        return cls(np.append(starts, items.size), user, scores, hits, found)

    def without_repeats(self) -> _Lists:
        """Let only the first place of each relevant item be a hit."""
        rows = np.arange(self.found.size)
        first = np.zeros(self.found.max(initial=-1) + 1, dtype=np.int64)
        first[self.found[::-1]] = rows[::-1]  # of several, the one assigned last stays
        kept = first[self.found] == rows
        return dataclasses.replace(self, hits=self.hits[kept], found=self.found[kept])


def _to_ranks(lists: _Lists, truth: Truth, depth: int | Literal["all"] | None) -> Ranks:
    _check_once(lists, truth)
    sizes = np.diff(lists.starts)
    cut = None if depth == "all" else _cut(depth, sizes)
    indptr = np.concatenate([[0], np.cumsum(truth.n_relevant)])
    # what no list holds stays below them all
    above = np.full(truth.keys.size, cut or 0, dtype=np.int64)
    tied = np.zeros(truth.keys.size, dtype=np.int64)
    first = np.searchsorted(lists.hits, lists.starts)
    at = np.repeat(np.arange(sizes.size), np.diff(first))
    hits_above = np.arange(at.size) - first[at]
    slot = indptr[lists.user[at]] + hits_above
    above[slot], tied[slot] = _count(lists, lists.starts[at], hits_above)
    order = _order(lists.found, slot, truth.keys.size)
    return Ranks(
        above=above,
        tied=tied,
        grades=None if truth.grades is None else truth.grades[order],
        same_score=None if truth.grades is None else _same_scores(lists, slot, order.size),
        items=truth.item_names[order],
        n_candidates=_whole_lists(lists, truth, sizes) if cut is None else cut + truth.n_relevant,
        indptr=indptr,
        ids=truth.users.to_numpy(zero_copy_only=False),
        depth=cut,
        notes=(*truth.notes, *_notes(lists, truth, sizes, cut)),
    )


def _cut(depth: int | None, sizes: Ints) -> int:
    longest = max(int(sizes.max(initial=0)), 1)
    if depth is not None and depth < longest:
        raise InputError(f"`depth` must be at least the length of the longest list ({longest}), got {depth}.")
    return longest if depth is None else depth


def _count(lists: _Lists, top: Ints, hits_above: Ints) -> tuple[Ints, Ints]:
    """Irrelevant rows above each hit in its list, and tied with it."""
    ties = None if lists.scores is None else _tied_rows(lists.hits, lists.scores, lists.starts)
    if ties is None:
        return lists.hits - top - hits_above, np.zeros_like(top)
    first, end = ties
    since, until = np.searchsorted(lists.hits, first), np.searchsorted(lists.hits, end)
    hits_before = since - np.searchsorted(lists.hits, top)
    return first - top - hits_before, end - first - (until - since)


def _order(found: Ints, slot: Ints, size: int) -> Ints:
    """Return which relevant item of the truth each rank belongs to; items that no list holds come last."""
    order = np.empty(size, dtype=np.int64)
    missing, free = np.ones((2, size), dtype=np.bool_)
    missing[found], free[slot] = False, False
    order[slot], order[free] = found, np.flatnonzero(missing)
    return order


def _same_scores(lists: _Lists, slot: Ints, size: int) -> Bools:
    """Return whether each relevant item ties with the one before it."""
    same = np.zeros(size, dtype=np.bool_)
    if lists.scores is not None and (ties := _tied_rows(lists.hits, lists.scores, lists.starts)) is not None:
        same[slot[1:]] = ties[0][1:] == ties[0][:-1]
    return same


def _tied_rows(hits: Ints, scores: Floats, starts: Ints) -> tuple[Ints, Ints] | None:
    """First row with the score of each hit, and the row after the last; None if no two rows tie."""
    same = scores[1:] == scores[:-1]
    same[starts[1:-1] - 1] = False
    if not same.any():
        return None
    breaks = np.concatenate([[0], np.flatnonzero(~same) + 1, [scores.size]])
    at = np.searchsorted(breaks, hits, side="right")
    return breaks[at - 1], breaks[at]


def _check_once(lists: _Lists, truth: Truth) -> None:
    times = np.bincount(lists.found, minlength=truth.keys.size)
    if np.any(times > 1):
        raise InputError(f"{truth.name(int(np.argmax(times > 1)))} stands more than once in the list.")


def _whole_lists(lists: _Lists, truth: Truth, sizes: Ints) -> Ints:
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


def _notes(lists: _Lists, truth: Truth, sizes: Ints, cut: int | None) -> list[str]:
    without_truth = int((lists.user < 0).sum())
    without_list = len(truth.users) - (lists.user.size - without_truth)
    short = 0 if cut is None else int((sizes[lists.user >= 0] < cut).sum())
    counts = {
        "listed users are not in the truth and are left out": without_truth,
        "users of the truth have no list: their relevant items count as below it": without_list,
        f"lists are shorter than the depth {cut}: items missing from them count as below it": short,
    }
    return [f"{count} {text}" for text, count in counts.items() if count]


def _scores(lists: pa.Table) -> Floats | None:
    """Return what orders the lists, the higher the better; None if the rows are in order."""
    if "score" in lists.column_names:
        scores = floats(lists, "score")
    elif "rank" in lists.column_names:
        scores = -floats(lists, "rank")
    else:
        return None
    if np.any(bad := np.isnan(scores)):
        row = int(np.argmax(bad))
        user, item = lists["user"][row].as_py(), lists["item"][row].as_py()
        raise InputError(f"the score of item {item!r} for user {user!r} is NaN (row {row + 1}).")
    return scores


def _rises(scores: Floats | None, starts: Ints) -> bool:
    """Whether some list is not in order of its scores."""
    if scores is None:
        return False
    rises: Bools = scores[1:] > scores[:-1]
    rises[starts[1:] - 1] = False
    return bool(rises.any())


def _sorted_rows(group: AnyArray, scores: Floats | None) -> tuple[Ints, Ints]:
    """Return the order of rows in which lists are whole and scores fall, and where lists start then."""
    order = np.argsort(group, kind="stable") if scores is None else np.lexsort((-scores, group))
    return order, np.flatnonzero(np.diff(group[order], prepend=-1))


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
