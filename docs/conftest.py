"""How the pages are tested: Python and shell examples run in their order, each page in a directory of its own."""

import doctest
import os
import re
import shlex
import subprocess
import sys
import warnings
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest
from click.testing import CliRunner

from truerank.cli.program import truerank

OPTIONAL = ("cornac", "implicit", "lenskit", "pyspark", "torch")
"""Libraries that only some environments have; a page that imports one is skipped in the others."""


@pytest.fixture(autouse=True)
def own_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Run a page where the files it writes disturb nobody."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    found = os.environ.get("PATH", os.defpath)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent) + os.pathsep + found)


def pytest_itemcollected(item: pytest.Item) -> None:
    """Add the shell examples of a page to its Python examples."""
    if item.path.suffix == ".md":
        test: doctest.DocTest = item.dtest  # type: ignore[attr-defined]
        test.globs["shell"] = shell
        test.examples = sorted([*test.examples, *shell_examples(test.docstring or "")], key=lambda each: each.lineno)
        for library in OPTIONAL:
            if f">>> import {library}" in (test.docstring or "") and find_spec(library) is None:
                item.add_marker(pytest.mark.skip(reason=f"needs {library}"))


def shell_examples(page: str) -> Iterator[doctest.Example]:
    """Yield the lines after a ``$`` in the console blocks of a page, each with the output that follows it."""
    for block in re.finditer(r"^```console\n(.*?)^```$", page, flags=re.DOTALL | re.MULTILINE):
        for found in re.finditer(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block[1], flags=re.MULTILINE):
            line = page.count("\n", 0, block.start(1) + found.start())
            yield doctest.Example(f"shell({found[1]!r})\n", found[2], lineno=line)


COMMAND = re.compile(r"truerank ([^|&;<>()$`*?]*)(; echo \"exit code \$\?\")?")


def shell(line: str) -> None:
    """Run a line of a console block, and print what it prints.

    A command of truerank runs inside this process: a new one would spend a second on imports; `tests/cli` starts some.
    """
    if found := COMMAND.fullmatch(line):
        with warnings.catch_warnings():
            warnings.simplefilter("default")
            done = CliRunner().invoke(truerank, shlex.split(found[1]), catch_exceptions=False)
        print(done.output, end="")
        if found[2]:
            print("exit code", done.exit_code)
        return
    other = subprocess.run(["bash", "-c", f"({line}) 2>&1"], stdout=subprocess.PIPE, text=True, check=False)
    print(other.stdout, end="")
