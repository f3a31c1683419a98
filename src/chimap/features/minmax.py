"""Features of the min-max kernel by consistent weighted sampling."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._types import CSR, ArrayLike, MatrixLike, RandomState, Rows, Transformed
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.kernels import MinMax
from chimap.model_files import Transformer, register

if TYPE_CHECKING:
    from sklearn.utils import Tags


_MOST_BITS = 16


class MinMaxFeatures(ClassNamePrefixFeaturesOutMixin, Transformer, BaseEstimator):
    """z(x) with z(x) . z(y) ~ sum min / sum max: one-hot codes of bins that k hashes sample, scaled by 1/sqrt(k).

    Hash h draws r, c ~ Gamma(2, 1) and b ~ U(0, 1) for every bin once, and samples of a row the bin with the least
    ln c - r (t - b) - r, t = floor(ln x / r + b). Two rows have the same bin and t with probability K(x, y). The bin
    alone ("0-bit") agrees little more often where rows have many entries. The sample is coded by ``n_bits``, one of
    2^n_bits columns a hash, so that different samples agree by chance in one of 2^n_bits. A row of s entries takes
    O(s k) operations and has k ones, whatever the bins.

    Parameters
    ----------
    n_components : int
        k, hashes. The standard error of z(x) . z(y) is at most 1 / (2 sqrt(k)).
    n_bits : int
        Of a code, 1 to 16.
    n_level_bits : int
        Of t that count, 0 to 16. 0 is Li's 0-bit scheme; rows of few entries, some tens, want two or more, without
        which agreement exceeds the kernel by some hundredths.
    random_state : int, RandomState or None

    Attributes
    ----------
    kernel_ : MinMax
    n_features_in_ : int
        Bins.

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

    n_features_in_: int
    kernel_: MinMax
    rates_: np.ndarray
    logs_: np.ndarray
    offsets_: np.ndarray

    def __init__(
        self,
        n_components: int = 512,
        n_bits: int = 8,
        n_level_bits: int = 0,
        random_state: RandomState = None,
    ):
        self.n_components = n_components
        self.n_bits = n_bits
        self.n_level_bits = n_level_bits
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> MinMaxFeatures:
        """Draw the hashes for the bins of rows X (n, bins); neither their values nor y are used."""
        check_positive(self.n_components, "n_components", integer=True)
        check_positive(self.n_bits, "n_bits", integer=True)
        if self.n_bits > _MOST_BITS:
            raise ValueError(f"n_bits must be at most {_MOST_BITS}; got {self.n_bits}.")
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

    @property
    def _keeps_zeros(self) -> bool:
        return True

    def transform(self, X: MatrixLike) -> Transformed:
        """Features (n, n_components 2^n_bits), CSR of n_components entries a row, in the floating type of X; an empty
        row has none."""
        check_is_fitted(self)
        return self.transform_sparse(validated_rows(self, X, reset=False, signed=False))

    def transform_sparse(self, rows: Rows) -> CSR:
        """The same of checked rows."""
        rows = _arrays.without_zeros(_arrays.to_sparse(rows))
        k = int(self.n_components)
        codes = np.zeros((rows.shape[0], k), np.int64)
        _threads.over_rows(
            rows.shape[0],
            k * max(1, rows.nnz // max(1, rows.shape[0])),
            lambda part: _loops.consistent_samples(
                rows.data, rows.indices, rows.indptr[part.start : part.stop + 1], self.rates_, self.logs_,
                self.offsets_, (1 << int(self.n_level_bits)) - 1, (1 << int(self.n_bits)) - 1, codes[part],
            ),
        )  # fmt: skip
        codes += np.arange(k) << int(self.n_bits)
        is_filled = np.diff(rows.indptr) > 0
        columns = codes[is_filled].reshape(-1)
        data = np.full(columns.size, 1 / np.sqrt(k), rows.dtype)
        starts = np.concatenate([[0], np.cumsum(is_filled * k)])
        return _arrays.csr(data, columns, starts, (rows.shape[0], self._n_features_out))

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        """Dense features minus ``shift`` of checked rows into ``out``."""
        self.transform_sparse(rows).toarray(out=out)
        if shift is not None:
            out -= shift.astype(out.dtype, copy=False)

    def describe(self) -> str:
        """'512 consistent samples of 8 bits'."""
        return f"{self.n_components:,} consistent samples of {self.n_bits} bits"

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


register(MinMaxFeatures)
