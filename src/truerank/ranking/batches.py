"""`RankCounter`: ranks from batches of scores, as arrays or tensors, in a training loop."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import AnyArray, InputError, as_ids, counted, is_sparse, refuse_masked
from truerank.core.csr import bounds, owners
from truerank.core.ranks import Ranks
from truerank.core.threads import check_threads
from truerank.data.interactions import Interactions, PerUser
from truerank.kernels import tensors
from truerank.kernels.user_blocks import Lists
from truerank.scoring.scorers import ScoreMatrix

if TYPE_CHECKING:
    import torch


class BatchCounts(NamedTuple):
    """Counts for the relevant items of a batch, row by row; arrays, or tensors on their device."""

    above: Any
    tied: Any
    items: Any
    n_relevant: Any
    n_candidates: Any
    scores: Any = None
    """Scores of the relevant items; None if each row lists them from the top down."""
    not_finite: Any = False
    """Whether the score of any candidate is not finite."""


def count_tensors(scores: torch.Tensor, relevant: Any, exclude: Any) -> BatchCounts:
    """Count the irrelevant candidates above, and tied with, each relevant item, on the device of the scores.

    `relevant` and `exclude` are masks of the shape of the scores, or interactions.
    """
    plain = tensors.widened(scores)
    hits = _mask(relevant, plain)
    left_out = _mask(exclude, plain) & ~hits
    rows, items = hits.nonzero(as_tuple=True)
    counts = tensors.count_entries(plain, rows, items, left_out)
    return BatchCounts(
        above=counts.above,
        tied=counts.tied,
        items=items,
        n_relevant=hits.sum(dim=1),
        n_candidates=plain.shape[1] - left_out.sum(dim=1),
        scores=counts.scores,
        not_finite=counts.not_finite,
    )


def _mask(given: Any, scores: torch.Tensor) -> torch.Tensor:
    import torch

    if not isinstance(given, Interactions):
        return torch.as_tensor(given, device=scores.device) != 0
    marked = torch.zeros(scores.shape, dtype=torch.bool, device=scores.device)
    rows, items = (torch.as_tensor(part, device=scores.device).long() for part in (given.users, given.items))
    marked[rows, items] = True
    return marked


Marked = PerUser | AnyArray | Any
"""Some items of each row: see `RankCounter.update`."""


class RankCounter:
    """Counts ranks from batches of scores; `ranks` returns those of all batches together.

    The result does not depend on how rows are divided into batches. Counters of several processes merge with ``+``.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> counter = tr.RankCounter()
    >>> counter.update(np.array([[0.9, 0.8, 0.7, 0.6]]), [[2]], exclude=[[0]])
    >>> counter.update(np.array([[0.1, 0.2, 0.3, 0.4], [0.5, 0.4, 0.4, 0.2]]), [[3, 0], [1]])
    >>> counter.ranks()
    Ranks(3 instances, 4 relevant items, 3 to 4 candidates, 33.3 % of instances tied)
    >>> tr.values(counter.ranks(), "ndcg@3").round(4).tolist()
    [0.6309, 0.6131, 0.5655]
    """

    def __init__(self) -> None:
        self._batches: list[tuple[BatchCounts, AnyArray | None]] = []

    def __add__(self, other: RankCounter) -> RankCounter:
        """Return a counter with the batches of both, those of `other` last."""
        both = RankCounter()
        both._batches = self._batches + other._batches
        return both

    def update(
        self, scores: Any, relevant: Marked, *, exclude: Marked | None = None, ids: ArrayLike | None = None
    ) -> None:
        """Count the ranks of a batch.

        Parameters
        ----------
        scores : array or tensor of shape (batch, n_items)
            A PyTorch tensor is counted on its device; only the counts leave it, when `ranks` is called.
        relevant : lists of item numbers, one item number per row, mask, or sparse matrix
            The relevant items of each row. A mask has the shape of `scores` and is True, or not 0, at relevant items.
        exclude : in the same forms, optional
            Items that are not candidates, such as training items; their scores may be anything. A relevant item among
            them stays a candidate.
        ids : array, optional
            Names of the rows, such as users. They are kept if all batches have them.
        """
        shape = tuple(np.shape(scores))
        if len(shape) != 2:
            raise InputError(f"`scores` must be two-dimensional, got shape {shape}.")
        names = None if ids is None else as_ids("ids", ids, shape[0])
        if not shape[0]:
            return
        parts = [_checked(relevant, "relevant", shape), _checked([] if exclude is None else exclude, "exclude", shape)]
        count = count_tensors if tensors.is_on_a_device(scores) else _count_arrays
        self._batches.append((count(scores, *parts), names))

    def ranks(self) -> Ranks:
        """Return the ranks of all rows with relevant items, in the order in which they came."""
        if not self._batches:
            raise InputError("the counter has no ranks, because `update` was not called with any row.")
        rows = Ranks.concatenate([_to_ranks(counts, names) for counts, names in self._batches])
        filled = rows.n_relevant > 0
        if filled.all():
            return rows
        words = "row has no relevant item and is left out", "rows have no relevant item and are left out"
        return rows[filled]._with(notes=(counted(int((~filled).sum()), *words),))


def _checked(given: Any, name: str, shape: tuple[int, ...]) -> Any:
    """Return interactions, or a mask of the right shape."""
    refuse_masked(given, f"`{name}`")
    dimensions = getattr(given, "ndim", None)
    if dimensions == 2 and tuple(given.shape) != shape:
        raise InputError(f"`{name}` must have the shape of `scores`, {shape}, got {tuple(given.shape)}.")
    if dimensions == 2 and not is_sparse(given):
        return given
    lists = given.reshape(-1, 1).tolist() if dimensions == 1 else given
    if name == "relevant" and dimensions != 2 and len(lists) != shape[0]:
        raise InputError(f"`{name}` must have one entry per row of `scores` ({shape[0]}), got {len(lists)}.")
    return Interactions.of(lists, name, n_users=shape[0], n_items=shape[1])


def _count_arrays(scores: Any, relevant: Any, exclude: Any) -> BatchCounts:
    """Count as `truerank.rank` does; a CPU tensor shares its memory with an array."""
    import scipy.sparse as sp

    test, train = (
        part if isinstance(part, Interactions) else Interactions(sp.csr_array(tensors.on_cpu(part) != 0))
        for part in (relevant, exclude)
    )
    lists = Lists(train.indptr, train.items), Lists(test.indptr, test.items)
    counts = ScoreMatrix(scores).count(*lists, threads=check_threads(None))
    n_candidates = test.n_items - np.diff(train.indptr) + np.bincount(test.users[counts.seen], minlength=test.n_users)
    return BatchCounts(counts.above, counts.tied, test.items[counts.order], np.diff(test.indptr), n_candidates)


def _to_ranks(counts: BatchCounts, names: AnyArray | None) -> Ranks:
    if tensors.on_cpu(counts.not_finite):
        tensors.refuse_not_finite()
    above, tied, items, n_relevant, n_candidates = map(tensors.on_cpu, counts[:5])
    ends = bounds(n_relevant)
    if counts.scores is not None:
        order = tensors.from_the_top(owners(ends), tensors.on_cpu(counts.scores))
        above, tied, items = above[order], tied[order], items[order]
    return Ranks(above=above, tied=tied, items=items, n_candidates=n_candidates, indptr=ends, ids=names)
