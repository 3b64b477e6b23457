"""Targets of splits by time, a validation split within a split, and sessions within users."""

from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import truerank as tr

RNG = np.random.default_rng(0)
LOG = pd.DataFrame(
    {
        "user": RNG.choice(["ann", "bob", "cyd", "dan"], 120),
        "visit": RNG.integers(0, 5, 120),
        "item": RNG.integers(0, 20, 120),
        "time": RNG.integers(0, 60, 120),
    }
)


def pairs(part: tr.Interactions) -> set[tuple[Any, Any]]:
    names = part.names[part.users].tolist(), part.item_names[part.items].tolist()
    return set(zip(*names, strict=True))


@pytest.mark.parametrize("repeats", ["drop", "hold out"])
@pytest.mark.parametrize("targets", ["all", "first", "last"])
def test_targets(targets: Any, repeats: Any) -> None:
    split = tr.split_by_time(LOG, 30, targets=targets, repeats=repeats)
    before = set(LOG[LOG.time < 30][["user", "item"]].itertuples(index=False, name=None))
    events = defaultdict(list)
    for row in LOG[LOG.time >= 30].sort_values("time", kind="stable").itertuples():
        if repeats == "hold out" or (row.user, row.item) not in before:
            events[row.user].append(row.item)
    chosen = {"all": slice(None), "first": slice(1), "last": slice(-1, None)}[targets]
    assert pairs(split.test) == {(user, item) for user, items in events.items() for item in items[chosen]}
    assert pairs(split.train) == before
    left = sum(len(items) - len(items[chosen]) for items in events.values())
    note = f"{left} held-out events that are not the {targets} of their user are left out (targets={targets!r})"
    assert (note in split.notes) == (targets != "all")


def test_targets_that_leave_nothing_out_are_not_noted() -> None:
    events = pd.DataFrame({"user": [1, 2, 1, 2], "item": [1, 2, 3, 4], "time": [1, 1, 9, 9]})
    assert tr.split_by_time(events, 5, targets="last").notes == tr.split_by_time(events, 5).notes


@pytest.mark.parametrize("targets", ["first", "last"])
def test_targets_of_windows(targets: Any) -> None:
    windows = tr.rolling_splits(LOG, 15, 2, targets=targets)
    whole = tr.rolling_splits(LOG, 15, 2)
    for some, all_of_them in zip(windows, whole, strict=True):
        assert pairs(some.test) < pairs(all_of_them.test)
        assert np.diff(some.test.indptr).max() == 1
        assert pairs(some.train) == pairs(all_of_them.train)


def test_train_validation_and_test_in_one() -> None:
    data = tr.read_interactions(LOG)
    split = tr.split_by_time(data, 40).with_validation(lambda train: tr.split_by_time(train, 20))
    inner = split.validation
    assert inner is not None
    assert pairs(inner.train) | pairs(inner.test) == pairs(split.train)
    assert not pairs(inner.train) & pairs(inner.test)
    assert inner.train.times is not None
    assert inner.test.times is not None
    assert inner.train.times.max() < 20 <= inner.test.times.min()
    assert inner.test.times.max() < 40
    model = tr.Popularity()
    tuned = tr.rank(model.fit(inner.train), inner)
    assert set(np.asarray(tuned.items).tolist()) == {item for _, item in pairs(inner.test)}


def test_a_saved_validation(tmp_path: Path) -> None:
    split = tr.leave_last_out(LOG, 2).with_validation(tr.leave_last_out)
    split.save(tmp_path)
    loaded = tr.Split.load(tmp_path)
    assert split.validation is not None
    assert loaded.validation is not None
    for name in ("train", "test"):
        assert pairs(getattr(loaded.validation, name)) == pairs(getattr(split.validation, name))
    assert tr.read_split(tmp_path).validation is not None
    other = tr.leave_last_out(LOG, 3).with_validation(tr.leave_last_out)
    assert other.validation is not None
    other.validation.save(tmp_path / "validation")
    with pytest.raises(tr.InputError, match="belongs to another split: saving was interrupted"):
        tr.Split.load(tmp_path)
    tr.leave_last_out(LOG).save(tmp_path)
    assert tr.Split.load(tmp_path).validation is None


def test_three_files() -> None:
    parts = [LOG[:60], LOG[60:90], LOG[90:]]
    split = tr.read_split(parts[0], parts[2], validation=parts[1])
    own = [set(part[["user", "item"]].itertuples(index=False, name=None)) for part in parts]
    assert split.validation is not None
    assert pairs(split.validation.train) == own[0]
    assert pairs(split.validation.test) == own[1]
    assert pairs(split.train) == own[0] | own[1]
    assert pairs(split.test) == own[2]
    latest = pd.concat(parts[:2]).sort_values("time", kind="stable").groupby(["user", "item"]).time.last()
    assert split.train.times is not None
    keys = zip(split.train.names[split.train.users], split.train.item_names[split.train.items], strict=True)
    assert split.train.times.tolist() == [latest[key] for key in keys]


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: tr.split_by_time(LOG, 30, targets="middle"), "`targets` must be one of 'all', 'first', 'last'"),  # type: ignore[arg-type]
        (lambda: tr.leave_last_out(LOG).with_validation(3), "`split` must be a function that splits interactions"),  # type: ignore[arg-type]
        (lambda: tr.leave_last_out(LOG).with_validation(repr), "`split` must return a Split"),  # type: ignore[arg-type]
        (lambda: tr.read_split("folder", validation=LOG), "`validation` must come with `train` and `test`"),
        (lambda: tr.read_interactions(LOG, session="week"), "there is no column 'week' for the session"),
    ],
)  # fmt: skip
def test_refused(call: Any, message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        call()


def test_rows_are_sessions(tmp_path: Path) -> None:
    data = tr.read_interactions(LOG, session="visit")
    expected = {f"{user} ({visit})": user for user, visit in LOG[["user", "visit"]].itertuples(index=False, name=None)}
    assert data.session_users is not None
    assert dict(zip(data.names.tolist(), data.session_users.tolist(), strict=True)) == expected
    split = tr.leave_last_out(data)
    split.save(tmp_path)
    model = tr.ItemKNN().fit(split.train)
    ranks = tr.rank(model, split)
    assert ranks.ids is not None
    held = split.test.names[np.diff(split.test.indptr) > 0]
    assert ranks.ids.tolist() == [expected[name] for name in held]
    for other in (
        tr.rank(model, tr.Split.load(tmp_path)),
        tr.rank(model, split, candidates=np.arange(20)),
        tr.rank(model, split, candidates={name: range(20) for name in expected}),
    ):
        assert other == ranks
    for design in ("uniform(3)", "inverse(2)"):
        sampled = tr.rank_sampled(model, split, design=design, rng=0)
        assert sampled.ids is not None
        assert sampled.ids.tolist() == ranks.ids.tolist()
    assert tr.estimate(ranks, "rr").n_users == 4


def test_models_of_users_rank_their_sessions() -> None:
    data = tr.read_interactions(LOG, session="visit")
    split = tr.leave_last_out(data)
    scores = RNG.normal(size=(4, 20))
    users = ["ann", "bob", "cyd", "dan"]
    ranks = tr.rank(tr.ScoreMatrix(scores, user_ids=users, item_ids=np.arange(20)), split)
    by_row = scores[[users.index(user) for user in np.asarray(data.session_users).tolist()]]
    assert ranks == tr.rank(by_row, split)
    some = tr.ScoreMatrix(scores[:2], user_ids=users[:2], item_ids=np.arange(20))
    dropped = tr.rank(some, split, unknown="drop")
    assert set(np.asarray(dropped.ids).tolist()) == {"ann", "bob"}
    assert ranks.ids is not None
    assert dropped == ranks[np.isin(ranks.ids, users[:2])]


def test_activity_of_users_with_sessions() -> None:
    split = tr.leave_last_out(tr.read_interactions(LOG, session="visit"))
    groups = tr.by_activity(split, bounds=[20])
    counts: dict[str, int] = defaultdict(int)
    for name in split.train.owners[split.train.users].tolist():
        counts[name] += 1
    assert [groups.names[code] for code in groups.codes] == [
        "1 to 20 training events" if counts[user] <= 20 else "21 training events or more"
        for user in groups.ids.tolist()
    ]
