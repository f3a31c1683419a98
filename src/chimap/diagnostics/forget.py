"""Rows leave a model: the same as a fit without them at the same choices, and a receipt of what they have chosen.

Features, normalisation and strength stay as they were fitted. A machine that keeps rows is solved on the matrix of
those that are left; one on explicit features from the sums of these rows, collected apart from those of the rows that
leave. Answers, deviations and descriptions are learned again from the rows that are left, so that the file holds
nothing of the others but what the receipt names.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import DataError, InputError
from chimap._formatting import kernel_in_words, number, plain
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import JSON, ArrayLike, Rows
from chimap.data import Source
from chimap.data.labels import Labels
from chimap.explain.background import RowStatistics
from chimap.features.base import FittedFeatures
from chimap.features.nearest import LEFT_OUT_ROWS, distances_among, empty_rows
from chimap.losses import Square
from chimap.models.answers import ClassAnswers, Distances, RealAnswers, learned_answers
from chimap.models.learned import Learned
from chimap.models.model import Model
from chimap.models.schema import RowSchema, units_of
from chimap.moments import FoldMoments, Moments, unit_of
from chimap.readers import open_source
from chimap.recipe.task import HeldOutRows, checked_groups, row_weights
from chimap.reports.score import true_answers
from chimap.selection.base import OpenSettings
from chimap.selection.choose import ChosenSolution, choose
from chimap.solvers.base import Evidence, KernelRows
from chimap.solvers.findings import Findings
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import SCORED_ROWS, ValidationRows
from chimap.solvers.kernel_matrix import KernelProblem

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_SAME = 1e-3  # share of the spread of outputs by which those of a solution on all rows may differ from the model's
_FOLDS = 5  # of groups, for left-out outputs of machines of sums
_ROWS = 2048  # whose features are in memory at once
_MOST_FEATURES = 20_000  # whose sums are solved


@dataclass(frozen=True, eq=False)
class Forgotten:
    """A model without some of its rows, and the receipt.

    Parameters
    ----------
    model : estimator
        The model, as an estimator.
    n_forgotten : int
        Rows that have left.
    n_left : int
        Rows that it is learned from.
    chosen_with_them : dict of str to str
        What the rows took part in choosing, and the model still has, by name.
    alpha : float
        The strength of the penalty.
    alpha_before : float
        The strength before.
    moved : float
        Largest change of an output of the rows that are left, in deviations of outputs.
    """

    model: BaseEstimator
    n_forgotten: int
    n_left: int
    chosen_with_them: dict[str, str]
    alpha: float
    alpha_before: float
    moved: float

    def lines(self) -> dict[str, str | None]:
        """Return the receipt in lines of text by name."""
        again = "alpha" not in self.chosen_with_them
        return {
            "forgotten": f"{self.n_forgotten:,} rows; {self.n_left:,} are left",
            "outputs": f"move by at most {number(self.moved, 3)} deviations",
            "chosen with them": "\n".join(f"{name}: {value}" for name, value in self.chosen_with_them.items()),
            "chosen again": f"alpha {self.alpha:.4g}, before {self.alpha_before:.4g}" if again else None,
        }

    def as_dict(self) -> JSON:
        """Return the receipt as JSON types."""
        return {
            "forgotten": self.n_forgotten,
            "left": self.n_left,
            "chosen_with_them": self.chosen_with_them,
            "alpha": plain(self.alpha),
            "alpha_before": plain(self.alpha_before),
            "largest_change": plain(self.moved),
        }


@dataclass(frozen=True, eq=False)
class _FitRows:
    """The rows of a fit: source with the columns of the model, labels, groups, and which of them leave (n,)."""

    source: Source
    y: np.ndarray
    groups: np.ndarray | None
    is_gone: np.ndarray

    def taken(self, places: np.ndarray) -> Rows:
        """Return the rows at some places."""
        return self.source.take(places)

    def weights(self, model: Model, chosen: np.ndarray) -> np.ndarray | None:
        """Return the weights (m,) that the classes give to some rows, by their own labels."""
        recipe = model.recipe
        return row_weights(recipe.class_weight, recipe.threshold, model.task.classes, self.y[chosen], None)[0]


def forget(
    model: BaseEstimator,
    X: object,
    y: Labels = None,
    *,
    rows: ArrayLike,
    groups: ArrayLike | None = None,
    choose_again: bool = False,
) -> Forgotten:
    """Return a model without some of the rows that it was fitted on: the fit without them, at the same choices.

    Parameters
    ----------
    model : estimator
        A fitted ``HistogramClassifier`` or ``HistogramRegressor`` of the square loss, on the kernel matrix of its rows
        or on explicit features that keep no row.
    X : array, sparse matrix, data frame, path or Source of n rows
        All rows of the fit, in their order.
    y : array of shape (n,), str or None, default=None
        Their labels, or the name of the column that has them; None for those that the rows bring with them.
    rows : array of bool of shape (n,), or of int
        The rows to forget, or their places.
    groups : array of shape (n,) or None, default=None
        The groups of the rows, which are left out together where answers are learned.
    choose_again : bool, default=False
        Whether the strength is chosen again by the rows that are left.

    Returns
    -------
    Forgotten

    Raises
    ------
    InputError
        If the model cannot be solved exactly from what is there; the message says what to keep at a fit.
    DataError
        If these are not the rows of the fit, or if no row of a class would be left.

    Examples
    --------
    >>> from chimap import HistogramRegressor
    >>> X = np.random.default_rng(0).dirichlet(np.ones(6), 50)
    >>> settings = {"alpha": 0.1, "precision": "float64", "random_state": 0}
    >>> whole = HistogramRegressor("hellinger", **settings).fit(X, X[:, 0])
    >>> found = forget(whole, X, X[:, 0], rows=[3, 7])
    >>> without = HistogramRegressor("hellinger", **settings).fit(np.delete(X, [3, 7], 0), np.delete(X[:, 0], [3, 7]))
    >>> bool(np.allclose(found.model.predict(X), without.predict(X), atol=1e-10))
    True
    """
    if not hasattr(model, "with_model"):
        raise InputError(
            f"rows leave a fitted HistogramClassifier or HistogramRegressor; got a {type(model).__name__}. Give the "
            "model that it was made from, and make it again."
        )
    before: Model = model.fitted
    _check_kind(before)
    source = open_source(X, y, like=model, with_labels=True)
    is_gone = np.zeros(source.n_rows, dtype=bool)
    is_gone[np.asarray(rows)] = True
    labels, places, kept = true_answers(before, source), source.places_in_file(), np.flatnonzero(~is_gone)
    _check_rows(before, labels, is_gone, source.name)
    known = None if groups is None else checked_groups(groups, source.n_rows)
    of_fit = _FitRows(before.schema.rows(source), labels, known, is_gone)
    solve = _on_matrix if before.features.row_kernel is not None else _from_sums
    with threads(before.recipe.n_jobs):
        chosen, features = solve(before, of_fit, places, None if choose_again else before.learned.alpha)
        after = _without(before, of_fit, chosen, features, places)
        some = of_fit.taken(kept[:_ROWS])
        outputs = [each.outputs_of_all(each.preparation(some, 0, source.name)) for each in (before, after)]
    moved = float(np.abs(outputs[1] - outputs[0]).max() / max(float(outputs[0].std()), 1e-30))
    return Forgotten(
        model.with_model(after),
        int(is_gone.sum()),
        kept.size,
        _chosen_with(before, choose_again),
        after.learned.alpha,
        before.learned.alpha,
        moved,
    )


def _without(
    model: Model, rows: _FitRows, chosen: ChosenSolution, features: FittedFeatures, places: np.ndarray
) -> Model:
    """Return the model of a solution on the rows that are left, with answers and descriptions of these."""
    recipe, kept = model.recipe, np.flatnonzero(~rows.is_gone)
    _, of_classes = row_weights(recipe.class_weight, recipe.threshold, model.task.classes, rows.y[kept], None)
    left = replace(
        model,
        schema=_described(model, rows, kept),
        task=replace(model.task, class_weight=of_classes),
        features=features,
        coef=chosen.solution.coef,
        intercept=chosen.solution.intercept,
        posterior=None if model.posterior is None else chosen.posterior(),
    )
    return replace(left, answers=_answers(left, rows, chosen, kept), learned=_learned(left, rows, chosen, kept, places))


def _check_kind(model: Model) -> None:
    """Raise InputError for a model that cannot be solved again from its rows at its choices."""
    keep = Message(
        "Fit again without the rows, or fit with {features='exact'} or an additive kernel, and {loss='square'}."
    )
    if not isinstance(model.learned.loss, Square) or model.recipe.learner is not None:
        raise InputError(Message("this model was found step by step, and holds neither a matrix nor sums. {}", keep))
    if model.learned.findings.block_rows is not None:
        raise InputError(
            Message(
                "this model was solved in blocks of rows, each after the others, so rows cannot leave it exactly. Fit "
                "with a larger {memory}, so that one matrix holds its rows, or fit again without them."
            )
        )
    if model.features.row_kernel is None and model.features.has_distances:
        raise InputError(Message("the landmarks of this model were made of its rows, which would stay in it. {}", keep))
    if model.recipe.n_principal is not None or model.task.is_multilabel or model.coef.shape[0] > _MOST_FEATURES:
        raise InputError(
            Message(
                "rows leave models of one task, without {n_principal}, of at most {:,} features. {}",
                _MOST_FEATURES,
                keep,
            )
        )


def _check_rows(model: Model, y: np.ndarray, is_gone: np.ndarray, name: str) -> None:
    if not is_gone.any():
        raise DataError(f"{name}: no row to forget is among the rows of the fit.")
    classes = model.task.classes
    lost = np.setdiff1d(y, y[~is_gone]) if classes is not None else np.zeros(0)
    if lost.size or (~is_gone).sum() < 3:
        which = f"class {lost[0]!s}" if lost.size else "the fit"
        raise DataError(f"{name}: no rows of {which} would be left. Fit again without it.")


def _encoded(model: Model, y: np.ndarray) -> np.ndarray:
    """Return the targets (n, t), less their shift."""
    return np.asarray(model.task.codec.encode(y), dtype=np.float64)


def _not_these(name: str) -> DataError:
    return DataError(
        Message(
            "{}: a solution on these rows is not this model, so they are not the rows that it was fitted on, or they "
            "had a {sample_weight}. Give the data of the fit, all of them, in their order.",
            name,
        )
    )


def _on_matrix(
    model: Model, rows: _FitRows, places: np.ndarray, alpha: float | None
) -> tuple[ChosenSolution, FittedFeatures]:
    """Solve on the kernel matrix of the rows that are left, and leave these out of it."""
    kernel, order = model.features.row_kernel, model.learned.findings.row_numbers
    assert kernel is not None
    place_of = {int(place): i for i, place in enumerate(places)}
    if order is None or order.size != places.size or any(int(place) not in place_of for place in order):
        raise _not_these(rows.source.name)
    order = np.array([place_of[int(place)] for place in order])
    kept = np.flatnonzero(~rows.is_gone[order])
    _check_duals(model, rows, order)
    left, numbers = kernel.take(kept), np.cumsum(~rows.is_gone) - 1
    chosen, y = order[kept], rows.y[~rows.is_gone]
    groups = None
    if rows.groups is not None:
        by_group = np.argsort(rows.groups[chosen], kind="stable")
        groups = np.split(by_group, np.flatnonzero(np.diff(rows.groups[chosen][by_group])) + 1)
        groups = [np.sort(members) for members in groups]
    weights, recipe, codec = rows.weights(model, chosen), model.recipe, model.task.codec
    evidence = KernelRows(
        left,
        numbers[chosen],
        groups,
        _encoded(model, rows.y[chosen]),
        codec.shift,
        weights,
        codec.score(y, recipe.scoring, None),
        recipe.dtype,
        unit_of(weights),
        has_noise=codec.has_noise,
    )
    solved = choose(KernelProblem(Square(), Evidence(kernel=evidence)), OpenSettings(alpha), None)
    return solved, model.features.with_row_kernel(left)


def _check_duals(model: Model, rows: _FitRows, order: np.ndarray) -> None:
    """Raise DataError unless the weights of the rows are alpha times their residuals, weighted: those of a solution."""
    weights, some = rows.weights(model, order), slice(0, _ROWS)
    X = model.preparation(rows.taken(order[some]), 0, rows.source.name)
    residuals = _encoded(model, rows.y[order[some]]) + model.task.codec.shift - model.outputs_of_all(X)
    own = residuals * (1.0 if weights is None else weights[some, None]) / model.learned.alpha
    if np.abs(own - model.coef[some]).max() > _SAME * max(float(np.abs(model.coef).max()), 1e-30) * 10:
        raise _not_these(rows.source.name)


def _from_sums(
    model: Model, rows: _FitRows, places: np.ndarray, alpha: float | None
) -> tuple[ChosenSolution, FittedFeatures]:
    """Solve from the sums of the rows that are left, which are collected apart from those of the others."""
    n, kept = rows.y.size, np.flatnonzero(~rows.is_gone)
    fold = np.zeros(n, dtype=np.intp)
    if rows.groups is not None:
        _, numbers = np.unique(rows.groups, return_inverse=True)
        fold = numbers % min(_FOLDS, int(numbers.max()) + 1)
    fold = np.where(rows.is_gone, fold.max() + 1, fold)
    validated = kept[np.sort(np.random.default_rng(0).permutation(kept.size)[:SCORED_ROWS])]
    own, whole = rows.weights(model, kept), rows.weights(model, np.arange(n))
    weights = np.ones(n)
    if whole is not None and own is not None:
        weights[rows.is_gone], weights[kept] = whole[rows.is_gone], own
    folds, Z_validated = None, []
    for part, Z in _features(model, rows):
        Y = _encoded(model, rows.y[part])
        if folds is None:
            shift, zero = Z.mean(axis=0), np.zeros(Y.shape[1])
            folds = [Moments(Z.shape[1], Y.shape[1], shift, zero) for _ in range(int(fold.max()) + 1)]
        for k in np.unique(fold[part]).tolist():
            of_fold = np.flatnonzero(fold[part] == k)
            folds[k].update(Z[of_fold], Y[of_fold], None if own is None else weights[part][of_fold])
        Z_validated.append(Z[np.isin(part, validated)] - shift)
    assert folds is not None
    if own is None or model.recipe.class_weight != "balanced":
        _check_sums(model, FoldMoments.of(folds, np.dtype(np.float64)), rows.source.name)
    moments = FoldMoments.of(folds[:-1], model.recipe.dtype)
    validation = ValidationRows(
        np.searchsorted(kept, validated),
        np.concatenate(Z_validated),
        _encoded(model, rows.y[validated]),
        fold[validated],
        None if own is None else weights[validated],
        leaves_folds=rows.groups is not None,
    )
    problem = RidgeProblem(moments, unit=unit_of(own))
    chosen = choose(problem, OpenSettings(alpha), validation)
    return chosen.moved(model.task.codec.shift), model.features


def _features(model: Model, rows: _FitRows) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield places of rows (m,), and their features (m, D), float64."""
    for first in range(0, rows.y.size, _ROWS):
        part = np.arange(first, min(first + _ROWS, rows.y.size))
        prepared = model.preparation(rows.taken(part), part, rows.source.name)
        Z = np.empty((part.size, model.coef.shape[0]), dtype=model.recipe.dtype)
        model.features.features_into(prepared, Z)
        yield part, Z.astype(np.float64)


def _check_sums(model: Model, moments: FoldMoments, name: str) -> None:
    """Raise DataError unless all rows together have the weights of the model."""
    coef = RidgeProblem(moments).solve(model.learned.alpha).coef
    scatter = np.sqrt(np.maximum(moments.whole().scatter_diagonal(), 0))[:, None]
    if np.abs((coef - model.coef) * scatter).max() > _SAME * np.abs(model.coef * scatter).max():
        raise _not_these(name)


# --- what the model holds besides its weights


def _described(model: Model, rows: _FitRows, kept: np.ndarray) -> RowSchema:
    """Return the schema with what the rows that are left are like."""
    schema = model.schema
    if schema.units is None and schema.mass is None:
        return schema
    some = _arrays.take_columns(rows.taken(kept[:_ROWS]), np.arange(schema.n_features))
    names = None if schema.mass is None else schema.mass.other_names
    units, mass = units_of(some, rows.y[kept[:_ROWS]] if model.recipe.is_classifier else None, names)
    if schema.units is None or schema.units.totals is None:
        units = replace(units, totals=None)
    return replace(schema, units=None if schema.units is None else units, mass=mass)


def _answers(model: Model, rows: _FitRows, chosen: ChosenSolution, kept: np.ndarray) -> ClassAnswers | RealAnswers:
    """Return answers that are learned from outputs of rows that were left out."""
    found = chosen.held_out
    if found is None:
        return learned_answers(model.task, None, model.learned.loss)
    seen = kept[found.rows]
    weights = rows.weights(model, seen) if model.recipe.class_weight is not None else None
    groups = None if rows.groups is None else rows.groups[seen]
    held_out = HeldOutRows(found.outputs, rows.y[seen], weights, found.noise, None, groups)
    return learned_answers(model.task, held_out, model.learned.loss, _distances(model, rows, chosen, kept))


def _distances(model: Model, rows: _FitRows, chosen: ChosenSolution, kept: np.ndarray) -> Distances | None:
    """Return how far left-out rows are from the nearest of the others, if the model compares that."""
    answers, order = model.answers, chosen.findings.row_numbers
    has = isinstance(answers, ClassAnswers) and answers.novelty is not None and answers.novelty.has_distances
    if not has or order is None or chosen.held_out is None:
        return None
    place_of = np.argsort(order)
    some = np.arange(chosen.held_out.rows.size)[:LEFT_OUT_ROWS]
    groups = (
        None
        if rows.groups is None
        else [np.flatnonzero(rows.groups[kept][order] == g) for g in np.unique(rows.groups[kept])]
    )
    places = place_of[chosen.held_out.rows[some]]
    return Distances(
        some, distances_among(model.features, places, empty_rows(model.features, model.recipe.dtype), groups)
    )


def _learned(model: Model, rows: _FitRows, chosen: ChosenSolution, kept: np.ndarray, places: np.ndarray) -> Learned:
    """Return what the model has learned, without what was learned of single rows."""
    found, some = chosen.findings, model.preparation(rows.taken(kept[:_ROWS]), 0, rows.source.name)
    training = model.learned.training
    if training is not None:
        training = training | {"n_forgotten": int(rows.is_gone.sum()) + training.get("n_forgotten", 0)}
        if "class_counts" in training:
            classes, counts = np.unique(rows.y[kept], return_counts=True)
            training["class_counts"] = [list(pair) for pair in zip(classes.tolist(), counts.tolist(), strict=True)]
    return replace(
        model.learned,
        alpha=chosen.solution.alpha,
        selection=None,
        learning_curve=None,
        n_rows=kept.size,
        findings=found.at(places[kept]) if found.row_numbers is not None else Findings(),
        rows=RowStatistics.of(some),
        training=training,
    )


def _chosen_with(model: Model, chooses_again: bool) -> dict[str, str]:
    """Return what the forgotten rows took part in choosing, and the model still has."""
    about, raced = model.describe(), model.learned.race is not None
    found = {"kernel": kernel_in_words(about["kernel"], about["gamma"])} if raced or about["gamma"] is not None else {}
    found |= {"features": str(about["features"])}
    if model.normalization is not None:
        found["normalisation"] = model.normalization.name
    if model.recipe.given_bin_weights is not None:
        found["bin weights"] = "learned or given"
    if not chooses_again:
        found["alpha"] = f"{model.learned.alpha:.4g}"
    return found
