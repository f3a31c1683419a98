"""Additive models as tables: the estimators that ``compile`` makes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Protocol, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError

from chimap import _arrays
from chimap._errors import InputError
from chimap._memory import parse_memory
from chimap._threads import threads
from chimap._types import JSON, ArrayLike, MatrixLike, Rows, Sometimes
from chimap._validation import rows_as_fitted
from chimap.data.overlap import TrainingMass
from chimap.data.units import Units
from chimap.estimators.forwarding import forwarded, outputs_of_rows
from chimap.estimators.targets import ClassTargets, RealTargets, answers_of, without_shares
from chimap.features.covariates import check_takes_bins_only
from chimap.model_files import register, saved
from chimap.models.answers import ClassAnswers, RealAnswers, named_tasks
from chimap.models.model import Model
from chimap.models.predict import predict_chunks, predict_source
from chimap.models.schema import RowSchema
from chimap.tables import BinFunctions, Tables, line_tables

if TYPE_CHECKING:
    from sklearn.utils import Tags

    from chimap.data.reading import Reading


@dataclass(frozen=True)
class TableModel:
    """A sum of table entries, and the model that scores the rows beyond them: a ``models.predict.Predictor``.

    Parameters
    ----------
    tables : Tables
        The tables.
    exact : Model or None
        The model that was compiled; None for one that was trained on codes.
    checks_first : bool
        Whether rows are checked before they are looked up; else invalid bins are found there.
    schema : RowSchema
        The rows that they take.
    answers : ClassAnswers or RealAnswers
        From outputs to answers.
    task_names : list of str or None
        The names of several tasks or targets.
    positive : object
        The class that is looked for, of two.
    training : dict
        What the command line says of the fit.
    histograms : ImageHistograms or None
        Which describe images as rows.
    n_jobs : int or None
        Number of threads.
    settings : dict
        Those of the model that was compiled; of codes, those of the tables.
    """

    tables: Tables
    exact: Model | None
    checks_first: bool
    schema: RowSchema
    answers: ClassAnswers | RealAnswers
    task_names: list[str] | None
    positive: object
    training: JSON
    histograms: BaseEstimator | None
    n_jobs: int | None
    settings: JSON

    precision: ClassVar[str] = "float32"  # of the tables
    rows_at_once: ClassVar[int] = 16384  # rows are not expanded, and more rows per block of tables are faster

    @property
    def n_outputs(self) -> int:
        """Number of outputs t: one per class, task or target, and one for two classes."""
        return self.tables.n_outputs

    def room(self, n_rows: int) -> np.ndarray:
        """See ``RowScorer``: none, as rows are not expanded."""
        return np.empty((0, 0), dtype=np.float32)

    def scores(self, rows: Rows, first_row: int | np.ndarray, name: str, room: np.ndarray) -> np.ndarray:
        """See ``RowScorer``."""
        scores, outside = self.tables.scores(self.prepared(rows, first_row, name))
        if outside.any():
            assert self.exact is not None  # code tables have no end
            numbers = np.flatnonzero(outside)
            few, room = _arrays.take_rows(rows, numbers), self.exact.room(numbers.size)
            scores[numbers] = self.exact.scores(few, first_row + numbers, name, room)
        return scores

    def describe(self) -> JSON:
        """Return the description of the model that was compiled, with tables as its features."""
        if self.exact is None:
            return self.tables.about
        about = self.exact.describe()
        return about | {"features": f"{self.tables.describe()}, from {about['features']}"}

    def prepared(self, rows: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Return rows as the tables take them."""
        if self.exact is not None and (self.exact.preparation.changes_rows or self.checks_first):
            rows = self.exact.preparation(rows, first_row, name)
        with np.errstate(over="ignore"):
            return _arrays.as_rows(rows, np.float32)


class Compilable(Protocol):
    """A fitted estimator that tables are made from."""

    alpha_: float

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each bin in the importance of all, (bins,)."""
        ...

    @property
    def fitted(self) -> Model:
        """Its model."""
        ...


class CompiledModel(BaseEstimator):
    """A fitted model whose scores are sums of table entries, one per bin; see ``HistogramClassifier.compile``.

    The table of a bin ends at twice the largest value that the map was fitted on, or further. A row with a value beyond
    it is scored by the model that was compiled, so that the bound on the error holds for every row.

    Learned: ``tables_`` (straight pieces, or the exact tables of features that are looked up), ``exact_`` (the model
    that was compiled; None for one that was trained on codes), ``n_features_in_``.
    """

    file_kind: ClassVar[str] = "model"  # the command line opens it
    precision_ = "float32"  # of the tables

    tables_: Tables
    exact_: Annotated[Compilable | None, BaseEstimator | None]
    n_features_in_: int
    feature_names_in_: Sometimes[np.ndarray]
    first_column_: Sometimes[int | None] = None
    mass_: Sometimes[TrainingMass | None] = None
    reading_: Sometimes[Reading | None] = None
    units_: Sometimes[Units | None] = None
    training_: Sometimes[JSON | None] = None
    histograms_: Sometimes[BaseEstimator | None] = None
    positive_: Sometimes[object] = None

    def __init__(self, tolerance: float = 1e-3, memory: str | int = "1GiB", n_jobs: int | None = None):
        self.tolerance = tolerance
        self.memory = memory
        self.n_jobs = n_jobs

    def fit(self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, **fit_params: object) -> Self:
        """Fit a clone of the model that was compiled, and compile it.

        This lets scikit-learn's tools, such as ``permutation_importance`` and AdaBoost, take a compiled model.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Rows.
        y : array of shape (n,) or (n, t)
            Labels or targets.
        sample_weight : array of shape (n,) or None, default=None
            Weights of the rows, as the model takes them.
        **fit_params : object
            More arguments of the model's ``fit``.

        Returns
        -------
        self
            The fitted and compiled estimator.

        Raises
        ------
        NotFittedError
            If this model holds only tables and does not know the model they were made from.
        """
        made_from = getattr(self, "exact_", None) or getattr(self, "_unfitted", None)
        if made_from is None:
            raise NotFittedError(
                f"this {type(self).__name__} holds no model that could be fitted: fit a model, and compile it."
            )
        if sample_weight is not None:
            fit_params = {**fit_params, "sample_weight": sample_weight}
        compiled_model = clone(made_from).fit(X, y, **fit_params).compile(self.tolerance, self.memory)
        self.__dict__.update(vars(compiled_model) | {"n_jobs": self.n_jobs})
        return self

    def __sklearn_clone__(self) -> Self:
        """Return a compiled model without tables that knows which model to fit."""
        copied: Self = super().__sklearn_clone__()
        made_from = getattr(self, "exact_", None) or getattr(self, "_unfitted", None)
        copied._unfitted = None if made_from is None else clone(made_from)
        return copied

    def error_bound(self, X: MatrixLike) -> np.ndarray:
        """Return a bound on the error of the scores of each row, compared with the model that was compiled.

        It was measured when the tables were made, at nine places in each piece of each function, with a quarter added
        for the values between. ``tables_.worst_error`` is the bound for all rows.

        Parameters
        ----------
        X : array, sparse matrix or data frame of shape (n, bins)
            Rows.

        Returns
        -------
        ndarray of shape (n,)
            Bounds in float64; 0 for rows that the model itself scores.
        """
        model = self.fitted
        with threads(self.n_jobs):
            rows = model.prepared(rows_as_fitted(self, X), 0, "X")
            _, outside = self.tables_.scores(rows)
            return np.where(outside, 0.0, self.tables_.bound(rows))

    @property
    def nbytes_(self) -> int:
        """Bytes of the tables in memory."""
        return self.tables_.nbytes

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each bin in the importance of all, (bins,), of the model that was compiled."""
        if self.exact_ is None:
            raise AttributeError("tables that were made of codes have no feature_importances_.")
        return self.exact_.feature_importances_

    @property
    def alpha_(self) -> float | None:
        """The strength of the model that was compiled."""
        return getattr(self.exact_, "alpha_", None)

    def describe(self) -> JSON:
        """Return the description of the model that was compiled, with tables as its features.

        Returns
        -------
        dict
            "kernel", "gamma" and "features"; see ``HistogramClassifier.describe``.
        """
        return self.fitted.describe()

    @property
    def fitted(self) -> TableModel:
        """The tables, and the model that they were made of. Raise NotFittedError if there are none."""
        self._refresh()
        exact, answers = None if self.exact_ is None else self.exact_.fitted, self._answers
        return TableModel(
            self.tables_,
            exact,
            self.tables_.is_exact or self._is_mixed,
            self.schema,
            answers,
            named_tasks(answers, self.n_outputs, vars(self).get("task_names_")),
            self.positive_,
            self.training_ or {},
            self.histograms_,
            self.n_jobs,
            {"tolerance": self.tolerance, "memory": self.memory} if exact is None else exact.settings,
        )

    @property
    def schema(self) -> RowSchema:
        """The rows that the tables take. Raise NotFittedError if there are none."""
        self._refresh()
        return RowSchema.of_attributes(type(self).__name__, {**vars(self)})

    def _check_parameters(self) -> None:
        """Refuse a file whose model has no tables, or was compiled from something that scores no rows."""
        _ = self.fitted

    def _refresh(self) -> None:
        if not hasattr(self, "tables_"):
            raise NotFittedError(f"This {type(self).__name__} is not fitted: make one by model.compile().")

    @property
    def n_outputs(self) -> int:
        """Number of outputs t: one per class, task or target, and one for two classes."""
        return self.tables_.n_outputs

    @property
    def _answers(self) -> ClassAnswers | RealAnswers:
        """From outputs to answers: those of the model that was compiled."""
        return answers_of(self)

    _outputs = outputs_of_rows
    _outputs_with_shares = without_shares
    predict_source = forwarded(predict_source)
    predict_chunks = forwarded(predict_chunks)
    save = saved.save
    load = saved.Load()

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Raise ValueError: there is no posterior."""
        raise InputError(
            f"a {type(self).__name__} has no posterior: predict without return_std, or use the model that it was made "
            "from; predict_set returns intervals."
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    _is_mixed: bool
    _unfitted: Sometimes[BaseEstimator | None]  # of a clone: the model that is fitted and compiled


class CompiledClassifier(ClassTargets, CompiledModel):
    """A classifier whose scores are looked up in tables.

        f_c(x) = b_c + sum_i sign(x_i) g_ic(|x_i|),

    where the g_ic are tabulated in float32. It is made by ``HistogramClassifier.compile`` or
    ``LookupClassifier.compile``; see there for what can be compiled and for the source. ``predict``,
    ``decision_function``, ``predict_source`` and ``save`` work as for the model that was compiled; ``error_bound``
    bounds the errors of its scores.

    Parameters
    ----------
    tolerance : float, default=0.001
        Largest error of the scores; see ``HistogramClassifier.compile``.
    memory : str or int, default="1GiB"
        Memory budget of the tables.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores.

    Attributes
    ----------
    tables_ : Tables
        The tables; exact ones for an ``AnchorMap``.
    exact_ : estimator or None
        The model that was compiled; None for one that was trained on codes.
    classes_ : ndarray of shape (classes,)
        The class labels.
    n_features_in_ : int
        Number of bins.
    nbytes_ : int
        Bytes of the tables in memory.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("chi2", alpha=1.0).fit(X, y)
    >>> fast = model.compile()
    >>> gaps = abs(fast.decision_function(X) - model.decision_function(X)).max(axis=1)
    >>> bool((gaps <= fast.error_bound(X)).all())
    True
    """


class CompiledRegressor(RealTargets, CompiledModel):
    """A regressor whose predictions are looked up in tables; made by ``HistogramRegressor.compile``.

    See ``CompiledClassifier`` for the tables and the learned attributes.

    Parameters
    ----------
    tolerance : float, default=0.001
        Largest error of the predictions; see ``HistogramRegressor.compile``.
    memory : str or int, default="1GiB"
        Memory budget of the tables.
    n_jobs : int or None, default=None
        Number of threads. None uses all cores.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import HistogramRegressor
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=300)
    >>> model = HistogramRegressor("hellinger", alpha=1e-3).fit(X, np.sqrt(X[:, 0]))
    >>> bool(abs(model.compile().predict(X) - model.predict(X)).max() < 1e-2)
    True
    """


def compiled(model: BaseEstimator, tolerance: float, memory: str | int) -> CompiledClassifier | CompiledRegressor:
    """Return the tables of a fitted ``HistogramClassifier`` or ``HistogramRegressor`` with additive features.

    Raise ValueError for features that mix the bins, and if no tables come within the tolerance.
    """
    check_takes_bins_only(model.schema.covariates, "a table")
    tables = made_from(model, tolerance, memory)
    tables.exact_, tables._is_mixed = model, False
    psi, coef, intercept = model.features_, model.feature_coef_.T, model.intercept_
    exact = psi.code_tables(coef, intercept)
    if exact is not None:
        tables.tables_ = exact
        return tables
    functions = BinFunctions(psi, coef)
    tables._is_mixed = functions.is_mixed
    with threads(model.n_jobs):
        tables.tables_ = line_tables(functions, intercept, tolerance, parse_memory(memory))
    return tables


def made_from(model: BaseEstimator, tolerance: float, memory: str | int) -> CompiledClassifier | CompiledRegressor:
    """Return a compiled model with what it takes over from the fitted model, and no tables yet."""
    is_classifier = hasattr(model, "classes_")
    tables = (CompiledClassifier if is_classifier else CompiledRegressor)(tolerance, memory, model.n_jobs)
    copied = (
        "classes_",
        "multilabel_",
        "task_names_",
        "_calibration",
        "_conformal",
        "threshold_",
        "_structure",
        "positive_",
        "noise_variance_",
        "loss_",
        "training_",
        "histograms_",
        "n_features_in_",
        "reading_",
        "feature_names_in_",
        "mass_",
        "units_",
    )
    for name in copied:
        if hasattr(model, name):
            setattr(tables, name, getattr(model, name))
    return tables


register(CompiledClassifier, CompiledRegressor)
