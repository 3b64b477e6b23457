"""Ranked lists against the slow definition, in every form in which they can be given."""

import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr
from tests import reference

Rows = list[tuple[Any, Any, float]]


@st.composite
def runs(draw: st.DrawFn) -> tuple[Rows, dict[str, list[str]]]:
    """Draw lists with ties, in any order of rows, and relevant items inside and outside of them."""
    rows: Rows = []
    for user in draw(st.sets(st.sampled_from("abcd"))):
        items = draw(st.lists(st.sampled_from("stuvwxyz"), unique=True, min_size=1))
        rows += [(user, item, float(draw(st.integers(0, 3)))) for item in items]
    truth = draw(
        st.dictionaries(
            st.sampled_from("abcde"), st.lists(st.sampled_from("stuvwxyz!"), unique=True, min_size=1), min_size=1
        )
    )
    return draw(st.permutations(rows)), truth


def expected_value(metric: str, rows: Rows, user: str, relevant: list[str], depth: int) -> float:
    """Mean over all orders of ties of a list that is filled up below with irrelevant, then unlisted items."""
    listed = {item: score for name, item, score in rows if name == user}
    missing = [item for item in relevant if item not in listed]
    scores = [*listed.values(), *(-1.0 - place for place in range(depth - len(listed))), *(-100.0 for _ in missing)]
    hits = [item in relevant for item in listed] + [False] * (depth - len(listed)) + [True] * len(missing)
    outcomes = [reference.METRICS[metric](ranking) for ranking in reference.orders(scores, hits)]
    return float(np.mean(outcomes))


@given(drawn=runs(), metric=st.sampled_from(["precision@1", "recall@3", "ap@3", "ndcg@3", "rr@3", "hr@3"]))
def test_cut_lists(drawn: tuple[Rows, dict[str, list[str]]], metric: str) -> None:
    rows, truth = drawn
    frame = pl.DataFrame(rows, schema={"user": pl.String, "item": pl.String, "score": pl.Float64}, orient="row")
    depth = 8
    if not {user for user, _, _ in rows} & set(truth):
        with pytest.raises(tr.InputError, match=r"has no rows|the ids do not match"):
            tr.read_lists(frame, truth, depth=depth)
        return
    ranks = tr.read_lists(frame, truth, depth=depth)
    expected = [expected_value(metric, rows, user, relevant, depth) for user, relevant in truth.items()]
    np.testing.assert_allclose(tr.values(ranks, metric), expected, rtol=1e-12, atol=1e-15)
    assert ranks.ids is not None
    assert ranks.ids.tolist() == list(truth)


ROWS: Rows = [(1, 30, 0.9), (1, 10, 0.8), (1, 20, 0.8), (7, 10, 3.0), (7, 20, 2.0), (7, 30, 1.0)]
TRUTH = [(1, 10), (7, 30), (7, 10)]


def by_dict() -> tuple[Any, Any]:
    run: dict[int, dict[int, float]] = {}
    truth: dict[int, list[int]] = {}
    for user, item, score in ROWS:
        run.setdefault(user, {})[item] = score
    for user, item in TRUTH:
        truth.setdefault(user, []).append(item)
    return run, truth


def by_pandas() -> tuple[Any, Any]:
    run = pd.DataFrame(ROWS, columns=["user_id", "item_id", "score"])
    return run, pd.DataFrame(TRUTH, columns=["userId", "movieId"])


def by_polars() -> tuple[Any, Any]:
    return tuple(pl.from_pandas(frame) for frame in by_pandas())


def by_lazy_polars() -> tuple[Any, Any]:
    return tuple(pl.from_pandas(frame).lazy() for frame in by_pandas())


def by_arrow() -> tuple[Any, Any]:
    return tuple(pa.Table.from_pandas(frame) for frame in by_pandas())


def by_nested_arrow() -> tuple[Any, Any]:
    run = pa.table({"user": [1, 7], "items": [[30, 10, 20], [10, 20, 30]], "scores": [[0.9, 0.8, 0.8], [3, 2, 1]]})
    return run, {1: [10], 7: [30, 10]}


def by_categories() -> tuple[Any, Any]:
    run, truth = by_pandas()
    return run.astype({"user_id": str, "item_id": str}).astype({"item_id": "category"}), truth


@pytest.mark.parametrize(
    "form", [by_dict, by_pandas, by_polars, by_lazy_polars, by_arrow, by_nested_arrow, by_categories]
)
@pytest.mark.parametrize("depth", [3, "all"])
def test_every_form_means_the_same(form: Callable[[], tuple[Any, Any]], depth: Any) -> None:
    ranks = tr.read_lists(*form(), depth=depth)
    assert ranks.above.tolist() == [1, 0, 1]
    assert ranks.tied.tolist() == [1, 0, 0]
    assert ranks.indptr.tolist() == [0, 1, 3]
    assert ranks.depth == (None if depth == "all" else 3)
    assert ranks.ids is not None
    assert ranks.ids.astype(str).tolist() == ["1", "7"]


def write_csv(folder: Path) -> tuple[Path, Path]:
    run, truth = by_pandas()
    run.to_csv(folder / "run.csv", index=False)
    truth.to_csv(folder / "truth.tsv", index=False, sep="\t")
    return folder / "run.csv", folder / "truth.tsv"


def write_gzip(folder: Path) -> tuple[Path, Path]:
    run, truth = write_csv(folder)
    with gzip.open(folder / "run.gz", "wb") as file:
        file.write(run.read_bytes())
    return folder / "run.gz", truth


def write_parquet(folder: Path) -> tuple[Path, Path]:
    run, truth = by_arrow()
    pq.write_table(run, folder / "run.parquet")
    pq.write_table(truth, folder / "truth.parquet")
    return folder / "run.parquet", folder / "truth.parquet"


def write_jsonl(folder: Path) -> tuple[Path, Path]:
    lines = [json.dumps({"qid": user, "docid": item, "score": score}) for user, item, score in ROWS]
    (folder / "run.jsonl").write_text("\n".join(lines))
    return folder / "run.jsonl", write_csv(folder)[1]


def write_trec(folder: Path, blank: str = " ", end: str = "\n") -> tuple[Path, Path]:
    # the rank column contradicts the scores: as in the TREC tools, scores decide
    run = [blank.join(["%d", "Q0", "%d", "9", "%s", "tag"]) % row for row in ROWS]
    truth = [blank.join(["%d", "0", "%d", "1"]) % row for row in TRUTH] + [blank.join(["1", "0", "20", "0"])]
    (folder / "run.txt").write_text(end.join(run) + end)
    (folder / "qrels.txt").write_text(end.join(truth) + end)
    return folder / "run.txt", folder / "qrels.txt"


def write_trec_with_tabs(folder: Path) -> tuple[Path, Path]:
    return write_trec(folder, "\t")


def write_untidy_trec(folder: Path) -> tuple[Path, Path]:
    return write_trec(folder, "  \t", "\r\n")


@pytest.mark.parametrize(
    "write",
    [write_csv, write_gzip, write_parquet, write_jsonl, write_trec, write_trec_with_tabs, write_untidy_trec],
)
def test_every_file_means_the_same(tmp_path: Path, write: Callable[[Path], tuple[Path, Path]]) -> None:
    ranks = tr.read_lists(*write(tmp_path), depth="all")
    assert ranks.above.tolist() == [1, 0, 1]
    assert ranks.tied.tolist() == [1, 0, 0]


def test_ranks_and_row_order_instead_of_scores() -> None:
    frame = pl.DataFrame({"user": [1, 2, 1, 2, 1], "item": [5, 5, 6, 6, 7], "rank": [2, 1, 1, 2, 3]})
    truth = {1: [5], 2: [6]}
    assert tr.read_lists(frame, truth).rank.tolist() == [2, 2]
    assert tr.read_lists(frame.drop("rank"), truth).rank.tolist() == [1, 2]


def test_arrays_of_item_numbers() -> None:
    ranks = tr.read_lists(np.array([[4, 2, 9], [1, 2, 3]]), [[9], [7, 1]])
    assert tr.values(ranks, "recall@3").tolist() == [1.0, 0.5]


def test_wide_and_negative_ids() -> None:
    far = [-(2**62), 5, 2**62]
    ranks = tr.read_lists({0: far}, {0: [2**62, -(2**62)]})
    assert ranks.rank.tolist() == [1, 3]


def test_text_ids_keep_leading_zeros(tmp_path: Path) -> None:
    (tmp_path / "run").write_text("01 Q0 007 1 0.5 t\n01 Q0 7 2 0.4 t\n")
    (tmp_path / "qrels").write_text("01 0 7 1\n1 0 7 1\n")
    ranks = tr.read_lists(tmp_path / "run", tmp_path / "qrels")
    assert tr.values(ranks, "rr@2").tolist() == [0.5, 0.0]


def test_a_truth_without_any_relevant_item() -> None:
    ranks = tr.read_lists({1: [2, 3]}, pl.DataFrame({"user": [1], "item": [2], "relevance": [0]}))
    assert np.isnan(tr.values(ranks, "recall@2")).tolist() == [True]


def test_what_does_not_match_is_noted() -> None:
    run = {1: [10, 20, 30], 2: [10], 3: [10, 20, 30]}
    truth = pl.DataFrame({"user": [1, 1, 2, 4], "item": [10, 10, 20, 30]})
    ranks = tr.read_lists(run, truth)
    assert tr.values(ranks, "recall@3").tolist() == [1.0, 0.0, 0.0]
    assert ranks.notes == (
        "1 repeated row of the truth counts once",
        "1 listed user is not in the truth and is left out",
        "1 of 3 users in the truth has no list (4): their relevant items count as below the depth",
        "1 list is shorter than the depth 3: items missing from it count as below it",
    )


@pytest.mark.parametrize("metric", ["auc", "ap", "ndcg", "rr", "rbp(0.8)", "mean-rank"])
def test_metrics_without_a_cutoff_are_refused_on_cut_lists(metric: str) -> None:
    ranks = tr.read_lists({1: [10, 20]}, {1: [20]})
    with pytest.raises(tr.InputError, match=r"needs the whole ranking, but these ranks are cut at depth 2"):
        tr.values(ranks, metric)
    assert tr.values(tr.read_lists({1: [10, 20]}, {1: [20]}, depth="all"), metric).size == 1


def test_metrics_deeper_than_the_lists_are_refused() -> None:
    ranks = tr.read_lists({1: [10, 20]}, {1: [20, 30, 40]})
    with pytest.raises(tr.InputError, match=r"ndcg@5 looks at rank 5, but these ranks are cut at depth 2"):
        tr.values(ranks, "ndcg@5")
    with pytest.raises(tr.InputError, match=r"r-precision looks at rank 3"):
        tr.values(ranks, "r-precision")


@pytest.mark.parametrize(
    ("run", "truth", "options", "message"),
    [
        ({1: [10, 20, 10]}, {1: [10]}, {}, "item 10 of user 1 is in the list more than once"),
        ({1: [10]}, {1: [20]}, {"depth": "all"}, "each list holds every candidate, but item 20 of user 1 is in none"),
        ({1: [10, 20]}, {1: [20]}, {"depth": 1}, r"`depth` must be at least the length of the longest list \(2\)"),
        ({1: {10: float("nan")}}, {1: [20]}, {}, "the dict, row 1: the score of item 10 for user 1 is NaN"),
        (pl.DataFrame({"user": [1], "x": [2]}), {1: [2]}, {}, "the dataframe has no column for the item"),
        (
            pl.DataFrame({"user": [1, None], "item": [2, 3]}),
            {1: [2]},
            {},
            "the dataframe, row 2: the user is missing",
        ),
        ({1: [10]}, {1: [10]}, {"user": "who"}, "there is no column 'who' for the user in the dict; choose from"),
        ({1: [10]}, 5, {}, "can't read from int"),
        ("nowhere.csv", {1: [1]}, {}, "there is no file 'nowhere.csv'"),
        ({1: [10], "a": [10]}, {1: [10]}, {}, "the user ids must all be numbers or all be text"),
        (
            pl.DataFrame({"user": [1], "item": [2], "score": ["high"]}),
            {1: [2]},
            {},
            "the score must be a number, got 'high'",
        ),
    ],
)
def test_bad_lists(run: Any, truth: Any, options: dict[str, Any], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.read_lists(run, truth, **options)


def test_columns_can_be_named() -> None:
    run = pl.DataFrame({"who": [1, 1], "what": [5, 6], "how_much": [1.0, 2.0]})
    truth = pl.DataFrame({"who": [1], "item": [5]})
    ranks = tr.read_lists(run, truth, user="who", item="what", score="how_much")
    assert ranks.rank.tolist() == [2]


@pytest.mark.parametrize("text", ["", "\n\n", "user,item\n1,2,3\n"])
def test_files_that_cannot_be_read(tmp_path: Path, text: str) -> None:
    (tmp_path / "bad.csv").write_text(text)
    with pytest.raises(tr.InputError, match=r"bad\.csv"):
        tr.read_lists(tmp_path / "bad.csv", {1: [2]})


def test_tables_of_ranks(tmp_path: Path) -> None:
    (tmp_path / "ranks.csv").write_text("query,position,n\nb,4,9\na,1,5\nb,2,9\n")
    ranks = tr.read_ranks(tmp_path / "ranks.csv")
    assert ranks == tr.Ranks.from_ranks([[2, 4], [1]], n=[9, 5], ids=["b", "a"])
    assert tr.read_ranks(pl.DataFrame({"rank": [3, 1], "n": [5, 6]})) == tr.Ranks.from_ranks([3, 1], n=[5, 6])
    with pytest.raises(tr.InputError, match="row 1: user 'b' has more than one n, 5 and 6"):
        tr.read_ranks(pl.DataFrame({"user": ["b", "b"], "rank": [3, 1], "n": [5, 6]}))
    with pytest.raises(tr.InputError, match="does not state the number of candidates; give `n`"):
        tr.read_ranks(pl.DataFrame({"user": ["b", "b"], "rank": [3, 1]}))
