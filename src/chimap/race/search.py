"""The search for the best strength and gamma of a trial in a race.

``fit.trials`` makes the machines of a trial, one for each split. ``Search`` moves over a grid of settings; at each, the
machines learn and are scored on the rows to score. A setting is a pair: the place of the strength, among the given ones
or in half decades of the machine's scale, and the octaves of gamma.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _threads
from chimap._validation import DataError
from chimap.features.weighted import weights_of
from chimap.race.machines import KernelMachine, Machine, Split
from chimap.selection.climb import Scored, Setting, climb, mean_square
from chimap.selection.leave_one_out import OCTAVES
from chimap.selection.scoring import OutputScore

_HALF_DECADES = 12  # how far strengths may move from the scale of the machine
# Neighbours of a setting, the cheapest first: half a decade of the strength reuses the matrix, an octave of gamma
# computes another one.
_NEXT = ((-1, 0), (1, 0), (0, 1), (0, -1))
_FEW = 1200  # rows whose machine is solved before two threads could have synchronised

LooksOn = Callable[[float, Sequence[np.ndarray]], bool]
"""Takes the score and the outputs of a setting, and returns whether its neighbours are worth trying."""


@dataclass(frozen=True)
class BestSetting:
    """The best setting of a machine.

    Parameters
    ----------
    setting : tuple of int
        Place of the strength, and octaves of gamma.
    score : float
        Mean score of the splits.
    outputs : list of arrays of shape (m, t)
        Outputs for the rows to score of each split.
    alpha : float
        The strength.
    gamma : float or None
        Gamma for rows before they are scaled; None if the kernel has none.
    seconds : float
        Seconds to compute the outputs of one row.
    machines : sequence of Machine
        The machines of the splits.
    tried : list of (float, float, list of arrays)
        Score, mean squared error and outputs of each setting that was tried and could be solved.
    """

    setting: Setting
    score: float
    outputs: list[np.ndarray]
    alpha: float
    gamma: float | None
    seconds: float
    machines: Sequence[Machine]
    tried: list[tuple[float, float, list[np.ndarray]]]

    def learned_weights(self, weights: np.ndarray, seed: int) -> np.ndarray:
        """Return the next bin weights (bins,) from the machine of the only split, which was fitted with ``weights``."""
        (machine,) = self.machines
        if not isinstance(machine, KernelMachine):
            raise TypeError("bins can only be weighted by a machine on a kernel matrix")
        relevance = machine.relevance(self.alpha, self.setting[1], seed)
        bins = np.arange(relevance.products.size) % weights.size
        # u = sqrt(w) psi, so df/dpsi = sqrt(w) df/du
        return weights_of(weights * relevance.summed(bins, weights.size).above_noise(), weights)


@dataclass
class Search:
    """Search for the setting of the machines with the best mean score on the rows to score.

    Parameters
    ----------
    machines : sequence of Machine
        A machine for each split.
    splits : sequence of (array, array)
        Rows to learn from and rows to score, in the order of the machines.
    Y : array of shape (n, t)
        Targets less ``shift``.
    shift : array of shape (t,)
        Shift of the targets.
    score : OutputScore
        Score of outputs for rows. Ties go to the smaller squared error.
    alphas : sequence of float or None
        Strengths to choose from, or None for half decades about the scale of the first machine.
    chooses_gamma : bool
        Whether gamma is chosen too.
    units : array of shape (t,) or None, default=None
        Units of the targets, which outputs are multiplied by before they are scored; None for 1.
    by_error : bool, default=False
        Whether the setting with the least squared error is the best, whatever its score.
    """

    machines: Sequence[Machine]
    splits: Sequence[Split]
    Y: np.ndarray
    shift: np.ndarray
    score: OutputScore
    alphas: Sequence[float] | None
    chooses_gamma: bool
    units: np.ndarray | None = None
    by_error: bool = False

    def best(self, start: Setting | None, looks_on: LooksOn) -> BestSetting:
        """Return the best setting.

        From ``start`` the search goes uphill if ``looks_on`` says that this is worth it. Without a start it first goes
        down by decades from where the machine begins. Raise DataError if no setting can be solved.
        """
        self._scale = self.machines[0].scale()
        self._tried: dict[Setting, tuple[Scored, list[np.ndarray]]] = {}
        if start is not None:
            start = self._solved_from(start)
        start_trial = None if start is None else self._trial(start)
        if (
            start is not None
            and start_trial is not None
            and start_trial[1]
            and not looks_on(start_trial[0].score, start_trial[1])
        ):
            fitted = start
        else:
            fitted = climb(
                self._better, start or self._downhill(), _NEXT if self.chooses_gamma else _NEXT[:2]
            )
        trial = self._trial(fitted)
        if trial is None or not np.isfinite(trial[0].score):
            raise DataError(
                "none of the strengths has a score: the matrix is singular to rounding, or the score is not a number"
            )
        alpha = self._alpha(fitted[0])
        tried = [(scored.score, scored.error, outputs) for scored, outputs in self._tried.values() if outputs]
        return BestSetting(
            fitted,
            trial[0].score,
            trial[1],
            np.nan if alpha is None else alpha,
            None,
            0.0,
            self.machines,
            tried,
        )

    def _solved_from(self, start: Setting) -> Setting:
        """Return the smallest strength, from that of ``start`` upwards, that can be solved; ``start`` if there is none.

        With more rows, a strength that vanishes beside the rounding errors of their matrix may be too small.
        """
        place, octaves = start
        while (trial := self._trial((place, octaves))) is not None:
            if trial[1]:
                return place, octaves
            place += 1
        return start

    def _downhill(self) -> Setting:
        """Return the setting to climb from: the largest of given strengths, or the best of a descent by decades."""
        if self.alphas is not None:
            return len(self.alphas) - 1, 0
        best = (self.machines[0].begins_at, 0)
        while self._better((best[0] - 2, 0), best):
            best = best[0] - 2, 0
        return best

    def _alpha(self, place: int) -> float | None:
        """Return the strength at a place, or None out of range."""
        if self.alphas is None:
            return self._scale * 10 ** (place / 2) if abs(place) <= _HALF_DECADES else None
        return float(self.alphas[place]) if 0 <= place < len(self.alphas) else None

    def _better(self, setting: Setting, best: Setting) -> bool:
        """Whether a setting is in range and beats the best one so far."""
        candidate, incumbent = self._trial(setting), self._trial(best)
        if candidate is None or incumbent is None:
            return False
        if self.by_error:
            return candidate[0].error < incumbent[0].error
        return candidate[0].beats(incumbent[0])

    def _trial(self, setting: Setting) -> tuple[Scored, list[np.ndarray]] | None:
        """Return the score and the outputs of a setting; None out of range."""
        alpha = self._alpha(setting[0])
        if alpha is None or abs(setting[1]) > OCTAVES:
            return None
        if setting not in self._tried:
            self._tried[setting] = self._score(alpha, setting[1])
        return self._tried[setting]

    def _score(self, alpha: float, octaves: int) -> tuple[Scored, list[np.ndarray]]:
        """Score the machines at a setting; -inf and no outputs where one of them cannot be solved."""
        few = max(train.size for train, _ in self.splits) <= _FEW
        with (
            warnings.catch_warnings(),
            _threads.one_thread() if few and len(self.machines) == 1 else nullcontext(),
        ):
            # A machine that LIBLINEAR stopped early remains a candidate: its score on the held-out rows decides.
            warnings.simplefilter("ignore", ConvergenceWarning)
            answers = _threads.tasks(self.machines, lambda machine: machine.outputs(alpha, octaves))
        units = 1.0 if self.units is None else self.units
        outputs = [(output + self.shift) * units for output in answers if output is not None]
        if len(outputs) < len(answers):
            return Scored(-np.inf, np.inf), []
        tests = [test for _, test in self.splits]
        pairs = list(zip(outputs, tests, strict=True))
        error = np.mean([self._error(output / units - self.shift, test) for output, test in pairs])
        score = float(np.mean([self.score(output, test) for output, test in pairs]))
        return Scored(score if np.isfinite(score) else -np.inf, float(error)), outputs

    def _error(self, outputs: np.ndarray, rows: np.ndarray) -> float:
        """Return the mean squared error of the rows, by their weights."""
        weights = None if self.score.sample_weight is None else self.score.sample_weight[rows]
        return mean_square(outputs - self.Y[rows], weights)
