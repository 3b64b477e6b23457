"""Every output file: checked before the work, whole or untouched after it."""

import errno
import io
import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest

import truerank as tr
from truerank.formats.writing import check_writable, check_writable_folder, replacing, write_columns, write_text


def interrupted(*paths: Path) -> None:
    with replacing(*paths) as files:
        files[0].write(b"half of it")
        raise KeyboardInterrupt


def test_a_failure_leaves_the_earlier_file_and_nothing_else(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("earlier")
    with pytest.raises(KeyboardInterrupt):
        interrupted(path)
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_is_replaced_not_changed(tmp_path: Path) -> None:
    path, other_name = tmp_path / "out.csv", tmp_path / "other name of the earlier file"
    path.write_text("earlier")
    other_name.hardlink_to(path)
    write_text(path, "later")
    assert (path.read_text(), other_name.read_text()) == ("later", "earlier")


def test_several_files_change_together(tmp_path: Path) -> None:
    paths = [tmp_path / "a", tmp_path / "b"]
    for path in paths:
        path.write_text("earlier")
    with pytest.raises(KeyboardInterrupt):
        interrupted(*paths)
    assert [path.read_text() for path in paths] == ["earlier", "earlier"]
    with replacing(*paths) as files:
        for file in files:
            file.write(b"later")
    assert [path.read_text() for path in paths] == ["later", "later"]


def test_links_stay_links_and_permissions_stay(tmp_path: Path) -> None:
    target, link = tmp_path / "target.txt", tmp_path / "link.txt"
    target.write_text("earlier")
    target.chmod(0o640)
    link.symlink_to(target)
    write_text(link, "later")
    assert link.is_symlink()
    assert target.read_text() == "later"
    assert stat.S_IMODE(target.stat().st_mode) == 0o640


def test_a_new_file_has_the_usual_permissions(tmp_path: Path) -> None:
    write_text(tmp_path / "ours", "")
    (tmp_path / "usual").write_text("")
    assert (tmp_path / "ours").stat().st_mode == (tmp_path / "usual").stat().st_mode


KILLED = """
import os, signal, sys
from truerank.formats.writing import replacing
with replacing(sys.argv[1]) as (file,):
    file.write(b"half of it")
    file.flush()
    os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_killed_process_leaves_the_earlier_file(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    path.write_text("earlier")
    done = subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.read_text() == "earlier"


def killed_while_writing(path: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, str(path)], check=False)


def test_what_a_killed_process_left_is_removed_when_the_same_file_is_written(tmp_path: Path) -> None:
    path, other = tmp_path / "out.csv", tmp_path / "other.csv"
    for each in (path, path, other):
        killed_while_writing(each)
    assert len(list(tmp_path.iterdir())) == 2, "the second process removed what the first had left"
    write_text(path, "x")
    assert len(list(tmp_path.iterdir())) == 2, "what belongs to the other file stays"
    write_text(other, "y")
    assert sorted(tmp_path.iterdir()) == [other, path]


def test_what_another_process_is_writing_is_not_removed(tmp_path: Path) -> None:
    path = tmp_path / "out.csv"
    with replacing(path) as (first,), replacing(path) as (second,):
        first.write(b"first")
        second.write(b"second")
        write_text(path, "third")
    assert path.read_text() == "first", "the last one to finish"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("name", ["out.csv", "x" * 255])
def test_content_is_on_disk_before_the_file_is_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    path, synced = tmp_path / name, []

    def fsync(file: int) -> None:
        synced.append((os.fstat(file).st_size, path.exists()))

    monkeypatch.setattr(os, "fsync", fsync)
    write_text(path, "content")
    assert synced == [(7, False)]


def test_a_disk_that_fails_when_synced_leaves_the_earlier_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.EIO, "Input/output error")

    path = tmp_path / "out.csv"
    path.write_text("earlier")
    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OSError, match=r"Input/output error: '.*out.csv'"):
        write_text(path, "later")
    assert path.read_text() == "earlier"
    assert list(tmp_path.iterdir()) == [path]


def limit_file_size() -> None:
    import resource

    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))


FULL = """
import sys
import numpy as np, truerank as tr
ranks = tr.Ranks.from_ranks(np.random.default_rng(0).integers(1, 10**6, 10_000), n=10**6)
try:
    ranks.save(sys.argv[1])
except OSError as error:
    print(error.filename)
"""


@pytest.mark.parametrize("name", ["ranks.parquet", "ranks.npz"])
def test_a_full_disk_leaves_the_earlier_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    ranks = tr.Ranks.from_ranks([1, 2], n=5)
    ranks.save(path)
    # a file that may not grow is all that a test can have of a disk that is full
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(path)],
        preexec_fn=limit_file_size,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == str(path)
    assert tr.Ranks.load(path) == ranks
    assert list(tmp_path.iterdir()) == [path]


def test_a_pipe_gets_the_whole_content(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    write_columns(pipe, {"instance": ["ann"], "ap": np.array([0.5])})
    reader.join()
    assert got == [b'"instance","ap"\n"ann",0.5\n'] or got == [b"instance,ap\nann,0.5\n"]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_parquet_fits_through_a_pipe(tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe.parquet", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_bytes()))
    reader.start()
    tr.Ranks.from_ranks([1, 2], n=5).save(pipe)
    reader.join()
    (tmp_path / "copy.parquet").write_bytes(got[0])
    assert pq.read_table(tmp_path / "copy.parquet")["above"].to_pylist() == [[0], [1]]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="a device of Linux")
def test_a_full_device_is_named() -> None:
    with pytest.raises(OSError, match="/dev/full"):
        write_text("/dev/full", "x")


def test_standard_output(capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    write_columns("-", {"a": [1, 2]})
    assert capsysbinary.readouterr().out.split() == [b'"a"', b"1", b"2"]


class Slow(io.RawIOBase):
    """Standard output that takes a few bytes at a time, as unbuffered one may."""

    def __init__(self) -> None:
        self.taken, self.buffer = b"", self

    def write(self, content: object, /) -> int:
        part = bytes(memoryview(content))[:5]  # type: ignore[arg-type]
        self.taken += part
        return len(part)


def test_standard_output_that_takes_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", out := Slow())
    write_text("-", "all of this text")
    assert out.taken == b"all of this text"


def test_standard_output_that_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    with pytest.raises(OSError, match="standard output is closed"):
        write_text("-", "x")


def test_paths_are_checked_before_the_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (tmp_path / "folder.csv").mkdir()
    for path, message in {
        "nowhere/x.csv": "there is no directory '.*nowhere'",
        "file/x.csv": "not a directory",
        "folder.csv": "it is a directory",
        "x.txt": r"must end in .csv, .tsv, .jsonl or .parquet, got '.*x.txt'",
        "x": "must end in",
        "a" * 300 + ".csv": "file name too long",
        "a\0b.csv": "null",
    }.items():
        with pytest.raises(tr.InputError, match=message):
            check_writable(f"{tmp_path}/{path}", (".csv", ".tsv", ".jsonl", ".parquet"))
    assert check_writable(tmp_path / "x.CSV", (".csv",)) == ".csv"
    assert check_writable(tmp_path / "x.anything") == ".anything"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder.csv"]


@pytest.mark.skipif(os.getuid() == 0, reason="root may write everywhere")
def test_protected_paths_are_refused(tmp_path: Path) -> None:
    (tmp_path / "old.csv").write_text("")
    (tmp_path / "old.csv").chmod(0o400)
    with pytest.raises(tr.InputError, match="write-protected"):
        check_writable(tmp_path / "old.csv")
    tmp_path.chmod(0o500)
    with pytest.raises(tr.InputError, match="no files may be created"):
        check_writable(tmp_path / "new.csv")
    tmp_path.chmod(0o700)


def test_folders_are_checked_too(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    check_writable_folder(tmp_path)
    check_writable_folder(tmp_path / "new" / "deeper")
    with pytest.raises(tr.InputError, match="not a directory"):
        check_writable_folder(tmp_path / "file")
    with pytest.raises(tr.InputError, match="not a directory"):
        check_writable_folder(tmp_path / "file" / "deeper")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
