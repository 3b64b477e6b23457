"""Files and dataframes of ranked lists -> `Recommendations`."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

from truerank.arrays import AnyArray, Floats, Ints
from truerank.data.interactions import Interactions
from truerank.errors import InputError
from truerank.formats.columns import LISTS, Column
from truerank.formats.detection import Format, with_header
from truerank.formats.ids import as_names, comparable, shown
from truerank.formats.rows import Rows, load
from truerank.formats.source import Source
from truerank.lists.recommendations import Recommendations

NO_CATALOGUE = "the catalogue is not given (`train`), so it is taken to be the listed items"


def read_recommendations(
    source: Source,
    train: Interactions | None = None,
    *,
    k: int | None = None,
    user: Column = None,
    item: Column = None,
    score: Column = None,
    rank: Column = None,
    header: bool | None = None,
    format: Format | None = None,  # noqa: A002
) -> Recommendations:
    """Read lists of recommended items, for metrics of the lists themselves.

    For metrics that compare them with relevant items, `truerank.read_lists` is enough.

    Parameters
    ----------
    source : path, dataframe, dict or list
        As the `run` of `truerank.read_lists`.
    train : Interactions, optional
        Its items are the catalogue: those that could have been recommended. By default, those that were.
    k : int, optional
        Where the lists were cut; the longest list by default.
    user, item, score, rank, header, format
        As in `truerank.read_lists`.

    Returns
    -------
    Recommendations
        Users in the order in which they first occur. Of equal scores, the row further up comes first.

    Examples
    --------
    >>> import truerank as tr
    >>> train = tr.read_interactions({"ann": ["a", "b"], "bob": ["c"]})
    >>> lists = tr.read_recommendations({"ann": ["c"], "bob": ["b", "a"]}, train)
    >>> lists.counts(1).tolist()
    [0, 1, 1]
    """
    rows = load(source, LISTS, {"user": user, "item": item, "score": score, "rank": rank}, with_header(format, header))
    user_ids, users = _numbered(rows, "user", None)
    item_ids, items = _numbered(rows, "item", None if train is None else train.item_names)
    scores = rows.numbers("score") if "score" in rows else None
    order = _order(users, scores, rows)
    sizes = np.bincount(users, minlength=user_ids.size)
    _refuse_repeats(users, items, item_ids.size, rows)
    longest = int(sizes.max(initial=1))
    if k is not None and k < longest:
        raise InputError(f"`k` must be at least the length of the longest list ({longest}), got {k}.")
    return Recommendations(
        items=items[order],
        indptr=np.concatenate([[0], np.cumsum(sizes)]),
        user_ids=user_ids,
        item_ids=item_ids,
        k=k or longest,
        scores=None if scores is None else scores[order],
        notes=rows.notes if train is not None else (*rows.notes, NO_CATALOGUE),
    )


def _numbered(rows: Rows, role: str, names: AnyArray | None) -> tuple[AnyArray, Ints]:
    """Return the names of users or items, which may be given, and the number of that in each row."""
    if names is None:
        encoded = rows.ids(role).dictionary_encode()
        return as_names(encoded.dictionary, role), encoded.indices.to_numpy().astype(np.int64)
    listed, known = comparable(rows.table[role], pa.chunked_array([pa.array(names)]))
    numbers = pa.compute.index_in(listed, value_set=known.combine_chunks()).combine_chunks()
    if numbers.null_count:
        row = int(np.argmax(numbers.is_null().to_numpy(zero_copy_only=False)))
        raise rows.error(row, f"{role} {shown(rows.table[role][row].as_py())} is not in `train`")
    return names, numbers.to_numpy().astype(np.int64)


def _order(users: Ints, scores: Floats | None, rows: Rows) -> Ints:
    """Return the rows user by user, best first."""
    if scores is None and "rank" in rows:
        scores = -rows.numbers("rank")
    return np.argsort(users, kind="stable") if scores is None else np.lexsort((-scores, users))


def _refuse_repeats(users: Ints, items: Ints, n_items: int, rows: Rows) -> None:
    first = np.unique(users * n_items + items, return_index=True)[1]
    if first.size < users.size:
        row = int(np.setdiff1d(np.arange(users.size), first)[0])
        user, item = (shown(rows.table[role][row].as_py()) for role in ("user", "item"))
        raise rows.error(row, f"item {item} of user {user} is in the list more than once")
