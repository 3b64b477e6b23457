"""The arguments that `rank` and `rank_sampled` share -> what is held out, in the numbering of the scorers."""

from __future__ import annotations

import dataclasses
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import cached_property, reduce
from typing import TYPE_CHECKING, Any, Literal, TypedDict, get_args

import numpy as np

from truerank.core.checks import (
    AnyArray,
    Bools,
    Floats,
    InputError,
    Ints,
    Rng,
    as_rng,
    check_choice,
    counted,
    is_sparse,
)
from truerank.core.csr import bounds
from truerank.core.ranks import Ranks
from truerank.core.threads import Memory
from truerank.data.candidates import (
    Listed,
    Listing,
    joined,
    listing,
    narrowed,
    new_items,
    repeated_for,
    widened,
)
from truerank.data.interactions import Interactions, PerUser, check_same_names
from truerank.data.splits import Split
from truerank.scoring.conversion import Scoreable, as_scorer
from truerank.scoring.scorers import Scorer, UnknownLast, measured

if TYPE_CHECKING:
    import scipy.sparse as sp

    from truerank.scoring.score_store import AnyStore

Users = int | Sequence[Any] | AnyArray
"""A number of users to draw, or the ids of users."""

Unknown = Literal["refuse", "last", "drop"]
"""What to do about users and items that a scorer does not know."""


class RankOptions(TypedDict, total=False):
    """The keyword arguments that `rank` and `rank_sampled` share."""

    train: PerUser | None
    test: PerUser | None
    candidates: Listed | None
    exclude: Listed | None
    unknown: Unknown
    keep_train: bool | None
    users: Users | None
    rng: Rng
    threads: int | None
    progress: bool
    store: AnyStore | None
    memory: Memory | None


def seed_with(store: AnyStore | None, rng: Any) -> Any:
    """Return the given seed or, with a store, the same one in each call, so that calls ask for the same pairs."""
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
        The candidates of each user, besides the relevant items; None for all items.
    left_out : Interactions, optional
        Further items that are not candidates of a user, unless they are relevant.
    known : tuple of (array of bool, array of bool) or None
        The users and items that each scorer knows; None if it knows all.
    catalogue : Interactions, optional
        Has the names of all items, if only some are candidates for anybody; None if `test` has them.
    all_items : bool
        Whether all items of the data are candidates, unless they are excluded.
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
    left_out: Interactions | None = None
    known: tuple[tuple[Bools, Bools] | None, ...] = ()
    catalogue: Interactions | None = None
    all_items: bool = True

    @cached_property
    def excluded(self) -> Interactions | None:
        """Items that are not candidates, unless they are relevant; None if all items are candidates."""
        trained = None if self.keep_train else self.train
        return trained if self.left_out is None else joined(trained, self.left_out)

    @property
    def n_trained(self) -> int:
        """Relevant items that are also training items; they are candidates nevertheless."""
        return 0 if self.keep_train or self.train is None else int(self.train.contains(self.test).sum())

    @cached_property
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
        return reduce(operator.add, [part.marked(mark) for part, mark in parts if part is not None])

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
            ids=self.test.owners[self.users],
            grades=None if self.grades is None else self.grades[order],
            same_score=None if self.grades is None else same_score,
            items=self.test.item_names[self.test.items[order]],
            **others,
        )

    def paying(
        self, given: object, scorers: Sequence[Scorer], store: AnyStore | None, progress: bool, total: int | None
    ) -> AbstractContextManager[tuple[Sequence[Scorer], bool]]:
        """Return scorers that use a store and show what they spend, and whether other progress remains to be shown."""
        if store is None and not progress:
            return nullcontext((self.with_unknown(scorers), False))
        return self._paying(given, scorers, store, progress, total)

    @contextmanager
    def _paying(
        self, given: object, scorers: Sequence[Scorer], store: AnyStore | None, progress: bool, total: int | None
    ) -> Iterator[tuple[Sequence[Scorer], bool]]:
        from truerank.scoring.score_store import paying  # with SQLite

        with paying(given, scorers, self.test, store, progress, total, self.catalogue) as (paid, shown):
            yield self.with_unknown(paid), shown

    def with_unknown(self, scorers: Sequence[Scorer], first: int = 0) -> tuple[Scorer, ...]:
        """Return scorers that rank last what they do not know; `first` is the number of the first scorer."""
        known = self.known[first:] or (None,) * len(scorers)
        pairs = zip(scorers, known, strict=False)
        return tuple(one if masks is None else UnknownLast(one, *masks, self.test) for one, masks in pairs)

    def finished(self, ranks: Sequence[Ranks], scorer: object) -> Ranks | dict[str, Ranks]:
        """Return the ranks by each scorer as they were asked for, with a note on its items that are not candidates."""
        words = (
            "item of the scorer is not in the data and is not a candidate",
            "items of the scorer are not in the data and are not candidates",
        )
        own = [
            (*self.unknown_notes(at), *((counted(number, *words),) if number else ()))
            for at, number in enumerate(self.n_unranked)
        ]
        noted = [
            dataclasses.replace(one, notes=(*one.notes, *notes)) if notes else one
            for one, notes in zip(ranks, own, strict=False)
        ]
        return dict(zip(scorer, noted, strict=True)) if isinstance(scorer, Mapping) else noted[0]

    def unknown_notes(self, at: int) -> list[str]:
        """Count the users and items that the scorer with this number does not know and that are ranked last."""
        if (masks := self.known[at]) is None:
            return []
        users, items = int((~masks[0][self.users]).sum()), int((~masks[1]).sum())
        held = int((~masks[1][self.test.items]).sum())
        rule = (
            f"ranked below all others (unknown='last'){f', and {held} held-out events with them last' if held else ''}"
        )
        last, unknown = "all held-out items last (unknown='last')", "not known to the scorer and"
        counts = (
            (items, f"item is {unknown} {rule}", f"items are {unknown} {rule}"),
            (users, f"user is {unknown} has {last}", f"users are {unknown} have {last}"),
        )
        return [counted(number, one, many) for number, one, many in counts if number]

    @classmethod
    def of(
        cls,
        scorers: Iterable[Scoreable],
        split: Split | None = None,
        *,
        train: PerUser | None = None,
        test: PerUser | None = None,
        candidates: Listed | None = None,
        exclude: Listed | None = None,
        unknown: Unknown = "refuse",
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
        check_choice("unknown", unknown, get_args(Unknown))
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
        notes = (*repeated, *dropped, *chosen)
        given = [_sized(scorer, relevant) for scorer in given]
        plain = cls(tuple(given), seen, relevant, grades, notes, without, (), keeps)
        ready = plain.limited(candidates, exclude, unknown)
        return ready.matched(unknown, ready.users)

    def limited(self, candidates: Listed | None, exclude: Listed | None, unknown: Unknown) -> HeldOut:
        """Return what is held out, limited to these candidates, without those to exclude or to drop."""
        if candidates is None and exclude is None and unknown != "drop":
            return self
        wider = self._with_items(new_items(candidates, self.test)) if candidates is not None else self
        full = wider._without_unknown() if unknown == "drop" else wider
        test, times = full.test, _times(full.test)
        allowed, banned = (
            Listing() if each is None else listing(each, name, test, times=times)
            for name, each in (("candidates", candidates), ("exclude", exclude))
        )
        for_all = np.ones(test.n_items, dtype=np.bool_) if allowed.everybody is None else allowed.everybody.copy()
        for_all &= full._known_to_all("item") if unknown == "drop" else True
        for_all &= True if banned.everybody is None else ~banned.everybody
        outside = ~for_all[test.items] | (False if banned.each is None else banned.each.contains(test))
        words = (
            "held-out item is not a candidate of its user and is ranked",
            "held-out items are not candidates of their user and are ranked",
        )
        notes = (*full.notes, *allowed.notes, *banned.notes)
        notes = (*notes, counted(int(outside.sum()), *words)) if outside.any() else notes
        limited = dataclasses.replace(
            full, listed=allowed.each, left_out=banned.each, notes=notes, all_items=candidates is None
        )
        limited._check_listed()
        return limited._among(for_all)

    def _among(self, for_all: Bools) -> HeldOut:
        """Return what is held out with only these items, and each user's relevant ones, as candidates."""
        used = for_all.copy()
        used[self.test.items] = True
        if used.all() and for_all.all():
            return self
        stray, held = used & ~for_all, np.diff(self.test.indptr) > 0
        parts = {"train": self.train, "test": self.test, "listed": self.listed, "left_out": self.left_out}
        narrow = {name: None if part is None else narrowed(part, used) for name, part in parts.items()}
        if self.listed is None and for_all.sum() < stray.sum():
            narrow["listed"] = repeated_for(for_all[used], held)
        elif stray.any():
            narrow["left_out"] = joined(narrow["left_out"], repeated_for(stray[used], held))
        scorers = tuple(_named(one, self.test) for one in self.scorers)
        return dataclasses.replace(self, **narrow, scorers=scorers, catalogue=self.test)  # type: ignore[arg-type]

    def _with_items(self, names: AnyArray) -> HeldOut:
        """Return the same with further items, which no scorer without names knows."""
        if not names.size:
            return self
        scorers = tuple(_named(one, self.test) for one in self.scorers)
        train = None if self.train is None else widened(self.train, names)
        return dataclasses.replace(self, scorers=scorers, train=train, test=widened(self.test, names))

    def _known_to_all(self, role: str) -> Bools:
        names = [_rows(one, self.test) if role == "user" else self.test.item_names for one in self.scorers]
        return reduce(operator.and_, [one.knows(role, own) for one, own in zip(self.scorers, names, strict=True)])

    def _without_unknown(self) -> HeldOut:
        """Return what is held out of users and items that all scorers know, and notes on the others."""
        users, items = self._known_to_all("user"), self._known_to_all("item")
        lost_users, lost_items = int((~users[self.users]).sum()), int((~items).sum())
        kept = users[self.test.users] & items[self.test.items]
        events = int((users[self.test.users] & ~items[self.test.items]).sum())
        what, rule = "not known to every scorer and", "dropped (unknown='drop')"
        lost = f", and {events} held-out events with them" if events else ""
        counts = (
            (lost_users, f"user is {what} is {rule}", f"users are {what} are {rule}"),
            (lost_items, f"item is {what} is {rule}{lost}", f"items are {what} are {rule}{lost}"),
        )
        notes = (*self.notes, *(counted(number, one, many) for number, one, many in counts if number))
        grades = None if self.grades is None else self.grades[kept]
        test = self.test.select(kept)
        without = self.n_without + self.users.size - lost_users - int(np.count_nonzero(np.diff(test.indptr)))
        return dataclasses.replace(self, test=test, grades=grades, notes=notes, n_without=without)

    def _check_listed(self) -> None:
        """Refuse users without candidates, whose relevant items would be ranked only among themselves."""
        if self.listed is None:
            return
        empty = np.diff(self.listed.indptr)[self.users] == 0
        if empty.any():
            first = self.test.names[self.users[int(np.argmax(empty))]].tolist()
            who = counted(int(empty.sum()), "user with held-out items has", "users with held-out items have")
            raise InputError(f"{who} no candidates (first {first!r}); give them some, or choose others with `users`.")

    def matched(self, unknown: Unknown, users: Ints) -> HeldOut:
        """Return the same with scorers numbered like the data; `users` are those that they will score."""
        test = self.test
        each: tuple[tuple[Bools, Bools] | None, ...] = (None,) * len(self.scorers)
        if unknown == "last":
            masks = [(one.knows("user", _rows(one, test)), one.knows("item", test.item_names)) for one in self.scorers]
            each = tuple(None if rows[users].all() and items.all() else (rows, items) for rows, items in masks)
        scorers = tuple(_aligned(one, test, users, own) for one, own in zip(self.scorers, each, strict=True))
        sizes = [test.n_items if one.n_items is None else one.n_items for one in self.scorers]
        n_unranked = tuple(max(size - test.n_items, 0) if self.all_items else 0 for size in sizes)
        return dataclasses.replace(self, scorers=scorers, known=each, n_unranked=n_unranked)


def _times(test: Interactions) -> AnyArray | None:
    """Return when each user has the first held-out event, NaN or NaT for others; None if no times are known."""
    held = np.flatnonzero(np.diff(test.indptr))
    if test.times is None or not held.size:
        return None
    times = test.times if test.times.dtype.kind == "M" else test.times.astype(np.float64)
    first = np.full(test.n_users, np.nan if times.dtype.kind == "f" else np.datetime64("NaT"), dtype=times.dtype)
    first[held] = np.minimum.reduceat(times, test.indptr[held])
    return first


def _named(scorer: Scorer, data: Interactions) -> Scorer:
    """Return the scorer with the item names of the data, unless it has its own."""
    return scorer if scorer.item_ids is not None else scorer.named(None, data.item_names)


def is_candidate(marks: sp.csr_array) -> Bools:
    """Return which stored entries of `HeldOut.marks` are candidates: relevant ones, and those only listed."""
    return (marks.data & 2 > 0) | (marks.data == 1)


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


def _sized(scorer: Scorer, held: Interactions) -> Scorer:
    """Return the scorer with its number of items; refuse one whose numbers of users and items differ from the data."""
    sized = scorer if scorer.n_items is not None else scorer.sized(held.n_items)
    for role, ids, own, size in (
        ("users", sized.user_ids, sized.n_users, held.n_users),
        ("items", sized.item_ids, sized.n_items, held.n_items),
    ):
        if ids is None and own not in (None, size):
            raise InputError(f"all scorers must have the {role} of `test` ({size}), got one with {own}.")
    return sized


def _rows(scorer: Scorer, held: Interactions) -> AnyArray:
    """Return the names by which a scorer knows the rows: those of sessions, or of users if it knows only users."""
    if held.session_users is None or scorer.user_ids is None or np.isin(held.names, scorer.user_ids).any():
        return held.names
    return held.owners


def _aligned(scorer: Scorer, held: Interactions, users: Ints, known: tuple[Bools, Bools] | None) -> Scorer:
    """Return the scorer with its users and items numbered like the data; it need not know those outside `known`."""
    if known is None:
        return scorer.aligned(_rows(scorer, held), held.item_names, users)
    return scorer.aligned(_rows(scorer, held), held.item_names, users[known[0][users]], np.flatnonzero(known[1]))
