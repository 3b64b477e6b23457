"""Comparisons from blocks of instances that were never together, against the comparison of all of them."""

import dataclasses
import math
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.instances import FirstItems
from truerank.estimators.corrected import Assumption
from truerank.evaluation import intervals, paired_values
from truerank.evaluation.intervals import Parts, Step, added_up

RNG = np.random.default_rng(0)
USERS, ITEMS = 150, 400
TEST = [np.sort(RNG.permutation(ITEMS)[: RNG.integers(1, 6)]) for _ in range(USERS)]
SCORES = [RNG.standard_normal((USERS, ITEMS)).round(1) for _ in range(2)]
EXACT = {name: tr.rank(scores, test=TEST) for name, scores in zip("AB", SCORES, strict=True)}
EXACT["B"] = tr.rank(SCORES[1] + 0.3 * np.array([np.isin(np.arange(ITEMS), own) for own in TEST]), test=TEST)
SAMPLED = {name: tr.UniformSampling(50).draw(ranks, rng=seed) for seed, (name, ranks) in enumerate(EXACT.items())}
HEAD = tr.Groups.named(np.arange(300), ["head"] * 100 + ["tail"] * 200, of_items=True)
DRAWN = ("sampling_error", "user_error", "order_probability")  # estimated by random draws


@dataclasses.dataclass(frozen=True)
class Blocks:
    """Ranks that no step sees as a whole."""

    whole: tr.Ranks
    cuts: list[int]


def compared(
    ranks: dict[str, Blocks], metrics: Any, step: Step, *, by: tr.Groups | None, rng: Any, **_: Any
) -> tuple[Parts, tuple[str, ...], tuple[str, ...]]:
    """Run the step on one block after the other, as an engine does."""
    first = ranks["A"]
    blocks = np.split(np.arange(len(first.whole)), first.cuts)
    parts = added_up(step({name: own.whole[rows] for name, own in ranks.items()}, by, rng) for rows in blocks)
    return parts, () if by is None else tuple(dict.fromkeys(group for group, _, _ in parts)), ("in blocks",)


@pytest.fixture(autouse=True)
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(intervals.ENGINES, __name__.partition(".")[0], __name__)
    monkeypatch.setattr(paired_values, "_MOST", 20)  # as many draws as the tolerances below need


def merged(
    ranks: dict[str, tr.Ranks],
    metrics: list[str],
    cuts: list[int],
    by: tr.Groups | None = None,
    same_candidates: bool = False,
    assume: Assumption = "nothing",
) -> list[dict[str, Any]]:
    """Compare in blocks."""
    given: Any = {name: Blocks(one, cuts) for name, one in ranks.items()}
    found = tr.compare(given, metrics, by=by, same_candidates=same_candidates, assume=assume, adjustment="none")
    assert "in blocks" in found.notes
    return [each.record() for each in found.differences]


def assert_close(found: list[dict[str, Any]], expected: list[dict[str, Any]], but: tuple[str, ...] = ()) -> None:
    assert len(found) == len(expected) > 0
    for mine, his in zip(found, expected, strict=True):
        assert mine.keys() == his.keys()
        for name in set(his) - set(but):
            close = isinstance(his[name], float)
            assert mine[name] == (pytest.approx(his[name], rel=1e-9, nan_ok=True) if close else his[name]), name


@pytest.mark.parametrize("cuts", [[], [1, 5], [50, 51, 110]])
@pytest.mark.parametrize("by", [None, HEAD], ids=["whole", "groups of items"])
def test_exact_ranks(cuts: list[int], by: tr.Groups | None) -> None:
    metrics = ["ndcg@10", "auc"]
    whole = tr.compare(EXACT, metrics, by=by, adjustment="none")
    in_order = sorted(merged(EXACT, metrics, cuts, by), key=lambda row: row["group"])
    assert_close(in_order, sorted((each.record() for each in whole.differences), key=lambda row: row["group"]))


@pytest.mark.parametrize("assume", ["nothing", "falling"])
def test_sampled_ranks(assume: Assumption) -> None:
    metrics = ["auc", "recall@10", "ndcg@10~bv(0.1)"]
    whole = tr.compare(SAMPLED, metrics, adjustment="none", assume=assume)
    found = merged(SAMPLED, metrics, [40, 100], assume=assume)
    assert_close(found, [each.record() for each in whole.differences], but=DRAWN)
    for mine, each in zip(found, whole.differences, strict=True):
        assert mine["sampling_error"] == pytest.approx(each.sampling_error, rel=0.15)
        assert math.isnan(mine["order_probability"]) == math.isnan(each.order_probability)


def test_the_same_candidates_leave_less_to_chance() -> None:
    scores = {"A": SCORES[0], "B": SCORES[0] + 0.05 * SCORES[1]}
    ranks = {name: tr.rank_sampled(own, test=TEST, design=50, rng=1) for name, own in scores.items()}
    (apart,), (same,) = (merged(ranks, ["auc"], [40, 100], same_candidates=both) for both in (False, True))
    whole = tr.compare(ranks, "auc", same_candidates=True)["B", "A"]
    assert same["sampling_error"] == pytest.approx(whole.sampling_error, rel=0.15)
    assert same["sampling_error"] < 0.7 * apart["sampling_error"]


def test_error_over_samples_is_that_of_exact_ranks() -> None:
    (found,) = merged(SAMPLED, ["auc"], [40, 100])
    true = math.sqrt(sum(tr.risk(ranks, "auc", design=50).variance.sum() for ranks in EXACT.values())) / USERS
    assert found["sampling_error"] == pytest.approx(true, rel=0.1)


def test_no_difference_is_larger_than_if_all_items_stood_first_or_last() -> None:
    few = {name: ranks[:8] for name, ranks in SAMPLED.items()}
    (whole,) = tr.compare(few, "recall@10~bv(0.1)", adjustment="none").differences
    (found,) = merged(few, ["recall@10~bv(0.1)"], [3])
    assert_close([found], [whole.record()], but=DRAWN)
    assert (found["low"], found["high"]) == (-1.0, 1.0)


@pytest.mark.parametrize("design", [tr.PopularitySampling(50), FirstItems(50)], ids=str)
def test_designs_without_a_law(design: tr.SamplingDesign) -> None:
    train = [RNG.permutation(ITEMS)[:20] for _ in range(USERS)]
    ranks = {
        name: tr.rank_sampled(scores, train=train, test=TEST, design=design, rng=1)
        for name, scores in zip("AB", SCORES, strict=True)
    }
    whole = tr.compare(ranks, "recall@10", adjustment="none")
    found = merged(ranks, ["recall@10"], [75])
    assert_close(found, [each.record() for each in whole.differences])
    assert math.isnan(found[0]["p_value"]) != design.unequal_chances
