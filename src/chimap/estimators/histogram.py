"""``HistogramClassifier`` and ``HistogramRegressor``, the estimators to start with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Self

import numpy as np
from sklearn.utils.metaestimators import available_if

from chimap._errors import InputError
from chimap._messages import Message
from chimap._types import ArrayLike, Blocks, ClassWeight, MatrixLike, RandomState, Scoring
from chimap._validation import DataError, check_positive
from chimap.estimators.base import HistogramModel
from chimap.estimators.rows import checked_labels
from chimap.estimators.targets import ClassTargets, RealTargets
from chimap.features.families import Prescribed
from chimap.kernels import Kernel
from chimap.losses import Loss
from chimap.recipe.codecs import checked_batch
from chimap.solvers.from_moments import RidgeSolver

if TYPE_CHECKING:
    from sklearn.model_selection import BaseCrossValidator
    from sklearn.utils import Tags


def keeps_moments(model: HistogramModel) -> bool:
    """Return whether the loss is solved from moments; raise AttributeError for other losses."""
    if not RidgeSolver().supports(model.loss):
        raise AttributeError(
            Message("partial_fit needs {loss='square'}: {loss=} needs several passes over the rows.", model.loss)
        )
    return True


class HistogramClassifier(ClassTargets, HistogramModel):
    """Predict classes from rows of counts, without settings, from a hundred rows to millions.

    It is a kernel machine for histograms, one per class against the rest:

        minimise over w, b:  sum_n loss(y_n, w'z(x_n) + b) + alpha/2 |w|^2,   y_n = 1 for the class and -1 otherwise,

    where z(x) . z(x') is close to the kernel. Without any settings, a race on a sample of the rows chooses the kernel,
    the normalisation, the features and the loss, and reports what it tried. An exponential kernel keeps every row that
    memory and work allow: up to about 12,000 of them solved at once, and more block by block. Other machines, and
    landmarks, read the rows once: time is linear in the number of rows, and memory does not grow with it.

    Parameters
    ----------
    kernel : str, Kernel or list of these, default="auto"
        The kernel. "auto" runs a race of kernels, normalisations and linear machines on a sample, scored on held-out
        rows (held out by group where groups are given); its work is counted and takes at most about 20 s on two cores.
        A name is "chi2", "intersection", "jensen_shannon", "hellinger", "exp-" followed by one of these, "gaussian",
        "skewed-chi2", "skewed-intersection", "dirichlet", "linear", "pq" or "jensen_shannon+pq". Kernel objects, their
        sums and their products are accepted too. A list gives each of the ``blocks`` its own kernel, whose weight in
        their sum is 1 unless its name begins with another, such as "2*minmax".
    features : str or unfitted features, default="auto"
        The explicit features. "additive" is the map of an additive kernel. "exact" makes every training row a landmark
        and solves on the kernel matrix itself (4 bytes per pair of rows), or on the matrices of blocks of rows, one
        after the other, where memory does not hold it: it is the most accurate choice, at about a second per strength
        for 5,000 rows and twenty seconds for 60,000; for additive kernels it keeps no rows. "landmarks" is
        ``LandmarkFeatures`` for exponential kernels and ``NystroemFeatures`` for all others. "fourier" is random
        features of exponential and skewed kernels. "auto" takes "additive" for additive kernels; for exponential
        kernels it takes "exact", and "landmarks" where memory does not hold the rows and a block. An unfitted object
        says more: ``OptimalMap(n_terms=3)`` or another additive map, ``LandmarkFeatures``,
        ``FourierFeatures(sampling="structured")``, ``PrincipalFeatures`` over one of these, or ``AutomaticFeatures``,
        which leaves the family open. The kernel is that of the estimator if it names one, and gamma too; the number of
        components and the seed are those of the object if it has them. With more rows than landmarks, a fifth of the
        rows (at most 2000) takes no part in the choice of landmarks; their score chooses alpha.
    gamma : float or str, default="mean"
        The factor of the distance in exponential kernels: a number, "mean" for 1 / mean D^2 over pairs of rows, a
        multiple such as "2*mean", or "auto", which chooses it by the score on left-out rows, from a quarter to four
        times the mean.
    n_components : int or "auto", default="auto"
        Number of landmarks, or total number of random features. A larger number is more accurate, but the cost of the
        pass grows linearly with the bins and quadratically with this number. "auto" is 2048 random features, or a
        number of landmarks that follows the rows: 8 times their square root, from 1000 to 8000, as far as the memory
        has room. With ``loss="square"`` that number doubles, up to 8000, while rows that are left out gain more than
        the standard error of the gain, and the sums take no more than a minute of two cores.
    normalize : str, sequence of str or None, default=None
        What is done to the rows first. None leaves them as they are. "l1" divides each row, or each block of it, by its
        sum, which suits rows whose totals mean nothing. "log1p" and "sqrt" transform each entry. "log-cpm" and
        "log-cp10k" take log(1 + x) of shares in a total of a million or ten thousand: of species and of genes, whose
        shares differ by orders of magnitude. "log-z" standardises logarithms of the filled entries of each row, so that
        powers of its shares change nothing. "presence" is 1 for each entry above 0. "tf-idf" weighs counts of words by
        how rare they are in the training rows, and gives rows of length 1; "tf-idf-ratio" also by how unevenly the
        classes use them, which it learns from four fifths of the rows: only the others are scored. Of several, in which
        None may stand for no normalisation, a race takes the best. With ``kernel="auto"``, None leaves the choice to
        the race.
    bin_weights : "auto", "learn", None or array of shape (bins,), default="auto"
        Weights w_i of the bins, for homogeneous kernels: sum_i w_i d(x_i, y_i) replaces sum_i d(x_i, y_i). "learn"
        derives them from how the machine uses each bin, in one to three rounds, and keeps them only if the score of
        held-out rows rises by more than twice its error; the bins of a block share one weight. Rows whose labels they
        have learned from, 7000 at most, are then not scored; no weights are learned where ``selection`` is folds. A
        budget too small leaves them equal, with a warning. "auto" means "learn" if ``kernel="auto"``, and else equal
        weights.
    blocks : list or mapping of columns, default=None
        Columns of several descriptors, as slices or lists of columns, whose kernels are added up. Each block gets its
        own features, ``n_components`` of them, and ``kernel`` may be a list with one kernel per block.
    covariates : str or sequence of str, or array, data frame or mapping of n rows, default=None
        Columns beside the counts, such as age, sex and batch, with a kernel of their own: names of columns of X
        (``["age", "C(batch)"]``, where ``C(..)`` is a category though it holds numbers), or their values, in the order
        of the rows of ``fit``; new rows then come as ``chimap.with_covariates(X, values)``. Numbers are scaled, missing
        ones are their mean, with a column that says so; levels of a category are columns of 0 and 1, and an unknown
        level of a new row is 0 in all. A linear or gaussian kernel of them is added to that of the counts, with a
        weight that left-out rows choose; it is 0 unless they are predicted better by more than two standard errors.
    loss : str or Loss, default="square"
        The loss. "square" is ridge, solved in one pass over the rows; for sparse rows with more than 8,192 mapped bins,
        conjugate gradients run on their features in memory and one held-out fold chooses alpha. "logistic",
        "squared_hinge", "smooth_hinge" and objects of ``chimap.losses`` run L-BFGS from the ridge solution, one pass
        per step: over features in memory if those of all rows fit the budget, and over recomputed features otherwise.
        "hinge", and "squared_hinge" of sparse rows of additive kernels, run LIBLINEAR on the features of all rows in
        memory (CSR if bins are mostly empty). It needs no moments, so it takes more features than a matrix of their
        products could hold; its intercept is the weight of a constant feature of 1 and is penalised as such, as in
        scikit-learn's ``LinearSVC``. ``features="exact"`` takes
        "square" and "squared_hinge", and the "poisson" and "quantile" of regressions.
    class_weight : "balanced", dict, list of dict or None, default=None
        Factors of the row weights by class. "balanced" gives every class the same total, n / (classes * rows of the
        class), as in scikit-learn. A dictionary maps labels to weights; labels that it does not name have weight 1. The
        scores used for choosing, and the probabilities, count rows with these weights. With several tasks, "balanced"
        applies to each task, a dictionary to all tasks, and a list has one dictionary per task; the features and the
        race, which tasks share, use the mean weights of the rows.
    weights : {"importance", "frequency"}, default="importance"
        What ``sample_weight`` says of a row. "importance": how much it matters in every sum; n rows then count as
        (sum w)^2 / sum w^2 rows where a choice, a probability, a set or a deviation depends on their number, so that
        equal weights change none of these. "frequency": how many equal rows it stands for, a whole number.
    threshold : "f1", "balanced", float or None, default=None
        For two classes, how to set the output above which a row is assigned to the second class, ``classes_[1]``. None
        is 0. "f1" and "balanced" maximise the F1 score of the positive class, or the balanced accuracy, on held-out
        rows. A number is the cost of missing a positive row in units of a false alarm, and minimises the total
        cost there: 10 accepts ten false alarms for one more positive row found. ``decision_function`` and
        ``predict_proba`` do not change.
    positive : label or None, default=None
        The positive one of two classes: that of ``threshold``, and of ``scoring`` by "f1", "precision", "recall" or
        "average_precision". None is the second, ``classes_[1]``. The signs of scores and the order of classes stay.
    ordered : sequence of labels or None, default=None
        The classes in their order, such as ["low", "medium", "high"]; None takes that of labels that have one (an
        ordered Categorical of pandas, an Enum of polars). ``classes_`` keeps it, the answer is the median of the
        probabilities, sets are intervals of neighbours, and choices are made by the mean absolute error in steps, or by
        the ``scoring`` "weighted_kappa". See ``selection.ordered.OrderedClasses``.
    label_tree : mapping of child to parent, sequence of pairs, "paths" or None, default=None
        A tree above the classes, such as that of cell types; "paths" for labels such as "a/b/c". The answer is found
        from the root down, sets hold all classes of a node, ``predict(X, level=.9)`` answers the deepest node that
        holds the truth so often, and choices are made by the mean distance in the tree. See
        ``selection.label_tree.LabelTree``.
    alpha : float, sequence of float or "auto", default="auto"
        Strength of the penalty alpha/2 |w|^2 beside the sum of the losses, or several to choose from: ``alpha`` of
        scikit-learn's ridge, 1/C elsewhere. "auto" tries decades around the scatter of the features, then half decades,
        compared by ``selection``. For other losses it tries half decades around the best strength of ridge ("hinge":
        around a tenth of the mean squared norm of the features), compared by the loss on one held-out fold. Each of
        them takes several passes, so give one number where passes are expensive.
    selection : str, int or splitter, default="auto"
        How alpha is chosen. "gcv" is generalised cross-validation, with one factorisation per strength and no folds
        (``loss="square"``; rows must be independent: it refuses groups, and duplicates need folds). A number is the
        number of cross-validation folds, "holdout" holds out one part of the rows, and a scikit-learn splitter must
        hold out every row once. "auto" is "gcv" for the square loss, or five folds if rows have groups.
        ``features="exact"`` takes folds, splitters, and "auto" or "leave-one-out", which leave out single rows, or
        groups where groups are given; many rows, and tasks with missing entries, are left out in parts.
    scoring : str, callable or None, default=None
        scikit-learn scorer by which the race and ``features="exact"`` choose. None is accuracy for classes and R^2 for
        regression; a race with a rare class among two uses ROC AUC.
    time_limit : float or None, default=None
        Time limit of race and fit together, in seconds. The race may take a third of it; the last complete round
        decides. A machine in blocks of rows begins no block that would end later, and is then one of the rows so far
        (``n_rows_``). None limits the counted work instead, to about four minutes of two cores, so that every computer
        makes the same choice.
    memory : str or int, default="auto"
        Memory budget of the fit, in bytes or as text such as "512MiB". It includes 256 MiB for the interpreter and the
        libraries; a budget below 512 MiB leaves 256 MiB, or all of it if it is smaller, to the fit. "auto" is 1 GiB,
        doubled while the machine that won the race needs more, up to half of the free memory.
    precision : {"float32", "float64", "auto"}, default="float32"
        Precision of features and products; sums are float64. "auto" is "float32"; see ``precision_``.
    depth_robust : bool, default=False
        For rows of counts: whether to learn from two thinned copies of each row too, with a thirty-second to a half of
        its counts, so that answers hold for rows of less depth. Settings are chosen on the rows as they are; a row and
        its copies are left out together for the strength and for probabilities. Ridge on an additive map learns what
        any number of copies would add to its sums on average (``estimators.thinned_sums``). ``depth_gain_`` says what
        it gains.
    device : str, default="cpu"
        Where features, moments, the solution and predictions are computed with ``loss="square"``, and the blocks of
        exact machines of many rows: "cpu", or "cuda", which needs torch.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores, or one for up to 300 rows, which more threads would not speed up.
    random_state : int, RandomState or None, default=None
        Seed of the sample, the race and the random features.
    verbose : bool, default=False
        Whether to show progress on the terminal.

    Attributes
    ----------
    classes_ : ndarray of shape (classes,)
        The class labels, or the numbers of the tasks.
    kernel_ : Kernel
        The kernel, with its parameters set to numbers.
    features_ : feature object
        The fitted features.
    feature_coef_ : ndarray of shape (t, D)
        Weights of the D features; t is 1 for two classes.
    coef_ : ndarray of shape (t, bins)
        Weights of the bins, where each bin is one feature, as with linear kernels; other models have no ``coef_``.
    feature_importances_ : ndarray of shape (bins,)
        The share of each bin in the importance of all, by which ``SelectFromModel`` and ``RFE`` rank.
    intercept_ : ndarray of shape (t,)
        Intercepts.
    alpha_ : float
        The strength used; of a machine in blocks the last one, which may be below the one that was chosen.
    selection_ : SelectionResult or None
        Scores of all settings compared; None if there was nothing to choose.
    race_ : RaceResult
        Result of ``kernel="auto"`` or ``bin_weights="learn"``: ``race_.table()`` is a frame of all candidates.
    chosen_ : dict
        The settings that the race chose, by parameter; empty without a race.
    bin_weights_ : ndarray of shape (bins,) or None
        Weights of the bins, with mean 1 if they were learned; None if all are equal.
    covariates_ : Covariates
        What the covariates are, their kernel and weight, and scores of left-out rows by counts alone, by covariates
        alone, and by both: ``covariates_.describe()``.
    row_numbers_ : ndarray of shape (n,)
        With ``features="exact"``: places of the kept rows, in their order in the kernel matrix, in the array or file
        that was fitted on.
    held_out_ : ndarray of shape (n, t)
        With ``features="exact"``: outputs for each row from a machine that has not seen the row or its group. In blocks
        of rows it is the machine of the blocks before, and the first block has NaN. Where the
        race chose the strength for more than 3,000 rows, only that many random rows have outputs; the others are NaN.
        So are rows whose labels the normalisation knows ("tf-idf-ratio").
    block_rows_ : ndarray of shape (blocks,)
        Rows of each block, if the exact machine was solved block by block.
    n_unlearned_ : int
        Rows that were left out of such a machine by ``time_limit``, or by the usual amount of work.
    learning_curve_ : LearningCurve or None
        Curve of exact machines with ``loss="square"``; with other features, see ``fit_source(...,
        learning_curve=True)``.
    depth_gain_ : dict or None
        With ``depth_robust``: scores of left-out rows, "thinned" and "whole", without copies and with them.
    class_weight_ : ndarray of shape (classes,) or, with several tasks, (tasks, 2), or None
        Weights of the classes.
    threshold_ : float
        The threshold chosen, if ``threshold`` is not None.
    n_principal_ : int
        Number of components chosen, if several were given; ``reports.SelectionPage`` draws the scores of all pairs.
    loss_ : Loss or None
        The loss; None for the hinge.
    n_passes_ : int
        Passes over the rows; 0 for those of LIBLINEAR.
    n_rows_ : int
        Number of rows learned from.
    n_features_in_ : int
        Number of bins.
    precision_ : str
        The precision used.
    stage_seconds_ : dict
        Seconds of each stage of the fit.

    Raises
    ------
    DataError
        A ValueError raised by ``fit`` if a bin is negative, NaN or infinite, naming the first such place; if labels
        have one class only; if weights of bins, rows or classes are invalid; or if no candidate of the race can be
        fitted.
    ValueError
        If a setting is invalid, naming the parameter.
    MemoryBudgetError
        If the budget is too small, naming the smallest that suffices.
    ImportError
        If a package is missing.

    Notes
    -----
    Labels y of shape (n, t) with entries 0, 1 and NaN are t tasks in one fit; a missing entry is left out for its task
    only. One strength serves all tasks, by the mean of their scores; with missing entries, ridge is solved by conjugate
    gradients on the features in memory (``solvers.observed``), or on one factorisation for ``features="exact"``.
    Answers have shape (n, t), see ``predict``; ``task_names_`` holds the column names of a data frame, and
    ``multilabel_`` is True.

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

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "auto",
        *,
        features: Prescribed = "auto",
        gamma: float | str = "mean",
        n_components: int | str = "auto",
        normalize: str | Sequence[str | None] | None = None,
        bin_weights: str | ArrayLike | None = "auto",
        blocks: Blocks | None = None,
        covariates: str | Sequence[str] | MatrixLike | Mapping[str, ArrayLike] | None = None,
        loss: str | Loss = "square",
        class_weight: ClassWeight = None,
        weights: str = "importance",
        threshold: str | float | None = None,
        positive: object = None,
        ordered: Sequence[object] | None = None,
        label_tree: Mapping[str, str] | Sequence[tuple[str, str]] | str | None = None,
        alpha: str | float | Sequence[float] = "auto",
        selection: str | int | BaseCrossValidator = "auto",
        scoring: Scoring = None,
        time_limit: float | None = None,
        memory: str | int = "auto",
        precision: str = "float32",
        depth_robust: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.features = features
        self.gamma = gamma
        self.n_components = n_components
        self.normalize = normalize
        self.bin_weights = bin_weights
        self.blocks = blocks
        self.covariates = covariates
        self.loss = loss
        self.class_weight = class_weight
        self.weights = weights
        self.threshold = threshold
        self.positive = positive
        self.ordered = ordered
        self.label_tree = label_tree
        self.alpha = alpha
        self.selection = selection
        self.scoring = scoring
        self.time_limit = time_limit
        self.memory = memory
        self.precision = precision
        self.depth_robust = depth_robust
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    @available_if(keeps_moments)
    def partial_fit(
        self, X: MatrixLike, y: ArrayLike, classes: ArrayLike | None = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Add a batch of rows; the weights are solved for at the next use.

        The first batch fixes the map, gamma and the random features, so it should be a fair sample; batches of
        thousands of rows run at full speed. A call after ``fit`` starts
        anew, with the classes that ``fit`` found. ``normalize="tf-idf"`` and
        "tf-idf-ratio" are refused, as they learn from all rows.

        With ``features="exact"`` every row is kept, and a batch is a block (``solvers.blocks``): it is predicted before
        it is learned, for ``held_out_`` and ``learning_curve_``. Small batches are gathered to blocks of 2000 rows;
        fewer are learned at the next use. The first block fixes the strength.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of the batch.
        y : array of shape (n,) or (n, t)
            Labels, or labels 0 and 1 of t tasks. As in ``fit``, a missing entry is left out for its task only; each
            task with missing entries then takes its own matrix of sums over pairs of features.
        classes : array of shape (classes,) or None, default=None
            All classes; required at the first call, except with several tasks, which need none.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows of this batch, as in ``fit``.

        Returns
        -------
        self
            The estimator.

        Raises
        ------
        ValueError
            If ``classes`` is missing at the first call, differs from that of the first call, or is given for several
            tasks.
        MemoryBudgetError
            If ``features="exact"`` and ``memory`` does not hold one more batch; it is not added then.
        """
        batches, model = vars(self).get("_batches"), vars(self).get("model_")
        task = batches.task if batches is not None else None if model is None else model.task
        known = None if task is None else task.classes
        labels, to_learn = checked_labels(y, classes, known, self._codec_of_batches)
        return self._partial_fit(X, labels, sample_weight, to_learn)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags.multi_label = True
        return tags

    def equalise_levels(self, X: MatrixLike, k: int) -> Self:
        """Shift the scores of each class so that the k-th highest over rows X is 0 for every class.

        This is for many classes, whose scores are learned separately and are not comparable. No labels are needed: X
        may be held-out rows or the rows to classify. With two classes it puts k rows into the second. It changes
        ``intercept_``; fitting again undoes it. See ``chimap.estimators.histogram.kth_highest``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows to score.
        k : int
            Rank of the score that becomes 0, from 1 to n. The best choice is near the number of rows per class in X.

        Returns
        -------
        self
            The estimator.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> X, y = load_digits(return_X_y=True)
        >>> model = HistogramClassifier("exp-chi2", n_components=256, random_state=0).fit(X[:1200], y[:1200])
        >>> scores = model.equalise_levels(X[1200:], k=60).decision_function(X[1200:])
        >>> (scores > -1e-9).sum(axis=0).tolist()
        [60, 60, 60, 60, 60, 60, 60, 60, 60, 60]
        """
        scores = self._outputs(X)
        self.model_ = replace(self.fitted, intercept=self.fitted.intercept - kth_highest(scores, k))
        return self


class HistogramRegressor(RealTargets, HistogramModel):
    """Predict numbers from rows of counts, without settings, from a hundred rows to millions.

    It is kernel ridge regression for histograms, or a machine with another loss:

        minimise over w, b:  sum_n loss(y_n, w'z(x_n) + b) + alpha/2 |w|^2,

    where z(x) . z(x') is close to the kernel. The other parameters are those of ``HistogramClassifier``.

    Parameters
    ----------
    loss : str or Loss, default="square"
        "square", or "epsilon_insensitive": support vector regression with rounded corners. There, an error within 0.1
        of the standard deviation of the targets costs almost nothing, and a large one its size instead of its square.
        An object ``losses.EpsilonInsensitive`` sets other widths, in units of the targets. "poisson" is for counts and
        rates, from 0 on: w'z(x) + b is the logarithm of the expected count, which ``predict`` returns. "quantile"
        predicts quantiles of the target in place of its mean.
    quantile : float or sequence of float, default=0.5
        The quantile that ``loss="quantile"`` predicts, between 0 and 1. Several, which ascend, are predicted together:
        ``predict`` then returns a column for each, sorted in each row, and ``predict_set`` intervals from the outermost
        two. Each is moved so that its share of held-out rows is below it.
    scoring : str, callable or None, default=None
        scikit-learn scorer by which the race and ``features="exact"`` choose; None is R^2, or the share of the Poisson
        deviance, or of the pinball loss, that is explained.

    Attributes
    ----------
    noise_variance_ : ndarray of shape (t,) or None
        Variance of the noise, from left-out rows; None if no rows were left out.

    Notes
    -----
    The other attributes are those of ``HistogramClassifier``, without the ones about classes.

    Several targets are divided by their standard deviations, so that none decides by its unit what they share: the
    strength, and the width of ``loss="epsilon_insensitive"``. Answers are in the units of the data.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=300)
    >>> y = np.sqrt(X[:, 0]) - X[:, 1]
    >>> bool(HistogramRegressor("exp-chi2", n_components=256, random_state=0).fit(X, y).score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        kernel: str | Kernel | Sequence[str | Kernel] = "auto",
        *,
        features: Prescribed = "auto",
        gamma: float | str = "mean",
        n_components: int | str = "auto",
        normalize: str | Sequence[str | None] | None = None,
        bin_weights: str | ArrayLike | None = "auto",
        blocks: Blocks | None = None,
        covariates: str | Sequence[str] | MatrixLike | Mapping[str, ArrayLike] | None = None,
        loss: str | Loss = "square",
        quantile: float | Sequence[float] = 0.5,
        weights: str = "importance",
        alpha: str | float | Sequence[float] = "auto",
        selection: str | int | BaseCrossValidator = "auto",
        scoring: Scoring = None,
        time_limit: float | None = None,
        memory: str | int = "auto",
        precision: str = "float32",
        depth_robust: bool = False,
        device: str = "cpu",
        n_jobs: int | None = None,
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.kernel = kernel
        self.features = features
        self.gamma = gamma
        self.n_components = n_components
        self.normalize = normalize
        self.bin_weights = bin_weights
        self.blocks = blocks
        self.covariates = covariates
        self.loss = loss
        self.quantile = quantile
        self.weights = weights
        self.alpha = alpha
        self.selection = selection
        self.scoring = scoring
        self.time_limit = time_limit
        self.memory = memory
        self.precision = precision
        self.depth_robust = depth_robust
        self.device = device
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    @available_if(keeps_moments)
    def partial_fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Add a batch of rows; the weights are solved for at the next use. See ``HistogramClassifier.partial_fit``.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of the batch.
        y : array of shape (n,) or (n, t)
            Targets, or t targets per row; missing entries are left out for their target only.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows of this batch, as in ``fit``.

        Returns
        -------
        self
            The estimator.
        """
        codec = self._codec_of_batches
        targets = checked_batch(y, codec)
        return self._partial_fit(X, targets, sample_weight, targets if codec is None else None)


def kth_highest(scores: np.ndarray, k: int) -> np.ndarray:
    """Return the k-th highest score of each class; minus it, every class has k rows at 0 or above.

    Classes that are learned separately, each against all others, have scores of different spread, and then the wrong
    class may have the largest score. Subtracting puts the k-th highest score of every class at the same level, whatever
    the labels of the rows, so the rows may be those to classify. The best k is near the number of rows per class.

    Parameters
    ----------
    scores : array of shape (n, t)
        Scores.
    k : int
        Rank, from 1 to n.

    Returns
    -------
    ndarray of shape (t,)
        The k-th highest scores.

    Raises
    ------
    ValueError
        If k exceeds the number of rows.
    DataError
        If the scores are not a matrix.

    References
    ----------
    Li, Lebanon and Sminchisescu, A linear approximation to the chi2 kernel, sec. 7.3 (k = 500).

    Examples
    --------
    >>> kth_highest(np.array([[3.0, 0.1], [2.0, 0.3], [1.0, 0.2]]), k=2).tolist()
    [2.0, 0.2]
    """
    check_positive(k, "k", integer=True)
    scores = np.asarray(scores)
    if scores.ndim != 2:
        raise DataError(f"scores must be (rows, classes); got an array of shape {scores.shape}.")
    if k > scores.shape[0]:
        raise InputError(f"k={k}, but there are {scores.shape[0]} rows of scores; use a smaller k.")
    place = scores.shape[0] - k
    return np.partition(scores, place, axis=0)[place]
