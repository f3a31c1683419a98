"""Explanations of fitted estimators: ``explain``, ``importance``, ``effects`` and ``nearest``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from chimap._threads import threads
from chimap._types import ArrayLike, MatrixLike, Rows
from chimap._validation import DataError, check_choice
from chimap.data.table import places_of
from chimap.estimators.measured_bins import MeasuredBins
from chimap.explain import (
    Explanation,
    Importance,
    Neighbours,
    permutation_importance,
    removal_importance,
)
from chimap.explain.effects import BinEffect, bin_effect
from chimap.explain.neighbours import expansion_of, strongest
from chimap.features.mapped_functions import LinearFunction

KINDS = ("gradient", "permutation", "removal", "variance")


class Explaining(MeasuredBins):
    """Explanations of an estimator with linear outputs for prepared rows.

    A subclass defines the methods that ``MeasuredBins`` and ``ExplainedRows`` leave open.
    """

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
        reference = self._reference(background)
        with threads(self.n_jobs):
            contributions, base = self._contributions(rows, reference)
        return Explanation(contributions, base, self._bin_names(), self._output_names(base.size))

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
                raise ValueError("kind='permutation' shuffles rows with known labels: give X and y.")
            rows = self._rows_to_explain(X)
            with threads(self.n_jobs):
                values = permutation_importance(self._measure(np.asarray(y)), rows)
            return Importance.of(kind, values, self._bin_names())
        rows = self._rows_like_the_fit() if X is None else self._rows_to_explain(X)
        with threads(self.n_jobs):
            units = self._units(rows)
            if kind == "removal":
                order, values = removal_importance(lambda some: self._outputs_of_prepared(some) / units, rows)
                return Importance(kind, order, self._bin_names()[order], values)
            values = self._gradients(rows, units) if kind == "gradient" else self._variances(rows, units)
        return Importance.of(kind, values, self._bin_names())

    def effects(self, bins: Sequence[int] | Sequence[str], X: MatrixLike | None = None) -> list[BinEffect]:
        """Return how the scores change with each of these bins, the others being as in the mean row.

        For an additive model, the effects are the functions of the bins whose sum the scores are, up to a constant.

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
        reference, names = self._reference(None), self._bin_names()
        if any(isinstance(each, str) for each in bins):
            places = places_of([str(name) for name in names], list(bins), type(self).__name__, "bins")
        else:
            places = [int(each) for each in bins]
            if wrong := [place for place in places if not -names.size <= place < names.size]:
                raise DataError(f"bins: there is no bin {wrong[0]}; the rows have {names.size} bins.")
        with threads(self.n_jobs):
            return [
                bin_effect(self._outputs_of_prepared, reference, i, str(names[i]), rows, X is not None)
                for i in places
            ]

    @property
    def is_additive(self) -> bool:
        """Whether the scores are a sum of functions of single bins."""
        self._refresh()
        model = self._mapped_model()
        return model is not None and isinstance(model.function, LinearFunction)

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
            One object per row.

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
        signs = np.sign(scores[:, 0]) if self._speaks_for_two else np.ones(len(scores))
        answers = self._answers(outputs)
        neighbours = [
            strongest(v, weights[:, c], k, sign) for v, c, sign in zip(values, chosen, signs, strict=True)
        ]
        return [replace(neighbour, answers=answers[neighbour.places]) for neighbour in neighbours]

    # --- steps of these

    @property
    def _speaks_for_two(self) -> bool:
        """Whether the sign of a score is the answer."""
        return self._is_of_tasks or len(getattr(self, "classes_", ())) == 2

    def _kernel_values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return kernel values (n, m) with the landmarks, their weights (m, t), and their scores (m, t)."""
        model = self._mapped_model()
        function = expansion_of(model)
        assert model is not None
        return function.values(model.rows(rows)), function.coef, function(function.centres)
