"""How much memory may be used: who decides, what is refused, and what runs under a limit of the operating system."""

import dataclasses
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow.csv import write_csv
from pyarrow.parquet import write_table as write_parquet

import truerank as tr
from tests.arrays import AnyArray, Ints
from tests.patience import HANGS
from truerank.core import threads
from truerank.formats.columns import INTERACTIONS

PUBLIC: Any = tr  # whose arguments are wrong on purpose


@pytest.mark.parametrize("memory", ["2", "2GBB", "2 XB", "-2GB", "", "nan", "1e9", -1, 10**8, True, 2.5, [1], b"2GB"])
def test_sizes_that_are_refused(memory: Any) -> None:
    with pytest.raises(tr.InputError, match=r"`memory` must be a size of at least 200 MB, such as '2GB', got "):
        PUBLIC.rank([[0.0]], test=[[0]], memory=memory)


@pytest.mark.parametrize(
    ("memory", "expected"),
    [("2GB", 2 * 10**9), ("2 gb", 2 * 10**9), ("0.5G", 5 * 10**8), ("1TiB", 2**40), ("300000KB", 3 * 10**8)],
)
def test_sizes(memory: str, expected: int) -> None:
    with threads.memory_bound(memory):
        assert threads.memory_limit() == expected
        with threads.memory_bound(None):
            assert threads.memory_limit() == expected, "a call inside keeps the bound"
        limits = threads.share(lambda _, stopped: threads.memory_limit(), [1, 2, 3], 3)
        assert limits == [expected] * 3, "threads have the bound of their caller"
    assert threads.memory_limit() == threads.total_memory() // 2


GROUPS = {
    "version 2": ({"cgroup": "0::/jobs/one\n", "fs/cgroup/jobs/one/memory.max": "3000\n"}, [3000]),
    "a limit further up": (
        {"cgroup": "0::/a/b\n", "fs/cgroup/a/b/memory.max": "max\n", "fs/cgroup/a/memory.max": "5000\n"},
        [5000],
    ),
    "a container, which sees its own group as the root": (
        {"cgroup": "0::/\n", "fs/cgroup/memory.max": "7000\n"},
        [7000],
    ),
    "version 1": (
        {"cgroup": "9:cpu:/x\n4:memory:/x\n", "fs/cgroup/memory/x/memory.limit_in_bytes": "4000\n"},
        [4000],
    ),
    "version 1 in a container, which does not see the folder of its group": (
        {"cgroup": "4:hugetlb,memory:/docker/8f\n0::/\n", "fs/cgroup/memory/memory.limit_in_bytes": "6000\n"},
        [6000],
    ),
    "no limit": ({"cgroup": "0::/x\n", "fs/cgroup/x/memory.max": "max\n"}, []),
    "no groups": ({}, []),
}


@pytest.mark.parametrize(("files", "expected"), GROUPS.values(), ids=list(GROUPS))
def test_control_groups(tmp_path: Path, files: dict[str, str], expected: list[int]) -> None:
    for name, content in files.items():
        path = tmp_path / ("proc/self/cgroup" if name == "cgroup" else f"sys/{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
    assert list(threads._of_control_groups(tmp_path)) == expected


def test_the_result_does_not_depend_on_it() -> None:
    items = np.random.default_rng(0).normal(size=(30_000, 4))
    test = [[user] for user in range(600)]

    def score(users: Ints) -> AnyArray:
        at_once.append(users.size * len(items))
        return items[users] @ items.T

    at_once: list[int] = []
    model = tr.FunctionScorer(score, n_items=len(items))
    ranks = [tr.rank(model, test=test, threads=8, memory=memory) for memory in (None, "200MB")]
    assert ranks[0] == ranks[1]
    assert (
        tr.recommend(model, train=test, memory="200MB").items.tolist() == tr.recommend(model, train=test).items.tolist()
    )
    assert max(at_once) <= 2**23
    sampled = [tr.rank_sampled(model, test=test, rng=0, threads=8, memory=memory) for memory in (None, "200MB")]
    assert sampled[0] == sampled[1]


def test_what_does_not_fit_is_refused_before_the_work(tmp_path: Path) -> None:
    def score(users: Ints) -> AnyArray:
        raise AssertionError

    few = tr.FunctionScorer(score, n_items=15 * 10**6)
    with pytest.raises(tr.InputError, match=r"^a single block needs 240 MB, but `memory` is 200 MB\.$"):
        tr.rank(few, test=[[0]], memory="200MB")
    many = tr.FunctionScorer(score, n_users=10**5, n_items=10**4)
    message = r"^a list of 1000 items for each of 100,000 users needs 4,500 MB, but `memory` is 2,000 MB\.$"
    with pytest.raises(tr.InputError, match=message):
        tr.recommend(many, k=1_000, memory="2GB")
    path = tmp_path / "events.csv"
    path.write_text("user,item,note\n" + "ann,7,x\n" * 200_000)
    message = r"events.csv', of which .*,000 rows were read, needs .* MB, but `memory` is 200 MB\.$"
    with pytest.MonkeyPatch.context() as patch:
        large = dataclasses.replace(INTERACTIONS, bytes_per_row=4_000)  # instead of a large file
        patch.setattr("truerank.data.event_files.INTERACTIONS", large)
        with pytest.raises(tr.InputError, match=message):
            tr.read_interactions(path, memory="200MB")


JOBS = ("factors", "functions", "lists", "stored", "grouped", "comparison", "files")
LIMITED = """
import json, resource
from pathlib import Path
import numpy as np, pyarrow as pa, pyarrow.csv, pyarrow.json, pyarrow.parquet, scipy.sparse
import truerank as tr

rng = np.random.default_rng(0)
few, popular = rng.normal(size=(3_000, 8)), rng.normal(size=1_000_000)
truth = {str(user): [user] for user in range(3_000)}
groups = {number: f"group {number % 5}" for number in range(50_000)}


def ranks(seed):
    drawn = np.random.default_rng(seed).integers(1, 20_000, size=50_000)
    return tr.Ranks.from_ranks(drawn, n=20_000, ids=np.arange(50_000))


def factors():
    return tr.rank(tr.Factors(few, few), test=[[user] for user in range(3_000)], threads=16, **memory).above.tolist()


def functions(**options):
    model = tr.FunctionScorer(lambda users: np.outer(users + 1.0, popular), n_items=popular.size, **options)
    return tr.rank(model, test=[[user] for user in range(100)], threads=16, **memory).above.tolist()


def lists():
    best, found = tr.recommend(tr.Factors(few, few), k=20, threads=16, **memory), []
    for name in ("lists.trec", "lists.csv", "lists.parquet", "lists.jsonl"):
        best.write(name)
        found.append(tr.read_lists(name, truth, **memory).above.tolist())
        found.append(tr.read_recommendations(name, **memory).items.tolist())
    return found


def stored():
    ranks(0).save("ranks.parquet")
    table = pa.table({"user": np.arange(50_000), "rank": ranks(0).rank, "n": np.full(50_000, 20_000)})
    pyarrow.csv.write_csv(table, "table.csv")
    pyarrow.parquet.write_table(table, "table.parquet")
    return [tr.read_ranks(name, **memory) == ranks(0) for name in ("ranks.parquet", "table.csv", "table.parquet")]


def grouped():
    return tr.evaluate(ranks(0), ["ndcg@10", "auc"], by=groups).to_csv()


def comparison():
    return tr.compare({"a": ranks(0), "b": ranks(1)}, "ndcg@10", test="bootstrap", replicates=200, rng=0).to_csv()


def files():
    data = [tr.read_interactions(path, **memory) for path in ("events.csv", "events.parquet")]
    return [[int(one.items[::1_000].sum()), float(one.ratings.sum()), one.user_ids[:9].tolist()] for one in data]


def within_500_megabytes(job):
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (size + 500 * 10**6, resource.RLIM_INFINITY))
    try:
        return job()
    except tr.InputError as error:
        return str(error)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)


for job in (factors, functions, lists, stored, grouped, comparison, files):
    memory = {"memory": "250MB"}
    found = within_500_megabytes(job)
    memory = {}
    print(json.dumps([job.__name__, found == job(), str(found)[:200]]), flush=True)
memory = {"memory": "8GB"}  # which there is not
print(within_500_megabytes(lambda: functions(batch_size=100)))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="the limit is on the address space, which Linux counts")
def test_under_a_limit_of_the_operating_system(tmp_path: Path) -> None:
    """With 500 MB more than after the imports, results are those without a limit."""
    rng, size = np.random.default_rng(0), 600_000
    users = pa.array([f"user {number}" for number in range(20_000)]).take(pa.array(rng.integers(20_000, size=size)))
    items, ratings = rng.integers(5_000, size=size), rng.integers(1, 6, size=size)
    table = pa.table({"user": users, "item": items, "rating": ratings})
    write_csv(table, tmp_path / "events.csv")
    write_parquet(table, tmp_path / "events.parquet")
    command = [sys.executable, "-c", LIMITED]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stderr
    *jobs, refused = done.stdout.splitlines()
    assert [json.loads(job)[:2] for job in jobs] == [[name, True] for name in JOBS], done.stdout
    assert refused.startswith("this needs more memory than is available (")
