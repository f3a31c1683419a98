"""Features of the min-max kernel by consistent weighted sampling."""

from __future__ import annotations

from typing import Annotated

import numpy as np
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._types import CSR, ArrayLike, MatrixLike, RandomState, Rows, Shape, Transformed
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.features.base import Features
from chimap.kernels import MinMax
from chimap.model_files import register

_MOST_BITS = 16  # of a code, and of a level


class MinMaxFeatures(Features):
    """Features of the min-max kernel: one-hot codes of bins that k hashes sample, scaled by 1/sqrt(k).

    z(x) . z(y) approximates sum min / sum max. For every bin, hash h draws r, c ~ Gamma(2, 1) and b ~ U(0, 1) once. For
    a row it samples the bin with the least ln c - r (t - b) - r, where t = floor(ln x / r + b). Two rows have the same
    bin and t with probability K(x, y). The bin alone ("0-bit") agrees only slightly more often where rows have many
    entries. The sample is coded by ``n_bits``, as one of 2^n_bits columns of the hash, so that different samples agree
    by chance with probability 2^-n_bits. A row of s entries takes O(s k) operations and has k ones, whatever the number
    of bins.

    Parameters
    ----------
    n_components : int, default=512
        k, the number of hashes. The standard error of z(x) . z(y) is at most 1 / (2 sqrt(k)).
    n_bits : int, default=8
        Bits of a code, 1 to 16.
    n_level_bits : int, default=0
        Bits of t that count, 0 to 16. 0 is Li's 0-bit scheme; rows of few entries, some tens, need two or more, without
        which agreement exceeds the kernel by some hundredths.
    random_state : int, RandomState or None, default=None
        Seed or generator for the hashes. None differs at each fit.

    Attributes
    ----------
    kernel_ : MinMax
        The exact kernel.
    rates_, logs_, offsets_ : ndarray of shape (bins, k)
        r, ln c and b, float32.
    n_features_in_ : int
        Number of bins.

    Raises
    ------
    DataError
        From ``fit`` and ``transform``, for negative, NaN or infinite entries.

    References
    ----------
    Ioffe, Improved consistent sampling, weighted minhash and L1 sketching. Li, 0-bit consistent weighted sampling.

    Examples
    --------
    >>> import numpy as np
    >>> counts = np.random.default_rng(0).poisson(0.5, (50, 64))
    >>> features = MinMaxFeatures(n_components=1024, random_state=0).fit(counts)
    >>> Z = features.transform(counts)
    >>> bool(abs((Z @ Z.T).toarray() - features.kernel_(counts)).max() < 0.1)
    True
    """

    keeps_zeros = True  # a row of zeros has features of zeros
    _takes_signs = False

    n_features_in_: int
    kernel = "minmax"
    kernel_: MinMax
    rates_: Annotated[np.ndarray, Shape("n_features_in_", "n_components")]
    logs_: Annotated[np.ndarray, Shape("n_features_in_", "n_components")]
    offsets_: Annotated[np.ndarray, Shape("n_features_in_", "n_components")]

    def __init__(
        self, n_components: int = 512, n_bits: int = 8, n_level_bits: int = 0, random_state: RandomState = None
    ):
        self.n_components = n_components
        self.n_bits = n_bits
        self.n_level_bits = n_level_bits
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> MinMaxFeatures:
        """Draw the hashes for the bins of rows; the values of the rows are only checked."""
        check_positive(self.n_components, "n_components", integer=True)
        check_positive(self.n_bits, "n_bits", integer=True)
        if self.n_bits > _MOST_BITS:
            raise InputError(f"n_bits must be at most {_MOST_BITS}; got {self.n_bits}.")
        check_choice(self.n_level_bits, "n_level_bits", range(_MOST_BITS + 1))
        n_bins = validated_rows(self, X, reset=True, signed=False).shape[1]
        rng = np.random.default_rng(check_random_state(self.random_state).randint(2**31))
        shape = n_bins, self.n_components
        self.rates_ = rng.standard_gamma(2.0, shape).astype(np.float32)
        self.logs_ = np.log(rng.standard_gamma(2.0, shape)).astype(np.float32)
        self.offsets_ = rng.random(shape, np.float32)
        self.kernel_ = MinMax()
        return self

    @property
    def _n_features_out(self) -> int:
        return int(self.n_components) << int(self.n_bits)

    def transform(self, X: MatrixLike) -> Transformed:
        """Return the features of rows as CSR, n_components entries for each row; an empty row has none."""
        check_is_fitted(self)
        return self.transform_sparse(validated_rows(self, X, reset=False, signed=False))

    def transform_sparse(self, rows: Rows) -> CSR:
        """Return the features of checked rows, dense or CSR, as CSR in their dtype."""
        rows = _arrays.without_zeros(_arrays.to_sparse(rows))
        k = int(self.n_components)
        codes = np.zeros((rows.shape[0], k), np.int64)
        _threads.over_rows(
            rows.shape[0],
            k * max(1, rows.nnz // max(1, rows.shape[0])),
            lambda part: _loops.consistent_samples(
                rows.data,
                rows.indices,
                rows.indptr[part.start : part.stop + 1],
                self.rates_,
                self.logs_,
                self.offsets_,
                (1 << int(self.n_level_bits)) - 1,
                (1 << int(self.n_bits)) - 1,
                codes[part],
            ),
        )
        codes += np.arange(k) << int(self.n_bits)
        is_filled = np.diff(rows.indptr) > 0
        columns = codes[is_filled].reshape(-1)
        data = np.full(columns.size, 1 / np.sqrt(k), rows.dtype)
        starts = np.concatenate([[0], np.cumsum(is_filled * k)])
        return _arrays.csr(data, columns, starts, (rows.shape[0], self._n_features_out))

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Write the dense features of checked rows, minus a shift, into an array."""
        self.transform_sparse(rows).toarray(out=out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def describe(self) -> str:
        """Return a short description of the features, such as "512 consistent samples of 8 bits"."""
        return f"{self.n_components:,} consistent samples of {self.n_bits} bits"


register(MinMaxFeatures)
