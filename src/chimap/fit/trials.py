"""Quick trials of a machine on some rows, scored on others: what a race compares candidates by.

Settings of a machine are compared on the rows to score themselves: none are held out within the others. What machines
share is computed once: the map and the products of rows serve a kernel and its exponential form, and one matrix of
products every gamma.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Protocol

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays, _threads
from chimap._validation import DataError
from chimap.features.additive.base import keeps_zeros, mapped
from chimap.features.base import FeatureSettings
from chimap.features.exact import (
    ExactFeatures,
    KeptRows,
    exponentials,
    exponentials_below,
    has_map,
    with_mean_gamma,
)
from chimap.features.scaled import Scale
from chimap.features.weighted import Half, cross_fitted_relevance, weights_of
from chimap.fit.design import PlainDesign
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.kernels import Exponential
from chimap.selection.climb import Scored, Setting, climb, mean_square
from chimap.selection.leave_one_out import OCTAVES
from chimap.selection.scoring import OutputScore
from chimap.solvers.liblinear import SEARCH_TOLERANCE, margins, usual_alpha
from chimap.solvers.observed_exact import exact_ridge

_HALF_DECADES = 12  # strengths are looked for so far from where the search begins
_OUTPUTS = 4  # that bins are relevant for: of many outputs as many random combinations
_REPEATS = 4  # divisions of the rows into halves
_LOOKED = (200, 1000)  # rows at which bins are looked at, the fewer the more bins there are
_NUMBERS = 2**22
_NEXT = ((-1, 0), (0, 1), (1, 0), (0, -1))  # half a decade of the strength, an octave of gamma

_FEW = 1200  # rows whose machine is solved for before two threads have met

Split = tuple[np.ndarray, np.ndarray]  # (rows to learn from, rows to score)


class Machine(Protocol):
    """A machine that learns from the rows of a split, at any strength and gamma.

    first: half decades from its scale at which the search begins, and goes down by decades. seconds: of its last
    outputs.
    """

    first: ClassVar[int]
    seconds: float

    def scale(self) -> float:
        """What strengths are measured by."""
        ...

    def outputs(self, alpha: float, octaves: int) -> np.ndarray | None:
        """For the rows to score, (m, t) less the shift of the targets; None where rounding allows no solution."""
        ...


@dataclass(frozen=True, eq=False)
class Products:
    """u_i'u_j of mapped rows below the diagonal (n, n), |u_i|^2, and products with the rows to score (m, n)."""

    square: np.ndarray
    squares: np.ndarray
    cross: np.ndarray
    cross_squares: np.ndarray
    train: KeptRows
    seconds: float

    @classmethod
    def of(cls, features: ExactFeatures, split: Split) -> Products:
        """Of the kept rows of an additive kernel."""
        train, test = (features.rows_.take(rows) for rows in split)
        square = np.empty((train.n_rows, train.n_rows), train.squares.dtype)
        cross = np.empty((test.n_rows, train.n_rows), train.squares.dtype)
        began = time.perf_counter()
        train.products_with(test, cross)
        seconds = time.perf_counter() - began
        train.gram_into(square, None)
        return cls(square, train.squares, cross, test.squares, train, seconds)


class KernelMachine:
    """Ridge on the kernel matrix: of the additive kernel, or where gamma is given of its exponential form."""

    first: ClassVar[int] = -2

    def __init__(
        self, products: Products, gamma: float | None, Y: np.ndarray, row_weights: np.ndarray | None
    ):
        self.products, self.gamma, self.Y, self.row_weights = products, gamma, Y, row_weights
        self._octaves: int | None = None
        self.seconds = 0.0

    def scale(self) -> float:
        """See ``Machine``: the mean scatter of a row."""
        self._prepare(0)
        return max(self._ridge.scale(), float(np.finfo(np.float32).eps))

    def outputs(self, alpha: float, octaves: int) -> np.ndarray | None:
        """See ``Machine``."""
        self._prepare(octaves)
        solution = self._ridge.solve(alpha)
        if solution is None:
            return None
        began = time.perf_counter()
        out = self._cross @ solution.weights.astype(self._cross.dtype)
        self.seconds = self._preparing + time.perf_counter() - began
        return np.asarray(out.astype(np.float64) + solution.intercept)

    def relevance(self, alpha: float, octaves: int, seed: int) -> np.ndarray:
        """Of the mapped coordinates (p,), by machines on halves of the rows; see ``cross_fitted_relevance``."""
        self._prepare(octaves)
        kept, n, rng = self.products.train, self.Y.shape[0], np.random.default_rng(seed)
        values = np.tril(self._ridge.square, -1)
        values += values.T
        values[np.diag_indices(n)] = self._diagonal
        centres, total = kept.joined(), np.zeros(kept.n_columns)
        signs = _signs(self.Y.shape[1], rng)
        looked = int(np.clip(_NUMBERS // kept.n_columns, *_LOOKED))
        for _ in range(_REPEATS):
            order = rng.permutation(n)
            halves = [
                self._half(np.sort(part), values, centres, alpha, signs, looked)
                for part in (order[: n // 2], order[n // 2 :])
            ]
            total += cross_fitted_relevance(*halves)
        return total / _REPEATS

    def _half(
        self, rows: np.ndarray, values: np.ndarray, centres: Any, alpha: float, signs: np.ndarray, looked: int
    ) -> Half:
        weights = None if self.row_weights is None else self.row_weights[rows]
        square = np.ascontiguousarray(values[np.ix_(rows, rows)])
        machine = exact_ridge(square, self._diagonal[rows], self.Y[rows], weights, leaves_out=False)
        solution = machine.solve(alpha)
        # a half whose matrix is singular to rounding says nothing of the bins
        weights_of_rows = np.zeros((rows.size, signs.shape[0])) if solution is None else solution.weights
        coef = (weights_of_rows @ signs).astype(values.dtype)
        at = np.ones((1, rows.size), values.dtype) if self.gamma is None else values[:looked, rows]
        return Half(_arrays.take_rows(centres, rows), coef, at)

    def _prepare(self, octaves: int) -> None:
        """Values of the kernel at this gamma."""
        if octaves == self._octaves:
            return
        given = self.products
        square, cross, diagonal, began = given.square.copy(), given.cross, given.squares, time.perf_counter()
        if self.gamma is not None:
            gamma, cross = self.gamma * 2.0**octaves, cross.copy()
            exponentials(cross, given.cross_squares, given.squares, gamma)
            self._preparing = given.seconds + time.perf_counter() - began
            exponentials_below(square, given.squares, gamma)
            diagonal = np.ones(given.squares.size)
        else:
            self._preparing = given.seconds
        self._diagonal = diagonal.astype(np.float64)
        self._ridge = exact_ridge(square, self._diagonal, self.Y, self.row_weights, leaves_out=False)
        self._cross, self._octaves = cross, octaves


class MarginMachine:
    """LIBLINEAR on features Z and those of the rows to score."""

    first: ClassVar[int] = 0  # of weaker penalties it takes many times as long

    def __init__(self, Z: Any, others: Any, Y: np.ndarray, row_weights: np.ndarray | None, seed: int):
        self.Z, self.others, self.Y, self.seed = Z, others, np.nan_to_num(Y), seed
        self.row_weights = np.ones(Y.shape[0]) if row_weights is None else row_weights
        self.seconds = 0.0

    def scale(self) -> float:
        """See ``Machine``."""
        return usual_alpha(self.Z, self.row_weights)

    def outputs(self, alpha: float, octaves: int) -> np.ndarray:
        """See ``Machine``."""
        found = margins(self.Z, self.Y, self.row_weights, alpha, SEARCH_TOLERANCE, self.seed, lambda: None)
        began = time.perf_counter()
        out = np.asarray(self.others @ found.coef + found.intercept, dtype=np.float64)
        self.seconds = time.perf_counter() - began
        return out


def _signs(n_outputs: int, rng: np.random.Generator) -> np.ndarray:
    """(t, k): combinations of many outputs, whose products have the same expected sum; few outputs stay."""
    if n_outputs <= _OUTPUTS:
        return np.eye(n_outputs)
    return np.asarray(rng.choice([-1.0, 1.0], size=(n_outputs, _OUTPUTS)) / np.sqrt(_OUTPUTS))


@dataclass(frozen=True)
class Fitted:
    """The best setting of a machine, its mean score, and outputs for the rows to score of each split.

    gamma: of rows as they come; None where the kernel has none. seconds: of the outputs for one row. machines: of the
    splits.
    """

    setting: Setting
    score: float
    outputs: list[np.ndarray]
    alpha: float
    gamma: float | None
    seconds: float
    machines: Sequence[Machine]

    def learned_weights(self, weights: np.ndarray, seed: int) -> np.ndarray:
        """The next weights (bins,), by the machine of the only split, which has these."""
        (machine,) = self.machines
        if not isinstance(machine, KernelMachine):
            raise TypeError("margins are not weighed")
        by_term = machine.relevance(self.alpha, self.setting[1], seed).reshape(-1, weights.size)
        # u = sqrt(w) psi, so df/dpsi = sqrt(w) df/du
        return weights_of(weights * by_term.sum(axis=0), weights)


@dataclass
class Trials:
    """Machines on a sample of rows, which share what can be shared.

    rows, y: the sample. codec: of its labels. score: of outputs. row_weights (n,), or None. dtype: of the products.
    alphas: to choose from, or None for a search. n_terms: of the maps. Machines of one kernel and normalisation share
    most if they come one after the other.
    """

    rows: Any
    y: np.ndarray
    codec: Codec
    score: OutputScore
    row_weights: np.ndarray | None
    dtype: np.dtype
    alphas: Sequence[float] | None
    n_terms: int | str
    seed: int
    _last: dict[str, Any] = field(default_factory=dict)  # kept of one kernel and normalisation

    def __post_init__(self) -> None:
        self.Y = np.asarray(self.codec.encode(self.y), dtype=np.float64)

    @classmethod
    def weighs(cls, settings: dict[str, Any]) -> bool:
        """Whether such a machine says which bins matter."""
        return cls.takes(settings) and settings.get("features") == "exact"

    @staticmethod
    def takes(settings: dict[str, Any]) -> bool:
        """Whether these settings of an estimator are those of a machine that is tried here."""
        if settings.get("features") == "additive":
            return bool(settings.get("loss") == "hinge")
        is_exact = settings.get("features") == "exact" and settings.get("loss") == "square"
        return is_exact and has_map(FeatureSettings(settings["kernel"]).exact)

    def best(self, settings: dict[str, Any], splits: Sequence[Split], start: Setting | None) -> Fitted:
        """The best strength and gamma of a machine, looked for from a setting on that was best of fewer rows.

        Raises DataError for rows that the kernel does not take, and where no setting can be solved.
        """
        if settings.get("features") == "additive":
            machines, gamma = self._margins(settings, splits), None
        else:
            machines, gamma = self._kernels(settings, splits)
        chooses = gamma is not None and settings.get("gamma") == "auto"
        search = Search(machines, splits, self.Y, self.codec.shift, self.score, self.alphas, chooses)
        found = search.best(start)
        n_scored = sum(test.size for _, test in splits)
        return replace(
            found, gamma=None if gamma is None else gamma * 2.0 ** found.setting[1],
            seconds=sum(machine.seconds for machine in machines) / max(1, n_scored),
        )  # fmt: skip

    def _kernels(
        self, settings: dict[str, Any], splits: Sequence[Split]
    ) -> tuple[list[Machine], float | None]:
        """(machines, gamma of rows as they come where octaves are 0)."""
        wanted = settings.get("gamma", "mean")
        kernel = FeatureSettings(settings["kernel"], "mean" if wanted == "auto" else wanted).exact
        base = kernel.kernel if isinstance(kernel, Exponential) else kernel
        features, scale = self._kept(base, settings.get("normalize"), settings.get("bin_weights"))
        rows = tuple(hash(train.tobytes()) for train, _ in splits)
        if self._last.get("rows") != rows:
            self._last |= {"rows": rows, "products": [Products.of(features, split) for split in splits]}
        gamma = outer = None
        if isinstance(kernel, Exponential):
            scaled = with_mean_gamma(kernel.rescaled(scale.factor), features.rows_)
            gamma, outer = float(scaled.gamma), float(scaled.rescaled(1 / scale.factor).gamma)
        products = zip(self._last["products"], splits, strict=True)
        return [
            KernelMachine(one, gamma, self.Y[train], self._weights(train)) for one, (train, _) in products
        ], outer

    def _kept(
        self, base: Any, normalize: str | None, bin_weights: np.ndarray | None
    ) -> tuple[ExactFeatures, Scale]:
        """Mapped rows of an additive kernel, and the scale of the rows before."""
        key = base.name, normalize, None if bin_weights is None else bin_weights.tobytes()
        if self._last.get("key") != key:
            self._last.clear()
            rows = self._prepared(FeatureSettings(base), normalize, bin_weights)
            scale = Scale.of(rows, [base])
            n_terms = 1 if isinstance(self.n_terms, str) else self.n_terms
            features = ExactFeatures(scale.kernel(base), n_terms=n_terms, random_state=self.seed)
            features.fit(scale.rows(rows) if scale.exponent else rows)
            self._last = {"key": key, "features": features, "scale": scale}
        return self._last["features"], self._last["scale"]

    def _margins(self, settings: dict[str, Any], splits: Sequence[Split]) -> list[Machine]:
        features = FeatureSettings(settings["kernel"], features="additive", n_terms=self.n_terms)
        rows = self._prepared(features, settings.get("normalize"), settings.get("bin_weights"))
        fitted = PlainDesign(features).fit(rows, self.seed)
        Z = mapped(fitted, _arrays.to_sparse(rows) if keeps_zeros(fitted) else rows)
        return [
            MarginMachine(
                _arrays.take_rows(Z, train),
                _arrays.take_rows(Z, test),
                self.Y[train],
                self._weights(train),
                self.seed,
            )
            for train, test in splits
        ]

    def _weights(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.row_weights is None else self.row_weights[rows]

    def _prepared(
        self, settings: FeatureSettings, normalize: str | None, bin_weights: np.ndarray | None
    ) -> Any:
        parts = PlainDesign(settings).parts(self.rows.shape[1])
        return Preparation(parts, self.dtype, normalize, bin_weights)(self.rows, 0, "the sample of the race")


@dataclass
class Search:
    """The best setting of machines on splits by the mean score of the rows to score.

    machines, splits: in one order. Y (n, t): targets less ``shift``. score: of outputs for rows. alphas: to choose
    from, or None for half decades about the scale of the first machine. Of equal scores that of the smaller error.
    """

    machines: Sequence[Machine]
    splits: Sequence[Split]
    Y: np.ndarray
    shift: np.ndarray
    score: OutputScore
    alphas: Sequence[float] | None
    chooses_gamma: bool

    def best(self, start: Setting | None) -> Fitted:
        """Uphill from a setting, or (None) from where the search begins down by decades.

        Raises DataError where no setting can be solved.
        """
        self._scale = self.machines[0].scale()
        self._tried: dict[Setting, tuple[Scored, list[np.ndarray]]] = {}
        found = climb(self._better, start or self._downhill(), _NEXT if self.chooses_gamma else _NEXT[::2])
        trial = self._trial(found)
        if trial is None or not np.isfinite(trial[0].score):
            raise DataError(
                "none of the strengths has a score: the matrix is singular to rounding, or the score is not a number"
            )
        alpha = self._alpha(found[0])
        return Fitted(
            found, trial[0].score, trial[1], np.nan if alpha is None else alpha, None, 0.0, self.machines
        )

    def _downhill(self) -> Setting:
        if self.alphas is not None:
            return len(self.alphas) - 1, 0
        best = (self.machines[0].first, 0)
        while self._better((best[0] - 2, 0), best):
            best = best[0] - 2, 0
        return best

    def _alpha(self, place: int) -> float | None:
        if self.alphas is None:
            return self._scale * 10 ** (place / 2) if abs(place) <= _HALF_DECADES else None
        return float(self.alphas[place]) if 0 <= place < len(self.alphas) else None

    def _better(self, setting: Setting, best: Setting) -> bool:
        one, other = self._trial(setting), self._trial(best)
        return one is not None and other is not None and one[0].beats(other[0])

    def _trial(self, setting: Setting) -> tuple[Scored, list[np.ndarray]] | None:
        """How a setting fares, and its outputs; None out of range."""
        alpha = self._alpha(setting[0])
        if alpha is None or abs(setting[1]) > OCTAVES:
            return None
        if setting not in self._tried:
            self._tried[setting] = self._score(alpha, setting[1])
        return self._tried[setting]

    def _score(self, alpha: float, octaves: int) -> tuple[Scored, list[np.ndarray]]:
        few = max(train.size for train, _ in self.splits) <= _FEW
        with (
            warnings.catch_warnings(),
            _threads.one_thread() if few and len(self.machines) == 1 else nullcontext(),
        ):
            # a machine that LIBLINEAR left early is a candidate as it is: its score on the rows held out decides
            warnings.simplefilter("ignore", ConvergenceWarning)
            found = _threads.tasks(self.machines, lambda machine: machine.outputs(alpha, octaves))
        outputs = [one + self.shift for one in found if one is not None]
        if len(outputs) < len(found):
            return Scored(-np.inf, np.inf), []
        tests = [test for _, test in self.splits]
        pairs = list(zip(outputs, tests, strict=True))
        error = np.mean([self._error(one - self.shift, test) for one, test in pairs])
        score = float(np.mean([self.score(one, test) for one, test in pairs]))
        return Scored(score if np.isfinite(score) else -np.inf, float(error)), outputs

    def _error(self, outputs: np.ndarray, rows: np.ndarray) -> float:
        """Mean squared, by the weights of the rows."""
        weights = None if self.score.sample_weight is None else self.score.sample_weight[rows]
        return mean_square(outputs - self.Y[rows], weights)
