"""Recommended lists: names, users, files, and the same metrics as from the ranks, on real data too."""

import subprocess
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import scipy.sparse as sp

import truerank as tr
from tests import shared
from tests.instances import sparse
from truerank.recommending import recommendations

DATA = shared.DATA / "ml-1m-leave-last-out"
FILES = ("lists.csv", "lists.tsv", "lists.jsonl", "lists.parquet", "lists.trec", "lists.run")


def small_split(rng: np.random.Generator) -> tr.Split:
    users = {f"u{user}": [f"i{item}" for item in rng.permutation(30)[:8]] for user in range(20)}
    return tr.leave_k_out(tr.read_interactions(users), 2, rng=0)


def model_of(split: tr.Split, rng: np.random.Generator) -> tr.Factors:
    users, items = (rng.standard_normal((n, 4)) for n in split.train.shape)
    return tr.Factors(users, items, user_ids=split.train.user_ids, item_ids=split.train.item_ids)


def as_dict(lists: tr.Recommendations) -> dict[Any, list[Any]]:
    return {user: lists.of_user(user).tolist() for user in lists.user_ids.tolist()}


def test_training_items_are_left_out_and_the_rest_is_in_order() -> None:
    rng = np.random.default_rng(0)
    split = small_split(rng)
    model = model_of(split, rng)
    lists = tr.recommend(model, split, k=5)
    scores = model.user_factors @ model.item_factors.T
    for row, user in enumerate(split.train.names.tolist()):
        seen = set(split.train.of_user(row).tolist())
        order = [item for item in np.argsort(-scores[row]).tolist() if item not in seen][:5]
        assert lists.of_user(user).tolist() == split.train.item_names[order].tolist()
    kept = tr.recommend(model, split, k=1, keep_train=True)
    assert as_dict(kept) == {
        user: [split.train.item_names[np.argmax(scores[row])]] for row, user in enumerate(split.train.names.tolist())
    }


def test_the_numbering_of_the_model_does_not_matter() -> None:
    rng = np.random.default_rng(1)
    split = small_split(rng)
    model = model_of(split, rng)
    users, items = rng.permutation(split.train.n_users), rng.permutation(split.train.n_items)
    other = tr.Factors(
        model.user_factors[users],
        model.item_factors[items],
        user_ids=split.train.names[users],
        item_ids=split.train.item_names[items],
    )
    assert as_dict(tr.recommend(other, split)) == as_dict(tr.recommend(model, split))


def test_all_kinds_of_scorers_give_the_same_lists() -> None:
    rng = np.random.default_rng(2)
    users, items = rng.integers(-3, 4, (25, 6)).astype(float), rng.integers(-3, 4, (40, 6)).astype(float)
    train = sparse(rng, 25, 40, density=0.2)
    scores, factors = users @ items.T, tr.Factors(users, items)
    kinds = [
        scores,
        sp.csr_array(scores),
        tr.FunctionScorer(lambda some: scores[some]),
        lambda some, which: scores[some, which],
        tr.Similarity(np.eye(40), sp.csr_array(scores)),
    ]
    expected = tr.recommend(factors, train=train, k=7)
    for kind in kinds:
        lists = tr.recommend(kind, train=train, k=7, threads=2)
        assert lists.items.tolist() == expected.items.tolist()
        assert lists.scores is not None
        assert lists.scores.tolist() == np.asarray(expected.scores).tolist()


def test_chosen_and_unknown_users() -> None:
    rng = np.random.default_rng(3)
    split = small_split(rng)
    whole, names = model_of(split, rng), split.train.names
    part = tr.Factors(whole.user_factors[2:], whole.item_factors, user_ids=names[2:], item_ids=whole.item_ids)
    lists = tr.recommend(part, split)
    assert lists.notes == ("2 users are not known to the scorer and get no lists",)
    assert len(lists) == 18
    assert as_dict(tr.recommend(whole, split, users=["u7", "u3"])) == {
        user: tr.recommend(whole, split).of_user(user).tolist() for user in ("u3", "u7")
    }
    with pytest.raises(tr.InputError, match="`users` must be in the data, but 'bob' is not"):
        tr.recommend(whole, split, users=["bob"])
    with pytest.raises(tr.InputError, match="the scorer does not know user"):
        tr.recommend(part, split, users=names[:3].tolist())
    with pytest.raises(tr.InputError, match="user 'bob' has no list"):
        lists.of_user("bob")


def test_short_lists_are_noted() -> None:
    lists = tr.recommend(np.ones((2, 4)), train=[[0, 1, 3], []], k=3)
    assert (lists.items.tolist(), lists.indptr.tolist()) == ([2, 0, 1, 2], [0, 1, 4])
    assert lists.notes == ("1 user has fewer than 3 candidates",)
    assert tr.recommend(np.ones((2, 4)), k=99).items.tolist() == [0, 1, 2, 3] * 2


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"k": 0}, "`k` must be a whole number from 1, got 0"),
        ({"k": 2.0}, "`k` must be a whole number from 1, got 2.0"),
        ({"split": [[1]]}, "`split` must be a Split, got list; give training items as `train`"),
        ({"train": [[0]] * 3}, "`train` must have 2 users, got 3"),
        ({"users": []}, "`users` must be a list of ids, at least one"),
    ],
)
def test_what_can_not_be_done_is_said_in_one_sentence(given: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.recommend(np.ones((2, 4)), **given)


def test_a_function_needs_the_data_to_know_the_users() -> None:
    with pytest.raises(tr.InputError, match="`train` must be given if the scorer does not state its numbers"):
        tr.recommend(lambda users: np.ones((len(users), 3)))
    lists = tr.recommend(lambda users: np.ones((len(users), 5)), train=[[0], [1, 2]], k=4)
    assert as_dict(lists) == {0: [1, 2, 3, 4], 1: [0, 3, 4]}


@pytest.mark.parametrize(
    ("items", "indptr", "message"),
    [
        ([0, 1], [0, 1, 3], "`indptr` must divide 2 items into 2 lists, got"),
        ([0, 1], [0, 2], "`indptr` must divide 2 items into 2 lists, got"),
        ([0, 1], [0, 3, 2], "`indptr` must divide 2 items into 2 lists, got"),
        ([0, 4], [0, 1, 2], r"`items` must lie in 0\.\.3, got 4 at position 1"),
    ],
)
def test_lists_made_by_hand_are_checked(items: list[int], indptr: list[int], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.Recommendations(np.array(items), np.array(indptr), np.arange(2), np.arange(4), k=3)


def test_lists_of_different_users_join() -> None:
    rng = np.random.default_rng(4)
    split = small_split(rng)
    model = model_of(split, rng)
    whole, names = tr.recommend(model, split, k=3), split.train.names.tolist()
    parts = [tr.recommend(model, split, k=3, users=part) for part in (names[:9], names[9:])]
    both = parts[0] + parts[1]
    assert as_dict(both) == as_dict(whole)
    assert both.counts().tolist() == (parts[0].counts() + parts[1].counts()).tolist() == whole.counts().tolist()
    with pytest.raises(tr.InputError, match="only lists of different users can be joined"):
        _ = whole + parts[0]
    with pytest.raises(tr.InputError, match="only lists of the same length k"):
        _ = parts[0] + parts[1].cut(2)
    with pytest.raises(tr.InputError, match="these lists are cut at 3 items, so their first 4 are not known"):
        whole.cut(4)


@pytest.mark.parametrize("name", FILES)
def test_files_are_read_back(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    split = small_split(rng)
    lists = tr.recommend(model_of(split, rng), split, k=6)
    lists.write(tmp_path / name)
    again = tr.read_recommendations(tmp_path / name, split.train)
    assert as_dict(again) == as_dict(lists)
    assert np.asarray(again.scores).tolist() == np.asarray(lists.scores).tolist()
    assert again.k == 6
    assert tr.read_lists(tmp_path / name, split.test) == tr.read_lists(lists, split.test)


def test_dataframe_libraries_take_them() -> None:
    lists = tr.recommend(np.array([[1.0, 3.0, 2.0]]), k=2)
    expected = {"user": [0, 0], "item": [1, 2], "rank": [1, 2], "score": [3.0, 2.0]}
    assert pl.DataFrame(lists).to_dict(as_series=False) == expected
    assert pa.table(lists).to_pydict() == expected
    assert lists.to_frame().to_dict("list") == expected
    assert lists.to_frame("polars").to_dict(as_series=False) == expected
    truth = tr.Interactions(sp.csr_array([[0.0, 2.0, 1.0]]))
    assert pd.DataFrame(truth.to_arrow().to_pandas()).to_dict("list") == {
        "user": [0, 0],
        "item": [1, 2],
        "relevance": [2.0, 1.0],
    }


def test_a_run_can_not_hold_blanks(tmp_path: Path) -> None:
    lists = tr.recommend(tr.ScoreMatrix([[1.0, 2.0]], item_ids=["a", "b c"]), k=2)
    with pytest.raises(tr.InputError, match="a TREC run can't hold the item id 'b c'"):
        lists.write(tmp_path / "lists.trec")
    with pytest.raises(tr.InputError, match=r"must end in .*\.jsonl, \.parquet, \.trec or \.run"):
        lists.write(tmp_path / "lists.xml")


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("scored", [True, False])
def test_lists_are_written_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, scored: bool
) -> None:
    sizes = np.array([2, 0, 3, 1, 0, 0, 2])
    items, scores = np.array([4, 1, 0, 2, 3, 3, 1, 0]), np.arange(8.0, 0.0, -1)
    users = np.array([f"u{each}" for each in range(7)])
    lists = tr.Recommendations(
        items, np.append(0, np.cumsum(sizes)), users, np.array(list("abcde")), 3, scores if scored else None
    )
    lists.write(tmp_path / name)
    whole = (tmp_path / name).read_bytes()
    monkeypatch.setattr(recommendations, "_WRITTEN", 3)
    lists.write(tmp_path / name)
    if not name.endswith(".parquet"):  # which has more row groups
        assert (tmp_path / name).read_bytes() == whole
    expected = {"u0": ["e", "b"], "u2": ["a", "c", "d"], "u3": ["d"], "u6": ["b", "a"]}
    assert as_dict(tr.read_recommendations(tmp_path / name)) == expected


LARGE = """
import sys, numpy as np, truerank as tr
from pathlib import Path

def peak():
    return int(Path("/proc/self/status").read_text().split("VmHWM:")[1].split()[0]) / 1024

users, rng = 60_000, np.random.default_rng(0)
items = np.argsort(rng.random((users, 20)), axis=1).ravel()
ids = np.array([f"user-{each}" for each in range(users)]), np.array([f"item-{each}" for each in range(20)])
lists = tr.Recommendations(items, np.arange(0, items.size + 1, 20), *ids, 20, rng.random(items.size))
lists._part(0, 20_000).write(sys.argv[1])
before = peak()
lists.write(sys.argv[1])
print(peak() - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="tells the memory of a process on Linux")
def test_the_memory_of_a_process_does_not_grow_with_the_lists_that_it_writes(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LARGE, str(tmp_path / "lists.csv")]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert float(done.stdout) < 20  # megabytes, for 1,200,000 rows instead of 400,000


def peak_while_writing(lists: tr.Recommendations, path: Path) -> int:
    """Return the most bytes that Python, NumPy and Arrow have held at a time."""
    usual = pa.default_memory_pool()
    pool = pa.proxy_memory_pool(usual)
    pa.set_memory_pool(pool)
    tracemalloc.start()
    try:
        lists.write(path)
        return tracemalloc.get_traced_memory()[1] + (pool.max_memory() or 0)
    finally:
        tracemalloc.stop()
        pa.set_memory_pool(usual)


@pytest.mark.parametrize("name", FILES)
def test_the_memory_to_write_lists_does_not_grow_with_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    rng = np.random.default_rng(0)
    items = np.argsort(rng.random((1_000, 20)), axis=1).ravel()
    ids = np.array([f"user-{each}" for each in range(1_000)]), np.array([f"item-{each}" for each in range(20)])
    lists = tr.Recommendations(items, np.arange(0, items.size + 1, 20), *ids, 20, rng.random(items.size))
    monkeypatch.setattr(recommendations, "_WRITTEN", 500)
    few = lists._part(0, 100)
    few.write(tmp_path / name)  # which imports what it needs
    growth = peak_while_writing(lists, tmp_path / name) - peak_while_writing(few, tmp_path / name)
    assert growth < 200_000  # for 20,000 rows instead of 2,000, which take 570,000 bytes if they are kept


def test_lists_from_elsewhere() -> None:
    train = tr.read_interactions({"ann": ["a", "b"], "bob": ["c"]})
    frame = pd.DataFrame({"user": ["bob", "ann", "bob"], "item": ["a", "c", "b"], "score": [0.1, 0.5, 0.7]})
    assert as_dict(tr.read_recommendations(frame, train)) == {"bob": ["b", "a"], "ann": ["c"]}
    assert as_dict(tr.read_recommendations(frame.rename(columns={"score": "rank"}), train))["bob"] == ["a", "b"]
    alone = tr.read_recommendations(frame)
    assert alone.n_items == 3
    assert alone.notes == ("the catalogue is not given (`train`), so it is taken to be the listed items",)
    with pytest.raises(tr.InputError, match=r"the dataframe, row 1: item 'x' is not in `train`"):
        tr.read_recommendations(frame.replace("a", "x"), train)
    with pytest.raises(tr.InputError, match=r"row 3: item 'a' of user 'bob' is in the list more than once"):
        tr.read_recommendations(frame.replace("b", "a"), train)
    with pytest.raises(tr.InputError, match=r"`k` must be at least the length of the longest list \(2\), got 1"):
        tr.read_recommendations(frame, train, k=1)


@pytest.mark.skipif(not DATA.is_dir(), reason="the folder ../shared/data is not there")
@pytest.mark.parametrize("name", ["lists.parquet", "lists.trec", "lists.csv"])
def test_metrics_of_written_lists_are_those_of_ranks(name: str, tmp_path: Path) -> None:
    split = tr.read_split(DATA)
    model = tr.IALS(factors=16, sweeps=2, rng=0).fit(split.train)
    tr.recommend(model, split, k=50).write(tmp_path / name)
    from_lists, from_model = tr.read_lists(tmp_path / name, split.test), tr.rank(model, split)
    order = np.argsort(from_lists.ids)  # type: ignore[arg-type]
    for metric in ("ndcg@10", "recall@50", "ap@20", "rr@10"):
        found, expected = tr.values(from_lists, metric)[order], tr.values(from_model, metric)
        np.testing.assert_allclose(found, expected, rtol=0, atol=1e-15)
