"""Turn exceptions into one line on stderr and an exit code."""

from __future__ import annotations

import json
import os
import sys
import traceback

from chimap._errors import InputError, MissingPackageError
from chimap.cli.support.flag_names import in_flags

USAGE, INTERNAL, INTERRUPTED = 2, 1, 130
REPORT = (
    "this is a bug in chimap, not in your data. Please report it with the lines above and "
    "the output of 'chimap info'."
)

as_json = False  # whether errors also go to stdout as JSON
noted: set[str] = set()  # notes and warnings already printed; some commands read a file twice
written: list[str] = []  # files that this run has finished, for the message after Ctrl-C


def explain(error: BaseException) -> int:
    """Print an error and return the exit code. A bug of chimap prints its traceback too."""
    if is_fault_of_input(error):
        say("error", _message(error))
        return USAGE
    if isinstance(error, MemoryError):
        say("error", "out of memory; give a smaller --memory or fewer --components.", INTERNAL)
        return INTERNAL
    traceback.print_exception(error, file=sys.stderr)
    say("error", REPORT, INTERNAL)
    return INTERNAL


def explain_interrupt() -> int:
    """Print which files exist after Ctrl-C, and return the exit code."""
    files = f"files already written: {', '.join(written)}" if written else "nothing was written"
    print(f"\nchimap: interrupted; {files}", file=sys.stderr)
    return INTERRUPTED


def is_fault_of_input(error: BaseException) -> bool:
    """Return whether the input, not chimap, is at fault.

    This holds for errors of files and folders, and for the exceptions of the package. All others, from NumPy, Python or
    scikit-learn, were not foreseen by any check, so they are bugs.
    """
    return isinstance(
        error, OSError | InputError | MissingPackageError
    )  # OSError: files, disks, streams and hosts


def say(kind: str, message: str, code: int = 2) -> None:
    """Print one line such as ``chimap: error: ...`` or ``chimap: note: ...`` on stderr.

    With --json, errors are also printed on stdout. The same note or warning is printed only once; an error ends the
    command and is always printed.
    """
    line = " ".join(message.split())
    if kind == "error" or line not in noted:
        print(f"chimap: {kind}: {line}", file=sys.stderr, flush=True)
    noted.add(line)
    if as_json and kind == "error":
        print(json.dumps({"error": line, "exit_code": code}, ensure_ascii=False), flush=True)


def _message(error: BaseException) -> str:
    if not isinstance(error, OSError) or error.errno is None:
        return in_flags(error)
    reason = (error.strerror or os.strerror(error.errno)).lower()
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."
