"""What a fitted linear model over explicit features is, and what can be done with it."""

from __future__ import annotations

import operator
from abc import abstractmethod
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays
from chimap._threads import threads
from chimap._types import MatrixLike, Parameters, Rows, Sometimes
from chimap._validation import rows_as_fitted
from chimap.backends import backend_of, check_device, on_host
from chimap.backends.base import RowFeatures
from chimap.data import ArraySource, matched
from chimap.estimators.explaining import Explaining
from chimap.estimators.prediction import Prediction, scores
from chimap.features.base import Folded, fold
from chimap.features.mapped import MappedModel, mapped_model
from chimap.features.rounded import RoundedFeatures
from chimap.fit.design import Part
from chimap.fit.recipe import given_weights
from chimap.fit.rows import Preparation
from chimap.kernels import AdditiveKernel, Kernel
from chimap.model_files.model_file import SavedModel
from chimap.solvers.posterior import DualPosterior, Posterior

if TYPE_CHECKING:
    from sklearn.utils import Tags

Made = TypeVar("Made")


class LinearModel(Explaining, SavedModel, Prediction, BaseEstimator):
    """f(x) = Psi(x) . w + b: features Psi of the kernel, weights w (D, t) and intercepts b (t,).

    precision: of features and products, "float32", "float64", "bfloat16" (features rounded; sums as of float32) or
    "auto".
    device: where outputs are computed. normalize: "l1" or None, of the rows before they are mapped. A subclass fits.
    """

    precision: str
    normalize: str | None

    features_: Annotated[Any, RowFeatures]
    kernel_: Kernel
    shift_: Sometimes[np.ndarray]  # of features that are rounded: about what
    _coef: np.ndarray
    _intercept: np.ndarray
    _posterior: Sometimes[Posterior | DualPosterior | None]

    @classmethod
    @cache
    def _get_param_names(cls) -> list[str]:
        """As of scikit-learn, which reads the signature anew each time; a fit asks twenty times."""
        names: list[str] = super()._get_param_names()
        return names

    def _given(self) -> Parameters:
        """The parameters."""
        given: Parameters = self.get_params(deep=False)
        return given

    @abstractmethod
    def _parts(self, n_columns: int) -> list[Part]:
        """The blocks of the columns, with what makes their features."""

    @property
    def coef_(self) -> np.ndarray:
        """Weights of the features, one row a target (one for two classes)."""
        self._refresh()
        return self._coef.T

    @property
    def intercept_(self) -> np.ndarray:
        """Intercepts, one a target."""
        self._refresh()
        return self._intercept

    def describe(self) -> Parameters:
        """The kernel by name, its gamma (None where it has none, or the plain kernel's 1) and what its features are."""
        check_is_fitted(self, "features_")
        gamma = getattr(self.kernel_, "gamma", None)
        is_plain = isinstance(self.kernel_, AdditiveKernel) and gamma == 1
        return {
            "kernel": self.kernel_.name,
            "gamma": None if is_plain else gamma,
            "features": self.features_.describe(),
        }

    def compile(self, tolerance: float = 1e-3, memory: str | int = "1GiB") -> BaseEstimator:
        """The same model as tables, one a bin, that are looked up: for additive kernels, such as "chi2".

        score_c(x) = intercept_c + sum_i sign(x_i) f_ic(|x_i|), each f_ic as straight pieces in float32.

        tolerance: how far the scores may be off, as a share of the largest values of all bins' functions together.
        memory: of the tables.

        Returns a ``CompiledClassifier`` or ``CompiledRegressor``, whose ``error_bound`` says how far it is off. Raises
        ValueError for a model that is no sum over bins, for one of precision="bfloat16", whose features go in steps,
        and where no tables meet the tolerance; MemoryBudgetError for tables above ``memory``.

        Source: Maji, Berg and Malik, Classification using intersection kernel support vector machines is efficient
        (tables of the functions of single bins).

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
        """Of features as they are computed and summed."""
        return np.dtype("float64" if self.precision_ == "float64" else "float32")

    @property
    def precision_(self) -> str:
        """Of features and products: as given, or what "auto" stood for where the model was fitted."""
        if self.precision != "auto":
            return self.precision
        taken: Parameters = getattr(self, "_taken", {})
        return str(taken.get("precision", "float32"))

    @property
    def normalize_(self) -> str | None:
        """How rows are normalised before they are mapped: as given, or as the race chose."""
        chosen: str | None = self._given()["normalize"]
        return chosen

    @property
    def _device(self) -> str:
        """Where outputs are computed: of estimators that do not ask, this machine."""
        return str(getattr(self, "device", "cpu"))

    @property
    def _is_rounded(self) -> bool:
        return self.precision_ == "bfloat16"

    def _prepare(self, X: Rows, first_row: int | np.ndarray, name: str) -> Rows:
        """Rows checked, in the precision of the model, normalised and their bins weighted if asked."""
        return self._preparation(X, first_row, name)

    @property
    def _preparation(self) -> Preparation:
        """How rows become what features take."""

        def make() -> Preparation:
            weights = given_weights(self._given())
            return Preparation(self._parts(self.n_features_in_), self._dtype, self.normalize_, weights)

        return self._kept("preparation", list(map(vars(self).get, self._settings_names())), make)

    @classmethod
    @cache
    def _settings_names(cls) -> list[str]:
        """Attributes that say how rows are prepared: the parameters, what "auto" stands for, and the columns."""
        return [*cls._get_param_names(), "chosen_", "_taken", "feature_names_in_", "n_features_in_"]

    def _kept(self, name: str, made_of: list[Any], make: Callable[[], Made]) -> Made:
        """What ``make`` gives, kept from one call to the next as long as it is made of the same objects: for one row
        it would be most of the work."""
        kept: dict[str, tuple[list[Any], Made]] = self.__dict__.setdefault("_made", {})
        sources, made = kept.get(name, (None, None))
        if sources is None or not all(map(operator.is_, sources, made_of)):
            made = make()
            kept[name] = made_of, made
        return cast("Made", made)

    @property
    def _changes_rows(self) -> bool:
        """Whether prepared rows are other numbers than those that came."""
        return self.normalize_ is not None or given_weights(self._given()) is not None

    @property
    def _n_outputs(self) -> int:
        return int(self._coef.shape[1])

    def _room(self, n_rows: int) -> Any:
        """Memory for features or, where they are made on a device, what makes outputs there."""
        if on_host(self._device):
            return np.empty((n_rows, self._folded()[0]._n_features_out), dtype=self._dtype)
        check_device(self._device)
        shift = self.shift_ if self._is_rounded else np.zeros(self._coef.shape[0])
        backend = backend_of(self._device)
        return backend.scorer(self._mapping(), shift, self._coef, self._intercept, self._dtype)

    def _outputs_of(self, rows: Rows, first_row: int, name: str, room: Any) -> np.ndarray:
        return self._scores(self._prepare(rows, first_row, name), room)

    def _variance_factors(self, X: MatrixLike) -> np.ndarray:
        """Variances of new targets of rows X over that of the noise, 1 + q (n,), see ``solvers.posterior``.

        Raises ValueError for a model that has no posterior.
        """
        self._refresh()
        posterior = getattr(self, "_posterior", None)
        if posterior is None:
            raise ValueError(
                "return_std is of loss='square' on features as they are, with all entries of y there; this model has "
                "no posterior. predict_set gives intervals, whatever the model."
            )
        source = self._source_of(X)
        if source is None:
            source = ArraySource(rows_as_fitted(self, X))
        else:
            names = getattr(self, "feature_names_in_", None)
            source = matched(source, names, self.n_features_in_, type(self).__name__)
        factors = np.empty(source.n_rows)
        with threads(getattr(self, "n_jobs", None)):
            for chunk in source.chunks(self.rows_at_once):
                rows = self._prepare(chunk.X, chunk.start, source.name)
                factors[chunk.start : chunk.start + rows.shape[0]] = 1 + self._posterior_variances(
                    posterior, rows
                )
        return factors

    def _posterior_variances(self, posterior: Posterior | DualPosterior, rows: Rows) -> np.ndarray:
        features = self._mapping()
        Z = np.empty((rows.shape[0], features._n_features_out), dtype=self._dtype)
        features.features_into(rows, Z)
        if isinstance(posterior, DualPosterior):
            return posterior.variances(Z, np.asarray(self.kernel_.diagonal(rows), dtype=np.float64))
        return posterior.variances(Z)

    def _scores(self, rows: Rows, room: Any) -> np.ndarray:
        """f(x) (n, t) of prepared rows."""
        if on_host(self._device):
            features, weights, intercept = self._folded()
            return scores(features, rows, weights, room) + intercept
        outputs: np.ndarray = room(rows)
        return outputs

    # --- what explanations ask

    def _mapped_model(self) -> MappedModel | None:
        # rounded features go in steps, which have no gradient
        return None if self._is_rounded else mapped_model(self.features_, self._coef, self._intercept)

    def _outputs_of_prepared(self, rows: Rows) -> np.ndarray:
        room = self._room(min(self.rows_at_once, rows.shape[0]))
        parts = [slice(i, i + self.rows_at_once) for i in range(0, rows.shape[0], self.rows_at_once)]
        return np.vstack([self._scores(_arrays.take_rows(rows, part), room) for part in parts])

    @property
    def _takes_signs(self) -> bool:
        return any(part.settings.exact.is_signed for part in self._parts(self.n_features_in_))

    def _mapping(self) -> RowFeatures:
        """The features that are multiplied by the weights."""
        return RoundedFeatures(self.features_, self.shift_) if self._is_rounded else self.features_

    def _folded(self) -> tuple[RowFeatures, np.ndarray, np.ndarray]:
        """What is multiplied by weights (D, t), those in its precision, and intercepts; kept from one call to the next.

        Features that fold give a shorter form, unless it is their own numbers that are rounded.
        """

        def make() -> tuple[RowFeatures, np.ndarray, np.ndarray]:
            folded = (Folded if self._is_rounded else fold)(self._mapping(), self._coef, self._intercept)
            weights = np.ascontiguousarray(folded.coef, dtype=self._dtype)
            return folded.features, weights, folded.intercept

        return self._kept("folded", [self.features_, self._coef, self._intercept, self.precision_], make)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.target_tags.required = True
        return tags
