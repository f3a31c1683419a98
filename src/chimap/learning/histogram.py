"""The estimators that the README shows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from chimap.learning.base import HistogramModel
from chimap.learning.targets import ClassTargets, RealTargets


class HistogramClassifier(ClassTargets, HistogramModel):
    """Kernel classifier for histograms at linear cost: one-versus-all ridge on explicit features, fitted in one pass.

    Rows are mapped by the optimal map of the additive kernel, turned into random Fourier
    features (for the exponential kernels), and read once: their moments give the weights of every strength, and
    the moments of folds give its exact cross-validation. Time is linear in the rows; memory does not grow with
    them.

    Parameters
    ----------
    kernel : "chi2", "intersection", "jensen_shannon", "hellinger", "exp-" and one of these, "gaussian", "skewed-chi2",
        "skewed-intersection", "dirichlet", or a kernel object.
    gamma : of the exponential form: number, or "mean" for 1 / mean D^2 over pairs of rows (scikit-learn's gamma of
        ``chi2_kernel``).
    n_components : random features in all (exponential kernels). More is more accurate: the pass grows linearly with the
        bins and quadratically with this.
    n_terms : features a bin of the additive map.
    map : another additive map (unfitted) in place of ``OptimalMap(n_terms=n_terms)``.
    sampling, form : see ``FourierFeatures``; "auto" is "orthogonal", and "iid" for the skewed kernels.
    normalize : None leaves rows as they are, "l1" divides each by its sum (for rows whose totals mean nothing).
    strengths : "auto" (decades about the scatter of the features, then refined), numbers to choose from, or one number
        to use: scikit-learn's ``alpha`` of ridge.
    n_folds : of the cross-validation that chooses the strength.
    memory : budget of the fit, such as "512MiB", or bytes; interpreter and libraries are not counted.
    precision : "float32" or "float64", of features and their products; sums are always float64.
    n_jobs : threads; None is all cores.
    random_state : int, RandomState or None.
    verbose : show progress on the terminal.

    Learned: ``classes_``, ``coef_`` (t, D), ``intercept_`` (t,), ``strength_``, ``strength_scores_``,
    ``features_`` (the fitted features), ``kernel_``, ``stage_seconds_``, ``n_features_in_``, ``n_rows_``.

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier(n_components=512, random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.93)
    True
    """

    def partial_fit(self, X: Any, y: Any, classes: Any = None) -> Self:
        """Add a batch of rows; ``classes`` (all of them) is needed at the first call. Returns self.

        The first batch fixes the map, gamma and random features, so let it be a fair sample; batches of
        thousands of rows run at full speed. The weights are solved for at the next use. A call after ``fit``
        starts anew, with the classes that it found.
        """
        if getattr(self, "_moments", None) is None:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if classes is None:
                raise ValueError(
                    "classes must be given at the first call of partial_fit: all labels that will come."
                )
            self._learn_targets(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differs from those of the first call, {self.classes_!r}.")
        return self._partial_fit(X, y)


class HistogramRegressor(RealTargets, HistogramModel):
    """Kernel ridge regression for histograms at linear cost; parameters as in ``HistogramClassifier``.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=300)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> bool(HistogramRegressor(n_components=256, random_state=0).fit(X, y).score(X, y) > 0.98)
    True
    """

    def partial_fit(self, X: Any, y: Any) -> Self:
        """Add a batch of rows; see ``HistogramClassifier.partial_fit``."""
        if getattr(self, "_moments", None) is None:
            self._learn_targets(y)
        return self._partial_fit(X, y)
