"""Ways to divide interactions into a training part and a held-out part."""

from __future__ import annotations

import re
from datetime import date, timedelta
from typing import Any, Literal, get_args

import numpy as np
import scipy.sparse as sp

from truerank.core.checks import (
    AnyArray,
    Bools,
    InputError,
    Ints,
    Rng,
    as_number,
    as_rng,
    check_choice,
    check_whole,
    counted,
)
from truerank.core.csr import places
from truerank.data.event_files import grouped, read_interactions
from truerank.data.interactions import Interactions
from truerank.data.splits import Repeats, Split, describe
from truerank.formats.sources import Source

Events = Interactions | Source
"""Interactions, or what `read_interactions` accepts: a path, a dataframe, a dict or a list; or a sparse matrix."""
Moment = float | str | date | np.datetime64
"""A number, or a date such as "2019-01-01"."""
Window = float | str | timedelta | np.timedelta64
"""A number, or a length of time such as "7d"."""

Targets = Literal["all", "first", "last"]
"""Which of a user's events after a cut are held out."""

_DURATION = re.compile(r"\s*(\d{1,9})\s*([smhdw])\s*", re.IGNORECASE)
_UNITS: dict[str, Literal["s", "m", "h", "D", "W"]] = {"s": "s", "m": "m", "h": "h", "d": "D", "w": "W"}


def leave_last_out(data: Events, k: int = 1, *, repeats: Repeats = "drop") -> Split:
    """Hold out the last k events of each user.

    Among events at the same time, the one further down in the source counts as later (without
    `positions`, the one with the higher item number). Users with at most k events keep them all for
    training.

    Parameters
    ----------
    data : Interactions, or what `read_interactions` accepts
        Must have times.
    k : int
        Events to hold out.
    repeats : {"drop", "hold out"}
        What to do with held-out events whose item is among the user's training items; see `Split`.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> events = pd.DataFrame({"user": [1, 1, 1], "item": ["c", "b", "a"], "time": [5, 9, 9]})
    >>> split = tr.leave_last_out(tr.read_interactions(events))
    >>> split.test.item_ids[split.test.items].tolist()
    ['a']
    """
    check_whole("k", k)
    events = _events(data)
    position = _positions(events, _by_time(events, "leave_last_out"))
    sizes = _sizes(events)
    return _split(events, (position >= sizes - k) & (sizes > k), repeats).check(time="user")


def leave_k_out(data: Events, k: int = 1, *, repeats: Repeats = "drop", rng: Rng = None) -> Split:
    """Hold out k random events of each user; users with at most k keep them all for training.

    Parameters
    ----------
    data : Interactions, or what `read_interactions` accepts
    k : int
        Events to hold out.
    repeats : {"drop", "hold out"}
        What to do with held-out events whose item is among the user's training items; see `Split`.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the draw.

    Examples
    --------
    >>> import truerank as tr
    >>> split = tr.leave_k_out(tr.Interactions.of([[0, 1, 2], [2]], "data"), 2, rng=0)
    >>> split.train.items.size, split.test.items.size, split.notes
    (2, 2, ('1 user has no held-out event', '1 held-out item has no training event'))
    """
    check_whole("k", k)
    events = _events(data)
    sizes = _sizes(events)
    return _split(events, (_random_positions(events, rng) < k) & (sizes > k), repeats).check(time="ignore")


def hold_out_fraction(data: Events, fraction: float = 0.2, *, repeats: Repeats = "drop", rng: Rng = None) -> Split:
    """Hold out a random fraction of the events of each user.

    The number of events is rounded to the nearest whole number, halves up, and leaves at least one
    event for training.

    Parameters
    ----------
    data : Interactions, or what `read_interactions` accepts
    fraction : float
        Between 0 and 1, both excluded.
    repeats : {"drop", "hold out"}
        What to do with held-out events whose item is among the user's training items; see `Split`.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the draw.

    Examples
    --------
    >>> import numpy as np, truerank as tr
    >>> data = tr.Interactions.of([[0, 1, 2, 3, 4], [0, 1], [0]], "data")
    >>> np.diff(tr.hold_out_fraction(data, 0.5, rng=0).test.indptr).tolist()
    [3, 1, 0]
    """
    _check_fraction(fraction)
    events = _events(data)
    sizes = _sizes(events)
    held = np.minimum(np.floor(fraction * sizes + 0.5), sizes - 1)
    return _split(events, _random_positions(events, rng) < held, repeats).check(time="ignore")


def split_by_time(
    data: Events,
    at: Moment | None = None,
    *,
    fraction: float | None = None,
    targets: Targets = "all",
    repeats: Repeats = "drop",
) -> Split:
    """Hold out all events from a given time on, the same for all users.

    Parameters
    ----------
    data : Interactions, or what `read_interactions` accepts
        Must have times.
    at : number, or date such as "2019-01-01", optional
        The first time that is held out.
    fraction : float, optional
        Instead of a time: hold out the smallest number of last events that makes up this fraction.
        Events at the same time stay together.
    targets : {"all", "first", "last"}
        Which of a user's events after the cut are held out; others are left out, with a note. The choice may change the
        order of models: "first" is what the user did next, "last" is furthest from what the model was trained on.
    repeats : {"drop", "hold out"}
        What to do with held-out events whose item is among the user's training items; see `Split`.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> events = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "time": [5, 9, 9, 7]})
    >>> data = tr.read_interactions(events)
    >>> tr.split_by_time(data, 9).test.times.tolist()
    [9, 9]
    >>> tr.split_by_time(data, fraction=0.25).test.times.tolist()
    [9, 9]

    References
    ----------
    Gusak et al. (2025), Time to split: exploring data splitting strategies for offline evaluation of sequential
    recommenders, arXiv:2507.16289, on targets.
    """
    check_choice("targets", targets, get_args(Targets))
    if (at is None) == (fraction is None):
        raise InputError("give either `at` or `fraction`.")
    events = _events(data)
    times = _times(events, "split_by_time")
    if fraction is not None:
        _check_fraction(fraction)
        first = min(times.size - int(np.ceil(fraction * times.size)), times.size - 1)
        moment = np.partition(times, first)[first]
    else:
        moment = _moment(at, times)
    held = times >= moment
    if held.all() or not held.any():
        part = "training" if held.all() else "test"
        raise InputError(f"a split at {moment} leaves no {part} events; times lie in {times.min()}..{times.max()}.")
    return _split(events, held, repeats, targets).check(time="all")


def rolling_splits(
    data: Events, window: Window, n: int, *, targets: Targets = "all", repeats: Repeats = "drop"
) -> list[Split]:
    """Return n splits by time that hold out the last n windows, one each, and train on everything before it.

    The windows have the same length, follow one another and end with the last event. A recommender is thus evaluated as
    it is used: retrained from time to time on a growing past (rolling origin; Tashman, 2000).

    Parameters
    ----------
    data : Interactions, or what `read_interactions` accepts
        Must have times.
    window : number, timedelta, or text such as "7d"
        Length of a window, in the unit of the times; for dates a timedelta, or a number with one of the units s
        (seconds), m (minutes), h (hours), d (days) and w (weeks).
    n : int
        Number of windows, at least 1.
    targets : {"all", "first", "last"}
        Which of a user's events in a window are held out, as in `split_by_time`.
    repeats : {"drop", "hold out"}
        What to do with held-out events whose item is among the user's training items; see `Split`.

    Returns
    -------
    list of Split
        From the oldest window to the newest. To evaluate all windows at once, join their ranks by `Ranks.concatenate`:
        the mean is over all instances, of which a user has one per window with held-out events, and errors are
        clustered by user.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> events = pd.DataFrame({"user": [1, 1, 2, 2, 1], "item": [1, 2, 1, 3, 3], "time": [1, 4, 3, 6, 7]})
    >>> splits = tr.rolling_splits(tr.read_interactions(events), window=2, n=2)
    >>> [(split.train.times.tolist(), split.test.times.tolist()) for split in splits]
    [([1, 3], [4]), ([1, 4, 3], [7, 6])]
    >>> ranks = tr.Ranks.concatenate([tr.rank(tr.Popularity().fit(split.train), split) for split in splits])
    >>> ranks.ids.tolist()
    [1, 1, 2]
    """
    check_whole("n", n)
    check_choice("targets", targets, get_args(Targets))
    events = _events(data)
    times = _times(events, "rolling_splits")
    length, last = _length(window, times), times.max()
    # a window does not include its beginning, so that the last event is in the last one
    ends = [last - left * length for left in reversed(range(n))]
    return [_window(events, times, end - length, end, repeats, targets) for end in ends]


def _window(events: Interactions, times: AnyArray, start: Any, end: Any, repeats: Repeats, targets: Targets) -> Split:
    past, held = times <= start, (times > start) & (times <= end)
    for part, chosen in (("training", past), ("held-out", held)):
        if not chosen.any():
            span = f"{times.min()}..{times.max()}"
            raise InputError(f"the window from {start} to {end} has no {part} events; times lie in {span}.")
    known = past | held
    return _split(events.select(known, notes=events.notes), held[known], repeats, targets).check(time="all")


def k_fold(data: Events, k: int = 5, *, repeats: Repeats = "drop", rng: Rng = None) -> list[Split]:
    """Return k splits that hold out each event once; the folds of each user are balanced to within one event.

    Parameters
    ----------
    data : Interactions, or what `read_interactions` accepts
    k : int
        Number of folds: at least 2, and at most the number of events.
    repeats : {"drop", "hold out"}
        What to do with held-out events whose item is among the user's training items; see `Split`.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the draw.

    Examples
    --------
    >>> import truerank as tr
    >>> folds = tr.k_fold(tr.Interactions.of([[0, 1, 2], [0, 2]], "data"), 2, rng=0)
    >>> sum(fold.test.matrix.toarray() for fold in folds).tolist()
    [[1.0, 1.0, 1.0], [1.0, 0.0, 1.0]]
    """
    check_whole("k", k, 2)
    events, generator = _events(data), as_rng(rng)
    if k > events.items.size:
        raise InputError(f"`k` must be at most the number of events ({events.items.size}), got {k}.")
    position = _random_positions(events, generator)
    # users start at different folds, so that the folds have about the same size
    start = generator.integers(k, size=events.n_users)[events.users]
    fold = (position + start) % k
    return [_split(events, fold == number, repeats).check(time="ignore") for number in range(k)]


def _events(data: Events) -> Interactions:
    """Return events with their repeats: interactions unchanged, and anything else as `read_interactions` reads it."""
    if isinstance(data, Interactions):
        return data
    return Interactions.of(data, "data") if sp.issparse(data) else read_interactions(data)


def _split(data: Interactions, held: Bools, repeats: Repeats, targets: Targets = "all") -> Split:
    """Divide the events, and merge those of the same pair in each part, so that neither part sees the other."""
    train, test = data.select(~held).merged(), data.select(held)
    known = train.contains(test)
    notes = [*data.notes]
    if repeats == "drop" and known.any():
        one, many = "event repeats a training pair and is", "events repeat a training pair and are"
        notes.append(f"{counted(int(known.sum()), f'held-out {one}', f'held-out {many}')} dropped (repeats='drop')")
        test = test.select(~known)
    if targets != "all":
        wanted = _at_end(test, targets)
        one, many = (
            f"that {verb} not the {targets} of {whose} user" for verb, whose in (("is", "its"), ("are", "their"))
        )
        words = f"held-out event {one} is left out", f"held-out events {many} are left out"
        if not wanted.all():
            notes.append(f"{counted(int((~wanted).sum()), *words)} (targets={targets!r})")
        test = test.select(wanted)
    test = test.merged()
    return Split(train, test, (*notes, *describe(train, test)), repeats)


def _at_end(data: Interactions, targets: Targets) -> Bools:
    """Return which events are the first, or the last, of their user."""
    position = _positions(data, _by_time(data, "targets"))
    return position == (0 if targets == "first" else _sizes(data) - 1)


def _sizes(data: Interactions) -> Ints:
    """Return, for each event, how many events its user has."""
    sizes = np.diff(data.indptr)
    return np.repeat(sizes, sizes)


def _positions(data: Interactions, order: Ints) -> Ints:
    """Return the position of each event, from 0, among those of its user if all events are in this order."""
    users = data.users[order]
    by_user, indptr, _ = grouped(users, np.zeros_like(users), (data.n_users, 1))
    positions = np.empty(order.size, dtype=np.int64)
    positions[order[by_user]] = places(indptr) - 1
    return positions


def _random_positions(data: Interactions, rng: Rng) -> Ints:
    return _positions(data, as_rng(rng).permutation(data.items.size))


def _by_time(data: Interactions, what: str) -> Ints:
    times = _times(data, what)
    return np.argsort(times, kind="stable") if data.positions is None else np.lexsort((data.positions, times))


def _times(data: Interactions, what: str) -> AnyArray:
    if data.times is None:
        raise InputError(f"{what} needs events with times, but they have none.")
    return data.times


def _moment(at: Any, times: AnyArray) -> Any:
    try:
        return np.datetime64(at) if times.dtype.kind == "M" else float(at)
    except (TypeError, ValueError) as error:
        raise InputError(f"`at` must be a time like those of the events ({times[0]}), got {at!r}.") from error


def _length(window: Any, times: AnyArray) -> Any:
    """Return the length of a window as a number, or as a timedelta64 if the times are dates."""
    dates = times.dtype.kind == "M"
    try:
        length: Any = _duration(window) if dates else float(window)
        is_long = length > length * 0
    except (AttributeError, TypeError, ValueError, OverflowError) as error:
        like = "a timedelta, or a text such as '7d'" if dates else "a number like the times"
        raise InputError(f"`window` must be {like}, got {window!r}.") from error
    if not is_long:
        raise InputError(f"`window` must be longer than 0, got {window!r}.")
    # whole numbers stay exact
    return int(length) if times.dtype.kind in "iu" and length == int(length) else length


def _duration(window: Any) -> np.timedelta64:
    if isinstance(window, timedelta | np.timedelta64):
        return np.timedelta64(window)
    number, unit = _DURATION.fullmatch(window).groups()  # type: ignore[union-attr] # other texts are refused
    return np.timedelta64(int(number), _UNITS[unit.lower()])


def _check_fraction(fraction: float) -> None:
    if not 0 < as_number(fraction) < 1:
        raise InputError(f"`fraction` must lie between 0 and 1, got {fraction}.")
