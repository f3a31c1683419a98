"""The ``chimap`` command: its subcommands, and how their errors become messages and exit codes."""

from __future__ import annotations

import functools
import inspect
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer

from chimap._version import __version__
from chimap.cli import machine, messages, panels
from chimap.cli.commands.compare import compare
from chimap.cli.commands.demo import demo
from chimap.cli.commands.evaluate import evaluate
from chimap.cli.commands.explain import explain
from chimap.cli.commands.export import export
from chimap.cli.commands.features import features
from chimap.cli.commands.fit import fit
from chimap.cli.commands.info import info
from chimap.cli.commands.learn_kernel import learn_kernel
from chimap.cli.commands.predict import predict
from chimap.cli.options import flat

COMMANDS = (demo, features, fit, predict, evaluate, explain, compare, learn_kernel, export, info)

app = typer.Typer(
    name="chimap",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help can be searched and copied, and appears in half the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _until_the_reader_leaves(command: Callable[..., None]) -> Callable[..., int | None]:
    """Wrap a command so that it ends quietly when the reader of its output leaves, as head and pagers do."""

    @functools.wraps(command)
    def run(**arguments: object) -> int | None:
        try:
            command(**arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            machine.discard_output()
            return machine.PIPE_CLOSED
        return None

    return run


for command in COMMANDS:
    with_options = flat(command)
    messages.known.update(map(messages.flag_of, inspect.signature(with_options).parameters))
    app.command(cls=panels.PanelCommand)(_until_the_reader_leaves(with_options))


_TERMINATED = 128 + 15  # the exit code of a process that SIGTERM ended


def _version(wanted: bool) -> None:
    if wanted:
        print(f"chimap {__version__} ({machine.installation()})")
        raise typer.Exit


@app.callback()
def chimap(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Classification and regression on tables of counts: words, species, cells, molecules, images.

    \b
    Try it:
      chimap demo

    \b
    Your own data:
      chimap fit data.npz --test-fraction 0.2 --output my.model
      chimap evaluate my.model data.npz --output report.html
      chimap predict my.model new.npz --output predictions.csv
      chimap explain my.model data.npz --output why.html

    \b
    Images:
      chimap fit photos/ --test-fraction 0.2 --output photos.model
      chimap features photos/ --output photos.parquet

    \b
    More:
      chimap compare data.npz
      chimap learn-kernel data.npz --blocks a=0:300,b=300:500 --output my.model
      chimap export my.model --output my.onnx

    Data formats: CSV, .npz (X and y, or a scipy CSR matrix), .npy, Parquet, Feather, AnnData, BIOM, Zarr, HDF5, Matrix
    Market and svmlight text (.svm, .txt). Data are read from a path or an address such as s3://BUCKET/FILE.
    """


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
    words = ["--help" if word == panels.EVERYTHING else word for word in given]
    messages.as_json = "--json" in words
    messages.noted.clear()
    try:
        code = app(args=words, prog_name="chimap", standalone_mode=False, obj=panels.EVERYTHING in given)
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
    signals = [cause for cause in _behind(error) if isinstance(cause, SystemExit | KeyboardInterrupt)]
    if any(isinstance(cause, SystemExit) for cause in signals):  # of SIGTERM, in code that made it another error
        return _TERMINATED
    if signals or type(error).__name__ == "Abort":  # older versions of typer raise Abort on Ctrl-C
        return messages.explain_interrupt()
    if not hasattr(error, "format_message"):
        return messages.explain(error)
    # A usage error of typer, not caught by class: some versions bundle click and others import the installed one.
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help(), file=sys.stderr)
        return messages.USAGE
    command = context.command_path if context else "chimap"
    message = error.format_message().rstrip(".").replace("Value error, ", "")
    value = _what_came(error)
    value = f"; got {value}" if value and value not in message else ""
    messages.say("error", f"{message}{value}. See '{command} --help'.")
    return messages.USAGE


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """Yield an exception, then its causes and contexts in turn."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _what_came(error: Exception) -> str:
    """Return the value of the argument that typer rejected; not all of its messages name the value."""
    find = getattr(error.__cause__, "errors", None)
    details = find() if callable(find) else []
    return repr(details[0]["input"]) if details and "input" in details[0] else ""


def _show_warning(message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: object) -> None:
    kind = "note" if category.__name__ == "DataWarning" else "warning"
    messages.say(kind, messages.in_flags(message))


def _terminated(number: int, frame: FrameType | None) -> None:
    """Exit through an exception, so that unfinished output files are removed."""
    sys.exit(_TERMINATED)
