"""``python -m truerank``."""

from truerank.cli import main

main(prog_name="truerank")
