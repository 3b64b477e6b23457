"""The commands in the README and the documentation run as they stand, on files of the names that they use."""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import click
import numpy as np
import pytest
import yaml

import truerank as tr
from tests.arrays import AnyArray
from tests.cli.running import run_here
from tests.papers.test_vlnet import SECOND_SOLUTION, SECOND_SUBMISSION
from truerank.cli import program

DOCS = Path(__file__).parents[2] / "docs"
PAGES = [DOCS.parent / "README.md", *sorted(DOCS.rglob("*.md"))]
WITH_COMMANDS = [page for page in PAGES if "\ntruerank " in page.read_text() or "run: truerank " in page.read_text()]
ELSEWHERE = {
    "truerank data ": "needs the network",
    "truerank reproduce ": "takes long, and with --data needs MovieLens 1M; test_reproduce_command.py runs it",
    "truerank rank --engine spark ": "needs a cluster",
}
"""Commands that can't run here: what they are given is read, and nothing more."""
ANSWERS = {"gate": (0, 1, 3), "evaluate": (0, 1)}
"""Exit codes that are an answer, where it is not 0 alone."""
N_USERS, N_ITEMS = 60, 1_200
EVALUATOR = """
def evaluate(run, truth, k):
    best = {user: [item for item, _ in sorted(run.get(user, []), key=lambda pair: -pair[1])[:k]] for user in truth}
    found = [len(set(own) & set(best[user])) / len(own) for user, own in truth.items() if own]
    return {"recall": sum(found) / len(found)}
"""


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with every file that an example reads, about the same users."""
    folder = tmp_path_factory.mktemp("examples")
    rng = np.random.default_rng(0)
    users, items = rng.normal(size=(N_USERS, 4)), rng.normal(size=(N_ITEMS, 4))
    chosen = (users @ items.T + rng.gumbel(size=(N_USERS, N_ITEMS))).argsort(axis=1)[:, ::-1][:, :9]
    for place in (folder, folder / "folder"):
        place.mkdir(exist_ok=True)
        write_pairs(place / "train.csv", chosen[:, 1:], ",")
        write_pairs(place / "test.csv", chosen[:, :1], ",")
    write_pairs(folder / "train.tsv", chosen[:, 1:], "\t")
    write_pairs(folder / "test.tsv", chosen[:, :1], "\t")
    np.save(folder / "items.npy", items)
    for name in ("c", "b", "a", "als", "bpr", "live", "old", "new", "runs/1", "runs/2", "ranks", "pilot"):
        np.save(folder / "users.npy", users + rng.normal(scale=0.5, size=users.shape))
        write_ranks(folder, name)
    write_others(folder, chosen)
    return folder


def write_pairs(path: Path, chosen: AnyArray, separator: str) -> None:
    rows = [["user", "item"], *([user, item] for user, row in enumerate(chosen.tolist()) for item in row)]
    path.write_text("".join(f"{user}{separator}{item}\n" for user, item in rows))


def write_ranks(folder: Path, name: str) -> None:
    """Write ranks and sampled ranks by the present factors."""
    (folder / name).parent.mkdir(exist_ok=True)
    factors = ("--factors", folder / "users.npy", folder / "items.npy", "--train", folder / "train.tsv")
    succeed("rank", *factors, "--test", folder / "test.tsv", "-o", folder / f"{name}.parquet")
    succeed("sample", folder / f"{name}.parquet", "-m", "100", "-o", folder / f"sampled-{Path(name).name}.parquet")


def write_others(folder: Path, chosen: AnyArray) -> None:
    model = tr.IALS(factors=4, rng=0).fit(tr.read_interactions(folder / "train.csv"))
    for name in ("ials.npz", "model.npz"):
        model.save(folder / name)
    for name in ("run.trec", "a.trec", "b.trec", "lists.parquet"):
        succeed("recommend", "--model", folder / "ials.npz", "--train", folder / "train.csv", "-o", folder / name)
    (folder / "qrels.trec").write_text("".join(f"{user} 0 {row[0]} 1\n" for user, row in enumerate(chosen.tolist())))
    (folder / "groups.csv").write_text("id,group\n" + "".join(f"{user},{'ab'[user % 2]}\n" for user in range(N_USERS)))
    (folder / "users.txt").write_text("user\n" + "".join(f"{user}\n" for user in range(0, N_USERS, 2)))
    (folder / "study.csv").write_text("rank\n" + "".join(f"{1 + user % 7}\n" for user in range(N_USERS)))
    (folder / "my_package").mkdir()
    (folder / "my_package" / "evaluation.py").write_text(EVALUATOR)
    (folder / "solution.txt").write_text(SECOND_SOLUTION)
    (folder / "submission.txt").write_text(SECOND_SUBMISSION)


def succeed(*arguments: object) -> None:
    done = run_here(*arguments)
    assert done.exit_code in ANSWERS.get(str(arguments[0]), (0,)), f"{arguments}: {done.output}"


def commands(page: Path) -> Iterator[str]:
    """Yield the commands in the blocks of a page that are for a shell or a pipeline, or of no stated language."""
    blocks = re.findall(r"^```([^\n]*)\n(.*?)^```$", page.read_text(), flags=re.DOTALL | re.MULTILINE)
    for language, block in blocks:
        lines = steps(block) if language == "yaml" else block.splitlines() if language in ("", "bash", "sh") else []
        yield from (line for line in lines if line.startswith("truerank "))


def steps(block: str) -> list[str]:
    """Return the commands of the steps of a pipeline."""
    given = yaml.safe_load(block)
    jobs = [given] if isinstance(given, list) else [job["steps"] for job in given["jobs"].values()]
    return [step["run"] for job in jobs for step in job if "run" in step]


def test_there_are_examples() -> None:
    found = {page.name: len(list(commands(page))) for page in PAGES}
    assert found["README.md"] >= 5
    assert found["release-gate.md"] == 2
    assert sum(found.values()) > 45


@pytest.mark.parametrize("page", WITH_COMMANDS, ids=lambda page: str(page.relative_to(DOCS.parent)))
def test_examples_run(page: Path, files: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(shutil.copytree(files, tmp_path / "here"))
    for line in commands(page):
        assert subprocess.run(["bash", "-n", "-c", line], check=False).returncode == 0, line
        _, name, *arguments = shlex.split(line, comments=True)
        if line.startswith(tuple(ELSEWHERE)):
            command = program.truerank.get_command(click.Context(program.truerank), name)
            assert command is not None
            command.make_context(name, arguments)
        else:
            succeed(name, *(arguments[: arguments.index(">")] if ">" in arguments else arguments))


def test_the_workflow_runs_as_a_shell_runs_it(files: Path, tmp_path: Path) -> None:
    """Step by step, with the summary of the job; the exit code of the gate is that of the last step."""
    here = shutil.copytree(files, tmp_path / "here")
    (block,) = re.findall(
        r"^```yaml\n(.*?)^```$", (DOCS / "how-to/release-gate.md").read_text(), re.DOTALL | re.MULTILINE
    )
    command = tmp_path / "truerank"
    command.write_text(f'#!/bin/sh\nexec {sys.executable} -m truerank "$@"\n')
    command.chmod(0o755)
    found = os.pathsep.join([str(tmp_path), os.environ.get("PATH", os.defpath)])
    env = os.environ | {"PATH": found, "GITHUB_STEP_SUMMARY": str(tmp_path / "summary.md")}
    codes = [subprocess.run(["bash", "-ec", step], cwd=here, env=env, check=False).returncode for step in steps(block)]
    assert codes[0] == 0
    assert codes[1] in ANSWERS["gate"]
    suite = ElementTree.parse(here / "gate.xml").getroot()
    assert [case.get("name") for case in suite] == ["ndcg@10", "recall@20"]
    failed = any(child.tag in ("failure", "error") for case in suite for child in case)
    assert failed == (codes[1] != 0)
    assert (tmp_path / "summary.md").read_text().count("| ndcg@10 |") == 1
