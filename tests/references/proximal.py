"""Proximal operators argmin_V |V - W|^2 / 2 + step value(V), which leave a minimum of loss and penalty where it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from chimap.penalties import L2, L21


@dataclass(frozen=True)
class ElasticNet:
    """l1 |w|_1 + l2/2 |w|^2."""

    l1: float
    l2: float

    def value(self, W):
        return self.l1 * np.abs(W).sum() + self.l2 / 2 * np.square(W).sum()


def prox(penalty: L2 | L21 | ElasticNet, W: np.ndarray, step: float) -> np.ndarray:
    if isinstance(penalty, L2):
        return W / (1 + step * penalty.alpha)
    if isinstance(penalty, ElasticNet):
        return np.copysign(np.maximum(np.abs(W) - step * penalty.l1, 0), W) / (1 + step * penalty.l2)
    moved, norms, levels = W.copy(), penalty.norms(W), penalty.levels(W.ndim)
    for g, columns in enumerate(penalty.members):
        moved[columns] *= np.maximum(norms[g] - step * levels[g], 0) / np.where(norms[g] > 0, norms[g], 1)
    return moved
