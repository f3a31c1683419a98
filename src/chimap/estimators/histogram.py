"""The estimators that the README shows."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from chimap.estimators.base import HistogramModel
from chimap.estimators.levels import kth_highest
from chimap.estimators.targets import ClassTargets, RealTargets
from chimap.fit.targets import check_one_task
from chimap.solvers.from_moments import RidgeSolver


def _keeps_moments(model: HistogramModel) -> bool:
    if not RidgeSolver().supports(model.loss):
        raise AttributeError(
            f"partial_fit needs loss='square': loss={model.loss!r} passes over the rows again."
        )
    return True


class HistogramClassifier(ClassTargets, HistogramModel):
    """Kernel classifier for histograms at linear cost: one-versus-all ridge on explicit features, fitted in one pass.

        minimise over w, b:  sum_n loss(y_n, w'z(x_n) + b) + alpha/2 |w|^2,   y_n = 1 for the class and -1 otherwise,

    with z(x) . z(x') close to the kernel. Rows are mapped by the optimal map of the additive kernel, compared with
    landmarks (for the exponential kernels), and read once: their moments give the weights of every strength, and its
    cross-validation. Time is linear in the rows; memory does not grow with them. Of up to 12,000 rows an exponential
    kernel keeps every one instead, which is more accurate still.

    Parameters
    ----------
    kernel : "auto", a race of kernels, normalisations and linear machines on a sample of the rows (``race_``); "chi2",
        "intersection", "jensen_shannon", "hellinger", "exp-" and one of these, "gaussian", "skewed-chi2",
        "skewed-intersection", "dirichlet", "linear", "pq", "jensen_shannon+pq", or a kernel object, sums and products
        among them.
    gamma : of the exponential form: number, a multiple such as "2*mean", or "mean" for 1 / mean D^2 over pairs of rows
        (scikit-learn's gamma of ``chi2_kernel``); "auto" is chosen, from a quarter to four times that
        (features="exact").
    n_components : random features in all, or landmarks. More is more accurate: the pass grows linearly with the
        bins and quadratically with this. "auto" is 2048 random features, or landmarks by the rows, 8 times their root
        (1000 to 8000), as the memory has room.
    n_terms : features a bin of the additive map; "auto" is 2, and 1 below landmarks, where more do not help.
    map : another additive map (unfitted) in place of ``OptimalMap(n_terms=n_terms)``.
    features : "additive", the map of an additive kernel; "fourier", random features of exponential and skewed kernels;
        "landmarks", ``LandmarkFeatures`` of exponential kernels and ``NystroemFeatures`` of all others; or "auto": the
        map of an additive kernel; of an exponential one "exact" up to 12,000 rows that fit the memory, and landmarks
        beyond. "exact": every training row a landmark, the machine on the kernel matrix itself (4 bytes a pair of
        rows): the most accurate of all, at about a second for 5,000 rows and a strength. It chooses by ``scoring`` of
        predictions for rows that are left out, which come with the solution: ``held_out_``. Of additive kernels no row
        is kept.
    landmarks : of exponential kernels, how they are chosen: "kmeans", "uniform", "rpcholesky", or the rows themselves.
    sampling, form : of Fourier frequencies, see ``FourierFeatures``; "auto" is "orthogonal", "iid" for the skewed
        kernels.
    blocks : None, or columns of several descriptors as slices or lists, in a list or a mapping of names: each gets
        features of its own, and ``kernel`` may be a list of one each. ``n_components`` counts for each.
    n_principal : None, or how many principal components of each block's features to keep. They are found in a first
        pass over the rows and the weights in a second; the memory is that of the components, not of the features.
        A block of fewer features keeps them all; at most as many as the largest has.
        Several numbers: the best of them together with the strength, by the folds of the second pass (loss="square").
    normalize : None leaves rows as they are, "l1" divides each, or each block, by its sum (for rows whose totals
        mean nothing).
    loss : "square" (ridge: one pass over the rows), or "logistic", "squared_hinge", "smooth_hinge" or an object of
        ``chimap.losses``: L-BFGS from the ridge solution on, one pass a step, over features in memory where all rows'
        fit the budget and over features computed again where they do not; "hinge": LIBLINEAR on all rows' features in
        memory, CSR where bins are mostly empty, without any moments: for more features than a matrix of them squared
        allows. Its intercept is the weight of a constant feature of 1 and penalised as such (scikit-learn's LinearSVC).
    class_weight : None, "balanced" or a dictionary of labels and weights, by which the weights of rows are multiplied:
        "balanced" gives every class the same sum, n / (classes * rows of the class), as scikit-learn computes it; a
        class that the dictionary does not name has 1. Scores that choose, and probabilities, are of rows so weighted.
    threshold : of two classes, the output above which a row is of the second, ``classes_[1]``, the positive one. None
        is 0; "f1" and "balanced" are where F1 of that class, or balanced accuracy, is best on rows held out; a
        number is the cost of missing one of its rows, in units of a false alarm, whose sum is least there: 10 says ten
        false alarms for one that is found. ``decision_function`` and ``predict_proba`` stay as they are.
    alpha : "auto", numbers to choose from, or one number to use, of alpha/2 |w|^2 beside the sum of the losses:
        scikit-learn's ``alpha`` of ridge, 1/C elsewhere. "auto" tries decades about the scatter of the features, then
        half decades, by ``selection``; for other losses half decades about the best of ridge (hinge: about a tenth of
        the features' mean squared norm), by the loss on one fold held out, each some passes: give one number where
        passes are dear.
    selection : how alpha is chosen. "gcv": generalised cross-validation, one factor a strength and no folds kept
        (loss="square"; rows must be independent, with duplicates use folds). A number: folds of the cross-validation.
        "holdout": one part of the rows. "auto": "gcv" for the square loss, five folds where rows have groups. For
        features="exact": "auto" or "leave-one-out" (a group, where there are groups), folds, or a splitter of
        scikit-learn that holds every row out once.
    scoring : None (accuracy, R^2), or a scorer of scikit-learn by name or itself, by which features="exact" chooses.
    memory : budget of the fit, such as "512MiB", or bytes; interpreter and libraries are not counted.
    precision : "float32", "float64", or "bfloat16", of features and their products; sums are always float64. Features
        are rounded to bfloat16 before anything else, at prediction too, and multiplied with float32 accumulation:
        faster on CUDA devices and on processors with units for it (through torch), the same numbers elsewhere.
    device : "cpu", or "cuda" (needs torch): features, moments and the solution on that device, for loss="square".
    n_jobs : threads; None is all cores.
    random_state : int, RandomState or None.
    verbose : show progress on the terminal.

    Labels y (n, t) of 0, 1 and NaN are t tasks in one fit; entries that are missing are left out of that task alone.
    The strength is one for all, by the mean of the tasks' scores; with missing entries ridge is solved by conjugate
    gradients on the features in memory (``solvers.observed``), or features="exact" by a factor a task. Answers are
    (n, t), see ``predict``; ``task_names_`` are the columns of a data frame, ``multilabel_`` is True.

    Learned: ``classes_``, ``coef_`` (t, D), ``intercept_`` (t,), ``alpha_``, ``selection_`` (a ``SelectionResult``: the
    scores of all that was compared; None where there was nothing to choose), ``features_`` (the fitted features),
    ``kernel_``, ``stage_seconds_``, ``n_features_in_``, ``n_rows_``, ``loss_`` (None for the hinge), ``n_passes_`` over
    the rows (0 for LIBLINEAR's own), ``class_weight_`` (classes,) (None without), ``threshold_`` where one was
    asked for. With several n_principal: ``n_principal_``, the chosen number;
    ``report.write_selection`` draws the scores of all pairs. With features="exact": ``held_out_`` (n, t), outputs for
    each row of a machine that has not seen it (or its group).

    ``fit`` raises DataError (a ValueError) for rows with negative, NaN or infinite bins, naming the first one's place,
    and for labels of one class; ValueError for settings; MemoryBudgetError for a budget that does not suffice, with the
    least that would; ImportError where a package is missing.

    Sources: Li, Lebanon and Sminchisescu, A linear approximation to the chi-square kernel, sec. 6 (moments, folds,
    components); Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps (maps, and random features
    over them).

    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("exp-chi2", n_components=512, random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.93)
    True
    """

    _takes_tasks = True

    @available_if(_keeps_moments)
    def partial_fit(self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None) -> Self:
        """Add a batch of rows; ``classes`` (all of them) is needed at the first call. Returns self.

        sample_weight (n,): as of ``fit``, of this batch.

        The first batch fixes the map, gamma and random features, so let it be a fair sample; batches of
        thousands of rows run at full speed. The weights are solved for at the next use. A call after ``fit``
        starts anew, with the classes that it found.
        """
        check_one_task(y)
        if getattr(self, "_batches", None) is None:
            classes = getattr(self, "classes_", None) if classes is None else classes
            if classes is None:
                raise ValueError(
                    "classes must be given at the first call of partial_fit: all labels that will come."
                )
            self._learn_targets(classes)
        elif classes is not None and not np.array_equal(np.unique(classes), self.classes_):
            raise ValueError(f"classes={classes!r} differs from those of the first call, {self.classes_!r}.")
        return self._partial_fit(X, y, sample_weight)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def equalise_levels(self, X: Any, k: int) -> Self:
        """Shift each class's scores so that the k-th highest over rows X is 0 for every class; returns self.

        For many classes, whose scores are learned apart and are not comparable. No labels are needed: X may be rows
        held out, or those to be classified; k is best near the rows that a class has among them. With two classes it
        puts k rows into the second. ``intercept_`` is changed; fitting anew undoes it. See
        ``chimap.estimators.levels.kth_highest``.

        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> model = HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X[:1200], y[:1200])
        >>> scores = model.equalise_levels(X[1200:], k=60).decision_function(X[1200:])
        >>> (scores > -1e-9).sum(axis=0).tolist()
        [60, 60, 60, 60, 60, 60, 60, 60, 60, 60]
        """
        scores = self._outputs(X)
        self._intercept = self._intercept - kth_highest(scores, k)
        return self


class HistogramRegressor(RealTargets, HistogramModel):
    """Kernel ridge regression for histograms at linear cost; parameters as in ``HistogramClassifier``.

    loss is "square" or "epsilon_insensitive" (support vector regression, its corners rounded): an error within 0.1 of
    the targets' standard deviation costs next to nothing, and a large one its size instead of its square. An object
    ``losses.EpsilonInsensitive`` sets other widths, in units of the targets.

    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=300)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> bool(HistogramRegressor("exp-chi2", n_components=256, random_state=0).fit(X, y).score(X, y) > 0.98)
    True
    """

    _takes_tasks = True

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_if(_keeps_moments)
    def partial_fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Add a batch of rows; see ``HistogramClassifier.partial_fit``."""
        check_one_task(y)
        if getattr(self, "_batches", None) is None:
            self._learn_targets(y)
        return self._partial_fit(X, y, sample_weight)
