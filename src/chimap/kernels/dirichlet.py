"""The Dirichlet whitening kernel: whitened logarithms of histograms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.spatial.distance import cdist

from chimap import _arrays, _validation
from chimap._errors import InputError
from chimap._types import MatrixLike, Rows
from chimap._validation import DataError, check_positive, row_sums
from chimap.kernels.base import Kernel, paired_rows
from chimap.kernels.dirichlet_likelihood import (
    DirichletWhitening,
    LogStatistics,
    lower_quartile,
    maximum_likelihood,
    normalised,
    with_quartile_offset,
)


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

    beta: str | Sequence[float] | np.ndarray = "auto"
    offset: float | str = "auto"

    name = "dirichlet"

    def __post_init__(self) -> None:
        if not (isinstance(self.offset, str) and self.offset == "auto"):
            check_positive(self.offset, "offset (of the Dirichlet kernel: a number, or 'auto')")
        if not (isinstance(self.beta, str) and self.beta == "auto"):
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
            beta, offset = (
                maximum_likelihood(statistics.log_means(self.offset), statistics.beginning()),
                self.offset,
            )
        return replace(self, beta=beta, offset=offset)

    @cached_property
    def whitening(self) -> DirichletWhitening:
        """Mean and whitening of ln x; beta must be numbers."""
        return DirichletWhitening.of(np.array(self.beta))

    @property
    def degree(self) -> float:
        """Degree of homogeneity, 0: only proportions count."""
        return 0.0

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m), computed in float64. Parameters that are "auto" are fitted on X.

        Raises DataError for NaN, infinite or negative entries, and for rows of another width than beta.
        """
        left, right, dtype = self._whitened_pair(X, Y)
        return (left @ right.T).astype(dtype, copy=False)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return K(x, x) for every row, (n,)."""
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
        raise InputError(
            f"beta must be 'auto' or at least two positive numbers, one for each bin; got {beta!r}."
        )
    return tuple(values.astype(np.float64).tolist())
