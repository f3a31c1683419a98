"""The additive homogeneous kernels: chi2, intersection, Jensen-Shannon and Hellinger.

K(x, y) = sum_i k(x_i, y_i) with k(x, y) = sqrt(xy) S(ln y - ln x). S is the signature and kappa, its Fourier
transform, the spectrum: S(l) = int kappa(w) exp(-i w l) dw. Source: Vedaldi and Zisserman, Efficient additive kernels
via explicit feature maps, Fig. 1 and section 2.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._onnx import Value
from chimap._types import CSR, JSON, ArrayLike, MatrixLike, Rows
from chimap._validation import check_positive
from chimap.kernels.base import Kernel, paired_rows

_SIGNATURE_NUMBERS = 2**20  # values of the signature (pairs of rows times bins) that are in memory at once
_TILE_BYTES = 2**18  # the tile of Y that stays in a core's cache while the rows of X pass over it


@dataclass(frozen=True)
class AdditiveKernel(Kernel):
    """Additive homogeneous kernel of non-negative rows:

        K(x, y) = sum_i (x_i y_i)^(gamma/2) S(ln y_i - ln x_i)

    With ``is_signed`` bins may be negative, and a bin contributes sign(xy) k(|x|, |y|) (Lemma 2 of the paper).

    Parameters
    ----------
    name : str
        Name of the kernel.
    signature_function : callable
        The signature S as a function of float64 arrays of differences of logarithms, with S(0) = 1.
    spectrum_function : callable
        The spectrum kappa as a function of float64 arrays of frequencies; its integral is S(0) = 1.
    form : int or None, default=None
        Number of the compiled formula of the kernel; if None, the signature is evaluated, which is some fifty times as
        slow.
    gamma : float, default=1.0
        Degree of homogeneity: k(cx, cy) = c^gamma k(x, y), so l_gamma-normalised rows have K(x, x) = 1.
    is_signed : bool, default=False
        Whether bins may be negative.
    is_analytic : bool, default=False
        Whether S has no kink and no singularity at abs(Im l) < pi; feature maps are then made faster.
    linear_in : str or None, default=None
        What the kernel is a product of, if S = 1.

    References
    ----------
    Vedaldi and Zisserman, Efficient additive kernels via explicit feature maps (signatures and spectra).

    Examples
    --------
    >>> import numpy as np
    >>> from chimap import chi2
    >>> chi2(np.array([[0.25, 0.75]]), np.array([[0.75, 0.25]]))
    array([[0.75]])
    >>> chi2.distance(np.array([[0.25, 0.75]]), np.array([[0.75, 0.25]]))  # sum (x-y)^2/(x+y)
    array([[0.5]])
    """

    name: str
    signature_function: Callable[[np.ndarray], np.ndarray]
    spectrum_function: Callable[[np.ndarray], np.ndarray]
    form: int | None = None
    gamma: float = 1.0
    is_signed: bool = False
    is_analytic: bool = False
    linear_in: str | None = None

    @property
    def inner(self) -> Self:
        """The kernel itself."""
        return self

    @property
    def degree(self) -> float:
        """Degree of homogeneity, gamma."""
        return self.gamma

    @property
    def by_name(self) -> JSON:
        return {"kernel": self.name, "gamma": self.gamma, "is_signed": self.is_signed}

    def restored(self, state: JSON) -> AdditiveKernel:
        kernel = self.with_gamma(state["gamma"])
        return kernel.signed() if state["is_signed"] else kernel

    def with_gamma(self, gamma: float) -> AdditiveKernel:
        """Return the gamma-homogeneous variant, k(x, y) = (xy)^(gamma/2) S(ln y - ln x).

        Parameters
        ----------
        gamma : float
            Positive degree of homogeneity.

        Raises
        ------
        ValueError
            If gamma is not positive.
        """
        check_positive(gamma, "gamma")
        return replace(self, gamma=float(gamma))

    def signed(self) -> AdditiveKernel:
        """Return the variant for bins of either sign, sign(xy) k(|x|, |y|)."""
        return replace(self, is_signed=True)

    def signature(self, log_ratio: ArrayLike) -> np.ndarray:
        """Return the signature S, an array of the shape of ``log_ratio``; S(0) = 1.

        Parameters
        ----------
        log_ratio : array-like
            Differences of logarithms, ln y - ln x.
        """
        return self.signature_function(np.asarray(log_ratio, dtype=np.float64))

    def spectrum(self, frequency: ArrayLike) -> np.ndarray:
        """Return the spectrum kappa, an array of the shape of ``frequency``; its integral is S(0) = 1.

        The spectrum of the Hellinger kernel is a delta function: inf at 0 and 0 elsewhere.

        Parameters
        ----------
        frequency : array-like
            Frequencies w.
        """
        return self.spectrum_function(np.asarray(frequency, dtype=np.float64))

    def __call__(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the Gram matrix (n, m) of rows X (n, bins) and Y (m, bins), in the floating type of the data.

        Raises DataError for NaN, infinite or (unless signed) negative entries, and for different widths.
        """
        left, right = paired_rows(X, Y, signed=self.is_signed)
        if not self.is_signed:
            return self._pairwise(left, right, squared=False)
        split_left, split_right = _split_signs(left), _split_signs(right)
        return self._pairwise(split_left, split_right, squared=False) - self._crossed(split_left, right)

    def distance(self, X: MatrixLike, Y: MatrixLike | None = None) -> np.ndarray:
        """Return the squared distances D^2 = K(x, x) + K(y, y) - 2 K(x, y), (n, m), computed without cancellation.

        They are sum (x-y)^2/(x+y) for chi2, twice the "half" chi-square distance; the l1 distance for the intersection
        kernel; sum (sqrt x - sqrt y)^2 for Hellinger; and KL(x|m) + KL(y|m) in bits, m = (x+y)/2, for Jensen-Shannon.
        """
        left, right = paired_rows(X, Y, signed=self.is_signed)
        if not self.is_signed:
            return self._pairwise(left, right, squared=True)
        split_left, split_right = _split_signs(left), _split_signs(right)
        return self._pairwise(split_left, split_right, squared=True) + 2 * self._crossed(split_left, right)

    def diagonal(self, X: MatrixLike) -> np.ndarray:
        """Return K(x, x) = sum_i |x_i|^gamma for every row, (n,), since S(0) = 1."""
        rows, _ = paired_rows(X, None, signed=self.is_signed)
        powers = _arrays.map_values(rows, np.abs)
        if self.gamma != 1:
            powers = _arrays.map_values(powers, lambda values: np.power(values, self.gamma, out=values))
        return np.asarray(powers.sum(axis=1)).reshape(-1)

    def onnx(self, x: Value, Y: np.ndarray) -> Value:
        return x.graph.each_row(Y, lambda y: self._onnx_term(x, y).sum(1))

    def onnx_distance(self, x: Value, Y: np.ndarray) -> Value:
        """Return the squared distances (n, m) of rows x and constant rows Y as nodes of an ONNX graph.

        Parameters
        ----------
        x : Value
            The rows, in float64.
        Y : ndarray of shape (m, bins)
            Rows that are written into the graph, in float64.
        """
        magnitudes = x.apply("Abs") if self.is_signed else x
        return magnitudes.power(self.gamma).sum(1, keep=True) + self.diagonal(Y) - self.onnx(x, Y) * 2.0

    def _onnx_term(self, x: Value, y: Value) -> Value:
        """Return k(x, y) entry by entry: signs times the factor of gamma times the plain kernel of the magnitudes."""
        a, b = (value.apply("Abs") if self.is_signed else value for value in (x, y))
        product = self.onnx_plain_term(a, b)
        if self.gamma != 1:
            product = product * onnx_signature_power(a, self.gamma) * onnx_signature_power(b, self.gamma)
        return product * x.apply("Sign") * y.apply("Sign") if self.is_signed else product

    def onnx_plain_term(self, x: Value, y: Value) -> Value:
        """Return k(x, y) of magnitudes at gamma = 1, entry by entry, as ONNX nodes; it is 0 where both are 0.

        Parameters
        ----------
        x : Value
            Magnitudes.
        y : Value
            Magnitudes of the other rows, of a shape that fits.
        """
        if self.name == "intersection":
            return x.at_most(y)
        if self.name == "hellinger":
            return x.apply("Sqrt") * y.apply("Sqrt")
        total = x + y
        safe = (total > 0.0).where(total, 1.0)
        if self.name == "chi2":
            return x * y * 2.0 / safe
        if self.name == "jensen_shannon":
            return (_onnx_share(x, safe) + _onnx_share(y, safe)) * (0.5 / np.log(2.0))
        raise InputError(
            f"the additive kernel {self.name!r} cannot be written as ONNX; only chi2, intersection, jensen_shannon and "
            "hellinger can."
        )

    def _crossed(self, split: Rows, right: Rows) -> np.ndarray:
        # The kernel over bins whose signs differ: positive parts against negative parts.
        return self._pairwise(split, _split_signs(-right), squared=False)

    def _pairwise(self, left: Rows, right: Rows, *, squared: bool) -> np.ndarray:
        out = np.empty((left.shape[0], right.shape[0]), dtype=left.dtype)
        if self.form is None:
            self._fill_by_signature(left, right, squared, out)
        elif _arrays.is_sparse(left) and _arrays.is_sparse(right):
            self._fill_sparse(self.form, left, right, squared, out)
        else:
            self._fill_dense(self.form, _arrays.to_dense(left), _arrays.to_dense(right), squared, out)
        return out

    def _fill_by_signature(self, left: Rows, right: Rows, squared: bool, out: np.ndarray) -> None:
        """Fill ``out`` from the definition, in blocks and float64; a compiled formula is some fifty times as fast."""
        right_dense = _arrays.to_dense(right).astype(np.float64)
        block_rows = max(1, _SIGNATURE_NUMBERS // max(1, right_dense.size))
        root_right, log_right = right_dense ** (self.gamma / 2), log_or_zero(right_dense)
        for rows in _arrays.slices(out.shape[0], block_rows):
            block = _arrays.to_dense(_arrays.take_rows(left, rows)).astype(np.float64)[:, None, :]
            root_block, both = block ** (self.gamma / 2), (block > 0) & (right_dense > 0)
            similar = np.where(both, self.signature(log_right - log_or_zero(block)), 0.0)
            # D^2 = (a - b)^2 + 2 a b (1 - S) keeps the digits of close values wherever S does.
            terms = (
                (root_block - root_right) ** 2 + 2 * root_block * root_right * (1 - similar)
                if squared
                else root_block * root_right * similar
            )
            out[rows] = terms.sum(axis=2)

    def _fill_dense(self, form: int, left: np.ndarray, right: np.ndarray, squared: bool, out: np.ndarray) -> None:
        work = right.size
        tile = max(1, _TILE_BYTES // max(1, right.shape[1] * right.itemsize))
        if self.gamma == 1:
            form = form + _loops.DISTANCE if squared else form
            _threads.over_rows(
                out.shape[0], work, lambda rows: _loops.pair_sums[form](left[rows], right, tile, out[rows])
            )
            return
        powers = signature_powers(left, self.gamma)
        right_powers = powers if right is left else signature_powers(right, self.gamma)
        _threads.over_rows(
            out.shape[0],
            work,
            lambda rows: _loops.pair_sums_gamma[form](
                left[rows], right, powers[rows], right_powers, squared, tile, out[rows]
            ),
        )

    def _fill_sparse(self, form: int, left: CSR, right: CSR, squared: bool, out: np.ndarray) -> None:
        plain = self.gamma == 1
        powers = left.data if plain else signature_powers(left.data, self.gamma)
        right_powers = right.data if plain else signature_powers(right.data, self.gamma)
        _threads.over_rows(
            out.shape[0],
            right.nnz,
            lambda rows: _loops.pair_sums_sparse[form](
                left.data,
                powers,
                left.indices,
                left.indptr[rows.start : rows.stop + 1],
                right.data,
                right_powers,
                right.indices,
                right.indptr,
                left.shape[1],
                plain,
                squared,
                out[rows],
            ),
        )


def signature_powers(values: np.ndarray, gamma: float) -> np.ndarray:
    """Return x^((gamma-1)/2), 0 where x = 0: the factor that turns features of the plain kernel into the variant's."""
    return np.power(values, 0.5 * (gamma - 1), out=np.zeros_like(values), where=values > 0)


def log_or_zero(values: np.ndarray) -> np.ndarray:
    """Return log x, 0 where x = 0."""
    return np.log(values, out=np.zeros_like(values), where=values > 0)


def _split_signs(rows: Rows) -> Rows:
    """Return [positive part, negative part], with twice the bins; signed kernels are sums of plain ones over these.

    sign(xy) k(|x|,|y|) = k(x+,y+) + k(x-,y-) - k(x+,y-) - k(x-,y+).
    """
    positive = _arrays.map_values(rows, lambda values: np.maximum(values, 0))
    negative = _arrays.map_values(rows, lambda values: np.maximum(-values, 0))
    return _arrays.stack_columns([positive, negative])


def _sech(x: np.ndarray) -> np.ndarray:
    # sech as 2 e^-|x| / (1 + e^-2|x|), because cosh would overflow
    e = np.exp(-np.abs(x))
    return 2 * e / (1 + e * e)


def _chi2_signature(log_ratio: np.ndarray) -> np.ndarray:
    return _sech(log_ratio / 2)


def _chi2_spectrum(frequency: np.ndarray) -> np.ndarray:
    return _sech(np.pi * frequency)


def _intersection_signature(log_ratio: np.ndarray) -> np.ndarray:
    return np.exp(-np.abs(log_ratio) / 2)


def _intersection_spectrum(frequency: np.ndarray) -> np.ndarray:
    return (2 / np.pi) / (1 + 4 * frequency**2)


def _jensen_shannon_signature(log_ratio: np.ndarray) -> np.ndarray:
    # S(l) = exp(l/2)/2 log2(1+e^-l) + exp(-l/2)/2 log2(1+e^l) is even in l. log1p keeps the digits for large |l|,
    # where exp(l/2) itself would overflow.
    a = np.abs(log_ratio)
    e = np.exp(-a)
    tail = np.log1p(e)
    share = np.divide(tail, e, out=np.ones_like(e), where=e > 0)
    return np.exp(-a / 2) * (share + a + tail) / np.log(4)


def _jensen_shannon_spectrum(frequency: np.ndarray) -> np.ndarray:
    return (2 / np.log(4)) * _sech(np.pi * frequency) / (1 + 4 * frequency**2)


def _hellinger_signature(log_ratio: np.ndarray) -> np.ndarray:
    return np.ones_like(log_ratio)


def _hellinger_spectrum(frequency: np.ndarray) -> np.ndarray:
    return np.where(frequency == 0, np.inf, 0.0)


chi2 = AdditiveKernel("chi2", _chi2_signature, _chi2_spectrum, _loops.CHI2, is_analytic=True)
"""The additive chi-square kernel, k(x, y) = 2xy/(x+y)."""

intersection = AdditiveKernel("intersection", _intersection_signature, _intersection_spectrum, _loops.INTERSECTION)
"""The histogram intersection kernel, k(x, y) = min(x, y)."""

jensen_shannon = AdditiveKernel(
    "jensen_shannon", _jensen_shannon_signature, _jensen_shannon_spectrum, _loops.JENSEN_SHANNON, is_analytic=True
)
"""The Jensen-Shannon kernel, k(x, y) = x/2 log2((x+y)/x) + y/2 log2((x+y)/y)."""

hellinger = AdditiveKernel(
    "hellinger",
    _hellinger_signature,
    _hellinger_spectrum,
    _loops.HELLINGER,
    is_analytic=True,
    linear_in="square roots of rows",
)
"""The Hellinger (Bhattacharyya) kernel, k(x, y) = sqrt(xy); its map sqrt(x) is exact."""


def onnx_signature_power(x: Value, gamma: float) -> Value:
    """Return x^((gamma - 1) / 2), and 0 where x = 0, as ONNX nodes."""
    is_positive = x > 0.0
    return is_positive.where(is_positive.where(x, 1.0).power((gamma - 1) / 2), 0.0)


def _onnx_share(x: Value, total: Value) -> Value:
    """Return x ln(total / x) with total = x + y, and 0 at x = 0."""
    is_positive = x > 0.0
    return is_positive.where(x * (total / is_positive.where(x, 1.0)).apply("Log"), 0.0)
