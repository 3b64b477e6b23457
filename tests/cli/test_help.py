"""Every command explains itself, by examples that work, and is documented."""

import runpy
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from tests.cli.running import truerank
from tests.cli.test_program import COMMANDS
from truerank.cli import program

DOCS = Path(__file__).parents[2] / "docs"


def command(name: str) -> click.Command:
    found = program.truerank.get_command(click.Context(program.truerank), name)
    assert found is not None, name
    return found


def examples(name: str) -> list[str]:
    return [line.strip() for line in (command(name).help or "").splitlines() if line.strip().startswith("truerank ")]


def shell_lines(page: str) -> Iterator[str]:
    """Yield the lines of the blocks of a page that are for a shell, or do not say what they are for."""
    language = None
    for line in page.splitlines():
        if line.startswith("```"):
            language = line.removeprefix("```") if language is None else None
        elif language in ("", "bash", "sh"):
            yield line


def check_parses(line: str) -> None:
    """Check that a shell and the command understand a line."""
    assert subprocess.run(["bash", "-n", "-c", line], check=False).returncode == 0, line
    _, name, *arguments = shlex.split(line, comments=True)
    command(name).make_context(name, arguments)


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)])
def test_every_command_has_help(arguments: list[str]) -> None:
    done = truerank(*arguments, "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage:")


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    without = [each.opts for each in command(name).params if isinstance(each, click.Option) and not each.help]
    assert not without


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples_that_parse(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert any(line.startswith(f"truerank {name} ") for line in examples(name))
    for line in examples(name):
        check_parses(line)


@pytest.mark.parametrize("page", [DOCS.parent / "README.md", *sorted(DOCS.glob("*.md"))], ids=lambda page: page.name)
def test_examples_in_the_documentation_parse(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for line in shell_lines(page.read_text()):
        if line.startswith("truerank "):
            check_parses(line)


def test_the_reference_is_up_to_date() -> None:
    page = runpy.run_path(str(DOCS / "make_commands.py"))["page"]()
    assert page == (DOCS / "commands.md").read_text(), "run docs/make_commands.py"
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == COMMANDS
