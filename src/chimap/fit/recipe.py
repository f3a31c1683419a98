"""The settings of a fit, checked once and frozen.

An estimator turns its constructor arguments into a ``Recipe`` with ``checked_recipe``, before any row is read. The
recipe names the parts of the fit that vary: the ``Design`` makes the features, the ``Codec`` encodes the targets, the
``Objective`` finds the weights, and ``HoldingOut`` says which rows are held out. ``fit.fit`` then runs any recipe in
the same way.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np

from chimap._errors import InputError
from chimap._memory import parse_memory
from chimap._messages import Message
from chimap._types import Parameters, Scoring
from chimap._validation import ParameterError, check_choice, check_positive
from chimap.backends import check_device, on_host
from chimap.data import Source
from chimap.engines import Job, Progress, Stopwatch
from chimap.features.base import FittedFeatures
from chimap.fit.design import FeatureBlock
from chimap.fit.designing import Design
from chimap.fit.holding_out import HoldingOut, holding_out, leaving_out
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.losses import Loss, Observed
from chimap.normalizations import CATALOGUE, Normalization
from chimap.selection.choose import ChosenSolution
from chimap.solvers.base import Evidence, Needs

PRECISIONS = ("auto", "float32", "float64", "bfloat16")
_ON_DEVICES: tuple[Needs, ...] = (
    "moments",
    "kernel",
    "blocks",
)  # what a fit with a device can be solved from


class Objective(Protocol):
    """What the weights minimise, and how they are chosen. See ``Solver`` for ``needs`` and ``n_vectors``."""

    @property
    def loss(self) -> str | Loss:
        """The loss, by name or as an object."""
        ...

    @property
    def needs(self) -> Needs:
        """What the solver needs of the rows: moments, repeated passes, or all features in memory."""
        ...

    @property
    def n_vectors(self) -> int:
        """How many arrays of the size of the weights are in memory together."""
        ...

    @property
    def has_gcv(self) -> bool:
        """Whether generalised cross-validation and a held-out score can choose what is open."""
        ...

    @property
    def leaves_out(self) -> bool:
        """Whether rows are left out in closed form, so that no folds are kept apart."""
        ...

    def check(self, given: Parameters) -> None:
        """Raise ValueError for parameters of the estimator that this objective does not support."""
        ...

    def footprint(self, job: Job, parts: list[FeatureBlock]) -> Job:
        """Return the job with the memory that finding the weights takes."""
        ...

    def learn(
        self, evidence: Evidence, features: FittedFeatures, clock: Stopwatch, progress: Progress
    ) -> ChosenSolution:
        """Choose what is open, and return the weights of the features."""
        ...


@dataclass(frozen=True)
class CheckedRecipe:
    """How a model is fitted, whatever data it is fitted to.

    Parameters
    ----------
    estimator : str
        Name of the estimator class. With ``given`` it identifies the fit that a checkpoint belongs to.
    given : dict
        Parameters of the estimator as the user gave them.
    design : Design
        How the features are made.
    codec : type of Codec
        Learns how labels or targets become numbers.
    objective : Objective
        What the weights minimise.
    n_folds : int
        Folds whose moments are kept apart, as ``holding`` says; 1 if no rows are held out.
    holding : HoldingOut
        Which rows are held out to choose.
    scoring : str, callable or None
        Score of rows that are held out; None for accuracy or R^2.
    n_principal : int, tuple of int or None
        Most principal components of each block, several numbers to choose from, or None for all features.
    normalize : Normalization or None
        The normalisation of the rows, or None.
    bin_weights : array of shape (bins,) or None
        Weights of the bins; None for equal ones.
    dtype : dtype
        Precision that features are computed in.
    is_rounded : bool
        Whether features are rounded to bfloat16 before they are added up.
    device : str
        Where sums and factors are computed.
    budget : int
        Memory budget in bytes.
    seed : int
        Seed of all random numbers of the fit.
    """

    estimator: str
    given: Parameters = field(repr=False)
    design: Design
    codec: type[Codec]
    objective: Objective
    n_folds: int
    holding: HoldingOut
    scoring: Scoring
    n_principal: int | tuple[int, ...] | None
    normalize: Normalization | None
    bin_weights: np.ndarray | None
    dtype: np.dtype
    is_rounded: bool
    device: str
    budget: int
    seed: int

    def preparation(self, parts: list[FeatureBlock], columns: tuple[str, ...] | None = None) -> Preparation:
        """Return how rows with these blocks are checked, converted and normalised; errors name these columns."""
        return Preparation(parts, self.dtype, self.normalize, self.bin_weights, columns)

    @property
    def changes_rows(self) -> bool:
        """Whether preparation changes the numbers of the rows."""
        return self.normalize is not None or self.bin_weights is not None

    @property
    def most_principal(self) -> int | None:
        """The largest number of components to try, or None without components."""
        return None if self.n_principal is None else int(np.max(self.n_principal))

    def of_groups(self) -> Recipe:
        """Return the recipe for rows in groups, which are always held out by folds of whole groups."""
        holding = self.holding.of_groups()
        return replace(self, holding=holding, n_folds=holding.n_folds)

    def resumed(self, seed: int, normalize: Normalization | None) -> Recipe:
        """Return the recipe with the seed and the fitted normalisation of the fit which is resumed."""
        return replace(self, seed=seed, normalize=normalize)

    def fitted_to(self, source: Source) -> Recipe:
        """Return the recipe with its normalisation fitted to the rows of a source."""
        return self if self.normalize is None else replace(self, normalize=self.normalize.fitted(source))


Recipe = CheckedRecipe


def checked_recipe(
    given: Parameters,
    *,
    estimator: str,
    design: Design,
    codec: type[Codec],
    objective: Objective,
    alpha: str | float | Sequence[float],
    selection: object,
    n_principal: int | Sequence[int] | None,
    normalize: str | Sequence[str | None] | None,
    precision: str,
    device: str,
    memory: str | int,
    seed: int,
) -> Recipe:
    """Check the settings of an estimator and return them as a recipe.

    Raises
    ------
    ValueError
        If a setting is invalid or cannot be combined with another; the message names the parameter.
    """
    check_choice(precision, "precision", PRECISIONS)
    check_device(device)
    objective.check(given)
    n_principal = checked_components(n_principal, objective)
    if _is_word(selection, "gcv") and isinstance(n_principal, tuple):
        raise InputError(
            Message("several {n_principal} are compared by folds: use {selection='auto'}, not 'gcv'.")
        )
    is_rounded = precision == "bfloat16"
    if is_rounded and n_principal is not None:
        raise InputError(
            Message(
                "{n_principal} needs features that are not rounded: use {precision='float32'} or "
                "{precision='float64'}."
            )
        )
    if not on_host(device) and isinstance(objective.loss, Observed):
        raise InputError(
            Message(
                "{device=} needs targets without missing entries and with equal weights, but some entries are "
                "missing or have a {class_weight}. Use {device='cpu'}, or fit the tasks one by one.",
                device,
            )
        )
    if not on_host(device) and objective.needs not in _ON_DEVICES:
        raise InputError(
            Message(
                "{device=} supports {loss='square'} only; got {loss=}. Use {device='cpu'}.",
                device,
                objective.loss,
            )
        )
    holding = holding_of(alpha, selection, objective, n_principal)
    return Recipe(
        estimator, given, design, codec, objective, holding.n_folds, holding, given.get("scoring"), n_principal,
        _single(normalize),
        given_weights(given),
        np.dtype("float64" if precision == "float64" else "float32"), is_rounded, device, parse_memory(memory),
        seed,
    )  # fmt: skip


def checked_alpha(alpha: Any) -> float | tuple[float, ...] | None:
    """Return one strength, several to choose from, or None for "auto". Raise ValueError for anything else."""
    if isinstance(alpha, str):
        check_choice(alpha, "alpha", ("auto",))
        return None
    if np.ndim(alpha) == 0:
        check_positive(alpha, "alpha")
        return float(alpha)
    if not len(alpha):
        raise ParameterError("alpha", alpha, "'auto', a number or several numbers")
    for strength in alpha:
        check_positive(strength, Message("each of {alpha}"))
    return tuple(float(strength) for strength in alpha)


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


def _single(normalize: str | Sequence[str | None] | None) -> Normalization | None:
    """Return the normalisation of a fit. Raise ValueError for several, which need a race."""
    named = checked_normalizations(normalize)
    if len(named) > 1:
        raise InputError(
            Message(
                "several {normalize} are compared by the race of HistogramClassifier and HistogramRegressor: give one."
            )
        )
    return named[0]


def given_weights(given: Parameters) -> np.ndarray | None:
    """Return the bin weights among an estimator's parameters; None for equal weights, and if they are a word."""
    weights = given.get("bin_weights")
    return None if weights is None or isinstance(weights, str) else np.asarray(weights, dtype=np.float64)


def _is_word(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word


def holding_of(
    alpha: str | float | Sequence[float],
    selection: object,
    objective: Objective,
    n_principal: int | Sequence[int] | None,
) -> HoldingOut:
    """Return which rows are held out to choose alpha and, where several are given, the number of components."""
    chosen = checked_alpha(alpha)
    if objective.leaves_out:
        return leaving_out(selection)
    is_fixed = isinstance(chosen, float) and not isinstance(n_principal, tuple)
    is_automatic = _is_word(selection, "auto")
    return holding_out(
        selection,
        is_fixed=is_fixed,
        has_gcv=objective.has_gcv and not (is_automatic and n_principal is not None),
        has_score=objective.has_gcv,
        by_name=Message("{loss='square'}; got {loss=}", objective.loss),
    )


def checked_components(n_principal: Any, objective: Objective) -> int | tuple[int, ...] | None:
    """Return one number of components, several to choose from, or None. Raise ValueError for anything else."""
    if n_principal is None or np.ndim(n_principal) == 0:
        if n_principal is not None:
            check_positive(n_principal, "n_principal", integer=True)
        return None if n_principal is None else int(n_principal)
    numbers: Sequence[int] = n_principal
    for number in numbers:
        check_positive(number, Message("each of {n_principal}"), integer=True)
    if not len(numbers) or objective.needs != "moments":
        raise InputError(
            Message(
                "several {n_principal} are compared by the folds of {loss='square'}, and there must be at least "
                "one; got {n_principal=} and {loss=}.",
                n_principal,
                objective.loss,
            )
        )
    return tuple(int(number) for number in numbers)
