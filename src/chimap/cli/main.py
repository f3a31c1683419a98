"""The command ``chimap``: its subcommands, and what it says when one fails."""

from __future__ import annotations

import functools
import os
import signal
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer

from chimap._version import __version__
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
from chimap.cli.support import blas, describe_machine, errors, panels, streams
from chimap.cli.support.bundles import flat

if TYPE_CHECKING:
    pass


COMMANDS = (demo, features, fit, predict, evaluate, explain, compare, learn_kernel, export, info)

app = typer.Typer(
    name="chimap",
    no_args_is_help=True,
    rich_markup_mode=None,  # plain help: it can be searched and copied, and comes in half the time
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _until_the_reader_leaves(command: Callable[..., None]) -> Callable[..., int | None]:
    """The command, ended in silence where whoever read its output has had enough: head, or a pager that was left."""

    @functools.wraps(command)
    def run(**arguments: object) -> int | None:
        try:
            command(**arguments)
            sys.stdout.flush()
        except BrokenPipeError:
            streams.discard_output()
            return streams.PIPE_CLOSED
        return None

    return run


for command in COMMANDS:
    app.command(cls=panels.PanelCommand)(_until_the_reader_leaves(flat(command)))


_TERMINATED = 128 + 15  # the exit code of a process that SIGTERM has ended
_wants_everything = False


def _version(wanted: bool) -> None:
    if wanted:
        print(f"chimap {__version__} ({describe_machine.build()})")
        raise typer.Exit


@app.callback()
def chimap(
    context: typer.Context,
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Classify and predict from tables of counts: words, species, cells, molecules, images.

    \b
    Try it:           chimap demo
    On your own file: chimap fit data.npz --test-fraction 0.2 --output my.model
                      chimap evaluate my.model data.npz --output report.html
                      chimap predict my.model new.npz --output predictions.csv
                      chimap explain my.model data.npz --output why.html

    \b
    From images:      chimap fit photos/ --test-fraction 0.2 --output photos.model
                      chimap features photos/ --output photos.parquet

    \b
    Next:             chimap compare data.npz
                      chimap learn-kernel data.npz --blocks sift=0:300,hog=300:500 --output my.model
                      chimap export my.model --output my.onnx

    Data are CSV, .npz (X and y, or a scipy CSR matrix), .npy, Parquet, Feather, AnnData, BIOM, Zarr, HDF5, Matrix
    Market, or svmlight text (.svm, .txt), at a path or an address such as s3://BUCKET/FILE.
    """
    context.meta[panels.EVERYTHING] = _wants_everything


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code: 0, 1 (our fault), 2 (usage or data), 130 (Ctrl-C)."""
    blas.prepare_blas()
    streams.prepare()
    warnings.filterwarnings(
        "ignore", "overflow encountered in cast"
    )  # what follows from it has a message of ours
    warnings.showwarning = _show_warning  # type: ignore[assignment]
    if hasattr(signal, "SIGTERM"):
        signal.signal(signal.SIGTERM, _terminated)
    global _wants_everything
    words, _wants_everything = panels.as_help(arguments)
    errors.as_json = "--json" in words
    errors.noted.clear()
    try:
        code = app(args=words, prog_name="chimap", standalone_mode=False)
        sys.stdout.flush()
    except KeyboardInterrupt:
        code = errors.INTERRUPTED
    except Exception as error:
        return _explain(error)
    return errors.explain_interrupt() if code == errors.INTERRUPTED else int(code or 0)


def run() -> NoReturn:
    """The command ``chimap``: run the command line and leave.

    After a signal it leaves without waiting for threads: one that was being started when the signal came is not known
    to its pool, which would never tell it to end.
    """
    try:
        code = main()
    except SystemExit as ended:
        code = int(ended.code or 0)
    if code in (errors.INTERRUPTED, _TERMINATED):
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    sys.exit(code)


def _explain(error: Exception) -> int:
    signals = [one for one in _behind(error) if isinstance(one, SystemExit | KeyboardInterrupt)]
    if any(
        isinstance(one, SystemExit) for one in signals
    ):  # which the code that it came in has made an error of
        return _TERMINATED
    if signals or type(error).__name__ == "Abort":  # what older versions of typer make of Ctrl-C
        return errors.explain_interrupt()
    if not hasattr(error, "format_message"):
        return errors.explain(error)
    # a usage error of typer, which brings its own click in some versions and takes the installed one in others
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        print(context.get_help(), file=sys.stderr)
        return errors.USAGE
    command = context.command_path if context else "chimap"
    message = error.format_message().rstrip(".").replace("Value error, ", "")
    came = _what_came(error)
    came = f"; got {came}" if came and came not in message else ""
    errors.say("error", f"{message}{came}. See '{command} --help'.")
    return errors.USAGE


def _behind(error: BaseException | None) -> Iterator[BaseException]:
    """An error and those that it came from."""
    while error is not None:
        yield error
        error = error.__cause__ or error.__context__


def _what_came(error: Exception) -> str:
    """The value of an argument that could not be understood, which not every message of typer names."""
    find = getattr(error.__cause__, "errors", None)
    details = find() if callable(find) else []
    return repr(details[0]["input"]) if details and "input" in details[0] else ""


def _show_warning(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, *rest: object
) -> None:
    errors.say("warning", errors.in_flags(str(message)))


def _terminated(number: int, frame: FrameType | None) -> None:
    """Leave as after an error, so that files that were being written are removed."""
    sys.exit(_TERMINATED)
