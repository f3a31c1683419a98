"""The multiple kernels of the paper on the Dirichlet kernel: exact Gaussian and linear, with learned weights."""

from __future__ import annotations

import numpy as np
from sklearn.metrics.pairwise import euclidean_distances
from sklearn.svm import SVC

_STEPS = 6  # number of times the interval of a weight is halved


class GaussianAndLinear:
    """One class against the rest: an SVM on d K_Gauss + (1 - d) K_linear, with the best d for each class.

        min over 0 <= d <= 1 of max over alpha of sum alpha_i - (y alpha)'(d K_Gauss + (1 - d) K_linear)(y alpha) / 2

    is convex in d. At the optimum, its derivative is -(y alpha)'(K_Gauss - K_linear)(y alpha) / 2, whose sign says
    which half of the interval holds d. Both kernels have a mean diagonal of 1. The width of the Gaussian is the root
    of the mean squared distance.

    Source: Rakotomamonjy, Bach, Canu and Grandvalet, SimpleMKL, 2008 (two kernels: a line search).
    """

    def __init__(self, C: float) -> None:
        self.C = C

    def fit(self, X: np.ndarray, y: np.ndarray) -> GaussianAndLinear:
        self.classes_, self._X = np.unique(y), X
        squares = euclidean_distances(X, squared=True).astype(np.float64)
        self._gamma, self._scale = 1 / squares.mean(), 1 / np.mean(np.einsum("ij,ij->i", X, X))
        grams = np.exp(-self._gamma * squares), self._scale * (X @ X.T).astype(np.float64)
        found = [self._of_class(grams, y == c) for c in self.classes_]
        self.weights_ = np.array([d for d, _, _ in found])
        self._alphas = np.array([alphas for _, alphas, _ in found])
        self._intercepts = np.array([b for _, _, b in found])
        return self

    def _of_class(self, grams: tuple[np.ndarray, np.ndarray], is_class: np.ndarray):
        low, high = 0.0, 1.0
        for _ in range(_STEPS):
            d = (low + high) / 2
            alphas, intercept = self._machine(d * grams[0] + (1 - d) * grams[1], is_class)
            pull = alphas @ (grams[0] - grams[1]) @ alphas
            low, high = (d, high) if pull > 0 else (low, d)
        return d, alphas, intercept

    def _machine(self, gram: np.ndarray, is_class: np.ndarray) -> tuple[np.ndarray, float]:
        machine = SVC(kernel="precomputed", C=self.C, cache_size=500).fit(gram, is_class)
        alphas = np.zeros(is_class.size)
        alphas[machine.support_] = machine.dual_coef_[0]
        return alphas, float(machine.intercept_[0])

    def decision_function(self, new: np.ndarray) -> np.ndarray:
        gauss = np.exp(-self._gamma * euclidean_distances(new, self._X, squared=True))
        linear = self._scale * (new @ self._X.T)
        d = self.weights_[:, None]
        return gauss @ (d * self._alphas).T + linear @ ((1 - d) * self._alphas).T + self._intercepts

    def predict(self, new: np.ndarray) -> np.ndarray:
        return self.classes_[self.decision_function(new).argmax(axis=1)]
