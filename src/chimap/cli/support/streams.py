"""Standard output and error as a shell may leave them: closed, full, of few letters, or with no reader."""

from __future__ import annotations

import contextlib
import errno
import io
import os
import sys

PIPE_CLOSED = 128 + 13  # what a shell says of a program that SIGPIPE ended, as it does head's and grep's


class _ClosedOutput(io.TextIOBase):
    """Stands for a standard output that the shell has closed: whatever is written to it is an error."""

    def writable(self) -> bool:
        return True

    def write(self, text: str) -> int:
        raise OSError(errno.EBADF, "closed, so there is nowhere to write the result", "stdout")


def prepare() -> None:
    """Have both streams there, able to take any letter.

    The numbers of closed streams are taken first: a file that got one would receive what is meant for the stream.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number, which is this one
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(AttributeError):  # a terminal of few letters shows "?" rather than fail
            stream.reconfigure(errors="replace")  # type: ignore[union-attr]


def discard_output() -> None:
    """Send what is still in the buffer nowhere, so that the interpreter does not fail on it at its end."""
    with contextlib.suppress(OSError, ValueError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)
