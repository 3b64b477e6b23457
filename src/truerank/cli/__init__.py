"""The command line: arguments go in, text comes out; the command NAME is the file NAME_command.py."""

import sys
from collections.abc import Sequence
from typing import NoReturn


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``truerank`` as a process of its own; Ctrl-C ends it with exit code 130."""
    try:
        from truerank.cli.interruption import end_soon_after_interrupt

        end_soon_after_interrupt()
        from truerank.cli.program import truerank

        truerank.main(arguments, "truerank")
    except KeyboardInterrupt:  # while modules were being imported
        sys.exit(130)
