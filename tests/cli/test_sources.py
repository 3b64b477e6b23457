"""Files by name, and whether they are about the same instances."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

import truerank as tr
from tests.cli.running import refusal, run_here
from truerank.cli.options import different_instances, named_paths


@pytest.mark.parametrize(
    ("texts", "expected"),
    [
        (["a.parquet"], {"a": "a.parquet"}),
        (["runs/a.parquet", "runs/b.parquet"], {"a": "runs/a.parquet", "b": "runs/b.parquet"}),
        (["als=x/a.npz", "b.csv.gz"], {"als": "x/a.npz", "b": "b.csv.gz"}),
        (["als=a=b.npz"], {"als": "a=b.npz"}),
        (["./lr=0.1/a.npz"], {"a": "./lr=0.1/a.npz"}),
        (["-"], {"recommender": "-"}),
        (["als=-", "b.npz"], {"als": "-", "b": "b.npz"}),
        ([".npz"], {".npz": ".npz"}),
        (["/"], {"/": "/"}),
    ],
)
def test_names(texts: list[str], expected: dict[str, str]) -> None:
    assert named_paths(texts) == expected


def test_a_file_with_an_equals_sign_in_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert named_paths(["k=64.npz"]) == {"k": "64.npz"}
    (tmp_path / "k=64.npz").touch()
    assert named_paths(["k=64.npz"]) == {"k=64": "k=64.npz"}
    (tmp_path / "64.npz").touch()
    with pytest.raises(tr.InputError, match=r"write '\./k=64\.npz' or 'k=\./64\.npz'\."):
        named_paths(["k=64.npz"])
    assert named_paths(["./k=64.npz", "k=./64.npz"]) == {"k=64": "./k=64.npz", "k": "./64.npz"}


READ = {
    "evaluate": ["x.csv", "-m", "ap", "--per-instance", "out.csv"],
    "evaluate --truth": ["run.csv", "--truth", "x.csv", "-m", "ap", "--per-instance", "out.csv"],
    "evaluate --by": ["ranks.npz", "--by", "x.csv", "-m", "ap", "--per-instance", "out.csv"],
    "explore": ["x.html", "-o", "out.html"],
    "rank": ["--factors", "u.npy", "i.npy", "--test", "x.npz", "-o", "out.npz"],
    "rank --train": ["--factors", "u.npy", "i.npy", "--train", "x.npz", "--test", "test.csv", "-o", "out.npz"],
    "rank --factors": ["--factors", "u.npy", "x.npz", "--test", "test.csv", "-o", "out.npz"],
    "recommend": ["--model", "x.csv", "-o", "out.csv"],
    "recommend --train": ["--model", "m.npz", "--train", "x.csv", "-o", "out.csv"],
    "report": ["x.html", "-o", "out.html"],
    "report --by": ["ranks.npz", "--by", "x.html", "-o", "out.html"],
    "reproduce": ["krichene-rendle", "--data", "x.zip", "--json", "out.zip"],
    "sample": ["ranks.npz", "b=x.npz", "-o", "out-{name}.npz"],
}
"""Arguments of every command that writes; the file x is read, and is the file out as well."""


@pytest.mark.parametrize("case", READ)
def test_an_output_may_not_be_an_input(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = next(Path(each.removeprefix("b=")) for each in READ[case] if each.removeprefix("b=").startswith("x."))
    source.touch()
    for name in ("out", "out-b"):
        os.link(source, f"{name}{source.suffix}")
    sentence = refusal(case.split()[0], *READ[case])
    assert sentence.endswith(f"is also read, as '{source}'; write to another file.")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        (["a=1.npz", "a=2.npz"], "'1.npz' and '2.npz' are both named 'a'; give each its own name, as in NAME=2.npz"),
        (["x/a.npz", "y/a.npz"], "are both named 'a'"),
        (["a.npz", "a.npz"], "are both named 'a'"),
        (["=a.npz"], "a file is given as PATH, or as NAME=PATH, got '=a.npz'"),
        (["a="], "a file is given as PATH, or as NAME=PATH, got 'a='"),
        (["a=-", "b=-"], "only one file can be standard input"),
    ],
)
def test_names_that_are_refused(texts: list[str], message: str) -> None:
    with pytest.raises(tr.InputError, match=message):
        named_paths(texts)


def ranks(*ids: int | str, named: bool = True) -> tr.Ranks:
    return tr.Ranks.from_ranks([1] * len(ids), n=5, ids=list(ids) if named else None)


@pytest.mark.parametrize(
    ("a", "b", "message"),
    [
        (ranks("x", "y"), ranks("x", "y"), None),
        (ranks("x", "y"), ranks("y", "x"), None),
        (ranks(1, 2), ranks("1", "2"), None),
        (ranks("x", "y"), ranks("x"), "1 of 'a' are not in 'b', for instance 'y'"),
        (ranks("x"), ranks("x", "y", "z"), "2 of 'b' are not in 'a', for instance 'y'"),
        (ranks("x", "y", named=False), ranks("x", "y"), None),
        (ranks("x", named=False), ranks("x", "y"), "'a' has 1 instances, 'b' has 2"),
    ],
)
def test_instances(a: tr.Ranks, b: tr.Ranks, message: str | None) -> None:
    assert different_instances({"a": a, "b": b}) == message
    assert different_instances({"a": a}) is None


@pytest.fixture
def runs(tmp_path: Path) -> dict[str, Path]:
    """Return files about users with names: two runs, the truth, training pairs, and some of the users."""
    items = [f"i{number}" for number in range(9)]
    users = [f"u{number}" for number in range(12)]
    contents = {
        "a.csv": "user,item,score\n" + "".join(f"{u},{i},{-n}\n" for u in users for n, i in enumerate(items[:5])),
        "b.csv": "user,item,score\n" + "".join(f"{u},{i},{-n}\n" for u in users for n, i in enumerate(items[4::-1])),
        "truth.csv": "user,item\n" + "".join(f"{u},{items[n % 5]}\n" for n, u in enumerate(users)),
        "train.csv": "user,item\n" + "".join(f"{u},{i}\n" for n, u in enumerate(users) for i in items[5 : 6 + n % 4]),
        "users.csv": "user\n" + "".join(f"{u}\n" for u in users[:6]),
    }
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return {Path(name).stem: tmp_path / name for name in contents}


def test_commands_take_lists_users_and_groups_alike(runs: dict[str, Path], tmp_path: Path) -> None:
    split = tr.read_split(runs["train"], runs["truth"])
    ranks = {name: tr.read_lists(runs[name], runs["truth"]) for name in "ab"}
    some = {
        name: one[[f"u{number}" in [f"u{n}" for n in range(6)] for number in range(12)]] for name, one in ranks.items()
    }
    shared = ["--truth", runs["truth"], "-m", "rr@5"]
    files = [runs["a"], runs["b"]]
    wanted = {
        ("--users", runs["users"]): (some, None),
        ("--by", "activity", "--train", runs["train"]): (ranks, tr.by_activity(split)),
        ("--by", "popularity", "--train", runs["train"]): (ranks, tr.by_popularity(split)),
    }
    for more, (own, groups) in wanted.items():
        shown = run_here("evaluate", *files, *shared, *more, "-f", "csv").stdout
        assert shown == tr.evaluate(own, "rr@5", by=groups).to_csv() + "\n"
        shown = run_here("compare", *files, *shared, *more, "-f", "csv").stdout
        assert shown == tr.compare(own, "rr@5", by=groups).to_csv() + "\n"
        gated = run_here("gate", runs["b"], "--against", runs["a"], *shared, *more, "--margin", "0.9", "-f", "json")
        found = tr.compare(own, "rr@5", by=groups).differences
        assert [row["difference"] for row in json.loads(gated.stdout)["checks"]] == [each.difference for each in found]
        done = run_here("report", *files, *shared, *more, "-o", tmp_path / "report.html")
        assert done.exit_code == 0, done.output


@pytest.mark.parametrize("command", ["evaluate", "compare"])
def test_chosen_users_without_results_are_counted(runs: dict[str, Path], command: str) -> None:
    runs["users"].write_text("user\nu1\nu2\nnobody\n")
    given = [command, runs["a"], runs["b"], "--truth", runs["truth"], "-m", "rr@5", "--users", runs["users"]]
    shown = " ".join(run_here(*given).output.split())
    assert f"note: 1 of 3 users in '{runs['users']}' is not in the results" in shown


def test_a_split_is_refused_where_nothing_uses_it(runs: dict[str, Path]) -> None:
    shared = ["evaluate", runs["a"], "--truth", runs["truth"], "-m", "rr@5"]
    assert refusal(*shared, "--train", runs["train"]) == "--train applies only to --by activity and --by popularity."
    assert "needs the training events: give --split or --train" in refusal(*shared, "--by", "activity")
    assert "must have one column, ids of users" in refusal(*shared, "--users", runs["train"])
    runs["users"].write_text("user\nnobody\n")
    assert "no user of 'a' is in" in refusal(*shared, "--users", runs["users"])


@pytest.fixture
def reported(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """Return what the command gives to `truerank.write_report`, after it has run."""
    given: dict[str, Any] = {}

    def write(*arguments: object, **options: object) -> None:
        given.update(options, ranks=arguments[0])
        written(*arguments, **options)  # type: ignore[arg-type]

    written = tr.write_report
    monkeypatch.setattr(tr, "write_report", write)
    return given


def test_a_report_shows_sampled_ranks_and_lists(
    runs: dict[str, Path], tmp_path: Path, reported: dict[str, Any]
) -> None:
    exact = tr.Ranks.from_ranks(range(1, 13), n=300, ids=[f"u{number}" for number in range(12)])
    sampled = tr.UniformSampling(100).draw(exact, rng=0)
    exact.save(tmp_path / "exact.parquet")
    sampled.save(tmp_path / "sampled.parquet")
    tr.read_split(runs["train"], runs["truth"]).save(tmp_path / "split")
    shared = ["report", f"a={tmp_path / 'exact.parquet'}", "-m", "rr", "-o", tmp_path / "report.html"]
    more = ["--sampled-ranks", f"a={tmp_path / 'sampled.parquet'}", "--lists", f"a={runs['b']}"]
    page = tmp_path / "report.html"
    runs["b"].write_text("user,item\n" + "".join(f"u{n},i5\nu{n},i6\n" for n in range(12)))
    done = run_here(*shared, *more, "--split", tmp_path / "split")
    assert done.exit_code == 0, done.output
    assert reported["sampled"] == {"a": sampled}
    assert "Exact and sampled" in page.read_text()
    assert "novelty" in page.read_text().partition("Recommended lists")[2]
    assert reported["lists"]["a"].n_items == 9  # the items of the split
    assert run_here(*shared, *more, "--users", runs["users"]).exit_code == 0
    assert reported["sampled"] == {"a": sampled[:6]}
    assert reported["lists"]["a"].user_ids.tolist() == [f"u{number}" for number in range(6)]
    assert reported["lists"]["a"].n_items == 2  # without a split, those that are listed


def test_what_a_report_shows_beside_must_be_of_its_recommenders(toy: dict[str, Path], runs: dict[str, Path]) -> None:
    shared = ["report", toy["A"], "-o", toy["A"].with_name("report.html")]
    assert (
        refusal(*shared, "--sampled-ranks", toy["B"]) == "--sampled-ranks names recommenders of the report, A, got 'B'."
    )
    assert "those of 'A' are not one of each" in refusal(*shared, "--sampled-ranks", toy["A"])
    assert refusal(*shared, "--lists", runs["a"]) == "--lists names recommenders of the report, A, got 'a'."
    page = toy["A"].with_name("page.html")
    page.symlink_to(runs["a"])
    assert "is also read" in refusal("report", toy["A"], "-o", page, "--lists", f"A={runs['a']}")
