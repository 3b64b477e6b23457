"""Values of instances as dataframes."""

from typing import Any, assert_type

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest

import truerank as tr

RANKS = tr.Ranks(above=[0, 3, 1], tied=[2, 0, 0], n_candidates=9, ids=["ann", "bob", "cyd"])


@pytest.mark.parametrize(
    ("backend", "kind"), [("pandas", pd.DataFrame), ("polars", pl.DataFrame), ("pyarrow", pa.Table)]
)
def test_a_row_per_instance(backend: Any, kind: type) -> None:
    frame = tr.values_frame(RANKS, ["rr", "recall@2"], backend=backend)
    assert isinstance(frame, kind)
    table = pa.table(frame) if not isinstance(frame, pa.Table) else frame
    assert [name for name in table.column_names if not name.startswith("__")] == ["id", "rr", "recall@2"]
    assert table["id"].to_pylist() == ["ann", "bob", "cyd"]
    assert table["rr"].to_pylist() == tr.values(RANKS, "rr").tolist()


def test_several_recommenders_and_no_ids() -> None:
    plain = tr.Ranks.from_ranks([[2], []], n=5)
    frame = tr.values_frame({"A": plain, "B": plain[:1]}, "rr")
    assert frame["recommender"].tolist() == ["A", "A", "B"]
    assert frame["id"].tolist() == [0, 1, 0]
    assert frame["rr"].isna().tolist() == [False, True, False]


def test_ties_and_wrong_arguments() -> None:
    assert tr.values_frame(RANKS, "rr", ties="optimistic")["rr"].tolist() == [1.0, 0.25, 0.5]
    with pytest.raises(tr.InputError, match="at least one recommender and one metric"):
        tr.values_frame({}, "rr")


def test_frames_have_the_type_of_the_library() -> None:
    """What type checkers and editors see; mypy compares it with the types here."""
    found, lists = tr.evaluate(RANKS, "rr"), tr.recommend(np.array([[3.0, 1.0, 2.0]]), k=2)
    assert isinstance(assert_type(tr.values_frame(RANKS, "rr"), pd.DataFrame), pd.DataFrame)
    assert isinstance(assert_type(tr.values_frame(RANKS, "rr", backend="polars"), pl.DataFrame), pl.DataFrame)
    assert isinstance(assert_type(found.to_frame(), pd.DataFrame), pd.DataFrame)
    assert isinstance(assert_type(found.to_frame("polars"), pl.DataFrame), pl.DataFrame)
    assert isinstance(assert_type(lists.to_frame("polars"), pl.DataFrame), pl.DataFrame)
