"""From real targets to those of a quadratic loss, and from outputs back to predictions and intervals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np
from sklearn.base import RegressorMixin

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import JSON, ArrayLike, MatrixLike, Sometimes
from chimap.data.catalogue import check_rows_order
from chimap.data.label_kinds import as_targets
from chimap.data.labelling import with_numbers
from chimap.data.labels import clean_targets
from chimap.data.source import Source
from chimap.estimators.rows_given import labelled_rows
from chimap.estimators.targets import Encoding, known_conformal
from chimap.fit.result import HeldOutRows
from chimap.fit.targets import Codec, RealCodec, check_varies
from chimap.losses import CATALOGUE as LOSSES
from chimap.selection.conformal import Conformal, checked_level
from chimap.selection.scoring import MeanScore


class RealTargets(Encoding, RegressorMixin):
    """One or several real targets, encoded minus their means.

    The estimator defines ``_outputs(X)``, linear outputs (n, t).
    """

    _y_checks: ClassVar[JSON] = {"y_numeric": True}
    _losses: ClassVar[tuple[str, ...]] = tuple(n for n, loss in LOSSES.items() if loss.domain == "real")
    _domain: ClassVar[str] = "real"
    _codec_type: ClassVar[type[Codec]] = RealCodec
    _conformal: Sometimes[Conformal | None]
    _variance_factors: Callable[[MatrixLike], np.ndarray]
    noise_variance_: Sometimes[np.ndarray | None]
    _keeps_posterior: ClassVar[bool] = True
    _outputs: Callable[[MatrixLike], np.ndarray]

    def _with_targets(self, source: Source) -> Source:
        """Return the source with numbers as targets. Raise DataError for text that is no number."""
        return with_numbers(source)

    def predict(self, X: MatrixLike, return_std: bool = False) -> Any:
        """Predict the targets of rows X.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to predict.
        return_std : bool, default=False
            Whether to return standard deviations of new targets around the predictions too. They come from the
            posterior of Bayesian ridge in the space of the features, with the noise of left-out rows
            (``loss="square"``), and grow where rows are unlike those of the fit.

        Returns
        -------
        ndarray of shape (n,) or (n, targets)
            Predictions in float64; with ``return_std``, a pair of predictions and standard deviations of the same
            shape.

        Raises
        ------
        ValueError
            If ``return_std`` is True and the model has no posterior.
        """
        predicted = self.targets_of(self._outputs(X))
        if not return_std:
            return predicted
        factors = self._variance_factors(X)
        if self.noise_variance_ is None:
            raise InputError("return_std needs the noise of left-out rows: fit on at least two rows.")
        return predicted, self.targets_of(np.sqrt(np.outer(factors, self.noise_variance_)))

    def targets_of(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predictions for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.

        Returns
        -------
        ndarray of shape (n,) or, with several targets, (n, t)
            Predicted targets.
        """
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    def score(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> float:
        """Return R^2 of ``predict(X)``.

        With several targets it is the mean over them, on the entries of y that are not missing.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to predict.
        y : array of shape (n,) or (n, targets), or str
            True targets. A string names a column of X, as in ``fit``; rows without a target are left out.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows.
        """
        check_rows_order(X, y=y, sample_weight=sample_weight)
        X, y, sample_weight = labelled_rows(self, X, y, sample_weight)
        predicted = self.predict(X)
        if predicted.ndim == 1:
            from sklearn.metrics import r2_score

            y = as_targets(np.asarray(y), "y")
            return float(r2_score(y, predicted, sample_weight=sample_weight))
        Y = clean_targets(y, predicted.shape[1], "y")
        weights = None if sample_weight is None else np.asarray(sample_weight)
        return MeanScore(Y, None, None, weights)(predicted)

    def _class_weighed(
        self, y: np.ndarray, sample_weight: np.ndarray | None, is_batch: bool = False
    ) -> np.ndarray | None:
        """Return the weights of the rows unchanged: there are no classes.

        Raise DataError if all targets of a fit are equal; those of a batch may be.
        """
        if not is_batch:
            check_varies(y)
        if getattr(self, "class_weight", None) is not None:
            raise InputError(
                Message(
                    "{class_weight} is for classifiers: use {sample_weight} to weight the rows of a regression."
                )
            )
        if getattr(self, "threshold", None) is not None:
            raise InputError("threshold is for classifiers with two classes: leave it out of a regression.")
        return sample_weight

    def predict_set(self, X: MatrixLike, alpha: float = 0.1) -> np.ndarray:
        """Return intervals that contain the target of each row of X with a probability of at least 1 - alpha.

        This holds if future rows are like those of the fit: the interval reaches as far from the prediction as the
        targets of most held-out rows did. All intervals have the same width, which is infinite if too few rows were
        held out for alpha.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows to predict.
        alpha : float, default=0.1
            Share of targets that may lie outside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or, with several targets, (n, targets, 2)
            Lower and upper ends.

        Raises
        ------
        ValueError
            If alpha is not between 0 and 1, or no rows were held out.

        References
        ----------
        See ``selection.conformal.Conformal``.

        Examples
        --------
        >>> import numpy as np
        >>> from chimap import HistogramRegressor
        >>> rng = np.random.default_rng(0)
        >>> X = rng.dirichlet(np.ones(8), size=600)
        >>> y = np.sqrt(X[:, 0]) + 0.1 * rng.normal(size=600)
        >>> model = HistogramRegressor("chi2", random_state=0).fit(X[:300], y[:300])
        >>> low, high = model.predict_set(X[300:], alpha=0.1).T
        >>> bool(0.85 < np.mean((low <= y[300:]) & (y[300:] <= high)) < 0.95)
        True
        """
        checked_level(alpha)
        return self.intervals_of(self._outputs(X), alpha)

    def intervals_of(self, outputs: np.ndarray, alpha: float = 0.1) -> np.ndarray:
        """Return the intervals of ``predict_set`` for linear outputs, such as those of ``predict_source``.

        Parameters
        ----------
        outputs : array of shape (n, t)
            Linear outputs.
        alpha : float, default=0.1
            Share of targets that may lie outside, between 0 and 1.

        Returns
        -------
        ndarray of shape (n, 2) or, with several targets, (n, t, 2)
            Lower and upper ends.
        """
        width = known_conformal(self).threshold(alpha)
        ends = np.stack([outputs - width, outputs + width], axis=2)
        return ends[:, 0] if ends.shape[1] == 1 else ends

    def _take_held_out(self, held_out: HeldOutRows | None) -> None:
        """Learn the noise and the widths of intervals from outputs for rows that the machine has not seen."""
        self._conformal, self.noise_variance_ = None, None
        if held_out is not None:
            self.noise_variance_ = held_out.noise
            y = held_out.y.reshape(held_out.outputs.shape)
            self._conformal = Conformal(np.abs(y - held_out.outputs), held_out.counted(held_out.weights))
