"""Where a recommender put the relevant items: all that any ranking metric needs to know.

An instance (a user, a query) has `n` candidates, some of them relevant. For each relevant item we
keep how many *irrelevant* candidates stand strictly above it and how many tie with it. The i-th
relevant item from the top then has rank ``above + i``, plus its share of the ties.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truerank.arrays import AnyArray, Bools, Floats, Ints, as_ints, frozen
from truerank.errors import InputError
from truerank.ranking.checks import (
    check_bounds,
    check_counts,
    check_design,
    check_grades,
    check_ids,
    per_instance,
    same_scores,
)
from truerank.ranking.files import fields_from_arrow, fields_to_arrow, read_fields, write_fields
from truerank.sampling.designs import SamplingDesign

if TYPE_CHECKING:
    import pyarrow as pa

TieBreak = Literal["optimistic", "pessimistic", "random"]


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Ranks:
    """The places of the relevant items, instance by instance.

    Parameters
    ----------
    above : array of int, one per relevant item
        Irrelevant candidates with a strictly higher score. Within an instance the relevant items
        come from the top, so the numbers never fall.
    tied : array of int, one per relevant item, optional
        Irrelevant candidates with exactly the same score. None means no ties.
    n_candidates : int or array of int, one per instance
        Candidates that were ranked, relevant ones included.
    indptr : array of int, optional
        Instance boundaries as in a CSR matrix: the relevant items of instance `u` are
        ``above[indptr[u]:indptr[u + 1]]``. None means one relevant item per instance.
    ids : array, one per instance, optional
        Names of the instances (user ids, query ids).
    depth : int, optional
        For lists that were cut: ranks are known down to this depth only. A relevant item below it
        has some rank beyond the depth, and `n_candidates` is a lower bound. None: all is known.
    design : SamplingDesign, optional
        For sampled ranks: how the irrelevant candidates were sampled. None: they are all there.
    n_catalogue : int or array of int, one per instance, optional
        For sampled ranks: candidates before sampling.
    grades : array of float above 0, one per relevant item, optional
        How relevant each one is, for graded metrics; None: all alike.
    same_score : array of bool, one per relevant item, optional
        Where there are grades: whether the item has exactly the score of the relevant one before it. `tied` tells
        that if irrelevant candidates have the score too; None: no others do.
    notes : sequence of str, optional
        What a reader of the results should know, e.g. how many users had no list.

    Notes
    -----
    Immutable. ``ranks[10:20]``, ``ranks[mask]`` and ``ranks[[3, 1]]`` select instances,
    `Ranks.concatenate` joins, `save` and `Ranks.load` go through Parquet or npz, never pickle.

    Examples
    --------
    >>> import truerank as tr
    >>> ranks = tr.Ranks(above=[2, 3, 0], tied=[0, 0, 4], n_candidates=[10, 8], indptr=[0, 2, 3])
    >>> ranks
    Ranks(2 instances, 3 relevant items, 8 to 10 candidates, 50.0 % of instances tied)
    >>> ranks.rank.tolist()
    [3, 5, 1]

    An instance may lack relevant items; its metrics are NaN, and are counted as undefined.

    >>> tr.values(tr.Ranks.from_ranks([[], [1]], n=3), "ap").tolist()
    [nan, 1.0]
    """

    above: Ints
    tied: Ints
    n_candidates: Ints
    indptr: Ints
    ids: AnyArray | None
    depth: int | None
    design: SamplingDesign | None
    n_catalogue: Ints | None
    grades: Floats | None
    same_score: Bools | None
    notes: tuple[str, ...]

    def __init__(
        self,
        *,
        above: ArrayLike,
        tied: ArrayLike | None = None,
        n_candidates: ArrayLike,
        indptr: ArrayLike | None = None,
        ids: ArrayLike | None = None,
        depth: int | None = None,
        design: SamplingDesign | None = None,
        n_catalogue: ArrayLike | None = None,
        grades: ArrayLike | None = None,
        same_score: ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        items = as_ints("above", above)
        ties = np.zeros_like(items) if tied is None else as_ints("tied", tied)
        bounds = np.arange(items.size + 1) if indptr is None else as_ints("indptr", indptr)
        check_bounds(items, ties, bounds)
        n = per_instance("n_candidates", n_candidates, bounds.size - 1)
        names = None if ids is None else check_ids(ids, bounds.size - 1)
        check_counts(items, ties, n, bounds)
        catalogue = None if n_catalogue is None else per_instance("n_catalogue", n_catalogue, bounds.size - 1)
        check_design(design, catalogue, n, np.diff(bounds))
        marks = None if grades is None else check_grades(grades, items.size)
        same = None if grades is None else same_scores(same_score, items, ties, bounds)
        put = object.__setattr__
        put(self, "above", frozen(items))
        put(self, "tied", frozen(ties))
        put(self, "n_candidates", frozen(n))
        put(self, "indptr", frozen(bounds))
        put(self, "ids", None if names is None else frozen(names))
        put(self, "depth", depth)
        put(self, "design", design)
        put(self, "n_catalogue", None if catalogue is None else frozen(catalogue))
        put(self, "grades", None if marks is None else frozen(marks))
        put(self, "same_score", None if same is None else frozen(same))
        put(self, "notes", tuple(notes))

    @classmethod
    def from_ranks(
        cls,
        ranks: Sequence[int] | Sequence[Sequence[int]] | Sequence[AnyArray] | AnyArray,
        n: ArrayLike,
        *,
        ids: ArrayLike | None = None,
        grades: Sequence[float] | Sequence[Sequence[float]] | Sequence[AnyArray] | AnyArray | None = None,
    ) -> Ranks:
        """Build from plain ranks, 1 being the best.

        Parameters
        ----------
        ranks : list of int, or list of lists of int
            The rank of each instance's one relevant item, or of its several ones in any order.
        n : int or array of int
            Candidates of each instance.
        ids : array, optional
            Names of the instances.
        grades : list of float, or list of lists of float, optional
            The grade of each relevant item, in the order of `ranks`.

        Examples
        --------
        >>> import truerank as tr
        >>> tr.Ranks.from_ranks([212, 2, 743], n=10_000)
        Ranks(3 instances, 3 relevant items, 10000 candidates, no ties)
        >>> tr.Ranks.from_ranks([[5, 3], [1]], n=[10, 4]).above.tolist()
        [2, 3, 0]
        """
        flat, indptr = _flatten(ranks)
        instance = np.repeat(np.arange(indptr.size - 1), np.diff(indptr))
        candidates = per_instance("n", n, indptr.size - 1)
        limit = candidates[instance]
        if np.any(bad := (flat < 1) | (flat > limit)):
            at = int(np.argmax(bad))
            raise InputError(f"`ranks` must lie in 1..{limit[at]}, got {flat[at]} {_where(at, indptr)}.")
        order = np.lexsort((flat, instance))
        flat = flat[order]
        if np.any(twice := (flat[1:] == flat[:-1]) & (instance[1:] == instance[:-1])):
            at = int(np.argmax(twice))
            raise InputError(f"`ranks` must differ within an instance, got {flat[at]} twice {_where(at, indptr)}.")
        marks = None if grades is None else check_grades(_flat_grades(grades), flat.size)[order]
        return cls(above=flat - _places(indptr), n_candidates=candidates, indptr=indptr, ids=ids, grades=marks)

    @classmethod
    def from_sampled(
        cls,
        ranks: Sequence[int] | Sequence[Sequence[int]] | Sequence[AnyArray] | AnyArray,
        *,
        m: ArrayLike,
        n: ArrayLike,
        replace: bool = False,
        ids: ArrayLike | None = None,
        grades: Sequence[float] | Sequence[Sequence[float]] | Sequence[AnyArray] | AnyArray | None = None,
    ) -> Ranks:
        """Build from ranks that were found among m sampled candidates, e.g. in somebody else's study.

        Parameters
        ----------
        ranks : list of int, or list of lists of int
            As for `from_ranks`, among the relevant items and the sample: 1..m + 1 for one item.
        m : int
            Irrelevant candidates sampled for each instance, the same for all.
        n : int or array of int
            Candidates before sampling.
        replace : bool
            Whether a candidate may have been sampled more than once.
        ids, grades : arrays, optional
            As for `from_ranks`.

        Examples
        --------
        >>> import truerank as tr
        >>> sampled = tr.Ranks.from_sampled([1, 17, 3], m=100, n=3_541)
        >>> tr.values(sampled, "recall@10~bv(0.1)").round(3).tolist()
        [0.572, 0.0, -0.084]
        """
        sizes = np.unique(as_ints("m", m))
        if sizes.size != 1:
            raise InputError(f"`m` must be the same for all instances, got {', '.join(map(str, sizes[:3]))}.")
        indptr = _flatten(ranks)[1]
        among = cls.from_ranks(ranks, int(sizes[0]) + np.diff(indptr), ids=ids, grades=grades)
        catalogue = per_instance("n", n, len(among))
        return dataclasses.replace(among, design=SamplingDesign(int(sizes[0]), replace), n_catalogue=catalogue)

    @classmethod
    def concatenate(cls, parts: Sequence[Ranks]) -> Ranks:
        """Join the instances of several `Ranks`; ids survive if every part has them.

        Examples
        --------
        >>> import truerank as tr
        >>> a, b = tr.Ranks.from_ranks([1, 2], n=5), tr.Ranks.from_ranks([4], n=7)
        >>> tr.Ranks.concatenate([a, b]).rank.tolist()
        [1, 2, 4]
        """
        if not parts:
            raise InputError("`parts` must hold at least one Ranks, got none.")
        sizes = np.concatenate([np.diff(part.indptr) for part in parts])
        ids = [part.ids for part in parts if part.ids is not None]
        depths = [part.depth for part in parts if part.depth is not None]
        designs = {part.design for part in parts}
        if len(designs) > 1:
            raise InputError("only ranks of one sampling design, or exact ones, can be joined, got several designs.")
        catalogues = [part.n_catalogue for part in parts if part.n_catalogue is not None]
        grades = [part.grades for part in parts if part.grades is not None]
        if 0 < len(grades) < len(parts):
            raise InputError("only ranks that all have grades, or none, can be joined, got both.")
        same = [part.same_score for part in parts if part.same_score is not None]
        return cls(
            above=np.concatenate([part.above for part in parts]),
            tied=np.concatenate([part.tied for part in parts]),
            n_candidates=np.concatenate([part.n_candidates for part in parts]),
            indptr=_bounds(sizes),
            ids=np.concatenate(ids) if len(ids) == len(parts) else None,
            depth=min(depths, default=None),
            design=parts[0].design,
            n_catalogue=np.concatenate(catalogues) if catalogues else None,
            grades=np.concatenate(grades) if grades else None,
            same_score=np.concatenate(same) if same else None,
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )

    def __len__(self) -> int:
        return self.indptr.size - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranks):
            return NotImplemented
        return (
            _same(self.ids, other.ids)
            and (self.depth, self.design) == (other.depth, other.design)
            and _same(self.n_catalogue, other.n_catalogue)
            and np.array_equal(self.indptr, other.indptr)
            and np.array_equal(self.n_candidates, other.n_candidates)
            and np.array_equal(self.above, other.above)
            and np.array_equal(self.tied, other.tied)
            and _same(self.grades, other.grades)
            and _same(self.same_score, other.same_score)
        )

    def __repr__(self) -> str:
        spread = _spread(self.n_candidates)
        ties = f"{self.tied_share:.1%}".replace("%", " %") + " of instances tied"
        known = f"{spread} candidates" if self.depth is None else f"lists cut at depth {self.depth}"
        if self.n_catalogue is not None:
            known = f"{spread} of {_spread(self.n_catalogue)} candidates sampled"
        return (
            f"Ranks({len(self)} instances, {self.above.size} {'relevant' if self.grades is None else 'graded'} items, "
            f"{known}, {ties if self.has_ties else 'no ties'})"
        )

    def __getitem__(self, key: int | slice | ArrayLike) -> Ranks:
        chosen = np.atleast_1d(np.arange(len(self))[key])  # type: ignore[index]
        sizes = self.n_relevant[chosen]
        indptr = _bounds(sizes)
        rows = np.repeat(self.indptr[chosen] - indptr[:-1], sizes) + np.arange(indptr[-1])
        part = dataclasses.replace(
            self,
            above=self.above[rows],
            tied=self.tied[rows],
            n_candidates=self.n_candidates[chosen],
            n_catalogue=None if self.n_catalogue is None else self.n_catalogue[chosen],
            grades=None if self.grades is None else self.grades[rows],
            same_score=None if self.same_score is None else self.same_score[rows],
            indptr=indptr,
            ids=None if self.ids is None else self.ids[chosen],
        )
        if "truth_rank" in vars(self):  # it took a sort, and is the same in a part
            vars(part)["truth_rank"] = self.truth_rank[rows]
        return part

    @cached_property
    def n_relevant(self) -> Ints:
        """Relevant items of each instance."""
        return np.diff(self.indptr)

    @cached_property
    def i(self) -> Ints:
        """Place of each relevant item among the relevant ones of its instance: 1, 2, ..."""
        return _places(self.indptr)

    @cached_property
    def rank(self) -> Ints:
        """Rank of each relevant item when it wins its ties: 1 is the best."""
        return self.above + self.i

    @cached_property
    def instance(self) -> Ints:
        """Which instance each relevant item belongs to."""
        return np.repeat(np.arange(len(self)), self.n_relevant)

    @cached_property
    def item_n_relevant(self) -> Ints:
        """Relevant items of the instance that each relevant item belongs to."""
        return np.repeat(self.n_relevant, self.n_relevant)

    @cached_property
    def by_grade(self) -> Ints:
        """The relevant items of each instance by falling grade, as positions."""
        if self.grades is None:
            return np.arange(self.above.size)
        single = self.grades.astype(np.float32)
        if not np.array_equal(single, self.grades):
            return np.lexsort((-self.grades, self.instance))
        # several times faster: the bits of positive floats are in their order, and fit into a key behind the instance
        return np.argsort((self.instance << 32) - single.view(np.int32))

    @cached_property
    def truth_rank(self) -> Ints:
        """One more than the relevant items of the instance with a higher grade; 1 where there are no grades.

        Examples
        --------
        >>> import truerank as tr
        >>> tr.Ranks.from_ranks([[1, 2, 4, 7]], n=9, grades=[[5, 9, 5, 3]]).truth_rank.tolist()
        [2, 1, 2, 4]
        """
        if self.grades is None:
            return np.ones_like(self.above)
        falling = self.grades[self.by_grade]
        # equal grades share the place of the first of them
        fresh = self.i == 1
        fresh[1:] |= falling[1:] < falling[:-1]
        starts = np.flatnonzero(fresh)
        places = np.empty_like(self.above)
        places[self.by_grade] = np.repeat(self.i[starts], np.diff(starts, append=fresh.size))
        return places

    @cached_property
    def tied_instances(self) -> Bools:
        """Whether any relevant item of the instance ties with an irrelevant one, or one of another grade."""
        tied = self.tied > 0
        if self.same_score is not None and self.grades is not None:
            tied[1:] |= self.same_score[1:] & (self.grades[1:] != self.grades[:-1])
        return np.bincount(self.instance[tied], minlength=len(self)) > 0

    @property
    def has_ties(self) -> bool:
        """Whether ties matter in any instance."""
        return bool(self.tied_instances.any())

    @property
    def tied_share(self) -> float:
        """Share of the instances in which ties matter."""
        return float(self.tied_instances.mean()) if len(self) else 0.0

    def blocks(self) -> tuple[Ints, Ints]:
        """For each relevant item: its place in its block of ties, and the relevant items in it.

        Items that tie with nothing are blocks of their own.
        """
        same = self.same_score
        if same is None:
            same = same_scores(None, self.above, self.tied, self.indptr)
        starts = np.flatnonzero(~same)
        sizes = np.diff(np.append(starts, same.size))
        return _places(_bounds(sizes)), np.repeat(sizes, sizes)

    def break_ties(self, how: TieBreak, *, rng: int | np.random.Generator | None = None) -> Ranks:
        """Return ranks without ties: relevant items first, last, or in a random order.

        Parameters
        ----------
        how : {"optimistic", "pessimistic", "random"}
            "random" draws one of the equally likely orders of every block of ties. Among tied relevant items the
            others put the highest or the lowest grade first.
        rng : int or numpy.random.Generator, optional
            Seed for "random".

        Examples
        --------
        >>> import truerank as tr
        >>> tied = tr.Ranks(above=[2], tied=[3], n_candidates=10)
        >>> [int(tied.break_ties(how).rank[0]) for how in ("optimistic", "pessimistic")]
        [3, 6]
        """
        random = np.random.default_rng(rng)
        if how == "optimistic":
            lost = np.zeros_like(self.tied)
        elif how == "pessimistic":
            lost = self.tied
        elif how == "random":
            lost = self._random_losses(random)
        else:
            raise InputError(f"`how` must be 'optimistic', 'pessimistic' or 'random', got {how!r}.")
        grades = None if self.grades is None else self._grades_in_order(self.grades, how, random)
        untied = np.zeros_like(self.tied)
        return dataclasses.replace(self, above=self.above + lost, tied=untied, grades=grades, same_score=None)

    def _grades_in_order(self, grades: Floats, how: TieBreak, rng: np.random.Generator) -> Floats:
        """Put the grades of each block of ties into an order: falling, rising or random."""
        keys = {"optimistic": -grades, "pessimistic": grades}
        block = np.cumsum(self.blocks()[0] == 1)
        return grades[np.lexsort((keys[how] if how in keys else rng.random(grades.size), block))]

    def _random_losses(self, rng: np.random.Generator) -> Ints:
        """Draw how many tied irrelevant items fall above each relevant one.

        Give every item of a block a uniform key on (0, 1). The keys of the b relevant ones, in order,
        cut the interval; each irrelevant one falls into a piece with probability its length, so the
        pieces fill up binomially, one relevant item after the other.
        """
        place, size = self.blocks()
        lost = np.zeros_like(self.tied)
        uniform: Floats = rng.random(self.tied.size)
        for j in range(1, int(size[self.tied > 0].max(initial=0)) + 1):
            at = np.flatnonzero((place == j) & (self.tied > 0))
            before = lost[at - 1] if j > 1 else np.zeros_like(at)
            # the smallest of the `left` keys that remain cuts off this share of what remains
            left = size[at] - j + 1
            share = 1.0 - uniform[at] ** (1.0 / left)
            lost[at] = before + rng.binomial(self.tied[at] - before, share)
        return lost

    def _fields(self) -> dict[str, Any]:
        return {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}

    def save(self, path: str | Path) -> None:
        """Write to a `.parquet` or `.npz` file, one row per instance in the former.

        Examples
        --------
        >>> import tempfile, truerank as tr
        >>> ranks = tr.Ranks.from_ranks([[5, 3], [1]], n=[10, 4], ids=["ann", "bob"])
        >>> path = tempfile.mkdtemp() + "/ranks.parquet"
        >>> ranks.save(path)
        >>> tr.Ranks.load(path) == ranks
        True
        """
        write_fields(path, self._fields())

    @classmethod
    def load(cls, path: str | Path) -> Ranks:
        """Read what `save` wrote."""
        return cls(**read_fields(path))

    def to_arrow(self) -> pa.Table:
        """Return a table with a row per instance: id (if any), n_candidates, lists above, tied, and those of grades."""
        return fields_to_arrow(self._fields())

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Ranks:
        """Read a table laid out as by `to_arrow`."""
        return cls(**fields_from_arrow(table))


def _bounds(sizes: Ints) -> Ints:
    """CSR boundaries of groups with these sizes."""
    return np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def _places(indptr: Ints) -> Ints:
    """1, 2, ... within each group."""
    sizes = np.diff(indptr)
    return np.arange(1, indptr[-1] + 1) - np.repeat(indptr[:-1], sizes)


def _flatten(ranks: Sequence[Any] | AnyArray) -> tuple[Ints, Ints]:
    if isinstance(ranks, np.ndarray) and ranks.ndim == 1 and ranks.dtype.kind in "iuf":
        return as_ints("ranks", ranks), np.arange(ranks.size + 1)
    nested = [np.ndim(entry) > 0 for entry in ranks]
    if not any(nested):
        return as_ints("ranks", list(ranks)), np.arange(len(nested) + 1)
    if not all(nested):
        raise InputError("`ranks` must hold either numbers or lists of numbers, got both.")
    sizes = np.array([len(entry) for entry in ranks], dtype=np.int64)
    return as_ints("ranks", list(itertools.chain.from_iterable(ranks))), _bounds(sizes)


def _where(position: int, indptr: Ints) -> str:
    return f"in instance {int(np.searchsorted(indptr, position, side='right')) - 1}"


def _flat_grades(grades: Sequence[Any] | AnyArray) -> Any:
    nested = any(np.ndim(entry) > 0 for entry in grades)
    return list(itertools.chain.from_iterable(grades)) if nested else grades


def _same(a: AnyArray | None, b: AnyArray | None) -> bool:
    return a is b if a is None or b is None else np.array_equal(a, b)


def _spread(n: Ints) -> str:
    if n.size == 0:
        return "no"
    return f"{n.min()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"
