"""Commands under a limit of the operating system on memory: they work, or say in one sentence that it is not enough."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import read_csv
from pyarrow.parquet import write_table

import truerank as tr
from tests.patience import HANGS

resource = pytest.importorskip("resource")
LIMIT = 500 << 20


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder, rng = tmp_path_factory.mktemp("limits"), np.random.default_rng(0)
    np.save(folder / "users.npy", rng.normal(size=(3_000, 16)).astype(np.float32))
    np.save(folder / "items.npy", rng.normal(size=(20_000, 16)).astype(np.float32))
    rows = [f"{user}\t{rng.integers(20_000)}" for user in range(3_000)]
    (folder / "test.tsv").write_text("\n".join(rows))
    (folder / "groups.csv").write_text("user,group\n" + "".join(f"{user},{user % 3} of 3\n" for user in range(3_000)))
    lists = rng.integers(20_000, size=(3_000, 10)).tolist()
    lines = [f"{user},{item}\n" for user, items in enumerate(lists) for item in dict.fromkeys(items)]
    (folder / "lists.csv").write_text("user,item\n" + "".join(lines))
    write_table(read_csv(folder / "lists.csv"), folder / "lists.parquet")
    row = np.arange(10**7, dtype=np.int32)
    for name, columns in (("long", {"item": row % 100}), ("ranks", {"rank": row % 100 + 1, "n": row % 100 + 1_000})):
        write_table(pa.table({"user": row // 100, **columns}), folder / f"{name}.parquet")
    for name in ("a", "b"):
        ranks = rng.integers(1, 20_000, size=3_000)
        tr.Ranks.from_ranks(ranks, n=20_000, ids=np.arange(3_000)).save(folder / f"{name}.parquet")
    return folder


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on the address space, which Linux counts")
@pytest.mark.parametrize(
    "command",
    [
        "rank --factors users.npy items.npy --test test.tsv -o ranks.parquet",
        "recommend --factors users.npy items.npy -o best.csv",
        "evaluate lists.csv --truth test.tsv -m ndcg@10",
        "evaluate lists.parquet --truth test.tsv -m ndcg@10",
        "evaluate long.parquet --truth test.tsv -m ndcg@10 --memory 4GB",
        "evaluate ranks.parquet -m ndcg@10 --memory 4GB",
        "evaluate a.parquet b.parquet -m ndcg@10 --by groups.csv",
        "compare a.parquet b.parquet -m ndcg@10 --test bootstrap",
    ],
    ids=[
        "factors",
        "best lists",
        "lists",
        "Parquet",
        "lists that don't fit",
        "ranks that don't fit",
        "groups",
        "comparison",
    ],
)
def test_within_a_limit(files: Path, command: str) -> None:
    """The limit is on all of the address space, of which the interpreter and the libraries take about 250 MB."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (LIMIT, LIMIT))

    done = subprocess.run(
        [sys.executable, "-m", "truerank", *command.split()],
        cwd=files,
        preexec_fn=limit,
        capture_output=True,
        text=True,
        timeout=HANGS,
        check=False,
    )
    assert done.returncode in (0, 2), done
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.stderr.splitlines()[-1].startswith("truerank: ")
