import copy
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from tests import reference
from tests.arrays import AnyArray
from tests.instances import Instance, instances, ranks_of
from truerank.core import checks


def test_what_was_computed_is_not_pickled() -> None:
    ranks = tr.UniformSampling(50).draw(tr.Ranks.from_ranks(range(1, 500), n=1_000), rng=0)
    before = len(pickle.dumps(ranks))
    tr.values(ranks, "ndcg@10~smooth")
    assert ranks.fits.size
    assert len(pickle.dumps(ranks)) == before
    assert pickle.loads(pickle.dumps(ranks)) == ranks


def sample() -> tr.Ranks:
    return tr.Ranks(
        above=[2, 3, 3, 0, 4],
        tied=[0, 2, 2, 1, 0],
        n_candidates=[10, 8, 5, 6],
        indptr=[0, 3, 4, 4, 5],
        ids=["ann", "bob", "cy", "dee"],
        notes=["made up"],
    )


def test_from_ranks_of_one_relevant_item() -> None:
    ranks = tr.Ranks.from_ranks([212, 2, 743], n=10_000)
    assert ranks.above.tolist() == [211, 1, 742]
    assert ranks.n_candidates.tolist() == [10_000] * 3
    assert tr.Ranks.from_ranks(np.array([212, 2, 743]), n=[10_000] * 3) == ranks


def test_from_ranks_of_several_relevant_items_in_any_order() -> None:
    ranks = tr.Ranks.from_ranks([[5, 3, 1], [], (2,)], n=[9, 4, 2])
    assert ranks.rank.tolist() == [1, 3, 5, 2]
    assert ranks.above.tolist() == [0, 1, 2, 1]
    assert ranks.i.tolist() == [1, 2, 3, 1]
    assert ranks.n_relevant.tolist() == [3, 0, 1]


@given(instance=instances(max_candidates=10, max_score=10_000))
def test_from_ranks_counts_like_the_definition(instance: Instance) -> None:
    scores, relevant = instance
    distinct = [score + place / 100 for place, score in enumerate(scores)]
    ranking = next(reference.orders(distinct, relevant))
    plain = [[rank for rank, hit in enumerate(ranking, start=1) if hit]]
    assert tr.Ranks.from_ranks(plain, n=len(ranking)) == ranks_of((distinct, relevant))


@pytest.mark.parametrize(
    ("ranks", "n", "message"),
    [
        ([3, 11], 10, r"`ranks` must lie in 1\.\.10, got 11 in instance 1\."),
        ([0], 10, r"`ranks` must lie in 1\.\.10, got 0 in instance 0\."),
        ([[1], [4, 2, 4]], 10, r"`ranks` must differ within an instance, got 4 twice in instance 1\."),
        ([1.5], 10, r"`ranks` must hold whole numbers, got 1\.5 at position 0\."),
        ([float("nan")], 10, r"`ranks` must hold whole numbers, got nan"),
        (["a"], 10, r"`ranks` must hold whole numbers, got values of type <U1"),
        ([1, [2]], 10, "either numbers or lists of numbers"),
        ([1, 2], [10], r"`n` must be one number or one per instance \(2\), got 1"),
    ],
)
def test_bad_plain_ranks(ranks: Any, n: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks.from_ranks(ranks, n)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"above": [2, 3, 3, 0, 6]}, r"`above` must lie in 0\.\.5, got 6 at position 4\."),
        ({"above": [-1, 3, 3, 0, 4]}, r"`above` must lie in 0\.\.7, got -1 at position 0\."),
        ({"tied": [0, 2, 2, 8, 0]}, r"`tied` must lie in 0\.\.7, got 8 at position 3\."),
        ({"tied": [0, 2, 2, 1]}, r"`tied` must have the length of `above` \(5\), got 4\."),
        ({"above": [4, 3, 3, 0, 4]}, "must count from the top within an instance.*got 3 after 4 with 0 tied"),
        ({"tied": [2, 2, 2, 1, 0]}, "past the ties before it, got 3 after 2 with 2 tied, at position 1"),
        ({"n_candidates": [10, 8, 5]}, r"`n_candidates` must be one number or one per instance \(4\), got 3"),
        ({"n_candidates": [2, 8, 5, 6]}, "`n_candidates` must be at least the number of relevant items, got 2"),
        ({"indptr": [0, 3, 4, 4, 6]}, "`indptr` must run from 0 to 5, got 0 to 6"),
        ({"indptr": [0, 4, 3, 4, 5]}, "`indptr` must never fall, got 3 at position 1"),
        ({"ids": ["ann"]}, "`ids` must have 4 entries"),
    ],
)
def test_bad_counts(change: dict[str, Any], message: str) -> None:
    good = {name: getattr(sample(), name) for name in ("above", "tied", "n_candidates", "indptr", "ids")}
    with pytest.raises(tr.InputError, match=message):
        tr.Ranks(**(good | change))


def test_immutable() -> None:
    given_array = np.array([1, 2])
    ranks = tr.Ranks(above=given_array, n_candidates=5)
    given_array[0] = 3
    assert ranks.above.tolist() == [1, 2]
    with pytest.raises(ValueError, match="read-only"):
        ranks.above[0] = 0
    with pytest.raises(AttributeError):
        ranks.above = given_array  # type: ignore[misc]


@pytest.mark.parametrize("key", [slice(1, 3), slice(None, None, -1), [3, 0, 0], 2, np.array([True, False, True, True])])
def test_select(key: Any) -> None:
    ranks = sample()
    chosen = np.atleast_1d(np.arange(4)[key])
    part = ranks[key]
    assert part.ids is not None
    assert part.ids.tolist() == [["ann", "bob", "cy", "dee"][place] for place in chosen]
    expected = np.concatenate([tr.values(ranks, "ap")[place : place + 1] for place in chosen])
    np.testing.assert_array_equal(tr.values(part, "ap"), expected)
    assert part.notes == ranks.notes


@given(cuts=st.lists(st.integers(0, 4), max_size=3).map(sorted))
def test_concatenating_slices_gives_the_whole(cuts: list[int]) -> None:
    ranks = sample()
    parts = [ranks[low:high] for low, high in zip([0, *cuts], [*cuts, 4], strict=True)]
    assert tr.Ranks.concatenate(parts) == ranks


def test_concatenating_lists_of_different_depth_keeps_what_is_known_of_all() -> None:
    shallow = tr.Ranks(above=[1], n_candidates=11, depth=10)
    deep = tr.Ranks(above=[20], n_candidates=101, depth=100)
    assert tr.Ranks.concatenate([shallow, deep]).depth == 10


@pytest.mark.parametrize("name", ["ranks.parquet", "ranks.npz"])
@pytest.mark.parametrize(
    "ranks", [sample(), tr.Ranks.from_ranks([], n=5), tr.Ranks(above=[1], n_candidates=4, depth=2)]
)
def test_save_and_load(tmp_path: Path, name: str, ranks: tr.Ranks) -> None:
    ranks.save(tmp_path / name)
    loaded = tr.Ranks.load(tmp_path / name)
    assert loaded == ranks
    assert loaded.notes == ranks.notes
    assert tr.read_ranks(tmp_path / name) == ranks


@pytest.mark.parametrize("ids", [[3, 1], ["x", "y"], [np.datetime64("2020-01-01"), np.datetime64("2021-01-01")]])
def test_ids_survive_a_file(tmp_path: Path, ids: list[Any]) -> None:
    ranks = tr.Ranks(above=[0, 1], n_candidates=2, ids=ids)
    for name in ("a.npz", "a.parquet"):
        ranks.save(tmp_path / name)
        assert tr.Ranks.load(tmp_path / name) == ranks


def test_npz_with_pickled_objects_is_refused(tmp_path: Path) -> None:
    np.savez(tmp_path / "bad.npz", truerank=np.array([{}], dtype=object))
    with pytest.raises(tr.InputError, match="holds pickled Python objects, which are not read"):
        tr.Ranks.load(tmp_path / "bad.npz")


def test_files_that_are_not_ranks(tmp_path: Path) -> None:
    np.savez(tmp_path / "other.npz", x=np.zeros(3))
    with pytest.raises(tr.InputError, match=r"was not written by Ranks\.save"):
        tr.Ranks.load(tmp_path / "other.npz")
    with pytest.raises(tr.InputError, match="there is no file"):
        tr.Ranks.load(tmp_path / "none.npz")
    with pytest.raises(tr.InputError, match=r"must end in \.parquet or \.npz"):
        sample().save(tmp_path / "ranks.pkl")


def test_copies_between_processes() -> None:
    assert pickle.loads(pickle.dumps(sample())) == sample()
    assert copy.deepcopy(sample()) == sample()


def test_equality_sees_every_part() -> None:
    assert sample() == sample()
    assert sample() != sample()[::-1]
    assert tr.Ranks.from_ranks([1], n=3) != tr.Ranks.from_ranks([1], n=4)
    assert tr.Ranks.from_ranks([1], n=3, ids=["a"]) != tr.Ranks.from_ranks([1], n=3)
    assert tr.Ranks.from_ranks([1], n=3) != "ranks"


def test_tied_share() -> None:
    assert sample().tied_instances.tolist() == [True, True, False, False]
    assert sample().tied_share == 0.5
    assert tr.Ranks.from_ranks([], n=3).tied_share == 0.0


def test_broken_ties_leave_no_equal_scores() -> None:
    graded = tr.Ranks(above=[0, 0], tied=[1, 1], n_candidates=9, indptr=[0, 2], grades=[1, 2], same_score=[False, True])
    broken = graded.break_ties("random", rng=0)
    assert broken.same_score is not None
    assert broken.same_score.tolist() == [False, False]
    assert sample().break_ties("random", rng=0).same_score is None


def test_unknown_way_to_break_ties() -> None:
    with pytest.raises(tr.InputError, match="`how` must be"):
        sample().break_ties("alphabetical")  # type: ignore[arg-type]


def test_instances_are_worked_on_in_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many at once, results and messages are the same."""
    rng = np.random.default_rng(0)
    plain = [(1 + rng.permutation(30)[:size]).tolist() for size in rng.integers(0, 6, size=40)]
    grades = [rng.integers(1, 4, size=len(own)).astype(float).tolist() for own in plain]

    def found() -> tuple[tr.Ranks, AnyArray]:
        ranks = tr.Ranks.from_ranks(plain, n=30, grades=grades)
        four = np.full(ranks.above.size, 4)
        tied = tr.Ranks(above=ranks.above // 5 * 5, tied=four, n_candidates=40, indptr=ranks.indptr)
        return ranks, np.stack([tr.values(one, name) for one in (ranks, tied) for name in ("ndcg@3", "ap", "auc")])

    ranks, values = found()
    monkeypatch.setattr(checks, "_ENTRIES", 4)
    again, others = found()
    assert again == ranks
    assert np.array_equal(values, others, equal_nan=True)
    size = ranks.above.size
    with pytest.raises(tr.InputError, match=r"`ranks` must lie in 1..30, got 31 in instance 40\.$"):
        tr.Ranks.from_ranks([*plain, [31]], n=30)
    with pytest.raises(tr.InputError, match=r"got 3 twice in instance 40\.$"):
        tr.Ranks.from_ranks([*plain, [3, 3]], n=30)
    with pytest.raises(tr.InputError, match=rf"`above` must lie in 0..29, got 30 at position {size}\.$"):
        tr.Ranks(above=[*ranks.above, 30], n_candidates=30, indptr=[*ranks.indptr, size + 1])
    with pytest.raises(tr.InputError, match=rf"got 5 after 7 with 0 tied, at position {size + 1}\.$"):
        tr.Ranks(above=[*ranks.above, 7, 5], n_candidates=30, indptr=[*ranks.indptr, size + 2])


@pytest.mark.parametrize("ids", [[1, 3, 3], [3, 3, 1], [3, 1, 3]])
def test_instances_of_one_user_are_found_wherever_they_stand(ids: list[int]) -> None:
    assert tr.estimate(tr.Ranks.from_ranks([1, 2, 5], n=9, ids=ids), "rr").n_users == 2


def test_what_cannot_be_joined() -> None:
    exact = tr.Ranks.from_ranks([1, 2], n=9)
    with pytest.raises(tr.InputError, match="`parts` must hold at least one Ranks"):
        tr.Ranks.concatenate([])
    with pytest.raises(tr.InputError, match="got several designs"):
        tr.Ranks.concatenate([exact, tr.UniformSampling(3).draw(exact, rng=0)])
    with pytest.raises(tr.InputError, match="got both"):
        tr.Ranks.concatenate([exact, tr.Ranks.from_ranks([1], n=9, grades=[2.0])])


def test_joined_ranks_know_how_many_scores_each_part_cost() -> None:
    few = tr.UniformSampling(3).draw(tr.Ranks.from_ranks([1, 2], n=9), rng=0)
    costly = few._with(scored=np.array([8, 5]))
    assert tr.Ranks.concatenate([few, costly]).n_scored.tolist() == [4, 4, 8, 5]
    assert tr.Ranks.concatenate([costly, costly]).n_scored.tolist() == [8, 5, 8, 5]
    assert tr.Ranks.concatenate([few, few]).scored is None


def test_what_notebooks_show() -> None:
    ranks = sample()
    shown = ranks._repr_html_()
    for fact in ("instances", "4", "relevant items", "5", "candidates", "5 to 10", "instances with ties", "50.0%"):
        assert f">{fact}<" in shown
    assert "made up" in shown
    assert "cut at depth" not in shown
    assert ">uniform(3)<" in tr.UniformSampling(3).draw(tr.Ranks.from_ranks([1, 2], n=9), rng=0)._repr_html_()
    assert repr(ranks[:0]) == "Ranks(0 instances, 0 relevant items, no candidates, no ties)"


@pytest.mark.parametrize("unit", [1.0, 0.1], ids=["exact in 32 bits", "not"])
def test_items_by_falling_grade(unit: float) -> None:
    grades = [[2.0, 3.0, 1.0], [], [4.0], [1.0, 2.0]]
    ranks = tr.Ranks.from_ranks([[1, 2, 3], [], [5], [2, 7]], n=9, grades=[[unit * g for g in own] for own in grades])
    assert ranks.by_grade.tolist() == [1, 0, 2, 3, 5, 4]


def test_what_is_not_ranks() -> None:
    with pytest.raises(tr.InputError, match="`ranks` must be Ranks, got dict; several recommenders are a dict of name"):
        tr.values({"A": sample()}, "ap")  # type: ignore[arg-type]
    with pytest.raises(tr.InputError, match="ranks must be in a Spark dataframe, got list"):
        tr.Ranks.from_spark([])
