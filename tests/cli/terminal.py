"""The command line as a user has it: arguments in, exit code, stdout and stderr out."""

from __future__ import annotations

import atexit
import json
import os
import select
import signal
import subprocess
import sys
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

SECONDS = 300  # a command that takes longer hangs, on a busy machine too


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
    """Commands in processes of their own, forked from one that has libraries and loops loaded: that takes the time."""
    if not hasattr(os, "fork"):
        return [run(*command, cwd=cwd) for command in commands]
    return [_forked(list(map(str, command)), cwd) for command in commands]


def _forked(command: list[str], cwd: Path) -> Result:
    server = _server()
    request = {"command": command, "cwd": str(cwd), "environment": dict(os.environ)}
    server.stdin.write(json.dumps(request) + "\n")
    server.stdin.flush()
    if not select.select([server.stdout], [], [], SECONDS)[0]:
        _end(server)
        raise subprocess.TimeoutExpired(command, SECONDS)
    return Result(*json.loads(server.stdout.readline()))


@lru_cache
def _server() -> subprocess.Popen:
    """The process that forks; it lives as long as the tests."""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True, "encoding": "utf-8"}
    server = subprocess.Popen(
        [sys.executable, "-P", str(Path(__file__).with_name("forking.py"))], start_new_session=True, **pipes
    )
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen) -> None:
    """End it, with what it has forked."""
    _server.cache_clear()
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
