"""Calls of scoring functions: async ones, several at a time, that fail now and then, or hang."""

import asyncio
import threading
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import truerank as tr
from tests.arrays import AnyArray, Ints
from tests.patience import HANGS
from truerank.scoring import calls

N_USERS, N_ITEMS = 20, 60
SCORES = np.random.default_rng(7).normal(size=(N_USERS, N_ITEMS))
TEST = tr.Interactions.of([[user] for user in range(N_USERS)], "test", n_items=N_ITEMS)
SAMPLED = tr.rank_sampled(SCORES, test=TEST, design=10, rng=0)


@pytest.fixture(autouse=True)
def pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "_FIRST_PAUSE", 0.001)


def ranked(function: Any, **options: Any) -> tr.Ranks:
    scorer = tr.FunctionScorer(function, pairs=True, **options)
    return tr.rank_sampled(scorer, test=TEST, design=10, rng=0)


class Meeting:
    """Counts how many calls run at a time; each waits until the wanted number has come together once."""

    def __init__(self, wanted: int) -> None:
        self.lock, self.all_here, self.wanted = threading.Lock(), threading.Event(), wanted
        self.now = self.most = 0

    def enter(self) -> None:
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
            if self.now == self.wanted:
                self.all_here.set()

    def leave(self) -> None:
        with self.lock:
            self.now -= 1


@pytest.mark.parametrize("concurrency", [None, 5])
def test_async_functions(concurrency: int | None) -> None:
    meeting = Meeting(concurrency or 16)

    async def ask(users: Ints, items: Ints) -> AnyArray:
        meeting.enter()
        while not meeting.all_here.is_set():
            await asyncio.sleep(0.001)
        meeting.leave()
        return SCORES[users, items]

    assert ranked(ask, batch_size=3, concurrency=concurrency) == SAMPLED
    assert meeting.most == (concurrency or 16)


def test_async_functions_inside_another_loop() -> None:
    async def ask(users: Ints, items: Ints) -> AnyArray:
        await asyncio.sleep(0)
        return SCORES[users, items]

    async def notebook() -> tr.Ranks:
        return ranked(ask, batch_size=10)

    with ThreadPoolExecutor(1) as other:  # the loop of this thread may be in use
        assert other.submit(asyncio.run, notebook()).result() == SAMPLED


def test_several_calls_of_a_plain_function_at_a_time() -> None:
    meeting = Meeting(4)

    def ask(users: Ints, items: Ints) -> AnyArray:
        meeting.enter()
        assert meeting.all_here.wait(HANGS)
        meeting.leave()
        return SCORES[users, items]

    assert ranked(ask, batch_size=3, concurrency=4) == SAMPLED
    assert meeting.most == 4


def test_one_pair_per_call_may_return_one_number() -> None:
    def ask(users: Ints, items: Ints) -> float:
        assert users.size == 1
        return float(SCORES[users[0], items[0]])

    assert ranked(ask, batch_size=1) == SAMPLED


@pytest.mark.parametrize("batch_size", [1, 8])
def test_calls_that_fail_now_and_then_are_repeated(batch_size: int) -> None:
    asked: Counter[tuple[int, ...]] = Counter()

    async def ask(users: Ints, items: Ints) -> AnyArray:
        key = tuple(users.tolist() + items.tolist())
        asked[key] += 1
        if asked[key] <= sum(key) % 4:
            raise ConnectionError
        return SCORES[users, items]

    assert ranked(ask, batch_size=batch_size, retries=3) == SAMPLED
    with pytest.raises(ConnectionError):
        ranked(asked_once := Failing(1), batch_size=batch_size)
    assert asked_once.n_calls == 2


class Failing:
    """Fails at the call with this number, and all later ones."""

    def __init__(self, first: int) -> None:
        self.first, self.n_calls = first, 0

    def __call__(self, users: Ints, items: Ints) -> AnyArray:
        self.n_calls += 1
        if self.n_calls > self.first:
            raise ConnectionError("no route")
        return SCORES[users, items]


@pytest.mark.parametrize("concurrency", [1, 4])
@pytest.mark.parametrize("batch_size", [1, 6])
def test_pairs_that_always_fail_are_named_and_all_others_are_scored(
    tmp_path: Path, batch_size: int, concurrency: int
) -> None:
    def ask(users: Ints, items: Ints) -> AnyArray:
        if np.any((users == 3) & (items == 3)) or np.any((users == 9) & (items == 9)):
            raise ValueError("the answer is\nno number")
        return SCORES[users, items]

    named = tr.Interactions(TEST.matrix, user_ids=np.array([f"u{user}" for user in range(N_USERS)]))
    options: dict[str, Any] = {"test": named, "design": 10, "store": tmp_path / "scores.db"}
    scorer = tr.FunctionScorer(ask, pairs=True, batch_size=batch_size, retries=2, concurrency=concurrency)
    with pytest.raises(tr.ScoringError) as found:
        tr.rank_sampled(scorer, **options)
    assert found.value.pairs == (("u3", 3), ("u9", 9))
    assert str(found.value) == (
        "2 of 220 pairs have no score: user 'u3' and item 3 (ValueError: the answer is no number), user 'u9' and item "
        "9 (ValueError: the answer is no number); the same call asks for them again."
    )
    assert found.value.__notes__[0].startswith("218 scores of 'ask' are kept in")
    with tr.ScoreStore(tmp_path / "scores.db", "ask") as store:
        assert len(store) == 218
        tr.rank_sampled(lambda users, items: SCORES[users, items], test=named, design=10, store=store)
        assert len(store) == 220


def test_failures_without_a_store_name_the_pairs() -> None:
    def ask(users: Ints, items: Ints) -> AnyArray:
        if 3 in users:
            raise ValueError
        return SCORES[users, items]

    with pytest.raises(
        tr.ScoringError, match=r"11 of 220 pairs have no score: user 3 and item \d+ \(ValueError\), .* to"
    ):
        ranked(ask, batch_size=1, retries=1)


def test_a_server_that_is_gone_is_not_asked_for_ever(tmp_path: Path) -> None:
    gone = Failing(100)
    scorer = tr.FunctionScorer(gone, pairs=True, batch_size=1, retries=1)
    with pytest.raises(tr.ScoringError, match="no more are asked for, since 20 pairs in a row have failed"):
        tr.rank_sampled(scorer, test=TEST, design=10, store=tmp_path / "scores.db")
    assert gone.n_calls == 100 + 20 * 2


@pytest.mark.parametrize("is_async", [False, True])
def test_calls_that_hang_have_failed(is_async: bool) -> None:
    hung, end = set[int](), threading.Event()

    def ask(users: Ints, items: Ints) -> AnyArray:
        if items[0] == 5 and users[0] not in hung:
            hung.add(int(users[0]))
            end.wait(HANGS)
        return SCORES[users, items]

    async def ask_later(users: Ints, items: Ints) -> AnyArray:
        if items[0] == 5 and users[0] not in hung:
            hung.add(int(users[0]))
            await asyncio.sleep(HANGS)
        return SCORES[users, items]

    function: Any = ask_later if is_async else ask
    assert ranked(function, batch_size=1, retries=5, timeout=1.0, concurrency=8) == SAMPLED
    assert hung
    hung.clear()
    with pytest.raises(TimeoutError, match=r"no answer within 1 s"):
        ranked(function, batch_size=1, timeout=1.0, concurrency=1)
    end.set()


def test_wrong_shapes_are_not_asked_for_again() -> None:
    sizes: list[int] = []

    def ask(users: Ints, items: Ints) -> AnyArray:
        sizes.append(users.size)
        return np.zeros(users.size + 1)

    with pytest.raises(tr.InputError, match=r"one score per pair \(10\), got shape \(11,\)"):
        ranked(ask, batch_size=10, retries=3)
    assert sizes == [10]


async def later(users: Ints) -> AnyArray:
    return SCORES[users]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "`concurrency` must be a whole number from 1, got 0"),
        ({"retries": -1}, "`retries` must be a whole number from 0, got -1"),
        ({"timeout": 0}, "`timeout` must be a number of seconds above 0, got 0"),
        ({"timeout": "9"}, "`timeout` must be a number of seconds above 0, got '9'"),
        ({"pairs": False, "timeout": 1}, "need a function of `pairs`"),
        ({"pairs": False, "function": later}, "an async scoring function must take users and items"),
    ],
)
def test_refusals(options: dict[str, Any], message: str) -> None:
    given: dict[str, Any] = {"function": Failing(0), "pairs": True} | options
    with pytest.raises(tr.InputError, match=message):
        tr.FunctionScorer(**given)
