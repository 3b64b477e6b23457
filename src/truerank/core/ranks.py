"""The ranks of the relevant items: everything that a ranking metric needs.

An instance (a user, a query) has `n` candidates, some of them relevant. For each relevant item we
keep how many *irrelevant* candidates stand strictly above it and how many tie with it. The i-th
relevant item from the top then has rank ``above + i``, plus its share of the ties.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from truerank.core import checks
from truerank.core.caching import LIMIT, Cache
from truerank.core.checks import AnyArray, Bools, Floats, InputError, Ints, Rng, as_ids, as_ints, counted, frozen, own
from truerank.core.csr import Nested, bounds, entries_of, owners, places, sizes, to_fields
from truerank.core.samples import DESIGNS, Design, Sample
from truerank.core.score_arrays import count_in_batch, count_scores
from truerank.core.tables import fact_table

if TYPE_CHECKING:
    import pyarrow as pa


PER_ITEM = ("above", "tied", "grades", "same_score", "items")
PER_INSTANCE = ("n_candidates", "scored", "ids")

TieBreak = Literal["optimistic", "pessimistic", "random"]

_SHARED_POOL = (
    "all instances were ranked among the same sampled candidates, so their errors are not independent: "
    "standard errors and intervals do not include the variation between samples"
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class Ranks:
    """The ranks of the relevant items, instance by instance.

    Parameters
    ----------
    above : array of int, one per relevant item
        Irrelevant candidates with a strictly higher score. Within an instance the relevant items
        are ordered from the top, so the numbers never fall.
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
        For lists that were cut, and for `truerank.rank` with a depth: ranks are known down to it only. A relevant
        item below it has some rank beyond the depth, and `n_candidates` is a lower bound. None: all ranks are known.
    sample : Sample, optional
        For sampled ranks: how the irrelevant candidates were sampled, and from how many. None: all of them were ranked.
    scored : array of int, one per instance, optional
        Candidates whose scores were computed, where they are not `n_candidates`; see `n_scored`.
    grades : array of float above 0, one per relevant item, optional
        How relevant each one is, for graded metrics; None: all are equally relevant.
    same_score : array of bool, one per relevant item, optional
        With grades: whether the item has exactly the score of the relevant one before it. Where irrelevant candidates
        have that score too, `tied` implies it. None: no other relevant items tie.
    items : array, one per relevant item, optional
        Which item each one is: names or numbers.
    notes : sequence of str, optional
        What readers of the results should know, e.g. how many users had no list.

    Notes
    -----
    Immutable. ``ranks[10:20]``, ``ranks[mask]`` and ``ranks[[3, 1]]`` select instances,
    `Ranks.concatenate` joins them, `save` and `Ranks.load` use Parquet or npz, never pickle. Two are equal if their ids
    and everything that metrics depend on are equal; `items` and `notes` are not compared.

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
    sample: Sample | None
    scored: Ints | None
    grades: Floats | None
    same_score: Bools | None
    items: AnyArray | None
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
        sample: Sample | None = None,
        scored: ArrayLike | None = None,
        grades: ArrayLike | None = None,
        same_score: ArrayLike | None = None,
        items: ArrayLike | None = None,
        notes: Sequence[str] = (),
    ) -> None:
        counts = as_ints("above", above)
        equal = np.zeros_like(counts) if tied is None else as_ints("tied", tied)
        ends = np.arange(counts.size + 1) if indptr is None else as_ints("indptr", indptr)
        checks.check_bounds(counts, equal, ends)
        n = checks.per_instance("n_candidates", n_candidates, ends.size - 1)
        checks.check_counts(counts, equal, n, ends)
        if sample is not None:
            checks.check_kind("sample", sample, Sample)
            sample = sample.fitted(counts, equal, n, ends)
        checks.check_order(counts, equal, ends, None if sample is None else sample.drawn)
        arrays = {
            "above": counts,
            "tied": equal,
            "n_candidates": n,
            "indptr": ends,
            "ids": None if ids is None else own(as_ids("ids", ids, ends.size - 1)),
            "scored": None if scored is None else checks.per_instance("scored", scored, ends.size - 1),
            "grades": None if grades is None else checks.check_grades(grades, counts.size),
            "same_score": None if grades is None else checks.same_scores(same_score, counts, equal, ends),
            "items": None if items is None else own(as_ids("items", items, counts.size)),
        }
        fixed = {name: None if array is None else frozen(array) for name, array in arrays.items()}
        vars(self).update(fixed, depth=depth, sample=sample, notes=tuple(checks.as_list("notes", notes)))

    def _with(self, **changes: Any) -> Ranks:
        """Return a copy with other fields, which must be valid already."""
        arrays = {name: frozen(value) if isinstance(value, np.ndarray) else value for name, value in changes.items()}
        new = object.__new__(Ranks)
        vars(new).update(self._fields() | arrays)
        return new

    @classmethod
    def from_ranks(
        cls, ranks: Nested, n: ArrayLike, *, ids: ArrayLike | None = None, grades: Nested | None = None
    ) -> Ranks:
        """Build from plain ranks; 1 is best.

        Parameters
        ----------
        ranks : list of int, or list of lists of int
            The rank of each instance's only relevant item, or the ranks of its relevant items in any order.
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
        return cls(**to_fields(ranks, n, grades), ids=ids)

    @classmethod
    def from_sampled(
        cls,
        ranks: Nested,
        *,
        m: ArrayLike,
        n: ArrayLike,
        replace: bool = False,
        ids: ArrayLike | None = None,
        grades: Nested | None = None,
    ) -> Ranks:
        """Build from ranks among uniformly sampled candidates, e.g. from somebody else's study.

        Parameters
        ----------
        ranks : list of int, or list of lists of int
            As for `from_ranks`, among the relevant items and the sample: 1..m + 1 for one item.
        m : int or array of int
            Irrelevant candidates sampled for each instance.
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
        n_relevant = sizes(ranks)
        draws = checks.per_instance("m", m, n_relevant.size)
        among = cls.from_ranks(ranks, draws + n_relevant, ids=ids, grades=grades)
        one = np.unique(draws)
        design = DESIGNS.get("uniform")(int(one[0]) if one.size == 1 else None, replace)
        return dataclasses.replace(among, sample=Sample(design, checks.per_instance("n", n, n_relevant.size)))

    @classmethod
    def from_draws(
        cls,
        above: ArrayLike,
        drawn: ArrayLike,
        *,
        n: ArrayLike,
        indptr: ArrayLike | None = None,
        ids: ArrayLike | None = None,
    ) -> Ranks:
        """Build from counts among candidates drawn uniformly without replacement, however many for each item.

        The draws may have ended by any rule that depends on what was drawn: a fixed number, enough above, a budget.
        Metrics are estimated by ``~smooth`` or another estimator of the law of the ranks.

        Parameters
        ----------
        above, drawn : arrays of int, one per relevant item
            Irrelevant candidates above the item, and how many were drawn for it.
        n : int or array of int, one per instance
            Candidates, relevant ones included.
        indptr, ids : arrays, optional
            Boundaries and names of the instances, as for `Ranks`.

        Examples
        --------
        >>> import truerank as tr
        >>> ranks = tr.Ranks.from_draws([2, 0, 1], [60, 100, 7], n=1_000)
        >>> tr.evaluate(ranks, "ndcg@10").metrics
        ('ndcg@10~smooth',)
        """
        looked = np.asarray(drawn)
        given = np.arange(looked.size + 1) if indptr is None else np.asarray(indptr)
        most = np.zeros(given.size - 1, dtype=np.int64)
        np.maximum.at(most, owners(given), looked)
        return cls(
            above=above, indptr=indptr, ids=ids, n_candidates=most + np.diff(given), sample=Sample("stopped", n, drawn)
        )

    @classmethod
    def from_scores(
        cls,
        positive: Any,
        negative: Any,
        *,
        n: ArrayLike | None = None,
        replace: bool = False,
        inclusion: Any = None,
        positive_mask: Any = None,
        negative_mask: Any = None,
        ids: ArrayLike | None = None,
    ) -> Ranks:
        """Build from the scores of relevant candidates and of irrelevant ones.

        Parameters
        ----------
        positive : array or tensor of shape (rows,) or (rows, positives)
            The scores of the relevant candidates of each row. Arrays may be those of NumPy, PyTorch (on any device),
            JAX, or any library that converts to NumPy or has DLPack.
        negative : array or tensor of shape (rows, m), or (m,)
            The scores of the irrelevant candidates of each row, or of one pool that all rows share. With one candidate
            per row, the shape is (rows, 1).
        n : int or array of int, optional
            Candidates of each row, relevant ones included, of which the irrelevant ones here are a uniform sample: the
            ranks are sampled ranks, and can be corrected. None: there are no others.
        replace : bool
            With `n`: whether a candidate may have been sampled more than once.
        inclusion : array or tensor of the shape of `negative`, optional
            With `n`, where candidates were sampled with unequal chances, by popularity for instance: the chance that
            the sample contains the candidate or, with `replace`, how often on average, so that each of its draws
            counts. Every candidate of the catalogue must have had a chance above 0. AUC and the mean rank are then
            unbiased; other metrics only have bounds: the values that the sample leaves possible.
        positive_mask, negative_mask : arrays of the shapes of `positive` and `negative`, optional
            True, or not 0, for the candidates that count; the other scores may be anything. None: all count.
        ids : array, optional
            Names of the rows.

        Examples
        --------
        >>> import numpy as np, truerank as tr
        >>> negative = np.array([[0.1, 0.9, 0.4, 0.2], [0.7, 0.3, 0.3, 0.1]])
        >>> tr.Ranks.from_scores(np.array([0.5, 0.3]), negative)
        Ranks(2 instances, 2 relevant items, 5 candidates, 50.0 % of instances tied)

        Where the negatives are a sample of the catalogue, say so with `n`:

        >>> tr.Ranks.from_scores(np.array([0.5, 0.3]), negative, n=2_500_604)
        Ranks(2 instances, 2 relevant items, 5 of 2500604 candidates sampled, 50.0 % of instances tied)

        Where they were sampled by popularity, each counts with 1 / its chance:

        >>> chance = np.array([[0.5, 0.1, 0.2, 0.5], [0.1, 0.5, 0.1, 0.2]])
        >>> ranks = tr.Ranks.from_scores(np.array([0.5, 0.3]), negative, n=25, inclusion=chance)
        >>> ranks.estimated.tolist()
        [10.0, 16.0]
        >>> tr.evaluate(ranks, ["auc", "recall@10"]).metrics
        ('auc~unbiased', 'recall@10~possible')

        Several relevant candidates per row, padded, and one pool of irrelevant ones:

        >>> positive, mask = np.array([[0.5, 0.8], [0.3, 0.0]]), np.array([[1, 1], [1, 0]])
        >>> tr.Ranks.from_scores(positive, np.array([0.6, 0.4]), positive_mask=mask).above.tolist()
        [0, 1, 2]
        """
        most = np.inf if replace else 1.0
        fields = count_scores(positive, negative, positive_mask, negative_mask, inclusion, most)
        estimated = fields.pop("estimated")
        if n is None and inclusion is not None:
            raise InputError("`inclusion` is about a sample: give `n`, the number of candidates it was drawn from.")
        if n is None:
            return cls(**fields, ids=ids)
        size = fields["indptr"].size - 1
        if estimated is not None:
            draws = np.diff(fields["indptr"])
            drawn = np.repeat(fields["n_candidates"] - draws, draws)
            sample = Sample(DESIGNS.get("weighted")(replace), checks.per_instance("n", n, size), drawn, estimated)
            return cls(**fields, ids=ids, sample=sample, notes=_pool_notes(size, negative))
        one = np.unique(fields["n_candidates"] - np.diff(fields["indptr"]))
        design = DESIGNS.get("uniform")(int(one[0]) if one.size == 1 and one[0] else None, replace)
        sample = Sample(design, checks.per_instance("n", n, size))
        return cls(**fields, ids=ids, sample=sample, notes=_pool_notes(size, negative))

    @classmethod
    def in_batch(cls, scores: Any, *, items: ArrayLike | None = None, ids: ArrayLike | None = None) -> Ranks:
        """Build from a square matrix of scores in which row i belongs to column i.

        Two-tower and contrastive models are often monitored like this during training: the relevant candidates of the
        other rows are a row's irrelevant ones. Such metrics depend on the batch, as a note says, and do not describe
        the catalogue: the candidates are a sample by popularity, not a uniform one.

        Parameters
        ----------
        scores : array or tensor of shape (rows, rows)
            The scores of all columns for each row; the relevant candidates are on the diagonal.
        items : array, one per column, optional
            Names of the candidates. Columns with the item of a row are not among its irrelevant candidates.
        ids : array, one per row, optional
            Names of the rows.

        Examples
        --------
        >>> import numpy as np, truerank as tr
        >>> scores = np.array([[0.9, 0.2, 0.9], [0.8, 0.5, 0.1], [0.3, 0.2, 0.7]])
        >>> tr.Ranks.in_batch(scores)
        Ranks(3 instances, 3 relevant items, 3 candidates, 33.3 % of instances tied)
        >>> distinct = tr.Ranks.in_batch(scores, items=["a", "b", "a"])
        >>> distinct.n_candidates.tolist(), distinct.has_ties
        ([2, 3, 2], False)
        """
        return cls(**count_in_batch(scores, items), ids=ids, items=items)

    @classmethod
    def concatenate(cls, parts: Sequence[Ranks]) -> Ranks:
        """Join the instances of several `Ranks`; ids and items are kept if every part has them.

        Examples
        --------
        >>> import truerank as tr
        >>> a, b = tr.Ranks.from_ranks([1, 2], n=5), tr.Ranks.from_ranks([4], n=7)
        >>> tr.Ranks.concatenate([a, b]).rank.tolist()
        [1, 2, 4]
        """
        if not parts:
            raise InputError("`parts` must hold at least one Ranks, got none.")
        if len({part.design for part in parts}) > 1:
            raise InputError("only ranks of one sampling design, or exact ones, can be joined, got several designs.")
        if len({part.scored is None for part in parts}) > 1:
            parts = [part._with(scored=part.n_scored) for part in parts]
        if len({part.grades is None for part in parts}) > 1:
            raise InputError("only ranks that all have grades, or all have none, can be joined, got both.")

        def joined(name: str) -> Any:
            arrays = [getattr(part, name) for part in parts]
            return None if any(array is None for array in arrays) else np.concatenate(arrays)

        design = parts[0].design
        return parts[0]._with(
            **{name: joined(name) for name in (*PER_ITEM, *PER_INSTANCE)},
            sample=None if design is None else Sample(design, *map(joined, ("n_catalogue", "drawn", "estimated"))),
            indptr=bounds(np.concatenate([part.n_relevant for part in parts])),
            depth=min((part.depth for part in parts if part.depth is not None), default=None),
            notes=tuple(dict.fromkeys(note for part in parts for note in part.notes)),
        )

    def __getstate__(self) -> dict[str, Any]:
        """Return what pickle keeps: the fields, without values computed from them."""
        return self._fields()

    def __len__(self) -> int:
        return self.indptr.size - 1

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ranks):
            return NotImplemented
        alone = ("depth", "sample")
        arrays = [name for name in self._fields() if name not in (*alone, "items", "notes")]
        return all(getattr(self, name) == getattr(other, name) for name in alone) and all(
            checks.same_arrays(getattr(self, name), getattr(other, name)) for name in arrays
        )

    def __repr__(self) -> str:
        spread = _spread(self.n_candidates)
        ties = f"{self.tied_share:.1%}".replace("%", " %") + " of instances tied"
        among = f"{spread} candidates" if self.depth is None else f"cut at depth {self.depth}"
        if self.sample is not None:
            among = f"{spread} of {_spread(self.n_catalogue)} candidates sampled"
        kind = "relevant item" if self.grades is None else "graded item"
        return (
            f"Ranks({counted(len(self), 'instance', 'instances')}, {counted(self.above.size, kind, f'{kind}s')}, "
            f"{among}, {ties if self.has_ties else 'no ties'})"
        )

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        known = {
            "instances": f"{len(self):,}",
            "relevant items": f"{self.above.size:,}",
            "candidates": _spread(self.n_catalogue),
            "cut at depth": self.depth,
            "sampled": self.design,
            "instances with ties": f"{self.tied_share:.1%}",
        }
        return fact_table(
            "Ranks", {name: fact for name, fact in known.items() if fact is not None}, self.notes
        ).to_html()

    def __getitem__(self, key: int | slice | ArrayLike) -> Ranks:
        chosen = np.atleast_1d(np.arange(len(self))[key])  # type: ignore[index]
        rows, indptr = entries_of(self.indptr, chosen)
        of_items = {name: _taken(getattr(self, name), rows) for name in PER_ITEM}
        of_instances = {name: _taken(getattr(self, name), chosen) for name in PER_INSTANCE}
        sample = None
        if self.sample is not None:
            per_item = (_taken(each, rows) for each in (self.drawn, self.estimated))
            sample = self.sample.with_arrays(self.n_catalogue[chosen], *per_item)
        part = self._with(indptr=indptr, sample=sample, **of_items, **of_instances)
        if "truth_rank" in vars(self):  # it took a sort, and selecting instances does not change it
            vars(part)["truth_rank"] = self.truth_rank[rows]
        return part

    def stretch(self, instances: slice, items: slice) -> Ranks:
        """Return consecutive instances, with their relevant items, without copying anything; see `checks.stretches`."""
        sample = self.sample
        if sample is not None:
            per_item = (_taken(each, items) for each in (sample.drawn, sample.estimated))
            sample = sample.with_arrays(self.n_catalogue[instances], *per_item)
        return self._with(
            indptr=self.indptr[instances.start : instances.stop + 1] - items.start,
            sample=sample,
            **{name: _taken(getattr(self, name), items) for name in PER_ITEM},
            **{name: _taken(getattr(self, name), instances) for name in PER_INSTANCE},
        )

    @property
    def design(self) -> Design | None:
        """How the irrelevant candidates were sampled; None: all of them were ranked."""
        return None if self.sample is None else self.sample.design

    @property
    def n_catalogue(self) -> Ints:
        """Candidates of each instance before any sampling."""
        return self.n_candidates if self.sample is None else self.sample.n_catalogue

    @property
    def drawn(self) -> Ints | None:
        """Candidates that each relevant item was counted among, where the items of an instance need not share them."""
        return None if self.sample is None else self.sample.drawn

    @property
    def estimated(self) -> Floats | None:
        """Estimated number of irrelevant candidates above each relevant item, where sampling chances were unequal."""
        return None if self.sample is None else self.sample.estimated

    @cached_property
    def n_relevant(self) -> Ints:
        """Relevant items of each instance."""
        return np.diff(self.indptr)

    @property
    def draws(self) -> Ints:
        """Irrelevant candidates that each instance was ranked among; for sampled ranks, how many were drawn."""
        return self.n_candidates - self.n_relevant

    @property
    def n_scored(self) -> Ints:
        """Candidates of each instance whose scores were computed, relevant ones included."""
        return self.n_candidates if self.scored is None else self.scored

    @cached_property
    def item_draws(self) -> Ints:
        """Irrelevant candidates that each relevant item was ranked among."""
        return self.draws[self.instance] if self.drawn is None else self.drawn

    @cached_property
    def item_irrelevant(self) -> Ints:
        """Irrelevant candidates of the instance that each relevant item belongs to, before any sampling."""
        return (self.n_catalogue - self.n_relevant)[self.instance]

    @cached_property
    def i(self) -> Ints:
        """Place of each relevant item among the relevant ones of its instance: 1, 2, ..."""
        return places(self.indptr)

    @cached_property
    def rank(self) -> Ints:
        """Rank of each relevant item when it wins its ties: 1 is the best."""
        return self.above + self.i

    @cached_property
    def instance(self) -> Ints:
        """Which instance each relevant item belongs to."""
        return owners(self.indptr)

    @cached_property
    def clusters(self) -> Ints | None:
        """The id of each instance as a number, if some ids occur several times; None if all instances differ."""
        if self.ids is None or bool(np.all(self.ids[1:] > self.ids[:-1])):
            return None
        distinct, which = np.unique(self.ids, return_inverse=True)
        return None if distinct.size == self.ids.size else which

    @cached_property
    def item_n_relevant(self) -> Ints:
        """Relevant items of the instance that each relevant item belongs to."""
        return np.repeat(self.n_relevant, self.n_relevant)

    @cached_property
    def item_n(self) -> Ints:
        """Candidates of the instance that each relevant item belongs to."""
        return np.repeat(self.n_candidates, self.n_relevant)

    @cached_property
    def fits(self) -> Cache:
        """Values that estimators have computed from these ranks, so that several metrics share them."""
        return Cache(max(LIMIT, 16 * self.above.nbytes))

    @cached_property
    def by_grade(self) -> Ints:
        """The relevant items of each instance by falling grade, as positions."""
        if self.grades is None:
            return np.arange(self.above.size)
        single = self.grades.astype(np.float32)
        if not np.array_equal(single, self.grades):
            return np.lexsort((-self.grades, self.instance))
        # several times faster: the bits of positive floats sort like the floats, and fit into a key after the instance
        return np.argsort((self.instance << 32) - single.view(np.int32))

    @cached_property
    def truth_rank(self) -> Ints:
        """One plus the number of relevant items of the instance with a higher grade; 1 if there are no grades.

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
        place = np.empty_like(self.above)
        place[self.by_grade] = np.repeat(self.i[starts], np.diff(starts, append=fresh.size))
        return place

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
        """For each relevant item: its place in its block of ties, and the number of relevant items in the block.

        Items that tie with nothing are blocks of their own.
        """
        same = self.same_score
        if same is None:
            same = checks.same_scores(None, self.above, self.tied, self.indptr)
        starts = np.flatnonzero(~same)
        sizes = np.diff(np.append(starts, same.size))
        return places(bounds(sizes)), np.repeat(sizes, sizes)

    def break_ties(self, how: TieBreak, *, rng: Rng = None) -> Ranks:
        """Return ranks without ties: relevant items first, last, or in a random order.

        Parameters
        ----------
        how : {"optimistic", "pessimistic", "random"}
            "random" draws one of the equally likely orders of every block of ties. "optimistic" puts the
            highest grade among tied relevant items first, "pessimistic" the lowest.
        rng : int or numpy.random.Generator, optional
            Seed for "random".

        Examples
        --------
        >>> import truerank as tr
        >>> tied = tr.Ranks(above=[2], tied=[3], n_candidates=10)
        >>> [int(tied.break_ties(how).rank[0]) for how in ("optimistic", "pessimistic")]
        [3, 6]
        """
        lost, order = break_order(how, self.tied, *self.blocks(), self.grades, checks.as_rng(rng))
        grades = None if self.grades is None else self.grades[order]
        same = None if self.grades is None else np.zeros(order.size, dtype=np.bool_)
        return self._with(
            above=self.above + lost,
            tied=np.zeros_like(self.tied),
            grades=grades,
            same_score=same,
            items=_taken(self.items, order),
        )

    def sampled(self, design: Design, draws: Ints, *, above: Ints, tied: Ints, drawn: Ints | None = None) -> Ranks:
        """Return these exact ranks as seen in a sample: counts among the given draws per instance, or per item."""
        sample = Sample(design, self.n_candidates, drawn)
        return dataclasses.replace(self, above=above, tied=tied, n_candidates=self.n_relevant + draws, sample=sample)

    def cut(self, depth: int, *, above: Ints, tied: Ints, scored: Ints | None = None) -> Ranks:
        """Return these ranks as known down to a depth, from counts that are exact where fewer than `depth` are above.

        `scored` is how many scores this took per instance, if not all of them.
        """
        same = None if self.same_score is None else self.same_score & (above < depth)
        counts = cut_counts(depth, above, tied, self.indptr, self.n_catalogue)
        return dataclasses.replace(self, above=counts[0], tied=counts[1], same_score=same, depth=depth, scored=scored)

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
        _files().write_ranks(self, path)

    @classmethod
    def load(cls, path: str | Path) -> Ranks:
        """Read what `save` wrote."""
        return _files().read_ranks(path)

    @classmethod
    def from_spark(cls, frame: Any) -> Ranks:
        """Collect a Spark dataframe of ranks, such as that of `truerank.spark.rank`; the instances may be in any order.

        Parameters
        ----------
        frame : pyspark.sql.DataFrame
        """
        return _files().from_frame(frame)

    def to_arrow(self) -> pa.Table:
        """Return a table with a row per instance: id, n_candidates, and lists with a value per relevant item."""
        return _files().to_arrow(self)

    @classmethod
    def from_arrow(cls, table: pa.Table) -> Ranks:
        """Read a table laid out as by `to_arrow`."""
        return _files().from_arrow(table)


def cut_counts(depth: int, above: Ints, tied: Ints, indptr: Ints, n: Ints) -> tuple[Ints, Ints]:
    """Return counts in which all items outside the top are below those in it, and below their ties.

    Examples
    --------
    >>> above, tied = np.array([0, 2, 7]), np.array([0, 4, 0])
    >>> cut_counts(3, above, tied, np.array([0, 3]), np.array([99]))
    (array([0, 2, 6]), array([0, 4, 0]))
    """
    out, instance = above >= depth, owners(indptr)
    lowest = np.full(indptr.size - 1, depth)
    np.maximum.at(lowest, instance[~out], (above + tied)[~out])
    below = np.minimum(lowest, n - np.diff(indptr))[instance]
    return np.where(out, below, above), np.where(out, 0, tied)


def _files() -> Any:
    """Return the module that reads and writes ranks; it imports this one, so it is loaded by name."""
    return import_module("truerank.formats.rank_files")


def n_named(given: object) -> int:
    """Return how many recommenders a dict holds by name; 0 if `given` is not a dict."""
    return len(given) if isinstance(given, Mapping) else 0


def named_ranks(given: Any, name: str = "recommender") -> dict[str, Ranks]:
    """Return ranks by name, or raise `InputError`; ranks of a single recommender get the given name."""
    several = dict(given) if isinstance(given, Mapping) else {name: given}
    check_ranks(*several.values())
    return several


def check_ranks(*given: object) -> None:
    """Raise `InputError` unless all are `Ranks`."""
    for each in given:
        if not isinstance(each, Ranks):
            several = "several recommenders are a dict of name to Ranks"
            raise InputError(f"`ranks` must be Ranks, got {type(each).__name__}; {several}.")


def _taken(array: AnyArray | None, at: Ints | slice) -> AnyArray | None:
    return None if array is None else array[at]


def _pool_notes(size: int, negative: Any) -> tuple[str, ...]:
    return (_SHARED_POOL,) if size > 1 and np.ndim(negative) == 1 else ()


def _spread(n: Ints) -> str:
    if n.size == 0:
        return "no"
    return f"{n.min()}" if n.min() == n.max() else f"{n.min()} to {n.max()}"


def break_order(
    how: TieBreak, tied: Ints, place: Ints, block: Ints, grades: Floats | None, rng: np.random.Generator
) -> tuple[Ints, Ints]:
    """Return how many ties each relevant item loses, and the order in which grades and items are taken."""
    checks.check_choice("how", how, get_args(TieBreak))
    if how == "random":
        lost = _random_losses(tied, place, block, rng)
        key = rng.random(tied.size) if np.any(block > 1) else None
    else:
        lost = np.zeros_like(tied) if how == "optimistic" else tied
        key = -grades if how == "optimistic" and grades is not None else grades
    return lost, np.arange(tied.size) if key is None else np.lexsort((key, np.cumsum(place == 1)))


def _random_losses(tied: Ints, place: Ints, block: Ints, rng: np.random.Generator) -> Ints:
    """Draw how many tied irrelevant items fall above each relevant one.

    Give every item of a block a uniform key on (0, 1). The keys of the b relevant ones, in order,
    cut the interval; each irrelevant one falls into a piece with a probability equal to its length, so
    the pieces fill up binomially, one relevant item after the other.
    """
    lost = np.zeros_like(tied)
    uniform: Floats = rng.random(tied.size)
    for j in range(1, int(block[tied > 0].max(initial=0)) + 1):
        at = np.flatnonzero((place == j) & (tied > 0))
        before = lost[at - 1] if j > 1 else np.zeros_like(at)
        # the smallest of the `left` keys that remain cuts off this share of what remains
        left = block[at] - j + 1
        share = 1.0 - uniform[at] ** (1.0 / left)
        lost[at] = before + rng.binomial(tied[at] - before, share)
    return lost
