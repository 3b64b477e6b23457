"""The command line, run as a user runs it, or inside this process where many runs are needed."""

import os
import subprocess
import sys

from click.testing import CliRunner, Result

from truerank.cli import program

WIDE = "1000"
"""Columns of the terminal, so that no line is broken; test_program.py tries those that people have."""


def truerank(*arguments: object, stdin: str | bytes | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own."""
    command = [sys.executable, "-m", "truerank", *map(str, arguments)]
    content = stdin.encode() if isinstance(stdin, str) else stdin
    settings = os.environ | {"COLUMNS": WIDE} | env
    done = subprocess.run(command, input=content, capture_output=True, env=settings, check=False)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def run_here(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run inside this process."""
    texts = [str(each) for each in arguments]
    return CliRunner().invoke(program.truerank, texts, input=stdin, env={"COLUMNS": WIDE})


def refusal(*arguments: object, stdin: str | bytes | None = None) -> str:
    """Return the one sentence with which a command refuses its input; nothing may be printed besides."""
    done = run_here(*arguments, stdin=stdin)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    start, _, sentence = done.stderr.rstrip("\n").partition(": ")
    assert start == "truerank"
    assert "\n" not in sentence
    return sentence
