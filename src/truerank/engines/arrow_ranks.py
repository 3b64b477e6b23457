"""The step that every engine runs: a table of users -> the ranks of their held-out items.

Spark calls it through `mapInArrow`; Ray Data, Dask or a loop over the row groups of a Parquet file can call it as well.
"""

from __future__ import annotations

import dataclasses
import zlib

import numpy as np
import pyarrow as pa
import scipy.sparse as sp

from truerank.arrays import AnyArray, Bools, Ints
from truerank.counting.blocks import Lists
from truerank.data.interactions import Interactions
from truerank.engines.catalogues import Items
from truerank.engines.item_blocks import count_in_blocks
from truerank.engines.user_tables import UserRows
from truerank.errors import InputError
from truerank.formats.ids import shown
from truerank.ranking.held_out import HeldOut
from truerank.ranking.ranks import Ranks
from truerank.ranking.sampled import rank_by_design
from truerank.ranking.score_ties import same_scores
from truerank.sampling.designs import SamplingDesign
from truerank.scoring.factors import Factors
from truerank.scoring.scorer import Scorer


def rank_users(table: pa.Table, items: Items) -> Ranks:
    """Return the exact ranks of the held-out items of some users among all items of a catalogue.

    Parameters
    ----------
    table : pyarrow.Table
        A row per user, with the columns that `truerank.engines.user_tables` describes.
    items : Items
        A catalogue that has been opened.

    Examples
    --------
    >>> items = Items(np.array(["ant", "bee", "cat"]), (np.array([[1.0], [3.0], [2.0]]),), np.array([0, 3]))
    >>> rows = [{"user": "ann", "features": [1.0], "seen": [], "held": ["ant", "cat"]},
    ...         {"user": "bob", "features": [-1.0], "seen": ["ant"], "held": ["bee"]}]
    >>> ranks = rank_users(pa.Table.from_pylist(rows), items)
    >>> ranks.rank.tolist(), ranks.n_candidates.tolist(), ranks.ids.tolist()
    ([2, 3, 2], [3, 2], ['ann', 'bob'])
    """
    rows = UserRows.of(table, items)
    _check_range(rows, items)
    counts = count_in_blocks(rows.factors, items, rows.train, rows.test)
    both = np.diff(np.concatenate([[0], np.cumsum(counts.seen)])[rows.test.indptr])
    return Ranks(
        above=counts.above,
        tied=counts.tied,
        n_candidates=items.ids.size - np.diff(rows.train.indptr) + both,
        indptr=rows.test.indptr,
        ids=rows.names,
        grades=None if rows.grades is None else rows.grades[counts.order],
        same_score=None if rows.grades is None else _same_scores(rows, items),
        items=items.ids[rows.test.indices[counts.order]],
    )


def sample_users(table: pa.Table, items: Items, design: SamplingDesign, seed: int) -> Ranks:
    """Return the ranks among sampled candidates, scoring only those; the sample depends on the seed and the users.

    Parameters
    ----------
    table, items
        Those of `rank_users`.
    design : SamplingDesign
    seed : int

    Examples
    --------
    >>> import truerank as tr
    >>> items = Items(np.arange(50), (np.arange(50.0)[:, None],), np.array([0, 50]))
    >>> rows = [{"user": "ann", "features": [1.0], "seen": [], "held": [49]}]
    >>> sample_users(pa.Table.from_pylist(rows), items, tr.UniformSampling(10), seed=1)
    Ranks(1 instances, 1 relevant items, 11 of 50 candidates sampled, no ties)
    """
    rows = UserRows.of(table, items)
    rng = np.random.default_rng([seed, stable_hash(rows.names)])
    train = _interactions(rows.train, items.ids.size) if "seen" in table.column_names else None
    test = _interactions(rows.test, items.ids.size)
    held = HeldOut((_RowScorer(rows.factors, items),), train, test, rows.grades, (), 0)
    (ranks,) = rank_by_design(design, held, held.scorers, rng, items.popularity)
    named = None if ranks.items is None else items.ids[ranks.items]
    return dataclasses.replace(ranks, ids=rows.names, items=named)


def stable_hash(names: AnyArray) -> int:
    """Return a number that depends on the names alone, on every machine.

    Examples
    --------
    >>> stable_hash(np.array(["ann", "bob"])) == stable_hash(np.array(["ann", "bob"]))
    True
    """
    return zlib.crc32("\n".join(map(str, names.tolist())).encode())


class _RowScorer(Scorer):
    """Scores pairs by rows of a catalogue in blocks."""

    def __init__(self, factors: AnyArray, items: Items) -> None:
        self.factors, self.items = factors, items
        self.n_users, self.n_items = len(factors), items.ids.size

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return np.hstack([self.factors[users] @ block.T for block in self.items.blocks])

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each pair; no others are computed."""
        distinct, which = np.unique(items, return_inverse=True)
        return np.einsum("ij,ij->i", self.factors[users], self.items.rows(distinct)[which])


def _interactions(lists: Lists, n_items: int) -> Interactions:
    shape = (len(lists.indptr) - 1, n_items)
    return Interactions(sp.csr_array((np.ones(len(lists.indices), np.float32), lists.indices, lists.indptr), shape))


def _check_range(rows: UserRows, items: Items) -> None:
    """Refuse users whose scores might overflow, while their names are at hand."""
    number = np.result_type(rows.factors.dtype, items.blocks[0].dtype)
    with np.errstate(over="ignore"):
        highest = np.abs(rows.factors).max(axis=1, initial=0) * number.type(items.largest * items.n_factors)
    if not np.isfinite(highest).all():
        name = shown(rows.names[~np.isfinite(highest)].tolist()[0])
        raise InputError(f"scores must be finite in {number}, but the factors of user {name} are too large for that.")


def _same_scores(rows: UserRows, items: Items) -> Bools:
    """Return whether held-out items have the scores of those before them, which takes no other items."""
    held = np.unique(rows.test.indices).astype(np.int64)
    scorer = Factors(rows.factors, items.rows(held))
    numbers = np.searchsorted(held, rows.test.indices).astype(np.int32)
    test = _interactions(Lists(rows.test.indptr, numbers), held.size)
    nothing = _interactions(Lists(np.zeros_like(rows.test.indptr), numbers[:0]), held.size)
    counts = scorer.count(Lists(nothing.indptr, nothing.items), Lists(test.indptr, test.items))
    return same_scores(scorer, nothing, test, counts, threads=1)
