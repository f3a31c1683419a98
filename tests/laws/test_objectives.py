"""Every loss with every penalty: steps of the proximal gradient reach the minimum as fast as they must."""

from __future__ import annotations

import numpy as np

from ..references.proximal import prox
from .test_losses import every_bounded_loss
from .test_penalties import D, every_penalty

N, TARGETS = 40, 2


def problem(loss):
    rng = np.random.default_rng(0)
    Z, Y = rng.standard_normal((N, D)), rng.standard_normal((N, TARGETS))
    return Z, {"sign": np.sign, "real": np.copy, "count": np.abs}[loss.domain](Y)


def smooth(loss, Z, Y, W):
    """sum loss(y, z'w), and its gradient in W."""
    return loss.value(Y, Z @ W).sum(), Z.T @ loss.gradient(Y, Z @ W)


@every_bounded_loss
@every_penalty
def test_proximal_gradient_steps_fall_as_the_curvature_says_and_end_at_the_minimum(loss, penalty):
    """With steps of 1/L the objective falls by L/2 |step|^2 at least: prox, gradient and curvature agree."""
    Z, Y = problem(loss)
    L = loss.curvature * np.linalg.norm(Z, 2) ** 2
    W = np.ones((D, TARGETS))
    value = smooth(loss, Z, Y, W)[0] + penalty.value(W)
    for _ in range(3000):
        V = prox(penalty, W - smooth(loss, Z, Y, W)[1] / L, 1 / L)
        after = smooth(loss, Z, Y, V)[0] + penalty.value(V)
        assert after <= value - L / 2 * np.square(V - W).sum() + 1e-9 * value
        moved, W, value = np.abs(V - W).max(), V, after
        if moved < 1e-10:
            break
    rng = np.random.default_rng(2)
    for direction in [*np.eye(D)[:, :, None], *-np.eye(D)[:, :, None], W, -W, *rng.standard_normal((10, D, 1))]:
        for length in (1e-3, 1e-1):
            other = W + length * direction
            assert smooth(loss, Z, Y, other)[0] + penalty.value(other) >= value * (1 - 1e-9)
