"""The spectrum of a stationary kernel, chosen on differences of values within the bins of rows."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.optimize import minimize_scalar, nnls

from chimap import _arrays
from chimap._types import Rows
from chimap.features.additive.homogeneous import discrete_spectrum
from chimap.kernels.stationary import StationaryKernel

PAIRS = 2**17  # most pairs of values within a bin whose differences are drawn, for all bins together
_POINTS = 512  # quantiles of the differences
_FARTHEST = 1e100  # widths: Brent's method multiplies periods by each other


@dataclass(frozen=True)
class Differences:
    """Distances |x - y| / width between values of the same bin in two rows, and the signature S at them.

    The points are quantiles of the distances, ascending and of equal weight.
    """

    points: np.ndarray
    signature: np.ndarray
    n_bins: int

    @classmethod
    def of(cls, rows: Rows, kernel: StationaryKernel) -> Differences:
        """Draw pairs of values, up to ``PAIRS``, from rows (n, bins), dense or CSR, and keep quantiles of distances."""
        n, d = rows.shape
        rng = np.random.default_rng(0)
        wanted = max(1, min(n * (n - 1) // 2, PAIRS // d))
        first = rng.integers(n, size=wanted)
        second = (first + rng.integers(1, max(2, n), size=wanted)) % n
        left, right = (_arrays.to_dense(_arrays.take_rows(rows, chosen)) for chosen in (first, second))
        values = np.abs(left.astype(np.float64) - right).reshape(-1) / kernel.width
        places = (np.arange(_POINTS) + 0.5) / _POINTS
        points = np.quantile(values, places)
        return cls(points, kernel.signature(points), d)

    def equations(self, period: float, m: int) -> tuple[np.ndarray, np.ndarray]:
        """Return the design (points + 1, m + 1) and the right-hand side of a least-squares fit of the spectrum.

        The squared residual is the mean square error of K over that of S: errors of one sign add up in the sum over the
        bins, the others average out. (The mean of a signature whose spectrum is a band of frequencies has either sign,
        or is 0, so it is no scale.)
        """
        waves = np.cos(np.outer(self.points, np.arange(m + 1)) * (2 * np.pi / period))
        signature = self.signature
        share = np.sqrt(1 / (self.n_bins * self.points.size))
        bias = np.sqrt(max(0.0, 1 - 1 / self.n_bins))
        scale = 1 / max(float(np.sqrt(np.square(signature).mean())), 1e-300)
        design = np.vstack([share * waves, bias * waves.mean(axis=0)])
        target = np.append(share * signature, bias * signature.mean())
        return scale * design, scale * target


def data_spectrum(
    kernel: StationaryKernel, differences: Differences, period: float, m: int, window: str
) -> np.ndarray:
    """Return kap_0 .. kap_m of a window, (m + 1,), none of them negative."""
    if window == "least-squares":
        design, target = differences.equations(period, m)
        return nnls(design, target)[0] / np.r_[1.0, np.full(m, 2.0)]
    # These windows are shared with homogeneous kernels, whose signatures take differences of logarithms.
    return discrete_spectrum(kernel, period, m, window)  # type: ignore[arg-type]


def best_period(kernel: StationaryKernel, differences: Differences, m: int, window: str) -> float:
    """Return the period whose kernel is closest on the differences: the best of a grid, refined by Brent's method."""

    def error(period: float) -> float:
        design, target = differences.equations(period, m)
        spectrum = data_spectrum(kernel, differences, period, m, window) * np.r_[1.0, np.full(m, 2.0)]
        return float(np.linalg.norm(design @ spectrum - target))

    # The grid runs from at most 2 widths to a period of four times the largest difference and more.
    farthest = min(max(float(differences.points[-1]), 1e-3), _FARTHEST)
    grid = np.geomspace(min(2.0, farthest), 4 * farthest + 8 * m + 8, 100)
    errors = [error(period) for period in grid]
    best = int(np.argmin(errors))
    low, high = grid[max(0, best - 1)], grid[min(grid.size - 1, best + 1)]
    refined = minimize_scalar(error, bounds=(low, high), method="bounded")
    return float(refined.x if refined.fun <= errors[best] else grid[best])
