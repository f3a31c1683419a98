"""A listener for the compiler, in a separate file because it imports numba."""

from __future__ import annotations

import time

from numba.core import event

from chimap._progress import Progress, Stopwatch


class Watch(event.Listener):
    """Times compilations. A loop that calls others compiles them within its time, so only the outermost counts."""

    def __init__(self, clock: Stopwatch, progress: Progress):
        self._clock, self._progress = clock, progress
        self._depth, self._began, self._told = 0, 0.0, False

    def on_start(self, event: object) -> None:
        """Note the start of a compilation. The compiler holds a lock, so there is only one at a time."""
        if self._depth == 0:
            self._began = time.perf_counter()
        self._depth += 1
        if not self._told:
            self._told = True
            self._progress.note("compiling loops for this machine; this happens once, they are kept on disk")

    def on_end(self, event: object) -> None:
        """Add the time of the outermost compilation to the clock when it ends."""
        self._depth -= 1
        if self._depth == 0:
            self._clock.put("compile", time.perf_counter() - self._began)
