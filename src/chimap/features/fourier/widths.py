"""Random features that are differentiable in the widths of their kernel."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._errors import InputError
from chimap._types import ArrayLike, Blocks, MatrixLike, RandomState, Rows
from chimap._validation import DataError, check_blocks, check_choice, is_auto
from chimap.features.additive.base import AdditiveMap
from chimap.features.fourier.base import RandomFeatures, Slopes, pull_back_to_inputs
from chimap.features.fourier.features import FourierFeatures
from chimap.features.fourier.projection import Matrix
from chimap.features.fourier.skewed import SkewedFourierFeatures
from chimap.kernels import Anisotropic, Exponential, Kernel, SkewedIntersection, as_kernel
from chimap.kernels.anisotropic import with_width
from chimap.kernels.skewed import Skewed

_SAMPLE_ROWS = 4096  # rows that the initial widths are computed from
_BLOCK_ROWS = 256  # of these, rows whose inputs are in memory at once


def initial_widths(
    unit: RandomFeatures, X: MatrixLike, names: Sequence[str], blocks: Sequence[np.ndarray], columns: np.ndarray
) -> np.ndarray:
    """Return log widths (r,) at which every block has the same share of a mean exponent of 1.

    Within a block all widths are equal. ``unit`` are the fitted features at widths 1, ``blocks`` the columns of each
    block, and ``columns`` (bins,) the index of the width of each column. Raises DataError for a block that is constant.
    """
    is_l1, n_widths = isinstance(unit.kernel_, SkewedIntersection), int(columns.max()) + 1
    rows = _arrays.as_rows(_arrays.take_rows(_arrays.as_rows(X), slice(_SAMPLE_ROWS)))
    variances = _variances(unit, rows)
    # Over pairs of rows E |u - u'|^2 = 2 Var u, and E |u - u'| = 2 sqrt(Var u / pi) if u were normal.
    spread = 2 * np.sqrt(variances / np.pi) if is_l1 else variances
    by_column = spread.reshape(-1, columns.size).sum(axis=0)
    starts = np.empty(columns.size)
    for name, chosen in zip(names, blocks, strict=True):
        total = float(by_column[chosen].sum())
        if not total > 0 and rows.shape[0] > 1:
            raise DataError(
                f"block {name!r} is constant: all of its columns have one value in the rows that the widths start "
                "from, so it has no width. Leave its columns out."
            )
        share = (total or 1.0) * len(blocks)
        starts[chosen] = 1 / share if is_l1 else 1 / np.sqrt(share)
    logs, counts = np.log(starts), np.bincount(columns, minlength=n_widths)
    return np.bincount(columns, weights=logs, minlength=n_widths) / counts


def _variances(unit: RandomFeatures, rows: Rows) -> np.ndarray:
    """Return the variances (n_inputs,) of what is projected, about the first row: exactly 0 for a constant column."""
    n, n_inputs = rows.shape[0], unit.n_inputs
    buffer = np.empty((min(n, _BLOCK_ROWS), n_inputs), rows.dtype)
    origin, sums, squares = np.zeros((3, n_inputs))
    for start in range(0, n, _BLOCK_ROWS):
        block = _arrays.take_rows(rows, slice(start, start + _BLOCK_ROWS))
        inputs = unit._inputs(block, buffer[: block.shape[0]])
        inputs = _arrays.to_dense(inputs).astype(np.float64)
        if not start:
            origin[:] = inputs[0]
        inputs -= origin
        sums += inputs.sum(axis=0)
        squares += np.einsum("ij,ij->j", inputs, inputs)
    return np.maximum(squares - sums**2 / n, 0) / max(1, n - 1)


def partition(blocks: Blocks | None, n_columns: int) -> tuple[list[str], list[np.ndarray]]:
    """Return names and index arrays of blocks that hold each column exactly once; None is one block of all columns.

    Raises ValueError for blocks that overlap or leave columns out.
    """
    if blocks is None:
        return ["all"], [np.arange(n_columns)]
    names, blocks_of = check_blocks(blocks, n_columns)
    times = np.bincount(np.concatenate(blocks_of), minlength=n_columns)
    if np.any(times > 1):
        column = int(np.flatnonzero(times > 1)[0])
        sharing = [name for name, columns in zip(names, blocks_of, strict=True) if column in columns]
        raise InputError(
            f"blocks overlap: column {column} is in {' and in '.join(map(repr, sharing))}. Each column belongs to one "
            "width."
        )
    if np.any(times == 0):
        column = int(np.flatnonzero(times == 0)[0])
        raise InputError(
            f"blocks miss {np.count_nonzero(times == 0)} of the {n_columns} columns, column {column} first. Put them "
            "into a block, or drop them from the rows."
        )
    return names, blocks_of


def width_groups(
    widths: str | ArrayLike, block_names: list[str], blocks: list[np.ndarray], n_columns: int
) -> tuple[list[str], np.ndarray]:
    """Return the names of the widths (r,) and the width of each column (n_columns,); see ``WidthFeatures``."""
    if not isinstance(widths, str):
        groups = np.asarray(widths)
        if groups.shape != (n_columns,) or groups.dtype.kind not in "iu":
            raise InputError(
                f"widths as an array must be whole numbers, one for each of the {n_columns} columns; got shape "
                f"{groups.shape} of {groups.dtype}."
            )
        sizes = np.bincount(groups) if groups.min() >= 0 else np.zeros(1, int)
        if np.any(sizes == 0):
            raise InputError(
                f"widths: group {int(np.flatnonzero(sizes == 0)[0])} has no column; number the groups from 0 on "
                "without gaps."
            )
        return [f"group {j}" for j in range(sizes.size)], groups.astype(np.int64)
    check_choice(widths, "widths", ("block", "bin", "one"))
    if widths == "one":
        return ["all"], np.zeros(n_columns, dtype=np.int64)
    if widths == "bin":
        return [f"bin {i}" for i in range(n_columns)], np.arange(n_columns)
    groups = np.empty(n_columns, dtype=np.int64)
    for j, columns in enumerate(blocks):
        groups[columns] = j
    return block_names, groups


class WidthFeatures:
    """Random features psi_s of the kernel prod_j k_{s_j}(x_j, y_j), with gradients in the widths s.

        angle_i(x) = sum_j s_j h(u_ij)' phi_j(x) + b_i,  psi = sqrt(2/D) [cos(angles), sin(angles)], or cosines alone,

    with phi_j the bins of group j: mapped by the additive map (exponential kernels), unchanged (Gaussian), or their
    ln(x + c) (skewed). The uniform numbers u are drawn once; the widths only scale the quantiles h(u), so that every
    function of psi_s is smooth in s. A large s is a narrow kernel: s^2/2 is gamma of an exponential kernel, s is sigma
    of a skewed one.

    Gradients are with respect to log s, derived by hand: with E = dL/d angles, dL/d log s_j is the sum over the rows
    and the inputs i of group j of phi_i (E W')_i, where W are the scaled frequencies. That is one more product of the
    size of the projection, whatever the number of widths, computed 2048 rows at a time.

    Parameters
    ----------
    kernel : str or Kernel, default="exp-chi2"
        "exp-chi2" or another exponential kernel, "gaussian", "skewed-chi2", "skewed-intersection", or such an object;
        its own width is not used.
    n_components : int, default=1024
        D, the number of features.
    widths : str or array of shape (bins,), default="block"
        "block" (one for each block of columns), "bin" (one for each column), "one", or whole numbers that name the
        group of each column, for example when groups span descriptors.
    blocks : list or mapping, default=None
        Columns of each block as slices or lists, in a list or in a mapping from names; each column in exactly one
        block. None is one block of all columns.
    map : AdditiveMap or None, default=None
        The additive map, as in ``FourierFeatures``.
    n_terms : int, default=2
        Terms of the default map, as in ``FourierFeatures``.
    sampling : str, default="auto"
        "orthogonal", "iid", "qmc", or "auto": "iid" for skewed kernels, else "orthogonal".
    form : str, default="pair"
        "pair" or "offset", as in ``FourierFeatures``.
    random_state : int, RandomState or None, default=None
        Seed or generator for the frequencies. None differs at each fit.

    Attributes
    ----------
    unit_ : FourierFeatures or SkewedFourierFeatures
        The features at widths 1.
    names_ : list of str
        Names of the r widths.
    columns_ : ndarray of shape (bins,)
        Index of the width of each column.
    start_ : ndarray of shape (r,)
        Log widths at which the mean share of every block in the exponent is 1/blocks.

    References
    ----------
    Bazavan, Li and Sminchisescu, Fourier kernel learning, secs 3.1 and 3.3.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.random.default_rng(0).dirichlet(np.ones(8), size=30)
    >>> features = WidthFeatures("exp-chi2", 64, blocks=[slice(0, 4), slice(4, 8)], random_state=0).fit(X)
    >>> psi = features.at(features.start_).transform(X)
    >>> slopes = np.ones_like(psi)  # of L = sum of psi
    >>> features.pullback_at(features.at(features.start_), X, slopes).shape
    (2,)
    """

    def __init__(
        self,
        kernel: str | Kernel = "exp-chi2",
        n_components: int = 1024,
        *,
        widths: str | ArrayLike = "block",
        blocks: Blocks | None = None,
        map: AdditiveMap | None = None,
        n_terms: int = 2,
        sampling: str = "auto",
        form: str = "pair",
        random_state: RandomState = None,
    ):
        self.kernel = kernel
        self.n_components = n_components
        self.widths = widths
        self.blocks = blocks
        self.map = map
        self.n_terms = n_terms
        self.sampling = sampling
        self.form = form
        self.random_state = random_state

    def fit(self, X: MatrixLike, y: ArrayLike | None = None) -> WidthFeatures:
        """Fit the map and the initial widths on rows, and draw the frequencies.

        Parameters
        ----------
        X : array or sparse matrix of shape (n, bins)
            Rows to fit on.
        y : None, default=None
            Not used; accepted for pipelines of scikit-learn.

        Returns
        -------
        WidthFeatures
            The fitted features themselves.

        Raises
        ------
        ValueError
            If a parameter is out of range, or blocks overlap or leave columns out.
        DataError
            If a block is constant.
        """
        self.unit_ = self._unit(X).fit(X)
        block_names, blocks = partition(self.blocks, self.unit_.n_features_in_)
        self.names_, self.columns_ = width_groups(self.widths, block_names, blocks, self.unit_.n_features_in_)
        self._inputs_of = np.tile(self.columns_, self.unit_.n_inputs // self.columns_.size)
        self.start_ = initial_widths(self.unit_, X, block_names, blocks, self.columns_)
        return self

    @property
    def n_widths(self) -> int:
        """Number of widths, r."""
        return len(self.names_)

    def at(self, log_widths: np.ndarray) -> FourierFeatures | SkewedFourierFeatures:
        """Return plain features with widths folded into their frequencies; nothing else is copied.

        Parameters
        ----------
        log_widths : ndarray of shape (r,)
            Logarithms of the widths.

        Returns
        -------
        FourierFeatures or SkewedFourierFeatures
            Fitted features.

        Raises
        ------
        ValueError
            If a width leaves the range of the floating type; the error names it.
        """
        W = self.unit_.projection_.matrix
        scales = self.checked_widths(log_widths, W.dtype)
        folded = copy.copy(self.unit_)
        folded.projection_ = Matrix(W * scales[self._inputs_of, None].astype(W.dtype))
        folded.kernel_ = self.exact(log_widths)
        if isinstance(folded, FourierFeatures):
            folded.gamma_ = getattr(folded.kernel_, "gamma", None)
        return folded

    def exact(self, log_widths: np.ndarray) -> Any:
        """Return the exact kernel that the features approximate at widths.

        Parameters
        ----------
        log_widths : ndarray of shape (r,)
            Logarithms of the widths.

        Returns
        -------
        Kernel
            The kernel with that width, or ``Anisotropic`` for several widths.
        """
        kernel, widths = self.unit_.kernel_, np.exp(np.asarray(log_widths, dtype=np.float64))
        if widths.size == 1:
            return with_width(kernel, float(widths[0]))
        return Anisotropic(kernel, self.columns_, widths)

    def checked_widths(self, log_widths: np.ndarray, dtype: np.dtype) -> np.ndarray:
        """Return s = exp(log_widths), checked to be normal numbers of a dtype, and their squares too.

        Parameters
        ----------
        log_widths : ndarray of shape (r,)
            Logarithms of the widths.
        dtype : dtype
            float32 or float64.

        Returns
        -------
        ndarray of shape (r,)
            Widths, float64.

        Raises
        ------
        ValueError
            If a width or its square is not a normal number of the dtype; the error names it.
        """
        with np.errstate(over="ignore", under="ignore"):
            widths = np.exp(np.asarray(log_widths, dtype=np.float64))
        info = np.finfo(dtype)
        bad = ~((widths >= np.sqrt(float(info.tiny))) & (widths <= np.sqrt(float(info.max))))
        if bad.any():
            j = int(np.flatnonzero(bad)[0])
            what = "underflows" if widths[j] < 1 else "overflows" if np.isfinite(log_widths[j]) else "is not finite"
            raise InputError(
                f"log_widths: the width of {self.names_[j]!r} {what} in {dtype}: s = {widths[j]:g}. Start from other "
                "widths, bound them, or drop its columns."
            )
        return widths

    def pullback_at(self, features: RandomFeatures, rows: Rows, slopes: Slopes) -> np.ndarray:
        """Return the gradient of a function L of the features with respect to the log widths.

        Parameters
        ----------
        features : FourierFeatures or SkewedFourierFeatures
            What ``at`` returned.
        rows : ndarray or CSR matrix of shape (n, bins)
            Checked rows in float32 or float64.
        slopes : ndarray of shape (n, D) or callable
            dL/dpsi, or a function that returns it for a slice of the rows and their features.

        Returns
        -------
        ndarray of shape (r,)
            dL/d log s, float64.
        """
        total = pull_back_to_inputs(features, rows, slopes)
        return np.bincount(self._inputs_of, weights=total, minlength=self.n_widths)

    def _unit(self, X: MatrixLike) -> FourierFeatures | SkewedFourierFeatures:
        kernel = as_kernel(self.kernel)
        check_choice(self.sampling, "sampling", ("auto", "orthogonal", "iid", "qmc"))
        if isinstance(kernel, Exponential):
            sampling = "orthogonal" if is_auto(self.sampling) else self.sampling
            # With gamma = 1/2 the entries of the frequencies are N(0, 1).
            return FourierFeatures(
                replace(kernel, gamma=0.5),
                self.n_components,
                map=self.map,
                n_terms=self.n_terms,
                sampling=sampling,
                form=self.form,
                random_state=self.random_state,
            )
        if isinstance(kernel, Skewed):
            sampling = "iid" if is_auto(self.sampling) else self.sampling
            return SkewedFourierFeatures(
                replace(kernel.at_median(X), sigma=1.0), self.n_components, sampling, self.form, self.random_state
            )
        raise InputError(
            f"widths are learned for exponential, Gaussian and skewed kernels; got {kernel.name!r}. "
            f"An additive kernel has none: use its exponential form, such as 'exp-{kernel.name}'."
        )
