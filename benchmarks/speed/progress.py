"""How right the time is that progress says is left, after a tenth of each step of a fit.

    python -m benchmarks.speed.progress [--rows 6000] [--only NAME]

Rows are made: Poisson counts of 60 bins whose rates depend on three classes. Each line is a step of a fit that takes a
second at least: its seconds, and what the line said was left over what was left in truth, after a tenth and after a half
of them. The aim is 0.5 to 1.5. Seconds are those of the wall, and of the processor: where others use the computer, the
first are not steady.
"""

from __future__ import annotations

import argparse
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial

from benchmarks.measure import report  # first: it sets up the BLAS

import numpy as np  # isort: skip

from chimap import HistogramClassifier
from chimap._progress import Ahead, LineProgress, Progress
from chimap.data import ArraySource

EVERY = 0.02  # seconds between two looks at the line
LEAST = 1.0  # seconds of a step that is worth a line
FITS = {
    "exp-chi2, one matrix": ({"kernel": "exp-chi2"}, 2),
    "exp-chi2, in blocks": ({"kernel": "exp-chi2", "memory": "300MiB"}, 4),
    "chi2, sums": ({"kernel": "chi2", "features": "additive"}, 40),
    "chi2, logistic": ({"kernel": "chi2", "loss": "logistic"}, 10),
    "default, few rows": ({}, 0.25),
    "default": ({}, 1),
}


class Watched(LineProgress):
    """Keeps what the line says is left, every ``EVERY`` seconds, by step."""

    def __init__(self, clock: Callable[[], float]) -> None:
        super().__init__(every=1e6, clock=clock)
        self.looks: list[tuple[str, float, float | None]] = []
        self._is_over = threading.Event()

    def step(self, words: str, ahead: Sequence[Ahead] = ()) -> None:
        super().step(words, ahead)
        self.looks.append((words, self._clock(), None))

    def watch(self) -> threading.Thread:
        def look() -> None:
            while not self._is_over.wait(EVERY):
                self.looks.append((self._words, self._clock(), self.seconds_left))

        thread = threading.Thread(target=look)
        thread.start()
        return thread

    def end(self) -> None:
        self._is_over.set()
        self.looks.append(("", self._clock(), None))


class Both(Progress):
    """Tells two of all that happens."""

    def __init__(self, *told: Progress) -> None:
        for name in ("steps", "step", "stage", "advance", "scored", "planned", "note"):
            setattr(self, name, partial(self._tell, [getattr(each, name) for each in told]))

    def _tell(self, methods: Sequence[Callable[..., None]], *given: object, **more: object) -> None:
        for method in methods:
            method(*given, **more)


def steps(progress: Watched) -> list[tuple[str, float, float | None, float | None]]:
    """Return words and seconds of each step, and said over true seconds left after a tenth and after a half."""
    found = []
    words = [name for i, (name, *_) in enumerate(progress.looks) if i == 0 or name != progress.looks[i - 1][0]]
    for name in filter(None, words):
        own = [look for look in progress.looks if look[0] == name]
        began = own[0][1]
        ended = min(at for _, at, _ in progress.looks if at > own[-1][1])

        def ratio(share: float, began: float = began, ended: float = ended, own: list = own) -> float | None:
            at, left = next(((at, left) for _, at, left in own if at >= began + share * (ended - began)), (ended, None))
            return None if left is None else left / (ended - at)

        found.append((name, ended - began, ratio(0.1), ratio(0.5)))
    return found


def rows(n: int) -> ArraySource:
    """Return n rows of three classes."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n)
    rates = rng.gamma(0.4, size=(3, 60)) + 0.05
    X = rng.poisson(3 * (rates[y] + rates.mean(0)) * rng.gamma(0.5, size=(n, 60)))
    return ArraySource(X.astype(np.float32), y)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=6000)
    parser.add_argument("--only", choices=FITS)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    HistogramClassifier("chi2", random_state=0).fit_source(rows(300))  # loads libraries and loops
    for name, (settings, factor) in FITS.items():
        if given.only not in (None, name):
            continue
        source, watched = rows(int(factor * given.rows)), [Watched(time.perf_counter), Watched(time.process_time)]
        threads = [each.watch() for each in watched]
        HistogramClassifier(random_state=0, **settings).fit_source(source, Both(*watched))
        for each, thread in zip(watched, threads, strict=True):
            each.end()
            thread.join()
        for clock, each in zip(("wall", "processor"), watched, strict=True):
            for words, seconds, tenth, half in steps(each):
                if seconds >= LEAST:
                    shown = ["–" if ratio is None else f"{ratio:.2f}" for ratio in (tenth, half)]
                    report(f"{name}: {words}, {seconds:.1f} s ({clock})", " and ".join(shown), "0.5 to 1.5")


if __name__ == "__main__":
    main()
