"""Commands of the shell, run in this process: many of them need the same libraries, which take seconds to load."""

from __future__ import annotations

import contextlib
import io
import json
import os
import signal
import warnings
from pathlib import Path
from typing import Any, NamedTuple

from chimap.cli.main import main


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def run(*arguments: Any, cwd: Path) -> Result:
    """One command; what it sets for its process is put back."""
    out, err, handler, folder = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM), os.getcwd()
    try:
        os.chdir(cwd)
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*map(str, arguments)])
    finally:
        os.chdir(folder)
        signal.signal(signal.SIGTERM, handler)
    return Result(code, out.getvalue(), err.getvalue())


def run_many(commands: list[list[Any]], cwd: Path) -> list[Result]:
    """Commands one after the other."""
    return [run(*command, cwd=cwd) for command in commands]
