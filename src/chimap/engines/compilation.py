"""Compilation made visible: its seconds as a stage of their own, and a word to whoever waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chimap._progress import Progress, Stopwatch


@contextmanager
def compilation(clock: Stopwatch, progress: Progress) -> Iterator[None]:
    """Put down what loops compile within the block to the stage "compile" of the clock; the first one tells progress.

    A loop compiles at its first call for each kind of array after the installation, and is kept on disk from then on.
    """
    from numba.core import event

    from chimap.engines.compiler_watch import Watch

    with event.install_listener("numba:compile", Watch(clock, progress)):
        yield
