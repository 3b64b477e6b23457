"""Ranks know which item each of them belongs to."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank as tr

SCORES = np.random.default_rng(0).normal(size=(30, 50))
TEST = [list(np.random.default_rng(user).choice(50, size=user % 4, replace=False)) for user in range(30)]
NAMES = np.array([f"item {number}" for number in range(50)])


def expected_items(scores: np.ndarray, user: int) -> list[int]:
    return sorted(TEST[user], key=lambda item: -scores[user, item])


def named_split() -> tr.Split:
    test = tr.Interactions.of(TEST, "test", n_items=50)
    train = tr.Interactions.of([[]] * 30, "train", n_items=50)
    return tr.Split(tr.Interactions(train.matrix, item_ids=NAMES), tr.Interactions(test.matrix, item_ids=NAMES))


@pytest.mark.parametrize("candidates", [None, [list(range(50))] * 30])
def test_exact_ranks_name_their_items(candidates: list[list[int]] | None) -> None:
    ranks = tr.rank(SCORES, named_split(), candidates=candidates)
    assert ranks.items is not None
    assert ranks.ids is not None
    for at, user in enumerate(ranks.ids):
        own = slice(*ranks.indptr[at : at + 2])
        assert ranks.items[own].tolist() == [NAMES[item] for item in expected_items(SCORES, user)]
        expected = [(SCORES[user] >= SCORES[user, item]).sum() for item in expected_items(SCORES, user)]
        assert ranks.rank[own].tolist() == expected


def test_sampled_ranks_name_their_items() -> None:
    exact, sampled = tr.rank(SCORES, test=TEST), tr.rank_sampled(SCORES, test=TEST, design=10, rng=0)
    assert exact.items is not None
    assert sampled.items is not None
    assert sampled.items.tolist() == exact.items.tolist()


def test_lists_name_their_items_and_put_missing_ones_last() -> None:
    run = {"ann": ["b", "a", "c"], "bob": ["c"]}
    ranks = tr.read_lists(run, {"ann": ["x", "a", "b"], "bob": ["y", "c"]})
    assert ranks.items is not None
    assert ranks.items.tolist() == ["b", "a", "x", "c", "y"]
    numbers = tr.read_lists({0: [7, 5]}, {0: [5, 7, 900]})
    assert numbers.items is not None
    assert numbers.items.tolist() == [7, 5, 900]


def test_graded_lists_name_their_items() -> None:
    ranks = tr.read_lists({"ann": ["b", "a"]}, {"ann": {"a": 3, "b": 1, "c": 2}})
    assert ranks.items is not None
    assert ranks.grades is not None
    assert dict(zip(ranks.items.tolist(), ranks.grades.tolist(), strict=True)) == {"a": 3, "b": 1, "c": 2}


@pytest.mark.parametrize("ending", ["parquet", "npz"])
@pytest.mark.parametrize("items", [["x", "y", "zz"], [3, 1, 2]])
def test_items_are_kept(tmp_path: Path, ending: str, items: Any) -> None:
    ranks = tr.Ranks(above=[0, 2, 1], n_candidates=9, indptr=[0, 2, 3], items=items)
    ranks.save(tmp_path / f"ranks.{ending}")
    loaded = tr.Ranks.load(tmp_path / f"ranks.{ending}").items
    assert loaded is not None
    assert loaded.tolist() == items
    part, joined = ranks[[1, 0]].items, tr.Ranks.concatenate([ranks[1:], ranks[:1]]).items
    assert part is not None
    assert joined is not None
    assert part.tolist() == joined.tolist() == [items[2], *items[:2]]
    assert tr.Ranks.concatenate([ranks, tr.Ranks.from_ranks([1], n=5)]).items is None


def test_items_of_another_number_are_refused() -> None:
    with pytest.raises(tr.InputError, match=r"`items` must have 2 entries, got shape \(1,\)"):
        tr.Ranks(above=[0, 1], n_candidates=9, items=["x"])


def test_tied_items_change_places_when_ties_are_broken_at_random() -> None:
    ranks = tr.Ranks(above=[1, 1], tied=[4, 4], n_candidates=9, indptr=[0, 2], items=["x", "y"])
    orders = [ranks.break_ties("random", rng=seed).items for seed in range(200)]
    first = np.mean([order is not None and order[0] == "x" for order in orders])
    assert first == pytest.approx(0.5, abs=5 * 0.5 / 200**0.5)
