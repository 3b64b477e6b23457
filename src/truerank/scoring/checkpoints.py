"""Long jobs in parts that are kept in a directory, so that a killed job resumes where it was."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import is_dataclass
from pathlib import Path
from types import CodeType, FunctionType
from typing import Any

import numpy as np

from truerank.core.checks import AnyArray, InputError, Ints, as_path, is_sparse
from truerank.formats.writing import make_folder, replacing, write_text
from truerank.kernels.scores import Best, users_per_block
from truerank.kernels.user_blocks import Counts, Lists, Progress
from truerank.scoring.scorers import Scorer

_MOST_PARTS = 256
_BYTES = 1 << 24  # hashed at a time


class Checkpointed(Scorer):
    """A scorer whose counts and best items are found for some users at a time and written to a directory.

    Existing parts are not computed again. Every file is complete: it gets its name only once it is on disk.

    Parameters
    ----------
    scorer : Scorer
    folder : path
        Created unless it exists. It may be deleted when the job is done.
    """

    def __init__(self, scorer: Scorer, folder: str | Path) -> None:
        self.scorer, self.folder, self._n_counts = scorer, as_path(folder), 0
        self.n_users, self.n_items, self.batch_size = scorer.n_users, scorer.n_items, scorer.batch_size
        self.concurrent, self.takes_pairs = scorer.concurrent, scorer.takes_pairs
        make_folder(self.folder)

    def scores(self, users: Ints) -> AnyArray:
        """Return the scores of these users for all items."""
        return self.scorer.scores(users)

    def pairs(self, users: Ints, items: Ints) -> AnyArray:
        """Return the score of each user-item pair."""
        return self.scorer.pairs(users, items)

    def count(self, train: Lists, test: Lists, *, threads: int = 1, progress: Progress | None = None) -> Counts:
        """Count for some users at a time."""
        return self._counted("count", self.scorer.count, train, test, threads, progress)

    def count_top(
        self, train: Lists, test: Lists, depth: int, *, threads: int = 1, progress: Progress | None = None
    ) -> Counts:
        """Count down to a depth, for some users at a time."""

        def count(train: Lists, test: Lists, **how: Any) -> Counts:
            return self.scorer.count_top(train, test, depth, **how)

        return self._counted(f"top-{depth}", count, train, test, threads, progress)

    def _counted(
        self,
        what: str,
        count: Callable[..., Counts],
        train: Lists,
        test: Lists,
        threads: int,
        progress: Progress | None,
    ) -> Counts:
        everyone = np.flatnonzero(np.diff(test.indptr))
        if not everyone.size:
            return count(train, test)
        job, self._n_counts = f"{what}-{self._n_counts}", self._n_counts + 1
        self._check_inputs(job, train=train, test=test)

        def compute(users: Ints) -> Counts:
            low, high = (int(test.indptr[end]) for end in (users[0], users[-1] + 1))
            part = Lists(np.clip(test.indptr, low, high) - low, test.indices[low:high])
            counts = count(train, part, threads=threads, progress=progress)
            return counts._replace(order=counts.order + low)

        return Counts(*self._joined(job, everyone, compute, Counts._fields, progress))

    def best(self, users: Ints, excluded: Lists, k: int, *, threads: int = 1, progress: Progress | None = None) -> Best:
        """Find the best items of some users at a time."""
        if not users.size:
            return self.scorer.best(users, excluded, k)
        self._check_inputs(f"best-{k}", users=users, train=excluded)

        def compute(some: Ints) -> Best:
            best = self.scorer.best(some, excluded, k, threads=threads, progress=progress)
            unused = np.arange(k) >= best.found[:, None]
            best.items[unused] = best.scores[unused] = 0  # so that files don't depend on what was in memory
            return best

        return Best(*self._joined(f"best-{k}", users, compute, Best._fields, progress))

    def _joined(
        self,
        job: str,
        everyone: Ints,
        compute: Callable[[Ints], Counts | Best],
        names: Sequence[str],
        progress: Progress | None,
    ) -> list[AnyArray]:
        """Return the arrays of all parts; missing parts are computed and kept."""
        size = self._users_per_part(everyone.size)
        found = []
        for number, start in enumerate(range(0, everyone.size, size)):
            users, path = everyone[start : start + size], self.folder / f"{job}-{number:06}.npz"
            if path.exists():
                found.append(_loaded(path, names))
                if progress is not None:
                    progress(users.size)
            else:
                found.append(list(compute(users)))
                arrays: dict[str, Any] = dict(zip(names, found[-1], strict=True))
                with replacing(path) as (file,):
                    np.savez(file, **arrays)
        return [np.concatenate(parts) for parts in zip(*found, strict=True)]

    def _users_per_part(self, n_users: int) -> int:
        block = self.batch_size or users_per_block(self._width())
        return max(block, -(-n_users // _MOST_PARTS))

    def _check_inputs(self, job: str, **inputs: Any) -> None:
        """Record the inputs of a job, or refuse to resume a job with other inputs."""
        path = self.folder / f"{job}.json"
        digests = {name: digest(value) for name, value in {"scorer": self.scorer, **inputs}.items()}
        if not path.exists():
            write_text(path, json.dumps(digests))
            return
        try:
            known = json.loads(path.read_text())
        except ValueError:
            known = {}
        if others := [f"`{name}`" for name, value in digests.items() if known.get(name) != value]:
            raise InputError(
                f"the checkpoint {str(self.folder)!r} was begun with another {', '.join(others)}; finish that job with "
                "what it was begun with, or delete the directory."
            )


def _loaded(path: Path, names: Sequence[str]) -> list[AnyArray]:
    try:
        with path.open("rb") as file, np.load(file) as arrays:
            return [arrays[name] for name in names]
    except (ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{str(path)!r} is damaged; delete it, and it is computed again.") from error


def digest(value: Any) -> str:
    """Return a hash of the arrays in a scorer, in lists of items, or in their parts.

    For functions it covers the code, and for other objects the type: their contents could change from call to call.

    Examples
    --------
    >>> digest(np.zeros(2)) == digest(np.zeros(2)), digest(np.zeros(2)) == digest(np.zeros(3))
    (True, False)
    """
    found = hashlib.blake2b(digest_size=16)
    for part in _bytes(value):
        found.update(part)
    return found.hexdigest()


def _bytes(value: Any) -> Iterator[bytes]:
    yield type(value).__qualname__.encode()
    if isinstance(value, np.ndarray):
        yield f"{value.dtype.str}{value.shape}".encode()
        yield from _array_bytes(value)
    elif isinstance(value, str | bytes | bool | int | float):
        yield repr(value).encode()
    else:
        for part in _parts(value):
            yield from _bytes(part)


def _array_bytes(array: AnyArray) -> Iterator[bytes]:
    if array.dtype.hasobject:
        yield repr(array.tolist()).encode()
        return
    rows = max(_BYTES // max(array[:1].nbytes, 1), 1) if array.ndim else 1
    for start in range(0, len(array) if array.ndim else 1, rows):
        yield np.ascontiguousarray(array[start : start + rows] if array.ndim else array).tobytes()


def _parts(value: Any) -> Sequence[Any]:
    """Return what distinguishes an object from others of its type, as far as that can be known."""
    if isinstance(value, tuple | list):
        return value
    if is_sparse(value):
        return [getattr(value, name, None) for name in ("indptr", "indices", "data")]
    if isinstance(value, FunctionType):
        return [value.__qualname__, value.__code__]
    if isinstance(value, CodeType):
        return [value.co_code, value.co_names, value.co_consts]
    if isinstance(value, Scorer) or is_dataclass(value):
        return [own for own in vars(value).values() if _is_fixed(own)]
    return []


def _is_fixed(value: Any) -> bool:
    """Whether a part of a scorer never changes, unlike a counter of its calls."""
    return isinstance(value, np.ndarray | Scorer | FunctionType) or is_sparse(value) or is_dataclass(value)


def checkpointed(scorers: Sequence[Scorer], folder: str | Path | None) -> Sequence[Scorer]:
    """Return scorers that keep their parts in the folder, if there is one; several scorers have a subfolder each."""
    if folder is None:
        return scorers
    folders = [as_path(folder) / str(number) for number in range(len(scorers))] if len(scorers) > 1 else [folder]
    return [Checkpointed(scorer, own) for scorer, own in zip(scorers, folders, strict=True)]
