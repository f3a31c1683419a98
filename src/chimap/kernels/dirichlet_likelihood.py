"""Maximum likelihood and Fisher information of the Dirichlet distribution of a set of histograms."""

from __future__ import annotations

import warnings
from dataclasses import dataclass

import numpy as np
from scipy.special import betaincinv, digamma, gammaln, zeta
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays, _scaling
from chimap._types import Rows
from chimap._validation import DataError

_BLOCK_NUMBERS = 2**20  # entries of the rows whose logarithms are in memory at once
_STEPS = 200
_TINY = np.finfo(np.float64).tiny
_EQUAL = 1e-10  # 1 - the sum of the geometric means, below which rows differ by rounding alone


@dataclass(frozen=True)
class DirichletWhitening:
    """Mean mu and Fisher information G of ln x under a Dirichlet distribution, in the form that whitens ln x.

    mu = digamma(beta) - digamma(b), G = diag(trigamma(beta)) - trigamma(b) 11', with b = sum beta. By Sherman and
    Morrison G^-1 = diag(u^2) + c u^2 (u^2)', u = trigamma(beta)^(-1/2), t = trigamma(b), c = t / (1 - t |u|^2), and
    A'A = G^-1 for A = (I + a u u' / |u|^2) diag(u), a = (1 - t |u|^2)^(-1/2) - 1.

    Parameters
    ----------
    mean : ndarray of shape (bins,)
        mu.
    scale : ndarray of shape (bins,)
        u.
    coupling : float
        c.
    common : float
        a / |u|^2.
    """

    mean: np.ndarray
    scale: np.ndarray
    coupling: float
    common: float

    @staticmethod
    def of(beta: np.ndarray) -> DirichletWhitening:
        """Compute the whitening for beta (bins,), float64."""
        total = beta.sum()
        trigamma, t = zeta(2, beta), float(zeta(2, total))
        length = float((1 / trigamma).sum())
        # 1 - t |u|^2 falls like 1/b. Written as t (sum r(beta) - r(b)), r(x) = x - 1/trigamma(x), it loses no digits.
        gap = t * float(_excess(beta).sum() - _excess(total))
        explained = t * length
        root = -0.5 * (np.log1p(-explained) if explained < 0.5 else np.log(gap))
        return DirichletWhitening(
            digamma(beta) - digamma(total), trigamma**-0.5, t / gap, float(np.expm1(root)) / length
        )

    def solve(self, values: np.ndarray) -> np.ndarray:
        """Return G^-1 values, in O(bins)."""
        square = self.scale**2
        return square * (values + self.coupling * (square @ values))


def _excess(x: np.ndarray) -> np.ndarray:
    """Return r(x) = x - 1/trigamma(x), in (0, 1/2], by an asymptotic series where the difference cancels."""
    x = np.asarray(x, dtype=np.float64)
    z = 1 / np.maximum(x, 16.0) ** 2
    # x trigamma(x) - 1 = 1/(2x) + sum B_2k / x^2k, with Bernoulli's numbers B
    e = 0.5 * np.sqrt(z) + z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * 5 / 66))))
    return np.where(x < 16, x - 1 / zeta(2, x), x * e / (1 + e))


@dataclass(frozen=True)
class LogStatistics:
    """The statistics of l1-normalised, non-empty rows p that determine the likelihood, whatever number zeros count as.

    A zero has an infinite logarithm, so it counts as f, and the rest of its row shrinks accordingly (the multiplicative
    replacement of compositional data: Martin-Fernandez, Barcelo-Vidal and Pawlowsky-Glahn 2003). Rows without zeros are
    left as they are.

    Parameters
    ----------
    logs : ndarray of shape (bins,)
        Sum of ln p over the positive entries.
    zeros : ndarray of shape (bins,)
        Number of zeros in each bin.
    row_zeros : ndarray of shape (rows,)
        Number of zeros in each row.
    means, variances : ndarray of shape (bins,)
        Mean and variance of p.
    smallest : float
        Smallest positive entry.
    """

    logs: np.ndarray
    zeros: np.ndarray
    row_zeros: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    smallest: float

    @staticmethod
    def of(rows: Rows) -> LogStatistics:
        """Compute the statistics of checked rows (n, bins), dense or CSR, in one pass."""
        n, d = rows.shape
        logs, filled, first, second = np.zeros((4, d))
        smallest, row_zeros = np.inf, np.empty(n)
        size = max(1, _BLOCK_NUMBERS // d)
        for start in range(0, n, size):
            p = normalised(_arrays.take_rows(rows, slice(start, start + size)))
            smallest = min(smallest, float(_arrays.nonzero_values(p).min()))
            positive = _arrays.map_values(p, np.sign)
            row_zeros[start : start + size] = d - _sums(positive, 1)
            filled += _sums(positive, 0)
            logs += _sums(_arrays.map_values(p, _log_or_zero), 0)
            first += _sums(p, 0)
            second += _sums(_arrays.map_values(p, np.square), 0)
        means = first / n
        return LogStatistics(
            logs, n - filled, row_zeros, means, np.maximum(second / n - means**2, 0), smallest
        )

    def log_means(self, f: float) -> np.ndarray:
        """Return the mean ln p (bins,) if zeros count as ``f``."""
        sums = self.logs + self.zeros * np.log(f)
        return sums / self.row_zeros.size - float(np.log1p(self.row_zeros * f).mean())

    def beginning(self) -> np.ndarray:
        """Return the start of the search for the largest likelihood, b means with b the median of m (1 - m) / v - 1.

        The median is over bins with mean m and variance v. No maximum is much below 1e-3, since
        digamma(beta_i) = mean ln p_i + digamma(b) and ln p_i > -709.
        """
        m, varies = self.means, self.variances > 0
        totals = m[varies] * (1 - m[varies]) / self.variances[varies] - 1
        totals = totals[totals > 0]
        return np.maximum(m * (float(np.median(totals)) if totals.size else 1.0), 1e-3)


def normalised(rows: Rows) -> Rows:
    """Return checked rows divided by their sums, float64, dense or CSR; empty rows stay empty."""
    return _scaling.unit_rows(_arrays.as_rows(rows, np.float64))


def maximum_likelihood(log_means: np.ndarray, beta: np.ndarray) -> np.ndarray:
    """Return the beta (bins,) that maximises the mean log-likelihood of the rows:

        ln Gamma(b) - sum ln Gamma(beta_i) + sum (beta_i - 1) mean ln p_i,  b = sum beta

    Newton's method with the Fisher information takes O(bins) a step, from the given ``beta``. A step is halved until no
    beta loses more than nine tenths and the likelihood does not fall. The likelihood is concave, and has its maximum
    inside unless all rows are equal, for which DataError is raised.

    Source: Minka, Estimating a Dirichlet distribution, sec. 1; Ronning 1989.
    """
    if 1 - np.exp(log_means).sum() < _EQUAL:
        raise DataError(
            "all rows are equal once they are divided by their sums, so no Dirichlet distribution is the most likely. "
            "Check that the data vary, or give beta and offset to DirichletKernel."
        )
    for _ in range(_STEPS):
        whitening = DirichletWhitening.of(beta)
        slope = log_means - whitening.mean
        step = whitening.solve(slope)
        taken = _halved(log_means, beta, step)
        beta = beta + taken * step
        # slope @ step is twice the gain of the step for a row, and convergence is quadratic. The slope is known to
        # about 1e-15, and its error along beta counts b-fold: if rows differ little, b is b times as uncertain.
        if taken == 1 and slope @ step <= 1e-16 + (1e-14 * beta.sum()) ** 2:
            return beta
    warnings.warn(
        f"the parameters of the Dirichlet distribution have not converged in {_STEPS} steps.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return beta


def lower_quartile(beta: np.ndarray) -> float:
    """Return the 25 % quantile of Beta(b/d, b - b/d), which an average one of the d bins follows.

    The result is at least the smallest normal float.
    """
    average = beta.mean()
    return max(float(betaincinv(average, beta.sum() - average, 0.25)), _TINY)


def with_quartile_offset(seen: LogStatistics) -> tuple[np.ndarray, float]:
    """Return beta and f such that zeros count as f and f is the lower quartile of an average bin under beta.

    A larger f makes for larger beta, and a larger beta for a larger quartile, so iteration from above comes down to the
    largest such f. If more than some 70 % of the bins are empty there may be none, and f stops at half of the smallest
    positive bin, below which the data resolve nothing. (Letting zeros count as that little from the start fails: beta
    follows them down, and the quartile follows beta, to offsets such as 1e-14.)
    """
    d = seen.means.size
    # The start is irrational: zeros that count as a plain fraction could make rows of small counts equal.
    f, least, beta = float(np.exp(-0.1) / d), seen.smallest / 2, seen.beginning()
    for _ in range(_STEPS):
        beta = maximum_likelihood(seen.log_means(f), beta)
        before, f = f, max(lower_quartile(beta), least)
        if abs(f / before - 1) < 1e-3:
            break
    return maximum_likelihood(seen.log_means(f), beta), f


def _halved(log_means: np.ndarray, beta: np.ndarray, step: np.ndarray) -> float:
    """Return the largest of 1, 1/2, 1/4, ... of the step that keeps beta positive and the likelihood from falling."""
    taken = 1.0
    lowest = float((step / beta).min())
    while 1 + taken * lowest < 0.1:
        taken /= 2
    before, rounding = _likelihood(log_means, beta)
    while taken > 2.0**-40 and _likelihood(log_means, beta + taken * step)[0] < before - rounding:
        taken /= 2
    return taken


def _likelihood(log_means: np.ndarray, beta: np.ndarray) -> tuple[float, float]:
    """Return the mean log-likelihood of a row and a bound on its rounding error."""
    terms = gammaln(beta.sum()), -gammaln(beta).sum(), (beta - 1) @ log_means
    return float(sum(terms)), 1e-13 * float(np.abs(terms).sum())


def _log_or_zero(values: np.ndarray) -> np.ndarray:
    return np.log(values, out=np.zeros_like(values), where=values > 0)


def _sums(X: Rows, axis: int) -> np.ndarray:
    return np.asarray(X.sum(axis=axis)).reshape(-1)
