"""The command line: arguments go in, text comes out; the commands are in the files that end in _commands.py."""

from __future__ import annotations

import sys

TYPE_CHECKING = False
if TYPE_CHECKING:  # `typing` itself would delay the first reaction to Ctrl-C
    from collections.abc import Sequence
    from typing import NoReturn

INTERNAL_ERROR = 70
"""Exit code after an error of truerank itself: EX_SOFTWARE, as in sysexits.h."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run ``truerank`` as a process; Ctrl-C ends it with exit code 130, an internal error with 70."""
    try:
        from truerank.cli.interruption import end_soon_after_interrupt

        end_soon_after_interrupt()
        from truerank.cli.program import truerank

        truerank.main(arguments, "truerank")
    except KeyboardInterrupt:  # while modules were being imported
        sys.exit(130)
    except Exception:  # Python would exit with 1, which is a verdict
        sys.excepthook(*sys.exc_info())
        sys.exit(INTERNAL_ERROR)
