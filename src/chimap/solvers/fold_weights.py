"""Weights of all folds at one strength after the other, by conjugate gradients about one factor of the whole."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap.moments import Moments
from chimap.solvers.fold import Fold
from chimap.solvers.ridge import Factor

TOLERANCE = 1e-5  # of the residual in the norm of the inverse; held-out errors are off by a few times that
# A factor preconditions strengths from a tenth of its own to some three times it: farther off, and farther up sooner
# than down, iterations cost more than a new factor.
_DOWN, _UP = 10.1, 3.3
_ITERATIONS = 30  # at most, or as many as one factorisation costs: then the folds are factorised after all
_NEAR = 3  # strengths whose weights are kept, and combined to begin with


@dataclass(frozen=True)
class _Weights:
    """Weights W of all folds side by side, (D, K t), with HW and FW: products that serve every strength."""

    W: np.ndarray
    HW: np.ndarray
    FW: np.ndarray

    def residual(self, V: np.ndarray, alpha: float) -> np.ndarray:
        """V - (H - F + alpha I) W."""
        return V - self.HW - alpha * self.W + self.FW

    def plus(self, step: np.ndarray, other: _Weights) -> _Weights:
        """This one and ``step`` (K t,) times another."""
        return _Weights(self.W + step * other.W, self.HW + step * other.HW, self.FW + step * other.FW)


class FoldWeights:
    """Weights and held-out errors of all folds, strength by strength.

    The weights of a fold solve (H - F + l I) w = v at strength l, H being the scatter of all rows. Conjugate gradients
    are preconditioned by A = H + s I, factorised at a strength s not far from l: the eigenvalues of A^-1 (H - F + l I)
    crowd between 1 - 1/K and l / s. Since H z = r - s z comes with A z = r, an iteration takes one product with F and
    one solve with the factor, for all folds at once. It begins with the best that the weights of the nearest strengths
    span: H w and F w are kept with each w, so that finding it takes no product with a matrix.

    (All search directions were kept and spanned, too: 37 iterations in place of 40, for twice the memory.)
    """

    def __init__(self, folds: list[Fold], whole: Moments, factor: Factor):
        self.folds, self.whole, self.factor = folds, whole, factor
        self._t = whole.n_targets
        self._V = np.asfortranarray(np.hstack([fold.train_cross for fold in folds]))
        self._found: dict[float, _Weights] = {}
        self._centre = 0.0  # the strength of the factor
        self._whole_weights = self._V  # A^-1 V

    def errors(self, alpha: float) -> tuple[np.ndarray, int] | None:
        """Errors (K,) at one strength, and the number of iterations; None where they are too many.

        Raises DataError if the matrix is not positive definite at this strength.
        """
        if not 0 < alpha / _UP <= self._centre <= alpha * _DOWN:
            self._centre = 0.0
            self.factor.of(self.whole, alpha)
            self._centre, self._whole_weights = alpha, self.factor.solve(self._V)
        nearest = sorted(self._found, key=lambda other: abs(np.log(other / alpha)))[:_NEAR]
        self._found = {other: self._found[other] for other in nearest}
        weights, iterations = self._iterate(alpha)
        if weights is None:
            self._centre = 0.0  # the folds' own factors will take its place
            return None
        self._found[alpha] = weights
        errors = []
        for i, fold in enumerate(self.folds):
            own = slice(i * self._t, (i + 1) * self._t)
            errors.append(fold.error(weights.W[:, own], weights.FW[:, own]))
        return np.array(errors), iterations

    def _iterate(self, alpha: float) -> tuple[_Weights | None, int]:
        now = self._start(alpha)
        R = now.residual(self._V, alpha)
        reference = (self._V * self._whole_weights).sum(0)
        P = _Weights(*(np.zeros_like(R) for _ in range(3)))
        rho_before = np.ones(R.shape[1])
        # An error in w is up to 1 / (the smallest eigenvalue) of the residual; the smallest ratio seen stands for that.
        softest = np.ones(R.shape[1])
        most = max(_ITERATIONS, R.shape[0] // (18 * self._t))
        iterations = 0
        while True:
            Z = self.factor.solve(R)
            rho = (R * Z).sum(0)
            active = rho > (TOLERANCE * softest) ** 2 * reference
            if not active.any():
                return now, iterations
            if iterations == most:
                return None, iterations
            beta = np.where(active & (iterations > 0), rho / np.where(active, rho_before, 1), 0)
            W = Z + beta * P.W
            P = _Weights(W, R - self._centre * Z + beta * P.HW, self._products(W))
            TP = P.HW + alpha * W - P.FW
            stiffness = np.where(active, (W * TP).sum(0), 1)
            held = np.where(active, (W * (P.HW + self._centre * W)).sum(0), 1)
            softest = np.minimum(softest, np.where(active, stiffness / held, 1))
            step = np.where(active, rho / stiffness, 0)
            now, R = now.plus(step, P), R - step * TP
            rho_before = rho
            iterations += 1

    def _start(self, alpha: float) -> _Weights:
        """The combination of the weights at the nearest strengths, target by target, that is best in energy; at the
        first one the weights of all rows."""
        if not self._found:
            share = np.repeat([fold.train_share for fold in self.folds], self._t)
            W = self._whole_weights / share
            return _Weights(W, self._V / share - self._centre * W, self._products(W))
        known = list(self._found.values())
        images = [self._V - one.residual(self._V, alpha) for one in known]
        gram = np.array([[(one.W * image).sum(0) for image in images] for one in known])
        right = np.array([(one.W * self._V).sum(0) for one in known])
        scale = np.sqrt(np.maximum(np.einsum("iik->ik", gram), np.finfo(float).tiny))
        gram /= scale[:, None] * scale[None]
        inverse = np.linalg.pinv(gram.transpose(2, 0, 1), rcond=1e-10, hermitian=True)
        c = np.einsum("kij,jk->ik", inverse, right / scale) / scale
        start = _Weights(*(np.zeros_like(self._V) for _ in range(3)))
        for step, one in zip(c, known, strict=True):
            start = start.plus(step, one)
        return start

    def _products(self, P: np.ndarray) -> np.ndarray:
        """F P, fold by fold."""
        out = np.empty_like(P)
        for i, fold in enumerate(self.folds):
            own = slice(i * self._t, (i + 1) * self._t)
            out[:, own] = fold.product(P[:, own])
        return out
