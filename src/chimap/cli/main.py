"""The ``chimap`` command: its subcommands, and how their errors become messages and exit codes."""

from __future__ import annotations

import ctypes
import os
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from types import FrameType
from typing import NoReturn

import click
from click.shell_completion import get_completion_class

from chimap._version import __version__
from chimap.cli import commands, machine, messages, parser


class Commands(click.Group):
    """The commands by name."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the help."""
        return [*commands.NAMES]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command. Raise an error for another name, with the name that was perhaps meant."""
        if cmd_name not in commands.NAMES:
            meant = get_close_matches(cmd_name, commands.NAMES, 1)
            perhaps = f" Did you mean {meant[0]!r}?" if meant else ""
            raise click.UsageError(f"No such command {cmd_name!r}.{perhaps}", ctx)
        return commands.named(cmd_name)


_TERMINATED = 128 + 15  # the exit code of a process that SIGTERM ended


def _version(context: click.Context, option: click.Parameter, is_wanted: bool) -> None:
    if is_wanted:
        print(f"chimap {__version__} ({machine.installation()})")
        context.exit()


def _completion(context: click.Context, option: click.Parameter, shell: str | None) -> None:
    kind = None if shell is None else get_completion_class(shell)
    if kind is not None:
        print(kind(app, {}, "chimap", "_CHIMAP_COMPLETE").source())
        context.exit()


app = Commands(
    "chimap",
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    params=[
        click.Option(
            ["--version"],
            is_flag=True,
            is_eager=True,
            expose_value=False,
            callback=_version,
            help="Show the version and exit.",
        ),
        click.Option(
            ["--completion"],
            type=click.Choice(["bash", "zsh", "fish"]),
            is_eager=True,
            expose_value=False,
            callback=_completion,
            help='Complete words in a shell: eval "$(chimap --completion bash)"',
        ),
    ],
    help="""Learn to predict from tables that count things: words, species, cells, molecules, pictures.

    \b
    Your own table, a CSV with a heading ('chimap demo' makes one to try):
      chimap fit plots.csv --labels site --test-fraction 0.2 --output plots.model
      chimap evaluate plots.model plots.csv --labels site --output report.html
      chimap predict plots.model new-plots.csv --output answers.csv

    \b
    Other tables, texts and pictures:
      chimap fit cells.h5ad --labels cell_type --output cells.model
      chimap fit reviews.csv --text review --labels stars --output reviews.model
      chimap fit photos/ --output photos.model
    """,
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    The codes are 0 for success, 1 for a fault of chimap, 2 for wrong usage or data, and 130 for Ctrl-C.
    """
    machine.prepare_blas()
    machine.prepare_streams()
    # the overflow itself raises an error with a message of its own
    warnings.filterwarnings("ignore", "overflow encountered in cast")
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, _terminated)
    given = list(sys.argv[1:] if arguments is None else arguments)
    words = ["--help" if word == parser.EVERYTHING else word for word in given]
    messages.as_json = "--json" in words
    messages.noted.clear()
    try:
        code = app(args=words, prog_name="chimap", standalone_mode=False, obj=parser.EVERYTHING in given)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = messages.INTERRUPTED
    except Exception as error:
        return _explain(error)
    return messages.explain_interrupt() if code == messages.INTERRUPTED else int(code or 0)


def run() -> NoReturn:
    """Run the ``chimap`` command and exit the process.

    After a signal the process exits without joining its threads: a pool does not know of a thread that was starting
    when the signal arrived, and would never tell it to stop.
    """
    try:
        code = main()
    except SystemExit as leaving:
        code = int(leaving.code or 0)
    if code in (messages.INTERRUPTED, _TERMINATED):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _explain(error: Exception) -> int:
    """Print an exception as a message and return the exit code."""
    causes = {name for cause in _behind(error) for name in _names_of(cause)}
    if SystemExit.__name__ in causes:  # of SIGTERM, in code that made it another error
        return _TERMINATED
    if KeyboardInterrupt.__name__ in causes or isinstance(error, click.Abort):
        return messages.explain_interrupt()
    if isinstance(error, click.exceptions.NoArgsIsHelpError):
        print(error.ctx.get_help(), file=sys.stderr)
        return messages.USAGE
    if not isinstance(error, click.UsageError):
        return messages.explain(error)
    command = error.ctx.command_path if error.ctx else "chimap"
    message = error.format_message().rstrip(".")
    messages.say("error", f"{message}{'' if message.endswith('?') else '.'} See '{command} --help'.")
    return messages.USAGE


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, then its causes and contexts in turn."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _names_of(error: BaseException) -> list[str]:
    """Return the name of an exception, and of the one within it if it was raised for an argument of a C function.

    The ctypes module keeps only the text of that: "argument 8: KeyboardInterrupt: ".
    """
    is_of_argument = isinstance(error, ctypes.ArgumentError)
    return [type(error).__name__, *(str(error).split(":")[1].split() if is_of_argument else [])]


def _show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: object) -> None:
    kind = "note" if category.__name__ == "DataWarning" else "warning"
    messages.say(kind, messages.in_flags(message))


def _terminated(number: int, frame: FrameType | None) -> None:
    """Exit through an exception, so that unfinished output files are removed."""
    sys.exit(_TERMINATED)
