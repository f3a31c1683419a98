"""The command line as a user has it: arguments in, exit code, stdout and stderr out."""

from __future__ import annotations

import atexit
import contextlib
import io
import json
import os
import select
import signal
import socket
import subprocess
import sys
import tempfile
import time
import warnings
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


def run(*arguments: Any, cwd: Path) -> Result:
    """One command in a fresh interpreter, which takes seconds to load libraries."""
    command = [sys.executable, "-m", "chimap", *map(str, arguments)]
    done = subprocess.run(
        command, cwd=cwd, capture_output=True, text=True, encoding="utf-8", timeout=SECONDS, check=False
    )
    return Result(done.returncode, done.stdout, done.stderr)


def run_here(*arguments: Any, cwd: Path) -> Result:
    """One command in this process, which has the libraries loaded; what it sets for its process is put back."""
    from chimap.cli.main import main

    out, err, handler, folder = io.StringIO(), io.StringIO(), signal.getsignal(signal.SIGTERM), os.getcwd()
    try:
        os.chdir(cwd)
        with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            code = main([*map(str, arguments)])
    finally:
        os.chdir(folder)
        signal.signal(signal.SIGTERM, handler)
    return Result(code, out.getvalue(), err.getvalue())


def run_many_here(commands: list[list[Any]], cwd: Path) -> list[Result]:
    """Commands one after the other, in this process."""
    return [run_here(*command, cwd=cwd) for command in commands]


def run_many(commands: list[list[Any]], cwd: Path) -> list[Result]:
    """Commands one after the other, each in a process of its own."""
    if not hasattr(os, "fork"):
        return [run(*command, cwd=cwd) for command in commands]
    return [start(*command, cwd=cwd).result() for command in commands]


class Running:
    """A command in a process that is forked from one that has libraries and loops loaded."""

    def __init__(self, command: list[str], cwd: Path, stderr: int | None, largest_file: int | None):
        request = {"command": command, "cwd": str(cwd), "environment": dict(os.environ), "largest_file": largest_file}
        self.out, self.err = (tempfile.TemporaryFile() for _ in range(2))  # noqa: SIM115
        self.told, theirs = socket.socketpair(type=socket.SOCK_DGRAM)  # whole messages
        with theirs:
            files = [self.out.fileno(), self.err.fileno() if stderr is None else stderr, theirs.fileno()]
            message = json.dumps(request).encode()
            connection = _server()[1]
            socket.send_fds(connection, [len(message).to_bytes(8, "big")], files)
            connection.sendall(message)
        self.code: int | None = None
        self.pid = int(self._next(SECONDS))

    def _next(self, seconds: float) -> bytes:
        """What its parent tells: first the number of the process, then its exit code; empty if not yet."""
        return self.told.recv(64) if select.select([self.told], [], [], seconds)[0] else b""

    def is_running(self) -> bool:
        if self.code is None and (code := self._next(0)):
            self.code = int(code)
        return self.code is None

    def send(self, number: int) -> None:
        """A signal."""
        if self.is_running():
            os.kill(self.pid, number)

    def result(self) -> Result:
        """Once it has ended."""
        deadline = time.monotonic() + SECONDS
        while self.is_running():
            select.select([self.told], [], [], 1)
            if time.monotonic() > deadline:
                self.send(signal.SIGKILL)
                raise TimeoutError(f"process {self.pid} was still running after {SECONDS} s")
        out, err = (_text(file) for file in (self.out, self.err))
        return Result(self.code, out, err)


def _text(file: Any) -> str:
    file.seek(0)
    return file.read().decode()


def start(*arguments: Any, cwd: Path, stderr: int | None = None, largest_file: int | None = None) -> Running:
    """A command that runs beside the test; it may write no file beyond ``largest_file`` bytes."""
    return Running(list(map(str, arguments)), cwd, stderr, largest_file)


@lru_cache
def _server() -> tuple[subprocess.Popen, socket.socket]:
    """The process that forks, which lives as long as the tests, and the connection to it."""
    ours, theirs = socket.socketpair()
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", str(Path(__file__).with_name("forking.py")), str(theirs.fileno())],
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    atexit.register(_end, server)
    return server, ours


def _end(server: subprocess.Popen) -> None:
    """End it, with what it has forked."""
    if server.poll() is None:
        os.killpg(server.pid, signal.SIGKILL)
        server.wait()
