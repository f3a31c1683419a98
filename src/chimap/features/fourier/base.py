"""The base class of random features: inputs, a projection onto frequencies, and cosines and sines of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from functools import reduce
from operator import add
from typing import Annotated, Any

import numpy as np

from chimap import _arrays, _blas, _loops, _threads
from chimap._onnx import Value
from chimap._types import Array, ArrayMap, Rows, Shape
from chimap._validation import check_choice, check_positive
from chimap.features.base import Features, Footprint
from chimap.features.fourier.projection import Projection
from chimap.features.mapped_functions import Waves
from chimap.kernels import Kernel

Slopes = np.ndarray | Callable[[slice, np.ndarray], np.ndarray]
"""dL/dpsi: an array (n, D), or a function that returns it for a slice of the rows and their features."""


def pull_back_to_inputs(features: RandomFeatures, rows: Rows, slopes: Slopes) -> np.ndarray:
    """Return sum over checked rows of phi_i (E W')_i for the inputs i, with E = dL/d angles, (inputs,) float64.

    phi are the inputs of a row, W the scaled frequencies. The rows are worked on in blocks.
    """
    dtype, n, D = rows.dtype, rows.shape[0], features._n_features_out
    W = features.projection_.astype(dtype).matrix
    m, block = W.shape[1], min(BLOCK_ROWS, n)
    inputs, back = np.empty((2, block, W.shape[0]), dtype)
    angles, z_buffer = np.empty((block, m), dtype), np.empty((block, 2 * m), dtype)
    scale, offset = dtype.type(np.sqrt(2.0 / D)), features.offset_.astype(dtype)
    total, no_shift = np.zeros(W.shape[0]), np.zeros(2 * m, dtype)
    for first in range(0, n, BLOCK_ROWS):
        part = slice(first, min(n, first + BLOCK_ROWS))
        size = part.stop - first
        u, a, z = inputs[:size], angles[:size], z_buffer[:size]
        projected = features._inputs(_arrays.take_rows(rows, part), u)
        if _arrays.is_sparse(projected):
            projected.toarray(out=u)
        _blas.multiply(u, W, z[:, :m])
        waves(scale, offset, no_shift, z)
        G = slopes(part, z[:, :D]) if callable(slopes) else slopes[part]
        # d cos = -sin for all angles; d sin = cos for angles whose sine is among the features
        np.multiply(z[:, m:], G[:, :m], out=a)
        np.negative(a, out=a)
        a[:, : D - m] += z[:, : D - m] * G[:, m:]
        _blas.multiply(a, W, back[:size], transpose=True)
        total += np.einsum("ij,ij->j", u, back[:size])
    return total


BLOCK_ROWS = 2048  # rows mapped and projected at once; with fewer, copying the frequencies costs too much


class RandomFeatures(Features):
    """Random features z(x) with z(x) . z(y) ~ E cos(w'(u(x) - u(y))) for inputs u(x) and random frequencies w.

        pair:    z(x) = [cos(W' u(x)), sin(W' u(x))] / sqrt(D/2),  D/2 frequencies
        offset:  z(x) = sqrt(2/D) cos(W' u(x) + b),  b uniform on [0, 2 pi],  D frequencies.

    A subclass fits what the inputs need, draws the frequencies and stores them with ``_keep``; its ``_inputs`` returns
    the inputs of checked rows.

    Attributes
    ----------
    kernel_ : Kernel
        The exact kernel.
    projection_ : Matrix or Hadamard
        The projection onto the frequencies.
    offset_ : ndarray of shape (frequencies,)
        b; zero for pairs.
    """

    family = "fourier"

    n_components: int | None
    sampling: str
    form: str
    n_features_in_: int
    kernel_: Annotated[Any, Kernel]  # exponential or skewed, possibly with widths
    projection_: Projection
    offset_: Annotated[np.ndarray, Shape("n_waves")]
    centre_: Annotated[np.ndarray, Shape("n_centred")]
    _n_features_out: int
    _signed: bool

    @abstractmethod
    def _inputs(self, block: Rows, buffer: np.ndarray) -> Rows:
        """Return u of checked rows: dense, written into ``buffer`` (which is returned), or CSR."""

    @abstractmethod
    def _array_inputs(self, rows: Array) -> Array:
        """Return u of checked dense rows by operations of the rows' array library."""

    def _check_features(self, samplings: tuple[str, ...]) -> None:
        check_positive(self._size, "n_components", integer=True)
        check_choice(self.sampling, "sampling", samplings)
        check_choice(self.form, "form", ("pair", "offset"))

    @classmethod
    def of(cls, kernel: Kernel, *, n_components: int = 2048, **asked: Any) -> Features:
        return super().of(kernel, n_components=n_components, **asked)

    def _of_waves(self, mapped: int) -> Footprint:
        """Return the sizes of features of inputs of this length."""
        # Structured frequencies store only signs and lengths.
        has_matrix = self.sampling != "structured"
        frequencies = self._n_frequencies if has_matrix else 0
        return Footprint(self._size, mapped, frequencies)

    @property
    def _size(self) -> int:
        return 1024 if self.n_components is None else self.n_components

    @property
    def _n_frequencies(self) -> int:
        return (self._size + 1) // 2 if self.form == "pair" else self._size

    def _keep(self, projection: Projection, rng: np.random.Generator, dtype: np.dtype) -> None:
        self.projection_ = projection
        offset = rng.uniform(0, 2 * np.pi, self._n_frequencies).astype(dtype)
        if self.form == "pair":
            # Pairs need no offset. If n_components is odd the last frequency has no sine, so it gets an offset
            # instead: per feature, a pair of sqrt(2/D) cos, sin and a cosine with offset add as much to the kernel.
            offset[: self._size // 2] = 0
        self.offset_ = offset
        self._n_features_out = self._size

    @property
    def frequencies_(self) -> np.ndarray:
        """The frequencies W as a matrix (inputs, frequencies), built at each access where they are structured."""
        return self.projection_.matrix

    def features_into(self, rows: Rows, out: np.ndarray, shift: np.ndarray | None = None) -> None:
        projection = self.projection_.astype(out.dtype)
        shift = np.zeros(out.shape[1], out.dtype) if shift is None else shift.astype(out.dtype, copy=False)
        scale = out.dtype.type(np.sqrt(2.0 / self._n_features_out))
        n_block = min(BLOCK_ROWS, rows.shape[0])
        buffer = np.empty((n_block, self.n_inputs), dtype=out.dtype)
        offset = self.offset_.astype(out.dtype, copy=False)
        for part in _arrays.slices(rows.shape[0], BLOCK_ROWS):
            z = out[part]
            u = buffer[: z.shape[0]]
            block = _arrays.take_rows(rows, part)
            projection.project(self._inputs(block, u), u, z)  # angles, until ``waves``
            waves(scale, offset, shift, z)

    def on_device(self, like: Array) -> ArrayMap:
        """Return the map from rows to features for arrays such as ``like``, with the frequencies on its device.

        For numpy arrays the compiled ``features_into`` is faster.
        """
        xp = _arrays.namespace(like)
        W, offset = (_arrays.as_like(values, like) for values in (self.projection_.matrix, self.offset_))
        n_sines, scale = self._n_features_out - W.shape[1], float(np.sqrt(2.0 / self._n_features_out))
        is_single = like.dtype == xp.float32

        def features(rows: Array) -> Array:
            inputs = self._array_inputs(rows)
            parts = self.projection_.addends(inputs) if is_single else [inputs]
            angles = sum((part @ W for part in parts[1:]), parts[0] @ W)
            angles += offset
            features = xp.concat([xp.cos(angles), xp.sin(angles[:, :n_sines])], axis=1)
            features *= scale
            return features

        return features

    def describe(self) -> str:
        """Return a short description of the fitted features, such as "512 random features, orthogonal, over ..."."""
        return f"{self._n_features_out:,} random features, {self.sampling}, over {self._describe_inputs()}"

    @abstractmethod
    def _describe_inputs(self) -> str:
        """Return a short description of u(x)."""

    @property
    @abstractmethod
    def n_inputs(self) -> int:
        """Length of u(x)."""

    def _onnx_waves(self, inputs: Value) -> Value:
        """Return sqrt(2/D) [cos(W'u + b), sin of the leading angles that come in pairs] of inputs u.

        W is a full matrix here, even if the model draws it as a structured product.
        """
        angles = reduce(add, (part @ self.frequencies_ for part in self.projection_.addends(inputs))) + self.offset_
        n_pairs = self._n_features_out - self.offset_.size
        waves = [angles.apply("Cos")]
        if n_pairs:
            waves.append(angles.take(np.arange(n_pairs), 1).apply("Sin"))
        # The factor is a vector because onnxruntime would fuse a scalar into the next product, in single precision.
        return inputs.graph.concatenated(waves, 1) * np.full(self._n_features_out, np.sqrt(2.0 / self._n_features_out))

    def _waves(self, coef: np.ndarray, intercept: np.ndarray) -> Waves:
        """Return cosines of all frequencies, then sines of the first ones: sin(a) = cos(a - pi/2)."""
        W, offset = self.frequencies_.astype(np.float64), self.offset_.astype(np.float64)
        n_sines = self._n_features_out - W.shape[1]
        scale = np.sqrt(2.0 / self._n_features_out)
        return Waves(
            np.hstack([W, W[:, :n_sines]]),
            np.concatenate([offset, offset[:n_sines] - np.pi / 2]),
            scale * coef,
            intercept,
        )


def waves(scale: np.floating, offset: np.ndarray, shift: np.ndarray, z: np.ndarray) -> None:
    """Turn angles into features in place, on all threads."""
    _threads.over_rows(z.shape[0], z.shape[1], lambda rows: _loops.waves(scale, offset, shift, z[rows]))
