"""A split: the interactions a recommender is trained on, and those it should predict."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

import numpy as np

from truerank.data.interactions import Interactions, check_same_names
from truerank.data.leaks import check_pairs, check_times, later
from truerank.data.reading import read_parts
from truerank.data.split_files import load_parts, save_parts
from truerank.display.tables import Cell, Table
from truerank.errors import InputError
from truerank.formats.columns import Column
from truerank.formats.detection import with_header
from truerank.formats.source import Source
from truerank.notes import counted

Repeats = Literal["drop", "hold out"]
"""What becomes of held-out events with an item that is among the user's training items."""


def check_repeats(repeats: str) -> None:
    """Raise `InputError` unless it is one of the choices."""
    if repeats not in get_args(Repeats):
        raise InputError(f"`repeats` must be 'drop' or 'hold out', got {repeats!r}.")


@dataclass(frozen=True)
class Split:
    """Interactions divided into a training part and a held-out part.

    Attributes
    ----------
    train, test : Interactions
        Both have the same users and items, in the same order. Repeated events are merged within each part.
    notes : tuple of str
        What is unusual.
    repeats : {"drop", "hold out"}
        Whether a user's held-out items may be among the user's training items. "drop": they are new items only, which
        is what most studies measure and what recommenders predict that never recommend a known item. "hold out":
        they may recur (repeat consumption), and `rank` keeps training items as candidates, because
        known items that do not recur compete with those that do.

    Notes
    -----
    Functions that split divide events first and merge repeated ones then. So training has all pairs that
    were known at the cut, with the time, rating and weight of their last event before it; events after the cut have no
    influence on it. To divide pairs instead, each with its last event, merge first: ``leave_k_out(data.merged())``.

    Examples
    --------
    >>> import truerank as tr
    >>> split = tr.Split(tr.Interactions.of([[0, 1]], "train", n_items=3), tr.Interactions.of([[2]], "test"))
    >>> split.test.matrix.toarray().tolist()
    [[0.0, 0.0, 1.0]]
    """

    train: Interactions
    test: Interactions
    notes: tuple[str, ...] = ()
    repeats: Repeats = "drop"

    def __post_init__(self) -> None:
        check_repeats(self.repeats)
        for name in ("train", "test"):
            object.__setattr__(self, name, Interactions.of(getattr(self, name), name))
        if self.train.shape != self.test.shape:
            raise InputError(
                f"`train` and `test` must have the same users and items, got shapes "
                f"{self.train.shape} and {self.test.shape}."
            )
        check_same_names(self.train, self.test, "`train` and `test`")

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        parts = (self.train.facts(), self.test.facts())
        names = list(dict.fromkeys(name for part in parts for name in part))
        rows = [(name, *(part.get(name, "") for part in parts)) for name in names]
        cells = tuple(tuple(map(Cell, row)) for row in rows)
        return Table(("Split", "train", "test"), cells, (), self.notes).to_html()

    def check(self, *, time: Literal["user", "all", "ignore"] | None = None) -> Split:
        """Return the split itself, or raise `InputError` if training reveals what is held out.

        Parameters
        ----------
        time : {"user", "all", "ignore"}, optional
            Besides pairs that are in both parts, unless `repeats` is "hold out", refuse training events later
            than a held-out event of the same user ("user"), or of any user ("all"). The default is "user" if
            both parts have times. "ignore" is for random splits, which train on later events on purpose.

        Examples
        --------
        >>> import truerank as tr
        >>> tr.Split(tr.Interactions.of([[0, 1]], "train"), tr.Interactions.of([[1]], "test")).check()
        Traceback (most recent call last):
        ...
        truerank.errors.InputError: 1 pair is both in train and in test, first user 0 with item 1.
        """
        if self.repeats == "drop":
            check_pairs(self.train, self.test)
        timed = self.train.times is not None and self.test.times is not None
        within = time or ("user" if timed else "ignore")
        if within != "ignore":
            check_times(self.train, self.test, within)
        return self

    def save(self, folder: str | Path) -> None:
        """Write train, test, users and items as Parquet files into a directory, which is created if needed.

        If saving over an older split is interrupted, `load` gives either of the two or refuses; it never mixes them.

        Examples
        --------
        >>> import tempfile, truerank as tr
        >>> split = tr.leave_k_out(tr.read_interactions({"ann": ["a", "b"], "bob": ["b", "c"]}), rng=0)
        >>> folder = tempfile.mkdtemp()
        >>> split.save(folder)
        >>> tr.Split.load(folder).test.matrix.toarray().tolist() == split.test.matrix.toarray().tolist()
        True
        """
        save_parts(Path(folder), self.train, self.test, self.notes, self.repeats)

    @classmethod
    def load(cls, folder: str | Path) -> Split:
        """Read what `save` wrote."""
        return cls(*load_parts(Path(folder)))


def read_split(
    train: Source,
    test: Source = None,
    *,
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    weight: Column = None,
    header: bool | None = None,
) -> Split:
    """Read an existing split: two files or dataframes, or a directory that holds both.

    Parameters
    ----------
    train, test : path or dataframe
        Training and held-out events in any form that `read_interactions` accepts. If `test` is not
        given, `train` is a directory written by `Split.save`, or one with a file called train and a
        file called test, such as `train.tsv.gz` and `ml-1m.test.rating`.
    user, item, time, rating, weight : str or int, optional
        Columns as in `read_interactions`, the same for both parts.
    header : bool, optional
        Whether the first lines of text files hold the names of the columns; detected by default.

    Returns
    -------
    Split
        Users and items of both parts together, in ascending order of their ids. `notes` counts pairs
        that are in both parts, users and items that are only held out, merged events, and training
        events later than a held-out event of the same user.

    Examples
    --------
    >>> import pandas as pd, truerank as tr
    >>> train, test = pd.DataFrame({"user": [1, 2], "item": [7, 8]}), pd.DataFrame({"user": [1], "item": [9]})
    >>> split = tr.read_split(train, test)
    >>> split.train.item_ids.tolist(), split.test.matrix.toarray().tolist()
    ([7, 8, 9], [[0.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    >>> split.notes
    ('1 user has no held-out event', '1 held-out item has no training event')
    """
    if test is None:
        if not isinstance(train, str | Path) or not Path(train).is_dir():
            raise InputError(f"`test` must be given, unless `train` is a directory that holds both, got {train!r:.80}.")
        if (Path(train) / "users.parquet").is_file():
            return Split.load(train)
        train, test = (_file_called(name, Path(train)) for name in ("train", "test"))
    columns = {"user": user, "item": item, "time": time, "rating": rating, "weight": weight}
    train_part, test_part = (part.merged() for part in read_parts([train, test], columns, with_header(None, header)))
    parts = (("train", train_part), ("test", test_part))
    merged = [f"{name}: {note}" for name, part in parts for note in part.notes]
    return Split(train_part, test_part, (*merged, *describe(train_part, test_part), *_leaks(train_part, test_part)))


def describe(train: Interactions, test: Interactions) -> list[str]:
    """Count the users without held-out events, and the users and items that are only held out."""
    users, held_users = np.diff(train.indptr) > 0, np.diff(test.indptr) > 0
    items, held_items = (np.bincount(part.items, minlength=part.n_items) > 0 for part in (train, test))
    counts = [
        (~held_users, "user has no held-out event", "users have no held-out event"),
        (
            held_users & ~users,
            "user with held-out events has no training event",
            "users with held-out events have no training event",
        ),
        (held_items & ~items, "held-out item has no training event", "held-out items have no training event"),
    ]
    return [counted(int(which.sum()), one, many) for which, one, many in counts if which.any()]


def _leaks(train: Interactions, test: Interactions) -> list[str]:
    """Count what `Split.check` would refuse."""
    shared, late = int(train.contains(test).sum()), int(later(train, test, "user").sum())
    words = [
        (shared, "pair is both in train and in test", "pairs are both in train and in test"),
        (
            late,
            "training event is later than a held-out event of the same user",
            "training events are later than a held-out event of the same user",
        ),
    ]
    return [counted(number, one, many) for number, one, many in words if number]


def _file_called(name: str, folder: Path) -> Path:
    files = [file for file in sorted(folder.iterdir()) if file.suffix != ".negative"]
    found = [file for file in files if name in file.name.split(".")]
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise InputError(f"{str(folder)!r} must hold one file called {name}, such as {name}.tsv, found {names}.")
    return found[0]
