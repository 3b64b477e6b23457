"""What a recommender may learn from, and what it is asked to find."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np

from truerank.arrays import AnyArray, Bools, Ints
from truerank.data.interactions import Interactions
from truerank.data.leaks import check_pairs, check_times
from truerank.data.reading import grouped, read_parts
from truerank.data.split_files import load_parts, save_parts
from truerank.errors import InputError
from truerank.formats.columns import Column
from truerank.formats.source import Source

Rng = int | np.random.Generator | None


@dataclass(frozen=True)
class Split:
    """Interactions cut into a part to learn from and a part that was held out.

    Both parts have the same users and items, in the same order; `notes` says what is unusual.
    """

    train: Interactions
    test: Interactions
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.train.matrix.shape != self.test.matrix.shape:
            raise InputError(
                f"`train` and `test` must have the same users and items, got shapes "
                f"{self.train.matrix.shape} and {self.test.matrix.shape}."
            )

    def check(self, *, time: Literal["user", "all"] | None = None) -> Split:
        """Return the split itself, or raise `InputError` if what is held out leaks into training.

        Parameters
        ----------
        time : {"user", "all"}, optional
            Besides pairs that are in both parts, refuse a training event that is later than a
            held-out event of its user, or of any user.

        Examples
        --------
        >>> import truerank as tr
        >>> tr.Split(tr.Interactions.of([[0, 1]], "train"), tr.Interactions.of([[1]], "test")).check()
        Traceback (most recent call last):
        ...
        truerank.errors.InputError: 1 pair is both in train and in test, first user 0 with item 1.
        """
        check_pairs(self.train, self.test)
        if time is not None:
            check_times(self.train, self.test, time)
        return self

    def save(self, folder: str | Path) -> None:
        """Write train, test, users and items as Parquet files into a folder, which is made if needed.

        Examples
        --------
        >>> import tempfile, truerank as tr
        >>> split = tr.leave_k_out(tr.read_interactions({"ann": ["a", "b"], "bob": ["b", "c"]}), rng=0)
        >>> folder = tempfile.mkdtemp()
        >>> split.save(folder)
        >>> tr.Split.load(folder).test.matrix.toarray().tolist() == split.test.matrix.toarray().tolist()
        True
        """
        save_parts(Path(folder), self.train, self.test, self.notes)

    @classmethod
    def load(cls, folder: str | Path) -> Split:
        """Read what `save` wrote."""
        return cls(*load_parts(Path(folder)))


def leave_last_out(data: Interactions, k: int = 1) -> Split:
    """Hold out the last k events of each user.

    Of events at the same time the one further down in the source is the later one (the one with the
    higher item number if `positions` are not known). Users with no more than k events keep them all
    for training.

    Parameters
    ----------
    data : Interactions
        With times.
    k : int
        Events to hold out.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> events = pd.DataFrame({"user": [1, 1, 1], "item": ["c", "b", "a"], "time": [5, 9, 9]})
    >>> split = tr.leave_last_out(tr.read_interactions(events))
    >>> split.test.item_ids[split.test.items].tolist()
    ['a']
    """
    _check_k(k, 1)
    place = _places(data, _by_time(data, "leave_last_out"))
    sizes = _sizes(data)
    return _split(data, (place >= sizes - k) & (sizes > k)).check(time="user")


def leave_k_out(data: Interactions, k: int = 1, *, rng: Rng = None) -> Split:
    """Hold out k random events of each user; users with no more than k keep them all for training.

    Parameters
    ----------
    data : Interactions
    k : int
        Events to hold out.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the draw.

    Examples
    --------
    >>> import truerank as tr
    >>> split = tr.leave_k_out(tr.Interactions.of([[0, 1, 2], [2]], "data"), 2, rng=0)
    >>> split.train.items.size, split.test.items.size, split.notes
    (2, 2, ('1 user has no held-out event',))
    """
    _check_k(k, 1)
    sizes = _sizes(data)
    return _split(data, (_random_places(data, rng) < k) & (sizes > k)).check()


def hold_out_fraction(data: Interactions, fraction: float = 0.2, *, rng: Rng = None) -> Split:
    """Hold out a random fraction of the events of each user.

    The number of events is rounded to the nearest, a half upwards, and is at most all but one.

    Parameters
    ----------
    data : Interactions
    fraction : float
        Between 0 and 1, both excluded.
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
    sizes = _sizes(data)
    held = np.minimum(np.floor(fraction * sizes + 0.5), sizes - 1)
    return _split(data, _random_places(data, rng) < held).check()


def split_by_time(data: Interactions, at: Any = None, *, fraction: float | None = None) -> Split:
    """Hold out all events from some moment on, the same for all users.

    Parameters
    ----------
    data : Interactions
        With times.
    at : number, or date such as "2019-01-01", optional
        The first moment that is held out.
    fraction : float, optional
        Instead of a moment: hold out the last events, so that they are at least this fraction.
        Events at the same time stay together.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> events = pd.DataFrame({"user": [1, 1, 2, 2], "item": [1, 2, 1, 3], "time": [5, 9, 9, 7]})
    >>> data = tr.read_interactions(events)
    >>> tr.split_by_time(data, 9).test.times.tolist()
    [9, 9]
    >>> tr.split_by_time(data, fraction=0.25).test.times.tolist()
    [9, 9]
    """
    if (at is None) == (fraction is None):
        raise InputError("give either `at` or `fraction`.")
    times = _times(data, "split_by_time")
    if fraction is not None:
        _check_fraction(fraction)
        first = min(times.size - int(np.ceil(fraction * times.size)), times.size - 1)
        moment = np.partition(times, first)[first]
    else:
        moment = _moment(at, times)
    held = times >= moment
    if held.all() or not held.any():
        where = "not before" if held.all() else "before"
        raise InputError(f"all events are {where} the moment {moment}; they lie in {times.min()}..{times.max()}.")
    return _split(data, held).check(time="all")


def k_fold(data: Interactions, k: int = 5, *, rng: Rng = None) -> list[Split]:
    """Return k splits that hold out each event once, and equally many of each user up to one.

    Parameters
    ----------
    data : Interactions
    k : int
        Folds, at least 2.
    rng : int or numpy.random.Generator, optional
        Seed or generator of the draw.

    Examples
    --------
    >>> import truerank as tr
    >>> folds = tr.k_fold(tr.Interactions.of([[0, 1, 2], [0, 2]], "data"), 2, rng=0)
    >>> sum(fold.test.matrix.toarray() for fold in folds).tolist()
    [[1, 1, 1], [1, 0, 1]]
    """
    _check_k(k, 2)
    generator = np.random.default_rng(rng)
    place = _random_places(data, generator)
    # users start at different folds, so that the folds have about the same size
    start = generator.integers(k, size=data.n_users)[data.users]
    fold = (place + start) % k
    return [_split(data, fold == number).check() for number in range(k)]


def read_split(
    train: Source,
    test: Source = None,
    *,
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    weight: Column = None,
) -> Split:
    """Read a split that exists already, as two files or frames, or from a folder that holds both.

    Parameters
    ----------
    train, test : path or dataframe
        Training and held-out events in any form that `read_interactions` knows. If `test` is not
        given, `train` is what `Split.save` wrote, or a folder with one file each that is called
        train and test, such as `train.tsv.gz` or `ml-1m.test.rating`.
    user, item, time, rating, weight : str or int, optional
        Columns as for `read_interactions`, where both parts have them.

    Returns
    -------
    Split
        Users and items of either part, in ascending order of their ids. Pairs that are in both
        parts are noted.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> train, test = pd.DataFrame({"user": [1, 2], "item": [7, 8]}), pd.DataFrame({"user": [1], "item": [9]})
    >>> split = tr.read_split(train, test)
    >>> split.train.item_ids.tolist(), split.test.matrix.toarray().tolist()
    ([7, 8, 9], [[0, 0, 1], [0, 0, 0]])
    """
    if test is None:
        if not isinstance(train, str | Path) or not Path(train).is_dir():
            raise InputError("`test` is missing, and `train` is no folder that holds both.")
        if (Path(train) / "users.parquet").is_file():
            return Split.load(train)
        train, test = (_file_called(name, Path(train)) for name in ("train", "test"))
    columns = {"user": user, "item": item, "time": time, "rating": rating, "weight": weight}
    first, second = read_parts([train, test], columns)
    both = int(first.overlap(second).sum())
    leak = (f"{both} {'pair is' if both == 1 else 'pairs are'} both in train and in test",) if both else ()
    return Split(first, second, (*_counted(second), *leak))


def _file_called(name: str, folder: Path) -> Path:
    files = [file for file in sorted(folder.iterdir()) if file.suffix != ".negative"]
    found = [file for file in files if name in file.name.split(".")]
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise InputError(f"{str(folder)!r} must hold one file called {name}, such as {name}.tsv, found {names}.")
    return found[0]


def _split(data: Interactions, held: Bools) -> Split:
    test = data.select(held)
    return Split(data.select(~held), test, (*data.notes, *_counted(test)))


def _counted(test: Interactions) -> list[str]:
    without = int((np.diff(test.indptr) == 0).sum())
    return [f"{'1 user has' if without == 1 else f'{without} users have'} no held-out event"] if without else []


def _sizes(data: Interactions) -> Ints:
    """Events of the user of each event."""
    sizes = np.diff(data.indptr)
    return np.repeat(sizes, sizes)


def _places(data: Interactions, order: Ints) -> Ints:
    """Place of each event (from 0) among those of its user, if all events are ordered like that."""
    users = data.users[order]
    by_user, indptr, _ = grouped(users, np.zeros_like(users), (data.n_users, 1))
    places = np.empty(order.size, dtype=np.int64)
    places[order[by_user]] = np.arange(order.size) - np.repeat(indptr[:-1], np.diff(indptr))
    return places


def _random_places(data: Interactions, rng: Rng) -> Ints:
    return _places(data, np.random.default_rng(rng).permutation(data.items.size))


def _by_time(data: Interactions, what: str) -> Ints:
    times = _times(data, what)
    return np.argsort(times, kind="stable") if data.positions is None else np.lexsort((data.positions, times))


def _times(data: Interactions, what: str) -> AnyArray:
    if data.times is None:
        raise InputError(f"{what} needs the times of the events, and there are none.")
    return data.times


def _moment(at: Any, times: AnyArray) -> Any:
    try:
        return np.datetime64(at) if times.dtype.kind == "M" else float(at)
    except (TypeError, ValueError) as error:
        raise InputError(f"`at` must be a moment like those of the events ({times[0]}), got {at!r}.") from error


def _check_k(k: Any, least: int) -> None:
    if not isinstance(k, int | np.integer) or k < least:
        raise InputError(f"`k` must be a whole number from {least}, got {k!r}.")


def _check_fraction(fraction: float) -> None:
    if not 0 < fraction < 1:
        raise InputError(f"`fraction` must lie between 0 and 1, got {fraction}.")
