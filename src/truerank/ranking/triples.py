"""`rank_triples`: ranks of the entities of knowledge-graph triples, or of temporal links, among all entities."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import numpy as np

from truerank.core.checks import (
    AnyArray,
    Bools,
    InputError,
    Ints,
    as_list,
    as_plain,
    check_choice,
    first_true,
    slices,
    to_numpy,
)
from truerank.core.csr import entries_of
from truerank.core.ranks import Ranks

Sides = Literal["both", "head", "tail"]
ScoreTriples = Callable[[Ints | None, Ints, Ints | None], Any]
BLOCK = 2**24
"""Scores that are held at a time."""


def rank_triples(score: ScoreTriples | Any, test: Any, *, known: Sequence[Any] = (), sides: Sides = "both") -> Ranks:
    """Rank the head and the tail of each triple among all entities.

    This is the filtered setting of Bordes et al. (NIPS 2013): an entity that makes another known triple is not a
    candidate. Both sides of a triple have its number as `ids`, so that errors are clustered by triple.

    Parameters
    ----------
    score : function, or model of PyKEEN
        ``score(heads, relations, None)`` returns the scores of all entities as tails, an array or tensor of shape
        (triples, entities); ``score(None, relations, tails)`` those of all entities as heads.
    test : array of shape (triples, 3)
        Numbers of head, relation and tail of each triple to rank.
    known : sequence of arrays of shape (triples, 3)
        Triples that are known to be true, usually those for training, validation and test. Those of `test` are left
        out as candidates only if they are given here, too.
    sides : {"both", "head", "tail"}
        What to rank; with "both", first the tails of all triples and then the heads.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> entities = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.6], [0.1, 0.2]])
    >>> relations = np.array([[1.0, 0.5], [0.3, 1.0]])
    >>> def score(heads, kinds, tails):                              # DistMult, which treats both sides alike
    ...     return entities[tails if heads is None else heads] * relations[kinds] @ entities.T
    >>> train, test = np.array([[0, 0, 2], [3, 1, 1]]), np.array([[0, 0, 1], [1, 1, 2]])
    >>> ranks = tr.rank_triples(score, test, known=[train, test])
    >>> ranks.rank.tolist(), ranks.items.tolist()
    ([2, 2, 3, 1], [1, 2, 0, 1])

    By relation:

    >>> table = tr.evaluate(ranks, "rr", by=dict(enumerate(test[:, 1])))
    >>> round(table["rr", "0"].mean, 3), round(table["rr", "1"].mean, 3)
    (0.417, 0.75)
    """
    check_choice("sides", sides, ("both", "head", "tail"))
    triples = _triples("test", test)
    if not len(triples):
        raise InputError("`test` must hold at least one triple, got none.")
    true = [_triples(f"known[{at}]", each) for at, each in enumerate(as_list("known", known, "arrays of triples"))]
    facts = np.unique(np.concatenate([*true, np.empty((0, 3), dtype=np.int64)]), axis=0)
    asked = {"both": ("tail", "head"), "head": ("head",), "tail": ("tail",)}[sides]
    scorer = _from_pykeen(score) if hasattr(score, "predict_t") else score
    if not callable(scorer):
        raise InputError(f"`score` must be a function of heads, relations and tails, or a PyKEEN model, got {score!r}.")
    return Ranks.concatenate([part for side in asked for part in _ranked(scorer, triples, facts, side)])


def _triples(name: str, given: Any) -> Ints:
    array = as_plain(given, f"`{name}`")
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        kind = f"{array.dtype} and shape {array.shape}"
        raise InputError(f"`{name}` must hold whole numbers in the shape (triples, 3), got {kind}.")
    if (at := first_true(array.min(axis=1, initial=0) < 0)) is not None:
        raise InputError(f"`{name}` must hold numbers from 0, got {array[at].tolist()} at position {at}.")
    return array.astype(np.int64)


def _ranked(score: ScoreTriples, triples: Ints, facts: Ints, side: str) -> Iterator[Ranks]:
    """Yield the ranks of one side, block by block."""
    given, asked = (0, 2) if side == "tail" else (2, 0)
    size = 1 + max(int(each[:, ::2].max(initial=0)) for each in (triples, facts))
    for block in slices(len(triples), BLOCK // size):
        rows = triples[block]
        pair = (rows[:, 0], rows[:, 1], None) if side == "tail" else (None, rows[:, 1], rows[:, 2])
        scores = _checked(score(*pair), len(rows), size, side)
        own = rows[:, asked]
        candidates = _candidates(rows[:, [given, 1]], facts[:, [given, 1, asked]], scores.shape)
        candidates[np.arange(len(rows)), own] = False
        ids = np.arange(len(triples))[block]
        relevant = scores[np.arange(len(rows)), own]
        yield Ranks.from_scores(relevant, scores, negative_mask=candidates, ids=ids)._with(items=own.copy())


def _checked(scores: Any, n_rows: int, size: int, side: str) -> AnyArray:
    matrix = to_numpy(scores, "what `score` returns")
    if matrix.ndim != 2 or len(matrix) != n_rows or matrix.shape[1] < size:
        least = f"({n_rows}, entities), at least {size} of them,"
        raise InputError(f"`score` must return shape {least} for the {side}s, got {matrix.shape}.")
    return matrix


def _candidates(pairs: Ints, facts: Ints, shape: tuple[int, ...]) -> Bools:
    """Return which entities do not make a known triple with the given entity and relation of each row."""
    left = np.ones(shape, dtype=np.bool_)
    n_relations = 1 + max(int(pairs[:, 1].max(initial=0)), int(facts[:, 1].max(initial=0)))
    keys = facts[:, 0] * n_relations + facts[:, 1]
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    wanted = pairs[:, 0] * n_relations + pairs[:, 1]
    rows = np.flatnonzero(np.isin(wanted, distinct))
    at = np.searchsorted(distinct, wanted[rows])
    places, within = entries_of(np.append(starts, keys.size), at)
    left[np.repeat(rows, np.diff(within)), facts[order[places], 2]] = False
    return left


def _from_pykeen(model: Any) -> ScoreTriples:
    """Return a function that asks a model of PyKEEN, on its device and without gradients."""

    def score(heads: Ints | None, relations: Ints, tails: Ints | None) -> Any:
        import torch

        pair = [each for each in (heads, relations, tails) if each is not None]
        batch = torch.as_tensor(np.stack(pair, axis=1), device=model.device)
        with torch.inference_mode():
            return model.predict_t(batch) if tails is None else model.predict_h(batch)

    return score
