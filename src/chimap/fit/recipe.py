"""The settings of a fit, checked once and frozen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
from sklearn.utils import check_random_state

from chimap._memory import parse_memory
from chimap._types import Parameters, RandomState, Scoring
from chimap._validation import check_choice, check_positive
from chimap.backends import check_device, on_host
from chimap.engines import Job, Progress, Stopwatch
from chimap.features.base import FittedFeatures
from chimap.fit.design import Design, Part
from chimap.fit.holding_out import HoldingOut, holding_out
from chimap.fit.rows import NORMALIZATIONS, Preparation
from chimap.fit.solving import Learned
from chimap.fit.targets import Codec
from chimap.losses import Loss, Observed
from chimap.solvers.base import Evidence, Needs

PRECISIONS = ("auto", "float32", "float64", "bfloat16")


class Objective(Protocol):
    """What the weights minimise, and how they are chosen. needs, n_vectors: as of ``Solver``."""

    @property
    def loss(self) -> str | Loss:
        """By name, or itself."""
        ...

    @property
    def needs(self) -> Needs:
        """Of the rows."""
        ...

    @property
    def n_vectors(self) -> int:
        """Of the size of the weights, in memory together."""
        ...

    @property
    def has_gcv(self) -> bool:
        """Whether generalised cross-validation chooses what is to be chosen, and a held-out score can."""
        ...

    def footprint(self, job: Job, parts: list[Part]) -> Job:
        """The job, with what finding the weights takes."""
        ...

    def learn(
        self, evidence: Evidence, features: FittedFeatures, clock: Stopwatch, progress: Progress
    ) -> Learned:
        """The weights of the features."""
        ...


@dataclass(frozen=True)
class Recipe:
    """How a model is fitted, whatever it is fitted to.

    estimator, given: its name and parameters as they came, which a checkpoint is known by. design: of the features.
    codec: what learns the targets. n_folds: 1 where no rows are held out, as ``holding`` says. scoring: of rows that
    are, None for accuracy and R^2. n_principal: components of each block, at most, or None. budget: bytes. dtype: of
    features as they are computed; is_rounded: to bfloat16 before they are added up. keeps_rows: whether the machine is
    the exact one of all rows. is_settled: whether a race has chosen alpha.
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
    normalize: str | None
    bin_weights: np.ndarray | None
    dtype: np.dtype
    is_rounded: bool
    device: str
    budget: int
    seed: int
    keeps_rows: bool = False
    is_settled: bool = False

    def preparation(self, parts: list[Part]) -> Preparation:
        """Of rows whose blocks these are."""
        return Preparation(parts, self.dtype, self.normalize, self.bin_weights)

    @property
    def changes_rows(self) -> bool:
        """Whether prepared rows are other numbers than those that came."""
        return self.normalize is not None or self.bin_weights is not None

    @property
    def most_principal(self) -> int | None:
        """The largest number of components that is asked for."""
        return None if self.n_principal is None else int(np.max(self.n_principal))

    def with_seed(self, seed: int) -> Recipe:
        """The same, as it was begun."""
        return replace(self, seed=seed)


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
    normalize: str | None,
    precision: str,
    device: str,
    memory: str | int,
    random_state: RandomState,
    is_settled: bool = False,
) -> Recipe:
    """A recipe from settings as an estimator was given them. Raises ValueError, naming the parameter."""
    check_choice(normalize, "normalize", (*NORMALIZATIONS, None))
    check_choice(precision, "precision", PRECISIONS)
    check_device(device)
    n_principal = checked_components(n_principal, objective)
    keeps_rows = _is_word(given.get("features"), "exact")
    _check_selection(given, selection, objective, n_principal, keeps_rows)
    is_rounded = precision == "bfloat16"
    if is_rounded and n_principal is not None:
        raise ValueError(
            "n_principal takes features as they are: use precision='float32' or precision='float64'."
        )
    if not on_host(device) and isinstance(objective.loss, Observed):
        raise ValueError(
            f"device={device!r} sums up targets all of whose entries are there and count alike, and some are missing "
            "or have a class_weight. Use device='cpu', or fit the tasks one by one."
        )
    if not on_host(device) and objective.needs != "moments":
        raise ValueError(
            f"device={device!r} makes the passes of loss='square'; got loss={objective.loss!r}. Use device='cpu'."
        )
    holding = holding_of(alpha, selection, objective, n_principal, keeps_rows)
    return Recipe(
        estimator, given, design, codec, objective, holding.n_folds, holding, given.get("scoring"), n_principal,
        normalize,
        given_weights(given),
        np.dtype("float64" if precision == "float64" else "float32"), is_rounded, device, parse_memory(memory),
        int(check_random_state(random_state).randint(2**31)), keeps_rows, is_settled,
    )  # fmt: skip


def _check_selection(
    given: Parameters,
    selection: object,
    objective: Objective,
    n_principal: int | Sequence[int] | None,
    keeps_rows: bool,
) -> None:
    """Refuse what one way of choosing alone has."""
    if keeps_rows:
        return  # which takes splitters too, and checks them with the rows
    if given.get("scoring") is not None and not objective.has_gcv:
        raise ValueError(
            f"scoring is of rows held out by loss='square'; got loss={objective.loss!r}. Leave scoring out."
        )
    if _is_word(given.get("gamma"), "auto"):
        raise ValueError("gamma='auto' is chosen by features='exact' alone, as yet; use gamma='mean'.")
    if _is_word(selection, "gcv") and isinstance(n_principal, tuple):
        raise ValueError("several n_principal are compared by folds: use selection='auto', not 'gcv'.")


def checked_alpha(alpha: Any) -> float | tuple[float, ...] | None:
    """One strength, several to choose from, or None for "auto". Raises ValueError for anything else."""
    if isinstance(alpha, str):
        check_choice(alpha, "alpha", ("auto",))
        return None
    if np.ndim(alpha) == 0:
        check_positive(alpha, "alpha")
        return float(alpha)
    for one in alpha:
        check_positive(one, "each of alpha")
    return tuple(float(one) for one in alpha)


def given_weights(given: Parameters) -> np.ndarray | None:
    """The weights of bins among the parameters of an estimator; None for equal ones, and for words."""
    weights = given.get("bin_weights")
    return None if weights is None or isinstance(weights, str) else np.asarray(weights, dtype=np.float64)


def _is_word(value: object, word: str) -> bool:
    return isinstance(value, str) and value == word


def holding_of(
    alpha: str | float | Sequence[float],
    selection: object,
    objective: Objective,
    n_principal: int | Sequence[int] | None,
    keeps_rows: bool = False,
) -> HoldingOut:
    """Rows that are held out to choose alpha, and components where there are several numbers of them."""
    chosen = checked_alpha(alpha)
    if keeps_rows:
        return HoldingOut("nothing", 1, 1)
    is_fixed = isinstance(chosen, float) and not isinstance(n_principal, tuple)
    is_automatic = _is_word(selection, "auto")
    return holding_out(
        selection,
        is_fixed=is_fixed,
        has_gcv=objective.has_gcv and not (is_automatic and n_principal is not None),
        has_score=objective.has_gcv,
        by_name=f"loss='square'; got loss={objective.loss!r}",
    )


def checked_components(n_principal: Any, objective: Objective) -> int | tuple[int, ...] | None:
    """One number of components, several to choose from, or None."""
    if n_principal is None or np.ndim(n_principal) == 0:
        if n_principal is not None:
            check_positive(n_principal, "n_principal", integer=True)
        return None if n_principal is None else int(n_principal)
    numbers: Sequence[int] = n_principal
    for number in numbers:
        check_positive(number, "each of n_principal", integer=True)
    if not len(numbers) or objective.needs != "moments":
        raise ValueError(
            "several n_principal are compared by the folds of loss='square', one of them at least; got "
            f"n_principal={n_principal!r} and loss={objective.loss!r}."
        )
    return tuple(int(number) for number in numbers)
