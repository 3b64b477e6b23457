"""Logs in which users come back to items: kept as they are read, divided event by event, then merged."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

import truerank as tr

Event = tuple[int, int, int]
Pair = tuple[int, int]
COUNT = 100

SPLITTERS: dict[str, Callable[..., Any]] = {
    "leave_last_out": lambda data, **how: tr.leave_last_out(data, 2, **how),
    "leave_k_out": lambda data, **how: tr.leave_k_out(data, 2, rng=3, **how),
    "hold_out_fraction": lambda data, **how: tr.hold_out_fraction(data, 0.4, rng=3, **how),
    "split_by_time": lambda data, **how: tr.split_by_time(data, 2, **how),
    "split_by_time at a fraction": lambda data, **how: tr.split_by_time(data, fraction=0.3, **how),
    "rolling_splits": lambda data, **how: tr.rolling_splits(data, 1, 2, **how),
    "k_fold": lambda data, **how: tr.k_fold(data, 3, rng=3, **how),
}


def table(events: list[Event]) -> pd.DataFrame:
    return pd.DataFrame(events, columns=["user", "item", "time"])


def as_list(splits: tr.Split | list[tr.Split]) -> list[tr.Split]:
    return [splits] if isinstance(splits, tr.Split) else splits


def times(part: tr.Interactions) -> dict[Pair, int]:
    assert part.times is not None
    found = zip(part.names[part.users].tolist(), part.item_names[part.items].tolist(), part.times.tolist(), strict=True)
    return {(user, item): time for user, item, time in found}


def rows(part: tr.Interactions) -> list[int]:
    assert part.positions is not None
    return sorted(part.positions.tolist())


def merged(events: list[Event]) -> dict[Pair, int]:
    """Return the last time of each pair."""
    last: dict[Pair, int] = {}
    for user, item, time in events:
        last[user, item] = max(time, last.get((user, item), time))
    return last


def logs(n: int = 60) -> list[Event]:
    """Return purchases of 6 users, who buy 8 items again and again, at 4 times."""
    rng = np.random.default_rng(0)
    return [(int(rng.integers(6)), int(rng.integers(8)), int(rng.integers(4))) for _ in range(n)]


@pytest.mark.parametrize("name", SPLITTERS)
def test_events_are_divided_and_then_merged(name: str) -> None:
    """The same events, each with an item of its own, show which of them are held out."""
    events, split = logs(), SPLITTERS[name]
    apart = split(table([(user, item * COUNT + row, time) for row, (user, item, time) in enumerate(events)]))
    for repeats in ("drop", "hold out"):
        found = as_list(split(table(events), repeats=repeats))
        for own, alone in zip(found, as_list(apart), strict=True):
            train = merged([events[row] for row in rows(alone.train)])
            test = merged([events[row] for row in rows(alone.test)])
            again = {pair for pair in test if pair in train}
            assert again
            expected = test if repeats == "hold out" else {pair: test[pair] for pair in test if pair not in again}
            assert times(own.train) == train
            assert times(own.test) == expected
            dropped = sum((events[row][:2]) in again for row in rows(alone.test))
            note = f"{dropped} held-out events repeat a training pair and are dropped (repeats='drop')"
            assert (note in own.notes) == (repeats == "drop")
            assert own.repeats == repeats


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 5)), min_size=2), st.integers(1, 5))
def test_training_never_depends_on_what_follows_the_cut(events: list[Event], at: int) -> None:
    """What is known at the cut stays in training, whatever happens later."""
    past = [event for event in events if event[2] < at]
    if not 0 < len(past) < len(events):
        return
    split = tr.split_by_time(table(events), at)
    assert times(split.train) == merged(past)
    assert {pair for pair, _ in times(split.test).items()} == {
        event[:2] for event in events if event[2] >= at and event[:2] not in merged(past)
    }


def test_the_last_event_of_each_user() -> None:
    log = table([(1, 10, 1), (1, 20, 2), (1, 10, 9)])
    assert times(tr.leave_last_out(log).train) == {(1, 10): 1, (1, 20): 2}
    assert times(tr.leave_last_out(log).test) == {}
    assert times(tr.leave_last_out(log, repeats="hold out").test) == {(1, 10): 9}
    assert times(tr.leave_last_out(tr.read_interactions(log).merged()).train) == {(1, 20): 2}


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4), st.integers(0, 2)), min_size=1),
    st.booleans(),
)
def test_the_last_event_counts_when_events_are_merged(events: list[Event], timed: bool) -> None:
    """The latest, and among equal times the last row."""
    last: dict[Pair, tuple[int, int]] = {}
    for row, (user, item, time) in enumerate(events):
        event = (time if timed else 0, row)
        last[user, item] = max(last.get((user, item), event), event)
    data = tr.read_interactions(table(events).drop(columns=[] if timed else ["time"]))
    assert rows(data) == list(range(len(events)))
    assert data.n_repeats == len(events) - len(last)
    assert rows(data.merged()) == sorted(row for _, row in last.values())
    assert any("repeat" in note for note in data.merged().notes) == (data.n_repeats > 0)
    if data.n_repeats:
        with pytest.raises(tr.InputError, match=r"a matrix can't hold; merge them by `merged\(\)`"):
            _ = data.matrix
    else:
        assert data.merged() is data


def test_what_needs_a_matrix_merges() -> None:
    log = tr.read_interactions(table(logs()))
    once = log.merged()
    assert log.n_repeats > 0
    assert np.array_equal(tr.Popularity().fit(log).scores(np.arange(6)), tr.Popularity().fit(once).scores(np.arange(6)))
    scores = np.random.default_rng(0).random(log.shape)
    assert tr.rank(scores, test=log).above.tolist() == tr.rank(scores, test=once).above.tolist()
    assert tr.rank(scores, train=log, test=[[0]] * 6).n_candidates.tolist() == [
        8 - once.of_user(user).size + (0 in once.of_user(user)) for user in range(6)
    ]
    assert tr.Split(log, log).train.n_repeats == 0


def test_repeat_consumption_keeps_training_items_as_candidates() -> None:
    """A known item that is bought again competes with known items that are not."""
    split = tr.split_by_time(table(logs()), 2, repeats="hold out")
    scores = np.random.default_rng(1).random(split.train.shape)
    ranks = tr.rank(scores, split)
    assert ranks.n_candidates.tolist() == [8] * len(ranks)
    for at, user in enumerate(ranks.ids.tolist() if ranks.ids is not None else []):
        relevant = split.test.of_user(user).tolist()
        others = [scores[user, item] for item in range(8) if item not in relevant]
        above = sorted(sum(other > scores[user, item] for other in others) for item in relevant)
        assert ranks.above[ranks.indptr[at] : ranks.indptr[at + 1]].tolist() == above
    sampled = tr.rank_sampled(scores, split, design=tr.UniformSampling(3, replace=True), rng=0)
    assert sampled.n_catalogue is not None
    assert sampled.n_catalogue.tolist() == [8] * len(sampled)
    without = tr.rank(scores, split, keep_train=False)
    assert without.n_candidates.min() < 8
    assert any("also training items" in note for note in without.notes)


def test_a_split_that_holds_repeats_out_passes_its_check_and_is_stored(tmp_path: Path) -> None:
    split = tr.leave_last_out(table(logs()), repeats="hold out")
    assert split.check() is split
    split.save(tmp_path)
    assert tr.Split.load(tmp_path).repeats == "hold out"
    with pytest.raises(tr.InputError, match="both in train and in test"):
        tr.Split(split.train, split.test).check()


@pytest.mark.parametrize("name", SPLITTERS)
def test_other_choices_are_refused(name: str) -> None:
    wrong: Any = "keep"
    with pytest.raises(tr.InputError, match="`repeats` must be 'drop' or 'hold out', got 'keep'"):
        SPLITTERS[name](table(logs()), repeats=wrong)
