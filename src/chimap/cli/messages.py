"""Errors, notes and warnings: in the flags of the command line, one line on stderr each, and an exit code."""

from __future__ import annotations

import json
import os
import sys
import traceback
from numbers import Integral, Real

from chimap._errors import InputError, MissingPackageError
from chimap._messages import text_of
from chimap.cli import commands

# Flags that do not follow from the parameter name. All others are the name without n_ and with hyphens.
_FLAGS = {
    "selection": "--folds",
    "normalize": "--normalization",
    "n_train": "--per-class",
    "max_iter": "--iterations",
    "random_state": "--seed",
}
# Readings of a column, by the name of their class,
_READINGS = {"WordCounts": "--text", "MoleculeBlocks": "--smiles"}
# what stands for a value that is the absence of a flag, or has another word there,
_SPELT = {
    "selection='auto'": "no --folds",
    "bin_weights=None": "--bin-weights none",
    "transpose=False": "--no-transpose",
}
# and the values that a flag takes, where these are fewer than those of its parameter.
_TAKES = {"selection": Integral}


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter of the package.

    >>> flag_of("n_terms"), flag_of("test_fraction"), flag_of("random_state")
    ('--terms', '--test-fraction', '--seed')
    """
    return _FLAGS.get(parameter, f"--{parameter.removeprefix('n_').replace('_', '-')}")


def in_flags(message: object) -> str:
    """Return the text of a message, exception or warning with the flags of its parameters.

    >>> from chimap._messages import Message
    >>> in_flags(Message("{device='cuda'} takes {loss='square'}; got {n_principal=None}."))
    '--device cuda takes --loss square; got no --principal.'
    """
    return text_of(message, _FlagSpelling())


class _FlagSpelling:
    """Parameters as the command line writes them. Those, and values, that no flag takes stay as in Python."""

    def parameter(self, name: str) -> str:
        flag = flag_of(name)
        return flag if flag in commands.flags() else name

    def setting(self, name: str, value: object, shown: str) -> str:
        flag, in_python = flag_of(name), f"{name}={shown}"
        if name == "reading" and isinstance(value, tuple):
            kind, column = value
            return f"{_READINGS[kind]} {column}"
        if in_python in _SPELT:
            return _SPELT[in_python]
        if flag not in commands.flags():
            return in_python
        if value is None or value is False:
            return f"no {flag}"
        if value is True or isinstance(value, dict):  # such as blocks, which a shell writes in other words
            return flag
        if not isinstance(value, _TAKES.get(name, str | Real)):
            return in_python
        return f"{flag} {value if shown == repr(value) else shown}"


USAGE, INTERNAL, INTERRUPTED = 2, 1, 130
HOW_TO_REPORT = (
    "this is a bug in chimap, not in your data. Please report it with the lines above and the output of 'chimap info'."
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
    say("error", HOW_TO_REPORT, INTERNAL)
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
    return isinstance(error, OSError | InputError | MissingPackageError)  # OSError: files, disks, streams and hosts


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
