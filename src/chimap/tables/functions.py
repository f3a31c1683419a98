"""The functions of single bins whose sum is an additive model."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._errors import InputError
from chimap.features.additive import AdditiveMap
from chimap.features.base import FittedFeatures
from chimap.features.blocks import BlockFeatures

_BEYOND = 2.0  # end of the tables as a multiple of the largest value in the fit


@dataclass(frozen=True, eq=False)
class AdditivePart:
    """An additive map of some columns, and the weights (n_terms, columns, t) of its features."""

    map: AdditiveMap
    columns: np.ndarray
    weights: np.ndarray


class BinFunctions:
    """The functions g_ic with f_c(x) = b_c + sum_i sign(x_i) g_ic(|x_i|) of a linear model on additive features.

    Parameters
    ----------
    features : FittedFeatures
        A fitted additive map, or ``BlockFeatures`` of additive maps.
    coef : ndarray of shape (D, t)
        Weights of the features.

    Raises
    ------
    ValueError
        If the features are not a sum over bins.

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import OptimalMap
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=50)
    >>> psi, coef = OptimalMap(n_terms=2).fit(X), np.ones((8, 1))
    >>> g = BinFunctions(psi, coef)
    >>> values = g(X, np.arange(4))
    >>> values.shape, bool(abs(values.sum(axis=1) - psi.transform(X) @ coef).max() < 1e-12)
    ((50, 4, 1), True)
    """

    def __init__(self, features: FittedFeatures, coef: np.ndarray):
        self.n_bins, self.n_outputs = int(features.n_features_in_), coef.shape[1]
        self.parts = _parts(features, coef)
        signed = [part.map.kernel_.is_signed for part in self.parts]
        self.is_signed, self.is_mixed = any(signed), any(signed) and not all(signed)

    @property
    def tops(self) -> np.ndarray:
        """End of the table of each bin, (bins,), never 0: twice the largest magnitude in the fit of the maps.

        Bins that were seldom filled may hold larger values than a sample of them showed. Unless a map is straight in
        pieces (``kinks``), their largest magnitude is therefore raised to half of that of all bins, but to no more than
        sixteen times its value.
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
        """Smallest magnitude except zero in the fit of the maps."""
        return min(part.map.smallest_ for part in self.parts)

    @property
    def kinks(self) -> set[int]:
        """Numbers of equal pieces of the range up to the tops within each of which a map is straight."""
        counts = (part.map.n_straight_pieces for part in self.parts)
        return {int(_BEYOND) * count for count in counts if count}

    def __call__(self, x: np.ndarray, bins: np.ndarray) -> np.ndarray:
        """Return g (m, bins, t) float64 at magnitudes x (m, bins) of the given bins, which are sorted."""
        out = np.zeros((*x.shape, self.n_outputs))
        for part in self.parts:
            out += self._of_part(part, x, bins)
        return out

    def sums(self, places: np.ndarray) -> PlaceSums:
        """Return the function x (m, k) -> sum_j g_places[p, j](x[:, j]) for each row p of places, (m, p, t) float64.

        It is for values that occur in the bins of many places: places is (p, k), with the bins of each row sorted. The
        features are computed once if the map is the same for all bins, and a single matrix product does the rest.
        """
        return PlaceSums(self, places)

    def _of_part(self, part: AdditivePart, x: np.ndarray, bins: np.ndarray) -> np.ndarray:
        """Return the contribution of a part to g (m, bins, t) at magnitudes x (m, bins); other bins get 0."""
        out = np.zeros((*x.shape, self.n_outputs))
        held = np.flatnonzero((part.columns >= bins[0]) & (part.columns <= bins[-1]))
        place = np.searchsorted(bins, part.columns[held]).clip(0, bins.size - 1)
        held = held[bins[place] == part.columns[held]]
        if held.size:
            place = np.searchsorted(bins, part.columns[held])
            features = features_of(part.map, np.ascontiguousarray(x[:, place], np.float64), held)
            by_bin = features.transpose(2, 0, 1) @ part.weights[:, held].transpose(1, 0, 2)
            out[:, place] = by_bin.transpose(1, 0, 2)
        return out


class PlaceSums:
    """The sums of ``BinFunctions.sums``, with weights arranged for the product in advance."""

    def __init__(self, functions: BinFunctions, places: np.ndarray) -> None:
        self._functions, self._places = functions, places
        self._products: list[tuple[AdditiveMap, np.ndarray, np.ndarray]] = []  # map, its bins, weights
        self._others: list[AdditivePart] = []  # parts that hold only some of the bins, or whose map differs by bin
        for part in functions.parts:
            column = np.full(functions.n_bins, -1)
            column[part.columns] = np.arange(part.columns.size)
            columns = column[places]
            if part.map._differs_by_bin or ((columns < 0).any() and (columns >= 0).any()):
                self._others.append(part)
            elif (columns >= 0).all():
                weights = part.weights[:, columns].transpose(0, 2, 1, 3).reshape(-1, self._n_sums)
                self._products.append((part.map, columns[0], weights))

    @property
    def _n_sums(self) -> int:
        return self._places.shape[0] * self._functions.n_outputs

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """Return the sums (m, p, t) at magnitudes x (m, k)."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        products = (
            features_of(psi, x, bins).reshape(x.shape[0], -1) @ weights for psi, bins, weights in self._products
        )
        first = next(products, None)
        flat = np.zeros((x.shape[0], self._n_sums)) if first is None else first
        for product in products:
            flat += product
        out = flat.reshape(x.shape[0], self._places.shape[0], self._functions.n_outputs)
        for part in self._others:
            for p, bins in enumerate(self._places):
                out[:, p] += self._functions._of_part(part, x, bins).sum(axis=1)
        return out


def features_of(psi: AdditiveMap, magnitudes: np.ndarray, bins: np.ndarray) -> np.ndarray:
    """Return features (m, terms, bins) float64 of magnitudes (m, bins) of selected bins of a map."""
    features = np.empty((magnitudes.shape[0], psi._n_terms_out, bins.size))
    psi._prepare(features.dtype)
    psi._evaluate_rows(magnitudes, bins, features)
    return features


def _parts(features: FittedFeatures, coef: np.ndarray) -> list[AdditivePart]:
    if isinstance(features, BlockFeatures):
        parts = []
        for block, columns, first in zip(features.features_, features.columns_, features.borders_[:-1], strict=True):
            parts += [
                AdditivePart(part.map, columns, part.weights)
                for part in _parts(block, coef[first : first + block._n_features_out])
            ]
        return parts
    if not isinstance(features, AdditiveMap):
        raise InputError(
            "the score is not a sum over bins in which empty bins add 0: its kernel, "
            f"{features.kernel_.name}, compares whole rows by {type(features).__name__}. Fit with an additive kernel "
            "such as 'chi2', or with 'linear', or export the model as ONNX."
        )
    weights = coef.reshape(features._n_terms_out, int(features.n_features_in_), -1)
    return [AdditivePart(features, np.arange(weights.shape[1]), weights)]
