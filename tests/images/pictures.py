"""Images made here: smooth noise has gradients of all orientations; classes differ in what they are made of."""

from __future__ import annotations

import numpy as np
from scipy.ndimage import gaussian_filter


def texture(height: int, width: int, seed: int, sigma: float = 2.0) -> np.ndarray:
    """Smooth colour noise that fills the range of bytes, (height, width, 3) uint8."""
    noise = np.random.default_rng(seed).normal(size=(height, width, 3))
    smooth = gaussian_filter(noise, (sigma, sigma, 0))
    smooth -= smooth.min()
    return (smooth * (255 / max(smooth.max(), 1e-9))).astype(np.uint8)


def stripes(height: int, width: int, angle: float, seed: int) -> np.ndarray:
    """Stripes that run at an angle, with noise: an image of a class that orientations tell."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    wave = np.sin((x * np.cos(angle) + y * np.sin(angle)) * 0.6 + rng.uniform(0, 2 * np.pi))
    gray = 128 + 80 * wave + rng.normal(scale=15, size=wave.shape)
    return np.repeat(gray.clip(0, 255).astype(np.uint8)[:, :, None], 3, axis=2)
