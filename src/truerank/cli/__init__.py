"""The command line, one file per command: it parses, calls and prints."""

from truerank.cli.commands import main

__all__ = ["main"]
