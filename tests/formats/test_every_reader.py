"""One suite over all readers: any rows, in every kind of file and frame, against their definition."""

import csv
import gzip
import io
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import truerank as tr

Columns = dict[str, list[Any]]

NUMBERS = st.integers(0, 6)
TEXTS = st.one_of(
    st.sampled_from(["01", "1e5", "-", "true", "a,b", 'say "x"', "é", "naïve; yes|no", "a b"]),
    st.text("ab,;|'\"é", min_size=1, max_size=4).map("x{}".format),
)


@st.composite
def tables(draw: st.DrawFn, /, **values: st.SearchStrategy[Any]) -> Columns:
    """Rows of different users and items, whose ids are all numbers or all text, with these other columns."""
    user, item = (st.lists(draw(st.sampled_from([NUMBERS, TEXTS])), min_size=1, max_size=4, unique=True) for _ in "ui")
    pairs = [(one, other) for one in draw(user) for other in draw(item)]
    chosen = draw(st.lists(st.sampled_from(pairs), min_size=1, max_size=8, unique=True))
    found: Columns = {"user": [one for one, _ in chosen], "item": [other for _, other in chosen]}
    return found | {name: [draw(each) for _ in chosen] for name, each in values.items()}


def delimited(columns: Columns, delimiter: str) -> str:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=delimiter, quoting=csv.QUOTE_NONNUMERIC)
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def sources(columns: Columns) -> Iterator[Any]:
    """The same rows in every kind of frame and file."""
    yield columns
    yield from (pd.DataFrame(columns), pl.DataFrame(columns), pa.table(columns))
    rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
    files = {
        "rows.csv": delimited(columns, ",").encode(),
        "rows.tsv": delimited(columns, "\t").encode(),
        "rows.csv.gz": gzip.compress(delimited(columns, ",").encode()),
        "rows.jsonl": "".join(json.dumps(row) + "\n" for row in rows).encode(),
    }
    with tempfile.TemporaryDirectory() as folder:
        for name, content in files.items():
            path = Path(folder, name)
            path.write_bytes(content)
            yield path
        pq.write_table(pa.table(columns), Path(folder, "rows.parquet"))
        yield Path(folder, "rows.parquet")


def by_user(columns: Columns, *names: str) -> dict[Any, list[Any]]:
    """The rows of each user, in their order, with these columns."""
    found: dict[Any, list[Any]] = {user: [] for user in columns["user"]}
    for user, *row in zip(columns["user"], *(columns[name] for name in names), strict=True):
        found[user].append(tuple(row))
    return found


@settings(max_examples=15)
@given(tables(rating=st.integers(1, 5), timestamp=st.integers(0, 9)))
def test_interactions(columns: Columns) -> None:
    expected = sorted(zip(*columns.values(), strict=True))
    for source in sources(columns):
        data = tr.read_interactions(source)
        assert data.user_ids is not None
        assert data.item_ids is not None
        assert data.ratings is not None
        assert data.times is not None
        found = data.events.tocoo()
        ids = data.user_ids[found.row].tolist(), data.item_ids[found.col].tolist()
        assert list(zip(*ids, data.ratings.tolist(), data.times.tolist(), strict=True)) == expected


@settings(max_examples=15)
@given(tables(rank=st.integers(1, 9)))
def test_ranks(columns: Columns) -> None:
    """Of the ranks of one user, each only once."""
    kept = dict(zip(zip(columns["user"], columns["rank"], strict=True), range(99), strict=False)).values()
    columns = {name: [column[row] for row in kept] for name, column in columns.items() if name != "item"}
    expected = {user: sorted(rank for (rank,) in rows) for user, rows in by_user(columns, "rank").items()}
    for source in sources(columns | {"n": [9] * len(columns["rank"])}):
        ranks = tr.read_ranks(source)
        assert ranks.ids is not None
        assert {user: ranks[at].rank.tolist() for at, user in enumerate(ranks.ids.tolist())} == expected


@settings(max_examples=15)
@given(tables(score=st.integers(-3, 3)), st.data())
def test_lists(columns: Columns, data: st.DataObject) -> None:
    """How many irrelevant items have a higher score, and how many the same."""
    lists = by_user(columns, "item", "score")
    truth = {user: [data.draw(st.sampled_from([item for item, _ in rows]))] for user, rows in lists.items()}
    expected = {}
    for user, rows in lists.items():
        own = dict(rows)[truth[user][0]]
        others = [score for item, score in rows if item != truth[user][0]]
        expected[user] = [sum(score > own for score in others), others.count(own)]
    for source in sources(columns):
        ranks = tr.read_lists(source, truth, depth="all")
        assert ranks.ids is not None
        found = zip(ranks.ids.tolist(), ranks.above.tolist(), ranks.tied.tolist(), strict=True)
        assert {user: [above, tied] for user, above, tied in found} == expected


@settings(max_examples=15)
@given(tables())
def test_candidates(columns: Columns) -> None:
    for source in sources(columns):
        found = tr.read_candidates(source)
        assert found.users is not None
        assert (found.users.tolist(), found.items.tolist()) == (columns["user"], columns["item"])


@settings(max_examples=15)
@given(tables(score=st.integers(-3, 3)))
def test_recommendations(columns: Columns) -> None:
    """By score, and further up among equal ones: Python's sort is stable."""
    expected = {
        user: [item for item, _ in sorted(rows, key=lambda row: -row[1])]
        for user, rows in by_user(columns, "item", "score").items()
    }
    for source in sources(columns):
        found = tr.read_recommendations(source)
        items = found.item_ids[found.items]
        lists = {
            user: items[slice(*found.indptr[at : at + 2])].tolist() for at, user in enumerate(found.user_ids.tolist())
        }
        assert lists == expected


def test_columns_of_the_same_name() -> None:
    """Pandas allows them."""
    with pytest.raises(tr.InputError, match="several columns of the same name"):
        tr.read_interactions(pd.DataFrame([[1, 2, 3]], columns=["user", "item", "item"]))
