"""MovieLens from its publisher's site; downloads are resumed and verified."""

from __future__ import annotations

import hashlib
import os
import time
import urllib.error
import urllib.request
from http.client import HTTPException
from pathlib import Path
from typing import Any, BinaryIO

from truerank.core.checks import InputError
from truerank.core.threads import progress_bar
from truerank.formats.writing import make_folder

SITE = "https://files.grouplens.org/datasets/movielens"

# as GroupLens publishes them in the .md5 file beside each zip file
CHECKSUMS = {
    "movielens-100k": ("ml-100k.zip", "0e33842e24a9c977be4e0107933c0723"),
    "movielens-1m": ("ml-1m.zip", "c4d9eecfca2ab87c1945afe126590906"),
    "movielens-10m": ("ml-10m.zip", "ce571fd55effeba0271552578f2648bd"),
    "movielens-20m": ("ml-20m.zip", "cd245b17a1ae2cc31bb14903e1204af3"),
    "movielens-25m": ("ml-25m.zip", "6b51fb2759a8657d3bfcbfc42b592ada"),
    "movielens-32m": ("ml-32m.zip", "d472be332d4daa821edc399621853b57"),
}
_BLOCK = 1 << 16
_SILENT, _LONGEST = 30, 3600
"""Seconds without a byte, and in total, after which a download is stopped; the next attempt resumes it."""
_RESUMED = "the next attempt resumes it"
_LARGEST = 1 << 30
"""Most bytes that a file may have; those of GroupLens have at most a quarter of that."""


def download(name: str, folder: str | Path, *, site: str = SITE, progress: bool = False) -> Path:
    """Fetch a data set into a folder, which is created if needed, and return the path of its zip file.

    An interrupted download is kept as `.part` and resumed the next time; a download is stopped after an hour, or at
    1 GiB. An existing file is verified and not fetched again. A symbolic link is not followed.

    Parameters
    ----------
    name : str
        For instance "movielens-1m".
    folder : path
        Where to put it.
    site : str
        Where to fetch it from, for example a mirror.
    progress : bool
        Whether to show a progress bar, on a terminal only.
    """
    file, checksum = CHECKSUMS[name]
    path = Path(folder) / file
    if path.is_file():
        if _md5(path) != checksum:
            raise InputError(f"{str(path)!r} is not the file that GroupLens publishes; remove it to download it again.")
        return path
    make_folder(path.parent)
    part = path.with_name(f"{file}.part")
    try:
        _fetch(f"{site}/{file}", part, progress)
    except InputError:
        raise
    except (OSError, HTTPException, ValueError) as error:
        reason = getattr(error, "reason", None) or error
        raise InputError(
            f"can't fetch {site}/{file} ({reason}); try again later, or download {file} on another machine "
            f"and put it into {str(folder)!r}."
        ) from error
    if _md5(part) != checksum:
        part.unlink()
        raise InputError(f"{site}/{file} is not what GroupLens publishes (its md5 differs); the download was removed.")
    return part.rename(path)


def _fetch(url: str, part: Path, progress: bool) -> None:
    """Append the missing bytes to the partial file."""
    done = part.stat().st_size if part.is_file() else 0
    request = urllib.request.Request(url, headers={"Range": f"bytes={done}-"} if done else {})
    try:
        answer = urllib.request.urlopen(request, timeout=_SILENT)
    except urllib.error.HTTPError as error:
        error.close()
        # the server has no more bytes: the partial file is complete, or it is not the same file
        if error.code == 416 and done:
            return
        raise
    with answer:
        _write(answer, part, done if answer.status == 206 else 0, progress)


def _write(answer: Any, part: Path, done: int, progress: bool) -> None:
    size = int(answer.headers.get("Content-Length") or 0)
    total = done + size or None
    _check_size(part, total or 0)
    bar = progress_bar(part.stem, progress, total=total, initial=done, unit="B", unit_scale=True, delay=0)
    end = time.monotonic() + _LONGEST
    with bar, _opened(part, append=bool(done)) as file:
        # not `read`, which would wait for a whole block, however slowly it arrives
        while block := answer.read1(_BLOCK):
            file.write(block)
            bar.update(len(block))
            _check_size(part, file.tell())
            if time.monotonic() > end:
                raise TimeoutError(f"stopped after {_LONGEST} seconds at {file.tell()} bytes; {_RESUMED}")
        file.flush()
        os.fsync(file.fileno())
    if total is not None and part.stat().st_size < total:
        raise ConnectionError(f"the connection broke at {part.stat().st_size} of {total} bytes; {_RESUMED}")


def _opened(part: Path, *, append: bool) -> BinaryIO:
    """Open the partial file for writing; a symbolic link could lead anywhere and is refused."""
    flags = os.O_WRONLY | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_BINARY", 0)
    try:
        file = os.open(part, flags | (os.O_APPEND if append else os.O_TRUNC), 0o666)
    except OSError as error:
        if not part.is_symlink():
            raise
        raise InputError(f"{str(part)!r} is a symbolic link, which is not followed; remove it.") from error
    return os.fdopen(file, "ab" if append else "wb")


def _check_size(part: Path, size: int) -> None:
    if size > _LARGEST:
        part.unlink(missing_ok=True)
        raise InputError(f"the server sends over {_LARGEST:,} bytes, more than any MovieLens file; nothing was kept.")


def _md5(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.md5(usedforsecurity=False)).hexdigest()
