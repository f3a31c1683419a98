"""Features of a kernel whose widths are learned on a part of the rows, with few features."""

from __future__ import annotations

from contextlib import nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _threads
from chimap._types import Blocks, Parameters, Rows
from chimap._validation import DataError
from chimap.data import ArraySource, Source, split_source
from chimap.data.source import choose_rows
from chimap.engines import Job, Progress, Stopwatch, chunk_rows_within
from chimap.features.base import FeatureSettings, FittedFeatures
from chimap.features.fourier import WidthFeatures
from chimap.features.scaled import Scale, ScaledWidths
from chimap.fit.design import FeatureBlock, parts_of
from chimap.fit.designing import Conditions
from chimap.fit.plan import job_of
from chimap.fit.rows import PreparedRows
from chimap.kernel_learning.adaptable import Adaptable
from chimap.kernel_learning.tuning_rows import TuningRows
from chimap.kernel_learning.width_rounds import WidthRounds
from chimap.kernel_learning.width_search import (
    WidthObjective,
    WidthPenalty,
    WidthSearch,
    WidthsFound,
    least_alpha,
)
from chimap.selection import choose_alpha

_SMALL = 2**19  # with so few entries of features, one thread is done before two have synchronised
_FEWEST = 128  # smallest number of features to learn widths with; above it, no more than rows are useful
_LEAST_VALIDATION = 10  # with fewer validation rows, all rows are used to learn


SEARCHES: dict[str, type[WidthSearch]] = {
    "held-out": WidthSearch, "training": WidthSearch, "gradients": WidthRounds
}  # fmt: skip
"""How widths are found, by the name of the objective."""


@dataclass(frozen=True)
class Tuning:
    """How widths are learned; see ``FourierKernelLearner``.

    alpha: from ``checked_alpha``. n_folds: number of held-out folds.
    """

    objective: str
    penalty: WidthPenalty
    n_components: int | None
    n_rows: int | None
    validation_fraction: float
    max_iter: int
    tol: float
    patience: int
    alpha: float | tuple[float, ...] | None
    n_folds: int
    is_classifier: bool


@dataclass(frozen=True)
class WidthDesign:
    """``WidthFeatures``: one kernel over all columns, with widths by blocks, bins or groups."""

    settings: FeatureSettings
    blocks: Blocks | None
    widths: Any
    tuning: Tuning

    def parts(self, n_columns: int) -> list[FeatureBlock]:
        """See ``Design``."""
        return parts_of(self.settings, self.blocks, n_columns)

    def sized(self, n_columns: int) -> list[FeatureBlock]:
        """See ``Design``: only the widths depend on the blocks."""
        return parts_of(self.settings, None, n_columns)

    def fit(self, sample: Rows, seed: int, sample_weight: np.ndarray | None = None) -> Adaptable:
        """Return features with the widths to start from, which ``learn`` replaces."""
        return self.adaptable(self.settings.size(2048), sample, seed)

    def adaptable(self, n_components: int, sample: Rows, seed: int) -> Any:
        """Return features that can take any widths, fitted on rows."""
        settings = self.settings
        scale = Scale.of(sample, [settings.exact])
        features = WidthFeatures(
            scale.kernel(settings.exact), n_components, widths=self.widths, blocks=self.blocks, map=settings.map,
            n_terms=settings.terms(), sampling=settings.sampling, form=settings.form, random_state=seed,
        )  # fmt: skip
        return (ScaledWidths(features, scale) if scale.exponent else features).fit(sample)

    def learn(
        self,
        features: Adaptable,
        conditions: Conditions,
        rows: PreparedRows,
        sample: Rows,
        clock: Stopwatch,
        progress: Progress,
    ) -> tuple[FittedFeatures, Parameters]:
        """See ``Design``."""
        tuning, full = self.tuning, features
        n_rows = min(rows.source.n_rows, tuning.n_rows or rows.source.n_rows)
        n_components = tune_components(tuning.n_components, n_rows)
        if n_components is not None and n_components < self.settings.size(2048):
            features = self.adaptable(n_components, sample, conditions.seed)
        tuned, validation = self._tuning_rows(conditions, rows, features.n_components, clock)
        if validation is not None and validation.n_rows < _LEAST_VALIDATION:
            validation = None
        objective = self.objective(features, tuned, conditions)
        search = SEARCHES[tuning.objective](
            objective, validation, tuning.is_classifier, progress, tuning.max_iter, tuning.tol, tuning.patience,
            isinstance(tuning.alpha, float),
        )  # fmt: skip
        is_small = tuned.n_rows * features.n_components <= _SMALL
        with _threads.one_thread() if is_small else nullcontext():
            widths = search.run(self.first_alpha(features, tuned, conditions))
        return full.at(widths.log_widths), _attributes(full, widths, features.start_, objective.evaluations)

    def objective(self, features: Adaptable, rows: TuningRows, conditions: Conditions) -> WidthObjective:
        """Return the function of the widths to minimise."""
        return WidthObjective(features, rows, self.tuning.objective, self.tuning.penalty)

    def first_alpha(self, features: Adaptable, rows: TuningRows, conditions: Conditions) -> float:
        """Return the given strength, or the best one at the widths to start from."""
        alpha = self.tuning.alpha
        if isinstance(alpha, float):
            return alpha
        moments = rows.moments(features.at(features.start_), conditions.dtype)
        whole = moments.whole()
        with rows.clock("choose alpha"):
            choice = choose_alpha(moments, whole, "auto" if alpha is None else np.asarray(alpha))
        return max(float(choice.best["alpha"]), least_alpha(whole, conditions.dtype))

    def tuning_job(self, conditions: Conditions, rows: PreparedRows, n_components: int, n_folds: int) -> Job:
        """Return the plan of a pass with ``n_components`` features."""
        parts = parts_of(replace(self.settings, n_components=n_components), None, rows.source.n_features)
        return job_of(
            rows.source, parts, rows.codec.n_targets, n_folds, conditions.dtype,
            normalises=conditions.changes_rows,
        )  # fmt: skip

    def _tuning_rows(
        self, conditions: Conditions, rows: PreparedRows, n_components: int, clock: Stopwatch
    ) -> tuple[TuningRows, TuningRows | None]:
        """Return rows to learn the widths on, and rows to validate them or None.

        They are a part of the source in memory, or the whole source, read again.
        """
        tuning, source = self.tuning, rows.source
        whole: Source = source
        if tuning.n_rows is not None and tuning.n_rows < source.n_rows:
            chosen = choose_rows(source.n_rows, tuning.n_rows, conditions.seed + 1)
            with clock("sample"):
                labels = source.labels()
                whole = ArraySource(
                    source.take(chosen), np.asarray(labels)[chosen], f"{source.name}, rows to tune on"
                )
                whole.weights = None if source.weights is None else source.weights[chosen]
        learning, validation = whole, None
        if round(tuning.validation_fraction * whole.n_rows) >= _LEAST_VALIDATION:
            learning, validation = split_source(whole, tuning.validation_fraction, conditions.seed)
        n_folds = min(tuning.n_folds, learning.n_rows // 2)
        if n_folds < 2:
            raise DataError(
                f"{source.name}: n_samples = {learning.n_rows} are too few to hold some out, which learning widths "
                "needs; 4 rows suffice."
            )
        job = self.tuning_job(conditions, rows, n_components, n_folds)
        # Memory holds weights, adjoints and their columns side by side; the rows, if they are a part in memory; and
        # the sample.
        kept_bytes = whole.n_rows * source.row_bytes if whole is not source else 0.0
        kept_bytes += job.n_sampled * job.mapped_row_bytes
        job = replace(job, n_vectors=8 * n_folds, held_bytes=job.held_bytes + kept_bytes)
        chunk_rows = chunk_rows_within(job, conditions.budget)

        def reading(part: Source) -> TuningRows:
            return TuningRows(rows.over(part, n_folds), chunk_rows, clock)

        return reading(learning), None if validation is None else reading(validation)


def tune_components(asked: int | None, n_rows: int) -> int | None:
    """Return the number of features to learn widths with on ``n_rows`` rows; None is as many as the model has."""
    return None if asked is None else min(asked, max(_FEWEST, n_rows))


def _attributes(features: Adaptable, widths: WidthsFound, start: np.ndarray, evaluations: int) -> Parameters:
    """Return the learned attributes of a learner of widths."""
    return {
        "widths_": np.exp(widths.log_widths),
        "width_names_": list(features.names_),
        "width_columns_": features.columns_,
        "start_widths_": np.exp(start),
        "history_": widths.history,
        "stopped_": widths.reason,
        "n_iter_": max(1, len(widths.history) - 1),
        "n_evaluations_": evaluations,
    }
