"""The examples of docs/spark.md that rank with Dask and with Ray run as they stand."""

import doctest
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.pages import DOCS, run_block

SECTION = (DOCS / "spark.md").read_text().partition("## The same step elsewhere")[2]
Names = dict[str, Any]


@pytest.fixture
def names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Names:
    """Return what the section's first example defines, in a folder with its users in two files."""
    monkeypatch.chdir(tmp_path)
    found: Names = {}
    for example in doctest.DocTestParser().get_examples(SECTION):
        exec(example.source, found)
    Path("users").mkdir()
    for place in range(2):
        pq.write_table(found["users"][place : place + 1], f"users/{place}.parquet")
    return found


def expected(names: Names) -> list[dict[str, Any]]:
    ranks: pa.Table = names["rank_table"](names["users"])
    assert ranks.num_rows == 2
    found: list[dict[str, Any]] = ranks.to_pylist()
    return found


def test_dask(names: Names) -> None:
    names["dask"] = pytest.importorskip("dask")
    pytest.importorskip("dask.dataframe")
    run_block("spark.md", "dask.", names)
    found = pa.Table.from_pandas(names["ranks"].compute(), preserve_index=False).to_pylist()
    assert sorted(found, key=lambda row: row["id"]) == expected(names)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Ray warns of its own settings
def test_ray(names: Names, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    ray = names["ray"] = pytest.importorskip("ray")
    pytest.importorskip("ray.data")
    paths = os.pathsep.join([str(DOCS.parent / "src"), os.environ.get("PYTHONPATH", "")])
    ray.init(num_cpus=2, include_dashboard=False, runtime_env={"env_vars": {"PYTHONPATH": paths}})
    try:
        run_block("spark.md", "ray.", names)
        assert sorted(names["ranks"].take_all(), key=lambda row: row["id"]) == expected(names)
    finally:
        ray.shutdown()
