"""Explanations of a fitted model: ``explain``, ``importance``, ``effects`` and ``nearest``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._threads import threads
from chimap._types import ArrayLike, MatrixLike, Rows
from chimap._validation import DataError, check_choice
from chimap.data import Source
from chimap.data.labels import clean_targets
from chimap.data.table import places_of
from chimap.explain.background import rows_like
from chimap.explain.contributions import Explanation, contributions_of
from chimap.explain.effects import BinEffect, bin_effect
from chimap.explain.importance import (
    Importance,
    exchange_importance,
    gradient_importance,
    permutation_importance,
    variance_importance,
)
from chimap.explain.neighbours import Neighbours, strongest
from chimap.explain.removal import removal_importance
from chimap.models.answers import ClassAnswers
from chimap.models.model import Model
from chimap.recipe.codecs import is_matrix

KINDS = ("gradient", "permutation", "removal", "variance")


def explain(model: Model, X: MatrixLike | Source, background: MatrixLike | Source | None = None) -> Explanation:
    """Return the contribution of each bin to each score of rows X, relative to a reference row.

    base + contributions.sum(axis=1) is ``decision_function``, or the prediction of a regression. For additive
    kernels, a contribution is the function of the bin at its value minus that at the reference. For exponential
    kernels, it is the integral of the gradient along the line between the mapped rows; without a gradient, it is a
    sampled Shapley value.

    Parameters
    ----------
    X : array, sparse matrix, data frame or source of n rows
        Rows to explain.
    background : array, sparse matrix, data frame or source, default=None
        Rows whose mean is the reference row; None takes the mean row of the fit's sample.

    Returns
    -------
    Explanation
        ``contributions`` (n, bins, outputs), ``base`` (outputs,), ``bin_names`` and ``output_names``. Two classes
        have one output, for the second class.

    Raises
    ------
    DataError
        If ``predict`` refuses the rows, or no background is given and the model does not know its mean row.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("chi2").fit(X, y)
    >>> explanation = model.explain(X[:2])
    >>> explanation.contributions.shape, len(explanation.top(row=0, output=0, k=3))
    ((2, 64, 10), 3)
    """
    rows = prepared(model, X)
    reference = mean_row_of_fit(model) if background is None else mean_row(prepared(model, background))
    with threads(model.n_jobs):
        contributions, base = contributions_to(model, rows, reference)
    return Explanation(contributions, base, model.bin_names, model.output_names)


def importance(
    model: Model, X: MatrixLike | Source | None = None, y: ArrayLike | None = None, kind: str = "gradient"
) -> Importance:
    """Rank the bins, with their names, by how much they matter to the model.

    Parameters
    ----------
    X : array, sparse matrix, data frame or source, default=None
        Rows to measure on. None takes rows whose bins have the means and deviations of the fit's sample (for all
        kinds but "permutation").
    y : array, default=None
        Labels or targets of X, for "permutation" only.
    kind : {"gradient", "variance", "removal", "permutation"}, default="gradient"
        "gradient": slope of the scores times the spread of the bin. "variance": square root of the variance of the
        bin's contribution to the scores. "removal": how far the scores move when the bin is emptied together with
        those ranked before it. "permutation": loss of accuracy, or of R^2, when the bin is shuffled among rows. For
        several regression targets, scores are divided by their spread over the rows, so that no target dominates by
        its unit.

    Returns
    -------
    Importance
        Bins in descending order, with names and values.

    Raises
    ------
    ValueError
        If the kind is unknown, if "permutation" has no X and y, or if the kernel has no gradient for "gradient".

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> ranked = HistogramClassifier("chi2").fit(X, y).importance(X)
    >>> ranked.values.shape, bool(ranked.values[0] >= ranked.values[-1])
    ((64,), True)
    """
    check_choice(kind, "kind", KINDS)
    names, outputs = model.bin_names, model.outputs_of_all
    given = None if X is None else prepared(model, X)
    with threads(model.n_jobs):
        if kind == "permutation":
            if given is None or y is None:
                raise InputError("kind='permutation' shuffles rows with known labels: give X and y.")
            measure = score_of_rows(model, np.asarray(y))
            return Importance.of(kind, permutation_importance(measure, given), names)
        rows = rows_like_fit(model) if given is None else given
        units = units_of_outputs(model, rows)
        if kind == "removal":
            order, values = removal_importance(lambda some: outputs(some) / units, rows)
            return Importance(kind, order, names[order], values)
        if kind == "gradient":
            return Importance.of(kind, slopes_of_bins(model, rows, units), names)
        return Importance.of(kind, variances_of_bins(model, rows, units), names)


def shares_of_bins(model: Model) -> np.ndarray:
    """Return the importance of each bin in the order of the bins, with sum 1, (bins,); a model that is constant has 0.

    It is that by slopes of the scores where they have any, else how far the scores move when the bin takes its value
    in another row: contributions of kernels without slopes take a hundred times as long.
    """
    rows = rows_like_fit(model)
    units = units_of_outputs(model, rows)
    with threads(model.n_jobs):
        if model.mapped() is None:
            values = exchange_importance(lambda some: model.outputs_of_all(some) / units, rows)[0]
        else:
            values = slopes_of_bins(model, rows, units)
    total = values.sum()
    return values / total if total > 0 else values


def effects(model: Model, bins: Sequence[int] | Sequence[str], X: MatrixLike | Source | None = None) -> list[BinEffect]:
    """Return how the scores change with each of these bins, the others being as in the mean row.

    For an additive model, the effects are the functions of the bins whose sum the scores are, up to a constant. The
    values are those of the bins in rows as they are given. Where rows are normalised as a whole, they are shares of
    the row ("l1"), counts per million or ten thousand of it, or entries of tf-idf.

    Parameters
    ----------
    bins : sequence of int or str
        Places or names of the bins; a name may be a glob such as "otu_*".
    X : array, sparse matrix, data frame or source, default=None
        Rows whose values the axes span, with their density. None takes the rows that ``importance`` uses, without
        density.

    Returns
    -------
    list of BinEffect
        One effect per bin.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> effect = HistogramClassifier("chi2").fit(X, y).effects([36], X)[0]
    >>> effect.values.shape, effect.effects.shape, int(effect.counts.sum())
    ((49,), (49, 10), 1797)
    """
    rows = rows_like_fit(model) if X is None else prepared(model, X)
    reference, names = mean_row_of_fit(model), model.bin_names
    places = places_of_bins(names, bins, model.recipe.estimator)
    with threads(model.n_jobs):
        return [
            bin_effect(
                model.outputs_of_all, reference, i, str(names[i]), rows, X is not None, model.preparation.unit_of_bin(i)
            )
            for i in places
        ]


def nearest(model: Model, X: MatrixLike | Source, k: int = 5) -> list[Neighbours]:
    """Return, for each row, the k landmarks or training rows that add the most to the predicted score.

    This is for exponential kernels with ``features="landmarks"`` or "exact". For two classes, contributions are to
    the score of the second class; for a row of the first class, those that lower it the most are returned.

    Parameters
    ----------
    X : array, sparse matrix, data frame or source of n rows
        Rows to predict.
    k : int, default=5
        Number of neighbours per row.

    Returns
    -------
    list of Neighbours
        One object per row. Places of training rows are those in the array or file that was fitted on.

    Raises
    ------
    DataError
        If the model is not a sum over landmarks or rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("exp-chi2", features="landmarks", n_components=100, random_state=0).fit(X, y)
    >>> model.nearest(X[:1], k=3)[0].answers.tolist()
    [0, 0, 0]
    """
    rows = prepared(model, X)
    values, weights, outputs = model.kernel_values(rows)
    scores = model.outputs_of_all(rows)
    chosen = scores.argmax(axis=1)
    signs = np.sign(scores[:, 0]) if is_by_sign(model) else np.ones(len(scores))
    answers = model.answers.predicted(outputs)
    neighbours = [strongest(v, weights[:, c], k, sign) for v, c, sign in zip(values, chosen, signs, strict=True)]
    found = model.learned.findings
    numbers = np.arange(len(outputs)) if found.row_numbers is None else found.row_numbers
    return [
        replace(
            n,
            places=numbers[n.places],
            ids=None if found.row_ids is None else found.row_ids[n.places],
            answers=answers[n.places],
        )
        for n in neighbours
    ]


def prepared(model: Model, X: MatrixLike | Source) -> Rows:
    """Return rows X as the features of the model take them: in the columns of the fit, and normalised."""
    source = model.schema.rows(X)
    return model.preparation(source.block(0, source.n_rows).X, 0, source.name)


def mean_row(rows: Rows) -> np.ndarray:
    """Return the mean (columns,) of dense or sparse rows, summed in float64."""
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel().astype(rows.dtype) / rows.shape[0]


def mean_row_of_fit(model: Model) -> np.ndarray:
    """Return the mean row (bins,) of the fit's sample. Raise DataError if the model does not know it."""
    if model.learned.rows is None:
        raise DataError("this model does not know the mean row of its fit: give rows to compare with as background=X.")
    return model.learned.rows.mean_row


def rows_like_fit(model: Model) -> np.ndarray:
    """Return rows whose bins have the means and deviations of the fit's sample. Raise DataError if it is not known."""
    found = model.learned.rows
    if found is None:
        raise DataError("this model does not know the means and deviations of its fit's rows: give rows X.")
    return rows_like(found.mean_row, found.deviation_row, found.largest_row, model.takes_signs)


def places_of_bins(names: np.ndarray, bins: Sequence[int] | Sequence[str], estimator: str) -> list[int]:
    """Return the places of bins given by place, or by name or glob. Raise DataError if there is no such bin."""
    if any(isinstance(each, str) for each in bins):
        return places_of([str(name) for name in names], list(bins), estimator, "bins")
    places = [int(each) for each in bins]
    if wrong := [place for place in places if not -names.size <= place < names.size]:
        raise DataError(f"bins: there is no bin {wrong[0]}; the rows have {names.size} bins.")
    return places


def is_by_sign(model: Model) -> bool:
    """Whether the sign of a score is the answer, as it is for two classes."""
    answers = model.answers
    return isinstance(answers, ClassAnswers) and (answers.is_multilabel or answers.classes.size == 2)


VARIANCE_ROWS = 200  # rows whose contributions are compared
# Of kernels without slopes, each row of which takes hundreds: entries of the rows of a fit that some rows are compared
# with in a few seconds.
_FEW_ROWS, _FEWEST_ROWS, _ENTRIES_COMPARED = 40, 10, 1.2e7


def contributions_to(model: Model, rows: Rows, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the contributions of the bins of prepared rows (n, bins, t), and the outputs of the reference row."""
    of_bins = model.features.contributions(rows, reference, model.coef)
    if of_bins is not None:
        return of_bins, model.outputs_of_all(reference[None])[0]
    return contributions_of(model.mapped(), model.outputs_of_all, rows, reference)


def slopes_of_bins(model: Model, rows: Rows, units: np.ndarray) -> np.ndarray:
    """Return the importance (bins,) by slopes of the scores in their units. Raise ValueError if they have no slopes."""
    mapped = model.mapped()
    if mapped is None:
        raise InputError(
            "kind='gradient' is for additive kernels and exponential kernels over them; use kind='variance' or "
            "'permutation'."
        )
    mapped = replace(mapped, function=mapped.function.divided(units))
    return gradient_importance(mapped, rows, model.n_bins)


def variances_of_bins(model: Model, rows: Rows, units: np.ndarray) -> np.ndarray:
    """Return the importance (bins,) by variances of contributions to the scores in their units, on some of the rows."""
    most = VARIANCE_ROWS
    if model.mapped() is None and not model.is_additive:
        of_fit = max(1, model.learned.n_rows * model.n_bins)
        most = int(np.clip(_ENTRIES_COMPARED / of_fit, _FEWEST_ROWS, _FEW_ROWS))
    if rows.shape[0] > most:
        chosen = np.random.default_rng(0).choice(rows.shape[0], most, replace=False)
        rows = _arrays.take_rows(rows, np.sort(chosen))
    of_bins, _ = contributions_to(model, rows, mean_row(rows))
    return variance_importance(of_bins / units)


def units_of_outputs(model: Model, rows: Rows) -> np.ndarray:
    """Return units by which outputs are divided to compare them: several regression targets have different units."""
    if model.recipe.is_classifier:
        return np.ones(1)
    spread = model.outputs_of_all(_arrays.take_rows(rows, slice(VARIANCE_ROWS))).std(axis=0)
    return np.where(spread > 0, spread, 1.0) if spread.size > 1 else np.ones(1)


def score_of_rows(model: Model, y: np.ndarray) -> Callable[[Rows], float]:
    """Return the function that measures accuracy or R^2 on prepared rows with labels or targets y."""
    outputs = model.outputs_of_all
    if is_matrix(y):
        score = model.task.codec.score(clean_targets(y, y.shape[1], "y"), None)
        return lambda rows: score(outputs(rows))

    from sklearn.metrics import accuracy_score, r2_score

    measure = accuracy_score if model.recipe.is_classifier else r2_score
    return lambda rows: float(measure(y, model.answers.predicted(outputs(rows))))
