"""A fitted linear model on explicit features, and what can be done with it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._threads import threads
from chimap._types import MatrixLike, Parameters, Rows, Sometimes
from chimap._validation import rows_as_fitted
from chimap.backends import backend_of, check_device, on_host
from chimap.data import ArraySource
from chimap.data.views import fitted_names
from chimap.estimators.explaining import Explaining
from chimap.estimators.kept_results import KeptResults
from chimap.estimators.posterior_variances import checked_posterior, posterior_variances
from chimap.estimators.prediction import Prediction, scores
from chimap.estimators.rows_to_predict import source_as_fitted, source_to_predict
from chimap.explain.effects import BinUnit
from chimap.features.base import FittedFeatures
from chimap.features.mapped_functions import MappedModel
from chimap.features.rounded import RoundedFeatures
from chimap.fit.design import FeatureBlock
from chimap.fit.recipe import given_weights
from chimap.fit.rows import Preparation
from chimap.kernels import AdditiveKernel, Kernel
from chimap.model_files.model_file import SavedEstimator
from chimap.normalizations import CATALOGUE, Normalization
from chimap.solvers.posterior import DualPosterior, Posterior

if TYPE_CHECKING:
    from sklearn.utils import Tags


class LinearModel(Explaining, SavedEstimator, Prediction, BaseEstimator):
    """f(x) = Psi(x) . w + b, with features Psi of the kernel, weights w (D, t) and intercepts b (t,).

    precision: of features and products: "float32", "float64", "bfloat16" (features are rounded, sums are as for
    float32) or "auto". device: where outputs are computed. normalize: None, or a name of ``normalizations.CATALOGUE``,
    applied to rows before they are mapped. A subclass fits the model.
    """

    file_kind: ClassVar[str] = "model"  # the command line opens it
    precision: str
    normalize: str | None

    features_: Annotated[Any, FittedFeatures]
    normalization_: Sometimes[Normalization | None]
    kernel_: Kernel
    shift_: Sometimes[np.ndarray]  # what is subtracted from features before they are rounded
    _posterior: Sometimes[Posterior | DualPosterior | None]
    _coef: np.ndarray
    _intercept: np.ndarray

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """Return scikit-learn's names of the parameters, cached.

        scikit-learn reads the signature each time, and a fit asks twenty times.
        """
        names: list[str] = super()._get_param_names()
        return names

    def _given(self) -> Parameters:
        """Return the parameters."""
        parameters: Parameters = self.get_params(deep=False)
        return parameters

    @abstractmethod
    def _parts(self, n_columns: int) -> list[FeatureBlock]:
        """Return the blocks of the columns, with the settings of their features."""

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, one row per target (one row for two classes)."""
        self._refresh()
        return self._coef.T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, one per target."""
        self._refresh()
        return self._intercept

    def describe(self) -> Parameters:
        """Return a description of the kernel and the features.

        Returns
        -------
        dict
            "kernel" is the name of the kernel; "gamma" is None for a kernel without gamma and for a plain additive
            kernel, whose gamma is 1; "features" describes the features.
        """
        check_is_fitted(self, "features_")
        gamma = getattr(self.kernel_, "gamma", None)
        is_plain = isinstance(self.kernel_, AdditiveKernel) and gamma == 1
        return {
            "kernel": self.kernel_.name,
            "gamma": None if is_plain else gamma,
            "features": self.features_.describe(),
        }

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
            If the model is not a sum over bins; if it has ``precision="bfloat16"``, whose features are step functions;
            or if no tables meet the tolerance.
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

    # --- from rows to outputs

    @property
    def _dtype(self) -> np.dtype:
        """The dtype in which features are computed and summed."""
        return np.dtype("float64" if self.precision_ == "float64" else "float32")

    @property
    def precision_(self) -> str:
        """The precision of features and products: as given, or what "auto" stood for during the fit."""
        if self.precision != "auto":
            return self.precision
        taken: Parameters = getattr(self, "_taken", {})
        return str(taken.get("precision", "float32"))

    @property
    def normalize_(self) -> str | None:
        """The normalisation of rows before they are mapped: as given, or as the race chose."""
        chosen: str | None = self._given()["normalize"]
        return chosen

    @property
    def _normalization(self) -> Normalization | None:
        """The fitted normalisation of rows; models of older files hold its name alone."""
        name = self.normalize_
        fitted: Normalization | None = getattr(self, "normalization_", None)
        if name is None or (fitted is not None and fitted.name == name):
            return fitted if name is not None else None
        return CATALOGUE[name]

    @property
    def _device(self) -> str:
        """Where outputs are computed; "cpu" for estimators without this parameter."""
        return str(getattr(self, "device", "cpu"))

    @property
    def _is_rounded(self) -> bool:
        return self.precision_ == "bfloat16"

    def _prepared(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Return rows checked, in the model's precision, normalised, and with weighted bins if there are weights."""
        return self._preparation(X, first_row, name)

    @property
    def _preparation(self) -> Preparation:
        """How rows become the input of the features; cached."""

        def make() -> Preparation:
            weights = given_weights(self._given())
            parts = self._parts(self.n_features_in_)
            return Preparation(parts, self._dtype, self._normalization, weights, fitted_names(self))

        return self._kept.get("preparation", list(map(vars(self).get, self._settings_names())), make)

    @classmethod
    @cache
    def _settings_names(cls) -> list[str]:
        """Return the attributes that decide how rows are prepared: parameters, values of "auto", and the columns."""
        return [
            *cls._get_param_names(),
            "chosen_",
            "_taken",
            "normalization_",
            "feature_names_in_",
            "n_features_in_",
        ]

    @property
    def _kept(self) -> KeptResults:
        """What predictions share; without it, predicting a single row would mostly prepare to do so."""
        kept: KeptResults = self.__dict__.setdefault("_made", KeptResults())
        return kept

    @property
    def n_outputs(self) -> int:
        """Number of outputs t: one per class, task or target, and one for two classes."""
        return int(self._coef.shape[1])

    def _room(self, n_rows: int) -> Any:
        """Allocate memory for features, or return a scorer if they are computed on a device."""
        if on_host(self._device):
            features = self._folded()[0]
            n_features = 0 if hasattr(features, "outputs") else features._n_features_out
            return np.empty((n_rows, n_features), dtype=self._dtype)
        check_device(self._device)

        def make() -> Callable[[Rows], np.ndarray]:
            shift = self.shift_ if self._is_rounded else np.zeros(self._coef.shape[0])
            backend = backend_of(self._device)
            return backend.scorer(self._mapping(), shift, self._coef, self._intercept, self._dtype)

        # cached: the rows of an exact machine would go to the device again with every prediction
        made_of = [self.features_, self._coef, self._intercept, self.precision_, self._device]
        return self._kept.get("scorer", made_of, make)

    def _outputs_of(self, rows: Rows, first_row: int, name: str, room: Any) -> np.ndarray:
        return self._scores(self._prepared(rows, first_row, name), room)

    def _scores(self, rows: Rows, room: Any) -> np.ndarray:
        """Return f(x) (n, t) for prepared rows."""
        if on_host(self._device):
            features, weights, intercept = self._folded()
            return scores(features, rows, weights, room) + intercept
        outputs: np.ndarray = room(rows)
        return outputs

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Return 1 + q (n,): variances of new targets of rows X divided by that of the noise.

        See ``solvers.posterior``. Raise ValueError if the model has no posterior.
        """
        self._refresh()
        posterior = checked_posterior(getattr(self, "_posterior", None))
        given = source_to_predict(self, X)
        source = ArraySource(rows_as_fitted(self, X)) if given is None else source_as_fitted(self, given)
        factors = np.empty(source.n_rows)
        with threads(getattr(self, "n_jobs", None)):
            for chunk in source.chunks(self._rows_at_once):
                rows = self._prepared(chunk.X, chunk.start, source.name)
                q = posterior_variances(posterior, self._mapping(), self.kernel_, rows, self._dtype)
                factors[chunk.start : chunk.start + q.size] = 1 + q
        return factors

    # --- for explanations

    def _mapped_model(self) -> MappedModel | None:
        """See ``Explaining``: None for rounded features, which are step functions and have no gradient."""
        return None if self._is_rounded else self.features_.mapped_model(self._coef, self._intercept)

    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        room = self._room(min(self._rows_at_once, rows.shape[0]))
        parts = [slice(i, i + self._rows_at_once) for i in range(0, rows.shape[0], self._rows_at_once)]
        return np.vstack([self._scores(_arrays.take_rows(rows, part), room) for part in parts])

    @property
    def _takes_signs(self) -> bool:
        return any(part.settings.exact.is_signed for part in self._parts(self.n_features_in_))

    def _unit_of_bin(self, place: int) -> BinUnit:
        return self._preparation.unit_of_bin(place)

    def _mapping(self) -> FittedFeatures:
        """Return the features that are multiplied by the weights."""
        return RoundedFeatures(self.features_, self.shift_) if self._is_rounded else self.features_

    def _folded(self) -> tuple[FittedFeatures, np.ndarray, np.ndarray]:
        """Return features, weights (D, t) in their dtype and intercepts, ready to be multiplied; cached.

        ``fold`` moves part of the work of features into the weights, if they allow it.
        """

        def make() -> tuple[FittedFeatures, np.ndarray, np.ndarray]:
            folded = self._mapping().fold(self._coef, self._intercept)
            weights = np.ascontiguousarray(folded.coef, dtype=self._dtype)
            return folded.features, weights, folded.intercept

        return self._kept.get("folded", [self.features_, self._coef, self._intercept, self.precision_], make)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags
