import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

import truerank as tr


def test_mean_and_standard_error_are_those_of_the_values() -> None:
    ranks = tr.Ranks.from_ranks([1, 3, 3, 8, 20, 4], n=50)
    values = tr.values(ranks, "ndcg")
    result = tr.estimate(ranks, "ndcg")
    assert result.mean == pytest.approx(values.mean(), rel=1e-14)
    assert result.standard_error == pytest.approx(stats.sem(values), rel=1e-14)


@given(
    ranks=st.lists(st.lists(st.integers(1, 9), max_size=2, unique=True), min_size=1, max_size=12),
    cuts=st.lists(st.integers(0, 12), max_size=4).map(sorted),
)
def test_estimates_of_blocks_add_up(ranks: list[list[int]], cuts: list[int]) -> None:
    everything = tr.Ranks.from_ranks(ranks, n=9)
    ends = [0, *(min(cut, len(ranks)) for cut in cuts), len(ranks)]
    parts = [tr.estimate(everything[low:high], "auc") for low, high in itertools.pairwise(ends)]
    total = parts[0]
    for part in parts[1:]:
        total = total + part
    whole = tr.estimate(everything, "auc")
    np.testing.assert_allclose(
        [total.mean, total.standard_error], [whole.mean, whole.standard_error], rtol=1e-12, atol=1e-15
    )
    assert (total.n, total.n_undefined, total.n_tied) == (whole.n, whole.n_undefined, whole.n_tied)


def test_an_estimate_is_its_mean() -> None:
    assert float(tr.estimate(tr.Ranks.from_ranks([1, 2, 4], n=10), "rr")) == pytest.approx(7 / 12, rel=1e-14)


def test_only_like_adds_up_to_like() -> None:
    ranks = tr.Ranks.from_ranks([1, 2], n=4)
    with pytest.raises(tr.InputError, match="only estimates of one metric"):
        tr.estimate(ranks, "ap") + tr.estimate(ranks, "auc")


def test_too_few_instances_for_an_error() -> None:
    one = tr.estimate(tr.Ranks.from_ranks([2], n=4), "ap")
    assert one.mean == 0.5
    assert math.isnan(one.standard_error)
    assert all(map(math.isnan, one.confidence_interval()))
    assert one.notes == ("only 1 instance: too few for an interval",)
    none = tr.estimate(tr.Ranks.from_ranks([[]], n=4), "ap")
    assert (none.n, none.n_undefined) == (0, 1)
    assert math.isnan(none.mean)


@pytest.mark.parametrize(("users", "said"), [(1, "1 user: too few for an"), (3, "3 users: expect a wide")])
def test_few_users_with_many_sessions_are_few(users: int, said: str) -> None:
    sessions = tr.Ranks.from_ranks([2] * 60, n=4, ids=np.arange(60) % users)
    assert tr.estimate(sessions, "ap").notes[-1] == f"only {said} interval"


@pytest.mark.parametrize(("users", "large", "worth"), [(20, 2, 4), (50, 1, 11), (400, 10, 76)])
def test_users_of_very_unequal_size_are_worth_few(users: int, large: int, worth: int) -> None:
    """Some users have 20 times as many sessions as the others."""
    sizes = np.where(np.arange(users) < large, 20, 1)
    found = tr.estimate(tr.Ranks.from_ranks([2] * int(sizes.sum()), n=4, ids=np.repeat(np.arange(users), sizes)), "ap")
    assert found.n_effective == pytest.approx(sizes.sum() ** 2 / (sizes**2).sum(), rel=1e-12)
    note = f"{users} users of unequal weight, worth only {worth}: expect a wide interval"
    assert (note in found.notes) == (worth < 30)


def test_level_outside_its_range() -> None:
    with pytest.raises(tr.InputError, match="`level` must lie between 0 and 1, got 95"):
        tr.estimate(tr.Ranks.from_ranks([1, 2], n=4), "ap").confidence_interval(95)


def test_notes_tell_when_to_distrust() -> None:
    ranks = tr.Ranks(above=[0] * 40, tied=[1] * 20 + [0] * 20, n_candidates=[3] * 40)
    result = tr.estimate(ranks, "ap")
    assert result.tied_share == 0.5
    assert result.notes == (
        "more than a tenth of the instances have ties; metrics are averaged over all orders of tied items",
    )
    first, last = (tr.estimate(ranks, "ap", ties=policy).notes[0] for policy in ("optimistic", "pessimistic"))
    assert first.endswith("tied relevant items are put first")
    assert last.endswith("tied relevant items are put last")
    empty = tr.Ranks.from_ranks([[]] + [[1]] * 30, n=4)
    assert tr.estimate(empty, "ap").notes == ("ap is undefined for 1 of 31 instances",)
    assert tr.estimate(tr.Ranks.from_ranks([1] * 30, n=4), "ap").notes == ()


def test_a_note_on_groups_is_given_once() -> None:
    ids = np.arange(80)
    tied = tr.Ranks(above=ids % 9, tied=(ids < 60).astype(int), n_candidates=20, ids=ids)
    tables = [
        tr.evaluate(tied, "ap", by=dict(zip(ids.tolist(), groups, strict=True))) for groups in (ids % 2, ids // 40)
    ]
    note = "more than a tenth of the instances have ties; metrics are averaged over all orders of tied items"
    assert [table.notes for table in tables] == [(note,)] * 2
    late = tr.evaluate(tied, "ap", by={user: user // 20 for user in ids.tolist()})
    assert f"0, 1, 2: {note}" in late.notes
