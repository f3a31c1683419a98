"""What estimators say of why they say what they say: ``explain``, ``importance`` and ``nearest``."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
from sklearn.metrics import accuracy_score, r2_score

from chimap import _arrays
from chimap._threads import threads
from chimap._types import ArrayLike, MatrixLike, Rows
from chimap._validation import check_choice
from chimap.data.targets import clean_targets
from chimap.estimators.explained_rows import ExplainedRows, mean_row
from chimap.explain import (
    Explanation,
    Importance,
    Neighbours,
    contributions_of,
    gradient_importance,
    permutation_importance,
    removal_importance,
    variance_importance,
)
from chimap.explain.effects import BinEffect, bin_effect
from chimap.explain.neighbours import expansion_of, strongest
from chimap.features.mapped import MappedModel
from chimap.features.mapped_functions import LinearFunction
from chimap.fit.targets import Codec, is_matrix

KINDS = ("gradient", "permutation", "removal", "variance")
_VARIANCE_ROWS = 200  # whose contributions are compared


class Explaining(ExplainedRows):
    """Explanations of an estimator with linear outputs of prepared rows.

    A subclass gives the three below, and the two of ``ExplainedRows``.
    """

    _codec: Codec
    n_jobs: int | None

    # --- what a subclass gives

    @abstractmethod
    def _refresh(self) -> None:
        """Bring what is learned up to date, or raise NotFittedError."""

    @abstractmethod
    def _mapped_model(self) -> MappedModel | None:
        """The scores as a function of mapped rows, where they are one."""

    @abstractmethod
    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        """Linear outputs (n, t) of such rows."""

    # --- what a user asks

    def explain(self, X: MatrixLike, background: MatrixLike | None = None) -> Explanation:
        """What each bin adds to each score of rows X (n, bins), beyond a reference row.

        base + contributions.sum(axis=1) is ``decision_function`` (of a regression, the prediction). For additive
        kernels a contribution is the bin's own function of its value, less that of the reference. For exponential ones
        it is the integral of the gradient along the line between the mapped rows; where there is no gradient, a
        Shapley value by sampling.

        Parameters
        ----------
        X : array, sparse matrix, data frame or what else ``predict`` takes, of n rows
        background : rows, optional
            Whose mean is the reference row; the mean row of the fit's sample by default.

        Returns
        -------
        Explanation
            With ``contributions`` (n, bins, outputs), ``base`` (outputs,), ``bin_names`` and ``output_names``. Two
            classes have one output, which speaks for the second.

        Raises
        ------
        DataError
            For rows that ``predict`` refuses, and for a model that knows no mean row where no background is given.

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
        """How much each bin matters to the model, ranked and by name.

        Parameters
        ----------
        X : rows, optional
            Of the kind that the model is for. Without them, rows whose bins have the means and deviations of the
            fit's sample stand in (all kinds but "permutation").
        y : labels or targets of X
            For "permutation" alone.
        kind : {"gradient", "variance", "removal", "permutation"}
            "gradient": slope of the scores times spread of the bin. "variance": root of the variance of what the bin
            adds to the scores. "removal": how far the scores move when the bin is emptied beside those ranked before
            it. "permutation": loss of accuracy (of R^2) when the bin is shuffled among rows. Of several regressions
            scores count in units of their spread over the rows, so that no target leads by its unit alone.

        Raises
        ------
        ValueError
            For "permutation" without X and y, "gradient" of a kernel that has none, or another kind.

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
                raise ValueError("kind='permutation' shuffles rows whose labels are known: give X and y.")
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
        """How the scores change with each of these bins (places), the others as in the mean row.

        For an additive model these are the functions of the bins that its scores are the sum of, up to a constant.
        X: rows whose values the axes span, with their density; without them, those that ``importance`` uses.

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
        with threads(self.n_jobs):
            return [
                bin_effect(self._outputs_of_prepared, reference, int(i), str(names[i]), rows, X is not None)
                for i in bins
            ]

    @property
    def is_additive(self) -> bool:
        """Whether the scores are a sum of functions of single bins."""
        self._refresh()
        model = self._mapped_model()
        return model is not None and isinstance(model.function, LinearFunction)

    def nearest(self, X: MatrixLike, k: int = 5) -> list[Neighbours]:
        """The k landmarks, or training rows, that add the most to the score of what is predicted, row by row.

        For exponential kernels with features="landmarks" or "exact". Of two classes, contributions are to the second,
        and the first is spoken for by those that take the most.

        Raises
        ------
        DataError
            For models that are no sum over landmarks or rows.

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
        return [replace(one, answers=answers[one.places]) for one in neighbours]

    # --- its steps

    @property
    def _speaks_for_two(self) -> bool:
        """Whether a score below 0 is an answer."""
        return self._is_of_tasks or len(getattr(self, "classes_", ())) == 2

    def _kernel_values(self, rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Kernel values (n, m) with the landmarks, their weights (m, t), and the scores (m, t) of themselves."""
        model = self._mapped_model()
        function = expansion_of(model)
        assert model is not None
        return function.values(model.rows(rows)), function.coef, function(function.centres)

    def _contributions(self, rows: Rows, reference: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return contributions_of(self._mapped_model(), self._outputs_of_prepared, rows, reference)

    def _units(self, rows: Rows) -> np.ndarray:
        """What scores are divided by before they are compared: several regressions (t,) have units of their own."""
        if hasattr(self, "classes_"):
            return np.ones(1)
        spread = self._outputs_of_prepared(_arrays.take_rows(rows, slice(_VARIANCE_ROWS))).std(axis=0)
        return np.where(spread > 0, spread, 1.0) if spread.size > 1 else np.ones(1)

    def _gradients(self, rows: Rows, units: np.ndarray) -> np.ndarray:
        model = self._mapped_model()
        if model is None:
            raise ValueError(
                "kind='gradient' is of additive kernels and exponential ones over them; use kind='variance' or "
                "'permutation'."
            )
        model = replace(model, function=model.function.divided(units))
        return gradient_importance(model, rows, self.n_features_in_)

    def _variances(self, rows: Rows, units: np.ndarray) -> np.ndarray:
        if rows.shape[0] > _VARIANCE_ROWS:
            chosen = np.random.default_rng(0).choice(rows.shape[0], _VARIANCE_ROWS, replace=False)
            rows = _arrays.take_rows(rows, np.sort(chosen))
        contributions, _ = self._contributions(rows, mean_row(rows))
        return variance_importance(contributions / units)

    def _measure(self, y: np.ndarray) -> Callable[[np.ndarray], float]:
        """Accuracy or R^2 of prepared rows."""
        if is_matrix(y):
            score = self._codec.score(clean_targets(y, y.shape[1], "y"), None)
            return lambda rows: score(self._outputs_of_prepared(rows))
        measure = accuracy_score if hasattr(self, "classes_") else r2_score
        return lambda rows: float(measure(y, self._answers(self._outputs_of_prepared(rows))))

    def _answers(self, outputs: np.ndarray) -> np.ndarray:
        """Labels, or predicted targets, of linear outputs."""
        if hasattr(self, "labels_of"):
            return np.asarray(self.labels_of(outputs))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs
