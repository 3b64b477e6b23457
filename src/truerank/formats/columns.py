"""Which column is which: the columns each reader looks for, their usual names, and how a caller overrides them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from truerank.core.checks import InputError

Column = str | int | None
"""A column by name or by number from 0; None to find it by its usual names."""

_USER = ("user_id", "user", "uid", "query_id", "query", "qid", "q_id", "topic", "instance", "id", "customer_id")
_ITEM = ("item_id", "item", "iid", "doc_id", "docno", "doc", "document_id", "movie_id", "product_id", "items")
_SCORE = ("score", "scores", "prediction", "predicted_score", "pred")
_RANK = ("rank", "position", "ranks")
_RELEVANCE = ("relevance", "rel", "label", "grade", "gain")
_SAMPLED = ("m", "n_sampled", "samples", "n_negatives")
_CANDIDATES = ("n_candidates", "n", "candidates", "n_items")
_TIME = ("timestamp", "time", "datetime", "date", "unix_time", "ts")
_RATING = ("rating", "ratings", "stars")
_SINCE = ("since", "from", "start", "start_date", "available_from", "valid_from")
_UNTIL = ("until", "to", "end", "end_date", "available_until", "valid_until")


@dataclass(frozen=True)
class Contents:
    """What a reader looks for in a source.

    Attributes
    ----------
    what : str
        What the source holds, for messages.
    roles : mapping of str to tuple of str
        The columns to read, and their usual names.
    value : str
        The role of the inner values of a dict of dicts.
    unnamed : mapping of int to tuple of str
        The roles of the columns of a file without a header, by the number of columns.
    trec : str, optional
        The TREC format that can hold this: "run" or "qrels".
    needed : tuple of str
        Roles that must be present.
    lists_need : str
        The end of the message if the source holds ranked lists instead.
    format_argument : str
        Name of the reader's argument for the format.
    header_hint : str
        What to do if the first line may be a header or a row; by default, to give the reader's argument for it.
    bytes_per_row : int
        Memory that reading a large file takes for each row, the result included, as benchmarks/large_files.py measures.
    """

    what: str
    roles: Mapping[str, tuple[str, ...]]
    value: str
    unnamed: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    trec: str | None = None
    needed: tuple[str, ...] = ("user", "item")
    lists_need: str = ""
    format_argument: str = "format"
    header_hint: str = ""
    bytes_per_row: int = 40

    def recognises(self, names: Sequence[str]) -> bool:
        """Whether any of these is a usual name of a column."""
        usual = {_plain(alias) for aliases in self.roles.values() for alias in aliases}
        return any(_plain(name) in usual for name in names)


_EVENT_COLUMNS = {2: ("user", "item"), 4: ("user", "item", "rating", "time")}

_PAIR: dict[str, tuple[str, ...]] = {"user": _USER, "item": _ITEM}
# a column of weights is never guessed: it may be the weight of a parcel
_EVENT = {**_PAIR, "session": (), "time": _TIME, "rating": _RATING, "weight": ()}
INTERACTIONS = Contents("interactions", _EVENT, "rating", _EVENT_COLUMNS, bytes_per_row=36)
PAIRS = Contents("pairs", _PAIR, "rating", _EVENT_COLUMNS)
# a column of sessions is never guessed: without it, instances are users
_LISTED = {**_PAIR, "session": (), "score": _SCORE, "rank": _RANK, "m": _SAMPLED}
_IN_RUN = {2: ("user", "item")}
LISTS = Contents("ranked lists", _LISTED, "score", _IN_RUN, "run", format_argument="run_format", bytes_per_row=28)
_TRUE = {**_PAIR, "session": (), "relevance": _RELEVANCE}
TRUTH = Contents("relevant items", _TRUE, "relevance", _EVENT_COLUMNS, "qrels", format_argument="truth_format")
_MAY_BE_SHOWN = {**_PAIR, "session": (), "since": _SINCE, "until": _UNTIL}
CANDIDATES = Contents("candidates", _MAY_BE_SHOWN, "score", {1: ("item",), 2: ("user", "item")}, needed=("item",))
_RANKED = {"user": _USER, "session": (), "rank": _RANK, "n": _CANDIDATES, "m": _SAMPLED, "relevance": _RELEVANCE}
_NEED = "; their `truth` (the relevant items) is also needed"
RANKS = Contents("ranks", _RANKED, "rank", needed=("rank",), lists_need=_NEED, bytes_per_row=50)


def chosen_columns(columns: Mapping[str, Column] | None) -> dict[str, str | int]:
    """Return the columns that the caller chose."""
    return {role: column for role, column in (columns or {}).items() if column is not None}


def find_columns(
    present: Sequence[str], contents: Contents, chosen: Mapping[str, str | int], where: str
) -> dict[str, int]:
    """Return the position of the column for each role that has one.

    Case, ``_``, ``-`` and blanks do not matter. `chosen` takes precedence; a chosen column that is absent is ignored.

    Examples
    --------
    >>> find_columns(["UserId", "movieId", "Score"], LISTS, {}, "run.csv")
    {'user': 0, 'item': 1, 'score': 2}
    >>> find_columns(["who", "item", "item"], LISTS, {"user": "who", "item": 2}, "run.csv")
    {'user': 0, 'item': 2}
    """
    found = {role: at for role, column in chosen.items() if (at := position(column, present, where)) is not None}
    taken = {present[at] for at in found.values()}
    plain = {_plain(name): name for name in reversed(present) if name not in taken}
    for role, usual in contents.roles.items():
        names = [plain[_plain(alias)] for alias in usual if _plain(alias) in plain]
        if names and role not in found:
            found[role] = _only(names[0], present, where)
    return found


def is_number(column: Column) -> bool:
    """Whether a column is given by its number."""
    return isinstance(column, int) or (isinstance(column, str) and column.isdecimal())


def position(column: str | int, present: Sequence[str], where: str) -> int | None:
    """Return the position of a column given by name or number (also as text), None if it does not exist."""
    if column in present:
        return _only(str(column), present, where)
    return int(column) if is_number(column) and 0 <= int(column) < len(present) else None


def require_columns(found: Mapping[str, int], contents: Contents, present: Sequence[str], where: str) -> None:
    """Raise `InputError` for the first needed role without a column."""
    for role in contents.needed:
        if role not in found:
            raise InputError(
                f"{where} has no column for the {role}: expected {contents.roles[role][0]!r} or similar, "
                f"found {some(present)}; name its column with {role}='...'."
            )


def some(names: Sequence[str]) -> str:
    """Return the first of many names for a message.

    Examples
    --------
    >>> some(["user", "item"]), some([]), some([f"c{number}" for number in range(99)])
    ('user, item', 'none', 'c0, c1, c2, c3, c4, c5, c6, c7, c8, c9, ...')
    """
    short = [name if len(name) <= 40 else name[:37] + "..." for name in names[:10]]
    return ", ".join([*short, "..."] if len(names) > 10 else short) or "none"


def _only(name: str, present: Sequence[str], where: str) -> int:
    if list(present).count(name) > 1:
        raise InputError(f"{where} has more than one column {name!r}; give its number, from 0.")
    return list(present).index(name)


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
