"""The program: finds its commands, reports errors, and reacts to Ctrl-C."""

from __future__ import annotations

import os
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from truerank.cli.interruption import INTERRUPTED
from truerank.cli.output import buffered, in_options, on_one_line, say, show_notes
from truerank.core import InputError

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint


_ENTRY_POINTS = "truerank.commands"
_BAD_INPUT = 2
_ANY_LENGTH = 1_000
_ARENA_MAX = -8  # M_ARENA_MAX of malloc.h
_FEW_THREADS = {"ARROW_DEFAULT_MEMORY_POOL": "system", "ARROW_IO_THREADS": "1", "OMP_NUM_THREADS": "1"}
"""What Arrow reads when it is imported."""
_NO_ROOM = ("failed to map segment", "annot allocate memory", "can't start new thread", "Unable to allocate")
_CLOSED = 141
"""What a shell shows for a process that SIGPIPE has ended."""


class _Closed(Exception):  # noqa: N818
    """The reader of the output has closed it; click itself would exit with 1."""


class Program(click.Group):
    """A group of the commands in this folder and of those that other packages add."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted({*_own_commands(), *(point.name for point in _entry_points())})

    def get_command(self, _ctx: click.Context, name: str) -> click.Command | None:
        if own := _own_commands().get(name):
            return own
        return next((_load(point) for point in _entry_points() if point.name == name), None)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the commands with the whole first sentence of each; click itself would cut it at the end of the line."""
        found = {name: self.get_command(ctx, name) for name in self.list_commands(ctx)}
        with formatter.section("Commands"):
            formatter.write_dl([(name, each.get_short_help_str(_ANY_LENGTH)) for name, each in found.items() if each])

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        """Parse arguments, or print the help."""
        if os.environ.get("NO_COLOR"):
            extra["color"] = False
        try:
            return super().make_context(*args, **extra)
        except BrokenPipeError as error:
            raise _Closed from error

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find a command; if it does not exist, the message suggests one with a similar name."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            close = get_close_matches(args[0], self.list_commands(ctx), n=1)
            advice = "".join(f" Did you mean {name!r}?" for name in close)
            raise click.UsageError(f"{error.message}{advice}", ctx) from error

    def invoke(self, ctx: click.Context) -> Any:
        """Run a command; messages about its input refer to its options."""
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                return super().invoke(ctx)
        except InputError as error:
            command = self.get_command(ctx, ctx.invoked_subcommand or "")
            raise InputError(in_options(str(error), command.params if command else [])) from error
        except (MemoryError, ImportError, RuntimeError) as error:
            if not _lacks_memory(error):
                raise
            raise InputError("there is not enough memory for this input.") from error
        except BrokenPipeError as error:
            raise _Closed from error
        except OSError as error:
            if error.filename is None:
                raise
            raise InputError(f"{error.filename!r}: {error.strerror}.") from error

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> NoReturn:
        """Run and exit: 0 after success, 2 after bad input, 130 after Ctrl-C, 141 if the output is closed.

        1 is the verdict of a command, such as `gate`, and nothing else.
        """
        sys.stdout = buffered(sys.stdout)
        _save_address_space()
        try:
            code = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except InputError as error:
            code = _fail(str(error))
        except OSError as error:
            code = _fail(f"can't write the output: {error.strerror or error}.")
        except click.ClickException as error:
            error.show()
            code = error.exit_code
        except (click.Abort, KeyboardInterrupt):
            code = INTERRUPTED
        except _Closed:
            _give_up_standard_output()
            code = _CLOSED
        sys.exit(code)


def _save_address_space() -> None:
    """Reserve little memory if the address space is limited, as by ``ulimit -v``.

    glibc and Arrow would reserve memory for each of their threads, and abort the process if there is none.
    """
    with suppress(ImportError, OSError, AttributeError):  # there is no glibc
        import ctypes
        import resource

        if resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY:
            ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)
            for name, value in _FEW_THREADS.items():
                os.environ.setdefault(name, value)


def _lacks_memory(error: BaseException | None) -> bool:
    """Whether memory ran out, perhaps for a library or a thread, in this error or in one of its causes."""
    if error is None:
        return False
    ran_out = isinstance(error, MemoryError) or any(words in str(error) for words in _NO_ROOM)
    return ran_out or _lacks_memory(error.__cause__ or error.__context__)


def _show_warning(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning like any other note, without the line of code that raised it."""
    show_notes([str(message)])


@cache
def _own_commands() -> dict[str, click.Command]:
    """Return the commands in the files of this folder that end in _commands.py, by name."""
    files = Path(__file__).parent.glob("*_commands.py")
    found = [each for file in files for each in vars(import_module(f"truerank.cli.{file.stem}")).values()]
    commands = {str(each.name): each for each in found if isinstance(each, click.Command)}
    for command in commands.values():
        command.params.append(_memory_option())
    return commands


def _memory_option() -> click.Option:
    text = "Memory to use, such as 2GB (default: half of what the computer, or the container, has)."
    return click.Option(["--memory"], metavar="SIZE", expose_value=False, callback=_bound_memory, help=text)


def _bound_memory(context: click.Context, _: click.Parameter, memory: str | None) -> None:
    """Bound what the command uses; digits alone are a number of bytes."""
    if memory is not None:
        from truerank.core.threads import memory_bound

        context.with_resource(memory_bound(memory))


def _entry_points() -> Iterator[EntryPoint]:
    from importlib.metadata import entry_points

    yield from entry_points(group=_ENTRY_POINTS)


def _load(point: EntryPoint) -> click.Command:
    try:
        return point.load()
    except Exception as error:
        raise InputError(f"the command {point.name!r} ({point.value}) can't be loaded: {error}") from error


def _fail(sentence: str) -> int:
    """Print what is wrong on standard error and return the exit code."""
    _give_up_standard_output()
    say(f"truerank: {on_one_line(sentence)}", err=True)
    return _BAD_INPUT


def _give_up_standard_output() -> None:
    """Drop what standard output does not take, so that Python does not try again when it exits."""
    try:
        if sys.stdout is not None:
            sys.stdout.flush()
    except OSError:
        with suppress(OSError, ValueError):
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print_versions(context: click.Context, _: click.Parameter, wanted: bool) -> None:
    """Print what a bug report needs, and which of the compiled loops run."""
    if not wanted or context.resilient_parsing:
        return
    import platform
    from importlib.metadata import version

    from truerank.kernels import library

    packages = [f"{name} {version(name)}" for name in ("numpy", "scipy", "pyarrow")]
    below = [f"Python {platform.python_version()}", *packages, f"loops {library.variant()}"]
    click.echo(f"truerank {version('truerank')}\n{', '.join(below)}")
    context.exit()


@click.group(cls=Program, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.option(
    "--version", is_flag=True, is_eager=True, expose_value=False, callback=_print_versions, help="Show the versions."
)
def truerank() -> None:
    """How good is a recommender really: exact, sampled and corrected ranking metrics.

    Shell completion: run `eval "$(_TRUERANK_COMPLETE=bash_source truerank)"` (or zsh_source,
    fish_source), or put it into your shell's start-up file.
    """
