"""The step that engines run, without any of them: tables of users against the local engine and slow definitions."""

import zlib
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings

import truerank as tr
from tests.engines.cases import CASES, Case, assert_same, make
from tests.kernels.test_counts import as_rows, cases, draw, slow_counts
from truerank.engines.catalogues import Items, add_popularity, array_pieces, table_piece, write_catalogue
from truerank.engines.workers import count_in_blocks, rank_listed, rank_users, sample_users
from truerank.kernels import library
from truerank.kernels.user_blocks import Lists


def table_of(case: Case) -> pa.Table:
    users, items = case.user_ids, case.item_ids
    columns: dict[str, Any] = {
        "user": users,
        "features": pa.array(list(case.users), pa.list_(pa.from_numpy_dtype(case.users.dtype))),
        "held": [[items[item] for item in own] for own in case.test],
    }
    if case.train is not None:
        columns["seen"] = [[items[item] for item in own] if own else None for own in case.train]
    if case.grades is not None:
        columns["grades"] = case.grades
    return pa.table(columns)


def open_items(folder: Path, ids: Any, rows: Any, items_per_block: int | None = None) -> Items:
    catalogue = write_catalogue([(np.asarray(ids), rows)], folder, items_per_block)
    return catalogue.open(lambda name: folder / name)


def rank_in_batches(case: Case, folder: Path, items_per_block: int | None, size: int) -> tr.Ranks:
    table, items = table_of(case), open_items(folder, case.item_ids, case.items, items_per_block)
    return tr.Ranks.concatenate([rank_users(table.slice(start, size), items) for start in range(0, len(table), size)])


@pytest.mark.parametrize("blocks", [1, 2, 7])
@pytest.mark.parametrize("case", CASES, ids=str)
def test_ranks_equal_those_of_the_local_engine_for_any_blocks_and_batches(
    case: Case, blocks: int, tmp_path: Path
) -> None:
    per_block = -(-len(case.items) // blocks)
    assert_same(rank_in_batches(case, tmp_path, per_block, [1000, 33, 17][blocks % 3]), case.expected())


@settings(max_examples=50)
@given(case=cases)
def test_counts_in_blocks_equal_loops_over_all_items(case: dict[str, Any]) -> None:
    users, items, _, train, test = draw(**case)
    held = np.diff(test.indptr) > 0
    scores, train, test = users[held] @ items.T, chosen(train, held), chosen(test, held)
    rng = np.random.default_rng(case["seed"])
    starts = np.unique([0, *rng.integers(0, len(items), 3), len(items)])
    blocks = tuple(items[start:end] for start, end in pairwise(starts))
    counts = count_in_blocks(users[held], Items(np.arange(len(items)), blocks, starts), train, test)
    assert as_rows(counts) == slow_counts(scores, train, test)
    of_user = [set(train.indices[start:end]) for start, end in pairwise(train.indptr)]
    user = np.repeat(np.arange(held.sum()), np.diff(test.indptr))
    assert counts.seen.tolist() == [item in of_user[at] for at, item in zip(user, test.indices, strict=True)]


def test_without_the_compiled_loops(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(library, "load", lambda: None)
    case = make("numpy", 12, tied=True)
    assert_same(rank_in_batches(case, tmp_path, 40, 50), case.expected())


def chosen(lists: Lists, users: Any) -> Lists:
    own = [lists.indices[lists.indptr[user] : lists.indptr[user + 1]] for user in np.flatnonzero(users)]
    return Lists(np.cumsum([0, *map(len, own)]), np.concatenate([*own, lists.indices[:0]]))


@pytest.mark.parametrize(
    "design", [tr.UniformSampling(10), tr.PopularitySampling(10), tr.InverseSampling(2), tr.HeadFirst(5)], ids=str
)
def test_samples_equal_those_of_the_local_engine_with_the_same_seed(design: tr.SamplingDesign, tmp_path: Path) -> None:
    case = make("sampled", 11)
    assert case.train is not None
    catalogue = write_catalogue([(np.array(case.item_ids), case.items)], tmp_path, 40)
    numbers, counts = np.unique(np.concatenate([np.array(own, int) for own in case.train]), return_counts=True)
    popular = add_popularity(catalogue, tmp_path, pa.array(np.array(case.item_ids)[numbers]), counts)
    found = sample_users(table_of(case), popular.open(lambda name: tmp_path / name), design, seed=5)
    rng = np.random.default_rng([5, zlib.crc32("\n".join(map(str, case.user_ids)).encode())])
    scorer = tr.Factors(case.users, case.items)
    expected = tr.rank_sampled(scorer, train=case.train, test=case.test, design=design, rng=rng)
    for name in ("above", "tied", "n_candidates", "n_catalogue", "drawn", "scored", "indptr"):
        assert np.array_equal(getattr(found, name), getattr(expected, name)), name
    assert (found.design, found.depth, found.ids.tolist()) == (expected.design, expected.depth, case.user_ids)  # type: ignore[union-attr]


def test_users_whose_items_are_all_graded_0_are_left_out(tmp_path: Path) -> None:
    items = open_items(tmp_path, [1, 2], np.ones((2, 1)))
    rows = [
        {"user": "ann", "features": [1.0], "held": [1], "grades": [0.0]},
        {"user": "bob", "features": [1.0], "held": [2, 1], "grades": [2.0, -1.0]},
    ]
    ranks = rank_users(pa.Table.from_pylist(rows), items)
    assert (ranks.ids.tolist(), ranks.grades.tolist(), ranks.tied.tolist()) == (["bob"], [2.0], [1])  # type: ignore[union-attr]


ANN = {"user": "ann", "features": [1.0, 2.0], "seen": ["a"], "held": ["b"]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"held": ["x"]}, "item 'x' of user 'ann' has no factors; leave it out."),
        ({"held": [7]}, "item 7 of user 'ann' has no factors"),
        ({"seen": ["b", "abc"]}, "item 'abc' of user 'ann' has no factors"),
        ({"held": ["b", "c", "b"]}, "an item must be held out once, but item 'b' of user 'ann' is held out twice."),
        ({"held": ["b", None]}, "item ids must not be null"),
        ({"features": None}, "user 'ann' has no factors."),
        ({"features": [1.0]}, "users and items must have factors of the same length, got 1 and 2."),
        ({"features": [1.0, float("nan")]}, "factors must be finite, but those of user 'ann' are not."),
        ({"features": [1.0, None]}, "factors must be finite, but those of user 'ann' are not."),
        ({"features": [1e308, 1.0]}, "scores must be finite in float64, but the factors of user 'ann' are too large"),
        ({"grades": [float("inf")]}, "grades must be finite, got inf for user 'ann' and item 'b'."),
    ],
)
def test_what_a_user_must_not_have(change: dict[str, Any], message: str, tmp_path: Path) -> None:
    items = open_items(tmp_path, ["a", "b", "c"], np.full((3, 2), 10.0), 2)
    good = pa.Table.from_pylist([ANN])
    bad = pa.Table.from_pylist([ANN | change])
    for name in set(good.column_names) - set(change):
        bad = bad.set_column(bad.column_names.index(name), name, good[name])
    if change.get("features", 0) is None:
        bad = bad.set_column(1, "features", pa.array([None], pa.list_(pa.float64())))
    with pytest.raises(tr.InputError) as caught:
        rank_users(bad, items)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("pieces", "message"),
    [
        ([], "the item factors must have at least one row, got none."),
        ([([1, 1], [[1.0], [2.0]])], "each item must have factors once, but 1 does not."),
        ([([1], [[1.0]]), ([1], [[2.0]])], "each item must have factors once, but 1 does not."),
        ([([1], [[1.0]]), ([2], [[2.0, 3.0]])], "all factors must have the same length, got 2 for item 2 and 1"),
    ],
)
def test_what_a_catalogue_must_not_have(pieces: Any, message: str, tmp_path: Path) -> None:
    with pytest.raises(tr.InputError) as caught:
        write_catalogue([(np.array(ids), np.array(rows)) for ids, rows in pieces], tmp_path)
    assert message in str(caught.value)
    with pytest.raises(tr.InputError, match="`items_per_block` must be a whole number from 1, got 0"):
        write_catalogue([(np.array([1]), np.ones((1, 1)))], tmp_path, 0)


def test_item_factors_of_a_wrong_kind() -> None:
    with pytest.raises(tr.InputError, match="two-dimensional array of numbers, got float64 of shape \\(3,\\)"):
        list(array_pieces([1.0, 2.0, 3.0]))
    with pytest.raises(tr.InputError, match="item ids must be whole numbers or text, got double"):
        table_piece(pa.array([1.5]), pa.array([[1.0]]))


def test_popularity_of_an_unknown_item_is_refused(tmp_path: Path) -> None:
    catalogue = write_catalogue([(np.array([1, 2]), np.ones((2, 1)))], tmp_path)
    with pytest.raises(tr.InputError, match="item 5 of `train` has no factors; leave it out"):
        add_popularity(catalogue, tmp_path, pa.array([1, 5]), np.array([3, 4]))


@pytest.mark.parametrize("depth", [4, "all"])
@pytest.mark.parametrize("graded", [False, True])
def test_lists_of_batches_equal_those_of_all_users(depth: Any, graded: bool) -> None:
    rng = np.random.default_rng(3)
    run, truth = {}, {}
    for user in range(30):
        run[f"u{user:02d}"] = {int(item): float(rng.integers(0, 3)) for item in np.sort(rng.permutation(9)[:4])}
        own = list(run[f"u{user:02d}"])[: rng.integers(1, 4)]
        truth[f"u{user:02d}"] = {item: float(rng.integers(1, 3)) for item in own}
    if depth != "all":
        truth["u03"][77] = 1.0
        del run["u05"]
    table = list_table(run, truth)
    plain = {user: list(own) for user, own in truth.items()}
    expected = tr.read_lists(run, truth if graded else plain, depth=depth)
    table = table if graded else table.drop_columns("grades")
    for size in (30, 7, 1):  # one at a time: user u05, who has no list, is alone in a batch
        batches = [shuffled(table.slice(start, size)) for start in range(0, 30, size)]
        assert tr.Ranks.concatenate([rank_listed(batch, depth) for batch in batches]) == expected


def shuffled(table: pa.Table) -> pa.Table:
    """Return lists in reverse order, which must not matter."""
    rows = table.to_pylist()
    return pa.Table.from_pylist(
        [{name: value[::-1] if isinstance(value, list) else value for name, value in row.items()} for row in rows],
        schema=table.schema,
    )


def list_table(run: dict[str, dict[int, float]], truth: dict[str, dict[int, float]]) -> pa.Table:
    rows = [{"user": user, "held": list(own), "grades": list(own.values())} for user, own in truth.items()]
    lists = [run.get(user) for user in truth]
    both = [{"item": own and list(own), "score": own and list(own.values())} for own in lists]
    return pa.Table.from_pylist([row | one for row, one in zip(rows, both, strict=True)])


def test_lists_with_nulls_are_refused() -> None:
    row = {"user": "ann", "held": ["a"], "item": ["b", None], "score": [2.0, 1.0]}
    with pytest.raises(tr.InputError, match="must not hold nulls"):
        rank_listed(pa.Table.from_pylist([row]), 2)
