"""Time of compilation as a separate stage, with a note to the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from chimap._progress import Progress, Stopwatch


@contextmanager
def compilation(clock: Stopwatch, progress: Progress) -> Iterator[None]:
    """Count the compilation of loops within the block as the stage "compile"; the first one sends a note to progress.

    A loop compiles at its first call for each kind of array after the installation, and is then cached on disk.
    """
    from numba.core import event

    from chimap.engines.compiler_watch import Watch

    with event.install_listener("numba:compile", Watch(clock, progress)):
        yield
