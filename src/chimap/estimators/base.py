"""Estimators of a linear model on explicit features of a histogram kernel: what classifier and regressor share.

An estimator has parameters, from which it makes a ``Recipe``; ``fit.fit`` returns a ``Model``, and the estimator
forwards to it whatever is asked.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from copy import copy
from dataclasses import replace
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Self, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from chimap._catalogue import at_address
from chimap._errors import InputError
from chimap._frames import is_collection
from chimap._messages import Message
from chimap._progress import shown
from chimap._threads import threads
from chimap._types import JSON, ArrayLike, MatrixLike, Parameters, Scoring, Sometimes
from chimap._validation import checked_weights
from chimap.data import Source, matched
from chimap.data.covariates import names_columns
from chimap.data.doubts import say
from chimap.data.label_kinds import order_of
from chimap.data.labels import clean_labels
from chimap.data.overlap import TrainingMass
from chimap.data.reading import opener_of
from chimap.data.table import ColumnChoice
from chimap.data.units import Units
from chimap.data.views import WithLabels
from chimap.engines import Progress, current_engine
from chimap.estimators.depth_robust import check_depth_robust, with_thinned_copies
from chimap.estimators.forwarding import forwarded, outputs_of_rows, outputs_with_shares, show_learned, source_of_rows
from chimap.estimators.rows import (
    fit_in_words,
    say_of_study,
    score_in_words,
    source_of,
    source_of_batch,
    source_to_fit,
    source_with_covariates,
    units_and_mass,
    with_columns_beside,
)
from chimap.features.base import FittedFeatures
from chimap.features.covariates import Covariates
from chimap.fit.batches import Batches, first_batches
from chimap.fit.checkpoint import Checkpoint
from chimap.fit.fit import fit
from chimap.fit.optional import with_settled_columns
from chimap.kernels import Kernel
from chimap.losses import Loss
from chimap.machines.catalogue import check_settings
from chimap.machines.method import Method
from chimap.model_files import saved
from chimap.models.answers import ClassAnswers, RealAnswers
from chimap.models.attributes import attributes_of, model_of
from chimap.models.compress import compress
from chimap.models.counterfactuals import counterfactuals
from chimap.models.explain import effects, explain, importance, nearest, shares_of_bins
from chimap.models.model import Model
from chimap.models.predict import labels_in_chunks, predict_chunks, predict_source, variance_factors
from chimap.models.schema import RowSchema, check_source
from chimap.normalizations import Normalization
from chimap.recipe import Recipe
from chimap.recipe.codecs import Codec
from chimap.recipe.task import Task
from chimap.solvers.posterior import DualPosterior, Posterior

if TYPE_CHECKING:
    from distributed import Client
    from sklearn.utils import Tags

    from chimap.data.reading import Reading
    from chimap.models.race_result import RaceResult
    from chimap.selection.base import SelectionResult
    from chimap.selection.learning_curve import LearningCurve

_SIGNED = ("auto", "linear", "gaussian")  # kernels that take negative entries; a race drops those that do not


class HistogramModel(BaseEstimator):
    """A linear model on explicit features of a histogram kernel. See ``HistogramClassifier`` for the parameters.

    The annotations below that end in an underscore are the attributes of the fitted model, which ``ShownAttribute``
    shows.
    """

    file_kind: ClassVar[str] = "model"  # the command line opens it
    _keeps_posterior: ClassVar[bool]
    features_: Annotated[Any, FittedFeatures]
    kernel_: Kernel
    normalization_: Sometimes[Normalization | None]
    alpha_: float
    bin_weights_: Sometimes[np.ndarray | None]
    task_names_: Sometimes[np.ndarray | None]
    chosen_: Sometimes[Parameters]  # what the race chose
    race_: Sometimes[RaceResult]
    learning_curve_: Sometimes[LearningCurve | None]
    block_rows_: Sometimes[np.ndarray]  # rows of each block of an exact machine that was solved by blocks
    held_out_: Sometimes[np.ndarray]  # outputs of exact machines for rows they have not seen
    row_numbers_: Sometimes[np.ndarray]  # of exact machines: places of the rows of the kernel matrix
    mean_row_: Sometimes[np.ndarray]  # of the fit's sample as prepared, see ``explain.background``
    deviation_row_: Sometimes[np.ndarray]
    largest_row_: Sometimes[np.ndarray]
    n_rows_: int
    n_passes_: int
    n_principal_: Sometimes[int]
    n_unlearned_: Sometimes[int]  # rows that a time limit, or the usual amount of work, left out
    stage_seconds_: Sometimes[dict[str, float]]
    depth_gain_: Sometimes[JSON | None]  # of thinned copies
    covariates_: Sometimes[Covariates]  # what they are, their kernel and weight, and what they add
    loss_: Loss | None
    selection_: SelectionResult | None
    _codec: Sometimes[Codec]
    _coef: np.ndarray
    _intercept: np.ndarray
    _posterior: Sometimes[Posterior | DualPosterior | None]
    _taken: Sometimes[Parameters]  # what "auto" stood for, given the rows
    _seed: int
    _has_gaps: Sometimes[bool]
    _has_objects: Sometimes[bool]
    n_features_in_: int  # these and the next five are the fields of ``RowSchema``
    feature_names_in_: Sometimes[np.ndarray]
    first_column_: Sometimes[int | None]
    reading_: Sometimes[Reading | None]
    units_: Sometimes[Units | None]
    mass_: Sometimes[TrainingMass | None]
    training_: Sometimes[JSON | None]  # what the command line says of the fit
    histograms_: Sometimes[BaseEstimator | None]  # which describe images as rows
    _batches: Batches | None = None
    covariates: object = None  # of estimators without this parameter, as the next
    scoring: Scoring = None
    depth_robust: bool = False
    _stale: bool = False  # whether batches have arrived since the weights were solved for

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        show_learned(cls, _OWN)

    def _recipe(self) -> Recipe:
        """Return the settings that the parameters ask for."""
        return Recipe.of(self, keeps_posterior=self._keeps_posterior)

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return scikit-learn's names of the parameters, cached, as it reads the signature each time."""
        names: list[str] = super()._get_param_names()
        return names

    # --- fitting

    def fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None = None, groups: ArrayLike | None = None
    ) -> Self:
        """Fit the model on rows X and labels or targets y.

        Parameters
        ----------
        X : array, sparse matrix, data frame or Dask collection of shape (n, bins)
            Rows. pandas and polars data frames, Arrow tables, and objects that ``open_source`` takes, such as AnnData,
            are read as they are; a column that a data frame wrote as its index (``Unnamed: 0``) is set aside. The
            cluster of the current client, if there is one, works on Dask collections. A source, such as
            ``with_covariates(X, values)``, is fitted with y as its labels.
        y : array of shape (n,) or (n, t), or str
            Labels or targets. With shape (n, t): labels 0 and 1 of t tasks for a classifier, or t targets for a
            regressor; a missing entry (NaN, None, masked) is left out for its task only, and a row without any entry is
            left out. A string names a column of X.
        sample_weight : array of shape (n,) or None, default=None
            Weight of each row in every sum, in the scores of held-out rows and in the sample that the features are
            fitted on; 0 leaves it out. ``weights`` says what it means. With a given ``alpha`` and features that depend
            on no sample, an integer weight and repeated rows give the same model.
        groups : array of shape (n,) or None, default=None
            Group of each row; the rows of a group are held out together, to choose a setting and for probabilities,
            sets and deviations, which count groups then. Where groups of several labels tell the labels by themselves,
            as studies with few controls do, a warning says so.

        Returns
        -------
        self
            The fitted estimator.
        """
        others: Parameters = {"groups": groups, "sample_weight": sample_weight}
        if is_collection(X) and (opener := opener_of(X)) is not None:
            return self.fit_source(opener(X, y, ColumnChoice()), engine=current_engine(), **others)
        if isinstance(X, Source):
            source: Source = WithLabels(X, clean_labels(y, X.n_rows, "y"))
            source.label_order = order_of(y)
        else:
            made = source_of if self.covariates is None else source_with_covariates
            source = made(self, X, y, self._y_checks, **others)
        self.fit_source(source, **others)
        say_of_study(source, self.model_, groups)
        return self

    def fit_source(
        self,
        source: Source,
        progress: Progress | None = None,
        *,
        unlabelled: Source | None = None,
        checkpoint: Checkpoint | str | Path | None = None,
        engine: str | Client = "local",
        groups: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        learning_curve: bool = False,
        recipe: Recipe | None = None,
    ) -> Self:
        """Fit the model on a source, read in chunks under the ``memory`` budget.

        The source is read once. It is read a second time with ``PrincipalFeatures``, and again for each pass of a loss
        other than the square if its features do not fit the budget.

        Parameters
        ----------
        source : Source
            Rows with labels.
        progress : Progress or None, default=None
            Receives the stages of the fit; None shows them on the terminal if ``verbose``.
        unlabelled : Source or None, default=None
            More rows, without labels, for the components of ``PrincipalFeatures`` (transductive PCA).
        checkpoint : Checkpoint, str, Path or None, default=None
            File to which the state of the fit is written every minute. If the file exists, the fit goes on from it,
            with the same result as without the interruption. It is removed at the end (a ``Checkpoint`` object is not).
            A machine that is solved block by block of rows has a state after each block, one on the kernel matrix of
            all rows has none before it is ready.
        engine : str or dask.distributed.Client, default="local"
            "local", "dask" for workers on this machine, or a client.
        groups : array of shape (n,), str or None, default=None
            Group of each row that has labels, see ``fit``, or the name of the column that holds them.
        sample_weight : array of shape (rows of the source,) or None, default=None
            Weights of all rows of the source, used instead of its ``weights``; see ``fit``.
        learning_curve : bool, default=False
            Whether to keep the sums in four parts, where ``memory`` allows, for ``learning_curve_``; this takes no
            other pass.
        recipe : Recipe or None, default=None
            Settings in place of the parameters, such as those of a fitted model, which are all chosen.

        Returns
        -------
        self
            The fitted estimator.

        Raises
        ------
        DataError
            If rows or labels are invalid (naming the row), or the checkpoint is of another fit.
        MemoryBudgetError
            If the budget is too small.
        """
        check_source(source)
        recipe = (recipe or self._recipe()).with_order(source.label_order)
        if self.covariates is not None and names_columns(self.covariates):
            source = with_columns_beside(source, self.covariates, groups)
        source, groups = source_to_fit(source, recipe, sample_weight, groups)
        progress = progress or (shown(verbose=True) if self.verbose else Progress())
        source = with_settled_columns(source, recipe, groups, progress)
        schema = RowSchema.of(type(self).__name__, source, *units_and_mass(source, recipe, groups is not None))
        if unlabelled is not None:
            unlabelled = matched(unlabelled, source.column_names, source.n_features, type(self).__name__)
        if self.depth_robust:
            check_depth_robust(source, checkpoint is not None, unlabelled is not None)
        model = fit(
            recipe,
            source,
            engine,
            progress,
            groups=groups,
            unlabelled=unlabelled,
            checkpoint=checkpoint,
            has_curve=learning_curve,
            races=True,
        )
        if self.depth_robust:

            def fit_again(settings: Recipe, rows: Source, of_rows: np.ndarray | None) -> Model:
                return fit(settings, rows, engine, progress, groups=of_rows)

            model = with_thinned_copies(model, recipe, source, groups, fit_again)
        schema = schema.finished(model.normalization, model.recipe.covariate_columns)
        if schema.units is not None:
            say(schema.units.doubts_of_fit(source.name, score_in_words(model)))
        model = replace(model, schema=schema)
        model.merged  # noqa: B018  cached now, so that the first prediction is as fast as the next
        self._batches, self._stale, self.model_ = None, False, model
        return self

    # --- rows in batches

    @property
    def _codec_of_batches(self) -> Codec | None:
        """The codec of the batches so far; None before the first."""
        return None if self._batches is None else self._batches.task.codec

    def _partial_fit(
        self, X: MatrixLike, y: ArrayLike, sample_weight: ArrayLike | None, to_learn: ArrayLike | None
    ) -> Self:
        """Add a batch to the sums; the first one fixes the features. to_learn: see ``checked_labels``."""
        if self.covariates is not None:
            raise InputError(Message("partial_fit takes no {covariates}: use fit."))
        if self.depth_robust:
            raise InputError(Message("partial_fit takes no {depth_robust}: use fit."))
        batches = self._batches
        schema = None if batches is None else batches.schema
        rows = source_of_batch(self, X, y, sample_weight, self._y_checks, schema)
        with threads(self.n_jobs):
            if batches is None:
                assert to_learn is not None
                recipe = self._recipe()
                task = Task.of_batches(recipe, np.asarray(to_learn), rows)
                batches = first_batches(recipe, task, task.weighed(rows, recipe))
            batches.add(batches.task.weighed(rows, batches.method.recipe))
        self._batches, self._stale = batches, True
        return self

    # --- the fitted model

    @property
    def fitted(self) -> Model:
        """The fitted model, of all rows so far. Raise NotFittedError if there is none."""
        self._refresh()
        return self.model_

    def _refresh(self) -> None:
        """Solve for the rows that ``partial_fit`` has added since the last solution."""
        if self._stale and self._batches is not None:
            with threads(self.n_jobs):
                self.model_ = self._batches.result()
            self._stale = False
        if "model_" not in vars(self):
            check_is_fitted(self, "model_")  # it raises the error
        recipe = self.model_.recipe
        if (recipe.device, recipe.n_jobs) != (self._device, self.n_jobs):  # which do not belong to the model
            self.model_ = replace(self.model_, recipe=replace(recipe, device=self._device, n_jobs=self.n_jobs))

    @property
    def schema(self) -> RowSchema:
        """The rows that the model takes. Raise NotFittedError if there is none."""
        return self.fitted.schema if self._batches is None else self._batches.schema

    @property
    def _device(self) -> str:
        """Where outputs are computed; "cpu" for estimators without this parameter."""
        return str(vars(self).get("device", "cpu"))

    def remember(self, **fields: Any) -> None:
        """Keep more with the fitted model, and in its files.

        Parameters
        ----------
        **fields : object
            Fields of ``Learned``, such as ``training``, which the command line says of the fit.
        """
        self.model_ = replace(self.fitted, learned=replace(self.fitted.learned, **fields))

    def __getstate__(self) -> JSON:
        """Return parameters and learned attributes by name, as files hold them."""
        state = dict(super().__getstate__())
        model: Model | None = state.pop("model_", None)
        if model is None:
            return state
        covariates = model.recipe.covariate_columns
        if covariates is not None and not names_columns(self.covariates):  # values of the rows of the fit
            state["covariates"] = covariates.names
        return {**attributes_of(model), **state}

    def __setstate__(self, state: JSON) -> None:
        own = {*self._get_param_names(), *_OWN} & state.keys() if "features_" in state else state.keys()
        super().__setstate__({name: state[name] for name in own})
        if "features_" in state:
            learned = {name: value for name, value in state.items() if name not in own}
            self.model_ = model_of(learned, self._recipe())

    def __sklearn_is_fitted__(self) -> bool:
        return "model_" in vars(self) or self._batches is not None

    def _check_parameters(self) -> None:
        """Refuse parameters that are out of range or, for a fitted model, do not fit its columns."""
        if "model_" not in vars(self):
            Method.of(recipe := self._recipe(), None)
            check_settings(recipe)
            return
        model = self.model_
        check_settings(model.recipe, model.task.has_gaps)
        Method.of(model.recipe, model.columns, has_gaps=model.task.has_gaps)
        _ = model.parts  # raises for a kernel or features that are not there
        if (weights := model.recipe.given_bin_weights) is not None:
            checked_weights(weights, model.n_bins - model.recipe.n_covariates, "bin", "bin_weights")

    @property
    def feature_coef_(self) -> np.ndarray:
        """Weights of the features, one row per target (one row for two classes)."""
        return self.fitted.coef.T

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the bins, where each has one feature; else there is no such attribute, as scikit-learn asks."""
        model = self.fitted
        if not model.is_additive or model.coef.shape[0] != model.n_bins:
            raise AttributeError(
                f"coef_ has a column for each bin, and the features of {model.kernel.name} are no bins: their weights "
                "are feature_coef_, and what each bin matters is feature_importances_."
            )
        return model.coef.T

    @property
    def feature_importances_(self) -> np.ndarray:
        """The share of each bin in the importance of all, (bins,): see ``models.explain.shares_of_bins``."""
        return shares_of_bins(self.fitted)

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, one per target."""
        return self.fitted.intercept

    @property
    def n_outputs(self) -> int:
        """Number of outputs t: one per class, task or target, and one for two classes."""
        return self.fitted.n_outputs

    @property
    def precision_(self) -> str:
        """The precision of features and products: as given, or what "auto" stood for during the fit."""
        return self.fitted.recipe.precision

    @property
    def normalize_(self) -> str | None:
        """The normalisation of rows before they are mapped: as given, or as the race chose."""
        normalization = self.fitted.normalization
        return None if normalization is None else normalization.name

    def compile(self, tolerance: float = 1e-3, memory: str | int = "1GiB") -> BaseEstimator:
        """Return the same model as tables, one per bin, that are looked up; for additive kernels, such as "chi2".

            score_c(x) = intercept_c + sum_i sign(x_i) f_ic(|x_i|),

        where each f_ic is piecewise linear in float32.

        Parameters
        ----------
        tolerance : float, default=0.001
            Largest error of the scores, as a share of the largest values of the functions of all bins together.
        memory : str or int, default="1GiB"
            Memory budget of the tables.

        Returns
        -------
        CompiledClassifier or CompiledRegressor
            The compiled model; its ``error_bound`` bounds the error of each row.

        Raises
        ------
        ValueError
            If the model is not a sum over bins, or if no tables meet the tolerance.
        MemoryBudgetError
            If the tables exceed ``memory``.

        References
        ----------
        Maji, Berg and Malik, Classification using intersection kernel support vector machines is efficient (tables of
        the functions of single bins).

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from chimap import HistogramClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> model = HistogramClassifier("chi2").fit(X, y)
        >>> bool((model.compile().predict(X) == model.predict(X)).mean() > 0.99)
        True
        """
        from chimap.estimators.compiled import compiled

        self._refresh()
        return compiled(self, tolerance, memory)

    def compress(self, n_rows: int, seed: int = 0) -> Self:
        """Return this exact machine with few rows, which have learned its outputs; see ``models.compress``.

        A prediction takes a product with all rows that a machine keeps. Centres of k-means, or rows where the kernel
        has no map, learn its outputs by ridge; probabilities, sets and intervals are learned again.

        Parameters
        ----------
        n_rows : int
            Rows to keep, at most four fifths of those of the machine.
        seed : int, default=0
            Seed of the choice of the rows, and of the labels by which probabilities are learned.

        Returns
        -------
        HistogramModel
            A fitted estimator with the same parameters.

        Raises
        ------
        ValueError
            If the model is no exact machine, or has too few rows.

        Examples
        --------
        >>> from sklearn.datasets import load_digits
        >>> from chimap import HistogramClassifier
        >>> X, y = load_digits(return_X_y=True)
        >>> model = HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit(X[:1200], y[:1200])
        >>> small = model.compress(300)
        >>> bool(small.score(X[1200:], y[1200:]) > model.score(X[1200:], y[1200:]) - 0.03)
        True
        """
        return self.with_model(compress(self.fitted, n_rows, seed))

    def depth(self, X: MatrixLike, *, times: float = 4.0, hold: float = 0.9, random_state: int = 0) -> object:
        """Return whether rows of counts are deep enough for their answers, and from which depth on they would be.

        Parameters
        ----------
        X : array, sparse matrix, data frame or source of n rows
            Rows of counts.
        times : float, default=4.0
            The depth of the deeper sample whose answer is meant, as a multiple of that of the row.
        hold : float, default=0.9
            The share of answers that is to hold.
        random_state : int, default=0
            Seed of the draws.

        Returns
        -------
        Depth
            The stability of each answer and an interval for its score, the share of answers that hold by depth, and the
            rows that are too shallow; see ``diagnostics.depth``.

        Raises
        ------
        DataError
            If the rows are no counts: negative, or not whole.
        ValueError
            If ``times`` is not above 1, or ``hold`` is no share.

        Examples
        --------
        >>> from chimap import HistogramClassifier
        >>> rng = np.random.default_rng(0)
        >>> shares, y = rng.dirichlet(np.ones(8), size=2), np.arange(80) % 2
        >>> X = np.array([rng.multinomial(400, shares[label]) for label in y])
        >>> found = HistogramClassifier("chi2", normalize="l1").fit(X, y).depth(X)
        >>> found.is_exact, int(found.too_shallow.sum()), found.stability.shape
        (True, 0, (80,))
        """
        ask = cast("Callable[..., object]", at_address("chimap.diagnostics.depth:depth"))
        return ask(self.fitted, source_of_rows(self, X), times=times, hold=hold, random_state=random_state)

    def card(self, name: str = "model") -> str:
        """Return the model card: data, scores with intervals, what the model rests on, limits and versions.

        Parameters
        ----------
        name : str, default="model"
            What to call the model: the name of its file.

        Returns
        -------
        str
            Markdown with a YAML header, by which hubs list models; see ``reports.card``. What the model does not hold
            is left out: scores of held-out rows, files and dates are those of ``chimap fit``.
        """
        return cast("Callable[..., str]", at_address("chimap.reports.card:card"))(self.fitted, name)

    def with_model(self, model: Model) -> Self:
        """Return an estimator with the same parameters and columns, and another model.

        Parameters
        ----------
        model : Model
            The model, for rows with the same bins.
        """
        other = copy(self)
        other.model_ = model
        return other

    @property
    def is_additive(self) -> bool:
        """Whether the scores are a sum of functions of single bins."""
        return self.fitted.is_additive

    # --- what else the fitted model answers

    _outputs = outputs_of_rows
    _outputs_with_shares = outputs_with_shares
    _variance_factors = forwarded(variance_factors)
    labels_in_chunks = forwarded(labels_in_chunks)
    predict_source = forwarded(predict_source)
    predict_chunks = forwarded(predict_chunks)
    describe = forwarded(Model.describe)
    explain = forwarded(explain)
    importance = forwarded(importance)
    effects = forwarded(effects)
    nearest = forwarded(nearest)
    counterfactuals = forwarded(counterfactuals)
    save = saved.save
    load = saved.Load()

    @property
    def exact_(self) -> Self:
        """This model; a compiled one has the model that it was compiled from."""
        return self

    @property
    def positive_(self) -> object:
        """The class that ``positive`` named when the model was fitted, as in ``classes_``; None for none."""
        return self.fitted.task.positive_class

    @property
    def _answers(self) -> ClassAnswers | RealAnswers:
        return self.fitted.answers

    def _html_repr(self) -> str:
        """Return the box of notebooks, below a line that says what was fitted."""
        box = str(super()._html_repr())
        return f"<p>{escape(fit_in_words(self.fitted))}</p>{box}" if self.__sklearn_is_fitted__() else box

    def _get_fitted_attr_html(self, doc_link: str = "") -> object:
        """Return the learned attributes that have a value, for that box; those that are computed are left out."""
        from sklearn.utils._repr_html.fitted_attributes import AttrsDict  # of the versions that ask for it

        learned = attributes_of(self.fitted).items()
        shown = {name: value for name, value in learned if re.fullmatch("[a-z].*_", name) and value is not None}
        return AttrsDict(
            fitted_attrs={
                name: {"type_name": type(value).__name__, "value": value}
                | ({"shape": value.shape, "dtype": value.dtype} if isinstance(value, np.ndarray) else {})
                for name, value in shown.items()
            },
            estimator_class=type(self),
            doc_link=doc_link,
        )

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        kernel = self.kernel
        takes_signs = kernel in _SIGNED if isinstance(kernel, str) else getattr(kernel, "is_signed", False)
        tags.input_tags.positive_only = not takes_signs
        tags.input_tags.sparse = True
        tags.target_tags.required = True
        return tags


_OWN = ("_batches", "_stale", "_sklearn_output_config")
"""Attributes of an estimator that are not of its model."""
