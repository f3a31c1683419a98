"""Scores of a linear model of fitted features as functions of mapped rows, for each kind of features."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import singledispatch

import numpy as np

from chimap import _arrays
from chimap._types import Rows
from chimap.backends.base import RowFeatures
from chimap.features.additive import AdditiveMap, DirichletMap
from chimap.features.additive.base import mapped
from chimap.features.additive.identity import IdentityMap
from chimap.features.additive.stationary import StationaryMap
from chimap.features.blocks import BlockFeatures
from chimap.features.exact import ExactBlocks, ExactFeatures
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.fourier.base import RandomFeatures
from chimap.features.landmarks import LandmarkFeatures
from chimap.features.mapped_functions import (
    GaussianExpansion,
    LinearFunction,
    MappedFunction,
    SumOfBlocks,
    Waves,
)
from chimap.features.rounded import RoundedFeatures
from chimap.features.scaled import ScaledFeatures


@dataclass(frozen=True, eq=False)
class MappedModel:
    """Scores f(u(x)) of a row x as a function of its mapped row u.

    Parameters
    ----------
    rows : callable
        Returns the mapped rows (n, p), dense float64, of checked rows (n, bins).
    bins : ndarray of shape (p,)
        Bin of each coordinate of a mapped row.
    function : MappedFunction
        Scores of mapped rows.
    """

    rows: Callable[[Rows], np.ndarray]
    bins: np.ndarray
    function: MappedFunction

    def by_bin(self, values: np.ndarray, n_bins: int) -> np.ndarray:
        """Return values (p, t) of coordinates summed over the coordinates of each bin, (n_bins, t)."""
        out = np.zeros((n_bins, values.shape[1]))
        np.add.at(out, self.bins, values)
        return out


@singledispatch
def mapped_model(features: RowFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
    """Return the model z(x) . coef + intercept of fitted features as a function of mapped rows; None if it has none.

    Parameters
    ----------
    features : Features
        Fitted features.
    coef : ndarray of shape (D, t)
        Weights of the features.
    intercept : ndarray of shape (t,)
        Intercepts.

    Returns
    -------
    MappedModel or None
        The model; None where the features are no function of mapped rows.

    Examples
    --------
    >>> from chimap import OptimalMap
    >>> X = np.random.default_rng(0).dirichlet(np.ones(4), size=20)
    >>> features = OptimalMap("chi2", 2).fit(X)
    >>> model = mapped_model(features, np.ones((8, 1)), np.zeros(1))
    >>> bool(np.allclose(model.function(model.rows(X)), features.transform(X).sum(axis=1, keepdims=True)))
    True
    """
    return None


def _dense(rows: Rows) -> np.ndarray:
    return np.asarray(_arrays.to_dense(rows), dtype=np.float64)


@mapped_model.register
def _(features: AdditiveMap, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    bins = np.arange(features._n_features_out) % features.n_features_in_
    return MappedModel(lambda X: _dense(mapped(features, X)), bins, LinearFunction(coef, intercept))


@mapped_model.register
def _(features: IdentityMap, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    return MappedModel(_dense, np.arange(coef.shape[0]), LinearFunction(coef, intercept))


@mapped_model.register
def _(features: StationaryMap, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    bins = np.arange(features._n_features_out) % features.n_features_in_
    return MappedModel(lambda X: _dense(features.transform(X)), bins, LinearFunction(coef, intercept))


@mapped_model.register
def _(features: DirichletMap, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    # z = A v is linear in the scaled logarithms v of the bins: A = I + common s s'
    w = features.kernel_.whitening
    by_bin = coef + w.common * np.outer(w.scale, w.scale @ coef)
    turned = np.eye(coef.shape[0]) + w.common * np.outer(w.scale, w.scale)

    def rows(X: Rows) -> np.ndarray:
        return np.asarray(np.linalg.solve(turned, _dense(features.transform(X)).T).T)

    return MappedModel(rows, np.arange(coef.shape[0]), LinearFunction(by_bin, intercept))


@mapped_model.register
def _(features: LandmarkFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    folded = features.fold(coef, intercept)  # a model of kernel values less 1
    u = features.unit_map_
    bins = np.concatenate([_bins_of(f.map, f.columns, features.n_features_in_) for f in u.factors])
    function = GaussianExpansion(
        features.landmarks_.astype(np.float64), folded.coef, folded.intercept - folded.coef.sum(axis=0)
    )
    return MappedModel(lambda X: _dense(u.values(X)), bins, function)


def _bins_of(psi: AdditiveMap | IdentityMap, columns: np.ndarray | None, n_bins: int) -> np.ndarray:
    bins = np.arange(n_bins) if columns is None else columns
    return bins[np.arange(psi._n_features_out) % bins.size]


@mapped_model.register
def _(features: ExactFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
    psi = features.map_
    if psi is None:
        return None
    kept = features.rows_
    means = np.zeros(kept.n_columns)
    means[kept.columns] = kept.means
    bins = np.arange(kept.n_columns) % features.n_features_in_
    gamma = features._gamma
    if gamma is None:  # an additive kernel gives a linear model of mapped rows
        function: MappedFunction = LinearFunction(kept.combine(coef)[0], intercept)
        return MappedModel(lambda X: _dense(mapped(psi, X)) - means, bins, function)
    scale = float(np.sqrt(2 * gamma))
    function = GaussianExpansion(scale * kept.centred(), coef, intercept)
    return MappedModel(lambda X: scale * (_dense(mapped(psi, X)) - means), bins, function)


@mapped_model.register
def _(features: ExactBlocks, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
    return mapped_model(features.side_by_side(), np.tile(coef, (len(features.features_), 1)), intercept)


@mapped_model.register
def _(features: FourierFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    bins = np.arange(features.map_._n_features_out) % features.n_features_in_

    def rows(X: Rows) -> np.ndarray:
        return _dense(mapped(features.map_, X)) - features.centre_

    return MappedModel(rows, bins, _waves(features, coef, intercept))


@mapped_model.register
def _(features: SkewedFourierFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
    def rows(X: Rows) -> np.ndarray:
        return np.asarray(features._logarithm.logarithms(_dense(X), features.centre_))

    return MappedModel(rows, np.arange(features.n_features_in_), _waves(features, coef, intercept))


def _waves(features: RandomFeatures, coef: np.ndarray, intercept: np.ndarray) -> Waves:
    """Return cosines of all frequencies, then sines of the first ones: sin(a) = cos(a - pi/2)."""
    W, offset = features.frequencies_.astype(np.float64), features.offset_.astype(np.float64)
    n_sines = features.n_components - W.shape[1]
    scale = np.sqrt(2.0 / features.n_components)
    return Waves(
        np.hstack([W, W[:, :n_sines]]),
        np.concatenate([offset, offset[:n_sines] - np.pi / 2]),
        scale * coef,
        intercept,
    )


@mapped_model.register
def _(features: BlockFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
    zero = np.zeros_like(intercept)
    models = [
        mapped_model(block, coef[start:stop], zero)
        for block, start, stop in zip(
            features.features_, features.borders_[:-1], features.borders_[1:], strict=True
        )
    ]
    if any(model is None for model in models):
        return None
    known = [model for model in models if model is not None]
    bins = np.concatenate([cols[m.bins] for m, cols in zip(known, features.columns_, strict=True)])

    def rows(X: Rows) -> np.ndarray:
        parts = zip(known, features.columns_, strict=True)
        return np.hstack([m.rows(_arrays.take_columns(X, columns)) for m, columns in parts])

    borders = np.cumsum([0, *(m.bins.size for m in known)])
    return MappedModel(rows, bins, SumOfBlocks([m.function for m in known], borders, intercept))


@mapped_model.register
def _(features: ScaledFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
    inner = mapped_model(features.features, coef, intercept)
    if inner is None:
        return None
    return MappedModel(lambda X: inner.rows(features.scale.rows(X)), inner.bins, inner.function)


@mapped_model.register
def _(features: RoundedFeatures, coef: np.ndarray, intercept: np.ndarray) -> MappedModel | None:
    # The rounding of each feature has no gradient, so it is left out of the scores.
    return mapped_model(features.features, coef, intercept)
