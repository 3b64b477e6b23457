"""The arguments that `rank` and `rank_sampled` share -> what is held out, in the numbering of the scorers."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import reduce
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np

from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, Rng, as_rng, counted
from truerank.core.csr import bounds
from truerank.core.matrices import is_sparse
from truerank.core.ranks import Ranks
from truerank.core.threads import Memory
from truerank.data.interactions import Interactions, PerUser, check_same_names
from truerank.data.splits import Split
from truerank.scoring.conversion import Scoreable, as_scorer
from truerank.scoring.scorers import Scorer, measured

if TYPE_CHECKING:
    import scipy.sparse as sp

    from truerank.scoring.score_store import AnyStore

Users = int | Sequence[Any] | AnyArray
"""A number of users to draw, or the ids of users."""


class RankOptions(TypedDict, total=False):
    """What `rank` and `rank_sampled` both take by keyword."""

    train: PerUser | None
    test: PerUser | None
    candidates: PerUser | None
    keep_train: bool | None
    users: Users | None
    rng: Rng
    threads: int | None
    progress: bool
    store: AnyStore | None
    memory: Memory | None


def seed_with(store: AnyStore | None, rng: Any) -> Any:
    """Return the seed: with a store the same one in each call, unless it is given, so that the same pairs are asked."""
    return 0 if rng is None and store is not None else rng


@dataclass(frozen=True)
class HeldOut:
    """What is to be ranked: the relevant items of each user, and the scorers that rank them.

    Attributes
    ----------
    scorers : tuple of Scorer
        Their users and items are numbered as those of `test`.
    train : Interactions, optional
        Training items.
    test : Interactions
        Relevant items, with the names of users and items.
    grades : array of float above 0, optional
        Grade of each stored entry of `test`; None if all are 1.
    notes : tuple of str
        What was dropped or merged.
    n_without : int
        Users without relevant items.
    n_unranked : tuple of int
        Items of each scorer that are not in the data, and so are not candidates.
    keep_train : bool
        Whether training items are candidates.
    listed : Interactions, optional
        The candidates of each user, besides the relevant items; None: all items.
    """

    scorers: tuple[Scorer, ...]
    train: Interactions | None
    test: Interactions
    grades: Floats | None
    notes: tuple[str, ...] = ()
    n_without: int = 0
    n_unranked: tuple[int, ...] = ()
    keep_train: bool = False
    listed: Interactions | None = None

    @property
    def excluded(self) -> Interactions | None:
        """Training items that are not candidates, unless they are relevant; None if all items are candidates."""
        return None if self.keep_train else self.train

    @property
    def users(self) -> Ints:
        """Users with relevant items."""
        return np.flatnonzero(np.diff(self.test.indptr))

    @property
    def n_candidates(self) -> Ints:
        """Candidates of each user with relevant items."""
        if self.listed is not None:
            marks = self.marks()
            return np.diff(bounds(is_candidate(marks))[marks.indptr])[self.users]
        if self.excluded is None:
            return np.full(self.users.size, self.test.n_items)
        left_out = np.diff(self.excluded.indptr) - self.excluded.overlap(self.test)
        return self.test.n_items - left_out[self.users]

    def marks(self) -> sp.csr_array:
        """Return a matrix with 1 for a listed candidate, 2 for a relevant item, 4 for an excluded one, or their sum."""
        parts = ((self.listed, 1), (self.test, 2), (self.excluded, 4))
        return reduce(operator.add, [_marked(part, mark) for part, mark in parts if part is not None])

    def ranks(
        self, order: Ints, above: Ints, tied: Ints, n_candidates: Ints, same_score: Bools | None, **others: Any
    ) -> Ranks:
        """Return the ranks of the users with relevant items.

        Parameters
        ----------
        order : array of int, one per relevant item
            Which entry of `test` it is.
        above, tied, n_candidates, same_score, others
            As in `truerank.Ranks`; `same_score` matters only if there are grades.
        """
        return Ranks(
            above=above,
            tied=tied,
            n_candidates=n_candidates,
            indptr=bounds(np.diff(self.test.indptr)[self.users]),
            ids=self.test.names[self.users],
            grades=None if self.grades is None else self.grades[order],
            same_score=None if self.grades is None else same_score,
            items=self.test.item_names[self.test.items[order]],
            **others,
        )

    def paying(
        self, given: object, scorers: Sequence[Scorer], store: AnyStore | None, progress: bool, total: int | None
    ) -> AbstractContextManager[tuple[Sequence[Scorer], bool]]:
        """Return scorers that use a store and show what they spend, and whether other progress is still to show."""
        if store is None and not progress:
            return nullcontext((scorers, False))
        from truerank.scoring.score_store import paying  # with SQLite

        return paying(given, scorers, self.test, store, progress, total)

    def finished(self, ranks: Sequence[Ranks], scorer: object) -> Ranks | dict[str, Ranks]:
        """Return the ranks by each scorer as they were asked for, with a note on its items that are not candidates."""
        words = (
            "item of the scorer is not in the data and is not a candidate",
            "items of the scorer are not in the data and are not candidates",
        )
        unranked = self.n_unranked if self.listed is None else (0,) * len(ranks)
        noted = [
            dataclasses.replace(one, notes=(*one.notes, counted(number, *words))) if number else one
            for one, number in zip(ranks, unranked, strict=False)
        ]
        return dict(zip(scorer, noted, strict=True)) if isinstance(scorer, Mapping) else noted[0]

    @classmethod
    def of(
        cls,
        scorers: Iterable[Scoreable],
        split: Split | None = None,
        *,
        train: PerUser | None = None,
        test: PerUser | None = None,
        candidates: PerUser | None = None,
        keep_train: bool | None = None,
        users: Users | None = None,
        rng: Rng = None,
    ) -> HeldOut:
        """Check the arguments of `rank` and `rank_sampled`, and bring them together.

        The values of `test` are grades: an entry above 0 is relevant, others are not, and if all
        relevant ones are 1 there are no grades. Users and items are matched by name if a scorer has
        names, else by number.

        Examples
        --------
        >>> held = HeldOut.of([np.eye(3)], test=[[1], [], [2, 0]])
        >>> held.test, held.users.tolist(), held.grades
        (Interactions(3 users, 3 items, 3 events), [0, 2], None)
        """
        train, test = _parts(split, train, test)
        keeps = split is not None and split.repeats == "hold out" if keep_train is None else keep_train
        given = [as_scorer(scorer, train) for scorer in scorers]
        if not given:
            raise InputError("at least one scorer must be given.")
        n_users, n_items = (_size(given, train, test, axis) for axis in (0, 1))
        if n_items is None:
            given[0] = _measure(given[0], train, test)
            n_items = given[0].n_items
        held = Interactions.of(test, "test", n_users=n_users, n_items=n_items)
        sizes = {"n_users": held.n_users, "n_items": held.n_items}
        seen = None if train is None else Interactions.of(train, "train", **sizes)
        relevant, grades, dropped = _relevant(_with_names(held, seen))
        without = int((np.diff(relevant.indptr) == 0).sum())
        chosen: tuple[str, ...] = ()
        if users is not None:
            kept, chosen = choose_users(relevant, users, rng)
            relevant, grades = relevant.select(kept), None if grades is None else grades[kept]
        repeated = () if held is test else held.notes
        aligned = tuple(_aligned(scorer, relevant, np.flatnonzero(np.diff(relevant.indptr))) for scorer in given)
        unranked = tuple(0 if one.n_items is None else one.n_items - relevant.n_items for one in given)
        listed = None if candidates is None else Interactions.of(candidates, "candidates", **sizes)
        if listed is not None:
            check_same_names(listed, relevant, "`candidates` and `test`")
        notes = (*repeated, *dropped, *chosen)
        return cls(aligned, seen, relevant, grades, notes, without, unranked, keeps, listed)


def is_candidate(marks: sp.csr_array) -> Bools:
    """Return which stored entries of `HeldOut.marks` are candidates: relevant ones, and those only listed."""
    return (marks.data & 2 > 0) | (marks.data == 1)


def _marked(part: Interactions, mark: int) -> sp.csr_array:
    """Return a matrix with this mark at each stored entry, so that a sum of several shows which of them store it."""
    import scipy.sparse as sp

    return sp.csr_array((np.full(part.items.size, mark, np.int8), part.items, part.indptr), shape=part.shape)


def _parts(split: Split | None, train: PerUser | None, test: PerUser | None) -> tuple[PerUser | None, PerUser]:
    if split is not None and (train is not None or test is not None):
        raise InputError("give either a split, or `train` and `test`, not both.")
    if isinstance(split, Split):
        return split.train, split.test
    if split is not None:
        raise InputError(f"`split` must be a Split, got {type(split).__name__}; give held-out items as `test`.")
    if test is None:
        raise InputError("give the held-out items as `test`, or a `split`.")
    return train, test


def _size(scorers: Sequence[Scorer], train: PerUser | None, test: PerUser, axis: int) -> int | None:
    """Return the number of users or items: of a scorer without names, else of the data, else of any scorer."""
    sizes = [(scorer.n_items, scorer.item_ids) if axis else (scorer.n_users, scorer.user_ids) for scorer in scorers]
    parts: list[Any] = [test, train]
    data = [part.shape[axis] for part in parts if isinstance(part, Interactions) or is_sparse(part)]
    stated = [*(size for size, ids in sizes if ids is None), *data, *(size for size, _ in sizes)]
    return next((size for size in stated if size is not None), None)


def _measure(scorer: Scorer, train: PerUser | None, test: PerUser) -> Scorer:
    """Return the scorer with its number of items, where the data are lists."""
    held, seen = Interactions.of(test, "test"), Interactions.of([] if train is None else train, "train")
    return measured(scorer, np.flatnonzero(np.diff(held.indptr)), max(held.n_items, seen.n_items))


def _with_names(held: Interactions, seen: Interactions | None) -> Interactions:
    """Return the held-out items with the names of the training items where they have none of their own."""
    if seen is None:
        return held
    check_same_names(seen, held, "`train` and `test`")
    missing = {role: getattr(seen, role) for role in ("user_ids", "item_ids") if getattr(held, role) is None}
    missing = {role: names for role, names in missing.items() if names is not None}
    return dataclasses.replace(held, **missing) if missing else held


def _relevant(held: Interactions) -> tuple[Interactions, Floats | None, tuple[str, ...]]:
    """Return the entries above 0, their grades unless all are 1, and a note on the others."""
    values = held.values
    above = values > 0
    notes: tuple[str, ...] = ()
    if not above.all():
        words = (
            "held-out entry is 0 or below and is not relevant",
            "held-out entries are 0 or below and are not relevant",
        )
        notes = (counted(int((~above).sum()), *words),)
        held, values = held.select(above), values[above]
    return held, None if np.all(values == 1) else values.astype(np.float64), notes


def choose_users(test: Interactions, users: Users, rng: Rng) -> tuple[Bools, tuple[str, ...]]:
    """Return which held-out entries belong to the chosen users, and a note.

    Parameters
    ----------
    test : Interactions
        Held-out items.
    users : int, or list of ids
        How many users with held-out items to draw, all of them if there are fewer; or which ones.
    rng : int or numpy.random.Generator, optional
        Seed of the draw.

    Examples
    --------
    >>> test = Interactions.of([[0], [1], [], [0, 1]], "test")
    >>> choose_users(test, [3], None)
    (array([False, False,  True,  True]), ('1 of 3 users was ranked, as chosen',))
    """
    held = np.flatnonzero(np.diff(test.indptr))
    if isinstance(users, int | np.integer) and not isinstance(users, bool):
        if users < 1:
            raise InputError(f"`users` must be a number from 1, or the ids of users, got {users}.")
        rows = np.sort(as_rng(rng).choice(held, min(int(users), held.size), replace=False))
        how = "drawn at random"
    else:
        rows, how = _find(test, held, np.asarray(users)), "as chosen"
    kept = np.isin(test.users, rows)
    words = (f"of {held.size} users was ranked, {how}", f"of {held.size} users were ranked, {how}")
    return kept, () if rows.size == held.size else (counted(rows.size, *words),)


def _find(test: Interactions, held: Ints, ids: AnyArray) -> Ints:
    """Return the rows of the given users, all of whom must have held-out items."""
    names = test.names[held]
    if ids.ndim != 1 or ids.size == 0:
        raise InputError("`users` must be a number from 1, or a list of ids.")
    if (names.dtype.kind == "U") != (ids.dtype.kind in "UOT"):
        raise InputError(f"`users` must be ids such as {names.tolist()[0]!r}, got {ids.tolist()[0]!r}.")
    if np.any(unknown := ~np.isin(ids.astype(names.dtype) if ids.dtype.kind in "OT" else ids, names)):
        raise InputError(f"`users` must have held-out items, but {ids[unknown].tolist()[0]!r} has none.")
    return held[np.isin(names, ids)]


def _aligned(scorer: Scorer, held: Interactions, users: Ints) -> Scorer:
    """Return the scorer with its users and items numbered as those of the data."""
    sized = scorer if scorer.n_items is not None else scorer.sized(held.n_items)
    for role, ids, own, size in (
        ("users", sized.user_ids, sized.n_users, held.n_users),
        ("items", sized.item_ids, sized.n_items, held.n_items),
    ):
        if ids is None and own not in (None, size):
            raise InputError(f"all scorers must have the {role} of `test` ({size}), got one with {own}.")
    return sized.aligned(held.names, held.item_names, users)
