"""The Dirichlet distribution of a set of histograms: maximum likelihood, and its Fisher information."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import digamma, gammaln, zeta
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays
from chimap._validation import DataError

_BLOCK_NUMBERS = 2**20  # of the rows whose logarithms are in memory together
_STEPS = 200
_TINY = np.finfo(np.float64).tiny
_EQUAL = 1e-10  # what is left to 1 of the sum of geometric means, where rows differ by rounding alone


@dataclass(frozen=True)
class Whitening:
    """What whitens the logarithms of a Dirichlet distribution: mean mu and Fisher information G of ln x.

    mu = digamma(beta) - digamma(b), G = diag(trigamma(beta)) - trigamma(b) 11', with b = sum beta. By Sherman and
    Morrison G^-1 = diag(u^2) + c u^2 (u^2)', u = trigamma(beta)^(-1/2), t = trigamma(b), c = t / (1 - t |u|^2), and
    A'A = G^-1 for A = (I + a u u' / |u|^2) diag(u), a = (1 - t |u|^2)^(-1/2) - 1.

    mean: mu (bins,). scale: u (bins,). coupling: c. common: a / |u|^2.
    """

    mean: np.ndarray
    scale: np.ndarray
    coupling: float
    common: float

    @staticmethod
    def of(beta: np.ndarray) -> Whitening:
        """From beta (bins,), float64."""
        total = beta.sum()
        trigamma, t = zeta(2, beta), float(zeta(2, total))
        length = float((1 / trigamma).sum())
        # 1 - t |u|^2 falls like 1/b. With r(x) = x - 1/trigamma(x) it is t (sum r(beta) - r(b)): no digits are lost.
        gap = t * float(_excess(beta).sum() - _excess(total))
        explained = t * length
        root = -0.5 * (np.log1p(-explained) if explained < 0.5 else np.log(gap))
        return Whitening(
            digamma(beta) - digamma(total), trigamma**-0.5, t / gap, float(np.expm1(root)) / length
        )

    def solve(self, values: np.ndarray) -> np.ndarray:
        """G^-1 values, in O(bins)."""
        square = self.scale**2
        return square * (values + self.coupling * (square @ values))


def _excess(x: Any) -> np.ndarray:
    """r(x) = x - 1/trigamma(x), in (0, 1/2]: by the asymptotic series of trigamma where the difference cancels."""
    x = np.asarray(x, dtype=np.float64)
    z = 1 / np.maximum(x, 16.0) ** 2
    # x trigamma(x) - 1 = 1/(2x) + sum B_2k / x^2k, Bernoulli's numbers
    e = 0.5 * np.sqrt(z) + z * (1 / 6 - z * (1 / 30 - z * (1 / 42 - z * (1 / 30 - z * 5 / 66))))
    return np.where(x < 16, x - 1 / zeta(2, x), x * e / (1 + e))


@dataclass(frozen=True)
class LogStatistics:
    """What the likelihood sees of l1-normalised rows p, and where to begin to maximise it.

    Zeros, of which the logarithm is infinite, count as half of the smallest positive entry, and the rest of their row
    gives what they get (the multiplicative replacement of compositional data: Martin-Fernandez, Barcelo-Vidal and
    Pawlowsky-Glahn 2003). Rows without zeros are left as they are.

    log_means: mean ln p (bins,). means, variances: of p (bins,). floor: what zeros count as.
    """

    log_means: np.ndarray
    means: np.ndarray
    variances: np.ndarray
    floor: float

    @staticmethod
    def of(rows: Any) -> LogStatistics:
        """From checked rows (n, bins), dense or CSR, in one pass. Raises DataError for rows of sum zero."""
        n, d = rows.shape
        logs, filled, first, second = np.zeros((4, d))
        smallest, row_zeros = np.inf, np.empty(n)
        size = max(1, _BLOCK_NUMBERS // d)
        for start in range(0, n, size):
            p = normalised(_arrays.take_rows(rows, slice(start, start + size)), start)
            smallest = min(smallest, _arrays.nonzero_values(p).min())
            positive = _arrays.map_values(p, np.sign)
            row_zeros[start : start + size] = d - _sums(positive, 1)
            filled += _sums(positive, 0)
            logs += _sums(_arrays.map_values(p, _log_or_zero), 0)
            first += _sums(p, 0)
            second += _sums(_arrays.map_values(p, np.square), 0)
        floor = max(smallest / 2, _TINY)
        shrinking = np.log1p(row_zeros * floor).mean()
        log_means = (logs + (n - filled) * np.log(floor)) / n - shrinking
        means = first / n
        return LogStatistics(log_means, means, np.maximum(second / n - means**2, 0), float(floor))


def normalised(rows: Any, first_row: int = 0, name: str = "X") -> Any:
    """Checked rows divided by their sums, float64, dense or CSR. Raises DataError where a row cannot be."""
    rows = _arrays.as_rows(rows, np.float64)
    sums = _arrays.row_norms_l1(rows)
    check_sums(sums, first_row, name)
    return _arrays.scale_rows(rows, 1 / sums)


def check_sums(sums: np.ndarray, first_row: int = 0, name: str = "X") -> None:
    """Refuse rows whose sum is zero or not a normal number."""
    good = (sums >= np.finfo(sums.dtype).tiny) & (sums < np.inf)
    if good.all():
        return
    row = int(np.flatnonzero(~good)[0])
    raise DataError(
        f"{name}, row {first_row + row}: its bins sum to {sums[row]:g}, and the Dirichlet kernel is of rows that can "
        "be divided by their sum. Remove the row, or give every bin a pseudo-count."
    )


def maximum_likelihood(seen: LogStatistics) -> np.ndarray:
    """beta (bins,) that maximises ln Gamma(b) - sum ln Gamma(beta_i) + sum (beta_i - 1) mean ln p_i, b = sum beta.

    Newton's method with the Fisher information, O(bins) a step, from the moments of p; a step is halved until no
    beta loses more than nine tenths and the likelihood does not fall. It is concave, and has its maximum inside
    unless all rows are equal.

    Raises DataError where they are. Source: Minka, Estimating a Dirichlet distribution, sec. 1; Ronning 1989.
    """
    if -np.expm1(np.log(np.exp(seen.log_means).sum())) < _EQUAL:
        raise DataError(
            "all rows are equal once they are divided by their sums: no Dirichlet distribution is the most likely. "
            "Check that the data vary, or give beta and offset to DirichletKernel."
        )
    beta = _from_moments(seen)
    for _ in range(_STEPS):
        whitening = Whitening.of(beta)
        slope = seen.log_means - whitening.mean
        step = whitening.solve(slope)
        taken = _halved(seen.log_means, beta, step)
        beta = beta + taken * step
        # Twice what the step gains, a row; convergence is quadratic. The slope is known to about 1e-15, and what it is
        # off by along beta counts b-fold: rows that differ little leave b uncertain to b times as much.
        if taken == 1 and slope @ step <= 1e-16 + (1e-14 * beta.sum()) ** 2:
            return beta
    warnings.warn(
        f"the parameters of the Dirichlet distribution have not converged in {_STEPS} steps.",
        ConvergenceWarning,
        stacklevel=3,
    )
    return beta


def _from_moments(seen: LogStatistics) -> np.ndarray:
    """b means, with b the median over bins of m (1 - m) / v - 1.

    No maximum is much below 1e-3, since digamma(beta_i) = mean ln p_i + digamma(b) and ln p_i > -709.
    """
    m = np.maximum(seen.means, seen.floor)
    varies = seen.variances > 0
    totals = m[varies] * (1 - m[varies]) / seen.variances[varies] - 1
    totals = totals[totals > 0]
    return np.maximum(m / m.sum() * (float(np.median(totals)) if totals.size else 1.0), 1e-3)


def _halved(log_means: np.ndarray, beta: np.ndarray, step: np.ndarray) -> float:
    """The largest of 1, 1/2, 1/4, ... of the step that keeps beta positive and the likelihood from falling."""
    taken = 1.0
    lowest = float((step / beta).min())
    while 1 + taken * lowest < 0.1:
        taken /= 2
    before, rounding = _likelihood(log_means, beta)
    while taken > 2.0**-40 and _likelihood(log_means, beta + taken * step)[0] < before - rounding:
        taken /= 2
    return taken


def _likelihood(log_means: np.ndarray, beta: np.ndarray) -> tuple[float, float]:
    """The mean log-likelihood of a row, and how far rounding may put it off."""
    parts = gammaln(beta.sum()), -gammaln(beta).sum(), (beta - 1) @ log_means
    return float(sum(parts)), 1e-13 * float(np.abs(parts).sum())


def _log_or_zero(values: np.ndarray) -> np.ndarray:
    return np.log(values, out=np.zeros_like(values), where=values > 0)


def _sums(X: Any, axis: int) -> np.ndarray:
    return np.asarray(X.sum(axis=axis)).reshape(-1)
