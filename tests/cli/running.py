"""The command line, run as a user runs it, or inside this process where many runs are needed."""

import os
import subprocess
import sys

from click.testing import CliRunner, Result

from truerank.cli import program


def truerank(*arguments: object, stdin: str | bytes | None = None, **env: str) -> subprocess.CompletedProcess[str]:
    """Run in a process of its own."""
    command = [sys.executable, "-m", "truerank", *map(str, arguments)]
    content = stdin.encode() if isinstance(stdin, str) else stdin
    done = subprocess.run(command, input=content, capture_output=True, env=os.environ | env, check=False)
    return subprocess.CompletedProcess(command, done.returncode, done.stdout.decode(), done.stderr.decode())


def run_here(*arguments: object, stdin: str | bytes | None = None) -> Result:
    """Run inside this process."""
    return CliRunner().invoke(program.truerank, [str(each) for each in arguments], input=stdin)


def refusal(*arguments: object, stdin: str | bytes | None = None) -> str:
    """Return the one sentence with which a command refuses its input; nothing may be printed besides."""
    done = run_here(*arguments, stdin=stdin)
    assert (done.exit_code, done.stdout) == (2, ""), done.output
    start, _, sentence = done.stderr.rstrip("\n").partition(": ")
    assert start == "truerank"
    assert "\n" not in sentence
    return sentence
