"""`rank_triples`: ranks of the entities of knowledge-graph triples, or of temporal links, among all or sampled ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import (
    AnyArray,
    InputError,
    Ints,
    Rng,
    as_ids,
    as_list,
    as_plain,
    as_rng,
    check_choice,
    check_whole,
    first_true,
    slices,
    to_numpy,
)
from truerank.core.csr import bounds, entries_of, owners
from truerank.core.ranks import Ranks
from truerank.ranking.among_samples import rank_by_design
from truerank.ranking.held_out import HeldOut
from truerank.sampling.designs import AnyDesign, SamplingDesign, as_design
from truerank.scoring.scorers import Scorer

if TYPE_CHECKING:
    import scipy.sparse as sp

Sides = Literal["both", "head", "tail"]
ScoreTriples = Callable[[Ints | None, Ints, Ints | None], Any]
BLOCK = 2**24
"""Scores that are held at a time."""
_TRIPLES = 2**16
"""Triples that a model is asked for at once."""


def rank_triples(
    score: ScoreTriples | Any,
    test: Any,
    *,
    known: Sequence[Any] = (),
    sides: Sides = "both",
    types: ArrayLike | None = None,
    design: AnyDesign | None = None,
    n_entities: int | None = None,
    rng: Rng = None,
) -> Ranks:
    """Rank the head and the tail of each triple among all entities, or among sampled ones.

    This is the filtered setting of Bordes et al. (NIPS 2013): an entity that completes another known triple is not a
    candidate. Both sides of a triple have its number as `ids`, so that errors are clustered by triple.

    Parameters
    ----------
    score : function, or model of PyKEEN
        ``score(heads, relations, None)`` returns the scores of all entities as tails, an array or tensor of shape
        (triples, entities); ``score(None, relations, tails)`` those of all entities as heads. With a `design`,
        ``score(heads, relations, tails)`` returns one score per triple.
    test : array of shape (triples, 3)
        Numbers of head, relation and tail of each triple to rank.
    known : sequence of arrays of shape (triples, 3)
        Triples that are known to be true, usually those for training, validation and test. The entities of triples in
        `test` are excluded as candidates only if the triples are given here, too.
    sides : {"both", "head", "tail"}
        What to rank; with "both", first the tails of all triples and then the heads.
    types : array, one per entity, optional
        The type of each entity: only those with the type of the true entity are candidates.
    design : SamplingDesign, str or int, optional
        Scores only some candidates, as in `truerank.rank_sampled`: a uniform sample, whose metrics can be corrected, or
        the candidates in the order of a proxy (`HeadFirst`), which is given in the forms of `score`. Popularity is how
        often an entity is the head, or the tail, of a known triple. None: all candidates are scored.
    n_entities : int, optional
        With a `design`: how many entities there are, if `score` is a function and there are no `types`.
    rng : int or numpy.random.Generator, optional
        Seed of the sample.

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

    Among candidates of the same type:

    >>> tr.rank_triples(score, test, known=[train, test], types=["person", "person", "city", "city"]).rank.tolist()
    [2, 1, 2, 1]
    """
    check_choice("sides", sides, ("both", "head", "tail"))
    triples = _triples("test", test)
    if not len(triples):
        raise InputError("`test` must hold at least one triple, got none.")
    true = [_triples(f"known[{at}]", each) for at, each in enumerate(as_list("known", known, "arrays of triples"))]
    facts = np.unique(np.concatenate([*true, np.empty((0, 3), dtype=np.int64)]), axis=0)
    least = 1 + max(int(each[:, ::2].max(initial=0)) for each in (triples, facts))
    kinds = None if types is None else np.unique(as_ids("types", types), return_inverse=True)[1]
    if kinds is not None and kinds.size < least:
        raise InputError(f"`types` must have one entry per entity, at least {least}, got {kinds.size}.")
    asked = {"both": ("tail", "head"), "head": ("head",), "tail": ("tail",)}[sides]
    if design is None:
        parts = [_Side(_scorer(score), triples, side, least) for side in asked]
        return Ranks.concatenate([block for part in parts for block in _ranked(part, facts, kinds)])
    size = _n_entities(score, n_entities, kinds, least)
    chosen, generator = as_design(design), as_rng(rng)
    return Ranks.concatenate(
        [_sampled([score, *chosen.proxies], triples, side, size, facts, kinds, chosen, generator) for side in asked]
    )


def _triples(name: str, given: Any) -> Ints:
    array = as_plain(given, f"`{name}`")
    if array.ndim != 2 or array.shape[1] != 3 or array.dtype.kind not in "iu":
        kind = f"{array.dtype} and shape {array.shape}"
        raise InputError(f"`{name}` must hold whole numbers in the shape (triples, 3), got {kind}.")
    if (at := first_true(array.min(axis=1, initial=0) < 0)) is not None:
        raise InputError(f"`{name}` must hold numbers from 0, got {array[at].tolist()} at position {at}.")
    return array.astype(np.int64)


def _n_entities(score: Any, given: int | None, kinds: Ints | None, least: int) -> int:
    """Return how many entities can be sampled."""
    stated = getattr(score, "num_entities", None) if kinds is None else kinds.size
    size = stated if given is None else given
    if size is None:
        raise InputError("a `design` needs to know how many entities there are: give `n_entities`.")
    check_whole("n_entities", size, least)
    return int(size)


class _Side(Scorer):
    """Scores of all entities in the place of the head, or of the tail, of each triple."""

    takes_pairs = True

    def __init__(self, score: ScoreTriples, triples: Ints, side: str, n_entities: int) -> None:
        self.score, self.triples, self.side = score, triples, side
        self.given, self.asked = (0, 2) if side == "tail" else (2, 0)
        self.n_users, self.n_items = len(triples), n_entities

    def scores(self, users: Ints) -> AnyArray:
        heads, relations, tails = self.triples[users].T
        pair = (heads, relations, None) if self.side == "tail" else (None, relations, tails)
        matrix = to_numpy(self.score(*pair), "what `score` returns")
        if matrix.ndim != 2 or len(matrix) != len(users) or matrix.shape[1] < self._width():
            least = f"({len(users)}, entities), at least {self.n_items} of them,"
            raise InputError(f"`score` must return shape {least} for the {self.side}s, got {matrix.shape}.")
        return matrix

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        rows = self.triples[users]
        rows[:, self.asked] = items
        found = [to_numpy(self.score(*rows[part].T), "what `score` returns") for part in slices(len(rows), _TRIPLES)]
        scores = np.concatenate([np.zeros(0, np.float32), *(np.atleast_1d(part) for part in found)])
        if scores.shape != (len(rows),):
            raise InputError(f"`score` must return one score for each of {len(rows)} triples, got {scores.shape}.")
        return scores


def _ranked(side: _Side, facts: Ints, kinds: Ints | None) -> Iterator[Ranks]:
    """Yield the ranks of one side among all entities, block by block."""
    for block in slices(len(side.triples), BLOCK // side._width()):
        users = np.arange(len(side.triples))[block]
        scores, own = side.scores(users), side.triples[block, side.asked]
        if kinds is not None and scores.shape[1] != kinds.size:
            raise InputError(f"`types` must have one entry for each of {scores.shape[1]} entities, got {kinds.size}.")
        candidates = np.ones(scores.shape, dtype=np.bool_) if kinds is None else kinds[own][:, None] == kinds
        candidates[_known(side, block, facts)] = False
        at = np.arange(len(users)), own
        candidates[at] = False
        ranks = Ranks.from_scores(scores[at], scores, negative_mask=candidates, ids=users)
        yield ranks._with(items=own.copy())


def _sampled(
    scores: Sequence[Any],
    triples: Ints,
    side: str,
    n_entities: int,
    facts: Ints,
    kinds: Ints | None,
    design: SamplingDesign,
    rng: np.random.Generator,
) -> Ranks:
    """Return the ranks of one side by a design; the first of the scores ranks, the others are proxies."""
    first, *proxies = (_Side(_scorer(each), triples, side, n_entities) for each in scores)
    own, shape = triples[:, first.asked], (len(triples), n_entities)
    rows, entities = _known(first, slice(None), facts)
    others = entities != own[rows]
    held = HeldOut.of(
        [first, *proxies],
        train=_marked(rows[others], entities[others], shape),
        test=_marked(np.arange(len(own)), own, shape),
        candidates=None if kinds is None else _marked(*_of_kind(kinds, kinds[own]), shape),
    )
    popularity = np.bincount(facts[:, first.asked], minlength=n_entities)
    (found,) = rank_by_design(design, held, held.scorers[:1], rng, popularity)
    return found


def _marked(rows: Ints, entities: Ints, shape: tuple[int, int]) -> sp.csr_array:
    import scipy.sparse as sp

    return sp.csr_array((np.ones(rows.size, np.float32), (rows, entities)), shape=shape)


def _of_kind(kinds: Ints, asked: Ints) -> tuple[Ints, Ints]:
    """Return the entities of each requested kind, and the position of that kind among the requested ones."""
    places, within = entries_of(bounds(np.bincount(kinds)), asked)
    return owners(within), np.argsort(kinds, kind="stable")[places]


def _known(side: _Side, block: slice, facts: Ints) -> tuple[Ints, Ints]:
    """Return the entities that complete a known triple with the rest of each triple of a block, and its row there."""
    pairs, true = side.triples[block][:, [side.given, 1]], facts[:, [side.given, 1]]
    n_relations = 1 + max(int(pairs[:, 1].max(initial=0)), int(true[:, 1].max(initial=0)))
    keys, wanted = (each[:, 0] * n_relations + each[:, 1] for each in (true, pairs))
    order = np.argsort(keys, kind="stable")
    distinct, starts = np.unique(keys[order], return_index=True)
    rows = np.flatnonzero(np.isin(wanted, distinct))
    places, within = entries_of(np.append(starts, keys.size), np.searchsorted(distinct, wanted[rows]))
    return np.repeat(rows, np.diff(within)), facts[order[places], side.asked]


def _scorer(score: Any) -> ScoreTriples:
    found = _from_pykeen(score) if hasattr(score, "predict_t") else score
    if not callable(found):
        raise InputError(f"`score` must be a function of heads, relations and tails, or a PyKEEN model, got {score!r}.")
    return found


def _from_pykeen(model: Any) -> ScoreTriples:
    """Return a function that asks a model of PyKEEN, on its device and without gradients."""

    def score(heads: Ints | None, relations: Ints, tails: Ints | None) -> Any:
        import torch

        pair = [each for each in (heads, relations, tails) if each is not None]
        batch = torch.as_tensor(np.stack(pair, axis=1), device=model.device)
        with torch.inference_mode():
            if len(pair) == 3:
                return model.predict_hrt(batch)[:, 0]
            return model.predict_t(batch) if tails is None else model.predict_h(batch)

    return score
