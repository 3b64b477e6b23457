"""Answers that put given candidates in order, as language models give them -> ranks.

An answer may name items that were not among the candidates, name some twice, and leave others out.
"""

from __future__ import annotations

import dataclasses
from typing import Literal, NamedTuple

import numpy as np
import pyarrow as pa

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, check_whole, counted, shown
from truerank.core.ranks import Ranks
from truerank.core.samples import Sample
from truerank.data.candidates import Candidates
from truerank.formats.ids import as_names, comparable
from truerank.formats.rows import Rows
from truerank.ranking.exact import rank_pairs
from truerank.ranking.truth import Truth, index_in
from truerank.sampling.designs import UniformSampling

Invalid = Literal["refuse", "count", "last"]
"""What to do about items that are not candidates, that are repeated, and that are missing."""


class _Listed(NamedTuple):
    """Rows of the lists, list by list from the top, that belong to users of the truth."""

    instance: Ints
    item: Ints
    value: Floats
    """Falls from rank to rank; equal for equal scores."""
    row: Ints
    """The row of the source."""


def rank_answers(
    lists: Rows, scores: Floats | None, facts: Rows, candidates: Candidates, invalid: Invalid, n: int | None
) -> Ranks:
    """Return the ranks of the relevant items among the given candidates.

    Parameters
    ----------
    lists : Rows
        The answers, an item per row.
    scores : array, one per row of the lists, optional
        The scores that order them, higher is better; None if rows are in order.
    facts : Rows
        The relevant items.
    candidates : Candidates
        The items to be ordered, for everybody or for each user.
    invalid : {"refuse", "count", "last"}
    n : int, optional
        Size of the catalogue of which the irrelevant candidates are a uniform sample.
    """
    given = [pa.chunked_array([pa.array(names)]) for names in (candidates.items, candidates.users) if names is not None]
    items = comparable(lists.column("item"), facts.column("item"), given[0])
    users = comparable(lists.column("user"), facts.column("user"), *given[1:])
    grades = facts.numbers("relevance") if "relevance" in facts else None
    truth = Truth.of(users[1].combine_chunks(), items[1].combine_chunks(), grades)
    names = pa.chunked_array([chunk for column in items for chunk in column.chunks]).unique()
    span, n_users = len(names), len(truth.users)
    relevant = truth.keys // truth.items.span * span + index_in(pa.array(truth.item_names).cast(names.type), names)
    offered = _offered(users[2:], index_in(items[2].combine_chunks(), names), truth, span)
    allowed = np.union1d(offered, relevant)
    owner = index_in(users[0].combine_chunks(), truth.users)
    listed = _in_order(owner, index_in(items[0].combine_chunks(), names), scores)
    keys = listed.instance * span + listed.item
    good, first = np.isin(keys, allowed), _first(keys)
    missing = np.setdiff1d(allowed, keys)
    if invalid == "refuse":
        _refuse(lists, listed, good, first)
        _refuse_missing(missing, np.setdiff1d(relevant, offered), names, truth)
    valid, odd = good & first, ~(good & first) & (invalid == "count")
    rows = (
        np.concatenate([keys[valid], missing]),
        np.concatenate([listed.value[valid], np.full(missing.size, -np.inf)]),
    )
    ranks = _ranks(rows, (keys[odd], listed.value[odd]), relevant, truth, span)
    notes = (
        *lists.notes, *facts.notes, *candidates.notes, *truth.notes,
        *_notes(int((~good).sum()), int((good & ~first).sum()), missing // span, listed.instance, invalid, n_users),
        *_user_notes(owner, listed, np.setdiff1d(relevant, offered).size, n_users),
    )  # fmt: skip
    found = dataclasses.replace(
        ranks,
        ids=as_names(truth.users, "user")[ranks.ids],
        items=as_names(names, "item")[ranks.items],
        notes=notes,
    )
    return found if n is None else _sampled(found, n, invalid)


def _offered(users: list[pa.ChunkedArray], items: Ints, truth: Truth, span: int) -> Ints:
    """Return the candidates of each instance as keys, ascending."""
    n_users = len(truth.users)
    if not users:
        return (np.arange(n_users)[:, None] * span + np.unique(items)).ravel()
    owner = index_in(users[0].combine_chunks(), truth.users)
    without = np.setdiff1d(np.arange(n_users), owner)
    if without.size:
        first = shown(truth.users[int(without[0])].as_py())
        who = counted(without.size, "user of the truth has", "users of the truth have")
        raise InputError(f"{who} no candidates (first {first}).")
    return np.unique((owner * span + items)[owner >= 0])


def _in_order(owner: Ints, item: Ints, scores: Floats | None) -> _Listed:
    """Return the rows of users of the truth, in the order of their lists."""
    rows = np.flatnonzero(owner >= 0)
    keys = (owner[rows],) if scores is None else (-scores[rows], owner[rows])
    rows = rows[np.lexsort((rows, *keys))]
    fresh = np.ones(rows.size, dtype=np.bool_)
    if scores is not None:
        fresh[1:] = (np.diff(scores[rows]) != 0) | (np.diff(owner[rows]) != 0)
    return _Listed(owner[rows], item[rows], -np.cumsum(fresh).astype(np.float64), rows)


def _first(keys: Ints) -> Bools:
    """Return which rows are the first ones of their user and item."""
    first = np.zeros(keys.size, dtype=np.bool_)
    first[np.unique(keys, return_index=True)[1]] = True
    return first


def _refuse(lists: Rows, listed: _Listed, good: Bools, first: Bools) -> None:
    if (good & first).all():
        return
    at = int(np.argmin(good & first))
    row = int(listed.row[at])
    user, item = (shown(lists.table[role][row].as_py()) for role in ("user", "item"))
    what = "in the list more than once" if good[at] else "not among the candidates"
    hint = "allow such items with invalid='last' or 'count'"
    raise lists.error(row, f"item {item} of user {user} is {what}; {hint}")


def _refuse_missing(missing: Ints, added: Ints, names: pa.Array, truth: Truth) -> None:
    absent = np.setdiff1d(missing, added)
    if absent.size:
        user, item = divmod(int(absent[0]), len(names))
        who, what = shown(truth.users[user].as_py()), shown(names[item].as_py())
        hint = "allow missing items with invalid='last' or 'count'"
        raise InputError(f"candidate {what} of user {who} is not in the list; {hint}.")


def _ranks(rows: tuple[Ints, Floats], odd: tuple[Ints, Floats], relevant: Ints, truth: Truth, span: int) -> Ranks:
    """Rank candidates by their values, missing ones last and relevant ones below them; odd ones are never relevant."""
    keys, values = (np.concatenate(parts) for parts in zip(rows, odd, strict=True))
    is_relevant = np.isin(keys, relevant)
    is_relevant[rows[0].size :] = False
    below = np.min(values, initial=0.0, where=np.isfinite(values)) - np.where(is_relevant, 2, 1)
    low = np.where(np.isinf(values), below, values)
    order = np.searchsorted(relevant, keys[is_relevant])
    grades = None if truth.grades is None else truth.grades[order]
    return rank_pairs(keys // span, keys % span, low, is_relevant, grades)


def _notes(invented: int, repeated: int, missing: Ints, answered: Ints, invalid: Invalid, n_users: int) -> list[str]:
    """Count what is wrong with the answers, and say how it is treated."""
    fate = {"last": "are ignored", "count": "count as irrelevant items", "refuse": ""}[invalid]
    n_lists = np.unique(answered).size
    short = missing[np.isin(missing, answered)]
    last = f"missing from {np.unique(short).size} of {n_lists} lists and"
    invent, repeat = "(invented): such items", "repeated: such items"
    counts = (
        (
            invented,
            f"listed item is not a candidate {invent} {fate}",
            f"listed items are not candidates {invent} {fate}",
        ),
        (repeated, f"listed item is {repeat} {fate}", f"listed items are {repeat} {fate}"),
        (short.size, f"candidate is {last} comes last", f"candidates are {last} come last, relevant ones last of all"),
        (
            n_users - n_lists,
            "user has no list: the relevant items come last",
            "users have no list: their relevant items come last",
        ),
    )
    return [counted(number, one, many) for number, one, many in counts if number]


def _user_notes(owner: Ints, listed: _Listed, added: int, n_users: int) -> list[str]:
    others = owner.size - listed.row.size
    outside, gone = "not among the candidates and", "not in the truth and"
    counts = (
        (added, f"relevant item was {outside} is added", f"relevant items were {outside} are added"),
        (others, f"listed item is of a user {gone} is left out", f"listed items are of users {gone} are left out"),
    )
    return [counted(number, one, many) for number, one, many in counts if number]


def _sampled(ranks: Ranks, n: int, invalid: Invalid) -> Ranks:
    """Return the ranks as those among a uniform sample of a catalogue."""
    check_whole("n", n)
    if invalid == "count":
        raise InputError(
            "with `n` the candidates are a sample of the catalogue, so other items can't count; use invalid='last'."
        )
    draws: AnyArray = np.unique(ranks.draws)
    design = UniformSampling(int(draws[0]) if draws.size == 1 and draws[0] else None)
    return dataclasses.replace(ranks, sample=Sample(design, np.full(len(ranks), n)))
