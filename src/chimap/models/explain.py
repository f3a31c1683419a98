"""Explanations of fitted estimators: ``explain``, ``importance``, ``effects`` and ``nearest``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._threads import threads
from chimap._types import ArrayLike, MatrixLike, Rows
from chimap._validation import DataError, check_choice, rows_as_fitted
from chimap.data import Source
from chimap.data.labels import clean_targets
from chimap.data.table import places_of
from chimap.estimators.rows import source_as_fitted, source_to_predict
from chimap.explain import (
    Explanation,
    Importance,
    Neighbours,
    contributions_of,
    gradient_importance,
    permutation_importance,
    removal_importance,
    rows_like,
    variance_importance,
)
from chimap.explain.effects import BinEffect, BinUnit, bin_effect
from chimap.explain.neighbours import expansion_of, strongest
from chimap.features.mapped_functions import LinearFunction, MappedModel
from chimap.recipe.codecs import Codec, is_matrix

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

KINDS = ("gradient", "permutation", "removal", "variance")


class Explaining:
    """Explanations of an estimator with linear outputs for prepared rows. A subclass defines the abstract methods."""

    n_features_in_: int
    n_jobs: int | None
    _codec: Codec

    def explain(self, X: MatrixLike, background: MatrixLike | None = None) -> Explanation:
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
        self._refresh()
        rows = self._rows_to_explain(X)
        reference = (
            mean_row_of_fit(self) if background is None else mean_row(self._rows_to_explain(background))
        )
        with threads(self.n_jobs):
            contributions, base = self._contributions(rows, reference)
        return Explanation(contributions, base, bin_names(self), output_names(self, base.size))

    def importance(
        self, X: MatrixLike | None = None, y: ArrayLike | None = None, kind: str = "gradient"
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
        self._refresh()
        if kind == "permutation":
            if X is None or y is None:
                raise InputError("kind='permutation' shuffles rows with known labels: give X and y.")
            rows = self._rows_to_explain(X)
            measure = score_of_rows(self, self._codec, np.asarray(y), self._outputs_of_prepared)
            with threads(self.n_jobs):
                values = permutation_importance(measure, rows)
            return Importance.of(kind, values, bin_names(self))
        rows = self._rows_like_the_fit() if X is None else self._rows_to_explain(X)
        with threads(self.n_jobs):
            units = self._units(rows)
            if kind == "removal":
                order, values = removal_importance(lambda some: self._outputs_of_prepared(some) / units, rows)
                return Importance(kind, order, bin_names(self)[order], values)
            if kind == "gradient":
                values = slopes_of_bins(self._mapped_model(), rows, units, self.n_features_in_)
            else:
                values = variances_of_bins(self._contributions, rows, units)
        return Importance.of(kind, values, bin_names(self))

    def effects(self, bins: Sequence[int] | Sequence[str], X: MatrixLike | None = None) -> list[BinEffect]:
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
        self._refresh()
        rows = self._rows_like_the_fit() if X is None else self._rows_to_explain(X)
        reference, names = mean_row_of_fit(self), bin_names(self)
        places = places_of_bins(names, bins, type(self).__name__)
        with threads(self.n_jobs):
            return [
                bin_effect(
                    self._outputs_of_prepared,
                    reference,
                    i,
                    str(names[i]),
                    rows,
                    X is not None,
                    self._unit_of_bin(i),
                )
                for i in places
            ]

    @property
    def is_additive(self) -> bool:
        """Whether the scores are a sum of functions of single bins."""
        self._refresh()
        model = self._mapped_model()
        return model is not None and isinstance(model.function, LinearFunction)

    @property
    def has_slopes(self) -> bool:
        """Whether the scores are a function of mapped rows that has a gradient."""
        self._refresh()
        return self._mapped_model() is not None

    def nearest(self, X: MatrixLike, k: int = 5) -> list[Neighbours]:
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
        self._refresh()
        rows = self._rows_to_explain(X)
        values, weights, outputs = self._kernel_values(rows)
        scores = self._outputs_of_prepared(rows)
        chosen = scores.argmax(axis=1)
        signs = np.sign(scores[:, 0]) if answers_by_sign(self) else np.ones(len(scores))
        answers = answers_of(self, outputs)
        neighbours = [
            strongest(v, weights[:, c], k, sign) for v, c, sign in zip(values, chosen, signs, strict=True)
        ]
        numbers = getattr(self, "row_numbers_", np.arange(len(outputs)))
        return [replace(n, places=numbers[n.places], answers=answers[n.places]) for n in neighbours]

    # --- what an estimator defines

    @abstractmethod
    def _refresh(self) -> None:
        """Bring the learned attributes up to date, or raise NotFittedError."""

    @abstractmethod
    def _prepared(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Return rows (n, bins) as the features take them; errors give their numbers in ``name``."""

    @property
    @abstractmethod
    def _takes_signs(self) -> bool:
        """Whether bins may be negative."""

    @abstractmethod
    def _mapped_model(self) -> MappedModel | None:
        """Return the scores as a function of mapped rows, or None if they are not such a function."""

    @abstractmethod
    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        """Return linear outputs (n, t) for prepared rows."""

    # --- steps of explanations

    def _rows_to_explain(self, X: MatrixLike) -> Rows:
        return self._prepared(*self._read(X))

    def rows_as_read(self, X: MatrixLike) -> Rows:
        """Return rows X as they are given, in the columns of the fit.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            The rows.

        Returns
        -------
        array or sparse matrix of shape (n, bins)
            Their values, before they are normalised.
        """
        return self._read(X)[0]

    def _read(self, X: MatrixLike) -> tuple[Rows, int, str]:
        """Return rows in the columns of the fit, as they were given, with their first number and name for errors."""
        source = X if isinstance(X, Source) else source_to_predict(self, X)
        if source is None:
            return rows_as_fitted(self, X), 0, "X"
        source = source_as_fitted(self, source)
        return source.block(0, source.n_rows).X, 0, source.name

    def _rows_like_the_fit(self) -> Rows:
        """Return rows with the means and deviations of the fit's rows as prepared."""
        return rows_like_fit(self, self._takes_signs)

    def _unit_of_bin(self, place: int) -> BinUnit:
        """Return how values of a bin become what the features take; a subclass that prepares rows overrides it."""
        return BinUnit()

    def _contributions(self, rows: Rows, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return contributions_of(self._mapped_model(), self._outputs_of_prepared, rows, reference)

    def _units(self, rows: Rows) -> np.ndarray:
        return np.ones(1) if hasattr(self, "classes_") else units_of_targets(self._outputs_of_prepared, rows)

    def _kernel_values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return kernel values (n, m) with the landmarks, their weights (m, t), and their scores (m, t)."""
        model = self._mapped_model()
        function = expansion_of(model)
        assert model is not None
        return function.values(model.rows(rows)), function.coef, function(function.centres)


def mean_row(rows: Rows) -> np.ndarray:
    """Return the mean (columns,) of dense or sparse rows, summed in float64."""
    return np.asarray(rows.sum(axis=0, dtype=np.float64)).ravel().astype(rows.dtype) / rows.shape[0]


def mean_row_of_fit(model: BaseEstimator) -> np.ndarray:
    """Return the mean row (bins,) of the fit's sample. Raise DataError if the model does not know it."""
    mean = getattr(model, "mean_row_", None)
    if mean is None:
        raise DataError(
            "this model does not know the mean row of its fit: give rows to compare with as background=X."
        )
    return np.asarray(mean)


def rows_like_fit(model: BaseEstimator, is_signed: bool) -> np.ndarray:
    """Return rows whose bins have the means and deviations of the fit's sample. Raise DataError if it is not known.

    is_signed: whether bins may be negative.
    """
    deviation = getattr(model, "deviation_row_", None)
    if deviation is None:
        raise DataError("this model does not know the means and deviations of its fit's rows: give rows X.")
    return rows_like(mean_row_of_fit(model), deviation, is_signed)


def bin_names(model: BaseEstimator) -> np.ndarray:
    """Return the names of the bins, or their numbers; bins of images are named by cells and words."""
    names = getattr(model, "feature_names_in_", None)
    histograms = getattr(model, "histograms_", None)
    if names is None and histograms is not None:
        names = histograms.get_feature_names_out()
    return np.arange(model.n_features_in_) if names is None else np.asarray(names)


def places_of_bins(names: np.ndarray, bins: Sequence[int] | Sequence[str], estimator: str) -> list[int]:
    """Return the places of bins given by place, or by name or glob. Raise DataError if there is no such bin."""
    if any(isinstance(each, str) for each in bins):
        return places_of([str(name) for name in names], list(bins), estimator, "bins")
    places = [int(each) for each in bins]
    if wrong := [place for place in places if not -names.size <= place < names.size]:
        raise DataError(f"bins: there is no bin {wrong[0]}; the rows have {names.size} bins.")
    return places


def output_names(model: BaseEstimator, n_outputs: int) -> np.ndarray:
    """Return the names of the scores: classes, tasks or targets; two classes have one score, for the second."""
    classes = getattr(model, "classes_", None)
    if classes is None or is_of_tasks(model):
        names = getattr(model, "task_names_", None)
        if names is not None:
            return np.asarray(names)
        return np.array(["prediction"]) if n_outputs == 1 else np.arange(n_outputs)
    return np.asarray(classes[-n_outputs:])


def is_of_tasks(model: BaseEstimator) -> bool:
    """Whether the outputs belong to several tasks of two classes."""
    return bool(getattr(model, "multilabel_", False))


def answers_by_sign(model: BaseEstimator) -> bool:
    """Whether the sign of a score is the answer, as it is for two classes."""
    return is_of_tasks(model) or len(getattr(model, "classes_", ())) == 2


def answers_of(model: BaseEstimator, outputs: np.ndarray) -> np.ndarray:
    """Return labels, or predicted targets, for linear outputs."""
    if hasattr(model, "labels_of"):
        return np.asarray(model.labels_of(outputs))
    return outputs[:, 0] if outputs.shape[1] == 1 else outputs


VARIANCE_ROWS = 200  # rows whose contributions are compared


def slopes_of_bins(model: MappedModel | None, rows: Rows, units: np.ndarray, n_bins: int) -> np.ndarray:
    """Return the importance (bins,) by slopes of the scores in their units. Raise ValueError if they have no slopes."""
    if model is None:
        raise InputError(
            "kind='gradient' is for additive kernels and exponential kernels over them; use kind='variance' or "
            "'permutation'."
        )
    model = replace(model, function=model.function.divided(units))
    return gradient_importance(model, rows, n_bins)


def variances_of_bins(
    contributions: Callable[[Rows, np.ndarray], tuple[np.ndarray, np.ndarray]], rows: Rows, units: np.ndarray
) -> np.ndarray:
    """Return the importance (bins,) by variances of contributions to the scores in their units, on some of the rows.

    contributions: returns those of rows, relative to a reference row, and the scores of the reference.
    """
    if rows.shape[0] > VARIANCE_ROWS:
        chosen = np.random.default_rng(0).choice(rows.shape[0], VARIANCE_ROWS, replace=False)
        rows = _arrays.take_rows(rows, np.sort(chosen))
    of_bins, _ = contributions(rows, mean_row(rows))
    return variance_importance(of_bins / units)


def units_of_targets(outputs: Callable[[Rows], np.ndarray], rows: Rows) -> np.ndarray:
    """Return units by which outputs are divided to compare them: several regression targets have different units."""
    spread = outputs(_arrays.take_rows(rows, slice(VARIANCE_ROWS))).std(axis=0)
    return np.where(spread > 0, spread, 1.0) if spread.size > 1 else np.ones(1)


def score_of_rows(
    model: BaseEstimator, codec: Codec, y: np.ndarray, outputs: Callable[[Rows], np.ndarray]
) -> Callable[[Rows], float]:
    """Return the function that measures accuracy or R^2 on prepared rows with labels or targets y.

    outputs: returns the linear outputs of prepared rows.
    """
    if is_matrix(y):
        score = codec.score(clean_targets(y, y.shape[1], "y"), None)
        return lambda rows: score(outputs(rows))

    from sklearn.metrics import accuracy_score, r2_score

    measure = accuracy_score if hasattr(model, "classes_") else r2_score
    return lambda rows: float(measure(y, answers_of(model, outputs(rows))))
