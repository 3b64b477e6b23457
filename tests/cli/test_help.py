"""Every command explains itself, by examples that work, and is documented."""

import runpy
from pathlib import Path

import click
import pytest

from tests.cli.running import run_here, truerank
from tests.cli.test_program import COMMANDS
from truerank.cli import program

DOCS = Path(__file__).parents[2] / "docs"


def command(name: str) -> click.Command:
    found = program.truerank.get_command(click.Context(program.truerank), name)
    assert found is not None, name
    return found


@pytest.mark.parametrize("arguments", [[], *([name] for name in COMMANDS)])
def test_every_command_has_help(arguments: list[str]) -> None:
    done = run_here(*arguments, "--help")
    assert (done.exit_code, done.stderr) == (0, "")
    assert done.stdout.startswith("Usage:")


def test_no_sentence_of_the_overview_is_cut() -> None:
    done = truerank("--help", COLUMNS="80")
    assert "..." not in done.stdout.partition("Commands:")[2]
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize("name", COMMANDS)
def test_every_option_has_help(name: str) -> None:
    without = [each.opts for each in command(name).params if isinstance(each, click.Option) and not each.help]
    assert not without


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_examples(name: str) -> None:
    """They are also in docs/commands.md, whose lines test_examples.py runs."""
    assert any(line.strip().startswith(f"truerank {name} ") for line in (command(name).help or "").splitlines())


def test_the_reference_is_up_to_date() -> None:
    page = runpy.run_path(str(DOCS / "make_commands.py"))["page"]()
    assert page == (DOCS / "commands.md").read_text(), "run docs/make_commands.py"
    assert [line.removeprefix("## ") for line in page.splitlines() if line.startswith("## ")] == COMMANDS
