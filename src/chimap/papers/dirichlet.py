"""The Dirichlet whitening kernel, whitened logarithms of histograms, and its map."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist
from scipy.special import betaincinv, digamma, gammaln, zeta
from sklearn.base import OneToOneFeatureMixin
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays, _loops, _threads, _validation
from chimap._errors import InputError
from chimap._onnx import Value, unit_rows
from chimap._types import JSON, Array, ArrayLike, ArrayMap, MatrixLike, Rows
from chimap._validation import DataError, check_positive, check_row_sums, is_auto, row_sums, validated_rows
from chimap.features.base import Features, Footprint
from chimap.features.mapped_functions import LinearFunction, MappedModel, dense
from chimap.kernels import Kernel, as_kernel
from chimap.kernels.additive import log_or_zero
from chimap.kernels.base import paired_rows
from chimap.model_files import register
from chimap.model_files.restoring import Agreeing

_BLOCK_NUMBERS = 2**20  # entries of a block of rows that is made dense, or whose logarithms are in memory, at once
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
        for part in _arrays.slices(n, size):
            p = normalised(_arrays.take_rows(rows, part))
            smallest = min(smallest, float(_arrays.nonzero_values(p).min()))
            positive = _arrays.map_values(p, np.sign)
            row_zeros[part] = d - _sums(positive, 1)
            filled += _sums(positive, 0)
            logs += _sums(_arrays.map_values(p, log_or_zero), 0)
            first += _sums(p, 0)
            second += _sums(_arrays.map_values(p, np.square), 0)
        means = first / n
        return LogStatistics(logs, n - filled, row_zeros, means, np.maximum(second / n - means**2, 0), smallest)

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
    return _arrays.unit_rows(_arrays.as_rows(rows, np.float64))


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


def _sums(X: Rows, axis: int) -> np.ndarray:
    return np.asarray(X.sum(axis=axis)).reshape(-1)


@dataclass(frozen=True)
class DirichletKernel(Kernel):
    """Dirichlet whitening kernel of l1-normalised rows:

        K(x, y) = (ln(x + f) - mu)' G^-1 (ln(y + f) - mu)

    mu and G are the mean and the covariance of ln x under the Dirichlet distribution with parameters beta:
    mu = digamma(beta) - digamma(sum beta), G = diag(trigamma(beta)) - trigamma(sum beta) 11'. G is also its Fisher
    information, so this is the Fisher kernel of the distribution, with an offset f that keeps ln 0 finite. The kernel
    normalises the rows itself. An empty row cannot be normalised and stays empty: it is ln(0 + f) in every bin.

    K(x, x) is not 1: it is the squared length of d variables that are uncorrelated and of variance 1 under the
    distribution.

    Parameters
    ----------
    beta : array-like of shape (bins,) or str, default="auto"
        Positive numbers, or "auto" for those of the largest likelihood on the rows given to ``fitted``, in which zeros
        count as f.
    offset : float or str, default="auto"
        f, a positive number on the scale of rows that sum to 1. "auto" takes the 25 % quantile of the Beta distribution
        that an average bin follows, Beta(b/d, b - b/d) for d bins and b = sum beta, but no less than half of the
        smallest positive bin of the data.

    Raises
    ------
    ValueError
        If beta or the offset is neither "auto" nor positive.

    References
    ----------
    Gui, Chi, Zhang and Bao, A probability distribution kernel based on whitening transformation, eqs. 13-19. Their 25 %
    quantile (eq. 19) assumes the same marginal distribution for all bins; here it is that of an average bin.

    Examples
    --------
    >>> import numpy as np
    >>> kernel = DirichletKernel(beta=(0.7, 1.9, 0.4), offset=1e-3)
    >>> kernel(np.array([[0.15, 0.45, 0.4]]), np.array([[0.5625, 0.0, 0.4375]])).round(6)
    array([[1.666279]])
    """

    degree = 0.0  # only proportions count

    beta: str | Sequence[float] | np.ndarray = "auto"
    offset: float | str = "auto"

    name = "dirichlet"

    def __post_init__(self) -> None:
        if not is_auto(self.offset):
            check_positive(self.offset, "offset (of the Dirichlet kernel: a number, or 'auto')")
        if not is_auto(self.beta):
            # Kernels compare and hash as values, so beta is a tuple.
            object.__setattr__(self, "beta", _checked_beta(self.beta))

    @property
    def is_fitted(self) -> bool:
        """Whether beta and the offset are numbers."""
        return not isinstance(self.beta, str) and not isinstance(self.offset, str)

    def fitted(self, X: MatrixLike, random_state: int | None = 0) -> DirichletKernel:
        """Return this kernel with beta and offset set to numbers, from one pass over X; nothing is random.

        Empty rows carry no information on the distribution and are left out. Raises DataError for fewer than two other
        rows or two bins unless beta is given, and for rows that are all equal.
        """
        if self.is_fitted:
            return self
        rows, _ = paired_rows(X, None, signed=False)
        self.check_width(rows.shape[1])
        rows = _filled(rows)
        n, d = rows.shape
        if n < 1 or (isinstance(self.beta, str) and (n < 2 or d < 2)):
            raise DataError(
                "a Dirichlet distribution is fitted on at least two non-empty rows of at least two bins; got "
                f"n_samples = {n}, n_features = {d}. Pass more rows, or give beta and offset to DirichletKernel."
            )
        statistics = LogStatistics.of(rows)
        if not isinstance(self.beta, str):
            return replace(self, offset=max(lower_quartile(np.array(self.beta)), statistics.smallest / 2))
        if isinstance(self.offset, str):
            beta, offset = with_quartile_offset(statistics)
        else:
            beta, offset = (maximum_likelihood(statistics.log_means(self.offset), statistics.beginning()), self.offset)
        return replace(self, beta=beta, offset=offset)

    @cached_property
    def whitening(self) -> DirichletWhitening:
        """Mean and whitening of ln x; beta must be numbers."""
        return DirichletWhitening.of(np.array(self.beta))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m), computed in float64. Parameters that are "auto" are fitted on X.

        Raises DataError for NaN, infinite or negative entries, and for rows of another width than beta.
        """
        left, right, dtype = self._whitened_pair(X, Y)
        return (left @ right.T).astype(dtype, copy=False)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        left, _, dtype = self._whitened_pair(X, None)
        return np.einsum("ij,ij->i", left, left).astype(dtype, copy=False)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared Mahalanobis distances of ln(x + f) and ln(y + f), (n, m), exact for close rows too."""
        left, right, dtype = self._whitened_pair(X, Y)
        return cdist(left, right, "sqeuclidean").astype(dtype, copy=False)

    def _whitened_pair(self, X: MatrixLike, Y: MatrixLike | None) -> tuple[np.ndarray, np.ndarray, np.dtype]:
        rows, others = paired_rows(X, Y, signed=False)
        kernel = self.fitted(rows)
        kernel.check_width(rows.shape[1])
        left = kernel._whitened(rows, "X")
        return left, left if Y is None else kernel._whitened(others, "Y"), rows.dtype

    def _whitened(self, rows: Rows, name: str) -> np.ndarray:
        """Return [z, sqrt(c) u.z] with z = u (ln(x + f) - mu), (n, bins + 1) float64; their products are the kernel.

        This uses G^-1 itself, not its square root. The feature map uses the square root and is tested against this.
        """
        w = self.whitening
        row_sums(rows, name=name)
        z = _arrays.to_dense(normalised(rows)) + self.offset
        np.log(z, out=z)
        z -= w.mean
        z *= w.scale
        return np.column_stack([z, np.sqrt(w.coupling) * (z @ w.scale)])

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        w, z = self.whitening, self.onnx_logs(x)
        whitened = x.graph.concatenated([z, (z * w.scale).sum(1, keep=True) * np.sqrt(w.coupling)], 1)
        return whitened @ self._whitened(Y, "landmarks").T

    def onnx_logs(self, x: Value) -> Value:
        """Return scale (ln(x / |x|_1 + f) - mean) (n, bins), with f the offset, as ONNX nodes.

        Parameters
        ----------
        x : Value
            The rows.
        """
        w, offset = self.whitening, max(float(self.offset), float(np.finfo(x.dtype).tiny))
        return ((unit_rows(x) + offset).apply("Log") - w.mean) * w.scale

    @property
    def own_map(self) -> type[Features]:
        return DirichletMap

    def check_width(self, d: int) -> None:
        """Raise DataError for rows of another width than beta.

        Parameters
        ----------
        d : int
            Number of bins of the rows.
        """
        if not isinstance(self.beta, str):
            _validation.check_width(np.empty((0, d)), len(self.beta), "DirichletKernel with this beta")


def _filled(rows: Rows) -> Rows:
    """Return the rows that are not empty, or all rows if none is. Raises DataError for sums that are not finite."""
    sums = row_sums(rows)
    return rows if (sums > 0).all() else _arrays.take_rows(rows, np.flatnonzero(sums > 0))


def _checked_beta(beta: str | Sequence[float] | np.ndarray) -> tuple[float, ...]:
    values = np.asarray(beta)
    ok = values.dtype.kind in "fiu" and values.ndim == 1 and values.size > 1
    if not ok or not np.all((values > 0) & np.isfinite(values)):
        raise InputError(f"beta must be 'auto' or at least two positive numbers, one for each bin; got {beta!r}.")
    return tuple(values.astype(np.float64).tolist())


class DirichletMap(OneToOneFeatureMixin, Features):
    """Map rows so that the dot product is the Dirichlet whitening kernel exactly, with as many features as bins.

        Psi(x) = A (ln(x / |x|_1 + f) - mu).

    A'A = G^-1, so that under the Dirichlet distribution the features are uncorrelated, of mean 0 and variance 1 (for f
    = 0). A = (I + a u u' / |u|^2) diag(u) takes O(bins) operations for each row; ``kernels.dirichlet_likelihood`` gives
    mu, u and a. ln(0 + f) is not 0, so that sparse rows give dense features; an empty row is ln(0 + f) in every bin.
    float32 stays float32; integers become float64.

    Parameters
    ----------
    kernel : str or DirichletKernel, default="dirichlet"
        "dirichlet", or a ``DirichletKernel`` with its beta and offset f; each of them is a number or fitted on the
        rows.

    Attributes
    ----------
    kernel_ : DirichletKernel
        The kernel with beta and offset as numbers.
    beta_ : ndarray of shape (bins,)
        Parameters of the Dirichlet distribution.
    offset_ : float
        f.
    n_features_in_ : int
        Number of bins.

    References
    ----------
    Gui, Chi, Zhang and Bao, A probability distribution kernel based on whitening transformation, eq. 22.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet([1.0, 2.0, 0.5], size=50)
    >>> psi = DirichletMap().fit(X)
    >>> Z = psi.transform(X)
    >>> Z.shape, bool(abs(Z @ Z.T - psi.kernel_(X)).max() < 1e-10)
    ((50, 3), True)
    """

    n_features_in_: int
    kernel_: DirichletKernel

    def __init__(self, kernel: str | Kernel = "dirichlet"):
        self.kernel = kernel

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Features``: Dirichlet kernels."""
        return isinstance(kernel, DirichletKernel)

    def footprint(self, n_bins: int) -> Footprint:
        return Footprint(n_bins)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the bytes of proportions, of flags for positive entries, and of logarithms or squares."""
        return 24 * int(n_rows * row_bytes / itemsize)

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> DirichletMap:
        """Fit beta and the offset on rows, in one pass over them.

        Raises DataError also for fewer than two bins or non-empty rows.
        """
        kernel = as_kernel(self.kernel)
        if not isinstance(kernel, DirichletKernel):
            raise InputError(
                f"DirichletMap takes the kernel 'dirichlet'; got {kernel.name!r}. Use OptimalMap for additive kernels "
                "and FourierFeatures for exponential ones."
            )
        rows = validated_rows(self, X, reset=True, signed=False)
        kernel.check_width(rows.shape[1])
        self.kernel_ = kernel.fitted(rows)
        return self

    @property
    def beta_(self) -> np.ndarray:
        """Parameters of the distribution, of shape (bins,)."""
        return np.array(self.kernel_.beta)

    @property
    def offset_(self) -> float:
        """The offset f that is added to rows of sum 1."""
        return float(self.kernel_.offset)

    def array_features(self, rows: Array) -> Array:
        """Return the features of checked dense rows by operations of the rows' array library."""
        xp, w = _arrays.namespace(rows), self.kernel_.whitening
        sums = xp.sum(rows, axis=1, keepdims=True)
        if not bool(xp.all(xp.isfinite(sums))):
            check_row_sums(_arrays.to_host(sums[:, 0]))
        scale, mean = _arrays.as_like(w.scale, rows), _arrays.as_like(w.mean, rows)
        offset = max(self.offset_, float(xp.finfo(rows.dtype).smallest_normal))
        shares = rows / xp.where(sums > 0, sums, xp.ones_like(sums))
        Z = scale * (xp.log(shares + offset) - mean)
        return Z + float(w.common) * xp.sum(scale * Z, axis=1, keepdims=True) * scale

    def on_device(self, like: Array) -> ArrayMap:
        """Return ``array_features`` as a function for arrays such as ``like``."""
        return self.array_features

    def describe(self) -> str:
        """Return a short description of the map, "DirichletMap, one term per bin"."""
        return "DirichletMap, one term per bin"

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        size = max(1, _BLOCK_NUMBERS // rows.shape[1]) if _arrays.is_sparse(rows) else max(1, rows.shape[0])
        for first in range(0, rows.shape[0], size):
            part = slice(first, first + size)
            self._dense_into(_arrays.to_dense(_arrays.take_rows(rows, part)), out[part], first)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def _dense_into(self, rows: np.ndarray, out: np.ndarray, first_row: int) -> None:
        kind, w = out.dtype.type, self.kernel_.whitening
        # The loop's logarithm does not take subnormal numbers of this type.
        offset = kind(max(self.offset_, np.finfo(kind).tiny))
        scale, mean, common = w.scale.astype(kind), w.mean.astype(kind), kind(w.common)
        sums = np.empty(rows.shape[0], dtype=kind)
        _threads.over_rows(
            rows.shape[0],
            rows.shape[1],
            lambda part: _loops.dirichlet_features(rows[part], offset, scale, mean, common, out[part], sums[part]),
        )
        check_row_sums(sums, first_row=first_row)

    @property
    def _n_features_out(self) -> int:
        return int(self.n_features_in_)

    def onnx(self, x: Value) -> Value:
        w, z = self.kernel_.whitening, self.kernel_.onnx_logs(x)
        return z + (z * w.scale).sum(1, keep=True) * w.common * w.scale

    def mapped_model(self, coef: np.ndarray, intercept: np.ndarray) -> MappedModel:
        """See ``FittedFeatures``: z = A v is linear in the scaled logarithms v of the bins, A = I + common s s'."""
        w = self.kernel_.whitening
        by_bin = coef + w.common * np.outer(w.scale, w.scale @ coef)
        turned = np.eye(coef.shape[0]) + w.common * np.outer(w.scale, w.scale)

        def rows(X: Rows) -> np.ndarray:
            return np.asarray(np.linalg.solve(turned, dense(self.mapped(X)).T).T)

        return MappedModel(rows, np.arange(coef.shape[0]), LinearFunction(by_bin, intercept))


def _agreeing(state: JSON, sizes: dict[str, int]) -> Agreeing:
    kernel = state["kernel_"]
    is_fitted = not isinstance(kernel.beta, str) and not isinstance(kernel.offset, str)
    return [("a fitted kernel", is_fitted, True), ("bins", np.shape(kernel.beta), (state["n_features_in_"],))]


register(DirichletKernel)
register(DirichletMap, agreeing=_agreeing)
