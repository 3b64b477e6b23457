"""`Split`: a training part and a held-out part; checks for leaks between them, and how a split is stored.

A split is stored as a directory of Parquet files that any other tool can read. Each file carries the same digest of all
of them, so that files of two splits are never taken for one, as they would be if saving over an older split stopped
halfway.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, get_args

import numpy as np

from truerank.core.checks import AnyArray, Bools, InputError, Ints, check_choice, check_kind, counted
from truerank.core.matrices import float_type
from truerank.core.tables import Cell, Table
from truerank.core.threads import Memory, bounded
from truerank.data.interactions import Interactions, check_same_names

if TYPE_CHECKING:
    import pyarrow as pa

    from truerank.formats.columns import Column
    from truerank.formats.sources import Source

TimeOrder = Literal["user", "all"]
Repeats = Literal["drop", "hold out"]
"""What happens to held-out events whose item is among the user's training items."""


@dataclass(frozen=True)
class Split:
    """Interactions divided into a training part and a held-out part.

    Attributes
    ----------
    train, test : Interactions
        Both have the same users and items, in the same order. Repeated events are merged within each part.
    notes : tuple of str
        Anything unusual in the data.
    repeats : {"drop", "hold out"}
        Whether a user's held-out items may be among the user's training items. "drop": only new items are held out, as
        in most studies and for recommenders that never recommend a known item. "hold out": they may recur (repeat
        consumption), and `rank` keeps training items as candidates, because known items that do not recur compete with
        those that do.
    validation : Split, optional
        A split of the training part, for choosing settings: `with_validation` makes it.

    Notes
    -----
    Functions that split first divide events, then merge repeated ones. So training has all pairs that
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
    validation: Split | None = None

    def __post_init__(self) -> None:
        check_choice("repeats", self.repeats, get_args(Repeats))
        if self.validation is not None:
            check_kind("validation", self.validation, Split)
        for name, part in (("train", self.train), ("test", self.test)):
            if not isinstance(part, Interactions):
                raise InputError(f"`{name}` must be Interactions, as `Interactions.of` makes them, got {part!r}.")
            object.__setattr__(self, name, part.merged())
        if self.train.shape != self.test.shape:
            shapes = f"{self.train.shape} and {self.test.shape}"
            raise InputError(f"`train` and `test` must have the same users and items, got shapes {shapes}.")
        check_same_names(self.train, self.test, "`train` and `test`")

    def _repr_html_(self) -> str:
        """Return what notebooks show."""
        parts = (self.train.facts(), self.test.facts())
        names = list(dict.fromkeys(name for part in parts for name in part))
        rows = [(name, *(part.get(name, "") for part in parts)) for name in names]
        cells = tuple(tuple(map(Cell, row)) for row in rows)
        return Table(("Split", "train", "test"), cells, (), self.notes).to_html()

    def with_validation(self, split: Callable[[Interactions], Split]) -> Split:
        """Return the same split with a validation split of its training part, so that one object holds all three parts.

        Choose settings by fitting models to ``split.validation.train`` and ranking on ``split.validation``; then fit
        the chosen one to ``split.train``, which includes the validation events, and rank on ``split``.

        Parameters
        ----------
        split : function
            Splits interactions, as `truerank.leave_last_out` does.

        Examples
        --------
        >>> import truerank as tr
        >>> log = tr.read_interactions({"user": [1, 1, 1, 1], "item": [4, 5, 6, 7], "time": [1, 2, 3, 4]})
        >>> split = tr.leave_last_out(log).with_validation(tr.leave_last_out)
        >>> parts = split.validation.train, split.validation.test, split.test
        >>> [part.item_names[part.items].tolist() for part in parts]
        [[4, 5], [6], [7]]
        >>> later = tr.split_by_time(log, 4).with_validation(lambda train: tr.split_by_time(train, 3))
        >>> later.validation.test.times.tolist()
        [3]
        """
        if not callable(split):
            raise InputError(f"`split` must be a function that splits interactions, got {split!r}.")
        inner = split(self.train)
        if not isinstance(inner, Split):
            raise InputError(f"`split` must return a Split of what it is given, got {type(inner).__name__}.")
        return replace(self, validation=inner)

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
        truerank.InputError: 1 pair is both in train and in test, first user 0 with item 1.
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

        A validation split goes into a directory `validation` inside.

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
        _save(Path(folder), self)

    @classmethod
    def load(cls, folder: str | Path) -> Split:
        """Read what `save` wrote."""
        train, test, notes, repeats, inner = _load_parts(Path(folder))
        within = Path(folder) / "validation"
        validation = None if inner is None else cls.load(within)
        if inner is not None and _saved_digest(within) != inner:
            raise InputError(f"{str(within)!r} belongs to another split: saving was interrupted; save it again.")
        return cls(train, test, notes, repeats, validation)


@bounded
def read_split(
    train: Source,
    test: Source = None,
    *,
    validation: Source = None,
    user: Column = None,
    item: Column = None,
    time: Column = None,
    rating: Column = None,
    weight: Column = None,
    header: bool | None = None,
    memory: Memory | None = None,
) -> Split:
    """Read an existing split: two files or dataframes, or a directory that holds both.

    Parameters
    ----------
    train, test : path or dataframe
        Training and held-out events in any form that `read_interactions` accepts. If `test` is not
        given, `train` is a directory written by `Split.save`, or one with a file called train and a
        file called test, such as `train.tsv.gz` and `ml-1m.test.rating`.
    validation : path or dataframe, optional
        Events for choosing settings. They become part of ``split.train``, and ``split.validation`` divides that into
        the given `train` and `validation`.
    user, item, time, rating, weight : str or int, optional
        Columns as in `read_interactions`, the same for both parts.
    header : bool, optional
        Whether the first lines of text files hold the names of the columns; detected by default.
    memory : str or int, optional
        Memory that reading may use, as in `truerank.read_interactions`.

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
    from truerank.data.event_files import read_parts
    from truerank.formats.text_files import with_header

    if test is None and validation is not None:
        raise InputError("`validation` must come with `train` and `test`, as files or dataframes of their own.")
    if test is None:
        if not isinstance(train, str | Path) or not Path(train).is_dir():
            raise InputError(f"`test` must be given, unless `train` is a directory that holds both, got {train!r:.80}.")
        if (Path(train) / "users.parquet").is_file():
            return Split.load(train)
        train, test = (_file_called(name, Path(train)) for name in ("train", "test"))
    columns = {"user": user, "item": item, "time": time, "rating": rating, "weight": weight}
    sources = [train, test] if validation is None else [train, test, validation]
    seen, held, *others = read_parts(sources, columns, with_header(None, header))
    inner = None if not others else _divided(seen, others[0])
    seen = _together(seen, *others)
    whole = _divided(seen, held)
    return replace(whole, validation=inner)


def _divided(train: Interactions, test: Interactions) -> Split:
    """Return a split of these events, with notes on what is unusual."""
    seen, held = train.merged(), test.merged()
    return Split(seen, held, (*describe(seen, held), *_leaks(seen, held)))


def _together(first: Interactions, *others: Interactions) -> Interactions:
    """Return the events of several parts with the same users and items; later parts come after earlier ones."""
    from truerank.data.event_files import joined_events

    return joined_events([first, *others]) if others else first


def check_pairs(train: Interactions, test: Interactions) -> None:
    """Raise `InputError` if a user-item pair is in both."""
    shared = train.contains(test)
    if both := int(shared.sum()):
        at = int(np.argmax(shared))
        first = f"user {test.names[test.users[at]]} with item {test.item_names[test.items[at]]}"
        raise InputError(f"{counted(both, 'pair is', 'pairs are')} both in train and in test, first {first}.")


def check_times(train: Interactions, test: Interactions, within: TimeOrder) -> None:
    """Raise `InputError` if a training event is later than a held-out one of the same user, or of any user."""
    if train.times is None or test.times is None:
        raise InputError("`train` and `test` must both have times for their order to be checked.")
    late = later(train, test, within)
    if late.any():
        user = train.names[train.users[np.argmax(late)]]
        whose = "of the same user " if within == "user" else ""
        events = counted(int(late.sum()), "training event is", "training events are")
        raise InputError(f"{events} later than a held-out event {whose}(first user {user}).")


def later(train: Interactions, test: Interactions, within: TimeOrder) -> Bools:
    """Return for each training event whether it is later than a held-out one; all False without times."""
    trained, held = train.times, test.times
    if trained is None or held is None or not trained.size or not held.size:
        return np.zeros(train.items.size, dtype=np.bool_)
    if within == "all":
        return trained > held.min()
    with_test = np.flatnonzero(np.diff(test.indptr))
    first = np.full(train.n_users, trained.max())
    first[with_test] = np.minimum.reduceat(held, test.indptr[with_test])
    return trained > first[train.users]


def describe(train: Interactions, test: Interactions) -> list[str]:
    """Return the notes of both parts, and count users without held-out events, and users and items only held out."""
    own = [f"{name}: {note}" for name, part in (("train", train), ("test", test)) for note in part.notes]
    users, held_users = np.diff(train.indptr) > 0, np.diff(test.indptr) > 0
    unknown = "with held-out events"
    items, held_items = (np.bincount(part.items, minlength=part.n_items) > 0 for part in (train, test))
    counts = [
        (~held_users, "user has no held-out event", "users have no held-out event"),
        (held_users & ~users, f"user {unknown} has no training event", f"users {unknown} have no training event"),
        (held_items & ~items, "held-out item has no training event", "held-out items have no training event"),
    ]
    return own + [counted(int(which.sum()), one, many) for which, one, many in counts if which.any()]


def _leaks(train: Interactions, test: Interactions) -> list[str]:
    """Count what `Split.check` would refuse."""
    shared, late = int(train.contains(test).sum()), int(later(train, test, "user").sum())
    pairs = f"{counted(shared, 'pair is', 'pairs are')} both in train and in test"
    events = counted(late, "training event is", "training events are")
    return [pairs] * bool(shared) + [f"{events} later than a held-out event of the same user"] * bool(late)


def _file_called(name: str, folder: Path) -> Path:
    files = [file for file in sorted(folder.iterdir()) if file.suffix != ".negative"]
    found = [file for file in files if name in file.name.split(".")]
    if len(found) != 1:
        names = ", ".join(file.name for file in found) or "none"
        raise InputError(f"{str(folder)!r} must hold one file called {name}, such as {name}.tsv, found {names}.")
    return found[0]


_FILES = ("users", "items", "train", "test")
_DIGEST = b"truerank_split"


def _save(folder: Path, split: Split) -> str:
    """Write both parts, and the names of users and items in their order; return the digest of all of it."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    from truerank.formats import writing

    writing.make_folder(folder)
    train, test = split.train, split.test
    inner = None if split.validation is None else _save(folder / "validation", split.validation)
    named = {"user": train.user_ids is not None, "item": train.item_ids is not None}
    about = json.dumps({"named": named, "notes": split.notes, "repeats": split.repeats, "validation": inner})
    tables = {
        "users": _rows_table(train).replace_schema_metadata({"truerank": about}),
        "items": pa.table({"item": train.item_names}),
        "train": _to_table(train),
        "test": _to_table(test),
    }
    digest = _digest(about, train, test)
    with writing.replacing(*(folder / f"{name}.parquet" for name in tables)) as files:
        for table, file in zip(tables.values(), files, strict=True):
            known = table.schema.metadata or {}
            pq.write_table(table.replace_schema_metadata({**known, _DIGEST: digest}), file)
    return digest


def _rows_table(train: Interactions) -> pa.Table:
    """Return the names of the rows, and their users where they are sessions."""
    import pyarrow as pa

    owners = {} if train.session_users is None else {"session_user": train.session_users}
    return pa.table({"user": train.names, **owners})


def _saved_digest(folder: Path) -> str:
    import pyarrow.parquet as pq

    return (pq.read_schema(folder / "users.parquet").metadata or {}).get(_DIGEST, b"").decode()


def _digest(about: str, train: Interactions, test: Interactions) -> str:
    found = hashlib.sha256(about.encode())
    for part in (train, test):
        found.update(json.dumps(part.notes).encode())
        columns = (part.indptr, part.items, part.values, part.times, part.ratings, part.positions)
        for array in (train.names, train.item_names, train.session_users, *columns):
            found.update(b"none" if array is None else str(array.dtype).encode() + array.tobytes())
    return found.hexdigest()


def _load_parts(folder: Path) -> tuple[Interactions, Interactions, tuple[str, ...], Any, Any]:
    """Read what `_save` wrote: both parts, the notes, whether repeats are held out, and the validation's digest."""
    from truerank.formats.arrow_tables import open_source
    from truerank.formats.columns import INTERACTIONS
    from truerank.formats.ids import as_names

    paths = {name: folder / f"{name}.parquet" for name in _FILES}
    for path in paths.values():
        if not os.path.isfile(path):  # noqa: PTH113 - unlike Path.is_file, it accepts any text
            raise InputError(f"{str(folder)!r} was not written by Split.save: there is no {path.name}.")
    tables = {name: open_source(path, INTERACTIONS, {}, None).whole() for name, path in paths.items()}
    extra = _metadata(tables["users"], paths["users"])
    named, notes = (extra.get(name) if isinstance(extra, dict) else None for name in ("named", "notes"))
    if not isinstance(named, dict) or set(named) != {"user", "item"}:
        raise InputError(f"{str(folder)!r} was not written by Split.save.")
    digests = {(table.schema.metadata or {}).get(_DIGEST) for table in tables.values()}
    if len(digests) > 1:
        raise InputError(f"{str(folder)!r} holds files of different splits: saving was interrupted; save it again.")
    names = {role: _names(tables[f"{role}s"], role, paths[f"{role}s"]) for role in ("user", "item")}
    train, test = (_from_table(tables[name], names, named, paths[name]) for name in ("train", "test"))
    if "session_user" in tables["users"].column_names:
        owners = as_names(_column(tables["users"], "session_user", paths["users"]), "user")
        train, test = (replace(part, session_users=owners) for part in (train, test))
    return train, test, _texts(notes, paths["users"]), extra.get("repeats", "drop"), extra.get("validation")


def _to_table(part: Interactions) -> pa.Table:
    import pyarrow as pa

    columns = {"user": part.names[part.users], "item": part.item_names[part.items], "weight": part.values}
    extra = {"time": part.times, "rating": part.ratings, "position": part.positions}
    columns |= {name: array for name, array in extra.items() if array is not None}
    return pa.table(columns).replace_schema_metadata({"truerank": json.dumps(part.notes)})


def _from_table(table: pa.Table, names: Mapping[str, pa.Array], named: Mapping[str, Any], path: Path) -> Interactions:
    import scipy.sparse as sp

    from truerank.data.event_files import grouped
    from truerank.formats.ids import as_names

    optional = [name for name in ("time", "rating", "position") if name in table.column_names]
    columns = {name: _column(table, name, path) for name in ("user", "item", "weight", *optional)}
    user, item = (_numbers(columns.pop(role), names[role], role, path) for role in ("user", "item"))
    shape = (len(names["user"]), len(names["item"]))
    order, indptr, indices = grouped(user, item, shape)
    column = {name: _plain(array, name, path)[order] for name, array in columns.items()}
    ids = {role: as_names(names[role], role) if named[role] else None for role in names}
    weights = column["weight"].astype(float_type(column["weight"].dtype), copy=False)
    return Interactions(
        sp.csr_array((weights, indices, indptr), shape=shape),
        ids["user"],
        ids["item"],
        times=column.get("time"),
        ratings=column.get("rating"),
        positions=column.get("position"),
        notes=_texts(_metadata(table, path), path),
    )


def _column(table: pa.Table, name: str, path: Path) -> pa.Array:
    """Return a column without missing values."""
    if table.column_names.count(name) != 1 or table[name].null_count:
        raise InputError(f"{str(path)!r} was not written by Split.save: it must have one complete column {name!r}.")
    return table[name].combine_chunks()


def _names(table: pa.Table, role: str, path: Path) -> pa.Array:
    """Return the distinct names of all users or items."""
    import pyarrow as pa

    from truerank.formats.ids import id_column

    names = id_column(pa.chunked_array([_column(table, role, path)]), role, lambda row: f"{str(path)!r}, row {row + 1}")
    if len(names.unique()) < len(names):
        raise InputError(f"{str(path)!r} must name each {role} once.")
    return names.combine_chunks()


def _numbers(ids: pa.Array, names: pa.Array, role: str, path: Path) -> Ints:
    """Return the positions of ids among the names."""
    import pyarrow.compute as pc

    from truerank.core.checks import shown
    from truerank.formats.ids import is_text

    if not (ids.type == names.type or (is_text(ids.type) and is_text(names.type))):
        raise InputError(f"{str(path)!r} has {role}s of type {ids.type}, but {role}s.parquet has type {names.type}.")
    positions = pc.index_in(ids.cast(names.type), value_set=names)
    if positions.null_count:
        row = pc.index(positions.is_null(), True).as_py()
        raise InputError(f"{str(path)!r}, row {row + 1}: {role} {shown(ids[row].as_py())} is not in {role}s.parquet.")
    return positions.to_numpy().astype(np.int64)


def _plain(column: pa.Array, name: str, path: Path) -> AnyArray:
    """Return numbers, or times."""
    array: AnyArray = column.to_numpy(zero_copy_only=False)
    if array.dtype.kind not in {"time": "iufM", "position": "iu"}.get(name, "iuf"):
        raise InputError(f"{str(path)!r} must have numbers in the column {name!r}, got {column.type}.")
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        raise InputError(f"{str(path)!r} must have finite numbers in the column {name!r}.")
    return array


def _metadata(table: pa.Table, path: Path) -> Any:
    try:
        return json.loads((table.schema.metadata or {})[b"truerank"])
    except (KeyError, ValueError, RecursionError) as error:
        raise InputError(f"{str(path)!r} was not written by Split.save.") from error


def _texts(notes: Any, path: Path) -> tuple[str, ...]:
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise InputError(f"{str(path)!r} was not written by Split.save: its notes must be strings.")
    return tuple(notes)
