"""Widths from the slopes of the model, round by round: the average gradient outer product, group by group."""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import cast

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.features.mapped_functions import Waves
from chimap.features.weighted import Half, Relevance, output_mixtures
from chimap.kernel_learning.width_search import WidthSearch, WidthsFound, least_alpha
from chimap.moments import FoldMoments, Moments
from chimap.selection.climb import Scored, Setting, climb
from chimap.solvers import ridge
from chimap.solvers.widths import held_out

_SLOPE_ROWS = 400  # rows at which slopes are evaluated
_SPLITS = 4  # splits of the folds into halves
_OCTAVES = 8  # octaves of gamma by which a round may move
# Weight of a group on which no score depends, relative to a mean of 1: the group may matter in the next round.
_LEAST = 1e-6


class WidthRounds(WidthSearch):
    """Rounds of widths, each derived from the slopes of the model with the last widths.

    A group j of bins with width s_j gets s_j^2 in proportion to sqrt(G_j). Here G_j is the mean over its bins and over
    rows of sum_c (df_c/du)^2, minus what is due to chance (``Relevance`` compares models of two halves of the folds).
    The strength and the overall width of each round have the least error on held-out folds, found step by step. Rounds
    go on while the validation score rises.

    Source: Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning, Science 2024.
    """

    def run(self, alpha: float) -> WidthsFound:
        """Run the rounds from the widths of the features and this strength."""
        self._began = time.perf_counter()
        self.progress.stage("widths", self.max_iter, "rounds")
        rows = self._slope_rows()
        x = self._best_scale(np.append(self.objective.features.start_, np.log(alpha)))
        self._record(x)
        for _ in range(self.max_iter):
            x = self._best_scale(self._next_widths(x, rows))
            self._record(x)
            self.progress.advance()
            if not self._score_of(-1).beats(self._score_of(-2)):
                self.reason = "the score no longer rises"
                break
        best = 0
        for i in range(1, len(self.history)):
            best = i if self._score_of(i).beats(self._score_of(best)) else best
        step = self.history[best]
        return WidthsFound(
            np.log(step["widths"]), step["alpha"], self.history, self.reason or "max_iter rounds"
        )

    def _score_of(self, i: int) -> Scored:
        """Return the score of a round: on the validation rows, or on the folds if there are none."""
        step = self.history[i]
        if step["validation_score"] is None:
            return Scored(-step["objective"], step["objective"])
        return Scored(step["validation_score"], step["validation_error"])

    def _best_scale(self, x: np.ndarray) -> np.ndarray:
        """Return the overall width and strength of the least held-out error, climbed to from x; keep its moments."""
        tried: dict[int, tuple[float, float]] = {}
        least = np.inf

        def at(octave: int) -> tuple[float, float]:
            nonlocal least
            if octave not in tried:
                value, log_alpha, moments = self._with_alpha(x[:-1] + octave * np.log(2) / 2, x[-1])
                tried[octave] = value, log_alpha
                if value < least or len(tried) == 1:  # the moments of others are freed
                    least, self._moments = value, moments
            return tried[octave]

        def better(setting: Setting, best: Setting) -> bool:
            return abs(setting[1]) <= _OCTAVES and at(setting[1])[0] < at(best[1])[0]

        octave = climb(better, (0, 0), [(0, -1), (0, 1)])[1]
        value, log_alpha = at(octave)
        self.objective.whole = self._moments.whole()
        point = np.append(x[:-1] + octave * np.log(2) / 2, log_alpha)
        self._last = point, value, np.zeros(x.size)
        return point

    def _with_alpha(self, log_widths: np.ndarray, log_alpha: float) -> tuple[float, float, FoldMoments]:
        """Return the held-out squared error relative to that of the mean, the log strength and the moments.

        They are those of the best strength at these widths.
        """
        self.objective.evaluations += 1
        moments = self.objective.rows.moments(self.objective.features.at(log_widths), self.objective.dtype)
        whole, errors = moments.whole(), dict[int, float]()
        least = np.log(least_alpha(whole, self.objective.dtype))

        def strength(place: int) -> float:
            return log_alpha + place * np.log(10) / 2

        def error(place: int) -> float:
            if place not in errors:
                errors[place] = held_out(moments, whole, float(np.exp(strength(place)))).value
            return errors[place]

        def better(setting: Setting, best: Setting) -> bool:
            return strength(setting[0]) >= least and error(setting[0]) < error(best[0])

        steps = [] if self.keeps_alpha else [(-1, 0), (1, 0)]
        with self.objective.rows.clock("solve"):
            place = climb(better, (0, 0), steps)[0]
            return error(place), strength(place), moments

    def _slope_rows(self) -> Rows:
        """Return rows evenly spread over those to learn from."""
        step, first, taken = max(1, self.objective.rows.n_rows // _SLOPE_ROWS), 0, []
        for rows, *_ in self.objective.rows.chunks():
            taken.append(_arrays.take_rows(rows, slice(-first % step, None, step)))
            first += rows.shape[0]
        return _arrays.stack_rows(taken)

    def _next_widths(self, x: np.ndarray, rows: Rows) -> np.ndarray:
        """Return the widths that the slopes at x suggest, with the same mean exponent; the strength stays."""
        features = self.objective.features
        with self.objective.rows.clock("gradient"):
            bins, mapped, relevance = self._relevance(x, rows)
            groups, n = features.columns_[bins], features.n_widths
            G = relevance.summed(groups, n).above_noise() / np.bincount(groups, minlength=n)
        weights = np.sqrt(G)
        if not weights.any():
            return x
        weights = np.maximum(weights / weights.mean(), _LEAST)
        spread = np.bincount(groups, weights=mapped.var(axis=0), minlength=n)
        total = float(np.exp(2 * x[:-1]) @ spread)
        return np.append((np.log(weights) + np.log(total / (weights @ spread))) / 2, x[-1])

    def _relevance(self, x: np.ndarray, rows: Rows) -> tuple[np.ndarray, np.ndarray, Relevance]:
        """Return the bin of each coordinate (p,), the mapped rows (r, p), and how relevant the coordinates are."""
        dtype, folds = self.objective.dtype, self._moments.folds
        model = self.objective.features.at(x[:-1]).mapped_model(*self._weights(folds, x[-1]))
        assert model is not None
        mapped, waves = model.rows(rows), cast(Waves, model.function)
        frequencies = np.ascontiguousarray(waves.frequencies.T, dtype)
        slopes = waves.slopes(mapped).astype(dtype)
        mixtures = output_mixtures(folds[0].n_targets, np.random.default_rng(0))
        scale = np.sqrt(2.0 / self.objective.features.n_components)
        gradients = []
        for k in range(min(_SPLITS, len(folds))):
            turned, middle = [*folds[k:], *folds[:k]], len(folds) // 2
            coefs = (self._weights(half, x[-1])[0] for half in (turned[:middle], turned[middle:]))
            halves = [Half(frequencies, (scale * coef @ mixtures).astype(dtype), slopes) for coef in coefs]
            gradients.append(Relevance.of(*halves))
        return model.bins, mapped, reduce(add, gradients)

    def _weights(self, folds: Sequence[Moments], log_alpha: float) -> tuple[np.ndarray, np.ndarray]:
        """Return the weights of ridge on some folds."""
        solution = ridge(FoldMoments.of(folds, self.objective.dtype).whole(), float(np.exp(log_alpha)))
        return solution.coef, solution.intercept
