"""A sweep over the blocks of rows: what it holds out, when it ends, and what it tells."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from itertools import pairwise

import numpy as np

from chimap._progress import Progress
from chimap.moments import of_rows
from chimap.solvers.base import KernelRows, Standing, Swept, WatchedRows
from chimap.solvers.blocks import BlockRidge
from chimap.solvers.contenders import CHANGES, Change, RowsToCome, rehearsed, rounds
from chimap.solvers.held_out import noise_of

LEFT_OUT_ROWS = 3000  # of the last block that are left out at its end: as many as calibrate well
MOST_SWEEPS = 4  # within a time limit: the fourth moves scores by less than their error


class Sweep:
    """A sweep over the blocks, and what it shows of the machine.

    ``begun`` is where it begins, with the first block solved at least; ``reached``, if given, is called with the state
    there and after each block. ``left_out`` are the outputs of the first block, each row left out alone, if it has just
    been solved. ``watch``, if given, ends it where more rows bring nothing; its rows are the last. ``growth`` are the
    rows and scores of machines of parts of the first block.

    Attributes
    ----------
    held_out : ndarray of shape (n, t)
        Outputs for each row by a machine that has not seen it: that of the blocks before its own or, for the last rows
        of the last block, that of all other rows. NaN for blocks that were not learned, and for the first block unless
        it is the last.
    noise : ndarray of shape (t,) or None
        Variance of the targets about the outputs of a machine without uncertainty; None before a second block.
    recent : ndarray
        Places of the rows whose held-out outputs are by machines of at least half of the rows, or of the last block.
    """

    def __init__(
        self,
        machine: BlockRidge,
        rows: KernelRows,
        begun: Swept,
        progress: Progress,
        ends_at: float | None,
        reached: Callable[[Swept], None] | None = None,
        left_out: np.ndarray | None = None,
        watch: WatchedRows | None = None,
        growth: Sequence[tuple[int, float]] = (),
    ):
        self._watch, self._growth, self._standings = watch, growth, list[Standing]()
        n = rows.Y.shape[0]
        self._watched = slice(n - (0 if watch is None else watch.places.size), n)
        self._of_watched = np.zeros((0, rows.Y.shape[1]))  # outputs, but for the intercept
        self._machine, self._rows, self._progress, self._ends_at = machine, rows, progress, ends_at
        self._begun, self._reached, self._left_out_first = begun, reached, left_out
        self._blocks = [slice(int(a), int(b)) for a, b in pairwise(begun.borders)]
        self.held_out = np.full(rows.Y.shape, np.nan)
        self.held_out[: begun.held_out.shape[0]] = begun.held_out
        self.noise: np.ndarray | None = None
        self._scores = [(int(n), float(score)) for n, score in begun.scores]
        self._latest_seconds, self._latest_rows, self._most_seconds = 0.0, 1, 0.0

    def run(self) -> None:
        """Learn the blocks that are left, as far as there is time.

        Time of a limit that one sweep leaves goes into further ones, which come nearer to the exact solution. An
        interruption by the user (Ctrl-C) ends the sweep, not the fit. If there is a checkpoint it ends both, and the
        fit is resumed from there.
        """
        self._progress.stage("blocks", self._blocks[-1].stop)
        self._machine.adopt(self._begun)
        self._progress.advance(self._machine.n_seen)
        self._tell()
        try:
            if self._is_watching:
                self._of_watched = self._machine.outputs(self._watched) - self._machine.intercept
            verdict = self._verdict()
            for block in [block for block in self._blocks if block.start >= self._machine.n_seen]:
                if not verdict and self._has_time_for(block):
                    self._learn(block)
                    verdict = self._verdict()
                    if not verdict:
                        self._meet_contenders()
                    self._tell()
            self._leave_out()
            if self._ends_at is not None and self._machine.n_seen == self._blocks[-1].stop:
                self._sweep_again()
        except KeyboardInterrupt:
            if self._reached is not None:
                raise
            self._progress.note(f"interrupted: the machine has learned from {self._machine.n_seen:,} rows")
            if self.noise is None:
                self._leave_out()

    @property
    def _is_watching(self) -> bool:
        """Whether rows are watched, of which no block has come yet."""
        return self._watch is not None and self._machine.n_seen <= self._watched.start

    def _verdict(self) -> str:
        """Return why the sweep ends here, by its outputs for the watched rows; empty if it goes on."""
        machine, watch, n_end = self._machine, self._watch, self._blocks[-1].stop
        if watch is None or not self._is_watching or machine.n_seen == n_end:
            return ""
        self.held_out[self._watched] = self._of_watched + machine.intercept
        self._standings.append(self._standing(watch))
        verdict = watch.verdict(self._standings, n_end, self._growth)
        if verdict:
            self._progress.note(f"the sweep ends after {machine.n_seen:,} of {n_end:,} rows: {verdict}")
        return verdict

    def _standing(self, watch: WatchedRows) -> Standing:
        """Return the standing of the machine, by the outputs held out for the watched rows."""
        outputs = self._rows.in_units(self.held_out[self._watched])
        return watch.standing(outputs[np.argsort(self._rows.order[self._watched])], self._machine.n_seen)

    def _meet_contenders(self) -> None:
        """Go on from contenders that predict rows to come better, where there is time for them; see ``contenders``."""
        learned, left = self._learned, self._blocks[len(self._learned) :]
        if len(learned) not in rounds(len(self._blocks)):
            return
        tries = [CHANGES[name] for name in self._begun.open]
        to_come = RowsToCome(self._rows, self._watched if self._is_watching else left[0])
        outputs = self.held_out[self._watched] if self._is_watching else None
        while tries and self._has_time_for_all(left, len(learned) * self._most_seconds):
            change, *others = tries
            outputs = self._machine.outputs(to_come.places) if outputs is None else outputs
            better = self._better_outputs(to_come, change, outputs)
            tries, outputs = (others, outputs) if better is None else ([*change.then], better)

    def _better_outputs(self, to_come: RowsToCome, change: Change, outputs: np.ndarray) -> np.ndarray | None:
        """Go on from a contender if its outputs for rows to come are better, and return these; None if they are not."""
        features, is_better = self._rows.features, False
        features.set_octaves(change.octaves)
        try:
            state, contender = rehearsed(self._machine, self._state(), self._rows, self._learned, change)
            others = contender.outputs(to_come.places)
            gain, error = to_come.gain_and_error(outputs, others)
            is_better = gain > change.errors * error
            verdict = f"{change.name} is {'taken' if is_better else 'not taken'}: {self._rows.score.name} {gain:+.4f}"
            cost = f"{len(self._learned)} of {len(self._blocks)} blocks"
            self._progress.note(f"{verdict} ± {error:.4f} of {others.shape[0]:,} rows to come, for {cost}")
        finally:
            if not is_better:
                features.set_octaves(-change.octaves)
        if not is_better:
            return None
        self._go_on_from(state, others)
        return others

    def _go_on_from(self, state: Swept, outputs: np.ndarray) -> None:
        """Take the state of another machine of the same rows, with its outputs for the watched rows, if any."""
        self._begun = state
        self._machine.adopt(state)
        self.held_out[: self.n_seen] = state.held_out
        self._scores = [(int(n), float(score)) for n, score in state.scores]
        if self._watch is not None and self._is_watching:
            self.held_out[self._watched] = outputs
            self._of_watched = outputs - self._machine.intercept
            self._standings = [self._standing(self._watch)]

    def _sweep_again(self) -> None:
        """Learn all blocks again and again, while there is time; what was held out stays that of the first sweep."""
        for number in range(2, MOST_SWEEPS + 1):
            self._progress.stage(f"sweep {number}", self._machine.n_seen)
            for block in self._learned:
                if self._has_time_for(block, self._machine.n_seen):
                    self._machine.learn(block)
                    self._progress.advance(block.stop - block.start)

    def _tell(self) -> None:
        """Say where the sweep stands."""
        if self._reached is not None:
            self._reached(self._state())

    def _state(self) -> Swept:
        return self._machine.state(self._begun, self.held_out, self._scores)

    def _learn(self, block: slice) -> None:
        """Learn a block, and keep the outputs of its rows by the machine before it."""
        began, n_seen = time.monotonic(), self._machine.n_seen
        outputs = self.held_out[block] = self._machine.learn(block)
        if self._is_watching:
            self._of_watched += self._machine.change_of_outputs(self._watched)
        self._scores.append((n_seen, self._score(outputs, block)))
        self._latest_seconds, self._latest_rows = time.monotonic() - began, block.stop
        self._most_seconds = max(self._most_seconds, self._latest_seconds)
        self._progress.advance(block.stop - block.start)
        self._progress.scored(self._rows.score.name, self._scores[-1][1])
        self._progress.note(f"{n_seen:,} rows learned: {self._rows.score.name} {self._scores[-1][1]:.4f} of the next")

    def _score(self, outputs: np.ndarray, block: slice) -> float:
        return self._rows.score_if_any(outputs, block)

    def _has_time_for(self, block: slice, n_seen: int | None = None) -> bool:
        """Whether a block is expected to end within the limit, by the seconds of those before it.

        They grow with the rows. A block may also take as long as the longest, which was factorised with its successors.
        """
        if self._ends_at is None:
            return True
        seconds = self._seconds_of(n_seen or block.stop)
        return time.monotonic() + seconds <= self._ends_at and self._machine.n_seen >= block.start

    def _seconds_of(self, n_rows: int) -> float:
        """Return the seconds that a block takes at most whose rows, with those before it, are so many."""
        return max(self._most_seconds, self._latest_seconds * n_rows / self._latest_rows)

    def _has_time_for_all(self, blocks: Sequence[slice], seconds: float) -> bool:
        """Whether blocks, and so many seconds more, are expected to end within the limit."""
        seconds += sum(self._seconds_of(block.stop) for block in blocks)
        return self._ends_at is None or time.monotonic() + seconds <= self._ends_at

    def _leave_out(self) -> None:
        """Replace the outputs of the last rows by those of the machine of all other rows."""
        rows, n, block = self._rows, self._machine.n_seen, self._machine.latest
        if block is None and (self._left_out_first is None or n > self._begun.borders[1]):
            return
        first, groups = 0, None
        if block is None:
            self.held_out[:n] = self._left_out_first
            residuals = rows.Y[:n] - self.held_out[:n]
        elif rows.groups is None:
            first = max(block.start, n - LEFT_OUT_ROWS)
            residuals = self._machine.left_out(first - block.start)
        else:
            first = block.start
            groups = [group - first for group in rows.groups if first <= group[0] < n]
            residuals = self._machine.left_out_together(groups)
        last = slice(first, n)
        if block is not None:
            self.held_out[last] = self._machine.outputs_left_out(residuals, first - block.start)
        self._scores.append((n, self._score(self.held_out[last], last)))
        if rows.has_noise:
            self.noise = self._noise_of(last, residuals, groups)

    def _noise_of(self, last: slice, residuals: np.ndarray, groups: list[np.ndarray] | None) -> np.ndarray:
        """Return the variance of the noise (t,) by residuals of the last rows, left out alone or by group."""
        rows = self._rows
        weights = np.ones(residuals.shape[0]) if rows.weights is None else of_rows(rows.weights)[last]
        if groups is None:
            own = self._machine.step_residuals(last)
            factors = np.divide(residuals, own, out=np.ones_like(residuals), where=own != 0)
        else:
            factors = weights * self._machine.variances(groups) / self._machine.alpha
        scored = slice(None) if rows.hidden is None else np.flatnonzero(rows.hidden[last])
        counts = None if rows.counts is None else rows.counts[last][scored]
        return noise_of(residuals[scored], factors[scored], weights[scored], counts)

    @property
    def n_seen(self) -> int:
        """Rows that have been learned."""
        return self._machine.n_seen

    @property
    def _learned(self) -> list[slice]:
        """The blocks that were learned."""
        return [block for block in self._blocks if block.stop <= self._machine.n_seen]

    @property
    def block_rows(self) -> np.ndarray:
        """Rows of each block that was learned."""
        return np.array([block.stop - block.start for block in self._learned])

    @property
    def recent(self) -> np.ndarray:
        """See the class."""
        n = self._machine.n_seen
        first = min(b.start for b in self._blocks if b.start >= n / 2 or b.stop == n)
        places = np.arange(first, n)
        return places[~np.isnan(self.held_out[first:n]).all(axis=1)]

    @property
    def scores(self) -> list[tuple[int, float]]:
        """Rows learned from, and score of the next block, after each block."""
        return self._scores
