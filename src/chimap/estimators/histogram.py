"""The classifier that the README shows."""

from __future__ import annotations

from typing import TYPE_CHECKING, Self

from sklearn.utils.metaestimators import available_if

from chimap._types import ArrayLike, MatrixLike
from chimap.estimators.base import HistogramModel
from chimap.estimators.class_targets import ClassTargets
from chimap.estimators.in_batches import keeps_moments, learned_labels
from chimap.estimators.levels import kth_highest

if TYPE_CHECKING:
    from sklearn.utils import Tags


class HistogramClassifier(ClassTargets, HistogramModel):
    """Kernel classifier for histograms at linear cost: one machine a class against the rest.

        minimise over w, b:  sum_n loss(y_n, w'z(x_n) + b) + alpha/2 |w|^2,   y_n = 1 for the class and -1 otherwise,

    with z(x) . z(x') close to the kernel. With no settings a race on a sample of the rows finds kernel, normalisation,
    features and loss, and says what it tried. Up to some 12,000 rows an exponential kernel keeps every one. Beyond,
    rows are mapped by the optimal map of the additive kernel, compared with landmarks and read once: time is linear in
    the rows, and memory does not grow with them.

    Parameters
    ----------
    kernel : str, Kernel or list of these, default="auto"
        "auto": a race of kernels, normalisations and linear machines on a sample, scored on rows held out (by group
        where groups are given); its work is counted, some 20 s on two cores at most. Or "chi2", "intersection",
        "jensen_shannon", "hellinger", "exp-" and one of these, "gaussian", "skewed-chi2", "skewed-intersection",
        "dirichlet", "linear", "pq", "jensen_shannon+pq", or a kernel object, sums and products among them.
    features : str or features, default="auto"
        "auto": the map of an additive kernel; of an exponential one "exact" up to 12,000 rows that fit the memory, and
        "landmarks" beyond. "exact": every training row a landmark, the machine on the kernel matrix itself (4 bytes a
        pair of rows): the most accurate of all, at about a second for 5,000 rows and a strength; of additive kernels no
        row is kept. "landmarks": ``LandmarkFeatures`` of exponential kernels, ``NystroemFeatures`` of all others.
        "additive": the map of an additive kernel. "fourier": random features of exponential and skewed kernels.
    gamma : float or str, default="mean"
        Of the exponential form: a number, "mean" for 1 / mean D^2 over pairs of rows, or a multiple such as "2*mean";
        "auto" is chosen by the score on rows left out, from a quarter to four times the mean.
    n_components : int or "auto", default="auto"
        Landmarks, or random features in all. More is more accurate: the pass grows linearly with the bins and
        quadratically with this. "auto" is 2048 random features, or landmarks by the rows, 8 times their root (1000 to
        8000), as the memory has room.
    n_terms : int or "auto", default="auto"
        Features a bin of the additive map; "auto" is 2, and 1 below landmarks, where more do not help.
    map : additive map, optional
        Unfitted, in place of ``OptimalMap(n_terms=n_terms)``.
    sampling, form : str, default="auto" and "pair"
        Of Fourier frequencies, see ``FourierFeatures``; "auto" is "orthogonal", "iid" for the skewed kernels.
    landmarks : str or array, default="kmeans"
        Of exponential kernels, how they are chosen: "kmeans", "uniform", "rpcholesky", or the rows themselves. If there
        are more rows than landmarks, a fifth (2000 at most) has no part in them: alpha is chosen by their score.
    normalize : {None, "l1", "log1p", "sqrt"}, default=None
        None leaves rows as they are; "l1" divides each, or each block, by its sum (for rows whose totals mean nothing);
        "log1p" and "sqrt" are of each entry. The race chooses where the kernel is "auto".
    bin_weights : "auto", "learn", None or array of shape (bins,), default="auto"
        Weights w_i of the bins: sum_i w_i d(x_i, y_i) in place of sum_i d(x_i, y_i), for kernels that are homogeneous.
        "learn": from what the machine makes of each bin, one to three rounds, kept only if the score of rows held out
        rises by more than twice its error; a block has one weight. "auto": "learn" where the kernel is "auto", else
        equal.
    blocks : list or mapping of columns, optional
        Of several descriptors, as slices or lists: each gets features of its own, and ``kernel`` may be a list of one
        each. ``n_components`` counts for each.
    n_principal : int or several, optional
        How many principal components of each block's features to keep. They are made in a first pass over the rows and
        the weights in a second; the memory is that of the components, not of the features. A block of fewer features
        keeps them all; at most as many as the largest has. Of several numbers the best is chosen together with the
        strength, by the folds of the second pass (loss="square").
    loss : str or Loss, default="square"
        "square": ridge, one pass over the rows; of sparse rows with more than 8,192 mapped bins by conjugate gradients
        on their features in memory, alpha chosen on a fold held out. "logistic", "squared_hinge", "smooth_hinge" or an
        object of ``chimap.losses``: L-BFGS from the ridge solution on, one pass a step, over features in memory where
        all rows' fit the budget and over features computed again where they do not. "hinge": LIBLINEAR on all rows'
        features in memory, CSR where bins are mostly empty, without any moments: for more features than a matrix of
        them squared allows. Its intercept is the weight of a constant feature of 1 and penalised as such
        (scikit-learn's LinearSVC). features="exact" takes "square" and "squared_hinge".
    class_weight : None, "balanced", dict or list of dict, default=None
        By which the weights of rows are multiplied: "balanced" gives every class the same sum, n / (classes * rows of
        the class), as scikit-learn computes it; a class that the dictionary does not name has 1. Scores that choose,
        and probabilities, are of rows so weighted. Of several tasks "balanced" is of each, a dictionary of all, a list
        has one for each task; the features and the race, which tasks share, take the means of the rows.
    threshold : None, "f1", "balanced" or float, default=None
        Of two classes, the output above which a row is of the second, ``classes_[1]``, the positive one. None is 0;
        "f1" and "balanced" are where F1 of that class, or balanced accuracy, is best on rows held out; a number is the
        cost of missing one of its rows, in units of a false alarm, whose sum is least there: 10 says ten false alarms
        for one that is found. ``decision_function`` and ``predict_proba`` stay as they are.
    alpha : float, several or "auto", default="auto"
        One strength, or several to choose from, of alpha/2 |w|^2 beside the sum of the losses: scikit-learn's ``alpha``
        of ridge, 1/C elsewhere. "auto" tries decades about the scatter of the features, then half decades, by
        ``selection``; for other losses half decades about the best of ridge (hinge: about a tenth of the features' mean
        squared norm), by the loss on one fold held out, each some passes: give one number where passes are dear.
    selection : str, int or splitter, default="auto"
        How alpha is chosen. "gcv": generalised cross-validation, one factor a strength and no folds kept
        (loss="square"; rows must be independent, with duplicates use folds). A number: folds of the cross-validation.
        "holdout": one part of the rows. "auto": "gcv" for the square loss, five folds where rows have groups. For
        features="exact": "auto" or "leave-one-out" (a group, where there are groups; parts of many rows, of tasks with
        gaps), folds, or a splitter of scikit-learn that holds every row out once.
    scoring : str or callable, optional
        A scorer of scikit-learn by which the race and features="exact" choose. None: accuracy, in the race ROC AUC
        where one of two classes is rare, and R^2 of regressions.
    race_seconds : float, optional
        Of kernel="auto": start no trial after so many seconds; the last round that is complete decides. None: the work
        is counted, and every machine chooses the same.
    memory : str or int, default="1GiB"
        Budget of the fit, such as "512MiB", or bytes. Interpreter and libraries are counted, with 256 MiB; of a budget
        below 512 MiB they leave 256 MiB, or all of it, to the fit.
    precision : {"float32", "float64", "bfloat16", "auto"}, default="float32"
        Of features and products; sums are float64. bfloat16: features are rounded first, at prediction too; faster on
        CUDA devices and AMX (by torch), the same numbers elsewhere. auto: bfloat16 there, else float32, see precision_.
    device : str, default="cpu"
        Or "cuda" (needs torch): features, moments and the solution on that device, for loss="square".
    n_jobs : int, optional
        Threads; None is all cores, and one for up to 300 rows, which threads would not make faster.
    random_state : int, RandomState or None, default=None
        Of the sample, the race and random features.
    verbose : bool, default=False
        Show progress on the terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
    kernel_ : Kernel
        With its parameters set to numbers.
    features_ : Features
    coef_ : ndarray of shape (t, D), intercept_ : ndarray of shape (t,)
        Of the features; t is 1 for two classes.
    alpha_ : float
    selection_ : SelectionResult or None
        The scores of all that was compared; None where there was nothing to choose.
    race_ : RaceResult
        Of kernel="auto" and bin_weights="learn": ``race_.table()`` has a row a candidate.
    chosen_ : dict
        The settings that the race chose, by parameter; empty without one.
    bin_weights_ : ndarray of shape (bins,) or None
        Of mean 1 where they were learned; None where all are equal.
    held_out_ : ndarray of shape (n, t)
        Of features="exact": outputs for each row of a machine that has not seen it (or its group). Where the race has
        chosen the strength of more than 3,000 rows, of so many drawn at random, and NaN of the others.
    learning_curve_ : LearningCurve or None
        Of exact machines of loss="square"; of sums with ``fit_source(..., learning_curve=True)``.
    class_weight_ : ndarray of shape (classes,), of several tasks (tasks, 2), or None
    threshold_ : float
    n_principal_ : int
        The chosen number, of several; ``report.write_selection`` draws the scores of all pairs.
    loss_ : Loss or None
        None for the hinge.
    n_passes_ : int
        Over the rows; 0 for LIBLINEAR's own.
    n_rows_, n_features_in_ : int
    precision_ : str
    stage_seconds_ : dict

    Raises
    ------
    DataError
        A ValueError: by ``fit``, for rows with negative, NaN or infinite bins, naming the first one's place; for labels
        of one class; for weights of bins, rows or classes that will not do; where no candidate of the race can be
        fitted.
    ValueError
        For settings, naming the parameter.
    MemoryBudgetError
        For a budget that does not suffice, with the least that would.
    ImportError
        Where a package is missing.

    Notes
    -----
    Labels y (n, t) of 0, 1 and NaN are t tasks in one fit; entries that are missing are left out of that task alone.
    The strength is one for all, by the mean of the tasks' scores; with missing entries ridge is solved by conjugate
    gradients on the features in memory (``solvers.observed``), or on one factor of features="exact". Answers are
    (n, t), see ``predict``; ``task_names_`` are the columns of a data frame, ``multilabel_`` is True.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi-square kernel, sec. 6 (moments, folds, components).
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps (maps, and random features over them).
    Jamieson and Talwalkar, Non-stochastic best arm identification and hyperparameter optimization, 2016 (the race).
    Radhakrishnan, Beaglehole, Pandit and Belkin, Mechanism for feature learning, 2024 (weights of bins).

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("exp-chi2", random_state=0).fit(X[:1200], y[:1200])
    >>> bool(model.score(X[1200:], y[1200:]) > 0.95)
    True
    """

    _takes_tasks = True

    @available_if(keeps_moments)
    def partial_fit(
        self,
        X: MatrixLike,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add a batch of rows; ``classes`` (all of them) is needed at the first call. Returns self.

        y (n, t): labels 0 and 1 of several tasks, which need no ``classes``. An entry that is missing is left out of
        that task alone, as by ``fit``; sums of the rows that a task misses take a matrix of the features each.

        sample_weight (n,): as of ``fit``, of this batch.

        The first batch fixes the map, gamma and random features, so let it be a fair sample; batches of
        thousands of rows run at full speed. The weights are solved for at the next use. A call after ``fit``
        starts anew, with the classes that it found.
        """
        return self._partial_fit(X, learned_labels(self, y, classes), sample_weight)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def equalise_levels(self, X: MatrixLike, k: int) -> Self:
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
