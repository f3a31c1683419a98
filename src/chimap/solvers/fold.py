"""Ridge when a fold is left out: downdates of the moments and the errors, and the weights of all folds by iteration.

For all rows but those of fold f, the scatter is Hc(rest) = Hc - F with F = Hc(f) + c d d' (see ``Fold``), and Vc(rest)
likewise. A product F P costs O(D^2) operations per column, a subtraction O(D^2), and no second matrix is stored.

``FoldWeights`` solves (H - F + l I) w = v for every fold at a sequence of strengths l, by conjugate gradients about one
factor of the whole. A factor of H + s I costs D^3/3 operations and serves all folds at the strengths near s; an
iteration takes one product with every F and one solve with the factor, O(K D^2 t) in all. Memory holds the factor and,
for up to ``_KEPT_STRENGTHS + 1`` strengths, three arrays (D, K t).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap._validation import DataError
from chimap.moments import Moments
from chimap.solvers.ridge import Factor


def check_fold(k: int, n_folds: int, n_held: int, n_rows: int) -> None:
    """Raise DataError for a fold that holds no rows, or all of them."""
    if n_held in (0, n_rows):
        raise DataError(
            f"fold {k} of {n_folds} holds {n_held} of {n_rows} rows: too few to hold out. Use fewer folds (selection) "
            "or more rows."
        )


class Fold:
    """The change of the moments when one fold is left out.

    Hc(all) = Hc(rest) + Hc(fold) + c d d', with d = mean(rest) - mean(fold) and c = n_rest n_fold / n (Chan). So the
    matrix of the training rows is that of all rows less F = Hc(fold) + c d d', and likewise for Vc.
    """

    def __init__(self, fold: Moments, whole: Moments):
        self.moments = fold
        self.count = fold.count
        self.sums = fold.feature_sum
        rest = whole.count - fold.count
        # All folds share their shifts, so the sums are about the same point.
        self.gap = (whole.feature_sum - fold.feature_sum) / rest - fold.feature_sum / fold.count
        self.target_gap = (whole.target_sum - fold.target_sum) / rest - fold.target_sum / fold.count
        self.weight = rest * fold.count / whole.count
        self.whole = whole
        self.target_scatter = fold.target_scatter()
        self.train_share = rest / whole.count

    @property
    def cross(self) -> np.ndarray:
        """Vc(fold) of shape (D, t).

        It is made at each access: stored for all folds, it would take most of the memory when there are many targets.
        """
        return self.moments.cross_scatter()

    @property
    def train_cross(self) -> np.ndarray:
        """Vc(rest) of shape (D, t)."""
        whole, fold = self.whole, self.moments
        mean = (whole.target_sum - fold.target_sum) / (whole.count - fold.count)
        by_target = whole.cross.T - fold.cross.T
        by_target -= np.outer(mean, whole.feature_sum - fold.feature_sum)
        return by_target.T

    def product(self, P: np.ndarray) -> np.ndarray:
        """Return F P."""
        return self.moments.scatter_product(P) + self.weight * np.outer(self.gap, self.gap @ P)

    def take_from(self, square: np.ndarray) -> None:
        """Subtract F from the upper triangle of a (D, D) array."""
        # F = H - m m'/n + c d d'; the last two terms are one product of rank two.
        left = np.column_stack([self.sums / self.count, -self.weight * self.gap])
        right = np.vstack([self.sums, self.gap])
        for first, panel in self.moments.features.panels():
            square[first : first + panel.shape[0], first:] += (
                left[first : first + panel.shape[0]] @ right[:, first:] - panel
            )

    def error(self, W: np.ndarray, FW: np.ndarray | None = None) -> float:
        """Return the mean held-out |f(z) - y|^2 of weights W (D, t), given F W if it is known."""
        square = self.moments.scatter_quadratic(W) if FW is None else _inner(W, self._scattered(W, FW))
        linear = _inner(W, self.moments.cross) - float(self.sums @ W @ self.moments.target_sum) / self.count
        within = square - 2 * linear + float(self.target_scatter.sum())
        return within / self.count + float(np.square(self.bias(W)).sum())

    def error_slope(self, W: np.ndarray, FW: np.ndarray) -> np.ndarray:
        """Return the derivative of count times ``error`` in W, (D, t)."""
        return 2 * (self._scattered(W, FW) - self.cross + self.count * np.outer(self.gap, self.bias(W)))

    def bias(self, W: np.ndarray) -> np.ndarray:
        """Return the mean of y - f(z) over the fold, (t,), where the training means set the intercept of f."""
        return self.gap @ W - self.target_gap

    def _scattered(self, W: np.ndarray, FW: np.ndarray) -> np.ndarray:
        """Return Hc(fold) W."""
        return FW - self.weight * np.outer(self.gap, self.gap @ W)


def _inner(A: np.ndarray, B: np.ndarray) -> float:
    return float(np.einsum("ij,ij->", A, B))


TOLERANCE = 1e-5  # residual in the norm of the inverse, relative; held-out errors are off by a few times that
# A factor preconditions strengths from a tenth of its strength to about three times it. Farther off, iterations cost
# more than a new factor; upwards this happens sooner than downwards.
_REACH_DOWN, _REACH_UP = 10.1, 3.3
# limit, or as many as one factorisation costs if that is more; beyond it the folds are factorised
_MOST_ITERATIONS = 30
_KEPT_STRENGTHS = 3  # number of nearest strengths whose weights are kept and combined to a start


@dataclass(frozen=True)
class _Weights:
    """Weights W of all folds side by side, (D, K t), with the products HW and FW, which serve every strength."""

    W: np.ndarray
    HW: np.ndarray
    FW: np.ndarray

    def residual(self, V: np.ndarray, alpha: float) -> np.ndarray:
        """Return V - (H - F + alpha I) W."""
        return V - self.HW - alpha * self.W + self.FW

    def plus(self, step: np.ndarray, other: _Weights) -> _Weights:
        """Return these weights plus ``step`` (K t,) times others."""
        return _Weights(self.W + step * other.W, self.HW + step * other.HW, self.FW + step * other.FW)


class FoldWeights:
    """Weights and held-out errors of all folds, strength by strength.

    The weights of a fold solve (H - F + l I) w = v at strength l, where H is the scatter of all rows. Conjugate
    gradients are preconditioned by A = H + s I, factorised at a strength s near l: the eigenvalues of A^-1 (H - F + l
    I) lie mostly between 1 - 1/K and l / s. Since A z = r gives H z = r - s z, an iteration takes one product with F
    and one solve with the factor, for all folds at once. It starts from the best combination of the weights at the
    nearest strengths: H w and F w are stored with each w, so that finding the combination takes no product with a
    matrix.

    Storing and combining all search directions was tried: 37 iterations in place of 40, for twice the memory.
    """

    def __init__(self, folds: list[Fold], whole: Moments, factor: Factor):
        self.folds, self.whole, self.factor = folds, whole, factor
        self._t = whole.n_targets
        self._V = np.asfortranarray(np.hstack([fold.train_cross for fold in folds]))
        self._solved: dict[float, _Weights] = {}
        self._centre = 0.0  # the strength of the factor
        self._whole_weights = self._V  # A^-1 V

    def errors(self, alpha: float) -> tuple[np.ndarray, int] | None:
        """Return the errors (K,) at a strength and the number of iterations, or None if too many would be needed.

        Raises DataError if the matrix is not positive definite at this strength.
        """
        if not 0 < alpha / _REACH_UP <= self._centre <= alpha * _REACH_DOWN:
            self._centre = 0.0
            self.factor.of(self.whole, alpha)
            self._centre, self._whole_weights = alpha, self.factor.solve(self._V)
        nearest = sorted(self._solved, key=lambda strength: abs(np.log(strength / alpha)))[:_KEPT_STRENGTHS]
        self._solved = {strength: self._solved[strength] for strength in nearest}
        weights, iterations = self._iterate(alpha)
        if weights is None:
            self._centre = 0.0  # the caller factorises fold by fold, which overwrites the factor
            return None
        self._solved[alpha] = weights
        errors = []
        for i, fold in enumerate(self.folds):
            columns = slice(i * self._t, (i + 1) * self._t)
            errors.append(fold.error(weights.W[:, columns], weights.FW[:, columns]))
        return np.array(errors), iterations

    def _iterate(self, alpha: float) -> tuple[_Weights | None, int]:
        now = self._start(alpha)
        R = now.residual(self._V, alpha)
        reference = (self._V * self._whole_weights).sum(0)
        P = _Weights(*(np.zeros_like(R) for _ in range(3)))
        rho_before = np.ones(R.shape[1])
        # The error in w is up to the residual over the smallest eigenvalue, estimated by the smallest ratio seen.
        softest = np.ones(R.shape[1])
        most = max(_MOST_ITERATIONS, R.shape[0] // (18 * self._t))
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
        """Return the combination of the weights at the nearest strengths that has the least energy, target by target.

        At the first strength, return the weights of all rows, scaled.
        """
        if not self._solved:
            share = np.repeat([fold.train_share for fold in self.folds], self._t)
            W = self._whole_weights / share
            return _Weights(W, self._V / share - self._centre * W, self._products(W))
        known = list(self._solved.values())
        images = [self._V - weights.residual(self._V, alpha) for weights in known]
        gram = np.array([[(weights.W * image).sum(0) for image in images] for weights in known])
        right = np.array([(weights.W * self._V).sum(0) for weights in known])
        scale = np.sqrt(np.maximum(np.einsum("iik->ik", gram), np.finfo(float).tiny))
        gram /= scale[:, None] * scale[None]
        inverse = np.linalg.pinv(gram.transpose(2, 0, 1), rcond=1e-10, hermitian=True)
        c = np.einsum("kij,jk->ik", inverse, right / scale) / scale
        start = _Weights(*(np.zeros_like(self._V) for _ in range(3)))
        for step, weights in zip(c, known, strict=True):
            start = start.plus(step, weights)
        return start

    def _products(self, P: np.ndarray) -> np.ndarray:
        """Return F P, fold by fold."""
        out = np.empty_like(P)
        for i, fold in enumerate(self.folds):
            columns = slice(i * self._t, (i + 1) * self._t)
            out[:, columns] = fold.product(P[:, columns])
        return out
