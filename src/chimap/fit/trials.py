"""Quick trials of a machine on some rows, scored on others: what a race compares candidates by.

Settings of a machine are compared on the rows to score themselves: none are held out within the others. What machines
share is computed once: the map and the products of rows serve a kernel and its exponential form, and one matrix of
products every gamma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Parameters, Rows
from chimap.features.additive.base import keeps_zeros, mapped
from chimap.features.base import FeatureSettings
from chimap.features.exact import KeptRows, fitted_map, has_map, with_mean_gamma
from chimap.features.scaled import Scale
from chimap.fit.design import PlainDesign
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.fit.trial_machines import (
    MAPPED_BYTES,
    KernelMachine,
    Machine,
    MappedRows,
    MarginMachine,
    Products,
    Split,
)
from chimap.fit.trial_search import Fitted, LooksOn, Search
from chimap.kernels import Exponential
from chimap.selection.climb import Setting
from chimap.selection.scoring import OutputScore
from chimap.solvers.exact_machines import has_exact_machine

_LOOKED_AT = 1000  # rows whose frequent columns are counted, to judge what mapped rows take
_EACH = 0.05  # seconds of a trial beside what is counted: maps, scores
_NOTHING: tuple[object, Scale, list[Products]] = (None, Scale(), [])


@dataclass
class Trials:
    """Machines on a sample of rows, which share what can be shared.

    rows, y: the sample, of which a trial maps what it takes. codec: of its labels. score: of outputs. row_weights (n,),
    or None. dtype: of the products. alphas: to choose from, or None for a search. n_terms: of the maps. Machines of one
    kernel, normalisation and split share their products one after the other. work: of all that was tried, see
    ``Machine``.
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
    work: float = 0.0
    _shared: tuple[object, Scale, list[Products]] = (
        _NOTHING  # of which rows; the scale of them; of the splits
    )

    def __post_init__(self) -> None:
        self.Y = np.asarray(self.codec.encode(self.y), dtype=np.float64)

    def let_go(self) -> None:
        """Free what trials share: the next one makes it again."""
        self._shared = _NOTHING

    def footprint(self, splits: Sequence[Split]) -> int:
        """Bytes of machines of splits: of each its values and mapped rows, of one the rows to score that are mapped
        together, and a copy."""
        row, size, total = KeptRows.bytes_of(self.rows[:_LOOKED_AT], self._terms), self.dtype.itemsize, 0.0
        for n, m in ((train.size, test.size) for train, test in splits):
            total += size * KernelMachine.n_values(n, m) + n * row
        return int(total + 2 * min(MAPPED_BYTES, row * max(test.size for _, test in splits)))

    @classmethod
    def weighs(cls, settings: Parameters) -> bool:
        """Whether such a machine says which bins matter."""
        return (
            cls.takes(settings) and settings.get("features") == "exact" and settings.get("loss") == "square"
        )

    @staticmethod
    def takes(settings: Parameters) -> bool:
        """Whether these settings of an estimator are those of a machine that is tried here."""
        if settings.get("features") == "additive":
            return bool(settings.get("loss") == "hinge")
        is_exact = settings.get("features") == "exact" and has_exact_machine(settings.get("loss", "square"))
        return is_exact and has_map(FeatureSettings(settings["kernel"]).exact)

    def best(
        self,
        settings: Parameters,
        splits: Sequence[Split],
        start: Setting | None,
        looks_on: LooksOn = lambda score, outputs: True,
    ) -> Fitted:
        """The best strength and gamma of a machine, looked for from a setting on that was best of fewer rows.

        looks_on: whether to look beyond that setting.

        Raises DataError for rows that the kernel does not take, and where no setting can be solved.
        """
        if settings.get("features") == "additive":
            machines, gamma = self._margins(settings, splits), None
        else:
            machines, gamma = self._kernels(settings, splits)
        chooses = gamma is not None and settings.get("gamma") == "auto"
        search = Search(machines, splits, self.Y, self.codec.shift, self.score, self.alphas, chooses)
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
        """(machines, gamma of rows as they come where octaves are 0)."""
        wanted = settings.get("gamma", "mean")
        kernel = FeatureSettings(settings["kernel"], "mean" if wanted == "auto" else wanted).exact
        base = kernel.kernel if isinstance(kernel, Exponential) else kernel
        scale, products = self._products(base, settings.get("normalize"), settings.get("bin_weights"), splits)
        gamma = outer = None
        if isinstance(kernel, Exponential):
            first = products[0]  # whose rows are those of all splits
            scaled = with_mean_gamma(kernel.rescaled(scale.factor), first.train, first.spread)
            gamma, outer = float(scaled.gamma), float(scaled.rescaled(1 / scale.factor).gamma)
        each = zip(products, splits, strict=True)
        return [
            KernelMachine(one, gamma, self.Y[train], self._weights(train), settings["loss"])
            for one, (train, _) in each
        ], outer

    def _products(
        self, base: Any, normalize: str | None, bin_weights: np.ndarray | None, splits: Sequence[Split]
    ) -> tuple[Scale, list[Products]]:
        """Products of the splits under an additive kernel, and the scale of the rows before the map."""
        weighed = None if bin_weights is None else bin_weights.tobytes()
        of = base.name, normalize, weighed, tuple(hash(part.tobytes()) for split in splits for part in split)
        if self._shared[0] != of:
            self._shared = _NOTHING  # let go before there are others
            taken, places = _taken(splits)
            rows = self._prepared(FeatureSettings(base), normalize, bin_weights, taken)
            scale = Scale.of(rows, [base])
            rows = scale.rows(rows) if scale.exponent else rows
            mapped_rows = MappedRows(fitted_map(scale.kernel(base), rows, self._terms), rows)
            products = [Products.of(mapped_rows, split) for split in places]
            self._shared = of, scale, products
            self.work += sum(one.work for one in products)
        return self._shared[1:]

    @property
    def _terms(self) -> int:
        """Features a bin: of dense rows one, which ranks kernels as two do in half the time."""
        if not isinstance(self.n_terms, str):
            return self.n_terms
        return 2 if _arrays.is_sparse(self.rows) else 1

    def _margins(self, settings: Parameters, splits: Sequence[Split]) -> list[Machine]:
        features = FeatureSettings(settings["kernel"], features="additive", n_terms=self.n_terms)
        taken, places = _taken(splits)
        rows = self._prepared(features, settings.get("normalize"), settings.get("bin_weights"), taken)
        fitted = PlainDesign(features).fit(rows, self.seed)
        Z = mapped(fitted, _arrays.to_sparse(rows) if keeps_zeros(fitted) else rows)
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
        parts, rows = PlainDesign(settings).parts(self.rows.shape[1]), self.rows
        if taken.size < rows.shape[0]:
            rows = _arrays.take_rows(rows, taken)
        return Preparation(parts, self.dtype, normalize, bin_weights)(rows, 0, "the sample of the race")


def _taken(splits: Sequence[Split]) -> tuple[np.ndarray, list[Split]]:
    """(rows of the sample that splits take, ascending, the splits by their places among these)."""
    taken = np.unique(np.concatenate([part for split in splits for part in split]))
    return taken, [(np.searchsorted(taken, train), np.searchsorted(taken, test)) for train, test in splits]
