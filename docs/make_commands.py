"""Write the command-line reference to docs/commands.md: ``python docs/make_commands.py``."""

import inspect
from pathlib import Path

import click

from truerank.cli.program import truerank
from truerank.core.tables import markdown
from truerank.formats.writing import write_text

TARGET = Path(__file__).with_name("commands.md")
TOP = """# Commands

The command-line reference, as shown by `truerank COMMAND --help`; `docs/make_commands.py` writes this page.

Exit codes: 0 after success; 1 if a gate or a minimum (`--min`) fails, and for no other reason; 2 after input that
can't be used or output that can't be written, with one sentence on standard error; 3 if a gate can't decide; 70 after
an error of truerank itself, with a traceback; 130 after Ctrl-C; 141 if the reader of the output has closed the pipe.
Results go to standard output, notes to standard error. Output files are checked before the work starts and replaced in
one step, so an earlier file stays whole if something goes wrong.
"""


def page() -> str:
    """Return the whole page."""
    context = click.Context(truerank, info_name="truerank")
    commands = [(name, truerank.get_command(context, name)) for name in truerank.list_commands(context)]
    return "\n".join([TOP, *(section(name, command, context) for name, command in commands if command)])


def section(name: str, command: click.Command, parent: click.Context) -> str:
    """Return the section of one command."""
    context = click.Context(command, parent, info_name=name)
    usage = " ".join([context.command_path, *command.collect_usage_pieces(context)])
    return "\n".join([f"## {name}\n", f"`{usage}`\n", *map(paragraph, paragraphs(command)), options(command, context)])


def paragraphs(command: click.Command) -> list[str]:
    """Return the paragraphs of a command's help."""
    return inspect.cleandoc(command.help or "").split("\n\n")


def paragraph(text: str) -> str:
    """Return a paragraph as Markdown; one that starts with a backspace, which click does not wrap, holds examples."""
    examples = text.removeprefix("\b\n")
    return f"{text}\n" if examples == text else f"```bash\n{examples}\n```\n"


def options(command: click.Command, context: click.Context) -> str:
    """Return a table of the options."""
    records = [each.get_help_record(context) for each in command.params if isinstance(each, click.Option)]
    rows = [(f"`{name}`".replace("|", r"\|"), text.replace("|", r"\|")) for name, text in filter(None, records)]
    return markdown(("option", "meaning"), rows).replace("---:", "---") + "\n"


if __name__ == "__main__":
    write_text(TARGET, page())
