"""Quick trials of a machine on some rows, scored on others: the basis on which a race compares candidates.

The settings of a machine are chosen by the score on the same rows that the candidate is compared on; no other rows are
held out for this. What several machines need is computed once: a kernel and its exponential form share the map and the
products of rows, and every gamma shares one matrix of products.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Parameters, Rows
from chimap.data import ArraySource
from chimap.features.base import FeatureSettings
from chimap.features.exact import KeptRows, fitted_map, has_map, with_mean_gamma
from chimap.features.scaled import Scale
from chimap.fit.design import PlainDesign
from chimap.fit.recipe import checked_normalizations
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.kernels import Exponential
from chimap.normalizations import Normalization
from chimap.race.machines import (
    MAPPED_BYTES,
    KernelMachine,
    LeftOutMachine,
    Machine,
    MappedRows,
    MarginMachine,
    Products,
    Split,
)
from chimap.race.search import BestSetting, LooksOn, Search
from chimap.selection.climb import Setting
from chimap.selection.scoring import OutputScore
from chimap.solvers.exact_machines import has_exact_machine

_LOOKED_AT = 1000  # rows whose frequent columns are counted to estimate the size of mapped rows
_MANY = 2000  # dense rows whose maps have a feature a bin in trials
_WELL_FILLED = (
    0.15  # share of entries: pictures and descriptors have more, words, species and substructures less
)
_EACH = 0.05  # seconds of a trial that are not counted as operations: maps, scores
_NOTHING: tuple[object, Scale, list[Products]] = (None, Scale(), [])


@dataclass
class Trials:
    """Machines on a sample of rows, which share what they can.

    Consecutive machines with the same kernel, normalisation, bin weights and splits share their products.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, bins)
        The sample. A trial maps only the rows of its splits.
    y : array of shape (n,) or (n, t)
        Labels or targets.
    codec : Codec
        Encodes them.
    score : OutputScore
        Score of outputs.
    row_weights : array of shape (n,) or (n, t), or None
        Weights of the rows.
    dtype : dtype
        Precision of the products.
    alphas : sequence of float or None
        Strengths to choose from, or None for a search.
    n_terms : int or "auto"
        Features of each bin in maps.
    seed : int
        Seed of random numbers.
    numbers : array of shape (n,) or None, default=None
        Numbers of the rows in the source, which errors name; None for their places in the sample.
    work : float, default=0.0
        Estimated seconds of all trials so far, see ``Machine``.
    """

    rows: Rows
    y: np.ndarray
    codec: Codec
    score: OutputScore
    row_weights: np.ndarray | None
    dtype: np.dtype
    alphas: Sequence[float] | None
    n_terms: int | str
    seed: int
    numbers: np.ndarray | None = None
    work: float = 0.0
    # (what identifies the rows and the kernel, the scale of the rows, products of each split)
    _shared: tuple[object, Scale, list[Products]] = _NOTHING
    _normalizations: dict[str | None, Normalization | None] = field(
        default_factory=dict
    )  # fitted to the sample

    def __post_init__(self) -> None:
        self.Y = np.asarray(self.codec.encode(self.y), dtype=np.float64)

    def let_go(self) -> None:
        """Free what trials share; the next trial computes it again."""
        self._shared = _NOTHING

    def footprint(self, splits: Sequence[Split]) -> int:
        """Return the bytes of machines on these splits.

        They are the kernel values and mapped rows of each split, one block of mapped rows to score, and a copy of it.
        """
        row, size, total = KeptRows.bytes_of(self.rows[:_LOOKED_AT], self._terms), self.dtype.itemsize, 0.0
        for n, m in ((train.size, test.size) for train, test in splits):
            total += size * KernelMachine.n_values(n, m) + n * row
        return int(total + 2 * min(MAPPED_BYTES, row * max(test.size for _, test in splits)))

    def weighing_bytes(self, splits: Sequence[Split]) -> int:
        """Return the bytes of machines on these splits, and of learning bin weights from one of them at a time."""
        n = max(train.size for train, _ in splits)
        row = KeptRows.bytes_of(self.rows[:_LOOKED_AT], self._terms)
        return self.footprint(splits) + int(n * (self.dtype.itemsize * KernelMachine.RELEVANCE * n + row))

    @classmethod
    def weighs(cls, settings: Parameters) -> bool:
        """Whether the machine of these settings can learn bin weights."""
        is_ridge = settings.get("features") == "exact" and settings.get("loss") == "square"
        return is_ridge and has_map(FeatureSettings(settings["kernel"]).exact)

    @staticmethod
    def takes(settings: Parameters) -> bool:
        """Whether a trial can have these settings of an estimator."""
        if settings.get("features") == "additive":
            return bool(settings.get("loss") == "hinge")
        return settings.get("features") == "exact" and has_exact_machine(settings.get("loss", "square"))

    @staticmethod
    def leaves_out(settings: Parameters) -> bool:
        """Whether the machine of settings that ``takes`` accepts has the outputs of left-out rows in closed form."""
        return bool(settings.get("features") == "exact")

    def best(
        self,
        settings: Parameters,
        splits: Sequence[Split],
        start: Setting | None,
        looks_on: LooksOn = lambda score, outputs: True,
    ) -> BestSetting:
        """Return the best strength and gamma of a machine.

        Parameters
        ----------
        settings : dict
            Settings of an estimator that ``takes`` accepts.
        splits : sequence of (array, array)
            Rows to learn from and rows to score.
        start : tuple of int or None
            Setting to begin from, which was the best for fewer rows.
        looks_on : callable, default=lambda score, outputs: True
            Whether to search beyond ``start``, given its score and outputs.

        Raises
        ------
        DataError
            If the kernel does not accept the rows, or no setting can be solved.
        """
        if settings.get("features") == "additive":
            machines, gamma = self._margins(settings, splits), None
        else:
            machines, gamma = self._kernels(settings, splits)
        return self._searched(machines, gamma, settings, splits, start, looks_on)

    def best_left_out(
        self,
        settings: Parameters,
        groups: Sequence[np.ndarray] | None,
        start: Setting | None,
        looks_on: LooksOn = lambda score, outputs: True,
        by_error: bool = False,
    ) -> BestSetting:
        """Return the best strength and gamma of an exact machine of all rows, by its outputs for left-out rows.

        ``groups`` are adjacent rows that are left out together, and cover all rows in order; None for single rows.
        ``by_error`` takes the setting of the least squared error in place of the best score. See ``best`` for the other
        parameters, and for what it raises.
        """
        everything = np.arange(self.rows.shape[0])
        products, kernel, outer = self._kernel_of(settings, [(everything, everything[:0])])
        machine = LeftOutMachine(products[0], kernel, self.Y, self.row_weights, settings["loss"], groups)
        return self._searched(
            [machine], outer, settings, [(everything, everything)], start, looks_on, by_error
        )

    def _searched(
        self,
        machines: Sequence[Machine],
        gamma: float | None,
        settings: Parameters,
        splits: Sequence[Split],
        start: Setting | None,
        looks_on: LooksOn,
        by_error: bool = False,
    ) -> BestSetting:
        """Return the best setting of machines, one for each split."""
        chooses = gamma is not None and settings.get("gamma") == "auto"
        search = Search(
            machines,
            splits,
            self.Y,
            self.codec.shift,
            self.score,
            self.alphas,
            chooses,
            self.codec.units,
            by_error,
        )
        try:
            fitted = search.best(start, looks_on)
        finally:
            self.work += _EACH + sum(machine.work for machine in machines)
        n_scored = sum(test.size for _, test in splits)
        return replace(
            fitted, gamma=None if gamma is None else gamma * 2.0 ** fitted.setting[1],
            seconds=sum(machine.seconds for machine in machines) / max(1, n_scored),
        )  # fmt: skip

    def _kernels(self, settings: Parameters, splits: Sequence[Split]) -> tuple[list[Machine], float | None]:
        """Return the machines, and the gamma of unscaled rows that corresponds to 0 octaves."""
        products, gamma, outer = self._kernel_of(settings, splits)
        return [
            KernelMachine(split_products, gamma, self.Y[train], self._weights(train), settings["loss"])
            for split_products, (train, _) in zip(products, splits, strict=True)
        ], outer

    def _kernel_of(
        self, settings: Parameters, splits: Sequence[Split]
    ) -> tuple[list[Products], float | None, float | None]:
        """Return the products of each split, and the gamma of scaled and of unscaled rows, if the kernel has one."""
        gamma_setting = settings.get("gamma", "mean")
        kernel = FeatureSettings(
            settings["kernel"], "mean" if gamma_setting == "auto" else gamma_setting
        ).exact
        base = kernel.kernel if isinstance(kernel, Exponential) else kernel
        scale, products = self._products(base, settings.get("normalize"), settings.get("bin_weights"), splits)
        gamma = outer = None
        if isinstance(kernel, Exponential):
            first = products[0]  # each split has all rows
            assert first.train is not None
            assert first.spread is not None
            scaled = with_mean_gamma(kernel.rescaled(scale.factor), first.train, first.spread)
            gamma, outer = float(scaled.gamma), float(scaled.rescaled(1 / scale.factor).gamma)
        return products, gamma, outer

    def _products(
        self, base: Any, normalize: str | None, bin_weights: np.ndarray | None, splits: Sequence[Split]
    ) -> tuple[Scale, list[Products]]:
        """Return the products of the splits under an additive kernel, and the scale of the rows before the map."""
        weighed = None if bin_weights is None else bin_weights.tobytes()
        key = base.name, normalize, weighed, tuple(hash(part.tobytes()) for split in splits for part in split)
        if self._shared[0] != key:
            self._shared = _NOTHING  # free the old products before new ones are allocated
            taken, places = _taken(splits)
            rows = self._prepared(FeatureSettings(base), normalize, bin_weights, taken)
            scale = Scale.of(rows, [base])
            rows, kernel = scale.rows(rows), scale.kernel(base)
            if has_map(kernel):
                mapped_rows = MappedRows(fitted_map(kernel, rows, self._terms), rows)
                products = [Products.of(mapped_rows, split) for split in places]
            else:
                kernel = kernel.fitted(rows, self.seed)
                products = [Products.of_values(kernel, rows, split) for split in places]
            self._shared = key, scale, products
            self.work += sum(split_products.work for split_products in products)
        return self._shared[1:]

    @cached_property
    def _terms(self) -> int:
        """Features of each bin. For many well filled rows one is enough: it ranks kernels as two do, in half the time.

        The numbers decide and not how they are stored: a table has one winner, as an array and as a sparse matrix.
        """
        if not isinstance(self.n_terms, str):
            return self.n_terms
        if self.rows.shape[0] < _MANY:
            return 2
        n_filled, (n, n_bins) = np.count_nonzero(_arrays.stored_values(self.rows)), self.rows.shape
        return 1 if n_filled > _WELL_FILLED * n * n_bins else 2

    def _margins(self, settings: Parameters, splits: Sequence[Split]) -> list[Machine]:
        """Return LIBLINEAR machines on the features of an additive map."""
        features = FeatureSettings(settings["kernel"], features="additive", n_terms=self.n_terms)
        taken, places = _taken(splits)
        rows = self._prepared(features, settings.get("normalize"), settings.get("bin_weights"), taken)
        fitted = PlainDesign(features).fit(rows, self.seed)
        Z = fitted.mapped(_arrays.to_sparse(rows) if fitted.keeps_zeros else rows)
        return [
            MarginMachine(
                _arrays.take_rows(Z, train),
                _arrays.take_rows(Z, test),
                self.Y[taken[train]],
                self._weights(taken[train]),
                self.seed,
            )
            for train, test in places
        ]

    def _weights(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.row_weights is None else self.row_weights[rows]

    def _prepared(
        self,
        settings: FeatureSettings,
        normalize: str | None,
        bin_weights: np.ndarray | None,
        taken: np.ndarray,
    ) -> Any:
        """Return the rows that are taken, checked and normalised."""
        parts, rows = PlainDesign(settings).parts(self.rows.shape[1]), self.rows
        if taken.size < rows.shape[0]:
            rows = _arrays.take_rows(rows, taken)
        numbers = taken if self.numbers is None else self.numbers[taken]
        normalization = self.normalization(normalize)
        return Preparation(parts, self.dtype, normalization, bin_weights)(
            rows, numbers, "the sample of the race"
        )

    def normalization(self, name: str | None) -> Normalization | None:
        """Return a normalisation, fitted to the sample: to more rows than a split learns from, but to no labels."""
        if name not in self._normalizations:
            source = ArraySource(self.rows)
            source.weights = self.row_weights
            (unfitted,) = checked_normalizations(name)
            self._normalizations[name] = None if unfitted is None else unfitted.fitted(source)
        return self._normalizations[name]


def _taken(splits: Sequence[Split]) -> tuple[np.ndarray, list[Split]]:
    """Return the rows that the splits use, ascending, and the splits as places among these."""
    taken = np.unique(np.concatenate([part for split in splits for part in split]))
    return taken, [(np.searchsorted(taken, train), np.searchsorted(taken, test)) for train, test in splits]
