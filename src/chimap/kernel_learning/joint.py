"""Widths of several channels with separate features: the joint form of multiple kernel learning."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, cast

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap._validation import check_choice, check_positive
from chimap.engines import Job
from chimap.features.base import FittedFeatures
from chimap.features.blocks import BlockFeatures
from chimap.features.fourier import WidthFeatures
from chimap.features.fourier.base import Slopes
from chimap.features.fourier.widths import partition
from chimap.features.scaled import Scale, ScaledFeatures, ScaledWidths
from chimap.kernel_learning.tuning import TuningRows
from chimap.kernel_learning.widths import Adaptable, WidthLearner, WidthMethod, WidthObjective, WidthPenalty
from chimap.losses import Loss, Square
from chimap.machines.jobs import job_of
from chimap.machines.method import Method, features_of
from chimap.machines.objective import GroupNorm, PenalisedLoss
from chimap.machines.rows import PreparedRows
from chimap.moments import Moments
from chimap.penalties import L21
from chimap.recipe import Recipe
from chimap.recipe.parts import FeatureBlock, parts_of
from chimap.selection.base import OpenSettings, checked_alpha
from chimap.selection.choose import compare
from chimap.solvers.base import Evidence
from chimap.solvers.groups import (
    GroupDescent,
    GroupPassesProblem,
    GroupProblem,
    GroupSolution,
    LossProblem,
    SquareProblem,
    largest_alpha,
)
from chimap.solvers.lbfgs import over
from chimap.solvers.passes import loss_of, unshifted
from chimap.solvers.ridge import LinearSolution
from chimap.solvers.widths import ObjectiveSlopes

SLOPE_ROWS = 2048  # rows whose slopes are computed together
TOLERANCE = 1e-4  # tolerance of residuals; the error of the objective is then of the order of its square
MOST_PASSES = 200
LARGEST_SHARE_OF_ALPHA = 0.3  # widths are learned at this share of the largest strength at most


class ChannelWidths:
    """[psi_{s_1}(x_1), .., psi_{s_r}(x_r)]: features of each channel with separate widths, and gradients in log s.

    parts: columns and features of the channels. recipe: the map and the waves of the
    features. n_components: features per channel. widths: "block" is one width per
    channel, "bin" one per column. After ``fit`` it serves ``WidthObjective`` as ``WidthFeatures`` does.
    """

    def __init__(self, parts: list[FeatureBlock], recipe: Recipe, n_components: int, widths: str, seed: int):
        self.parts, self.n_components, self.widths, self.seed = parts, n_components, widths, seed
        self.recipe = recipe

    def fit(self, sample: Rows) -> ChannelWidths:
        """Fit the features of each channel on rows, and the widths to start from."""
        self.channels = []
        scale = Scale.of(sample, [part.kernel for part in self.parts])
        for j, part in enumerate(self.parts):
            channel: Any = WidthFeatures(
                part.scaled(scale).kernel,
                self.n_components,
                widths="one" if self.widths == "block" else self.widths,
                blocks={part.name: slice(None)},
                map=self.recipe.map,
                n_terms=int(self.recipe.n_terms),
                sampling=self.recipe.sampling,
                form=self.recipe.form,
                random_state=self.seed + j,
            )
            channel = ScaledWidths(channel, scale) if scale.exponent else channel
            self.channels.append(channel.fit(_arrays.take_columns(_arrays.as_rows(sample), part.columns)))
        counts = [channel.n_widths for channel in self.channels]
        self._borders = np.cumsum([0, *counts])
        self.start_ = np.concatenate([channel.start_ for channel in self.channels])
        self.names_ = [
            part.name if channel.n_widths == 1 else f"{part.name}, {name}"
            for part, channel in zip(self.parts, self.channels, strict=True)
            for name in channel.names_
        ]
        self.columns_ = np.empty(sample.shape[1], dtype=np.int64)
        for part, channel, first in zip(self.parts, self.channels, self._borders, strict=False):
            self.columns_[part.columns] = first + channel.columns_
        self.unit_ = self.channels[0].unit_
        return self

    def at(self, log_widths: np.ndarray) -> BlockFeatures:
        """Return plain features with these widths.

        Raise ValueError, naming the width, if one leaves the range of the dtype.
        """
        features = [channel.at(part) for channel, part in zip(self.channels, self._each(log_widths), strict=True)]
        blocks = {part.name: part.columns for part in self.parts}
        return BlockFeatures.of_fitted(features, blocks, self.columns_.size)

    def pullback_at(self, features: BlockFeatures, rows: Rows, slopes: Slopes) -> np.ndarray:
        """Return dL/d log s for checked rows, given dL/dz of all features; see ``WidthFeatures.pullback_at``."""
        gradient = np.zeros(self._borders[-1])
        for first in range(0, rows.shape[0], SLOPE_ROWS):
            chunk = slice(first, min(rows.shape[0], first + SLOPE_ROWS))
            block = _arrays.take_rows(rows, chunk)
            Z = np.empty((block.shape[0], features._n_features_out), dtype=rows.dtype)
            features.features_into(block, Z)
            G = slopes(chunk, Z) if callable(slopes) else slopes[chunk]
            for j, channel in enumerate(self.channels):
                columns = slice(features.borders_[j], features.borders_[j + 1])
                gradient[self._borders[j] : self._borders[j + 1]] += channel.pullback_at(
                    features.features_[j],
                    _arrays.take_columns(block, self.parts[j].columns),
                    np.ascontiguousarray(G[:, columns]),
                )
        return gradient

    def _each(self, log_widths: np.ndarray) -> list[np.ndarray]:
        return np.split(np.asarray(log_widths), self._borders[1:-1])


@dataclass(frozen=True)
class ScoreSlopes:
    """dL/dz = loss'(y, z'w + b) w' for rows z, times a scale.

    The weights are optimal, so changes of the features through them do not count (the envelope theorem; the penalty
    does not depend on the features).
    """

    loss: Loss
    solution: LinearSolution
    scale: float

    def of(self, Z: np.ndarray, Y: np.ndarray, folds: np.ndarray) -> np.ndarray:
        """Return slopes (n, D) in the dtype of Z; the folds do not matter."""
        W = self.solution.coef.astype(Z.dtype)
        scores = Z @ W + self.solution.intercept
        return (self.loss.gradient(Y, scores) * self.scale).astype(Z.dtype) @ W.T


class ChannelObjective(WidthObjective):
    """Minimum over the weights of sum loss + alpha sum_j |w_j|, relative to its value without weights.

    It is a function of log widths; the strength, the last argument, is fixed. groups: the features of each channel.
    With the square loss, an evaluation takes two passes; with others, the features of all these rows are in memory
    while the weights are found.

    Source: Bazavan, Li and Sminchisescu, Fourier kernel learning, eq. 5 with an l21 norm (the joint models of sec. 4).
    """

    def __init__(self, features: Adaptable, rows: TuningRows, groups: L21, loss: Loss, penalty: WidthPenalty):
        super().__init__(features, rows, "training", penalty)
        self.groups, self.loss = groups, loss
        self._last_solution: LinearSolution | None = None

    def outcome(self, x: np.ndarray) -> tuple[FittedFeatures, ObjectiveSlopes]:
        """Return the features at these widths, and the objective without the penalty of the widths."""
        plain = self.features.at(x[:-1])
        self.whole = self.rows.moments(plain, self.dtype).whole()
        with self.rows.clock("solve"):
            solved, at_zero = self._solve(plain, self.whole, float(np.exp(x[-1])))
        self._last_solution = solved
        self.solution = solved if self.loss == Square() else unshifted(solved, self.whole)
        scale = 1 / (at_zero or 1.0)
        return plain, ObjectiveSlopes(solved.objective * scale, 0.0, ScoreSlopes(self.loss, self.solution, scale))

    def weights(self, x: np.ndarray) -> LinearSolution:
        """Return the weights of the last evaluation."""
        return self.solution

    def _solve(self, plain: BlockFeatures, whole: Moments, alpha: float) -> tuple[GroupSolution, float]:
        """Return the weights, starting from the last ones, and the objective without weights."""
        problem: GroupDescent
        if self.loss == Square():
            problem = SquareProblem(whole, self.groups, TOLERANCE)
        else:
            rows = list(self._features(plain, whole))
            problem = LossProblem(
                self.loss, over(lambda: rows), whole, self.groups, TOLERANCE, MOST_PASSES, warns=False
            )
        return problem.solve(alpha, self._last_solution or problem.zero()), problem.at_zero

    def _features(self, plain: BlockFeatures, whole: Moments) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield features and targets of the rows, minus their shifts, and weights."""
        shift, target_shift = whole.shifts
        for rows, Y, _, weights in self.rows.chunks():
            Z = np.empty((rows.shape[0], whole.n_features), dtype=self.dtype)
            plain.features_into(rows, Z, shift)
            yield Z, Y - target_shift, weights


class Channels(Method):
    """Features of the channels side by side; each column belongs to exactly one channel."""

    def features(self, sample: Rows, sample_weight: np.ndarray | None = None) -> FittedFeatures:
        partition(self.blocks, sample.shape[1])
        parts = self.parts(sample.shape[1])
        scale = Scale.of(sample, [part.kernel for part in parts])
        fitted = features_of([part.scaled(scale) for part in parts], self.recipe.seed).fit(scale.rows(sample))
        if not scale.exponent:
            return fitted
        channels = [ScaledFeatures(features, scale) for features in fitted.features_]
        return BlockFeatures.of_fitted(channels, {part.name: part.columns for part in parts}, sample.shape[1])


@dataclass(frozen=True, eq=False)
class ChannelLearner(WidthLearner):
    """Learns the weights of the kernels of channels. ``MultipleKernelLearner`` documents the fields."""

    losses_not_taken: ClassVar[tuple[str, ...]] = ("hinge", "poisson")
    objective: str = field(default="training", init=False)  # by which the joint form learns widths
    shared: bool = field(kw_only=True)
    joint: bool = field(kw_only=True)
    group_weights: Sequence[float] | None = field(kw_only=True)
    n_alphas: int = field(kw_only=True)

    def method_for(self, recipe: Recipe) -> Any:
        """See ``Learner``."""
        for name, flag in (("shared", self.shared), ("joint", self.joint)):
            check_choice(flag, name, (False, True))
        check_choice(self.widths, "widths", ("block", "bin"))
        self.check(recipe, holds_out=self.joint)
        return ChannelMethod if self.joint else Channels

    def objective_for(self, recipe: Recipe, loss: str | Loss) -> PenalisedLoss:
        """See ``Learner``."""
        check_positive(self.n_alphas, "n_alphas", integer=True)
        left_open = OpenSettings(checked_alpha(recipe.alpha), n_alphas=self.n_alphas)
        return PenalisedLoss(loss, left_open, groups=self.norm)

    @property
    def norm(self) -> GroupNorm:
        """The norm of the weights of each channel."""
        return GroupNorm(self.group_weights, bool(self.shared))


class ChannelMethod(WidthMethod):
    """Features of the channels side by side, with separate widths, learned for weights of the channels."""

    @property
    def learner(self) -> ChannelLearner:
        return cast(ChannelLearner, self.recipe.learner)

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        return self.parts(n_columns)

    def adaptable(self, n_components: int, sample: Rows) -> ChannelWidths:
        """See ``WidthMethod``; each column belongs to one channel."""
        partition(self.blocks, sample.shape[1])
        return ChannelWidths(
            self.parts(sample.shape[1]), self.recipe, n_components, str(self.learner.widths), self.recipe.seed
        ).fit(sample)

    def width_objective(self, features: Adaptable, rows: TuningRows) -> ChannelObjective:
        plain = features.at(features.start_)
        whole = rows.moments(plain, self.recipe.dtype).whole()
        loss, penalty = loss_of(self.objective.loss, whole), self.learner.norm.penalty(plain)
        return ChannelObjective(features, rows, penalty, loss, self.learner.penalty)

    def first_alpha(self, features: Adaptable, rows: TuningRows) -> float:
        """Return the given strength, or the best one by the folds of the tuning rows at the widths to start from."""
        if self.fixed_alpha is not None:
            return self.fixed_alpha
        plain = features.at(features.start_)
        moments = rows.moments(plain, self.recipe.dtype)
        with rows.clock("choose alpha"):
            whole, penalty = moments.whole(), self.learner.norm.penalty(plain)
            largest = largest_alpha(whole, penalty)
            # At the largest strength no kernel is used, and the width of an unused kernel has no gradient.
            alphas = np.minimum(
                self.objective.open.path_below(largest, GroupPassesProblem.smallest), LARGEST_SHARE_OF_ALPHA * largest
            )
            problem = GroupProblem(Square.name, Evidence(moments=moments, penalty=penalty))
            return compare(problem, OpenSettings(tuple(alphas.tolist())))[1]

    def tuning_job(self, rows: PreparedRows, n_components: int, n_folds: int) -> Job:
        """See ``WidthMethod``: features of the tuning rows stay in memory while weights of other losses are found."""
        recipe = replace(self.recipe, n_components=n_components)
        source, parts = rows.source, parts_of(recipe, self.blocks, rows.source.n_features)
        job = job_of(source, parts, rows.codec.n_targets, n_folds, self.recipe.dtype, normalises=self.changes_rows)
        if self.objective.solver.needs == "moments":
            return job
        n_rows = min(source.n_rows, self.learner.n_tune_rows or source.n_rows)
        return replace(job, n_kept=n_rows, kept_itemsize=self.recipe.dtype.itemsize)
