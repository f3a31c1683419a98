"""The settings of a fit: typed, frozen and complete.

``Recipe.of`` reads them from an estimator. A race replaces those that are open by what it has found
(``Recipe.with_raced``), and its machine gives every other ``AUTO`` its value for the rows at hand, but alpha, and gamma
of exact machines, which left-out rows choose (``selection.choose``). Whatever reads a setting afterwards reads it
from the recipe, and changes nothing there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from sklearn.base import is_classifier
from sklearn.utils import check_random_state

from chimap._errors import InputError
from chimap._memory import budgets, parse_memory, room_in
from chimap._messages import Message
from chimap._types import ArrayLike, Blocks, ClassWeight, MatrixLike, Parameters, RandomState, Scoring
from chimap._validation import AUTO, ParameterError, check_choice, check_positive, is_auto
from chimap.data.table import named_blocks
from chimap.features.additive.base import AdditiveMap
from chimap.features.base import Features
from chimap.features.covariates import Covariates
from chimap.features.families import OPEN, AutomaticFeatures, features_with, with_features_unpacked
from chimap.kernels import Kernel, as_kernel
from chimap.losses import Loss, Quantile
from chimap.normalizations import CATALOGUE, Normalization
from chimap.selection.structures import STRUCTURES, Structure

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator
    from sklearn.model_selection import BaseCrossValidator

# Fields of a recipe that are no parameters of an estimator, or do not change the model.
_NOT_LISTED = {"estimator", "is_classifier", "seed", "solver", "learner", "keeps_posterior", "covariate_columns"}
_NOT_LISTED |= {"weighed_rows", "raced", "resolved", "verbose"}

PRECISIONS = (AUTO, "float32", "float64")


class Learner(Protocol):
    """Learns a kernel from the targets before the weights: a frozen dataclass with settings of its own."""

    @property
    def losses_not_taken(self) -> tuple[str, ...]:
        """Names of losses that no solver minimises for its penalty."""
        ...

    def method_for(self, recipe: Recipe) -> Any:
        """Return the subclass of ``machines.method.Method`` for a recipe. Raise ValueError for a wrong setting."""
        ...

    def objective_for(self, recipe: Recipe, loss: str | Loss) -> Any:
        """Return a ``machines.objective.PenalisedLoss``. Raise ValueError for a wrong setting."""
        ...


@dataclass(frozen=True, eq=False)
class Recipe:
    """The settings of a fit. ``HistogramClassifier`` documents those that it has as parameters.

    A setting that an estimator has no parameter for has its default here.

    Parameters
    ----------
    estimator : str
        Name of the estimator, for messages.
    is_classifier : bool
        Whether the targets are classes; else they are real numbers.
    seed : int, default=0
        Seed of all random numbers of the fit.
    solver : str or None, default=None
        A key of ``solvers.catalogue.SOLVERS``; None
        takes the first solver that minimises the loss.
    learner : Learner or None, default=None
        Learns the kernel before the weights.
    keeps_posterior : bool, default=False
        Whether the model keeps the posterior of its weights, if it has one.
    covariate_columns : Covariates or None, default=None
        Covariates of the rows as columns behind the bins, whose dot products are added to the kernel; a race chooses
        them (``race.covariates``).
    weighed_rows : array of int or None, default=None
        Places of the rows by whose labels a race has weighed the bins.
    raced : frozenset of str, default=frozenset()
        Names of the settings that a race has chosen.
    resolved : frozenset of str, default=frozenset()
        Names of the settings that were open, and got their values for the rows at hand.
    """

    estimator: str
    is_classifier: bool
    kernel: str | Kernel | Sequence[str | Kernel] = AUTO
    features: str | Features = AUTO
    gamma: float | str = "mean"
    n_components: int | str = AUTO
    n_terms: int | str = AUTO
    map: AdditiveMap | None = None
    sampling: str = AUTO
    form: str = "pair"
    landmarks: str | MatrixLike = "kmeans"
    normalize: str | Sequence[str | None] | None = None
    bin_weights: str | ArrayLike | None = None
    blocks: Blocks | None = None
    n_principal: int | Sequence[int] | None = None
    loss: str | Loss = "square"
    quantile: float | Sequence[float] = 0.5
    class_weight: ClassWeight = None
    weights: str = "importance"
    threshold: str | float | None = None
    positive: object = None
    ordered: Sequence[object] | None = None
    label_tree: Mapping[str, str] | Sequence[tuple[str, str]] | str | None = None
    alpha: str | float | Sequence[float] = AUTO
    selection: str | int | BaseCrossValidator = AUTO
    scoring: Scoring = None
    time_limit: float | None = None
    memory: str | int = AUTO
    precision: str = "float32"
    depth_robust: bool = False
    device: str = "cpu"
    n_jobs: int | None = None
    random_state: RandomState = None
    verbose: bool = False
    seed: int = 0
    solver: str | None = None
    learner: Learner | None = None
    keeps_posterior: bool = False
    covariate_columns: Covariates | None = None
    weighed_rows: np.ndarray | None = None
    raced: frozenset[str] = frozenset()
    resolved: frozenset[str] = frozenset()

    @classmethod
    def of(cls, estimator: BaseEstimator, learner: Learner | None = None, *, keeps_posterior: bool = False) -> Recipe:
        """Return the settings that the parameters of an estimator ask for.

        It draws the seed, so that an estimator with a generator as ``random_state`` has another recipe each time.
        ``learner`` holds the parameters that are not settings of every fit.
        """
        asked = {"features": AUTO} | estimator.get_params(deep=False)
        given = with_features_unpacked(asked, 2 if learner is not None else AUTO)
        if given.get("time_limit") is not None:
            check_positive(given["time_limit"], "time_limit")
        names = {field.name for field in fields(cls)} & given.keys()
        return cls(
            type(estimator).__name__,
            is_classifier(estimator),
            **{name: given[name] for name in names},
            seed=int(check_random_state(given.get("random_state")).randint(2**31)),
            learner=learner,
            keeps_posterior=keeps_posterior,
        )

    def with_order(self, order: Sequence[object] | None) -> Recipe:
        """Return the recipe with the order that labels have, unless it is of numbers or knows what its classes are."""
        is_taken = order is not None and self.is_classifier and self.structure is None
        return replace(self, ordered=order) if is_taken else self

    def leaves_open(self, *names: str) -> bool:
        """Return whether all these settings are "auto": the user left them open, and nothing gave them a value."""
        return all(is_auto(getattr(self, name)) for name in names)

    @property
    def has_race(self) -> bool:
        """Whether a race chooses the kernel, or one of several normalisations."""
        return self.learner is None and (self.leaves_open("kernel") or not isinstance(self.normalize, str | None))

    @property
    def searches_alpha(self) -> bool:
        """Whether the user left the strength open, also if a race has chosen it since."""
        return isinstance(self.alpha, str) or "alpha" in self.raced

    @property
    def settings(self) -> Parameters:
        """The settings by name, as an estimator has them as parameters, with those of the learner."""
        given = {field.name: getattr(self, field.name) for field in fields(self) if field.name not in _NOT_LISTED}
        if self.is_classifier:
            del given["quantile"]
        else:
            given = {name: value for name, value in given.items() if name not in STRUCTURES}
        features = {"features": features_with(given)}
        others = {name: value for name, value in given.items() if name not in OPEN}
        return others | features | ({} if self.learner is None else vars(self.learner))

    # --- what a race changes

    def with_raced(self, **settings: Any) -> Recipe:
        """Return the recipe with settings that a race has chosen."""
        return replace(self, **settings, raced=self.raced | settings.keys())

    def without_raced(self, *names: str, of: Recipe) -> Recipe:
        """Return the recipe with these settings as another recipe, from before the race, has them."""
        return replace(self, **{name: getattr(of, name) for name in names}, raced=self.raced - {*names})

    @property
    def raced_settings(self) -> Parameters:
        """The settings that a race has chosen, by name."""
        return {field.name: getattr(self, field.name) for field in fields(self) if field.name in self.raced}

    @property
    def raced_parameters(self) -> Parameters:
        """Those of ``raced_settings`` that are parameters of an estimator."""
        return {name: value for name, value in self.raced_settings.items() if name not in _NOT_LISTED}

    def with_values(self, **settings: Any) -> Recipe:
        """Return the recipe with values of settings that were open."""
        return replace(self, **settings, resolved=self.resolved | settings.keys())

    # --- in the types that a fit takes

    @property
    def n_covariates(self) -> int:
        """Number of columns behind the bins."""
        return 0 if self.covariate_columns is None else self.covariate_columns.n_columns

    @property
    def budget(self) -> int:
        """The memory budget in bytes; the least of "auto", by which machines are chosen."""
        return parse_memory(self.memory)

    @property
    def most_memory(self) -> int:
        """The bytes of the largest budget that the fit may have: of "auto", what the machine allows now."""
        return max(map(parse_memory, budgets(self.memory)))

    @property
    def room(self) -> int:
        """The bytes of the memory budget that the fit may use, which is what the libraries leave."""
        return room_in(self.budget)

    @property
    def dtype(self) -> np.dtype:
        """The type that features are computed in."""
        return np.dtype("float64" if self.precision == "float64" else "float32")

    @property
    def requested_loss(self) -> str | Loss:
        """The loss, with the quantile that it is for."""
        is_word = isinstance(self.loss, str) and self.loss == Quantile.name
        return Quantile(self.quantile) if is_word else self.loss

    @property
    def structure(self) -> Structure | None:
        """How the classes are related; None if no setting says it. Raise ValueError for a setting that cannot be."""
        given = [name for name in STRUCTURES if getattr(self, name) is not None]
        if len(given) > 1:
            raise InputError(Message("{ordered} and {label_tree} exclude each other: leave one of them out."))
        return STRUCTURES[given[0]](getattr(self, given[0])) if given else None

    @property
    def is_exact(self) -> bool:
        """Whether the fit keeps every row, with features="exact"."""
        return isinstance(self.features, str) and self.features == "exact"

    @property
    def exact_kernels(self) -> list[Kernel]:
        """The kernels of the blocks of columns, or the one of all; a search for gamma starts at the mean."""
        kernels: Any = self.kernel if isinstance(self.kernel, list | tuple) else [self.kernel]
        return [as_kernel(kernel, "mean" if self.leaves_open("gamma") else self.gamma) for kernel in kernels]

    @property
    def exact_kernel(self) -> Kernel:
        """The kernel of all columns."""
        (kernel,) = self.exact_kernels
        return kernel

    def features_of(self, kernel: Kernel) -> Features:
        """Return unfitted features of a kernel, as they are asked for; given ones have a kernel of their own."""
        if not isinstance(self.features, str):
            return self.features.resolved()
        asked = AutomaticFeatures(
            self.features,
            map=self.map,
            n_terms=self.n_terms,
            sampling=self.sampling,
            form=self.form,
            landmarks=self.landmarks,
        )
        return asked.of_kernel(kernel, self.n_components)

    @property
    def given_bin_weights(self) -> np.ndarray | None:
        """The weights of the bins; None for equal ones, and as long as they are a word."""
        weights = self.bin_weights
        return None if weights is None or isinstance(weights, str) else np.asarray(weights, dtype=np.float64)

    @property
    def normalization(self) -> Normalization | None:
        """The normalisation, before it is fitted. Raise ValueError for several, which a race is to compare."""
        named = checked_normalizations(self.normalize)
        if len(named) > 1:
            raise InputError(
                Message(
                    "several {normalize} are compared by the race of HistogramClassifier and HistogramRegressor: give "
                    "one."
                )
            )
        return named[0]

    @property
    def normalizes_by_labels(self) -> bool:
        """Whether a normalisation that is named learns from labels, which hides those of scored rows from it."""
        return any(each is not None and each.needs_labels for each in checked_normalizations(self.normalize))

    @property
    def knows_labels(self) -> bool:
        """Whether a normalisation, or weights of bins that a race has learned, know labels: of rows not scored."""
        return self.normalizes_by_labels or self.weighed_rows is not None

    def blocks_in(self, columns: Sequence[str] | None) -> Blocks | None:
        """Return the blocks by places, given the names of the columns."""
        return None if self.blocks is None else named_blocks(self.blocks, columns)


def checked_normalizations(normalize: str | Sequence[str | None] | None) -> list[Normalization | None]:
    """Return the normalisations that are named, before they are fitted; None is a name for none.

    Several are for a race to choose from. Raise ValueError for an unknown name, and for an empty list.
    """
    names = [normalize] if normalize is None or isinstance(normalize, str) else list(normalize)
    if not names:
        raise ParameterError("normalize", normalize, "None, a name or several of them")
    for name in names:
        check_choice(name, "normalize", (*CATALOGUE, None))
    return [None if name is None else CATALOGUE[name] for name in names]
