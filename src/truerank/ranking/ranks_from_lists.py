"""Ranked lists and a ground truth -> ranks, without sorting what is already in order."""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, check_choice, check_whole, counted, shown
from truerank.core.conventions import Convention, EqualScores, find_convention
from truerank.core.csr import bounds, owners
from truerank.core.ranks import Ranks
from truerank.core.threads import Memory, bounded
from truerank.data.candidates import Candidates, Listed, as_candidates
from truerank.formats.arrow_tables import open_source
from truerank.formats.columns import LISTS, TRUTH, Column, chosen_columns, is_number
from truerank.formats.ids import as_names, comparable, decoded, is_words, session_names
from truerank.formats.rows import Rows, check_chosen, load_opened
from truerank.formats.sources import Source
from truerank.formats.text_files import Format, with_header
from truerank.ranking.ranks_from_answers import Invalid, rank_answers
from truerank.ranking.truth import Numbered, Truth, find, first_repeat, index_in

# distinct items in each source from which it can't be chance that they have none in common
_MANY = 10
_ARGUMENTS = ("truth", "run")


@bounded
def read_lists(
    run: Source,
    truth: Source,
    *,
    depth: int | Literal["all"] | None = None,
    user: Column = None,
    item: Column = None,
    score: Column = None,
    rank: Column = None,
    relevance: Column = None,
    run_header: bool | None = None,
    truth_header: bool | None = None,
    run_format: Format | None = None,
    truth_format: Format | None = None,
    session: Column = None,
    candidates: Listed | None = None,
    n: int | None = None,
    invalid: Invalid = "refuse",
    convention: str | None = None,
    memory: Memory | None = None,
) -> Ranks:
    """Return the ranks of the relevant items in ranked lists.

    Parameters
    ----------
    run : path, dataframe, dict or list
        The lists: one row per user and item with a score (higher is better), or a rank, or
        neither, in which case the rows of a user are in order. Also ``{user: {item: score}}``,
        ``{user: [best, second, ...]}``, a list of lists or a 2-D array (users are 0, 1, ...).
        Files: TREC run, CSV, TSV, Parquet, JSONL, plain, gzipped or in a zip file; "-" is standard input.
    truth : path, dataframe, dict or list
        The relevant items in the same forms. With a relevance column (as in TREC qrels), those
        above 0 are relevant, and it is their grade. The instances are the users named here.
    depth : int or "all", optional
        Where the lists were cut; the longest list by default. "all" means that each list holds
        every candidate, so that any metric can be computed.
    user, item, score, rank, relevance : str or int, optional
        Columns by name, or by number from 0, where their names are not the usual ones. `user` and
        `item` are looked for in both sources, and at least one must have them; numbers are those of
        the source without a header, if only one has none.
    run_header, truth_header : bool, optional
        Whether the first line of a text file holds the names of the columns; detected by default.
    run_format, truth_format : {"csv", "movielens", "trec"}, optional
        The format of a text file, where it is not detected: delimited text with or without a header;
        user, item, rating and time without a header; a TREC run or qrels.
    session : str or int, optional
        A column of sessions, requests or repetitions in the run. Each session of a user is then an instance, with the
        user as its id, so that errors are clustered by user. A truth without such a column applies to all sessions
        of the user: those of the candidates, if they have sessions, else those of the run.
    candidates : optional
        The items to be ordered, as for `truerank.rank`, by name: the same for everybody, or for each user or session.
        Lists may then have any length; `invalid` decides about items that are wrongly in them or missing from them.
    n : int, optional
        With `candidates`: the size of the catalogue of which the irrelevant candidates are a uniform sample. The ranks
        are then sampled ones, from which the exact metrics are estimated with honest intervals.
    invalid : {"refuse", "count", "last"}
        What to do about items that are in a list more than once and, with `candidates`, about those that are not among
        them (invented) or that a list lacks (missing): raise an error; count every repeated or invented item as an
        irrelevant one that takes up a rank; or ignore such items. In both cases missing candidates come last, relevant
        ones below the others. Notes count all three.
    convention : str, optional
        A tool, as for `truerank.evaluate`, whose order of equal scores is followed, instead of treating them as ties,
        as well as its rule for users without a list.
    memory : str or int, optional
        Memory that reading may use, as in `truerank.read_interactions`.

    Returns
    -------
    Ranks
        With `depth` set unless it is "all". An item missing from a cut list is below it: metrics
        with k up to the depth are exact, others are refused. Items with equal scores tie. `notes`
        count users without a list or without relevant items. It is an error if no user has both.

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
    truerank.InputError: recall@5 looks at rank 5, but these ranks are cut at depth 3.
    """
    check_choice("invalid", invalid, get_args(Invalid))
    if candidates is not None and (depth is not None or convention is not None):
        raise InputError("give either `candidates`, which every list orders, or `depth` and `convention`, not both.")
    if candidates is None and n is not None:
        raise InputError("`n` is the size of the catalogue that `candidates` are sampled from; give them, too.")
    if depth is not None and depth != "all":
        check_whole("depth", depth, otherwise=", or 'all'")
    rules = Convention("truerank", {}, equal_scores="tie") if convention is None else find_convention(convention)
    of_run = {"user": user, "item": item, "score": score, "rank": rank, "session": session}
    of_truth = {"user": user, "item": item, "relevance": relevance, "session": session}
    lists, facts = _load(
        (run, of_run, with_header(run_format, run_header, "run_header")),
        (truth, of_truth, with_header(truth_format, truth_header, "truth_header")),
    )
    if "m" in lists:
        raise InputError(f"{lists.name} has a column m, so it holds ranks among sampled candidates, not ranked lists.")
    shown_items = None if candidates is None else _by_name(candidates)
    if session is None:
        return _ranked(lists, facts, shown_items, depth, invalid, n, rules)
    by_session = _by_session(lists, facts, shown_items)
    ranks = _ranked(*by_session[:3], depth, invalid, n, rules)
    sessions, users = by_session[3:]
    return dataclasses.replace(ranks, ids=users[np.searchsorted(sessions, np.asarray(ranks.ids))])


def _by_name(given: Listed) -> Candidates:
    found = as_candidates(given)
    if not isinstance(found, Candidates) or found.timed:
        kinds = "a list of items, a dict of user to items, or what tr.read_candidates reads, without times"
        raise InputError(f"`candidates` must be given by name: {kinds}.")
    return found


def _ranked(
    lists: Rows,
    facts: Rows,
    candidates: Candidates | None,
    depth: int | Literal["all"] | None,
    invalid: Invalid,
    n: int | None,
    rules: Convention,
) -> Ranks:
    """Return the ranks, one instance per user."""
    if candidates is not None:
        if candidates.sessions is not None:
            raise InputError("`candidates` have sessions, so `session` must name the column of sessions in the run.")
        return rank_answers(lists, _scores(lists), facts, candidates, invalid, n)
    users, items = (_comparable(lists.table[role], facts.table[role]) for role in ("user", "item"))
    grades = facts.numbers("relevance") if "relevance" in facts else None
    relevant = Truth.of(_joined(users[1]), _joined(items[1]), grades)
    found = _RankedLists.of(_joined(users[0]), _joined(items[0]), _scores(lists), relevant, rules.equal_scores)
    repeated: tuple[str, ...] = ()
    if (row := found.first_repeat()) is not None:
        if invalid == "refuse":
            raise found.repeats_error(lists, row)
        found, repeated = found.without_repeats(invalid)
    _check_users(found, lists, facts)
    notes = (*lists.notes, *facts.notes, *repeated, *_item_notes(found, relevant, lists, facts))
    ranks = _to_ranks(found, relevant, depth, notes, rules)
    return ranks[np.unique(found.user[found.user >= 0])] if rules.unlisted == "drop" else ranks


def _by_session(
    lists: Rows, facts: Rows, candidates: Candidates | None
) -> tuple[Rows, Rows, Candidates | None, AnyArray, AnyArray]:
    """Return the same with sessions in the place of users; the names of the sessions, ascending; and their users.

    Relevant items and candidates without sessions hold for all sessions of the user. Sessions of a user ascend.
    """
    if "session" not in lists:
        raise InputError(f"{lists.name} must have the column of sessions.")
    known = listed = _sessions(lists.column("user"), lists.column("session"))
    if candidates is not None and candidates.sessions is not None:
        known = _sessions(*(pa.chunked_array([pa.array(ids)]) for ids in (candidates.users, candidates.sessions)))
    own = _sessions(facts.column("user"), facts.column("session")) if "session" in facts else None
    rows, names = _spread(facts.column("user"), known) if own is None else _in_order(own)
    facts = _renamed(facts, rows, names)
    sessions, first = np.unique(names.to_numpy(zero_copy_only=False).astype(np.str_), return_index=True)
    users = facts.names("owner")[first]
    lists = _renamed(lists, np.arange(len(lists)), listed["key"].combine_chunks())
    if candidates is not None and candidates.users is not None:
        given = pa.chunked_array([pa.array(candidates.users)])
        rows, names = (
            (np.arange(len(known)), known["key"].combine_chunks()) if candidates.sessions is not None
            else _spread(given, known)
        )  # fmt: skip
        each = names.to_numpy(zero_copy_only=False).astype(np.str_)
        candidates = dataclasses.replace(candidates, items=candidates.items[rows], users=each, sessions=None)
    return lists, facts, candidates, sessions, users


def _sessions(users: pa.ChunkedArray, sessions: pa.ChunkedArray) -> pa.Table:
    """Return users as text, their sessions, and a name for each session of a user."""
    key = pa.chunked_array([session_names(users, sessions)])
    return pa.table({"user": users.cast(pa.large_string()), "session": sessions, "key": key})


def _spread(users: pa.ChunkedArray, known: pa.Table) -> tuple[Ints, pa.Array]:
    """Repeat rows for each session of their user; return the rows, and the names of the sessions."""
    text = pa.table({"user": users.cast(pa.large_string()), "row": np.arange(len(users))})
    distinct = known.group_by(["user", "session", "key"]).aggregate([])
    joined = text.join(distinct, "user", join_type="left outer").sort_by(
        [("session", "ascending"), ("row", "ascending")]
    )
    names = pc.coalesce(joined["key"], joined["user"]).combine_chunks()
    return joined["row"].to_numpy(), names


def _in_order(own: pa.Table) -> tuple[Ints, pa.Array]:
    numbered = own.append_column("row", pa.array(np.arange(len(own)))).sort_by(
        [("session", "ascending"), ("row", "ascending")]
    )
    return numbered["row"].to_numpy(), numbered["key"].combine_chunks()


def _renamed(rows: Rows, taken: Ints, names: pa.Array) -> Rows:
    """Return some rows with names of sessions in the place of users, who are kept as owners."""
    table = rows.table.take(taken)
    table = table.append_column("owner", table["user"])
    table = table.set_column(table.column_names.index("user"), "user", pa.chunked_array([names]))
    return dataclasses.replace(rows, table=table, place=lambda row: rows.place(int(taken[row])))


_Given = tuple[Source, dict[str, Column], Format | None]


def _load(run: _Given, truth: _Given) -> tuple[Rows, Rows]:
    """Open both sources before either is read, and look for the chosen columns in both."""
    given = ((*run, LISTS), (*truth, TRUTH))
    opened = [open_source(source, contents, chosen_columns(columns), form) for source, columns, form, contents in given]
    shared = {role: run[1][role] for role in ("user", "item", "session")}
    check_chosen(shared, *opened)
    parts = []
    for one, (_, columns, _, contents) in zip(opened, given, strict=True):
        check_chosen({role: column for role, column in columns.items() if role not in shared}, one)
        # numbers are meant for the source that has no names
        named = not one.unnamed and any(other.unnamed for other in opened)
        own = {role: None if named and is_number(column) else column for role, column in columns.items()}
        parts.append(load_opened(one, contents, own, lenient=True))
    return parts[0], parts[1]


def _comparable(listed: pa.ChunkedArray, relevant: pa.ChunkedArray) -> list[pa.ChunkedArray]:
    """Convert two columns of ids to one type; the first may hold codes of texts, and keeps them."""
    if pa.types.is_dictionary(listed.type):
        return [listed, decoded(relevant).cast(listed.type.value_type)]
    return comparable(listed, relevant)


def _joined(column: pa.ChunkedArray) -> pa.Array:
    return column.chunk(0) if column.num_chunks == 1 else column.combine_chunks()


@dataclass(frozen=True)
class _RankedLists:
    """Lists in order, one below the other, and the rows in them that are hits.

    Attributes
    ----------
    starts : array of int
        Row of the top of each list, and finally the number of rows.
    user : array of int, one per list
        Whose list it is, -1 if the user is not in the truth.
    scores : array of float, one per row, optional
    codes : array of int, one per row
        The truth's code of each item.
    hits : array of int
        Rows that hold a relevant item of their user, ascending.
    found : array of int
        Which relevant item each of them holds, as a position in the truth.
    numbered : Numbered
        The items of all rows.
    order : array of int, one per row, optional
        The row of the source; None if rows are in order there.
    """

    starts: Ints
    user: Ints
    scores: Floats | None
    codes: Ints
    hits: Ints
    found: Ints
    numbered: Numbered
    order: Ints | None

    @classmethod
    def of(
        cls, names: pa.Array, items: pa.Array, scores: Floats | None, truth: Truth, equal: EqualScores
    ) -> _RankedLists:
        codes, numbered = _encode(items, truth)
        starts = _changes(names)
        encoded = names.take(pa.array(starts)).dictionary_encode()
        group = encoded.indices.to_numpy()
        order = None
        by_id = equal == "id" and scores is not None
        if by_id and scores is not None:
            scores = scores.astype(np.float32)  # the TREC tools compare in this precision
        if by_id or len(encoded.dictionary) < starts.size or _rises(scores, starts):
            later = _descending(items) if by_id else None
            order, starts = _sorted_rows(np.repeat(group, np.diff(starts, append=len(names))), scores, later)
            group, codes = np.arange(starts.size), codes[order]
            numbered = dataclasses.replace(numbered, numbers=numbered.numbers[order])
            scores = None if scores is None else scores[order]
        user = index_in(encoded.dictionary, truth.users)[group]
        bounds = np.append(starts, codes.size)
        hits, found = find(user, bounds, codes, truth)
        return cls(bounds, user, scores if equal in ("tie", "arbitrary") else None, codes, hits, found, numbered, order)

    def first_repeat(self) -> int | None:
        """Return a row whose item is in its list more than once, None if there is none."""
        return first_repeat(self.numbered, self.starts)

    def repeats_error(self, rows: Rows, row: int) -> InputError:
        """Return the error that an item is in a list more than once."""
        source = row if self.order is None else int(self.order[row])
        user, item = (shown(rows.table[role][source].as_py()) for role in ("user", "item"))
        hint = "tr.read_lists allows this with invalid='last' or 'count'"
        return rows.error(source, f"item {item} of user {user} is in the list more than once; {hint}")

    def without_repeats(self, invalid: Invalid) -> tuple[_RankedLists, tuple[str, ...]]:
        """Count only the first occurrence of each item; others are irrelevant items or ignored. Also return a note."""
        keys = owners(self.starts) * self.numbered.span + self.numbered.numbers - self.numbered.low
        first = np.zeros(keys.size, dtype=np.bool_)
        first[np.unique(keys, return_index=True)[1]] = True
        fate = "are ignored" if invalid == "last" else "count as irrelevant items"
        words = f"listed item is repeated: such items {fate}", f"listed items are repeated: such items {fate}"
        hits = first[self.hits]
        kept = dataclasses.replace(self, hits=self.hits[hits], found=self.found[hits])
        return kept._only(first) if invalid == "last" else kept, (counted(int((~first).sum()), *words),)

    def _only(self, rows: Bools) -> _RankedLists:
        """Return the lists with some of their rows, among them all hits."""
        before = bounds(rows)
        return dataclasses.replace(
            self,
            starts=before[self.starts],
            scores=None if self.scores is None else self.scores[rows],
            codes=self.codes[rows],
            hits=before[self.hits],
            numbered=dataclasses.replace(self.numbered, numbers=self.numbered.numbers[rows]),
            order=np.flatnonzero(rows) if self.order is None else self.order[rows],
        )


def _to_ranks(
    lists: _RankedLists, truth: Truth, depth: int | Literal["all"] | None, notes: tuple[str, ...], rules: Convention
) -> Ranks:
    sizes = np.diff(lists.starts)
    cut = None if depth == "all" else _cut(depth, sizes)
    indptr = bounds(truth.n_relevant)
    # what no list holds stays below them all
    above = np.full(truth.keys.size, cut or 0, dtype=np.int64)
    tied = np.zeros(truth.keys.size, dtype=np.int64)
    first = np.searchsorted(lists.hits, lists.starts)
    at = owners(first)
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
        ids=as_names(truth.users, "user"),
        depth=cut,
        notes=(*notes, *truth.notes, *_notes(lists, truth, sizes, cut, rules)),
    )


def _cut(depth: int | None, sizes: Ints) -> int:
    longest = max(int(sizes.max(initial=0)), 1)
    if depth is not None and depth < longest:
        raise InputError(f"`depth` must be at least the length of the longest list ({longest}), got {depth}.")
    return longest if depth is None else depth


def _count(lists: _RankedLists, top: Ints, hits_above: Ints) -> tuple[Ints, Ints]:
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


def _same_scores(lists: _RankedLists, slot: Ints, size: int) -> Bools:
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


def _whole_lists(lists: _RankedLists, truth: Truth, sizes: Ints) -> Ints:
    """Candidates of each user when the lists hold them all."""
    n_candidates = np.zeros(len(truth.users), dtype=np.int64)
    in_truth = lists.user >= 0
    n_candidates[lists.user[in_truth]] = sizes[in_truth]
    missing = np.ones(truth.keys.size, dtype=np.bool_)
    missing[lists.found] = False
    if missing.any():
        name = truth.name(int(np.argmax(missing)))
        raise InputError(f"with depth='all' each list holds every candidate, but {name} is in none.")
    return n_candidates


def _notes(lists: _RankedLists, truth: Truth, sizes: Ints, cut: int | None, rules: Convention) -> list[str]:
    without_truth = int((lists.user < 0).sum())
    listed = np.zeros(len(truth.users), dtype=np.bool_)
    listed[lists.user[lists.user >= 0]] = True
    without, first = int((~listed).sum()), shown(truth.users[int(np.argmin(listed))].as_py())
    example = first if without == 1 else f"for example {first}"
    misses = (": their relevant items count as below the depth",) * 2
    fates = (" and is left out", " and are left out") if rules.unlisted == "drop" else misses
    users = f"of {listed.size} users in the truth"
    short = 0 if cut is None else int((sizes[lists.user >= 0] < cut).sum())
    below = f"shorter than the depth {cut}: items missing from"
    counts = (
        (
            without_truth,
            "listed user is not in the truth and is left out",
            "listed users are not in the truth and are left out",
        ),
        (without, f"{users} has no list ({example}){fates[0]}", f"{users} have no list ({example}){fates[1]}"),
        (short, f"list is {below} it count as below it", f"lists are {below} them count as below it"),
    )
    return [counted(number, one, many) for number, one, many in counts if number]


def _check_users(found: _RankedLists, lists: Rows, facts: Rows) -> None:
    if np.all(found.user < 0):
        listed, relevant = (shown(rows.ids("user")[0].as_py()) for rows in (lists, facts))
        raise facts.without_match(lists, "user", _ARGUMENTS, f"for example {relevant} and {listed}")


def _item_notes(found: _RankedLists, truth: Truth, lists: Rows, facts: Rows) -> list[str]:
    """Return a note if few of the relevant items are in any list; raise an error if none is and some must be."""
    # the hits are enough to see that most lists are fine, and cost nothing
    if 2 * found.hits.size >= truth.keys.size:
        return []
    relevant = np.unique(truth.keys % truth.items.span)
    listed = np.isin(relevant, found.codes)
    other_kind = is_words(lists.table["item"].type) != is_words(facts.table["item"].type)
    if listed.sum() * (2 if other_kind else 10) >= relevant.size:
        return []
    examples = shown(truth.items.decode(int(relevant[np.argmin(listed)]))), shown(lists.ids("item")[0].as_py())
    here = f"for example, {examples[0]} is relevant and {examples[1]} is listed"
    if not listed.any() and (other_kind or min(relevant.size, found.numbered.span) >= _MANY):
        raise facts.without_match(lists, "item", _ARGUMENTS, here)
    return [f"only {listed.sum()} of {relevant.size} relevant items are in any list ({here})"]


def _scores(lists: Rows) -> Floats | None:
    """Return the scores that order the lists, higher is better; None if the rows are in order."""
    if "score" in lists:
        return lists.numbers("score")
    if "rank" not in lists:
        return None
    ranks = lists.numbers("rank")
    return np.negative(ranks, out=ranks)


def _encode(items: pa.Array, truth: Truth) -> tuple[Ints, Numbered]:
    """Return the truth's code of each item, and numbers that distinguish all items."""
    if truth.items.distinct is None:
        return truth.items.encode(items), Numbered.of(items)
    encoded = items.dictionary_encode()
    return truth.items.encode(encoded.dictionary)[encoded.indices.to_numpy()], Numbered.of(encoded)


def _rises(scores: Floats | None, starts: Ints) -> bool:
    """Whether some list is not in order of its scores."""
    if scores is None:
        return False
    rises: Bools = scores[1:] > scores[:-1]
    rises[starts[1:] - 1] = False
    return bool(rises.any())


def _descending(items: pa.Array) -> Ints:
    """Return the place of each item when all are ordered by descending id, as text."""
    encoded = items.dictionary_encode()
    places = pc.rank(encoded.dictionary.cast(pa.large_string()), sort_keys="descending")
    return places.to_numpy()[encoded.indices.to_numpy()]


def _sorted_rows(group: AnyArray, scores: Floats | None, later: Ints | None = None) -> tuple[Ints, Ints]:
    """Return the order of rows in which lists are whole and scores fall, and where lists start then."""
    keys = [key for key in (later, None if scores is None else -scores, group) if key is not None]
    order = np.lexsort(keys)
    return order, np.flatnonzero(np.diff(group[order], prepend=-1))


def _changes(names: pa.Array) -> Ints:
    """Rows whose name differs from that of the row before."""
    if len(names) == 0:
        return np.zeros(0, dtype=np.int64)
    names = names.indices if pa.types.is_dictionary(names.type) else names
    if pa.types.is_integer(names.type):
        plain: AnyArray = names.to_numpy(zero_copy_only=False)
        changed: Bools = plain[1:] != plain[:-1]
    else:
        changed = pc.not_equal(names.slice(1), names.slice(0, len(names) - 1)).to_numpy(zero_copy_only=False)
    return np.concatenate([[0], np.flatnonzero(changed) + 1])
