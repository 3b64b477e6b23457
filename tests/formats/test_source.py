"""Where bytes come from: compressed and piped files in every reader, and limits on what unpacks."""

import gzip
import json
import os
import subprocess
import sys
import threading
import zipfile
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import truerank as tr
from tests.hostile import zipped
from tests.patience import HANGS
from truerank.formats.sources import LIMIT_VARIABLE
from truerank.formats.text_files import read_negatives

CSV = b"user,item,score,rank,n\nann,x,0.5,1,9\nann,y,0.4,2,9\n"


def check(path: object) -> None:
    assert tr.read_lists(path, {"ann": ["y"]}).rank.tolist() == [2]
    assert tr.read_ranks(path).rank.tolist() == [1, 2]
    assert tr.read_interactions(path).item_names.tolist() == ["x", "y"]


def test_compressed_files_in_every_reader(tmp_path: Path) -> None:
    contents = {
        "a.csv.gz": gzip.compress(CSV),
        "a.zip": zipped({"folder/a.csv": CSV, "__MACOSX/._a.csv": b"", ".hidden": b""}),
        "b.zip": zipped({"a.csv.gz": gzip.compress(CSV)}),
    }
    for name, content in contents.items():
        (tmp_path / name).write_bytes(content)
        check(tmp_path / name)


def test_a_directory_with_one_file(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV)
    check(tmp_path)
    (tmp_path / "b.csv").write_bytes(CSV)
    with pytest.raises(tr.InputError, match=r"or only one file, found a\.csv, b\.csv; name the file itself"):
        tr.read_lists(tmp_path, {"ann": ["y"]})


def test_a_directory_of_parquet_parts(tmp_path: Path) -> None:
    for part in ("a", "b"):
        pq.write_table(pa.table({"user": ["ann"], "item": [part]}), tmp_path / f"part-{part}.parquet")
    (tmp_path / "_SUCCESS").touch()
    with pytest.raises(tr.InputError, match="name the file itself, or give all parts as one table"):
        tr.read_interactions(tmp_path)
    assert tr.read_interactions(pq.read_table(tmp_path)).item_names.tolist() == ["a", "b"]


def test_pipes(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(gzip.compress(CSV)))
    writer.start()
    assert tr.read_ranks(pipe).rank.tolist() == [1, 2]
    writer.join()


def test_latin_1_in_every_reader(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes("user,item,année,rank,n\nJosé,ça,1,1,9\n".encode("latin-1"))
    ranks, data = tr.read_ranks(tmp_path / "a.csv"), tr.read_interactions(tmp_path / "a.csv")
    assert ranks.ids is not None
    assert (ranks.ids.tolist(), data.item_names.tolist()) == (["José"], ["ça"])
    note = f"{str(tmp_path / 'a.csv')!r} is not UTF-8 and was read as Latin-1"
    assert data.notes == (note,)
    assert tr.read_lists(tmp_path / "a.csv", {"José": ["ça"]}).notes == (note,)
    assert ranks.notes == (note,)
    (tmp_path / "a.jsonl").write_bytes('{"user": "José", "item": "ça"}\n'.encode("latin-1"))
    assert tr.read_interactions(tmp_path / "a.jsonl").names.tolist() == ["José"]


def test_utf_16_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_bytes(CSV.decode().encode("utf-16"))
    with pytest.raises(tr.InputError, match=r"a\.csv' is UTF-16; save it as UTF-8"):
        tr.read_ranks(tmp_path / "a.csv")


def bomb(size: int) -> bytes:
    """Return a gzipped CSV file that unpacks to so many zeros."""
    return gzip.compress(CSV + b"0" * size, compresslevel=1)


@pytest.mark.parametrize("kind", ["gzip", "zip", "gzip in zip"])
def test_what_unpacks_too_far_is_refused(tmp_path: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(LIMIT_VARIABLE, "1000000")
    content = {
        "gzip": bomb(2_000_000),
        "zip": zipped({"a.csv": CSV + b"0" * 2_000_000}),
        "gzip in zip": zipped({"a.csv.gz": bomb(2_000_000)}),
    }[kind]
    (tmp_path / "bomb").write_bytes(content)
    for read in (tr.read_interactions, tr.read_ranks, read_negatives):
        with pytest.raises(tr.InputError, match=rf"unpacks to more than 1,000,000 bytes; .* {LIMIT_VARIABLE}"):
            read(tmp_path / "bomb")


def test_the_limit_must_be_a_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a.csv.gz").write_bytes(gzip.compress(CSV))
    monkeypatch.setenv(LIMIT_VARIABLE, "lots")
    with pytest.raises(tr.InputError, match=f"{LIMIT_VARIABLE} must be a number of bytes, got 'lots'"):
        tr.read_ranks(tmp_path / "a.csv.gz")


def test_a_size_that_a_zip_file_lies_about(tmp_path: Path) -> None:
    content = bytearray(zipped({"a.csv": CSV + b"0" * 100_000}))
    at = content.index(b"PK\x01\x02")
    content[at + 24 : at + 28] = (50).to_bytes(4, "little")
    (tmp_path / "a.zip").write_bytes(content)
    with pytest.raises(tr.InputError, match=r"^can't read 'a\.csv' in '.*a\.zip': "):
        tr.read_ranks(tmp_path / "a.zip")


SMALL_MEMORY = """
import json, resource, sys
import truerank as tr
tr.read_ranks, tr.read_interactions, tr.rank_sampled, tr.Ranks, tr.InputError
import truerank.ranking.ranks_from_lists, truerank.formats.text_files, truerank.data.event_files
resource.setrlimit(resource.RLIMIT_AS, (4 << 30, 4 << 30))
for path, name in json.loads(sys.argv[1]).items():
    reader = truerank.formats.text_files if name == "read_negatives" else tr
    try:
        getattr(reader, name)(path)
    except tr.InputError as error:
        print(error)
"""


def refused_in_little_memory(readers: dict[Path, str]) -> list[str]:
    """Return the refusals of a process that may use 4 GiB, of files by the reader of each."""
    files = json.dumps({str(path): reader for path, reader in readers.items()})
    one_thread = os.environ | {"OPENBLAS_NUM_THREADS": "1"}  # each reserves memory
    done = subprocess.run(
        [sys.executable, "-c", SMALL_MEMORY, files],
        capture_output=True, text=True, check=True, timeout=HANGS, env=one_thread,
    )  # fmt: skip
    return done.stdout.splitlines()


def write_zip_bomb(path: Path) -> None:
    """Write a zip file of a few MB that unpacks to 1.2 GB: one block of rows, packed once and repeated."""
    packer, n_blocks = zlib.compressobj(1, zlib.DEFLATED, -zlib.MAX_WBITS), 200
    block = b"1,2,3\n" * 1_000_000
    packed = (packer.compress(block) + packer.flush(zlib.Z_FULL_FLUSH)) * n_blocks + packer.flush()
    content, size = bytearray(zipped({"ratings.csv": packed}, method=zipfile.ZIP_STORED)), n_blocks * len(block)
    for mark, at in ((b"PK\x03\x04", 8), (b"PK\x01\x02", 10)):
        start = content.rindex(mark) + at
        content[start : start + 2] = zipfile.ZIP_DEFLATED.to_bytes(2, "little")
        content[start + 14 : start + 18] = size.to_bytes(4, "little")
    path.write_bytes(content)


def write_parquet_bomb(path: Path) -> None:
    """Write a Parquet file of less than a MB with 160 million equal numbers, which take 1.3 GB."""
    rows = pa.table({"rank": np.ones(4_000_000, np.int64), "n": np.ones(4_000_000, np.int64)})
    with pq.ParquetWriter(path, rows.schema) as writer:
        for _ in range(20):
            writer.write_table(rows)


def test_bombs_do_not_fill_the_memory(tmp_path: Path) -> None:
    write_zip_bomb(tmp_path / "bomb.zip")
    write_parquet_bomb(tmp_path / "bomb.parquet")
    assert (tmp_path / "bomb.parquet").stat().st_size < 1_000_000
    (tmp_path / "test.negative").write_text("9999999999\t1\t2\n")
    readers = {"bomb.zip": "read_interactions", "bomb.parquet": "read_ranks", "test.negative": "read_negatives"}
    expected = ["unpacks to more than 1,073,741,824 bytes"] * 2
    expected.append("has 1 users, but numbers them up to 9999999999; number them from 0.")
    found = refused_in_little_memory({tmp_path / name: reader for name, reader in readers.items()})
    for name, message, refusal in zip(readers, expected, found, strict=True):
        assert f"{name}' {message}" in refusal


def write_text_bombs(folder: Path) -> None:
    """Write small Parquet files of text that takes 6, 6 and 1.2 GB."""
    same, long = pa.array(np.zeros(6_000, np.int32)), pa.array(["x" * 1_000_000])
    items = pa.DictionaryArray.from_arrays(same, long)
    lists = pa.ListArray.from_arrays(pa.array(np.arange(0, 6_001, 6), type=pa.int32()), items)
    pq.write_table(pa.table({"user": items, "item": np.arange(6_000)}), folder / "text.parquet", store_schema=False)
    pq.write_table(pa.table({"user": np.arange(1_000), "item": lists}), folder / "lists.parquet", store_schema=False)
    block = pa.table({"user": [f"{row:0100000}" for row in range(500)], "item": np.arange(500)})
    with pq.ParquetWriter(folder / "plain.parquet", block.schema, compression="zstd", use_dictionary=False) as writer:
        for _ in range(24):
            writer.write_table(block)


TEXT_SIZES = {"text": 200_000, "lists": 200_000, "plain": 2_000_000}


def test_text_does_not_fill_the_memory(tmp_path: Path) -> None:
    write_text_bombs(tmp_path)
    sizes = {tmp_path / f"{name}.parquet": size for name, size in TEXT_SIZES.items()}
    assert all(path.stat().st_size < size for path, size in sizes.items())
    found = refused_in_little_memory(dict.fromkeys(sizes, "read_interactions"))
    for path, refusal in zip(sizes, found, strict=True):
        assert f"{path.name}' unpacks to more than 1,073,741,824 bytes" in refusal


def test_text_that_repeats_is_read_like_any_other(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    users, items = (np.array([f"{kind}{row}" for row in rng.integers(50, size=200_000)]) for kind in "ui")
    table = pa.table({"user": users, "item": pa.array(items).dictionary_encode()})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=70_000)
    found = tr.read_interactions(tmp_path / "a.parquet")
    assert set(zip(users.tolist(), items.tolist(), strict=True)) == {
        (found.user_ids[user], found.item_ids[item])  # type: ignore[index]
        for user, item in zip(found.users.tolist(), found.items.tolist(), strict=True)
    }
    lists = pa.table({"user": ["ann", "bob"], "item": [["x", "y"], ["y"]]})
    for kind in (pa.list_(pa.string()), pa.large_list(pa.string())):
        pq.write_table(lists.set_column(1, "item", lists["item"].cast(kind)), tmp_path / "a.parquet")
        assert tr.read_interactions(tmp_path / "a.parquet").matrix.toarray().tolist() == [[1, 1], [0, 1]]


def test_deep_json_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_text('{"user": 1, "item": 2}\n{"user": ' + "[" * 100_000 + "\n")
    with pytest.raises(tr.InputError, match=r"a\.jsonl', line 2: brackets are nested more than 64 deep"):
        tr.read_interactions(tmp_path / "a.jsonl")
    smileys = "".join(f'{{"user": "{user} :[[{{", "item": 1}}\n' for user in range(200))
    (tmp_path / "a.jsonl").write_text(smileys)
    assert tr.read_interactions(tmp_path / "a.jsonl").n_users == 200
