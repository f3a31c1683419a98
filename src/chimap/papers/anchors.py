"""Nearest-neighbour maps: each value takes the features of its nearest anchors, or their number as a code."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from scipy.linalg import eigh
from sklearn.utils.validation import check_is_fitted

from chimap import _arrays, _loops, _threads
from chimap._errors import InputError
from chimap._onnx import Value
from chimap._types import JSON, MatrixLike, Rows, Shape, Transformed
from chimap._validation import check_choice, check_positive, validated_rows
from chimap.features.additive.base import AdditiveMap
from chimap.features.mapped_functions import Tables
from chimap.kernels import Kernel
from chimap.model_files import register
from chimap.model_files.restoring import Agreeing
from chimap.papers.codes import code_dtype, kmeans_anchors, kmeans_bytes, look_up, rounded_down, steps_per_unit

if TYPE_CHECKING:
    from sklearn.utils import Tags


_MOST_ANCHORS = 2**15  # so that codes of either sign fit in two bytes


class AnchorMap(AdditiveMap):
    """Map bins to the features of the anchor nearest to each value, or to a mean over the k nearest (ANNFM).

    Each bin has anchors 0 = a_1 < a_2 < ... with Gram matrix K(a, a) = Q'Q by eigendecomposition; the features of an
    anchor are its column of Q, cut to the largest eigenvalues. The error of the kernel comes from rounding x to an
    anchor: it is of first order in the spacing at worst, and of second order in expectation where the rounding error
    has mean zero. Zero is always an anchor, and its features are zero. A value half way between two anchors belongs to
    the lower one, a value above all anchors to the last.

    Parameters
    ----------
    kernel : str or AdditiveKernel, default="chi2"
        Any additive kernel, with any gamma, signed or not.
    n_terms : int or None, default=None
        Features for each bin; None keeps in every bin as many as the most demanding bin needs for ``energy``.
    n_anchors : int, default=50
        Anchors for each bin, zero included; with "kmeans" fewer where a bin has fewer distinct values.
    anchors : str, default="uniform"
        "uniform" on [0, largest value of the bin], or "kmeans": the optimum of k-means of the non-zero values of the
        bin with one centre held at 0 (exact, by dynamic programming). A bin with more values than its share of about a
        million is represented by that many of its quantiles.
    n_neighbors : int, default=1
        k of k-ANNFM.
    weights : str, default="distance"
        Weights of the k neighbours: "distance" (inverse distance; with two, linear interpolation) or "uniform" (1/k).
    energy : float, default=0.99
        Share of the sum of eigenvalues that the kept terms must reach where ``n_terms`` is None.
    output : str, default="features"
        "features", or "codes": the number of the nearest anchor, in one byte for each bin up to 256 codes and two
        beyond.

    Attributes
    ----------
    anchors_ : ndarray of shape (bins, n_anchors)
        The anchors; infinite where a bin has fewer.
    scale_ : ndarray of shape (bins,)
        The last anchor of each bin.
    n_terms_ : int
        Features for each bin.
    n_codes_ : int
        Codes for each bin.
    kernel_ : AdditiveKernel
        The exact kernel.

    References
    ----------
    Additive nearest neighbor feature maps, secs. 3.2-3.4 (anchors, square root, k neighbours) and 4 (error).

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[0.0, 0.93], [0.52, 1.0], [1.0, 0.2]])
    >>> psi = AnchorMap("intersection", n_terms=10, n_anchors=11).fit(X)
    >>> psi.encode(X)
    array([[ 0,  9],
           [ 5, 10],
           [10,  2]], dtype=uint8)
    >>> np.round(psi.transform(X) @ psi.transform(X).T, 6) + 0
    array([[0.9, 0.9, 0.2],
           [0.9, 1.5, 0.7],
           [0.2, 0.7, 1.2]])
    """

    _differs_by_bin = True

    n_terms: int | None  # type: ignore[assignment]
    anchors_: np.ndarray
    scale_: Annotated[np.ndarray, Shape("n_features_in_")]
    n_terms_: int
    n_codes_: int
    # features of the codes of magnitudes, whose products with the amplitudes of the bins are the features
    _factors: Annotated[np.ndarray, Shape("n_terms_", "tables", "codes")]
    _amplitudes: Annotated[np.ndarray, Shape("n_features_in_")]

    def __init__(
        self,
        kernel: str | Kernel = "chi2",
        n_terms: int | None = None,
        n_anchors: int = 50,
        anchors: str = "uniform",
        n_neighbors: int = 1,
        weights: str = "distance",
        energy: float = 0.99,
        output: str = "features",
    ):
        self.kernel = kernel
        self.n_terms = n_terms
        self.n_anchors = n_anchors
        self.anchors = anchors
        self.n_neighbors = n_neighbors
        self.weights = weights
        self.energy = energy
        self.output = output

    # --- use

    def transform(self, X: MatrixLike) -> Transformed:
        """Return the features (n, n_terms_ * bins) or codes (n, bins) of rows X (n, bins), as ``output`` says."""
        return self.encode(X) if self.output == "codes" else super().transform(X)

    def get_feature_names_out(self, input_features: Sequence[str] | None = None) -> np.ndarray:
        """Return names "<bin>_term<q>", or "<bin>_code" for codes, in the order of the columns."""
        if self.output == "features":
            return super().get_feature_names_out(input_features)
        check_is_fitted(self)
        return np.array([f"{name}_code" for name in self._bin_names(input_features)], dtype=object)

    # --- codes and their tables

    def code_tables(self, coef: np.ndarray, intercept: np.ndarray) -> CodeTables | None:
        """See ``FittedFeatures``: None for neighbours that are weighted by distance."""
        if not self.has_codes:
            return None
        tables = self.tables_by_bin(np.asarray(coef, np.float64).T)
        return CodeTables(self, np.ascontiguousarray(tables, dtype=np.float32), np.asarray(intercept, np.float64))

    def exact_functions(self, coef: np.ndarray) -> tuple[str, np.ndarray, np.ndarray] | None:
        if not self.has_codes:
            return None
        return "steps", self.lower_borders(), self.tables_by_bin(coef.T)[:, : self._factors.shape[2]]

    @property
    def has_codes(self) -> bool:
        """Whether a bin takes finitely many features, so that codes can name them."""
        return not self._blends

    def encode(self, X: MatrixLike) -> Transformed:
        """Return the codes of rows.

        With one neighbour a code is the number of an anchor; with k neighbours of uniform weights it is one more than
        the number of the first of them. The code of 0 is 0. Where the kernel is signed, the upper half of the codes
        belongs to negative values.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows of any library: numpy, scipy, torch or cupy.

        Returns
        -------
        ndarray or CSR matrix of shape (n, bins)
            Codes as uint8 or uint16: CSR for sparse rows, else dense. Rows on a device give numpy arrays, since
            compiled loops look the codes up.

        Raises
        ------
        ValueError
            If more than one neighbour is weighted by distance: no table then holds the features.
        DataError
            If the rows have another number of bins, or entries that ``fit`` refuses.
        """
        check_is_fitted(self)
        self._check_tables()
        rows = validated_rows(self, X, reset=False, signed=self.kernel_.is_signed)
        if not _arrays.is_sparse(rows):
            return self._encode(rows, np.arange(rows.shape[1]))
        codes = self._encode(rows.data.reshape(1, -1), rows.indices)[0]
        matrix = _arrays.csr(codes, rows.indices.copy(), rows.indptr.copy(), rows.shape)
        matrix.eliminate_zeros()
        return matrix

    def lower_borders(self) -> np.ndarray:
        """Return the numbers that magnitudes of each code exceed.

        Returns
        -------
        ndarray of shape (bins, codes of magnitudes)
            Lower borders; 0 for code 0 (and for code 1 where code 0 is only for the value 0), infinite where a bin
            lacks a code.
        """
        check_is_fitted(self)
        self._check_tables()
        k, n_anchors = self.n_neighbors, self.n_anchors
        middles = self.anchors_[:, : n_anchors - k] / 2 + self.anchors_[:, k:] / 2
        first = np.zeros((middles.shape[0], 1 + self._lift))
        return np.concatenate([first, middles], axis=1)

    def tables(self, weights: np.ndarray) -> np.ndarray:
        """Return tables that turn a linear model of features into one of codes.

            T[j, i, c] = w_j . (features of code c of bin i), so that w_j . Psi(x) = sum_i T[j, i, code of x_i].

        Parameters
        ----------
        weights : ndarray of shape (t, n_features)
            Weights w_j of the features for t outputs.

        Returns
        -------
        ndarray of shape (t, bins, n_codes_)
            The tables.
        """
        return self.tables_by_bin(weights).transpose(2, 0, 1)

    def tables_by_bin(self, weights: np.ndarray) -> np.ndarray:
        """Return ``tables`` in the order that ``look_up`` takes: the outputs of an entry are contiguous.

        Parameters
        ----------
        weights : ndarray of shape (t, n_features)
            Weights of the features for t outputs.

        Returns
        -------
        ndarray of shape (bins, n_codes_, t)
            The tables.
        """
        check_is_fitted(self)
        self._check_tables()
        weights = np.atleast_2d(weights)
        by_bin = weights.reshape(weights.shape[0], self.n_terms_, -1).transpose(2, 1, 0)
        scaled = np.multiply(
            by_bin, self._amplitudes[:, None, None], order="C"
        )  # contiguous for BLAS, which multiplies bin by bin
        half = self._factors.transpose(1, 2, 0) @ scaled
        return np.concatenate([half, -half[:, 1:]], axis=1) if self.kernel_.is_signed else half

    def weights_by_term(self, sums: np.ndarray) -> np.ndarray:
        """Return sum_c sums[i, c] (features of code c of bin i): sums over the rows of each code as sums over features.

        This is the transpose of ``tables_by_bin``.

        Parameters
        ----------
        sums : ndarray of shape (bins, n_codes_, t)
            Sums over the rows that have each code in each bin.

        Returns
        -------
        ndarray of shape (t, n_features)
            Sums over features.
        """
        half = self._factors.shape[2]
        if self.kernel_.is_signed:
            sums = np.concatenate([sums[:, :1], sums[:, 1:half] - sums[:, half:]], axis=1)
        by_bin = (self._factors.transpose(1, 0, 2) @ sums) * self._amplitudes[:, None, None]
        return by_bin.transpose(2, 1, 0).reshape(sums.shape[2], -1)

    def _check_tables(self) -> None:
        if self._blends:
            raise InputError(
                f"codes name finitely many features, but n_neighbors={self.n_neighbors} weighted by distance has a "
                "continuum of them. Use n_neighbors=1 or weights='uniform'."
            )

    def _encode(self, rows: np.ndarray, bins: np.ndarray) -> np.ndarray:
        codes = np.empty(rows.shape, dtype=code_dtype(self.n_codes_))
        self._by_threads(self._encode_part, rows, bins, codes)
        return codes

    def _encode_part(self, rows: np.ndarray, bins: np.ndarray, codes: np.ndarray) -> None:
        if not self.kernel_.is_signed:
            self._nearest(rows, bins, codes)
            return
        self._nearest(np.abs(rows), bins, codes)
        codes[(rows < 0) & (codes > 0)] += codes.dtype.type(self._factors.shape[2] - 1)

    # --- fitting

    def _fitting_bytes(self, n_values: int, n_rows: int, itemsize: int) -> int:
        if self.anchors == "uniform":
            return super()._fitting_bytes(n_values, n_rows, itemsize)
        sorted_bytes = (8 + itemsize) * n_values
        return sorted_bytes + kmeans_bytes(n_values, n_rows, self.n_anchors)

    def _check_parameters(self) -> None:
        if self.n_terms is not None:
            super()._check_parameters()
        for name in ("n_anchors", "n_neighbors"):
            check_positive(getattr(self, name), name, integer=True)
        if not 2 <= self.n_anchors <= _MOST_ANCHORS:
            raise InputError(
                f"n_anchors must be between 2 (zero and one more) and {_MOST_ANCHORS}; got {self.n_anchors}."
            )
        if self.n_neighbors > self.n_anchors:
            raise InputError(f"n_neighbors must be at most n_anchors = {self.n_anchors}; got {self.n_neighbors}.")
        check_choice(self.anchors, "anchors", ("uniform", "kmeans"))
        check_choice(self.weights, "weights", ("distance", "uniform"))
        check_choice(self.output, "output", ("features", "codes"))
        check_positive(self.energy, "energy")
        if self.energy > 1:
            raise InputError(f"energy is a share of the sum of eigenvalues, at most 1; got {self.energy!r}.")

    def _fit_rows(self, rows: Rows) -> None:
        if self.anchors == "uniform":
            self.scale_ = _arrays.column_maxima(rows)
            shape = np.linspace(0, 1, self.n_anchors)
            self.anchors_ = self.scale_[:, None] * shape
            self.anchors_[self.scale_ == 0, 1:] = np.inf
            factors = self._roots(shape[None])
        else:
            self.anchors_ = kmeans_anchors(*_arrays.values_by_bin(rows), self.n_anchors)
            self.scale_ = np.where(np.isfinite(self.anchors_), self.anchors_, 0).max(axis=1)
            factors = self._roots(self.anchors_ / np.where(self.scale_ > 0, self.scale_, 1)[:, None])
        self.n_terms_ = factors.shape[0]
        self._factors = self._averaged(factors)
        # k(cx, cy) = c^gamma k(x, y), so one square root Q serves all uniform bins, and none overflows.
        self._amplitudes = self.scale_ ** (self.kernel_.gamma / 2)
        half = self._factors.shape[2]
        self.n_codes_ = 2 * half - 1 if self.kernel_.is_signed else half
        self._tables: dict[np.dtype, tuple[np.ndarray, np.ndarray]] = {}

    def _roots(self, anchors: np.ndarray) -> np.ndarray:
        """Return the features (n_terms, groups, n_anchors) of anchors (groups, n_anchors) scaled to [0, 1]."""
        kernel = replace(self.kernel_, is_signed=False)  # anchors are magnitudes
        finite = np.isfinite(anchors[:, 1:])
        roots: list[np.ndarray] = [np.empty(0)] * anchors.shape[0]

        def fill(part: slice) -> None:
            for g in range(part.start, part.stop):
                points = anchors[g, 1:][finite[g]]
                roots[g] = self._root(kernel(points[:, None])) if points.size else np.empty((0, 0))

        _threads.over_rows(anchors.shape[0], anchors.shape[1] ** 3, fill)
        n_terms = self.n_terms or max(1, max(root.shape[0] for root in roots))
        out = np.zeros((n_terms, *anchors.shape))
        for g, root in enumerate(roots):
            out[: root.shape[0], g, 1 : 1 + root.shape[1]] = root
        return out

    def _root(self, gram: np.ndarray) -> np.ndarray:
        """Return the leading rows of Q, where Q'Q = gram: n_terms of them, or as many as ``energy`` needs."""
        n = gram.shape[0]
        values, vectors = eigh(gram)
        values, vectors = values[::-1], vectors[:, ::-1]
        usable = int(np.sum(values > 16 * n * np.finfo(float).eps * values[0]))  # the rest is rounding
        share = np.cumsum(values[:usable]) / values[:usable].sum()
        needed = int(np.searchsorted(share, self.energy * (1 - 1e-12))) + 1
        kept = min(usable, self.n_terms or needed)
        # The sign of an eigenvector is arbitrary: make each feature positive at the last anchor.
        signs = np.where(vectors[-1, :kept] < 0, -1.0, 1.0)
        return (vectors[:, :kept] * (signs * np.sqrt(values[:kept]))).T

    def _averaged(self, factors: np.ndarray) -> np.ndarray:
        """Return features for each code: those of anchors or, for uniform weights, zero and means over k anchors."""
        if not self._lift:
            return factors
        k = self.n_neighbors
        sums = sliding_window_view(factors, k, axis=2).sum(axis=3)
        present = np.isfinite(self.anchors_) if self.anchors == "kmeans" else np.ones((1, self.n_anchors))
        counts = sliding_window_view(present, k, axis=1).sum(axis=2)
        return np.concatenate([np.zeros_like(factors[:, :, :1]), sums / np.maximum(counts, 1)], axis=2)

    # --- evaluation

    @property
    def _fits_by_bin(self) -> bool:
        return self.anchors == "kmeans"

    @property
    def _lift(self) -> int:
        """1 where code 0 is reserved for the value 0, because the first window of neighbours does not map to zero."""
        return int(self.n_neighbors > 1 and self.weights == "uniform")

    @property
    def _blends(self) -> bool:
        """Whether neighbours are weighted by distance, which gives a continuum of features."""
        return self.n_neighbors > 1 and self.weights == "distance"

    @property
    def _n_terms_out(self) -> int:
        return self.n_terms_

    @property
    def _terms_at_most(self) -> int:
        return self.n_terms or self.n_anchors - 1

    @property
    def n_straight_pieces(self) -> int | None:
        """Number of gaps between uniform anchors where two neighbours are interpolated; None otherwise."""
        straight = self._blends and self.n_neighbors == 2 and self.anchors == "uniform"
        return self.n_anchors - 1 if straight else None

    def _prepare(self, dtype: np.dtype) -> None:
        if dtype not in self._tables:
            k, n_anchors = self.n_neighbors, self.n_anchors
            table = self._factors.reshape(self.n_terms_, -1).astype(dtype)
            if self.anchors == "uniform":
                self._tables[dtype] = (table, steps_per_unit(self.scale_, n_anchors - 1))
                return
            # The window of k nearest anchors moves on where its first anchor is farther than the one after its last.
            middles = self.anchors_[:, : n_anchors - k] / 2 + self.anchors_[:, k:] / 2
            size = 1 << int(n_anchors - k).bit_length()
            borders = np.full((self.anchors_.shape[0], size), np.inf)
            borders[:, : n_anchors - k] = middles
            self._tables[dtype] = (table, rounded_down(borders.reshape(-1), dtype))

    def _evaluate(self, magnitudes: np.ndarray, bins: np.ndarray, out: np.ndarray) -> None:
        table, _ = self._tables[magnitudes.dtype]
        codes = np.empty(magnitudes.shape, dtype=code_dtype(self._factors.shape[2]))
        self._nearest(magnitudes, bins, codes)
        starts = bins * (self._factors.shape[2] if self._factors.shape[1] > 1 else 0)
        amplitudes = self._amplitudes.astype(magnitudes.dtype)[bins]
        if self._blends:
            _loops.blended_features(
                magnitudes,
                codes,
                self.n_neighbors,
                self.anchors_.reshape(-1),
                bins * self.n_anchors,
                self.scale_[bins],
                starts,
                amplitudes,
                table,
                out,
            )
        else:
            _loops.looked_up_features(codes, starts, amplitudes, table, out)

    def _nearest(self, magnitudes: np.ndarray, bins: np.ndarray, codes: np.ndarray) -> None:
        """Write the first of each value's k nearest anchors into ``codes``, plus ``_lift`` where the value is not 0."""
        k, last = self.n_neighbors, self.n_anchors - self.n_neighbors
        _, places = self._tables[magnitudes.dtype]
        if self.anchors == "uniform":
            _loops.uniform_codes(magnitudes, places[bins], k / 2, last, self._lift, codes)
        else:
            size = places.size // self.n_features_in_
            starts = (bins.astype(np.int64) * size).astype(np.uint32)
            _loops.searched_codes(magnitudes, starts, places, size, self._lift, codes)

    def __getstate__(self) -> JSON:
        # Building the tables again takes less time than sending them.
        return {k: v for k, v in super().__getstate__().items() if k != "_tables"}

    def __setstate__(self, state: JSON) -> None:
        super().__setstate__(state)
        self._tables = {}

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        if self.output == "codes":
            tags.transformer_tags.preserves_dtype = []
        return tags

    def _onnx_terms(self, x: Value) -> Value:
        self._prepare(x.dtype)
        table, places = self._tables[x.dtype]
        k, n_bins, n_codes = self.n_neighbors, int(self.n_features_in_), self._factors.shape[2]
        if self.anchors == "uniform":
            code = (x.cast(np.float64) * places - k / 2).apply("Ceil").at_least(0.0).at_most(self.n_anchors - k)
        else:
            borders = places.reshape(n_bins, -1)[:, : self.n_anchors - k]
            code = (x.expanded(2) > borders).cast(np.float64).sum(2)
        if self._lift:
            code = code + (x > 0).cast(np.float64)
        starts = np.arange(n_bins) * (n_codes if self._factors.shape[1] > 1 else 0)
        entries = x.graph.constant(np.ascontiguousarray(table.T))
        if self.has_codes:
            looked_up = entries.take((code + starts).cast(np.int64), 0)  # (n, bins, terms)
            return looked_up.transposed(0, 2, 1) * self._amplitudes
        v = x.cast(np.float64).at_most(self.scale_)
        anchors = x.graph.constant(np.minimum(self.anchors_, np.finfo(np.float64).max).reshape(-1))
        windows = [code + p for p in range(k)]
        gaps = [
            (v - anchors.take((w + np.arange(n_bins) * self.n_anchors).cast(np.int64), 0)).apply("Abs") for w in windows
        ]
        nearest = gaps[0]
        for gap in gaps[1:]:
            nearest = nearest.at_most(gap)
        weights = [(gap > 0.0).where(nearest / (gap > 0.0).where(gap, 1.0), 1.0) for gap in gaps]
        total, blend = weights[0], None
        for weight in weights[1:]:
            total = total + weight
        for weight, w in zip(weights, windows, strict=True):
            share = (weight / total * self._amplitudes).expanded(2)
            weighted = entries.take((w + starts).cast(np.int64), 0).cast(np.float64) * share
            blend = weighted if blend is None else blend + weighted
        assert blend is not None
        return blend.transposed(0, 2, 1).cast(x.dtype)


@dataclass(frozen=True, eq=False)
class CodeTables(Tables):
    """f_c(x) = intercept_c + sum_i tables[i, code of x_i, c], exact up to rounding for every value.

    Parameters
    ----------
    map : AnchorMap
        The fitted map that encodes the values.
    tables : ndarray of shape (bins, n_codes, t)
        Contributions, float32.
    intercept : ndarray of shape (t,)
        Intercepts, float64.
    """

    is_exact = True

    map: AnchorMap
    tables: Annotated[np.ndarray, Shape("bins", "codes", "t")]
    intercept: Annotated[np.ndarray, Shape("t")]

    @property
    def n_bins(self) -> int:
        return int(self.tables.shape[0])

    @property
    def n_outputs(self) -> int:
        return int(self.tables.shape[2])

    @property
    def nbytes(self) -> int:
        return self.tables.nbytes

    @property
    def worst_error(self) -> float:
        """Largest error of a score, which comes from summing in float32."""
        sizes = np.abs(self.tables).max(axis=(1, 2)).astype(np.float64)
        return float(2.0**-20 * sizes.sum())

    def describe(self) -> str:
        return f"{self.tables.shape[1]} codes per bin"

    @property
    def about(self) -> JSON:
        return {"kernel": self.map.kernel_.name, "gamma": None, "features": f"{self.describe()}, {self.map.describe()}"}

    def scores(self, rows: Rows) -> tuple[np.ndarray, np.ndarray]:
        """Return (scores (n, t) float64, outside (n,) bool) of checked rows; no row is outside."""
        scores = look_up(self.map.encode(rows), self.tables) + self.intercept
        return scores, np.zeros(rows.shape[0], dtype=bool)

    def bound(self, rows: Rows) -> np.ndarray:
        """Return an upper bound of the error of each row's scores, (n,), which is ``worst_error``."""
        return np.full(rows.shape[0], self.worst_error)


def _agreeing(state: JSON, sizes: dict[str, int]) -> Agreeing:
    bins, n_anchors, k = state["n_features_in_"], state["n_anchors"], state["n_neighbors"]
    codes = n_anchors - k + 2 if k > 1 and state["weights"] == "uniform" else n_anchors
    n_tables = bins if state["anchors"] == "kmeans" else 1
    both = 2 * codes - 1 if state["kernel_"].is_signed else codes
    return [
        ("anchors", state["anchors_"].shape, (bins, n_anchors)),
        ("tables", sizes["tables"], n_tables),
        ("codes", sizes["codes"], codes),
        ("codes of both signs", state["n_codes_"], both),
    ]


register(AnchorMap, agreeing=_agreeing)


def _agreeing_codes(state: JSON, sizes: dict[str, int]) -> Agreeing:
    map_ = state["map"]
    return [("bins and codes", state["tables"].shape[:2], (map_.n_features_in_, map_.n_codes_))]


register(CodeTables, agreeing=_agreeing_codes)
