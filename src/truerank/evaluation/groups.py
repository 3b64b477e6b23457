"""Groups of instances, or of relevant items, for which results are shown separately."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import (
    AnyArray,
    InputError,
    Ints,
    as_frame,
    as_ids,
    as_ints,
    as_list,
    check_kind,
    counted,
    shown,
)
from truerank.core.ranks import Ranks

if TYPE_CHECKING:
    from truerank.data.splits import Split

UNKNOWN = "unknown"
"""Name of the group of instances or items without a given group."""


@dataclass(frozen=True, eq=False)
class Groups:
    """A group for each id of an instance, or for each item.

    Attributes
    ----------
    ids : array
        Ids of instances, or names of items.
    codes : array of int
        Which group each of them belongs to, as a position in `names`.
    names : tuple of str
        The groups, in the order in which they are shown.
    of_items : bool
        Whether they are groups of relevant items.
    of_split : bool
        Whether they are all users or items of a split, of which it is usual that only some have ranks.

    Examples
    --------
    >>> groups = Groups.of({"ann": "new", "bob": "old", "cyd": "new"})
    >>> groups.names, groups.find(np.array(["bob", "eve"])).tolist()
    (('new', 'old'), [1, 2])
    """

    ids: AnyArray
    codes: Ints
    names: tuple[str, ...]
    of_items: bool = False
    of_split: bool = False

    @classmethod
    def of(cls, given: Groups | Mapping[Any, Any] | Any) -> Groups:
        """Return groups from a dict of id to name, or from a frame with a column of ids and one of names."""
        if isinstance(given, Groups):
            return given
        if isinstance(given, Mapping):
            return cls.named(list(given), list(given.values()))
        return by_column(given)

    @classmethod
    def named(cls, ids: ArrayLike, names: Sequence[Any], *, of_items: bool = False) -> Groups:
        """Return groups from sequences of ids and names; names are shown in the order of their first appearance."""
        texts = [UNKNOWN if _is_missing(name) else str(name) for name in names]
        order = {text: place for place, text in enumerate(dict.fromkeys(texts))}
        codes = np.array([order[text] for text in texts], dtype=np.int64)
        found = cls(as_ids("ids", ids), codes, tuple(order), of_items)
        # NaN, where an id is missing, is not found
        if np.any(other := (found.find(found.ids) != codes) & (found.ids == found.ids)):
            at = int(np.argmax(other))
            both = f"{texts[at]!r} and {found.names[found.find(found.ids[[at]]).item()]!r}"
            raise InputError(f"each id must be in one group, but {shown(found.ids[at].item())} is in {both}.")
        return found

    def find(self, ids: AnyArray) -> Ints:
        """Return the group of each id; unknown ids get the number of groups, unless a group has their name."""
        own = self.ids
        if (own.dtype.kind == "U") != (ids.dtype.kind == "U"):
            own, ids = own.astype(np.str_), ids.astype(np.str_)
        unknown = self.names.index(UNKNOWN) if UNKNOWN in self.names else len(self.names)
        if own.size == 0:
            return np.full(ids.size, unknown)
        order = np.argsort(own, kind="stable")
        place = np.minimum(np.searchsorted(own, ids, sorter=order), own.size - 1)
        return np.where(own[order[place]] == ids, self.codes[order[place]], unknown)

    def codes_of(self, ranks: Ranks) -> Ints:
        """Return the group of each instance, or of each relevant item."""
        return self.find(self.ids_in(ranks))

    def ids_in(self, ranks: Ranks) -> AnyArray:
        """Return what may have a group: the id of each instance, or the name of each relevant item."""
        if not self.of_items:
            return np.arange(len(ranks)) if ranks.ids is None else ranks.ids
        if ranks.items is None:
            raise InputError("groups of items need ranks that know their items, as those of tr.rank do (Ranks.items).")
        return ranks.items

    def notes(self, *found: AnyArray) -> tuple[str, ...]:
        """Return a note on ids with a group that are not among those of any recommender.

        Examples
        --------
        >>> Groups.of({"ann": "new", "bob": "old", "cyd": "new"}).notes(np.array(["bob", "eve"]), np.array(["cyd"]))
        ('1 of 3 ids with a group is not in the results',)
        """
        own, ids = self.ids, [np.unique(each) for each in found]
        if any((own.dtype.kind == "U") != (each.dtype.kind == "U") for each in ids):
            own, ids = own.astype(np.str_), [each.astype(np.str_) for each in ids]
        missing = ~np.isin(own, np.concatenate(ids))
        if missing.all():
            groups, results = (
                f" (such as {shown(some[0].item())})" if some.size else "" for some in (self.ids, found[0])
            )
            return (f"no id with a group{groups} is in the results{results}: all are in the group {UNKNOWN!r}",)
        if self.of_split or not missing.any():
            return ()
        verbs = (f"of {own.size} ids with a group {verb} not in the results" for verb in ("is", "are"))
        return (counted(int(missing.sum()), *verbs),)


def by_column(frame: Any, column: str | None = None, *, id: str | None = None, items: bool = False) -> Groups:  # noqa: A002
    """Return groups from a dataframe with a column of ids and a column of group names.

    Parameters
    ----------
    frame : pandas, polars or pyarrow dataframe
        A row per id.
    column : str, optional
        The column of group names; by default the only one besides the ids.
    id : str, optional
        The column of ids; the first one by default.
    items : bool
        Whether the ids are items, and not instances.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> groups = tr.by_column(pd.DataFrame({"user": ["ann", "bob"], "age": ["<18", "18+"], "zip": [1, 2]}), "age")
    >>> groups.names
    ('<18', '18+')
    """
    import narwhals as nw

    table = as_frame(frame, eager_only=True, pass_through=True)
    if not isinstance(table, nw.DataFrame):
        raise InputError(f"groups are a dict or a dataframe from id to name, got {type(frame).__name__}.")
    key = table.columns[0] if id is None else id
    others = [name for name in table.columns if name != key]
    if column is None and len(others) != 1:
        raise InputError(f"`column` must be named, since the frame has several besides {key!r}: {others}.")
    chosen = others[0] if column is None else column
    for name in (key, chosen):
        if name not in table.columns:
            raise InputError(f"the frame has the columns {table.columns}, got {name!r}.")
    return Groups.named(table[key].to_list(), table[chosen].to_list(), of_items=items)


def _is_missing(name: Any) -> bool:
    """Whether the name of a group is None, NaN, or what pandas has for missing values."""
    return not isinstance(name, str) and str(name) in {"None", "nan", "<NA>", "NaT"}


def by_activity(split: Split, *, bounds: Sequence[int] | None = None) -> Groups:
    """Return groups of users by their number of training interactions; users without any are a group of their own.

    Parameters
    ----------
    split : Split
    bounds : list of int, optional
        The largest number of each group except the last, e.g. ``[5, 20]`` for 1 to 5, 6 to 20 and more. By default
        there are four groups with about the same number of users with held-out items each.

    Examples
    --------
    >>> import truerank as tr
    >>> train, test = tr.Interactions.of([[0, 1], [], [2]], "train"), tr.Interactions.of([[2], [1], [0]], "test")
    >>> tr.by_activity(tr.Split(train, test), bounds=[1]).names
    ('no training events', '1 training event', '2 training events or more')
    """
    _check_split(split)
    # counts of a user, whose sessions may be rows of their own
    users, which = np.unique(split.train.owners, return_inverse=True)
    counts, held = (np.bincount(which, np.diff(part.indptr)).astype(np.int64) for part in (split.train, split.test))
    return _by_count(users, counts, counts[held > 0], bounds)


def by_popularity(split: Split, *, bounds: Sequence[int] | None = None) -> Groups:
    """Return groups of items by their number of training interactions; items without any are a group of their own.

    An instance with relevant items in several groups counts in each of them with a weight equal to the share of its
    relevant items that are in the group; the value is what these items add to its metric. So the means of the groups,
    weighted by their shares, add up to the overall mean.

    Parameters
    ----------
    split : Split
    bounds : list of int, optional
        As for `by_activity`. By default there are four groups with about the same number of held-out interactions each.

    Examples
    --------
    >>> import truerank as tr
    >>> train, test = tr.Interactions.of([[0, 1], [1]], "train", n_items=3), tr.Interactions.of([[2], [0]], "test")
    >>> groups = tr.by_popularity(tr.Split(train, test), bounds=[1])
    >>> groups.names
    ('no training events', '1 training event', '2 training events or more')
    >>> table = tr.evaluate(tr.rank(np.array([[0, 0, 1], [2, 1, 0]]), tr.Split(train, test)), "rr", by=groups)
    >>> table["recommender", "rr", "1 training event"].mean
    1.0
    """
    _check_split(split)
    counts = np.bincount(split.train.items, minlength=split.train.n_items)
    groups = _by_count(split.train.item_names, counts, counts[split.test.items], bounds)
    return replace(groups, of_items=True)


def _check_split(given: object) -> None:
    from truerank.data.splits import Split  # it loads modules that groups of instances don't need

    check_kind("split", given, Split)


def _by_count(ids: AnyArray, counts: Ints, weighing: Ints, bounds: Sequence[int] | None) -> Groups:
    """Return groups of counts: none, and between the bounds."""
    warm = weighing[weighing > 0]
    if bounds is None:
        middle = np.quantile(warm, [0.25, 0.5, 0.75], method="inverted_cdf") if warm.size else np.zeros(0)
        tops = [int(top) for top in np.unique(middle) if top < counts.max(initial=0)]
    else:
        tops = as_ints("bounds", as_list("bounds", bounds)).tolist()
        if tops != sorted(set(tops)) or any(top < 1 for top in tops):
            raise InputError(f"`bounds` must be ascending whole numbers from 1, got {tops}.")
    starts = [1, *(top + 1 for top in tops)]
    names = ["no training events", *(_range(low, high) for low, high in zip(starts, [*tops, None], strict=True))]
    return Groups(ids, np.searchsorted(starts, counts, side="right"), tuple(names), of_split=True)


def _range(low: int, high: int | None) -> str:
    if high is None:
        return f"{low} training events or more" if low > 1 else "some training events"
    if low == high:
        return f"{low} training event{'s' if low > 1 else ''}"
    return f"{low} to {high} training events"
