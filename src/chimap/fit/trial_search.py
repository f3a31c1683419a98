"""The best strength and gamma of the machines of a trial, by the score of the rows that they have not learned from."""

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
from chimap.fit.trial_machines import KernelMachine, Machine, Split
from chimap.selection.climb import Scored, Setting, climb, mean_square
from chimap.selection.leave_one_out import OCTAVES
from chimap.selection.scoring import OutputScore

_HALF_DECADES = 12  # strengths are looked for so far from where the search begins
# half a decade of the strength, whose matrix is at hand, an octave of gamma
_NEXT = ((-1, 0), (1, 0), (0, 1), (0, -1))
_FEW = 1200  # rows whose machine is solved for before two threads have met

LooksOn = Callable[[float, Sequence[np.ndarray]], bool]
"""From the score and the outputs of a setting: whether those beside it are worth their work."""


@dataclass(frozen=True)
class Fitted:
    """The best setting of a machine, its mean score, and outputs for the rows to score of each split.

    gamma: of rows as they come; None where the kernel has none. seconds: of the outputs for one row. machines: of the
    splits.
    """

    setting: Setting
    score: float
    outputs: list[np.ndarray]
    alpha: float
    gamma: float | None
    seconds: float
    machines: Sequence[Machine]

    def learned_weights(self, weights: np.ndarray, seed: int) -> np.ndarray:
        """The next weights (bins,), by the machine of the only split, which has these."""
        (machine,) = self.machines
        if not isinstance(machine, KernelMachine):
            raise TypeError("margins are not weighed")
        relevance = machine.relevance(self.alpha, self.setting[1], seed)
        bins = np.arange(relevance.products.size) % weights.size
        # u = sqrt(w) psi, so df/dpsi = sqrt(w) df/du
        return weights_of(weights * relevance.summed(bins, weights.size).above_noise(), weights)


@dataclass
class Search:
    """The best setting of machines on splits by the mean score of the rows to score.

    machines, splits: in one order. Y (n, t): targets less ``shift``. score: of outputs for rows. alphas: to choose
    from, or None for half decades about the scale of the first machine. Of equal scores that of the smaller error.
    """

    machines: Sequence[Machine]
    splits: Sequence[Split]
    Y: np.ndarray
    shift: np.ndarray
    score: OutputScore
    alphas: Sequence[float] | None
    chooses_gamma: bool

    def best(self, start: Setting | None, looks_on: LooksOn) -> Fitted:
        """Uphill from a setting, if that is worth it, or (None) from where the search begins down by decades.

        Raises DataError where no setting can be solved.
        """
        self._scale = self.machines[0].scale()
        self._tried: dict[Setting, tuple[Scored, list[np.ndarray]]] = {}
        if start is not None:
            start = self._solved_from(start)
        known = None if start is None else self._trial(start)
        if start is not None and known is not None and known[1] and not looks_on(known[0].score, known[1]):
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
        return Fitted(
            fitted, trial[0].score, trial[1], np.nan if alpha is None else alpha, None, 0.0, self.machines
        )

    def _solved_from(self, start: Setting) -> Setting:
        """The smallest strength from that of a setting on that can be solved: of more rows one that is nothing beside
        the rounding of their matrix may be too small. The setting itself where there is none."""
        place, octaves = start
        while (trial := self._trial((place, octaves))) is not None:
            if trial[1]:
                return place, octaves
            place += 1
        return start

    def _downhill(self) -> Setting:
        if self.alphas is not None:
            return len(self.alphas) - 1, 0
        best = (self.machines[0].begins_at, 0)
        while self._better((best[0] - 2, 0), best):
            best = best[0] - 2, 0
        return best

    def _alpha(self, place: int) -> float | None:
        if self.alphas is None:
            return self._scale * 10 ** (place / 2) if abs(place) <= _HALF_DECADES else None
        return float(self.alphas[place]) if 0 <= place < len(self.alphas) else None

    def _better(self, setting: Setting, best: Setting) -> bool:
        one, other = self._trial(setting), self._trial(best)
        return one is not None and other is not None and one[0].beats(other[0])

    def _trial(self, setting: Setting) -> tuple[Scored, list[np.ndarray]] | None:
        """How a setting fares, and its outputs; None out of range."""
        alpha = self._alpha(setting[0])
        if alpha is None or abs(setting[1]) > OCTAVES:
            return None
        if setting not in self._tried:
            self._tried[setting] = self._score(alpha, setting[1])
        return self._tried[setting]

    def _score(self, alpha: float, octaves: int) -> tuple[Scored, list[np.ndarray]]:
        few = max(train.size for train, _ in self.splits) <= _FEW
        with (
            warnings.catch_warnings(),
            _threads.one_thread() if few and len(self.machines) == 1 else nullcontext(),
        ):
            # a machine that LIBLINEAR left early is a candidate as it is: its score on the rows held out decides
            warnings.simplefilter("ignore", ConvergenceWarning)
            answers = _threads.tasks(self.machines, lambda machine: machine.outputs(alpha, octaves))
        outputs = [one + self.shift for one in answers if one is not None]
        if len(outputs) < len(answers):
            return Scored(-np.inf, np.inf), []
        tests = [test for _, test in self.splits]
        pairs = list(zip(outputs, tests, strict=True))
        error = np.mean([self._error(one - self.shift, test) for one, test in pairs])
        score = float(np.mean([self.score(one, test) for one, test in pairs]))
        return Scored(score if np.isfinite(score) else -np.inf, float(error)), outputs

    def _error(self, outputs: np.ndarray, rows: np.ndarray) -> float:
        """Mean squared, by the weights of the rows."""
        weights = None if self.score.sample_weight is None else self.score.sample_weight[rows]
        return mean_square(outputs - self.Y[rows], weights)
