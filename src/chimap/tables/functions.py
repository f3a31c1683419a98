"""The functions of single bins that an additive model is the sum of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from chimap.features.additive import AdditiveMap
from chimap.features.blocks import BlockFeatures

_BEYOND = 2.0  # how far above the largest value that the fit has seen


@dataclass(frozen=True, eq=False)
class Part:
    """An additive map of some columns, and the weights (n_terms, columns, t) of its features."""

    map: AdditiveMap
    columns: np.ndarray
    weights: np.ndarray


class BinFunctions:
    """g_ic with f_c(x) = b_c + sum_i sign(x_i) g_ic(|x_i|), of a linear model on additive features.

    features : a fitted additive map, or ``BlockFeatures`` of such. coef : weights of the features, (D, t).

    Raises ValueError for features that are not a sum over bins.

    >>> import numpy as np
    >>> from chimap import OptimalMap
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    >>> psi, coef = OptimalMap(n_terms=2).fit(X), np.ones((8, 1))
    >>> g = BinFunctions(psi, coef)
    >>> values = g(X, np.arange(4))
    >>> values.shape, bool(abs(values.sum(axis=1) - psi.transform(X) @ coef).max() < 1e-12)
    ((50, 4, 1), True)
    """

    def __init__(self, features: Any, coef: np.ndarray):
        self.n_bins, self.n_outputs = int(features.n_features_in_), coef.shape[1]
        self.parts = _parts(features, coef)
        signed = [part.map.kernel_.is_signed for part in self.parts]
        self.is_signed, self.is_mixed = any(signed), any(signed) and not all(signed)

    @property
    def tops(self) -> np.ndarray:
        """Twice the largest magnitude that the maps were fitted on in each bin, (bins,); never 0.

        Bins that were seldom filled may hold more than a sample of them showed: up to half of the largest of all bins,
        but not more than sixteen times their own.
        """
        largest = np.zeros(self.n_bins)
        for part in self.parts:
            largest[part.columns] = np.maximum(largest[part.columns], part.map.largest_)
        usual = largest.max() or 1.0
        if not self.kinks:
            largest = np.maximum(largest, np.minimum(usual / 2, 16 * largest))
        return _BEYOND * np.where(largest > 0, largest, usual)

    @property
    def smallest(self) -> float:
        """The smallest magnitude, zero apart, that the maps were fitted on."""
        return min(part.map.smallest_ for part in self.parts)

    @property
    def kinks(self) -> set[int]:
        """Into how many equal pieces the range up to the tops falls where a map is straight within each."""
        counts = (part.map.n_straight_pieces for part in self.parts)
        return {int(_BEYOND) * count for count in counts if count}

    def __call__(self, x: np.ndarray, bins: np.ndarray) -> np.ndarray:
        """g (m, bins, t) float64 at magnitudes x (m, bins) of these bins, which are sorted."""
        out = np.zeros((*x.shape, self.n_outputs))
        for part in self.parts:
            own = np.flatnonzero((part.columns >= bins[0]) & (part.columns <= bins[-1]))
            place = np.searchsorted(bins, part.columns[own]).clip(0, bins.size - 1)
            own = own[bins[place] == part.columns[own]]
            place = np.searchsorted(bins, part.columns[own])
            if own.size == 0:
                continue
            magnitudes = np.ascontiguousarray(x[:, place], dtype=np.float64)
            features = np.empty((x.shape[0], part.weights.shape[0], own.size))
            part.map._prepare(features.dtype)
            part.map._evaluate_rows(magnitudes, own, features)
            by_bin = features.transpose(2, 0, 1) @ part.weights[:, own].transpose(1, 0, 2)
            out[:, place] += by_bin.transpose(1, 0, 2)
        return out


def _parts(features: Any, coef: np.ndarray) -> list[Part]:
    if isinstance(features, BlockFeatures):
        found = []
        for own, columns, first in zip(
            features.features_, features.columns_, features.borders_[:-1], strict=True
        ):
            found += [
                Part(part.map, columns, part.weights)
                for part in _parts(own, coef[first : first + own._n_features_out])
            ]
        return found
    if not isinstance(features, AdditiveMap):
        raise ValueError(
            f"tables hold additive models, whose score is a sum over bins; {type(features).__name__} mixes the bins. "
            "Fit with an additive kernel such as 'chi2', or export the model as ONNX."
        )
    weights = coef.reshape(features._n_terms_out, int(features.n_features_in_), -1)
    return [Part(features, np.arange(weights.shape[1]), weights)]
