"""`rank_triples` against a loop over all entities; PyKEEN's own evaluator is compared in tests/models."""

from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import Floats, Ints
from truerank.ranking import triples as subject

N_ENTITIES, N_RELATIONS = 12, 3
ALIKE = np.zeros(N_ENTITIES, dtype=int)
TYPES = np.arange(N_ENTITIES) % 3
SCORES = np.random.default_rng(0).integers(0, 5, (N_ENTITIES, N_RELATIONS, N_ENTITIES)) / 4.0


def make(n: int, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, n) for size in (N_ENTITIES, N_RELATIONS, N_ENTITIES)])


def score(heads: Ints | None, relations: Ints, tails: Ints | None) -> Floats:
    return (
        SCORES[:, relations, tails].T
        if heads is None
        else SCORES[heads, relations, slice(None) if tails is None else tails]
    )


def by_loop(test: Ints, known: Ints, side: str, types: Ints = ALIKE) -> list[tuple[int, int, int]]:
    """Return the candidates above and tied with the true entity, and how many there are with it."""
    facts, rows = set(map(tuple, known.tolist())), []
    for head, relation, tail in test.tolist():
        triples = [(head, relation, each) if side == "tail" else (each, relation, tail) for each in range(N_ENTITIES)]
        entities = [each[2] if side == "tail" else each[0] for each in triples]
        true = tail if side == "tail" else head
        kept = [each for each, entity in zip(triples, entities, strict=True) if types[entity] == types[true]]
        others = [SCORES[each] for each in kept if each not in facts and each != (head, relation, tail)]
        own = SCORES[head, relation, tail]
        rows.append((sum(each > own for each in others), sum(each == own for each in others), len(others) + 1))
    return rows


@pytest.mark.parametrize("n_known", [0, 150])
@pytest.mark.parametrize("block", [1, 50, 2**24])
def test_every_entity_is_a_candidate_unless_known(n_known: int, block: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(subject, "BLOCK", block)
    test, train = make(40, 1), make(n_known, 2)
    known = [train, test] if n_known else []
    ranks = tr.rank_triples(score, test, known=known)
    facts = np.concatenate([train, test]) if n_known else train
    expected = by_loop(test, facts, "tail") + by_loop(test, facts, "head")
    assert list(zip(ranks.above, ranks.tied, ranks.n_candidates, strict=True)) == expected
    assert ranks.ids is not None
    assert ranks.ids.tolist() == [*range(40), *range(40)]
    assert ranks.items is not None
    assert ranks.items.tolist() == [*test[:, 2], *test[:, 0]]


def test_candidates_by_type() -> None:
    test, train = make(40, 1), make(60, 2)
    names = np.array(["person", "city", "river"])[TYPES]
    ranks = tr.rank_triples(score, test, known=[train, test], types=names)
    facts = np.concatenate([train, test])
    expected = by_loop(test, facts, "tail", TYPES) + by_loop(test, facts, "head", TYPES)
    assert list(zip(ranks.above, ranks.tied, ranks.n_candidates, strict=True)) == expected


@pytest.mark.parametrize("n_types", [1, 2])
def test_a_proxy_first(n_types: int) -> None:
    """The top is exact whatever the proxy, here the same scores with noise, and takes fewer scores."""
    rng = np.random.default_rng(4)
    scores = rng.integers(0, 40, (200, 2, 200)) / 8.0
    test, train = (np.column_stack([rng.integers(0, size, 60) for size in (200, 2, 200)]) for _ in range(2))

    def by(matrix: Floats) -> Any:
        def rows(heads: Any, relations: Ints, tails: Any) -> Floats:
            return matrix[slice(None) if heads is None else heads, relations, slice(None) if tails is None else tails]

        return lambda *given: rows(*given).T if given[0] is None else rows(*given)

    given: dict[str, Any] = {"known": [train, test], "types": np.arange(200) % n_types}
    exact = tr.rank_triples(by(scores), test, **given)
    proxy = by(scores + rng.normal(0.0, 0.1, scores.shape))
    top = tr.rank_triples(by(scores), test, design=tr.HeadFirst(5, proxy=proxy), rng=0, **given)
    assert top.n_scored.sum() < 0.5 * exact.n_candidates.sum()
    assert (top.n_candidates == exact.n_candidates).all()
    assert tr.evaluate(top, ["hr@5", "rr@3"]).to_dict() == tr.evaluate(exact, ["hr@5", "rr@3"]).to_dict()
    by_popularity = tr.rank_triples(by(scores), test, design=tr.HeadFirst(5), rng=0, **given)
    assert top.n_scored.sum() < by_popularity.n_scored.sum()
    assert (tr.values(by_popularity, "hr@5") == tr.values(exact, "hr@5")).all()


@pytest.mark.parametrize(("side", "place"), [("tail", 2), ("head", 0)])
def test_popularity_is_that_of_the_side(side: Any, place: int) -> None:
    """A model that orders entities as they are known on this side needs few scores without a proxy."""
    rng = np.random.default_rng(5)
    train = np.column_stack([rng.integers(0, 200, 3_000), np.zeros(3_000, int), rng.integers(0, 200, 3_000)])
    popular = np.bincount(train[:, place], minlength=200) + rng.random(200) / 2
    test = np.column_stack([np.arange(200), np.zeros(200, int), np.arange(200)])

    def score(heads: Any, relations: Ints, tails: Any) -> Floats:
        asked = (heads, relations, tails)[place]
        return np.tile(popular, (len(relations), 1)) if asked is None else popular[asked]

    options: dict[str, Any] = {"known": [train], "sides": side, "n_entities": 200}
    ranks = tr.rank_triples(score, test, design=tr.HeadFirst(5), rng=0, **options)
    assert ranks.n_scored.mean() < 25


@pytest.mark.parametrize("types", [None, TYPES])
def test_among_sampled_entities(types: Ints | None) -> None:
    """The sample is from the candidates of each side alone, so that AUC is unbiased."""
    test, train = make(40, 1), make(60, 2)
    given: dict[str, Any] = {"known": [train, test], "types": types}
    exact = tr.rank_triples(score, test, **given)
    found = []
    for seed in range(80):
        sampled = tr.rank_triples(score, test, design="uniform(2, replace)", n_entities=N_ENTITIES, rng=seed, **given)
        found.append(tr.estimate(sampled, "auc").mean)
    assert (sampled.n_catalogue == exact.n_candidates).all()
    assert same(sampled.ids, exact.ids)
    assert same(sampled.items, exact.items)
    error = np.std(found, ddof=1) / np.sqrt(len(found))
    assert abs(np.mean(found) - tr.estimate(exact, "auc").mean) < 5 * error


def same(one: Any, other: Any) -> bool:
    return bool((one == other).all())


def test_one_side() -> None:
    test = make(40, 1)
    both = tr.rank_triples(score, test, known=[test])
    assert tr.rank_triples(score, test, known=[test], sides="tail") == both[:40]
    assert tr.rank_triples(score, test, known=[test], sides="head") == both[40:]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            {"test": [[0, 1]]},
            r"`test` must hold whole numbers in the shape \(triples, 3\), got int64 and shape \(1, 2\)",
        ),
        ({"test": [[0, 1, 0.5]]}, "`test` must hold whole numbers"),
        ({"test": [[0, 1, -1]]}, r"`test` must hold numbers from 0, got \[0, 1, -1\] at position 0"),
        ({"test": np.zeros((0, 3), dtype=int)}, "`test` must hold at least one triple"),
        ({"test": [[0, 1, 20]]}, r"`score` must return shape \(1, entities\), at least 21 of them, for the tails"),
        ({"known": [[0, 1, 2]]}, r"`known\[0\]` must hold whole numbers in the shape"),
        ({"known": 5}, "`known` must be a list of arrays of triples, got 5"),
        ({"sides": "left"}, "`sides` must be one of 'both', 'head', 'tail', got 'left'"),
        ({"types": [0, 0]}, "`types` must have one entry per entity, at least 3, got 2"),
        ({"types": [0] * 5}, "`types` must have one entry for each of 12 entities, got 5"),
        ({"design": 3}, "a `design` needs to know how many entities there are: give `n_entities`"),
        ({"design": 3, "n_entities": 2}, "`n_entities` must be a whole number from 3, got 2"),
        ({"score": 5}, "`score` must be a function of heads, relations and tails, or a PyKEEN model, got 5"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"score": score, "test": [[0, 1, 2]]} | arguments
    with pytest.raises(tr.InputError, match=message):
        tr.rank_triples(given.pop("score"), given.pop("test"), **given)
