"""Rolling-origin splits, and one evaluation over all windows."""

from datetime import timedelta
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truerank as tr


def events(seed: int = 0, n: int = 400) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({"user": rng.integers(20, size=n), "item": rng.integers(60, size=n)})
    return frame.assign(time=rng.integers(1_000, size=n)).drop_duplicates(["user", "item"])


def pairs(part: tr.Interactions) -> set[tuple[int, int]]:
    return set(zip(part.names[part.users].tolist(), part.item_names[part.items].tolist(), strict=True))


def expected(frame: pd.DataFrame, start: Any, end: Any) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
    past, held = frame[frame.time <= start], frame[(frame.time > start) & (frame.time <= end)]
    return tuple(set(zip(part.user, part.item, strict=True)) for part in (past, held))  # type: ignore[return-value]


@pytest.mark.parametrize("window", [150, 150.5])
def test_windows_end_with_the_last_event(window: float) -> None:
    frame = events()
    last = int(frame.time.max())
    splits = tr.rolling_splits(frame, window=window, n=4)
    for split, left in zip(splits, (3, 2, 1, 0), strict=True):
        end = last - left * window
        assert (pairs(split.train), pairs(split.test)) == expected(frame, end - window, end)
    assert splits[-1].test.times is not None
    assert splits[-1].test.times.max() == last


def test_an_event_on_the_boundary_is_past() -> None:
    frame = pd.DataFrame({"user": [1, 1, 1, 1], "item": [1, 2, 3, 4], "time": [10, 20, 21, 30]})
    (split,) = tr.rolling_splits(frame, window=10, n=1)
    assert (pairs(split.train), pairs(split.test)) == ({(1, 1), (1, 2)}, {(1, 3), (1, 4)})


@pytest.mark.parametrize("window", ["2d", "48 h", "2880m", timedelta(days=2), np.timedelta64(2, "D")])
def test_windows_of_dates(window: Any) -> None:
    frame = events()
    frame = frame.assign(time=pd.Timestamp("2024-02-20") + pd.to_timedelta(frame.time, unit="h"))
    last = frame.time.max()
    splits = tr.rolling_splits(frame, window=window, n=3)
    for split, left in zip(splits, (2, 1, 0), strict=True):
        end = last - left * timedelta(days=2)
        assert (pairs(split.train), pairs(split.test)) == expected(frame, end - timedelta(days=2), end)


@pytest.mark.parametrize(
    ("window", "n", "message"),
    [
        (0, 2, "`window` must be longer than 0, got 0"),
        (-5, 2, "`window` must be longer than 0, got -5"),
        ("7d", 2, "`window` must be a number like the times, got '7d'"),
        (10, 0, "`n` must be a whole number from 1, got 0"),
        (10, True, "`n` must be a whole number from 1, got True"),
        (900, 2, "has no training events; times lie in"),
    ],
)
def test_refusals(window: Any, n: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        tr.rolling_splits(events(), window=window, n=n)


@pytest.mark.parametrize("window", [7, "7 years", "d", "", None, 1.5, "-3d"])
def test_windows_of_dates_need_a_unit(window: Any) -> None:
    frame = events()
    frame = frame.assign(time=pd.Timestamp("2024-02-20") + pd.to_timedelta(frame.time, unit="h"))
    with pytest.raises(tr.InputError, match="`window` must be a timedelta, or a text such as '7d', got"):
        tr.rolling_splits(frame, window=window, n=1)


def test_events_without_times_and_windows_without_events_are_refused() -> None:
    with pytest.raises(tr.InputError, match="rolling_splits needs events with times"):
        tr.rolling_splits({"ann": ["a", "b"]}, window=1, n=1)
    gap = pd.DataFrame({"user": [1, 1, 1], "item": [1, 2, 3], "time": [0, 10, 100]})
    with pytest.raises(tr.InputError, match=r"the window from 40 to 70 has no held-out events; times lie in 0\.\.100"):
        tr.rolling_splits(gap, window=30, n=2)


def test_one_evaluation_pools_the_instances_and_clusters_errors_by_user() -> None:
    splits = tr.rolling_splits(events(), window=150, n=3)
    parts = [tr.rank(tr.Popularity().fit(split.train), split) for split in splits]
    pooled = tr.estimate(tr.Ranks.concatenate(parts), "recall@10")
    values = [tr.values(part, "recall@10") for part in parts]
    together, users = np.concatenate(values), np.concatenate([part.ids for part in parts])
    assert pooled.mean == pytest.approx(together.mean(), abs=1e-15)
    assert pooled.n == together.size
    distinct = np.unique(users)
    sums = np.array([(together[users == user] - together.mean()).sum() for user in distinct])
    error = np.sqrt(distinct.size / (distinct.size - 1) * np.square(sums).sum()) / together.size
    assert pooled.standard_error == pytest.approx(error, rel=1e-12)
    assert pooled.n_users == distinct.size < together.size
