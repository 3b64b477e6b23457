"""Files that no reader can use, or should be careful with, and ways to damage good ones.

`CORPUS` holds small files by name; `good_files` one valid file of each kind; `damaged` changes bytes at random.
"""

import contextlib
import gzip
import io
import json
import sqlite3
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import truerank as tr

LISTS = "user_id,item_id,score\n" + "".join(f"u{user},{item},{9 - item}\n" for user in range(4) for item in range(5))
INTERACTIONS = "user_id,item_id,rating,timestamp\n" + "".join(
    f"{user},{item},{1 + item % 5},{100 * user + item}\n" for user in range(4) for item in range(5)
)
RANKS = "user_id,rank,n\nann,3,9\nbob,1,9\nann,1,9\n"
SAMPLED = "user_id,rank,m,n\nann,3,9,90\nbob,1,9,80\nann,1,9,90\n"
TREC_RUN = "".join(f"u{user} Q0 {item} {item + 1} {9 - item} tag\n" for user in range(4) for item in range(5))
TREC_QRELS = "".join(f"u{user} 0 {user} 1\n" for user in range(4))
MOVIELENS = "".join(f"{user}::{item}::{1 + item % 5}::{978300760 + item}\n" for user in range(4) for item in range(5))
RECBOLE = "user_id:token\titem_id:token\trating:float\n1\t2\t3\n1\t3\t4.5\n2\t2\t1\n"
JSONL = "".join(json.dumps({"user": f"u{user}", "items": [1, 2, 3], "scores": [3, 2, 1]}) + "\n" for user in range(4))
NEGATIVES = "(0,25)\t7\t9\n(2,3)\t1\t4\n"
SOLUTION = "1:1:12|3.5,40|9\n2:0:3|9\n"
SUBMISSION = "1: 12, 5, 40\n2: 3, 1\n"
GROUPS = "user,group\nx,old\ny,new\n"
CANDIDATES = "u1\t1 2 3\nu2\t2 3\n"


def parquet(table: pa.Table) -> bytes:
    file = io.BytesIO()
    pq.write_table(table, file)
    return file.getvalue()


def zipped(members: dict[str, bytes], *, method: int = zipfile.ZIP_DEFLATED) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, content)
    return file.getvalue()


def encrypted() -> bytes:
    """Return a zip file that claims to be encrypted, in both of its headers."""
    content = bytearray(zipped({"ratings.csv": INTERACTIONS.encode()}))
    for mark, flags in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        content[content.index(mark) + flags] |= 1
    return bytes(content)


def npy(header: str, data: bytes = b"") -> bytes:
    text = header.encode().ljust(117) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + data


def npz(**arrays: object) -> bytes:
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def saved(value: object) -> bytes:
    """Return what `save` of ranks or of a model writes as .npz."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "saved.npz"
        value.save(path)  # type: ignore[attr-defined]
        return path.read_bytes()


def score_store() -> bytes:
    """Return a small store of scores, in small pages."""
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "scores.db"
        with tr.ScoreStore(path, "model") as store:
            store.add(["ann", "ann", "bob"], ["a", "b", "a"], [0.5, 0.25, 1])
        with contextlib.closing(sqlite3.connect(path)) as database:
            for statement in ("PRAGMA journal_mode = DELETE", "PRAGMA page_size = 512", "VACUUM"):
                database.execute(statement)
        return path.read_bytes()


def saved_split() -> dict[str, bytes]:
    """Return the files that `save` of a split writes."""
    import tempfile

    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "split"
        events = [(row.split(",")[0], int(row.split(",")[1])) for row in LISTS.split()[1:]]
        users, items = zip(*events, strict=True)
        tr.leave_k_out(tr.read_interactions({"user": users, "item": items}), rng=0).save(folder)
        return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def some_ranks() -> tr.Ranks:
    return tr.Ranks(
        above=[2, 3, 0], tied=[0, 0, 4], n_candidates=[10, 8], indptr=[0, 2, 3], ids=["ann", "bob"], notes=["a note"]
    )


def some_model() -> object:
    return tr.ItemKNN(neighbours=2).fit([[0, 1, 2], [1, 2], [0, 3]])


_GIANT = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }"
_OBJECTS = npz(truerank=np.array([{}], dtype=object))
_METADATA = some_ranks().to_arrow()
_LONG = b"x" * 100_000

CORPUS: dict[str, bytes] = {
    # nothing, or no text
    "nothing": b"",
    "one blank line": b"\n",
    "blank lines": b"\r\n \n\t\n",
    "byte-order mark alone": b"\xef\xbb\xbf",
    "zeros": b"\0" * 100,
    "every byte": bytes(range(256)) * 9,
    "a pickle": b"\x80\x04.",
    "a pickle in protocol 0": b"cos\nsystem\n(S'true'\ntR.",
    "half a character": b"user,item\n\xc3",
    "control characters": b"user,item\n\x0b\x0c,\x1c\x85\n\xe2\x80\xa8,2\n",
    # encodings
    "Latin-1": "user,item,score,rank,n\nJosé,café,1,1,9\n".encode("latin-1"),
    "Latin-1 header": "user,item,année,rank,n\n1,2,3,1,9\n".encode("latin-1"),
    "UTF-16": LISTS.encode("utf-16"),
    "UTF-16 without a mark": LISTS.encode("utf-16-le"),
    "UTF-32": LISTS.encode("utf-32"),
    "byte-order mark": LISTS.encode("utf-8-sig"),
    # delimited text
    "header alone": b"user,item,score,rank,n\n",
    "one word": b"word",
    "one number": b"7\n",
    "two headers": b"user,user,item,item,rank,rank,n,n\n1,2,3,4,1,2,9,9\n",
    "empty header": b",,,\n1,2,3,4\n",
    "only delimiters": b",,,,\n,,,,\n",
    "missing fields": b"user,item,score\n1,2,3\n4,5\n",
    "additional fields": b"user,item\n1,2\n3,4,5\n",
    "empty fields": b"user,item,rank,n\n,1,1,9\n1,,1,9\n",
    "missing words": b"user,item,rank,n\n1,2,1,9\nNA,3,1,9\n",
    "open quote": b'user,item\n1,"2\n3,4\n',
    "quotes": b'"user","item","rank","n"\n"a""b","c,d","1","9"\n',
    "carriage returns": b"user,item,rank,n\r1,2,1,9\r3,4,1,9\r",
    "mixed line ends": b"user,item,rank,n\r\n1,2,1,9\n3,4,1,9\r\r\n",
    "a long line": b"user,item\n" + b"1" * 5_000_000 + b",2\n",
    "long ids": b"user,item,rank,n\n" + _LONG + b",1,1,9\n" + b"".join(b"%d,1,1,9\n" % row for row in range(2_000)),
    "many columns": b",".join(b"c%d" % column for column in range(20_000)) + b"\n",
    "wide and short": b",".join([b"user", b"item", *([b"x"] * 5_000)]) + b"\n1,2\n",
    "semicolons and decimal commas": b"user;item;score;rating\n1;2;0,5;4,5\n",
    "bars": b"user|item|rank|n\n1|2|1|9\n",
    "four numbers": b"1\t2\t3\t4\n5\t6\t7\t8\n",
    "three numbers": b"1,2,3\n4,5,6\n",
    "six numbers": b"1 2 3 4 5 6\n",
    "uneven blanks": b"1  0 2\t1\n 1 0  3 1 \n",
    "half of MovieLens": b"1::2::3::4\n1::2:\n",
    "colons": b"::::::\n:::::\n",
    # numbers
    "leading zeros": b"user,item,rank,n\n0012,007,1,9\n012,07,1,9\n",
    "unsigned ids": b"user,item,rank,n\n9223372036854775808,18446744073709551615,1,9\n1,2,1,9\n",
    "ids of many digits": b"user,item,rank,n\n" + b"9" * 5_000 + b",1,1,9\n",
    "fractional ids": b"user,item,rank,n\n1.5,2.5,1,9\n",
    "exponents": b"user,item,score,rank,n\n1e3,2e400,1e400,1e0,9e9\n",
    "hexadecimal": b"user,item,rank,n\n0x1F,0x2,1,9\n",
    "superscripts": "user,item,rank,n\n²,³,¹,9\n".encode(),
    "not numbers": b"user,item,score,rating,rank,n,time,m\n1,2,nan,nan,nan,nan,nan,nan\n",
    "infinite": b"user,item,score,rating,rank,n,time,m\n1,2,inf,-inf,inf,inf,inf,inf\n",
    "negative": b"user,item,score,rating,rank,n,time,m\n-1,-2,-1,-1,-1,-1,-1,-1\n",
    "zero": b"user,item,score,rating,rank,n,time,m\n0,0,0,0,0,0,0,0\n",
    "huge": b"user,item,rank,n,m\n1,2,9223372036854775807,9223372036854775807,9223372036854775807\n",
    "too large": b"user,item,rank,n,m\n1,2,99999999999999999999,99999999999999999999,99999999999999999999\n",
    "fractional ranks": b"user,item,rank,n\n1,2,1.5,9\n",
    "text for numbers": b"user,item,score,rating,rank,n,time\n1,2,high,good,first,many,soon\n",
    "dates": b"user,item,time\n1,2,2019-01-01T00:00:00Z\n1,3,2019-13-01\n1,4,5\n",
    "clock times": b"user,item,time\n1,2,12:30:00\n",
    "booleans": b"user,item,score,rank,n\ntrue,false,true,true,true\n",
    "the same item twice": b"user,item,score\n1,2,3\n1,2,1\n",
    "the same rank twice": b"user,rank,n\n1,2,9\n1,2,9\n",
    "two numbers of candidates": b"user,rank,n,m\n1,2,9,3\n1,1,8,4\n",
    "sampled": SAMPLED.encode(),
    # JSON
    "JSON list": b'[{"user": 1, "item": 2}]',
    "JSON number": b"{1}",
    "open JSON": b'{"user": 1, "item": 2',
    "JSON and text": b'{"user": 1, "item": 2}\nuser,item\n',
    "JSON key twice": b'{"user": 1, "user": 2, "item": 3}\n',
    "JSON of different types": b'{"user": 1, "item": 2}\n{"user": "a", "item": []}\n',
    "JSON nulls": b'{"user": null, "item": [null, 1], "score": [null, 1]}\n',
    "JSON null in a list": b'{"user": 1, "item": [2, 3], "score": [null, 1]}\n',
    "JSON ragged lists": b'{"user": 1, "item": [2, 3], "score": [1]}\n{"user": 2, "item": [2], "score": [1, 2]}',
    "JSON lists in lists": b'{"user": [[1]], "item": [[2]], "rank": [[1]], "n": [[9]]}\n',
    "JSON objects in objects": b'{"user": {"a": 1}, "item": {"b": 2}, "rank": {}, "n": {}}\n',
    "JSON without columns": b"{}\n{}\n",
    "JSON large ids": b'{"user": 18446744073709551615, "item": 9223372036854775808, "rank": 1, "n": 9}\n',
    "JSON dates as ids": b'{"user": "2019-01-01", "item": "2019-01-02T10:00:00", "rank": 1, "n": 9}\n',
    "JSON Latin-1": '{"user": "José", "item": 1}\n'.encode("latin-1"),
    "deep JSON": b'{"user": ' + b"[" * 100_000,
    "deep JSON objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
    "many JSON keys": b"".join(b'{"k%d": 1}\n' % row for row in range(300)),
    # compressed
    "gzip of nothing": gzip.compress(b""),
    "half a gzip": gzip.compress(LISTS.encode())[:40],
    "gzip head": b"\x1f\x8b",
    "gzip and more": gzip.compress(LISTS.encode()) + b"more",
    "two gzips": gzip.compress(RANKS.encode()) + gzip.compress(b"cid,2,9\n"),
    "gzip in gzip": gzip.compress(gzip.compress(LISTS.encode())),
    "zip head": b"PK\x03\x04",
    "zip of nothing": zipped({}),
    "zip of an empty file": zipped({"a.csv": b""}),
    "zip of two files": zipped({"a.csv": b"user,item\n1,2\n", "b.csv": b"user,item\n1,2\n"}),
    "zip of a zip": zipped({"a.zip": zipped({"a.csv": b"user,item\n1,2\n"})}),
    "zip with odd names": zipped({"../../etc/ratings.csv": INTERACTIONS.encode()}),
    "encrypted zip": encrypted(),
    "half a zip": zipped({"ratings.csv": INTERACTIONS.encode()})[:-40],
    "zip with a wrong sum": zipped({"ratings.csv": INTERACTIONS.encode()}, method=zipfile.ZIP_STORED).replace(
        b",5,", b",4,"
    ),
    # Parquet
    "Parquet head": b"PAR1",
    "Parquet and no more": b"PAR1 and no more PAR1",
    "half a Parquet": parquet(pa.table({"user": [1, 2], "item": [3, 4]}))[:-30],
    "Parquet without columns": parquet(pa.table({})),
    "Parquet without rows": parquet(pa.table({"user": pa.array([], pa.int64()), "item": pa.array([], pa.int64())})),
    "Parquet with gaps": parquet(pa.table({"user": [1, None], "item": [None, 2], "rank": [1, None], "n": [9, 9]})),
    "Parquet with structs": parquet(
        pa.table({"user": [{"a": 1}], "item": [{"b": [2]}], "rank": [{"c": 1}], "n": [{"d": 9}]})
    ),
    "Parquet with two columns of one name": parquet(pa.table([[1], [2], [3]], names=["user", "user", "item"])),
    "Parquet with bytes": parquet(pa.table({"user": [b"\xff"], "item": [b"\0"], "rank": [1], "n": [9]})),
    "Parquet with zero characters": parquet(pa.table({"user": ["a\0"], "item": ["a"], "rank": [1], "n": [9]})),
    "Parquet with dates": parquet(pa.table({"user": pa.array([1], pa.date32()), "item": [1], "rank": [1], "n": [9]})),
    "Parquet with nothing but nulls": parquet(
        pa.table({"user": pa.nulls(2), "item": pa.nulls(2), "rank": pa.nulls(2)})
    ),
    "Parquet of ragged lists": parquet(pa.table({"user": [1, 2], "item": [[1, 2], [3]], "score": [[1.0], [2.0, 3.0]]})),
    # stored ranks
    "ranks of ragged lists": parquet(pa.table({"above": [[0, 1], [2]], "tied": [[0], [0, 0]], "n_candidates": [9, 9]})),
    "ranks without lists": parquet(pa.table({"above": [0], "tied": [0], "n_candidates": [9]})),
    "ranks with gaps": parquet(pa.table({"above": [[0, None], None], "tied": [[0, 0], [0]], "n_candidates": [9, 9]})),
    "ranks of text": parquet(pa.table({"above": [["a"]], "tied": [["b"]], "n_candidates": ["c"]})),
    "ranks with metadata that is not JSON": parquet(_METADATA.replace_schema_metadata({"truerank": "{"})),
    "ranks with metadata that is a list": parquet(_METADATA.replace_schema_metadata({"truerank": "[1]"})),
    "ranks with arrays in the metadata": parquet(_METADATA.replace_schema_metadata({"truerank": '{"above": [5]}'})),
    "ranks with odd metadata": parquet(
        _METADATA.replace_schema_metadata({"truerank": '{"depth": "x", "notes": 5, "design": {"m": 1}}'})
    ),
    "ranks with a deep metadata": parquet(_METADATA.replace_schema_metadata({"truerank": "[" * 100_000})),
    # arrays
    "array head": b"\x93NUMPY",
    "array of another version": b"\x93NUMPY\x09\x00" + b" " * 100,
    "array with a broken header": npy("{'descr': "),
    "array with a dangerous header": npy("__import__('os').system('true')"),
    "array of a trillion": npy(_GIANT),
    "array of a negative size": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (-1,), }"),
    "array of objects": npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }", b"\x80\x04."),
    "arrays of a trillion": zipped({"truerank.npy": npy(_GIANT), "above.npy": npy(_GIANT), "about.npy": npy(_GIANT)}),
    "arrays of objects": _OBJECTS,
    "arrays without metadata": npz(x=np.zeros(3)),
    "arrays with metadata alone": npz(truerank=np.array("{}"), about=np.array("{}")),
    "arrays with odd metadata": npz(
        truerank=np.array('{"above": [5]}'), above=[0], tied=[0], indptr=[0, 1], n_candidates=[9], about=np.array("[]")
    ),
    "arrays of two dimensions": npz(
        truerank=np.array("{}"), above=[[0]], tied=[[0]], indptr=[[0, 1]], n_candidates=[[9]]
    ),
    "arrays of complex numbers": npz(
        truerank=np.array("{}"), above=[0j], tied=[0j], indptr=[0, 1], n_candidates=[9j], ids=[1j]
    ),
    "no arrays": zipped({}),
    # other formats
    "negatives of a distant user": b"9999999999\t1\t2\n",
    "negatives of many digits": b"0\t" + b"9" * 5_000 + b"\n",
    "fractional negatives": b"(0,25)\t7.5\t9\n",
    "solution with an exponent": b"1e3:1:12|3.5\n",
    "solution without lectures": b"1:1:\n2:0:\n",
}


def good_files() -> dict[str, bytes]:
    """Return a valid file of each kind by its name, which tells the kind."""
    ids = pa.table(
        {"user": ["u1", "u1", "u2", "u2"], "item": [1, 2, 1, 3], "score": [4.0, 3.0, 2.0, 1.0], "rank": [1, 2, 1, 2]}
    )
    split = saved_split()
    return {
        "lists.csv": LISTS.encode(),
        "lists.tsv": LISTS.replace(",", "\t").encode(),
        "lists.jsonl": JSONL.encode(),
        "lists.parquet": parquet(ids),
        "run.txt": TREC_RUN.encode(),
        "qrels.txt": TREC_QRELS.encode(),
        "interactions.csv": INTERACTIONS.encode(),
        "interactions.csv.gz": gzip.compress(INTERACTIONS.encode()),
        "interactions.zip": zipped({"ml/ratings.csv": INTERACTIONS.encode(), "ml/README": b"text"}),
        "ratings.dat": MOVIELENS.encode(),
        "data.inter": RECBOLE.encode(),
        "latin.csv": "user,item,rank,n\nJosé,1,1,9\nRenée,2,2,9\n".encode("latin-1"),
        "ranks.csv": RANKS.encode(),
        "sampled.csv": SAMPLED.encode(),
        "ranks.parquet": parquet(some_ranks().to_arrow()),
        "ranks.npz": saved(some_ranks()),
        "model.npz": saved(some_model()),
        "factors.npz": saved(tr.Popularity().fit([[0, 1, 2], [1, 2], [0, 3]])),
        "array.npy": npy("{'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }", np.arange(12.0).tobytes()),
        "test.negative": NEGATIVES.encode(),
        "solution.txt": SOLUTION.encode(),
        "submission.txt": SUBMISSION.encode(),
        "lists.jsonl.gz": gzip.compress(JSONL.encode(), mtime=0),
        "groups.csv": GROUPS.encode(),
        "names.txt": b"a\nb\n",
        "candidates.tsv": CANDIDATES.encode(),
        "candidates.jsonl": b'{"user": "u1", "item": [1, 2]}\n{"user": "u2", "item": [3]}\n',
        "events.parquet": split["train.parquet"],
        "users.parquet": split["users.parquet"],
        "scores.db": score_store(),
    }


def damaged(content: bytes, rng: np.random.Generator) -> bytes:
    """Return a file with one to four changes: bytes flipped, lost, doubled, moved, or replaced by awkward ones."""
    for _ in range(int(rng.integers(1, 5))):
        change = _CHANGES[int(rng.integers(len(_CHANGES)))]
        content = change(content, rng)
    return content


def _span(content: bytes, rng: np.random.Generator, longest: int = 40) -> tuple[int, int]:
    start = int(rng.integers(len(content) + 1))
    return start, min(len(content), start + int(rng.integers(longest)))


def _flip(content: bytes, rng: np.random.Generator) -> bytes:
    changed = bytearray(content)
    if changed:
        changed[int(rng.integers(len(changed)))] ^= 1 << int(rng.integers(8))
    return bytes(changed)


def _lose(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(content, rng)
    return content[:start] + content[end:]


def _double(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(content, rng)
    return content[:end] + content[start:end] + content[end:]


def _cut(content: bytes, rng: np.random.Generator) -> bytes:
    return content[: int(rng.integers(len(content) + 1))]


def _randomise(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(content, rng, 8)
    return content[:start] + rng.bytes(end - start) + content[end:]


_AWKWARD = [
    *(b",", b"\t", b"\n", b"\r", b'"', b"::", b"|", b"\0", b"\xff", b" ", b"-", b".", b"e", b"[", b"{", b"}", b"null"),
    *(
        b"NaN",
        b"inf",
        b"0",
        b"-1",
        b"1.5",
        b"9223372036854775808",
        b"1e400",
        b"\xff\xff\xff\xff",
        b"\xc3\xa9",
        b"x" * 99,
    ),
]


def _awkward(content: bytes, rng: np.random.Generator) -> bytes:
    start, end = _span(content, rng, 5)
    return content[:start] + _AWKWARD[int(rng.integers(len(_AWKWARD)))] + content[end:]


def _swap_lines(content: bytes, rng: np.random.Generator) -> bytes:
    lines = content.split(b"\n")
    first, second = rng.integers(len(lines), size=2)
    lines[first], lines[second] = lines[second], lines[first]
    return b"\n".join(lines)


_CHANGES: list[Callable[[bytes, np.random.Generator], bytes]] = [
    _flip,
    _lose,
    _double,
    _cut,
    _randomise,
    _awkward,
    _swap_lines,
]


def attacks(number: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """Return so many damaged files, each with the name of the good file that it was."""
    rng, good = np.random.default_rng(seed), good_files()
    names = list(good)
    for attack in range(number):
        name = names[attack % len(names)]
        yield name, damaged(good[name], rng)
