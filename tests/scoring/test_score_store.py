"""Scores that were paid for are kept, whatever happens, and are never asked for again."""

import io
import os
import re
import sqlite3
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tqdm import tqdm

import truerank as tr
from tests.arrays import AnyArray, Ints
from tests.patience import HANGS
from truerank.scoring import score_store

N_USERS, N_ITEMS = 30, 200
SCORES = np.random.default_rng(5).normal(size=(N_USERS, N_ITEMS))
TEST = tr.Interactions.of([[user, user + 50] for user in range(N_USERS)], "test", n_items=N_ITEMS)
NAMED = tr.Interactions(
    TEST.matrix,
    user_ids=np.array([f"user {user}" for user in range(N_USERS)]),
    item_ids=np.array([f"“item” {item}" for item in range(N_ITEMS)]),
)
DESIGNS: list[Any] = [20, "uniform(50, replace)", tr.InverseSampling(2), "inverse(3, 100)", "head-first@5"]


class Asked:
    """A function of pairs that remembers what it was asked for, and may fail after some pairs."""

    def __init__(self, most: float = np.inf) -> None:
        self.most = most
        self.pairs: list[tuple[int, int]] = []
        self.sizes: list[int] = []

    def __call__(self, users: Ints, items: Ints) -> AnyArray:
        if len(self.pairs) + users.size > self.most:
            raise ConnectionError("the server is gone")
        self.sizes.append(users.size)
        self.pairs += zip(users.tolist(), items.tolist(), strict=True)
        return SCORES[users, items]


def uninterrupted(folder: Path, **options: Any) -> tr.Ranks:
    with tr.ScoreStore(folder / "other.db", "matrix") as store:
        found = tr.rank_sampled(SCORES, **options, store=store)
    (folder / "other.db").unlink()
    return found


def scorer(asked: Asked, **options: Any) -> tr.FunctionScorer:
    return tr.FunctionScorer(asked, pairs=True, **{"batch_size": 7} | options)


@pytest.mark.parametrize("design", DESIGNS, ids=str)
@pytest.mark.parametrize("test", [TEST, NAMED], ids=["numbers", "names"])
def test_after_an_exception_the_rest_is_asked_for(tmp_path: Path, design: Any, test: tr.Interactions) -> None:
    options: dict[str, Any] = {"train": test.select(np.zeros(test.items.size, bool)), "test": test, "design": design}
    if design == "head-first@5":
        options["train"] = test
    whole = uninterrupted(tmp_path, **options)
    asked, first = Asked(), Asked(100)
    with pytest.raises(ConnectionError, match="gone") as stopped:
        tr.rank_sampled(scorer(first), **options, store=tmp_path / "scores.db")
    (note,) = stopped.value.__notes__
    assert note.startswith(f"{len(first.pairs)} scores of 'Asked' are kept in ")
    assert note.endswith(f"{len(first.pairs)} of them from this call; the same call asks only for what is missing.")
    assert tr.rank_sampled(scorer(asked), **options, store=tmp_path / "scores.db") == whole
    assert max(Counter(first.pairs + asked.pairs).values()) == 1
    assert max(asked.sizes) == 7
    again = Asked(0)
    assert tr.rank_sampled(scorer(again), **options, store=tmp_path / "scores.db") == whole
    assert [path.name for path in tmp_path.iterdir()] == ["scores.db"]


def test_other_designs_and_exact_ranks_use_what_is_there(tmp_path: Path) -> None:
    store, asked = tmp_path / "scores.db", Asked()
    for design in (20, 60, tr.InverseSampling(3), 60):
        tr.rank_sampled(scorer(asked), test=TEST, design=design, store=store)
    given: list[Any] = [list(range(user, user + 40)) for user in range(N_USERS)]
    exact = tr.rank(scorer(asked), test=TEST, candidates=given, store=store)
    assert exact == tr.rank(SCORES, test=TEST, candidates=given)
    assert tr.rank(scorer(asked), test=TEST, store=store) == tr.rank(SCORES, test=TEST)
    assert len(asked.pairs) == len(set(asked.pairs)) == N_USERS * N_ITEMS
    with tr.ScoreStore(store, "Asked") as kept:
        assert len(kept) == N_USERS * N_ITEMS


@pytest.mark.parametrize("candidates", [None, [list(range(150))] * N_USERS], ids=["all", "listed"])
def test_larger_samples_and_more_users_cost_the_difference(tmp_path: Path, candidates: Any) -> None:
    asked = Asked()
    options: dict[str, Any] = {"test": NAMED, "candidates": candidates, "rng": 3, "store": tmp_path / "scores.db"}
    tr.rank_sampled(scorer(asked), users=10, design=40, **options)
    for design, each in ((40, 42), (70, 72), (50, 72)):
        tr.rank_sampled(scorer(asked), design=design, **options)
        assert len(asked.pairs) == len(set(asked.pairs)) == N_USERS * each
    drawn = tr.rank_sampled(scorer(asked), design="inverse(2)", **options)
    tr.rank_sampled(scorer(asked), design="inverse(2)", users=10, **options)
    more = tr.rank_sampled(scorer(asked), design="inverse(20)", **options)
    assert len(asked.pairs) == np.maximum(more.n_scored, 72).sum() > np.maximum(drawn.n_scored, 72).sum()


def test_progress_shows_what_is_spent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = io.StringIO()

    def bar(what: str, _: bool, **options: Any) -> "tqdm[Any]":
        return tqdm(desc=what, file=shown, mininterval=0, ncols=120, ascii=True, **options)

    monkeypatch.setattr(score_store, "progress_bar", bar)
    priced = scorer(Asked(), cost_per_score=0.25)
    options: dict[str, Any] = {"test": TEST, "progress": True, "store": tmp_path / "scores.db"}
    tr.rank_sampled(priced, design=8, **options)
    last = shown.getvalue().split("\r")[-1]
    assert "300/300" in last
    assert "30 users" in last
    assert "calls/s" in last
    assert "75.00 spent" in last
    tr.rank_sampled(priced, design=9, **options)
    assert "330/330" in (last := shown.getvalue().split("\r")[-1])
    assert "7.50 spent" in last
    tr.rank_sampled(priced, design="inverse(3)", test=TEST, progress=True)
    assert re.search(r"(\d+)/\1 ", shown.getvalue().split("\r")[-1]), "what is still needed was estimated"


def test_scorers_of_whole_rows_and_several_at_once(tmp_path: Path) -> None:
    def rows(users: Ints) -> AnyArray:
        return SCORES[users]

    scorers = {"rows": rows, "pairs": scorer(Asked())}
    found = tr.rank_sampled(scorers, test=TEST, design=20, store=tmp_path / "scores.db")
    assert found["rows"] == found["pairs"] == uninterrupted(tmp_path, test=TEST, design=20)
    again = {"rows": scorer(Asked(0)), "pairs": scorer(Asked(0))}
    assert tr.rank_sampled(again, test=TEST, design=20, store=tmp_path / "scores.db") == found
    with tr.ScoreStore(tmp_path / "scores.db", "rows") as kept:
        assert kept.models == ("rows", "pairs")
        with pytest.raises(tr.InputError, match="give the path of the `store` for several scorers"):
            tr.rank_sampled(scorers, test=TEST, store=kept)


def test_float32_scores_stay_ties(tmp_path: Path) -> None:
    coarse = np.round(SCORES, 1).astype(np.float32)

    def score(users: Ints, items: Ints) -> AnyArray:
        return coarse[users, items]

    with tr.ScoreStore(tmp_path / "other.db", "float64") as store:
        expected = tr.rank_sampled(coarse.astype(np.float64), test=TEST, design=50, store=store)
    assert expected.has_ties
    for _ in range(2):
        assert tr.rank_sampled(score, test=TEST, design=50, store=tmp_path / "scores.db") == expected


def test_any_tool_can_read_it(tmp_path: Path) -> None:
    tr.rank_sampled(scorer(Asked()), test=NAMED, design=20, store=tmp_path / "scores.db")
    with sqlite3.connect(tmp_path / "scores.db") as database:
        rows = database.execute("SELECT model, user, item, score FROM named_scores").fetchall()
        (mode,) = database.execute("PRAGMA journal_mode").fetchone()
    database.close()
    assert mode == "wal"
    assert {model for model, *_ in rows} == {"Asked"}
    for _, user, item, score in rows:
        assert score == SCORES[int(user.removeprefix("user ")), int(item.removeprefix("“item” "))]


def test_other_models_and_catalogues_are_refused(tmp_path: Path) -> None:
    def another(users: Ints, items: Ints) -> AnyArray:
        return SCORES[users, items]

    path = tmp_path / "scores.db"
    tr.rank_sampled(scorer(Asked()), test=TEST, design=5, store=path)
    with pytest.raises(tr.InputError, match="holds scores of 'Asked', not of 'another'; give another file, or"):
        tr.rank_sampled(another, test=TEST, design=5, store=path)
    fewer = tr.Interactions.of([[1]] * N_USERS, "test", n_items=N_ITEMS - 1)
    for test in (NAMED, fewer, tr.Interactions.of([[1]], "test", n_items=N_ITEMS)):
        with pytest.raises(tr.InputError, match="holds scores of 'Asked' for another catalogue"):
            tr.rank_sampled(scorer(Asked()), test=test, design=5, store=path)
    with tr.ScoreStore(path, "another") as store:
        tr.rank_sampled(another, test=NAMED, design=5, store=store)
        assert store.models == ("Asked", "another")
    tr.rank_sampled(another, test=NAMED, design=5, store=path)


def test_files_that_are_no_stores(tmp_path: Path) -> None:
    (tmp_path / "text").write_text("user,item,score\n" * 100)
    with sqlite3.connect(tmp_path / "other.db") as database:
        database.execute("CREATE TABLE mine (a)")
    database.close()
    for name, message in (
        ("text", "is not a store of scores, or it is damaged"),
        ("other.db", "is a database, but not a store of scores"),
        ("", "it is a directory"),
        ("nowhere/scores.db", "there is no directory"),
    ):
        before = (tmp_path / name).read_bytes() if (tmp_path / name).is_file() else b""
        with pytest.raises(tr.InputError, match=message):
            tr.ScoreStore(tmp_path / name, "model")
        assert not before or (tmp_path / name).read_bytes() == before


def test_a_store_of_another_format(tmp_path: Path) -> None:
    path = tmp_path / "scores.db"
    tr.ScoreStore(path, "model").close()
    content = bytearray(path.read_bytes())
    content[47] = 9  # the format of the schema
    path.write_bytes(content)
    with pytest.raises(tr.InputError, match=r"or it is damaged \(unsupported file format\)"):
        tr.ScoreStore(path, "model")


def test_a_damaged_schema(tmp_path: Path) -> None:
    path = tmp_path / "scores.db"
    tr.ScoreStore(path, "model").close()
    content = path.read_bytes()
    assert b"tablescoresscores" in content
    path.write_bytes(content.replace(b"tablescoresscores", b"tablesc\xa0resscores"))
    with (
        pytest.raises(tr.InputError, match=r"or it is damaged \(text is not in UTF-8\)"),
        tr.ScoreStore(path, "model") as store,
    ):
        store.scores([1], [3])


def test_a_score_that_is_no_number(tmp_path: Path) -> None:
    with tr.ScoreStore(tmp_path / "scores.db", "model") as store:
        store.add([1, 2], [3, 4], [0.5, 0.25])
    with sqlite3.connect(tmp_path / "scores.db") as database:
        database.execute("UPDATE scores SET score = 'high' WHERE user = 1")
    database.close()
    with tr.ScoreStore(tmp_path / "scores.db", "model") as store:
        assert store.scores([2], [4]).tolist() == [0.25]
        with pytest.raises(tr.InputError, match=r"or it is damaged \(a score is no number\)"):
            store.scores([1], [3])


def test_loops_by_hand(tmp_path: Path) -> None:
    store = tr.ScoreStore(tmp_path / "scores.db", "model")
    assert np.isnan(store.scores([1, 2], [3, 4])).all()
    assert store.add([1, 2], [3, 4], [0.5, 0.25]).tolist() == [0.5, 0.25]
    assert store.add([2, 9], [4, 9], [7.0, 8.0]).tolist() == [0.25, 8.0], "the first score stays"
    np.testing.assert_array_equal(store.scores([2, 1, 2, 9], [4, 3, 3, 9]), [0.25, 0.5, np.nan, 8.0])
    assert store.scores([], []).size == 0
    assert len(store) == 3
    many = np.arange(20_000)
    store.add(np.full(many.size, 5), many, many / 7)
    assert store.scores([5, 5], [19_999, 20_000]).tolist()[0] == 19_999 / 7, "one of many"
    calls: list[tuple[Callable[[], object], str]] = [
        (lambda: store.add([1], [9], [np.nan]), "`scores` must be finite, got nan at position 0"),
        (lambda: store.add([1], [9], [1.0, 2.0]), "one score per pair"),
        (lambda: store.scores([1], [9, 8]), "must have the same length, got 1 and 2"),
    ]
    for call, message in calls:
        with pytest.raises(tr.InputError, match=message):
            call()
    store.close()
    with pytest.raises(tr.InputError, match="is closed"):
        len(store)


def test_scores_that_are_not_finite_are_not_kept(tmp_path: Path) -> None:
    def odd(users: Ints, items: Ints) -> AnyArray:
        return np.where(items == 50, np.nan, SCORES[users, items])

    with pytest.raises(tr.InputError, match="scores must be finite, got nan for user 0 and item 50"):
        tr.rank_sampled(odd, test=TEST, design=20, store=tmp_path / "scores.db")
    with tr.ScoreStore(tmp_path / "scores.db", "odd") as store:
        assert len(store) > 500
        assert np.isnan(store.scores([0], [50])).all()


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a limit on the size of files")
def test_a_full_disk_keeps_what_was_there(tmp_path: Path) -> None:
    """A limit on the size of files stands for a full disk: SQLite sees a write that fails in both."""
    script = f"""
import resource, signal, sys, numpy as np, truerank as tr
from tests.scoring.test_score_store import *
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, resource.RLIM_INFINITY))
try:
    tr.rank_sampled(scorer(Asked()), test=NAMED, design=100, store={str(tmp_path / "scores.db")!r})
except OSError as error:
    print(error, *error.__notes__)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert "are kept in" in done.stdout, done
    kept = int(done.stdout.split("scores.db': ")[-1].split()[0]) if "scores.db': " in done.stdout else None
    with tr.ScoreStore(tmp_path / "scores.db", "Asked") as store:
        n_kept = len(store)
    assert n_kept > 0
    assert kept is None or kept == n_kept
    asked = Asked()
    found = tr.rank_sampled(scorer(asked), test=NAMED, design=100, store=tmp_path / "scores.db")
    assert found == uninterrupted(tmp_path, test=NAMED, design=100)
    assert len(asked.pairs) == found.n_scored.sum() - n_kept


RUN = """
import os, signal, sys, time
from tests.scoring.test_score_store import *

path, log, design, concurrency, n_kills = sys.argv[1:]
DESIGN = {"uniform": 100, "inverse": tr.InverseSampling(2)}[design]
tr.rank_sampled(SCORES, test=NAMED, design=DESIGN)  # loads all that is needed before the first fork

def score(users, items):
    os.write(file, "".join(f"{user} {item}\\n" for user, item in zip(users, items)).encode())
    end = time.process_time() + 0.001
    while time.process_time() < end:
        pass
    return SCORES[users, items]

def run():
    slow = tr.FunctionScorer(score, pairs=True, batch_size=5, concurrency=int(concurrency))
    tr.rank_sampled(slow, test=NAMED, design=DESIGN, store=path).save(path + ".npz")

file = os.open(log, os.O_CREAT | os.O_APPEND | os.O_WRONLY)
rng = np.random.default_rng(0)
for kill in range(int(n_kills)):
    before = stored(Path(path)) if kill else set()
    start = os.stat(log).st_size
    if not (child := os.fork()):
        # ends the process as SIGKILL does, after so much of its own time, however busy the computer is
        signal.setitimer(signal.ITIMER_PROF, rng.uniform(0.01, 0.06))
        run()
        os._exit(0)
    rng.random()
    os.waitpid(child, 0)
    asked = Path(log).read_text()[start:].splitlines()
    assert not before & set(asked), "a stored pair was asked for again"
    print(kill, len(before), len(asked))
run()
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize(("design", "concurrency"), [("uniform", 1), ("inverse", 4)])
def test_killed_at_any_moment(tmp_path: Path, design: str, concurrency: int) -> None:
    """Twenty kills each: pairs are asked for again only if their call was running, and the result is the same."""
    store, log, n_kills = tmp_path / "scores.db", tmp_path / "log", 20
    command = [sys.executable, "-c", RUN, str(store), str(log), design, str(concurrency), str(n_kills)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, check=False)
    assert done.returncode == 0, done.stderr
    counts = Counter(log.read_text().splitlines())
    assert sum(counts.values()) - len(counts) <= n_kills * 5 * concurrency
    assert sum(int(line.split()[2]) > 0 for line in done.stdout.splitlines()) > 5, "kills come while scores are asked"
    expected = uninterrupted(tmp_path, test=NAMED, design=100 if design == "uniform" else tr.InverseSampling(2))
    expected.save(tmp_path / "expected.npz")
    assert (tmp_path / "scores.db.npz").read_bytes() == (tmp_path / "expected.npz").read_bytes()


def stored(path: Path) -> set[str]:
    if not path.exists():
        return set()
    with tr.ScoreStore(path, "score") as store:
        rows = store._database.execute("SELECT user, item FROM named_scores WHERE model = 'score'").fetchall()
    return {f"{user.removeprefix('user ')} {item.removeprefix('“item” ')}" for user, item in rows}


CTRL_C = """
import signal, sys, threading
from tests.scoring.test_score_store import *

signal.signal(signal.SIGINT, signal.default_int_handler)  # a shell lets its background jobs ignore it
path, concurrency = sys.argv[1:]
numbers = iter(range(10**6))

def score(users, items):
    if next(numbers) == 100:
        signal.raise_signal(signal.SIGINT)
    return SCORES[users, items]

slow = tr.FunctionScorer(score, pairs=True, batch_size=1, concurrency=int(concurrency))
tr.rank_sampled(slow, test=NAMED, design=20, store=path)
"""


@pytest.mark.parametrize("concurrency", ["1", "4"])
def test_ctrl_c_says_what_was_kept(tmp_path: Path, concurrency: str) -> None:
    command = [sys.executable, "-c", CTRL_C, str(tmp_path / "scores.db"), concurrency]
    done = subprocess.run(command, capture_output=True, text=True, timeout=HANGS, check=False)
    assert "KeyboardInterrupt" in done.stderr
    kept = re.search(r"(\d+) scores of 'score' are kept in '.*scores.db'.*asks only for what is missing", done.stderr)
    assert kept is not None, done.stderr
    with tr.ScoreStore(tmp_path / "scores.db", "score") as store:
        assert len(store) >= int(kept[1]) >= 90


def test_a_hard_limit_counts_stored_scores_too(tmp_path: Path) -> None:
    """The same call spends the same, however often it is interrupted; and what it found is an estimate."""
    options: dict[str, Any] = {"test": TEST, "design": tr.InverseSampling(5), "most_scores": 1_500}
    whole = uninterrupted(tmp_path, **options)
    assert 1_000 < whole.n_scored.sum() <= 1_500
    asked, first = Asked(), Asked(700)
    with pytest.raises(ConnectionError):
        tr.rank_sampled(scorer(first), **options, store=tmp_path / "scores.db")
    assert tr.rank_sampled(scorer(asked), **options, store=tmp_path / "scores.db") == whole
    assert len(first.pairs) + len(asked.pairs) == whole.n_scored.sum()
    low, high = tr.estimate(whole, "ap").confidence_interval()
    assert low <= tr.estimate(tr.rank(SCORES, test=TEST), "ap").mean <= high


def test_ids_that_are_too_large(tmp_path: Path) -> None:
    with tr.ScoreStore(tmp_path / "scores.db", "m") as store, pytest.raises(tr.InputError, match=r"below 2\*\*63"):
        store.add(np.array([2**63], np.uint64), [1], [0.5])


def test_two_processes_share_a_store(tmp_path: Path) -> None:
    command = [sys.executable, "-c", RUN, str(tmp_path / "scores.db")]
    both = [
        subprocess.Popen(
            [*command, str(tmp_path / name), design, "1", "0"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        for name, design in (("a", "uniform"), ("b", "inverse"))
    ]
    for process in both:
        _, errors = process.communicate(timeout=HANGS)
        assert process.returncode == 0, errors
    pairs = {line for name in ("a", "b") for line in (tmp_path / name).read_text().splitlines()}
    assert stored(tmp_path / "scores.db") == pairs


def test_threads_share_a_store(tmp_path: Path) -> None:
    with tr.ScoreStore(tmp_path / "scores.db", "model") as store:
        works = [
            threading.Thread(target=lambda n=n: [store.add([n], [item], [item]) for item in range(50)])
            for n in range(4)
        ]
        for each in works:
            each.start()
        for each in works:
            each.join()
        assert len(store) == 200
