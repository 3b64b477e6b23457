"""`ScoreStore`: scores of user-item pairs in a database, so that none is paid for twice, and scorers that use it."""

from __future__ import annotations

import errno
import hashlib
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import RLock
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import ArrayLike

from truerank.core.checks import AnyArray, Floats, InputError, Ints, as_floats, as_ids, as_path, check_kind, first_true
from truerank.core.threads import progress_bar
from truerank.data.interactions import Interactions
from truerank.scoring.calls import failed
from truerank.scoring.scorers import FunctionScorer, Scorer

if TYPE_CHECKING:
    from tqdm import tqdm

_APPLICATION = 0x74726E6B  # "trnk", in the header of the file
_VERSION = 1
_SCHEMA = """
CREATE TABLE models (model INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, catalogue TEXT);
CREATE TABLE scores (model INTEGER NOT NULL REFERENCES models, user NOT NULL, item NOT NULL, score REAL NOT NULL,
                     PRIMARY KEY (model, user, item)) WITHOUT ROWID;
CREATE VIEW named_scores AS SELECT name AS model, user, item, score FROM scores JOIN models USING (model);
"""
_STAMPS = ("PRAGMA application_id", "PRAGMA user_version", "SELECT count(*) FROM sqlite_master")
_PATIENCE = 60.0  # seconds to wait for another process that writes
_MANY, _TIMES = 1_000, 4
"""All scores of a user are read if they are at most this many, or at most this many times those asked for."""


class ScoreStore:
    """Scores of user-item pairs by a model, in an SQLite database that survives exceptions and killed processes.

    `truerank.rank_sampled` and `truerank.rank` use one with ``store=``. In your own loops, look scores up with
    `scores` and keep new ones with `add`, which has written them to disk when it returns. Several processes may use the
    same file; the first score of a pair is kept.

    Parameters
    ----------
    path : path
        A file, created unless it exists.
    model : str
        Name of the model. A file may hold scores of several; give a changed model, or a changed prompt, a new name.

    Notes
    -----
    Any tool that reads SQLite can read the file: the view `named_scores` has the columns model, user, item and score.
    It joins the tables `models` (model, a number; name; catalogue, a digest of the items that were ranked) and
    `scores` (model, user, item, score; the first three are the primary key). Ids are integers or text, as in the data.

    Examples
    --------
    >>> import pathlib, tempfile, truerank as tr
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "scores.db"
    >>> with tr.ScoreStore(path, "prompt 1") as store:
    ...     _ = store.add(["ann", "ann"], ["A", "B"], [0.9, 0.2])
    >>> with tr.ScoreStore(path, "prompt 1") as store:
    ...     store.scores(["ann", "bob"], ["B", "B"]).tolist(), len(store)
    ([0.2, nan], 2)
    """

    def __init__(self, path: str | Path, model: str) -> None:
        check_kind("model", model, str)
        self.path, self.model = as_path(path), model
        from truerank.formats.writing import check_writable

        check_writable(self.path)
        self._lock, self._number = RLock(), None
        with _worded(self.path):
            self._database = _opened(self.path)
            try:
                self._number = self._found()
            except BaseException:
                self._database.close()
                raise

    def __repr__(self) -> str:
        return f"ScoreStore({str(self.path)!r}, {self.model!r})"

    def __len__(self) -> int:
        """Return how many pairs of this model have scores."""
        count = "SELECT count(*) FROM scores WHERE model = ?"
        with self._lock, _worded(self.path):
            return int(self._database.execute(count, (self._number,)).fetchone()[0])

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Close the file."""
        with self._lock, _worded(self.path):
            self._database.close()

    @property
    def models(self) -> tuple[str, ...]:
        """Names of all models in the file."""
        with self._lock, _worded(self.path):
            return tuple(name for (name,) in self._database.execute("SELECT name FROM models ORDER BY model"))

    def scores(self, users: ArrayLike, items: ArrayLike) -> Floats:
        """Return the score of each pair of ids, NaN where there is none."""
        users, items = _pairs(users, items)
        starts = [0, *(np.flatnonzero(users[1:] != users[:-1]) + 1).tolist(), users.size]
        names, own = users[starts[:-1]].tolist() if users.size else [], items.tolist()
        found: list[float | None] = []
        with self._lock, _worded(self.path):
            for user, start, stop in zip(names, starts[:-1], starts[1:], strict=False):
                found += self._of_user(user, own[start:stop])
        try:
            return np.array(found, dtype=np.float64)
        except ValueError as error:
            raise _damaged(self.path, "a score is no number") from error

    def add(self, users: ArrayLike, items: ArrayLike, scores: ArrayLike) -> Floats:
        """Keep the score of each pair of ids, unless it has one already; return the scores that are now stored."""
        users, items = _pairs(users, items)
        values = as_floats("scores", scores)
        if values.shape != users.shape:
            raise InputError(f"`scores` must have one score per pair ({users.size}), got shape {values.shape}.")
        if (at := first_true(~np.isfinite(values))) is not None:
            raise InputError(f"`scores` must be finite, got {values[at]} at position {at}.")
        insert = "INSERT OR IGNORE INTO scores VALUES (?, ?, ?, ?)"
        with self._lock, _worded(self.path), self._transaction():
            model, before = self._made(), self._database.total_changes
            rows = zip([model] * users.size, users.tolist(), items.tolist(), values.tolist(), strict=True)
            self._database.executemany(insert, rows)
            n_new = self._database.total_changes - before
        return values if n_new == values.size else self.scores(users, items)

    def check_catalogue(self, user_ids: AnyArray | int, item_ids: AnyArray | int) -> None:
        """Refuse items other than those that this model's scores are about; ints are numbers of unnamed ones."""
        found = _digest(user_ids, item_ids)
        with self._lock, _worded(self.path), self._transaction():
            model = self._made()
            update = "UPDATE models SET catalogue = ? WHERE model = ? AND catalogue IS NULL"
            self._database.execute(update, (found, model))
            (known,) = self._database.execute("SELECT catalogue FROM models WHERE model = ?", (model,)).fetchone()
        if known != found:
            raise InputError(
                f"{str(self.path)!r} holds scores of {self.model!r} for another catalogue ({known}, not {found}); "
                "give another store, or another name for the model."
            )

    def _of_user(self, user: Any, items: list[Any]) -> Iterator[float | None]:
        """Return the scores of one user: all are read, unless they are many more than those asked for."""
        most = _TIMES * len(items) + _MANY
        select = "SELECT item, score FROM scores WHERE model = ? AND user = ? LIMIT ?"
        known = self._database.execute(select, (self._number, user, most)).fetchall()
        if len(known) == most:
            one_by_one = (
                "SELECT item, score FROM json_each(?) CROSS JOIN scores ON model = ? AND user = ? AND item = value"
            )
            asked = json.dumps(items, ensure_ascii=False)
            known = self._database.execute(one_by_one, (asked, self._number, user)).fetchall()
        return map(dict(known).get, items)

    def _found(self) -> int | None:
        row = self._database.execute("SELECT model FROM models WHERE name = ?", (self.model,)).fetchone()
        return None if row is None else int(row[0])

    def _made(self) -> int:
        """Return the number of the model, within a transaction that adds it if needed."""
        if self._number is None:
            self._database.execute("INSERT OR IGNORE INTO models (name) VALUES (?)", (self.model,))
            self._number = self._found()
        assert self._number is not None
        return self._number

    @contextmanager
    def _transaction(self) -> Iterator[None]:
        number = self._number
        self._database.execute("BEGIN IMMEDIATE")
        try:
            yield
            self._database.execute("COMMIT")
        except BaseException:
            self._number = number
            if self._database.in_transaction:
                self._database.execute("ROLLBACK")
            raise


def _opened(path: Path) -> sqlite3.Connection:
    """Return the database, with its tables."""
    database = sqlite3.connect(path, timeout=_PATIENCE, isolation_level=None, check_same_thread=False)
    try:
        database.execute("BEGIN")  # so that what is seen is of one moment
        ready = _is_ready(database, path)
        database.execute("COMMIT")
        if not ready:
            _use_write_ahead_log(database)
            database.execute("BEGIN IMMEDIATE")
            if not _is_ready(database, path):  # unless another process was faster
                _make_tables(database)
            database.execute("COMMIT")
        # a commit survives the process; if the power fails, the last seconds may be lost, but nothing before them
        database.execute("PRAGMA synchronous = NORMAL")
    except BaseException:
        database.close()
        raise
    return database


def _is_ready(database: sqlite3.Connection, path: Path) -> bool:
    """Whether the tables exist; a database of something else is refused and left unchanged."""
    (application, version, n_tables) = (database.execute(each).fetchone()[0] for each in _STAMPS)
    if (application, version) == (_APPLICATION, _VERSION):
        return True
    if n_tables:
        raise InputError(f"{str(path)!r} is a database, but not a store of scores; give another path.")
    return False


def _make_tables(database: sqlite3.Connection) -> None:
    for statement in filter(str.strip, _SCHEMA.split(";")):
        database.execute(statement)
    database.execute(f"PRAGMA application_id = {_APPLICATION}")
    database.execute(f"PRAGMA user_version = {_VERSION}")


def _use_write_ahead_log(database: sqlite3.Connection) -> None:
    """Switch to the write-ahead log; SQLite itself does not wait for another process that does the same."""
    for left in range(int(_PATIENCE * 20), -1, -1):
        try:
            database.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if not left or error.sqlite_errorcode & 0xFF != sqlite3.SQLITE_BUSY:
                raise
            time.sleep(0.05)


@contextmanager
def _worded(path: Path) -> Iterator[None]:
    """Turn errors of the database into errors that name the file and say what is wrong."""
    try:
        yield
    except OverflowError as error:
        raise InputError("ids that are numbers must be below 2**63 to be stored.") from error
    except UnicodeDecodeError as error:  # SQLite's own message quotes what is damaged
        raise _damaged(path, "text is not in UTF-8") from error
    except sqlite3.ProgrammingError as error:
        raise InputError(f"the store {str(path)!r} is closed.") from error
    except sqlite3.Error as error:
        kind, reason = getattr(error, "sqlite_errorcode", 0) & 0xFF, str(error)
        if kind == sqlite3.SQLITE_FULL:
            raise OSError(errno.ENOSPC, "there is no space left for scores", str(path)) from error
        if kind in (sqlite3.SQLITE_NOTADB, sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_ERROR):
            raise _damaged(path, reason) from error
        if kind == sqlite3.SQLITE_BUSY:
            raise OSError(errno.EBUSY, f"another process has locked it for {_PATIENCE:g} s", str(path)) from error
        raise OSError(errno.EIO, f"the store can't be used ({reason})", str(path)) from error


def _damaged(path: Path, reason: str) -> InputError:
    return InputError(f"{str(path)!r} is not a store of scores, or it is damaged ({reason}).")


def _pairs(users: ArrayLike, items: ArrayLike) -> tuple[AnyArray, AnyArray]:
    """Return the ids of users and items, one each per pair."""
    checked = as_ids("users", users), as_ids("items", items)
    if checked[0].size != checked[1].size:
        raise InputError(f"`users` and `items` must have the same length, got {checked[0].size} and {checked[1].size}.")
    return checked


def _digest(user_ids: AnyArray | int, item_ids: AnyArray | int) -> str:
    """Return the number of items and a hash of their ids; for users without names, their number is hashed too."""
    known: list[Any] = [ids if isinstance(ids, int) else sorted(ids.tolist()) for ids in (item_ids,)]
    known += [user_ids] if isinstance(user_ids, int) else []
    digest = hashlib.sha256(json.dumps(known).encode()).hexdigest()[:16]
    return f"{item_ids if isinstance(item_ids, int) else item_ids.size} items, {digest}"


AnyStore = ScoreStore | str | Path


def stores_of(store: AnyStore, scorer: Any) -> list[ScoreStore]:
    """Return a store for each of one or more scorers, named by the key in a dict, or by the function or class.

    Raises
    ------
    InputError
        If the file holds scores of other models only, unless the name was given: it may be the wrong file.
    """
    if isinstance(scorer, Mapping):
        if isinstance(store, ScoreStore):
            raise InputError(
                "give the path of the `store` for several scorers: their names are the names of the models."
            )
        return [ScoreStore(store, str(name)) for name in scorer]
    if isinstance(store, ScoreStore):
        return [store]
    found = ScoreStore(store, _name_of(scorer))
    if (others := found.models) and found.model not in others:
        found.close()
        raise InputError(
            f"{str(store)!r} holds scores of {', '.join(map(repr, others))}, not of {found.model!r}; give another "
            f"file, or tr.ScoreStore({str(store)!r}, NAME) with the name of the model."
        )
    return [found]


def _name_of(scorer: Any) -> str:
    function = scorer.function if isinstance(scorer, FunctionScorer) else scorer
    return str(getattr(function, "__name__", type(function).__name__))


class PaidScorer(Scorer):
    """A scorer that is asked only for pairs whose score isn't stored, once for each, and shows what it spends.

    Parameters
    ----------
    scorer : Scorer
        Numbered as the data.
    user_ids, item_ids : arrays
        Names of the users and items of the data, by which scores are stored.
    store : ScoreStore, optional
    bar : tqdm, optional
        Counts the scores.
    """

    def __init__(
        self,
        scorer: Scorer,
        user_ids: AnyArray,
        item_ids: AnyArray,
        store: ScoreStore | None = None,
        bar: tqdm[Any] | None = None,
    ) -> None:
        self.scorer, self.store = scorer, store
        self.names_of_users, self.names_of_items = user_ids, item_ids
        self.n_users, self.n_items, self.batch_size = user_ids.size, item_ids.size, scorer.batch_size
        self.takes_pairs = True  # only what is asked for is paid
        self.spent = _Spent(bar, scorer.cost_per_score)

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        width = self._width()
        return self.pairs(np.repeat(users, width), np.tile(np.arange(width), users.size)).reshape(users.size, width)

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each pair; those that are not stored are asked for."""
        keys = users.astype(np.int64) * self._width() + items
        distinct, back = np.unique(keys, return_inverse=True)
        each = np.divmod(distinct, self._width())
        if self.store is None:
            scores = np.full(distinct.size, np.nan)
        else:
            scores = self.store.scores(self.names_of_users[each[0]], self.names_of_items[each[1]])
        missing = np.flatnonzero(np.isnan(scores))
        self.spent.found(scores.size - missing.size)
        if missing.size:
            self._ask(each[0][missing], each[1][missing], missing, scores)
        return scores[back]

    def expect(self, number: int) -> None:
        """Show the time that about this many more scores take."""
        if self.spent.bar is not None:
            self.spent.bar.total = self.spent.bar.n + number

    def _ask(self, users: Ints, items: Ints, places: Ints, scores: Floats) -> None:
        """Ask for pairs, keep each score as soon as it arrives, and put it into its place."""

        def keep(part: Ints, new: AnyArray) -> None:
            scores[places[part]] = self._kept(users[part], items[part], new)
            self.spent.add(users[part])

        try:
            failures = self.scorer.ask(users, items, keep)
            if failures:
                names = self.names_of_users[users], self.names_of_items[items]
                raise failed(failures, *names, "the same call asks for them again.")
        except BaseException as error:
            error.add_note(self._note())
            raise

    def _kept(self, users: Ints, items: Ints, scores: AnyArray) -> AnyArray:
        """Store finite scores; others are refused by whoever asked for them."""
        if self.store is None:
            return scores
        values, fine = scores.astype(np.float64), np.isfinite(scores)
        names = self.names_of_users[users[fine]], self.names_of_items[items[fine]]
        values[fine] = self.store.add(*names, values[fine])
        return values

    def _note(self) -> str:
        if self.store is None:
            return f"{self.spent.n_scores} scores are lost; give `store` to keep them."
        return (
            f"{len(self.store)} scores of {self.store.model!r} are kept in {str(self.store.path)!r}, "
            f"{self.spent.n_scores} of them from this call; the same call asks only for what is missing."
        )


class _Spent:
    """Counts scores, calls and money, and shows them."""

    def __init__(self, bar: tqdm[Any] | None, cost: float | None) -> None:
        self.bar, self.cost, self.lock = bar, cost, RLock()
        self.n_scores, self.n_calls, self.users, self.start = 0, 0, set[int](), time.monotonic()

    def found(self, number: int) -> None:
        """Count scores that were stored: they are done, but say nothing about how long the others take."""
        if self.bar is not None:
            self.bar.initial += number
            self.bar.update(number)

    def add(self, users: Ints) -> None:
        """Count the scores of one call."""
        with self.lock:
            self.n_scores, self.n_calls = self.n_scores + users.size, self.n_calls + 1
            if self.bar is not None:
                self.users.update(users.tolist())
                self.bar.set_postfix_str(str(self), refresh=False)
                self.bar.update(users.size)

    def __str__(self) -> str:
        rate = self.n_calls / max(time.monotonic() - self.start, 1e-9)
        money = "" if self.cost is None else f", {self.cost * self.n_scores:,.2f} spent"
        return f"{len(self.users):,} users, {rate:,.1f} calls/s{money}"


@contextmanager
def paying(
    given: Any,
    scorers: Sequence[Scorer],
    test: Interactions,
    store: AnyStore | None,
    progress: bool,
    total: int | None,
    catalogue: Interactions | None = None,
) -> Iterator[tuple[Sequence[Scorer], bool]]:
    """Yield scorers that use the store and show what they spend, and whether other progress remains to be shown.

    Parameters
    ----------
    given : scorer, or dict of name to scorer
        As the user gave them.
    scorers : sequence of Scorer
        The same, numbered as `test`.
    test : Interactions
        Knows the names of users and items.
    store : ScoreStore or path, optional
    progress : bool
        Whether to show scores, users, calls and money, which is done for functions of pairs and if there is a store.
    total : int, optional
        Scores that each scorer is expected to be asked for, if that is known.
    catalogue : Interactions, optional
        Has the names of all items, if `test` has only some.
    """
    stores: Sequence[ScoreStore | None] = [None] * len(scorers) if store is None else stores_of(store, given)
    whole = catalogue or test
    ids = [n if own is None else own for own, n in zip((whole.user_ids, whole.item_ids), whole.shape, strict=True)]
    shown = progress and any(one.takes_pairs or store is not None for one in scorers)
    with ExitStack() as stack:
        opened = [each for each in stores if each is not None]
        for each in opened:
            if each is not store:
                stack.enter_context(each)
        for each in opened:
            each.check_catalogue(*ids)
        expected = None if total is None else total * len(scorers)
        bar = progress_bar("scores", True, total=expected, unit=" scores") if shown else None
        if bar is not None:
            stack.enter_context(bar)
            bar = None if bar.disable else bar
        yield [_paid(one, each, test, bar) for one, each in zip(scorers, stores, strict=True)], progress and not shown


def _paid(scorer: Scorer, store: ScoreStore | None, test: Interactions, bar: tqdm[Any] | None) -> Scorer:
    if store is None and (bar is None or not scorer.takes_pairs):
        return scorer
    return PaidScorer(scorer, test.names, test.item_names, store, bar)
