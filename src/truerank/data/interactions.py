"""Who had to do with what: users, items, and the pairs of them that are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from truerank.arrays import AnyArray, Bools, Floats, Ints, as_ints
from truerank.errors import InputError


@dataclass(frozen=True, eq=False)
class Interactions:
    """Pairs of users and items as a sparse matrix, with the names of both.

    Attributes
    ----------
    matrix : scipy.sparse.csr_array of shape (n_users, n_items)
        A stored entry is an interaction, whatever its value; items ascend within a user.
    user_ids, item_ids : arrays, optional
        Names of the rows and of the columns.
    times, ratings : arrays, optional
        When each interaction was (whole numbers, floats or datetime64) and how good; aligned with
        the stored entries.
    positions : array of int, optional
        Row of the source (from 0) in which each interaction was.
    notes : tuple of str
        What was dropped or merged on the way.
    """

    matrix: sp.csr_array
    user_ids: AnyArray | None = None
    item_ids: AnyArray | None = None
    times: AnyArray | None = None
    ratings: Floats | None = None
    positions: Ints | None = None
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        sizes = {"user_ids": self.n_users, "item_ids": self.n_items}
        sizes |= dict.fromkeys(("times", "ratings", "positions"), self.items.size)
        for name, size in sizes.items():
            array = getattr(self, name)
            if array is not None and np.shape(array) != (size,):
                raise InputError(f"`{name}` must have {size} entries, got shape {np.shape(array)}.")

    def __repr__(self) -> str:
        extra = "".join(f", {name}" for name in ("times", "ratings") if getattr(self, name) is not None)
        return f"Interactions({self.n_users} users, {self.n_items} items, {self.items.size} events{extra})"

    @classmethod
    def of(cls, given: Any, name: str, *, n_users: int | None = None, n_items: int | None = None) -> Interactions:
        """Return interactions from a sparse matrix, or from a list of item numbers per user.

        Parameters
        ----------
        given : Interactions, sparse matrix, or list of lists of int
            User u is row u, or the u-th list.
        name : str
            What to call it in messages.
        n_users, n_items : int, optional
            The shape it must have; lists may be shorter.

        Examples
        --------
        >>> Interactions.of([[2, 0], []], "train", n_items=4).matrix.toarray().astype(int).tolist()
        [[1, 0, 1, 0], [0, 0, 0, 0]]
        """
        if isinstance(given, Interactions):
            known = given
        elif sp.issparse(given):
            known = cls(_sorted(given))
        elif isinstance(given, Sequence) and not isinstance(given, str):
            known = cls(_from_lists(given, name, n_users, n_items))
        else:
            raise InputError(
                f"`{name}` must be a sparse matrix or a list of item numbers per user, got {type(given).__name__}."
            )
        for axis, (size, what) in enumerate(((n_users, "users"), (n_items, "items"))):
            if size is not None and known.matrix.shape[axis] != size:
                raise InputError(f"`{name}` must have {size} {what}, got {known.matrix.shape[axis]}.")
        return known

    @property
    def n_users(self) -> int:
        """Rows of the matrix."""
        return int(self.matrix.shape[0])

    @property
    def n_items(self) -> int:
        """Columns of the matrix."""
        return int(self.matrix.shape[1])

    @property
    def names(self) -> AnyArray:
        """Names of the users, or their numbers."""
        return np.arange(self.n_users) if self.user_ids is None else self.user_ids

    @property
    def item_names(self) -> AnyArray:
        """Names of the items, or their numbers."""
        return np.arange(self.n_items) if self.item_ids is None else self.item_ids

    def of_user(self, user: int) -> Ints:
        """Items of one user, ascending."""
        return self.items[self.indptr[user] : self.indptr[user + 1]].astype(np.int64)

    @property
    def users(self) -> Ints:
        """User of each stored entry."""
        return np.repeat(np.arange(self.n_users), np.diff(self.indptr))

    def select(self, chosen: Bools, *, notes: tuple[str, ...] = ()) -> Interactions:
        """Return the stored entries that are chosen, with the same users and items.

        Examples
        --------
        >>> import numpy as np
        >>> data = Interactions.of([[0, 1], [1]], "data")
        >>> data.select(np.array([False, True, True])).matrix.toarray().tolist()
        [[0, 1], [0, 1]]
        """
        indptr = np.concatenate([[0], np.cumsum(chosen)])[self.indptr]
        matrix = sp.csr_array((self.matrix.data[chosen], self.items[chosen], indptr), shape=self.matrix.shape)
        aligned = {
            name: None if (array := getattr(self, name)) is None else array[chosen]
            for name in ("times", "ratings", "positions")
        }
        return Interactions(matrix, self.user_ids, self.item_ids, **aligned, notes=notes)

    def overlap(self, other: Interactions) -> Ints:
        """How many items of each user are in both; looks up the other's, so let that be the smaller."""
        rows = np.repeat(np.arange(other.n_users), np.diff(other.indptr))
        bounds = self.indptr
        low, end = bounds[rows], bounds[rows + 1]
        high = end
        # binary searches side by side, as many steps as the longest list takes
        for _ in range(int(np.max(end - low, initial=0)).bit_length()):
            middle = (low + high) >> 1
            less = (self.items.take(middle, mode="clip") < other.items) & (low < high)
            low, high = np.where(less, middle + 1, low), np.where(less, high, middle)
        found = low < end
        found[found] = self.items[low[found]] == other.items[found]
        return np.bincount(rows[found], minlength=other.n_users).astype(np.int64)

    @property
    def indptr(self) -> Ints:
        """Boundaries of the users in `items`."""
        return self.matrix.indptr.astype(np.int64, copy=False)

    @property
    def items(self) -> AnyArray:
        """Items of all users, one user after the other."""
        return self.matrix.indices


def _sorted(matrix: Any) -> sp.csr_array:
    """Return the matrix with ascending items and no pair twice; as it is, not a copy, if it is so already."""
    known = sp.csr_array(matrix)
    if not _ascends(known):
        known = known.copy()
        known.sum_duplicates()
    return known


def _ascends(matrix: sp.csr_array) -> bool:
    """Whether items ascend within each user: `has_canonical_format`, by vector instructions."""
    items, bounds = matrix.indices, matrix.indptr
    if np.any(bounds[1:] < bounds[:-1]):
        return False
    higher = np.empty(items.size + 1, np.bool_)
    np.greater(items[1:], items[:-1], out=higher[1:-1])
    higher[bounds] = True  # a user's first item need not be above the last one of the user before
    return bool(higher.all())


def _from_lists(lists: Sequence[Any], name: str, n_users: int | None, n_items: int | None) -> sp.csr_array:
    sizes = [len(items) for items in lists]
    items = as_ints(name, np.concatenate([np.asarray(row, dtype=np.int64) for row in lists] or [np.zeros(0, np.int64)]))
    width = int(items.max(initial=-1)) + 1 if n_items is None else n_items
    if items.size and not 0 <= items.min() <= items.max() < width:
        raise InputError(f"`{name}` must hold items 0..{width - 1}, got {items.min()}..{items.max()}.")
    height = len(lists) if n_users is None else max(n_users, len(lists))
    users = np.repeat(np.arange(len(lists)), sizes)
    return _sorted(sp.coo_array((np.ones(items.size, np.int8), (users, items)), shape=(height, width)))
