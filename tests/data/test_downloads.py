"""Downloads from a small server on this machine: whole, broken off, resumed, wrong, and out of reach."""

import hashlib
import http.server
import io
import socket
import threading
import time
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

import truerank as tr
from tests.cli.running import run_here, truerank
from truerank.cli import data_commands
from truerank.data import downloads


def archive() -> bytes:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as file:
        rows = "".join(f"{user}::{item}::{(user * item) % 5 + 1}::{item}\n" for user in range(99) for item in range(99))
        file.writestr("ml-1m/ratings.dat", rows)
    return content.getvalue()


@dataclass
class Site:
    """What the server holds, how it behaves, and what it was asked for."""

    content: bytes = field(default_factory=archive)
    url: str = ""
    ranges: bool = True
    breaks_at: int | None = None
    endless: bool = False
    asked: list[str | None] = field(default_factory=list)

    def answer(self, handler: http.server.BaseHTTPRequestHandler) -> None:
        wanted = handler.headers["Range"]
        self.asked.append(wanted)
        start = int(wanted.removeprefix("bytes=").removesuffix("-")) if wanted and self.ranges else 0
        if handler.path != "/ml-1m.zip":
            handler.send_error(404)
        elif start >= len(self.content):
            handler.send_error(416)
        else:
            handler.send_response(206 if start else 200)
            if not self.endless:
                handler.send_header("Content-Length", str(len(self.content) - start))
            handler.end_headers()
            while self.endless:
                handler.wfile.write(b"1")
                handler.wfile.flush()
                time.sleep(0.001)
            handler.wfile.write(self.content[start : self.breaks_at])


@pytest.fixture
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    known = Site()

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            known.answer(self)

        def log_message(self, *_: object) -> None:
            pass

    monkeypatch.setenv("no_proxy", "127.0.0.1")
    digest = hashlib.md5(known.content).hexdigest()
    monkeypatch.setitem(downloads.CHECKSUMS, "movielens-1m", ("ml-1m.zip", digest))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        known.url = f"http://127.0.0.1:{server.server_port}"
        yield known
        server.shutdown()
        thread.join()


def test_a_whole_file(site: Site, tmp_path: Path) -> None:
    path = downloads.download("movielens-1m", tmp_path / "new", site=site.url)
    assert path == tmp_path / "new" / "ml-1m.zip"
    assert path.read_bytes() == site.content
    assert [file.name for file in path.parent.iterdir()] == ["ml-1m.zip"]
    assert tr.read_interactions(tmp_path / "new").matrix.shape == (99, 99)
    assert downloads.download("movielens-1m", tmp_path / "new", site=site.url) == path
    assert site.asked == [None], "a file that is there is not fetched again"


def test_a_broken_connection_is_resumed(site: Site, tmp_path: Path) -> None:
    site.breaks_at = 1000
    with pytest.raises(
        tr.InputError, match=rf"the connection broke at 1000 of {len(site.content)} bytes; the next attempt"
    ):
        downloads.download("movielens-1m", tmp_path, site=site.url)
    assert (tmp_path / "ml-1m.zip.part").stat().st_size == 1000
    site.breaks_at = 3000
    with pytest.raises(tr.InputError, match=rf"broke at 3000 of {len(site.content)} bytes"):
        downloads.download("movielens-1m", tmp_path, site=site.url)
    site.breaks_at = None
    path = downloads.download("movielens-1m", tmp_path, site=site.url)
    assert path.read_bytes() == site.content
    assert site.asked == [None, "bytes=1000-", "bytes=3000-"]


@pytest.mark.parametrize("endless", [True, False])
def test_a_file_that_is_too_large(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, endless: bool) -> None:
    site.endless = endless
    monkeypatch.setattr(downloads, "_LARGEST", 1000)
    with pytest.raises(tr.InputError, match=r"the server sends over 1,000 bytes, .*; nothing was kept"):
        downloads.download("movielens-1m", tmp_path, site=site.url)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_never_ends(site: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    site.endless = True
    monkeypatch.setattr(downloads, "_LONGEST", 0.2)
    with pytest.raises(tr.InputError, match=r"stopped after 0\.2 seconds at \d+ bytes; the next attempt resumes it"):
        downloads.download("movielens-1m", tmp_path, site=site.url)
    assert (tmp_path / "ml-1m.zip.part").stat().st_size > 0


def test_a_link_is_not_written_through(site: Site, tmp_path: Path) -> None:
    (tmp_path / "mine").write_bytes(b"mine")
    for name, target in {"empty": "nothing", "full": "mine"}.items():
        (tmp_path / name).mkdir()
        (tmp_path / name / "ml-1m.zip.part").symlink_to(tmp_path / target)
        with pytest.raises(tr.InputError, match=r"ml-1m\.zip\.part' is a symbolic link, which is not followed"):
            downloads.download("movielens-1m", tmp_path / name, site=site.url)
    assert (tmp_path / "mine").read_bytes() == b"mine"
    assert not (tmp_path / "nothing").exists()


def test_a_link_in_the_place_of_the_file_is_replaced(site: Site, tmp_path: Path) -> None:
    (tmp_path / "ml-1m.zip").symlink_to(tmp_path / "nothing")
    path = downloads.download("movielens-1m", tmp_path, site=site.url)
    assert path.read_bytes() == site.content
    assert not path.is_symlink()
    assert not (tmp_path / "nothing").exists()


def test_a_server_that_can_not_resume(site: Site, tmp_path: Path) -> None:
    site.ranges = False
    (tmp_path / "ml-1m.zip.part").write_bytes(site.content[:1000])
    assert downloads.download("movielens-1m", tmp_path, site=site.url).read_bytes() == site.content


@pytest.mark.parametrize("extra", [b"", b"more"])
def test_a_part_that_is_complete_or_too_long(site: Site, tmp_path: Path, extra: bytes) -> None:
    (tmp_path / "ml-1m.zip.part").write_bytes(site.content + extra)
    if extra:
        with pytest.raises(tr.InputError, match="its md5 differs"):
            downloads.download("movielens-1m", tmp_path, site=site.url)
    assert downloads.download("movielens-1m", tmp_path, site=site.url).read_bytes() == site.content


def test_a_wrong_checksum(site: Site, tmp_path: Path) -> None:
    site.content = site.content[:-1] + b"!"
    with pytest.raises(
        tr.InputError, match=r"is not what GroupLens publishes \(its md5 differs\); the download was removed"
    ):
        downloads.download("movielens-1m", tmp_path, site=site.url)
    assert list(tmp_path.iterdir()) == []
    (tmp_path / "ml-1m.zip").write_bytes(b"mine")
    with pytest.raises(tr.InputError, match="is not the file that GroupLens publishes; remove it to download it again"):
        downloads.download("movielens-1m", tmp_path, site=site.url)
    assert (tmp_path / "ml-1m.zip").read_bytes() == b"mine"


def test_a_file_that_the_site_lacks(site: Site, tmp_path: Path) -> None:
    with pytest.raises(tr.InputError, match=r"can't fetch .*/nothing/ml-1m.zip \(Not Found\); try again later"):
        downloads.download("movielens-1m", tmp_path, site=f"{site.url}/nothing")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_without_network_one_sentence_and_code_2(tmp_path: Path) -> None:
    url = f"http://127.0.0.1:{free_port()}"
    done = truerank("data", "movielens-1m", "--to", tmp_path, "--from", url, no_proxy="127.0.0.1")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == (
        f"truerank: can't fetch {url}/ml-1m.zip ([Errno 111] Connection refused); try again later, or download "
        f"ml-1m.zip on another machine and put it into {str(tmp_path)!r}.\n"
    )


def test_the_command(site: Site, tmp_path: Path) -> None:
    arguments = ["data", "movielens-1m", "--to", str(tmp_path), "--from", site.url]
    done = run_here(*arguments)
    assert done.exit_code == 0, done.output
    path = tmp_path / "ml-1m.zip"
    assert done.output == f"{path} is complete; read it in Python with tr.read_interactions({str(path)!r})\n"
    path.unlink()
    # in a process of its own the checksum is that of the real file
    other = truerank(*arguments, no_proxy="127.0.0.1")
    assert other.returncode == 2
    assert other.stderr.count("\n") == 1
    assert "its md5 differs" in other.stderr
    assert truerank("data", "netflix", "--to", tmp_path).returncode == 2


def test_the_command_knows_all_data_sets() -> None:
    assert list(data_commands.DATA_SETS) == list(downloads.CHECKSUMS)
