"""`rank_triples` against a loop over all entities; PyKEEN's own evaluator is compared in tests/models."""

from typing import Any

import numpy as np
import pytest

import truerank as tr
from truerank.core.checks import Floats, Ints
from truerank.ranking import triples as subject

N_ENTITIES, N_RELATIONS = 12, 3
SCORES = np.random.default_rng(0).integers(0, 5, (N_ENTITIES, N_RELATIONS, N_ENTITIES)) / 4.0


def make(n: int, seed: int) -> Ints:
    rng = np.random.default_rng(seed)
    return np.column_stack([rng.integers(0, size, n) for size in (N_ENTITIES, N_RELATIONS, N_ENTITIES)])


def score(heads: Ints | None, relations: Ints, tails: Ints | None) -> Floats:
    return SCORES[heads, relations] if tails is None else SCORES[:, relations, tails].T


def by_loop(test: Ints, known: Ints, side: str) -> list[tuple[int, int, int]]:
    """Return the candidates above and tied with the true entity, and how many there are with it."""
    facts, rows = set(map(tuple, known.tolist())), []
    for head, relation, tail in test.tolist():
        triples = [(head, relation, each) if side == "tail" else (each, relation, tail) for each in range(N_ENTITIES)]
        others = [SCORES[each] for each in triples if each not in facts and each != (head, relation, tail)]
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
        ({"score": 5}, "`score` must be a function of heads, relations and tails, or a PyKEEN model, got 5"),
    ],
)
def test_what_is_refused(arguments: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"score": score, "test": [[0, 1, 2]]} | arguments
    with pytest.raises(tr.InputError, match=message):
        tr.rank_triples(given.pop("score"), given.pop("test"), **given)
