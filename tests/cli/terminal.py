"""The command line as a user has it: arguments in, exit code, stdout and stderr out."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 120  # a command that takes longer hangs


class Result(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


def start(*arguments: Any, cwd: Path, **options: Any) -> subprocess.Popen:
    command = [sys.executable, "-m", "chimap", *map(str, arguments)]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    return subprocess.Popen(command, cwd=cwd, **(pipes | options))


def run(*arguments: Any, cwd: Path) -> Result:
    """One command in a process of its own."""
    process = start(*arguments, cwd=cwd)
    out, err = process.communicate(timeout=SECONDS)
    return Result(process.returncode, out, err)


def run_many(commands: list[list[Any]], cwd: Path) -> list[Result]:
    """Commands in processes of their own, forked from one that has the libraries loaded: that takes the time."""
    if not hasattr(os, "fork"):
        return [run(*command, cwd=cwd) for command in commands]
    text = json.dumps([list(map(str, command)) for command in commands])
    finished = subprocess.run(
        [sys.executable, "-c", _FORKING, str(cwd)],
        input=text, capture_output=True, text=True, encoding="utf-8", cwd=cwd, timeout=SECONDS,
    )  # fmt: skip
    assert finished.returncode == 0, finished.stderr
    return [Result(*values) for values in json.loads(finished.stdout)]


_FORKING = """
import json, os, sys, tempfile

from chimap.cli.support import blas
from chimap.cli.main import main

blas.prepare_blas()
import chimap.data, chimap.estimators, chimap.report


def child(command, out, err):
    os.dup2(out.fileno(), 1)
    os.dup2(err.fileno(), 2)
    code = 99
    try:
        code = main(command)
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


results = []
for command in json.load(sys.stdin):
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        pid = os.fork()
        if pid == 0:
            child(command, out, err)
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        out.seek(0)
        err.seek(0)
        results.append([code, out.read(), err.read()])
print(json.dumps(results))
"""
