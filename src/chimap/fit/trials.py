"""Quick trials of a machine on some rows, scored on others: what a race compares candidates by.

Settings of a machine are compared on the rows to score themselves: none are held out within the others. What machines
share is computed once: the map and the products of rows serve a kernel and its exponential form, and one matrix of
products every gamma.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._types import Parameters, Rows
from chimap.features.additive.base import keeps_zeros, mapped
from chimap.features.base import FeatureSettings
from chimap.features.exact import ExactFeatures, has_map, with_mean_gamma
from chimap.features.scaled import Scale
from chimap.fit.design import PlainDesign
from chimap.fit.rows import Preparation
from chimap.fit.targets import Codec
from chimap.fit.trial_machines import KernelMachine, Machine, MarginMachine, Products, Split
from chimap.fit.trial_search import Fitted, LooksOn, Search
from chimap.kernels import Exponential
from chimap.selection.climb import Setting
from chimap.selection.scoring import OutputScore

_EACH = 0.05  # seconds of a trial beside what is counted: maps, scores


@dataclass
class Trials:
    """Machines on a sample of rows, which share what can be shared.

    rows, y: the sample, of which a trial maps what it takes. codec: of its labels. score: of outputs. row_weights (n,),
    or None. dtype: of the products. alphas: to choose from, or None for a search. n_terms: of the maps. room: bytes for
    mapped rows, beyond which those of the first kernel are let go. Machines of one kernel and normalisation share most
    one after the other. work: of all that was tried, see ``Machine``.
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
    room: int = 2**27
    work: float = 0.0
    _mapped: dict[tuple[object, ...], tuple[ExactFeatures, Scale]] = field(
        default_factory=dict
    )  # by kernel and normalisation
    _products: tuple[object, list[Products]] = (None, [])  # of the last of these, and of splits

    def __post_init__(self) -> None:
        self.Y = np.asarray(self.codec.encode(self.y), dtype=np.float64)

    def let_go(self) -> None:
        """Free what trials share: the next one makes it again."""
        self._mapped.clear()
        self._products = None, []

    @classmethod
    def weighs(cls, settings: Parameters) -> bool:
        """Whether such a machine says which bins matter."""
        return cls.takes(settings) and settings.get("features") == "exact"

    @staticmethod
    def takes(settings: Parameters) -> bool:
        """Whether these settings of an estimator are those of a machine that is tried here."""
        if settings.get("features") == "additive":
            return bool(settings.get("loss") == "hinge")
        is_exact = settings.get("features") == "exact" and settings.get("loss") == "square"
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
        taken, places = _taken(splits)
        features, scale = self._kept(base, settings.get("normalize"), settings.get("bin_weights"), taken)
        of = id(features), tuple(hash(train.tobytes()) for train, _ in splits)
        if self._products[0] != of:
            self._products = None, []  # let go before there are others
            self._products = of, [Products.of(features, split) for split in places]
            self.work += sum(products.work for products in self._products[1])
        gamma = outer = None
        if isinstance(kernel, Exponential):
            scaled = with_mean_gamma(kernel.rescaled(scale.factor), features.rows_)
            gamma, outer = float(scaled.gamma), float(scaled.rescaled(1 / scale.factor).gamma)
        products = zip(self._products[1], splits, strict=True)
        return [
            KernelMachine(one, gamma, self.Y[train], self._weights(train)) for one, (train, _) in products
        ], outer

    def _kept(
        self, base: Any, normalize: str | None, bin_weights: np.ndarray | None, taken: np.ndarray
    ) -> tuple[ExactFeatures, Scale]:
        """Mapped rows, those that are taken of the sample, of an additive kernel, and the scale of the rows before."""
        weighed = None if bin_weights is None else bin_weights.tobytes()
        key = base.name, normalize, weighed, hash(taken.tobytes())
        if key not in self._mapped:
            rows = self._prepared(FeatureSettings(base), normalize, bin_weights, taken)
            scale = Scale.of(rows, [base])
            features = ExactFeatures(scale.kernel(base), n_terms=self._terms, random_state=self.seed)
            features.fit(scale.rows(rows) if scale.exponent else rows)
            while self._mapped and self._kept_bytes + features.rows_.nbytes > self.room:
                del self._mapped[next(iter(self._mapped))]  # the oldest
            self._mapped[key] = features, scale
        return self._mapped[key]

    @property
    def _kept_bytes(self) -> int:
        return sum(features.rows_.nbytes for features, _ in self._mapped.values())

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
