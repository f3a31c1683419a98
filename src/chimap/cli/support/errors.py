"""Turn exceptions into one line on stderr and an exit code."""

from __future__ import annotations

import json
import os
import re
import sys
import traceback
from pathlib import Path

USAGE, INTERNAL, INTERRUPTED = 2, 1, 130
REPORT = (
    "this is a bug in chimap, not in your data. Please report it with the lines above and "
    "the output of 'chimap info'."
)

as_json = False  # whether errors also go to stdout as JSON
noted: set[str] = set()  # notes and warnings already printed; some commands read a file twice
written: list[str] = []  # files that this run has finished, for the message after Ctrl-C

# Flags that do not follow from the parameter name. All others are the name without n_ and with hyphens.
_FLAGS = {
    "selection": "--folds",
    "normalize": "--normalization",
    "n_train": "--per-class",
    "max_iter": "--iterations",
    "random_state": "--seed",
}
# Parameters that messages name anywhere in a sentence,
_NAMED = (
    *(name for name in _FLAGS if name != "normalize"),
    "bin_weights", "class_weight", "race_seconds", "n_tune_components", "n_tune_rows", "n_components", "n_principal",
    "n_terms", "n_jobs", "n_test_rows", "exact_rows", "n_rows", "n_words", "validation_fraction", "test_fraction",
    "width_strength", "alpha",
)  # fmt: skip
# and parameters that are also ordinary words, replaced only where the context is clear.
_WORDS = (
    "blocks", "coding", "device", "engine", "features", "format", "gamma", "grids", "kernel", "labels", "loss", "map",
    "memory", "normalize", "objective", "precision", "sampling", "scoring", "seed", "threshold", "tolerance", "widths",
)  # fmt: skip
# What stands for a value that is the absence of a flag, or has another word there,
_SPELT = {"selection='auto'": "no --folds", "bin_weights=None": "--bin-weights none"}
# a value, and further ones after it, as in loss='square' or 'hinge'; a call is an object, which no flag takes.
_VALUE = r"'?[\w.+\-]++(?!\()'?(?:(?:,| or|, or) '[\w.+\-]+')*"
_VALUES = {"selection": r"\d+"}  # of parameters whose flag takes some values only


def explain(error: BaseException) -> int:
    """Print an error and return the exit code. A bug of chimap prints its traceback too."""
    if is_fault_of_input(error):
        say("error", _message(error))
        return USAGE
    if isinstance(error, MemoryError):
        say(
            "error",
            "out of memory; give a smaller --memory or fewer --components.",
            INTERNAL,
        )
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

    This holds for errors of files and folders, and for the ValueError and ImportError that the checks of the package
    raise. A ValueError from inside NumPy or scikit-learn was not foreseen by any check, so it is a bug.
    """
    if isinstance(error, OSError):
        return True  # files, disks, streams and hosts
    if not isinstance(error, ValueError | ImportError):
        return False
    frames = traceback.extract_tb(error.__traceback__)
    package = Path(__file__).parents[2]
    return bool(frames) and Path(frames[-1].filename).is_relative_to(package)


def flag_of(parameter: str) -> str:
    """Return the flag of a parameter of the package.

    >>> flag_of("n_terms"), flag_of("test_fraction"), flag_of("random_state")
    ('--terms', '--test-fraction', '--seed')
    """
    return _FLAGS.get(parameter, f"--{parameter.removeprefix('n_').replace('_', '-')}")


def in_flags(message: str) -> str:
    """Return the message with parameter names replaced by the flags of the command line.

    >>> in_flags("memory='64MiB' is too small; fewer n_components, or alpha='auto'")
    '--memory 64MiB is too small; fewer --components, or --alpha auto'
    >>> in_flags("device='cuda' takes loss='square'; got n_principal=None.")
    '--device cuda takes --loss square; got no --principal.'
    """
    for spelling, flag in _SPELT.items():
        message = re.sub(rf"(?<![\w\-./]){spelling}(?!\w)", flag, message)
    for name in (*_NAMED, *_WORDS):
        message = _with_flag(message, name, flag_of(name))
    return message


def _with_flag(message: str, name: str, flag: str) -> str:
    """Return the message with one parameter replaced by its flag."""

    def set_to(found: re.Match[str]) -> str:
        values = found[1].replace("'", "")
        return f"{flag} {values}"

    there = rf"(?<![\w\-./]){name}"
    message = re.sub(rf"{there}=None\b", f"no {flag}", message)
    message = re.sub(
        rf"{there}=\{{[^{{}}]*\}}", flag, message
    )  # a dictionary, such as blocks, is longer as text
    message = re.sub(rf"{there}=({_VALUES.get(name, _VALUE)})", set_to, message)
    message = re.sub(rf"^{name}(?= must\b)", flag, message)
    return re.sub(rf"{there}\b(?!/|\.\w|=)", flag, message) if name in _NAMED else message


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
    from chimap._validation import ParameterError

    if isinstance(error, ParameterError):
        return f"{flag_of(error.name)} must be {error.wanted}; got {error.value!r}."
    if not isinstance(error, OSError):
        return in_flags(str(error))
    if error.errno is None:
        return str(error)
    reason = (error.strerror or os.strerror(error.errno)).lower()
    return f"{error.filename}: {reason}." if error.filename else f"{reason}."
