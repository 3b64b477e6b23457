"""Which column is which: the names that the field uses, and how a caller overrides them."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from truerank.errors import InputError

ALIASES: dict[str, tuple[str, ...]] = {
    "user": ("user_id", "user", "uid", "query_id", "query", "qid", "q_id", "topic", "instance", "id", "customer_id"),
    "item": ("item_id", "item", "iid", "doc_id", "docno", "doc", "document_id", "movie_id", "product_id", "items"),
    "score": ("score", "scores", "prediction", "predicted_score", "pred"),
    "rank": ("rank", "position", "ranks"),
    "relevance": ("relevance", "rel", "label", "grade", "gain"),
    "m": ("m", "n_sampled", "samples", "n_negatives"),
    "n_candidates": ("n_candidates", "n", "candidates", "n_items"),
}
"""Roles in lists and tables of ranks, and what their columns are called."""

EVENT_ALIASES: dict[str, tuple[str, ...]] = {
    "user": ALIASES["user"],
    "item": ALIASES["item"],
    "time": ("timestamp", "time", "datetime", "date", "unix_time", "ts"),
    "rating": ("rating", "ratings", "stars"),
    "weight": (),
}
"""Roles in tables of events; a weight is never guessed, for it may be that of a parcel."""


def find_columns(
    present: Sequence[str],
    chosen: Mapping[str, str] | None = None,
    aliases: Mapping[str, Sequence[str]] = ALIASES,
) -> dict[str, str]:
    """Return the column that plays each role, for the roles that some column plays.

    Case, ``_``, ``-`` and blanks do not matter. `chosen` maps roles to columns and comes first,
    where such a column is present.

    Examples
    --------
    >>> find_columns(["UserId", "movieId", "Score"])
    {'user': 'UserId', 'item': 'movieId', 'score': 'Score'}
    >>> find_columns(["who", "item"], {"user": "who"})
    {'user': 'who', 'item': 'item'}
    """
    found = {role: column for role, column in (chosen or {}).items() if column in present}
    by_name = {_plain(column): column for column in reversed(present) if column not in found.values()}
    for role, names_of_role in aliases.items():
        names = [by_name[_plain(alias)] for alias in names_of_role if _plain(alias) in by_name]
        if names:
            found.setdefault(role, names[0])
    return found


def check_chosen(chosen: Mapping[str, str] | None, *tables: Sequence[str]) -> None:
    """Raise `InputError` for a role that does not exist, or a column that no table has."""
    for role, column in (chosen or {}).items():
        if role not in ALIASES:
            raise InputError(f"unknown role {role!r} in `columns`; known are {', '.join(ALIASES)}.")
        if not any(column in present for present in tables):
            names = ", ".join(dict.fromkeys(name for present in tables for name in present))
            raise InputError(f"there is no column {column!r} for the {role}; there are {names}.")


def require_columns(found: Mapping[str, str], needed: Collection[str], present: Sequence[str], where: str) -> None:
    """Raise `InputError` for the first needed role that no column plays."""
    for role in needed:
        if role not in found:
            raise InputError(
                f"{where} has no column for the {role}: expected {ALIASES[role][0]!r} or the like, "
                f"found {', '.join(present) or 'none'}; name it with columns={{{role!r}: ...}}."
            )


def _plain(name: str) -> str:
    return "".join(letter for letter in name.lower() if letter.isalnum())
