"""Contenders of a sweep over blocks: its first blocks learned again at another setting, scored on rows to come.

Strength and gamma are chosen on the first block, or by a race on fewer rows, for machines of so many rows. What suits
many blocks, neither shows: a step of length l at strength alpha moves the outputs about as one at alpha / l would, and
the score of rows to come may gain while their squared error does not. So the sweep rehearses. After three blocks of at
least six, the same blocks are learned once more from the first on, with one setting changed, and both machines predict
rows that are in none of them. The contender takes over by its score and the standard error of the difference, see
``CHANGES``: its state becomes that of the sweep, with its outputs for the rows of the second block and the third. Where
a sweep is long, it meets contenders again after 6, 12, 24, ... blocks, each time from what has won.

After m of k blocks, a contender solves m factors and m^2 / k^2 of the products of the sweep, in the memory of the
latest block. Two at most are met at a time, so that outputs for the rows that they were scored on, which are held out
later, are by the best of a few machines none of which has seen these rows.

References
----------
Dawid, Prequential analysis (1984), on scores of rows to come; Efron and Tibshirani, An Introduction to the Bootstrap,
chapter 11 (1993), on the jackknife.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import count, takewhile

import numpy as np

from chimap._validation import DataError
from chimap.solvers.base import KernelRows, Swept
from chimap.solvers.blocks import BlockRidge

_FIRST, _FEWEST_BLOCKS = 3, 6  # blocks that the first contenders learn, and those of sweeps that meet any
_LATER_SHARE = 6  # blocks of a sweep for each block that later contenders learn: they take a 36th of its products
_PARTS, _FEWEST_PARTS, _FEWEST_ROWS = 50, 20, 200  # few parts, or few rows, would tell an error badly


@dataclass(frozen=True)
class Change:
    """What a contender changes: the strength is divided by ``divisor``, gamma multiplied by 2^``octaves``.

    It wins where its score is ahead by more than ``errors`` standard errors of the difference. ``then`` is what is
    tried after it, and nothing else, where it has won.
    """

    name: str
    divisor: float
    octaves: int = 0
    errors: float = 1.0
    then: Sequence[Change] = ()


CHANGES = {
    "alpha": Change(
        "a quarter of the strength", 4.0, errors=-1.0, then=[Change("a sixteenth of the strength", 4.0, errors=-1.0)]
    ),
    "gamma": Change("twice the gamma, at three times the strength", 10**-0.5, octaves=1),
}
"""What is tried, one after the other, where a setting was left open.

Less strength need not be ahead, but must not be behind: more blocks average more of the noise, so that what is level
after some of them is ahead after all. On Fashion-MNIST a quarter is level after three blocks of eight, and gains .3
points of the test rows after the last; so does a sixteenth beside a quarter on words of CIFAR-10.
"""


def rounds(n_blocks: int) -> list[int]:
    """Return after how many blocks a sweep over so many meets contenders.

    >>> rounds(5), rounds(6), rounds(35), rounds(88)
    ([], [3], [3], [3, 6, 12])
    """
    first = [_FIRST] if n_blocks >= _FEWEST_BLOCKS else []
    later = takewhile(lambda n: _LATER_SHARE * n <= n_blocks, (_FIRST * 2**k for k in count(1)))
    return [*first, *later]


@dataclass(frozen=True, eq=False)
class RowsToCome:
    """Rows that no machine has learned, on which two of them are compared.

    Parameters
    ----------
    rows : KernelRows
        All rows.
    places : slice
        Places of whole groups of them.
    """

    rows: KernelRows
    places: slice

    def gain_and_error(self, before: np.ndarray, after: np.ndarray) -> tuple[float, float]:
        """Return how much more outputs (m, t) of these rows score than those before, and its standard error.

        Rows that must not be scored are left out. Both are NaN for few rows, or few groups, and for rows that have no
        score: they may lack a class.
        """
        places = np.arange(self.places.start, self.places.stop)
        own = slice(None) if self.rows.hidden is None else np.flatnonzero(self.rows.hidden[self.places])
        parts = np.unique(self._parts()[own], return_inverse=True)[1]
        if parts.size < _FEWEST_ROWS or parts.max() + 1 < _FEWEST_PARTS:
            return float("nan"), float("nan")
        before, after = (self.rows.in_units(outputs)[own] for outputs in (before, after))
        try:
            return self.rows.score.gain_and_error(before, after, self.rows.order[places[own]], parts)
        except DataError:
            return float("nan"), float("nan")

    def _parts(self) -> np.ndarray:
        """Return the part of each row, (m,): parts follow each other, have about equal size, and hold whole groups."""
        start, stop = self.places.start, self.places.stop
        firsts = np.arange(start, stop)
        if self.rows.groups is not None:
            groups = [group for group in self.rows.groups if start <= group[0] < stop]
            firsts = np.concatenate([np.full(group.size, group[0]) for group in groups])
        return np.asarray((firsts - start) * _PARTS // (stop - start))


def rehearsed(
    machine: BlockRidge, state: Swept, rows: KernelRows, blocks: Sequence[slice], change: Change
) -> tuple[Swept, BlockRidge]:
    """Learn blocks from the first on with a setting changed; return where a sweep that began like this stands.

    Parameters
    ----------
    machine : BlockRidge
        The machine whose settings are changed. Its latest factor is let go.
    state : Swept
        Where the sweep stands with it.
    rows : KernelRows
        All rows; their features have the gamma of the contender.
    blocks : sequence of slice
        The blocks to learn, from the first row on.
    change : Change
        What the contender changes.

    Returns
    -------
    state : Swept
        Where the contender stands, with outputs for the rows of each block but the first by that of the blocks before.
    contender : BlockRidge
        The contender.
    """
    contender = machine.anew(machine.alpha / change.divisor, blocks[-1].stop)
    held_out, scores = np.full(contender.weights.shape, np.nan), []
    for block in blocks:
        outputs, n_seen = contender.learn(block), block.start
        if n_seen:
            held_out[block] = outputs
            scores.append((n_seen, rows.score_if_any(outputs, block)))
    state = replace(state, octaves=state.octaves + change.octaves)
    return contender.state(state, held_out, scores), contender
