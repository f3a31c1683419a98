"""A fit that keeps every row (features="exact"), from beginning to end.

``fit.fit`` hands over to ``fit_in_rows`` if the recipe keeps all rows. There are no chunks and no sums: all rows are
prepared at once, and ``fit.exact`` chooses the settings and solves on the kernel matrix.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from chimap import _arrays
from chimap._types import ArrayLike, Parameters, Rows
from chimap.backends import on_host
from chimap.data import Source
from chimap.engines import Progress, Stopwatch
from chimap.explain import mean_and_deviation
from chimap.features.base import FittedFeatures
from chimap.features.exact import ExactFeatures
from chimap.features.scaled import ScaledFeatures
from chimap.fit.automatic import MOST_MAPPED, bytes_of_exact
from chimap.fit.design import PlainDesign
from chimap.fit.exact import ExactFit, ExactSettings, check_room, order_of, solve_exactly
from chimap.fit.holding_out import checked_groups
from chimap.fit.recipe import Recipe
from chimap.fit.result import FitResult, HeldOutRows, Known
from chimap.fit.solving import Learned
from chimap.kernels import AdditiveKernel, Linear
from chimap.losses import CATALOGUE, check_loss
from chimap.moments import Moments, of_rows
from chimap.solvers import LinearSolution
from chimap.solvers.exact_machines import has_exact_machine
from chimap.solvers.posterior import Posterior
from chimap.solvers.ridge import Factor

_CHUNK_ROWS = 2048
_RAISES = 6  # decades by which the strength of a race may be raised if rounding makes the matrix singular


def fit_in_rows(
    recipe: Recipe, source: Source, progress: Progress, clock: Stopwatch, groups: np.ndarray | None
) -> FitResult:
    """Fit on all rows of a source at once, choosing the strength and gamma by leaving rows out.

    For an additive kernel, the weights of the rows are folded into weights of its map, and the rows are not kept.
    """
    with clock("sample"):
        y = source.labels()
        assert y is not None
        codec = recipe.codec.of(y)
        settings = _settings(recipe, source, groups)
        check_room(source.n_rows, bytes_of_exact(recipe.given, source), recipe.budget)
        order, together = order_of(settings, y, source.n_rows)
        progress.stage("sampling", source.n_rows)
        rows = _arrays.take_rows(_all_rows(recipe, source, progress), order)
    with clock("map"):
        weights = None if source.weights is None else source.weights[order]
        design = recipe.design
        assert isinstance(design, PlainDesign)  # designs of kernel learners do not support features="exact"
        weights = None if weights is None else of_rows(weights)
        features = design.keeping(rows, recipe.seed, weights)
        attributes: Parameters = mean_and_deviation(rows) | {"row_numbers_": order}
        del rows
        exact = _inner(features)
    shift, Y = codec.shift, np.asarray(codec.encode(y[order]), dtype=np.float64)
    with clock("choose alpha"):
        progress.stage("alpha", None, "values")
        score = codec.score(y, recipe.scoring, settings.row_weights)
        machine = solve_exactly(
            exact, Y, order, together, score, shift, settings, lambda alpha, value: progress.advance()
        )
    kernel = features.kernel_
    features, solution = _folded(features, exact, machine)
    is_kept = _unscaled(features) is exact
    learned = Learned(
        solution, check_loss(recipe.given["loss"], CATALOGUE), machine.selection, 1, source.n_rows,
        posterior=machine.posterior if is_kept else partial(_posterior_of_map, exact, machine, weights, recipe.dtype),
    )  # fmt: skip
    attributes |= {"held_out_": machine.held_out, "kernel_": kernel}
    fitted = Known(recipe.seed, codec, features, attributes)
    was_held_out = ~np.isnan(machine.held_out).all(axis=1)
    held_out_weights = None if source.weights is None else source.weights[was_held_out]
    held_out = HeldOutRows(machine.held_out[was_held_out], y[was_held_out], held_out_weights, machine.noise)
    return FitResult(
        fitted,
        learned,
        solution.coef,
        solution.intercept,
        None,
        source.n_features,
        clock.seconds,
        0,
        held_out,
        machine.curve,
    )


def check_in_rows(recipe: Recipe, *, can_keep: bool, has_checkpoint: bool, has_unlabelled: bool) -> None:
    """Raise ValueError for settings that an exact fit does not support."""
    if has_checkpoint or has_unlabelled:
        raise ValueError(
            "features='exact' supports neither a checkpoint nor unlabelled rows: leave them out."
        )
    parameters = recipe.given
    refused = {
        "blocks": parameters["blocks"] is not None,
        "n_principal": parameters["n_principal"] is not None,
        "loss": not has_exact_machine(parameters["loss"]),
        "precision": recipe.is_rounded,
        "device": not on_host(recipe.device),
    }
    for name, is_refused in refused.items():
        if is_refused:
            raise ValueError(
                f"features='exact' solves loss='square' or 'squared_hinge' on the kernel matrix, and does not support "
                f"{name}={parameters[name]!r}. Leave that out, or use features='landmarks'."
            )
    if not can_keep:
        raise ValueError("features='exact' keeps all rows in one process: use engine='local'.")


def _settings(recipe: Recipe, source: Source, groups: ArrayLike | None) -> ExactSettings:
    """Return the settings of the exact fit; raise DataError for groups that cannot be used."""
    groups = None if groups is None else checked_groups(groups, source.n_rows)
    parameters = recipe.given
    alpha, gamma = parameters["alpha"], parameters["gamma"]
    alphas = None if isinstance(alpha, str) else sorted(float(a) for a in np.atleast_1d(alpha))
    is_settled = recipe.is_settled
    if is_settled:  # the race chose alpha on fewer rows, whose matrix is farther from singular
        alphas = [alpha * 10.0**decades for decades in range(_RAISES)]
    chooses_gamma = isinstance(gamma, str) and gamma == "auto"
    return ExactSettings(
        alphas,
        chooses_gamma,
        parameters["selection"],
        groups,
        source.weights,
        recipe.dtype,
        recipe.seed,
        is_settled,
        parameters["loss"],
    )


def _all_rows(recipe: Recipe, source: Source, progress: Progress) -> Rows:
    """Return all rows, checked and prepared."""
    prepare = recipe.preparation(recipe.design.parts(source.n_features), source.column_names)
    prepared = []
    for chunk in source.chunks(_CHUNK_ROWS):
        prepared.append(prepare(chunk.X, chunk.start, source.name))
        progress.advance(chunk.X.shape[0])
    return _arrays.stack_rows(prepared)


def _inner(features: FittedFeatures) -> ExactFeatures:
    """Return the exact features, without their scale."""
    inner = _unscaled(features)
    assert isinstance(inner, ExactFeatures)  # what the catalogue makes of features="exact"
    return inner


def _unscaled(features: FittedFeatures) -> FittedFeatures:
    """Return the features without their scale."""
    return features.features if isinstance(features, ScaledFeatures) else features


def _posterior_of_map(
    exact: ExactFeatures, machine: ExactFit, weights: np.ndarray | None, dtype: np.dtype
) -> Posterior | None:
    """Return the posterior for an additive kernel, whose weights are those of its map, from the mapped rows' scatter.

    It is None for more than ``MOST_MAPPED`` features, and for targets with missing entries.
    """
    rows = exact.rows_
    if machine.noise is None or rows.n_columns > MOST_MAPPED:
        return None
    moments = Moments(rows.n_columns, 0, rows.column_means(), np.zeros(0))
    for first in range(0, rows.n_rows, _CHUNK_ROWS):
        places = np.arange(first, min(first + _CHUNK_ROWS, rows.n_rows))
        Z = rows.take(places).centred() + moments.shifts[0]
        moments.update(Z, np.zeros((places.size, 0)), None if weights is None else weights[places])
    factor = Factor(rows.n_columns)
    factor.of(moments, machine.solution.alpha)
    return Posterior.of(factor, moments.mean, moments.count, machine.solution.alpha, dtype)


def _folded(
    features: FittedFeatures, exact: ExactFeatures, machine: ExactFit
) -> tuple[FittedFeatures, LinearSolution]:
    """Return features and weights for prediction: for an additive kernel, its map and the weights of the map."""
    solution = machine.solution
    if exact.map_ is None or not isinstance(exact.kernel_, AdditiveKernel | Linear):
        return features, solution
    coef, offset = exact.rows_.combine(solution.coef)
    prediction_map = (
        ScaledFeatures(exact.map_, features.scale) if isinstance(features, ScaledFeatures) else exact.map_
    )
    return prediction_map, LinearSolution(coef, solution.intercept - offset, solution.alpha)
