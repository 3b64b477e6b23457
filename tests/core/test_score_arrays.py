"""Ranks from score arrays, against loops; the tools that take such arrays are compared in tests/models."""

import itertools
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import AnyArray, Floats
from truerank.core import score_arrays
from truerank.core.ranks import TieBreak


def counted(own: list[float], others: list[float]) -> list[tuple[int, int]]:
    """Return the irrelevant candidates above and tied with each relevant one, from the top."""
    return [
        (sum(other > score for other in others), sum(other == score for other in others))
        for score in sorted(own, reverse=True)
    ]


def check(ranks: tr.Ranks, own: list[list[float]], others: list[list[float]]) -> None:
    expected = list(itertools.chain.from_iterable(map(counted, own, others)))
    assert list(zip(ranks.above.tolist(), ranks.tied.tolist(), strict=True)) == expected
    assert ranks.n_relevant.tolist() == [len(row) for row in own]
    assert ranks.draws.tolist() == [len(row) for row in others]


def few_values(*shape: int, seed: int = 0) -> Floats:
    return np.random.default_rng(seed).integers(0, 6, shape) / 4.0


def test_one_relevant_candidate_per_row(monkeypatch: pytest.MonkeyPatch) -> None:
    positive, negative = few_values(30), few_values(30, 7, seed=1)
    monkeypatch.setattr(score_arrays, "BLOCK", 20)
    check(tr.Ranks.from_scores(positive, negative), positive[:, None].tolist(), negative.tolist())


def test_several_relevant_candidates_and_masks() -> None:
    positive, negative = few_values(40, 4), few_values(40, 9, seed=1)
    chosen, left = few_values(40, 4, seed=2) > 0.5, few_values(40, 9, seed=3) > 0.25
    positive[~chosen], negative[~left] = np.nan, np.inf
    ranks = tr.Ranks.from_scores(positive, negative, positive_mask=chosen, negative_mask=left)
    rows = [
        [row[mask].tolist() for row, mask in zip(*pair, strict=True)] for pair in ((positive, chosen), (negative, left))
    ]
    check(ranks, *rows)
    assert (ranks.n_relevant == 0).any()


def test_one_pool_for_all_rows() -> None:
    positive, pool = few_values(25, 2), few_values(50, seed=1)
    check(tr.Ranks.from_scores(positive, pool), positive.tolist(), [pool.tolist()] * 25)
    left = few_values(50, seed=2) > 0.5
    check(tr.Ranks.from_scores(positive, pool, negative_mask=left), positive.tolist(), [pool[left].tolist()] * 25)


def test_scores_are_compared_as_they_are() -> None:
    """Single precision is not rounded to: 0.1 and its nearest single differ."""
    own, near = np.array([0.1]), np.array([[np.float32(0.1)]], dtype=np.float32)
    for negative in (near, near[0]):
        assert tr.Ranks.from_scores(own, negative).above.tolist() == [1]
        assert tr.Ranks.from_scores(negative.reshape(1), own).tied.tolist() == [0]
    half = tr.Ranks.from_scores(*(np.array(each, dtype=np.float16) for each in ([0.5], [[0.5, 0.75]])))
    assert (half.above.tolist(), half.tied.tolist()) == ([1], [1])


def test_a_sample_of_the_catalogue() -> None:
    positive, negative = few_values(30), few_values(30, 7, seed=1)
    ranks = tr.Ranks.from_scores(positive, negative, n=1_000, replace=True, ids=np.arange(30))
    assert ranks.design == tr.UniformSampling(7, replace=True)
    assert (ranks.n_catalogue == 1_000).all()
    same = tr.Ranks(above=ranks.above, tied=ranks.tied, n_candidates=8, ids=np.arange(30),
                    sample=tr.Sample("uniform(7, replace=True)", 1_000))  # fmt: skip
    assert ranks == same
    assert not ranks.notes
    assert tr.evaluate(ranks, "recall@10~bv(0.1)")["recall@10~bv(0.1)"].n == 30


def test_rows_may_have_samples_of_different_sizes() -> None:
    left = np.array([[True, True, False], [True, True, True]])
    ranks = tr.Ranks.from_scores([1.0, 2.0], np.zeros((2, 3)), negative_mask=left, n=[50, 60])
    assert ranks.design == tr.UniformSampling(None)
    assert (ranks.draws.tolist(), ranks.n_catalogue.tolist()) == ([2, 3], [50, 60])


def test_a_sampled_pool_is_noted() -> None:
    ranks = tr.Ranks.from_scores([1.0, 2.0], [0.0, 1.5], n=50)
    assert "same sampled candidates" in ranks.notes[0]
    assert not tr.Ranks.from_scores([1.0, 2.0], [0.0, 1.5]).notes


def test_within_a_batch() -> None:
    scores = few_values(20, 20)
    ranks = tr.Ranks.in_batch(scores)
    others = [[value for at, value in enumerate(row) if at != own] for own, row in enumerate(scores.tolist())]
    check(ranks, scores.diagonal()[:, None].tolist(), others)
    assert ranks.notes == (
        "ranked within a batch of 20: the metrics depend on the size of the batch and on its content",
    )
    assert ranks.notes[0] in tr.evaluate(ranks, "rr").notes


def test_repeated_items_of_a_batch_are_no_candidates() -> None:
    scores, items = few_values(20, 20), np.random.default_rng(5).integers(0, 12, 20)
    ranks = tr.Ranks.in_batch(scores, items=items)
    others = [[float(value) for item, value in zip(items, row, strict=True) if item != items[own]]
              for own, row in enumerate(scores)]  # fmt: skip
    check(ranks, scores.diagonal()[:, None].tolist(), others)
    assert "share their relevant item with another row, which is not a candidate there" in ranks.notes[1]


class Packed:
    """Nothing but DLPack, as arrays of smaller libraries."""

    def __init__(self, array: AnyArray) -> None:
        self.array = array

    def __dlpack__(self, **how: Any) -> Any:
        return self.array.__dlpack__(**how)

    def __dlpack_device__(self) -> Any:
        return self.array.__dlpack_device__()


def test_arrays_that_only_have_dlpack() -> None:
    positive, negative = few_values(30), few_values(30, 7, seed=1)
    assert tr.Ranks.from_scores(Packed(positive), Packed(negative)) == tr.Ranks.from_scores(positive, negative)


@pytest.mark.parametrize(
    ("positive", "negative", "options", "message"),
    [
        ([[[1.0]]], [[1.0]], {}, r"`positive` must have shape \(rows,\) or \(rows, positives\), got \(1, 1, 1\)"),
        ([1.0, 2.0], [[1.0]], {}, r"`negative` must have shape \(m,\) for one pool, or \(2, m\).*got \(1, 1\)"),
        ([1.0, np.nan], [1.0], {}, r"`positive` must be finite, got nan at \[1, 0\]; .* `positive_mask`"),
        ([1.0], [[1.0, -np.inf]], {}, r"`negative` must be finite, got -inf at \[0, 1\]; .* `negative_mask`"),
        ([1.0], [[1.0]], {"negative_mask": [True]}, r"`negative_mask` must have the shape of `negative`, \(1, 1\)"),
        (["a"], [[1.0]], {}, "`positive` must hold real numbers"),
        ([1.0], [[1.0, 2.0]], {"n": 2}, "`m` must be at most the number of irrelevant candidates"),
        ([1.0], np.zeros((1, 0)), {"n": 2}, "at least one sampled candidate"),
        ([1.0], [[1.0]], {"ids": ["a", "b"]}, "`ids` must have 1 entries"),
    ],
)
def test_what_is_refused(positive: Any, negative: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks.from_scores(positive, negative, **options)


@pytest.mark.parametrize("scores", [[[1.0, 2.0]], [1.0], 1.0, np.zeros((0, 0)), [[np.nan, 1.0], [1.0, 1.0]]])
def test_what_is_no_batch(scores: Any) -> None:
    with pytest.raises(tr.InputError, match="`scores` must be"):
        tr.Ranks.in_batch(scores)


def link_metrics(positive: Floats, negative: Floats) -> dict[str, float]:
    """Return what OGB 1.3.6 and TGB publish as their formulas."""
    optimistic = (negative > positive[:, None]).sum(axis=1)
    pessimistic = (negative >= positive[:, None]).sum(axis=1)
    rank = 0.5 * (optimistic + pessimistic) + 1
    return {"rr": float((1 / rank).mean()), **{f"hr@{k}": float((rank <= k).mean()) for k in (1, 3, 10)}}


@pytest.mark.parametrize("convention", ["ogb", "tgb", "pykeen"])
@pytest.mark.parametrize("n", [None, 500])
def test_conventions_of_link_prediction(convention: str, n: int | None) -> None:
    positive, negative = few_values(200), few_values(200, 20, seed=1)
    ranks = tr.Ranks.from_scores(positive, negative, n=n)
    expected = link_metrics(positive, negative)
    table = tr.evaluate(ranks, list(expected), convention=convention)
    assert {text: table[text].mean for text in expected} == pytest.approx(expected, abs=1e-12)
    assert tr.evaluate(ranks, "recall@3", convention=convention)["recall@3"].mean == pytest.approx(expected["hr@3"])
    assert any("at the mean of the best and the worst rank" in note for note in table.notes)
    plain = tr.evaluate(tr.Ranks.from_scores(positive, negative), "rr")["rr"].mean
    assert plain > expected["rr"] + 0.01


@pytest.mark.parametrize("how", ["optimistic", "pessimistic"])
def test_the_other_tie_policies_of_pykeen(how: TieBreak) -> None:
    ranks = tr.Ranks.from_scores(few_values(200), few_values(200, 20, seed=1))
    found = tr.evaluate(ranks, "mean-rank", ties=how, convention="pykeen")["mean-rank"].mean
    assert found == (ranks.rank + (ranks.tied if how == "pessimistic" else 0)).mean()


def test_hits_in_a_pool_of_ogb() -> None:
    """A hit is a score above that of the k-th best of the pool."""
    positive, pool = few_values(300) + 1.0, few_values(200, seed=1) + few_values(200, seed=2)
    ranks = tr.Ranks.from_scores(positive, pool)
    for k in (1, 10, 100):
        hits = (positive > np.sort(pool)[-k]).mean()
        assert tr.evaluate(ranks, f"hr@{k}", convention="ogb-pool")[f"hr@{k}"].mean == pytest.approx(hits, abs=1e-12)


def test_link_prediction_has_one_relevant_item() -> None:
    with pytest.raises(tr.InputError, match="ogb has one relevant item per instance, but instance 1 has several"):
        tr.evaluate(tr.Ranks.from_ranks([[1], [1, 2]], n=5), "rr", convention="ogb")


def test_the_adjusted_mean_rank_index_is_weighted() -> None:
    """1 - (MR - 1) / (E[MR] - 1), where the numbers of candidates differ."""
    left = few_values(100, 20, seed=3) > 0.5
    ranks = tr.Ranks.from_scores(few_values(100), few_values(100, 20, seed=1), negative_mask=left)
    rank = 1 + ranks.above + ranks.tied / 2
    index = 1 - (rank - 1).mean() / ((ranks.n_candidates + 1) / 2 - 1).mean()
    assert tr.evaluate(ranks, "amri", convention="pykeen")["amri"].mean == pytest.approx(index, abs=1e-12)
