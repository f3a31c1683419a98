"""Make standard output and error usable however the shell left them: closed, full, ASCII-only or without a reader."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys

PIPE_CLOSED = 128 + 13  # the exit code that shells give a program ended by SIGPIPE


class _ClosedOutput(io.TextIOBase):
    """Stand-in for a standard output that the shell has closed: every write raises an error."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "closed, so there is nowhere to write the result", "stdout")


def prepare() -> None:
    """Make sure that both streams exist and accept any character.

    File descriptors of closed streams are reserved first: a file opened under one of them would receive the output
    meant for the stream.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest free descriptor, which is this one
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # an ASCII terminal shows "?" instead of failing
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def discard_output() -> None:
    """Discard buffered output, so that the interpreter does not fail to flush it at exit."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
