"""From the settings of an estimator to its features, and to how large they are."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._validation import check_blocks, check_histograms
from chimap.features.additive import DirichletMap, OptimalMap
from chimap.features.additive.identity import IdentityMap
from chimap.features.blocks import BlockFeatures
from chimap.features.fourier import FourierFeatures, SkewedFourierFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.features.scaled import Scale
from chimap.kernels import AdditiveKernel, DirichletKernel, Exponential, Kernel, Linear, as_kernel
from chimap.kernels.exponential import GAMMA_BLOCK, GAMMA_ROWS
from chimap.kernels.skewed import Skewed


@dataclass(frozen=True)
class Sizes:
    """Of features: how many in all, how many mapped bins they are made of, and frequencies (0: no matrix of them)."""

    features: int
    mapped: int
    frequencies: int


@dataclass(frozen=True)
class FeatureSettings:
    """Which features a kernel gets: an additive map, random features, or landmarks. See ``HistogramClassifier``."""

    kernel: Any
    gamma: Any
    n_components: int
    n_terms: int
    map: Any
    sampling: str
    form: str
    features: str = "auto"

    @property
    def exact(self) -> Kernel:
        """The kernel as an object."""
        return as_kernel(self.kernel, self.gamma)

    @property
    def way(self) -> str:
        """ "landmarks", or what sampling "auto" stands for; a kernel with a map has nothing to sample."""
        kernel = self.exact
        if self.features == "landmarks":
            return "landmarks"
        is_mapped = isinstance(kernel, AdditiveKernel | DirichletKernel | Linear)
        has_waves = isinstance(kernel, Exponential | Skewed)
        if self.features == "additive" and not is_mapped:
            raise ValueError(
                f"features='additive' takes additive kernels such as 'chi2'; got {kernel.name!r}. Use features='auto'."
            )
        if self.features == "fourier" and not has_waves:
            raise ValueError(
                f"{kernel.name!r} has no random features: features must be 'auto' or "
                f"{'additive' if is_mapped else 'landmarks'!r}; got 'fourier'."
            )
        if self.sampling != "auto":
            return self.sampling
        if isinstance(kernel, Exponential) or is_mapped:
            return "orthogonal"
        return "iid" if has_waves else "landmarks"

    def make(self, seed: int) -> Any:
        """Unfitted features. Raises ValueError for a sampling that the kernel does not have."""
        kernel, sampling = self.exact, self.way
        if sampling == "landmarks":
            return NystroemFeatures(kernel, self.n_components, random_state=seed)
        if isinstance(kernel, Exponential):
            return FourierFeatures(
                kernel, self.n_components, map=self.map, n_terms=self.n_terms, sampling=sampling,
                form=self.form, random_state=seed,
            )  # fmt: skip
        if isinstance(kernel, Skewed):
            return SkewedFourierFeatures(kernel, self.n_components, sampling, self.form, seed)
        if isinstance(kernel, DirichletKernel):
            return DirichletMap(kernel)
        if isinstance(kernel, Linear):
            return IdentityMap()
        if not isinstance(kernel, AdditiveKernel):
            raise ValueError(
                f"{kernel.name!r} has no random features: sampling must be 'auto', or features='landmarks'; got "
                f"sampling={sampling!r}."
            )
        if self.map is None:
            return OptimalMap(kernel, self.n_terms)
        return type(self.map)(**self.map.get_params(deep=False)).set_params(kernel=kernel)

    def sizes(self, n_bins: int) -> Sizes:
        """For plans of memory, before anything is fitted."""
        kernel, sampling = self.exact, self.way
        mapped = (self.n_terms if self.map is None else self.map._terms_at_most) * n_bins
        if sampling == "landmarks":  # kernel values take the place of the mapped bins
            return Sizes(self.n_components, self.n_components, self.n_components)
        if isinstance(kernel, DirichletKernel | Linear):
            return Sizes(n_bins, 0, 0)
        if isinstance(kernel, AdditiveKernel):
            return Sizes(mapped, 0, 0)
        if not (isinstance(kernel, Exponential) and isinstance(kernel.kernel, AdditiveKernel)):
            mapped = n_bins
        frequencies = (self.n_components + 1) // 2 if self.form == "pair" else self.n_components
        # structured frequencies are signs and lengths alone
        return Sizes(self.n_components, mapped, 0 if sampling == "structured" else frequencies)

    def fitting_bytes(self, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """What fitting them on so many rows takes beside the rows."""
        kernel, n_values = self.exact, int(n_rows * row_bytes / itemsize)
        paired = min(n_rows, GAMMA_ROWS)
        is_linear = kernel.name == "gaussian"
        # for gamma: some rows and distances of a block of them, the linear ones by way of float64
        distances = (16 if is_linear else itemsize + 1) * paired * min(paired, GAMMA_BLOCK)
        taken = int(paired * row_bytes * (1 + is_linear * 8 / itemsize)) + distances
        if isinstance(kernel, DirichletKernel):
            taken = 16 * n_values  # proportions and their logarithms
        elif not isinstance(kernel, Exponential | AdditiveKernel):
            taken = max(taken, 2 * itemsize * n_values)  # for the median, in order
        elif not is_linear:
            psi = OptimalMap() if self.map is None else self.map
            taken = max(taken, psi._fitting_bytes(n_values, itemsize))
        if self.way == "landmarks":
            # kernel values of all rows with the landmarks, and the eigenproblem of these
            taken = max(taken, 8 * self.n_components * (n_rows + 3 * self.n_components))
        return taken


@dataclass(frozen=True)
class Part:
    """Columns of the rows, by name, and the settings of their features."""

    name: str
    columns: np.ndarray
    settings: FeatureSettings

    def scaled(self, scale: Scale) -> Part:
        """The same for rows so scaled."""
        if not scale.exponent:
            return self
        return replace(self, settings=replace(self.settings, kernel=scale.kernel(self.settings.exact)))


def parts_of(common: FeatureSettings, blocks: Any, n_columns: int) -> list[Part]:
    """The blocks with their settings, one kernel for all of them or one each; all columns where there are no blocks.

    Raises ValueError for blocks that will not do, and for a number of kernels that is not theirs.
    """
    if blocks is None:
        return [Part("all", np.arange(n_columns), common)]
    names, columns = check_blocks(blocks, n_columns)
    kernels = common.kernel if isinstance(common.kernel, list | tuple) else [common.kernel] * len(columns)
    if len(kernels) != len(columns):
        raise ValueError(f"kernel must be one, or one a block, {len(columns)} of them; got {len(kernels)}.")
    return [
        Part(name, own, replace(common, kernel=kernel))
        for name, own, kernel in zip(names, columns, kernels, strict=True)
    ]


def features_of(parts: list[Part], seed: int) -> BlockFeatures:
    """Unfitted features of blocks side by side; each draws its own random numbers."""
    features = [part.settings.make(seed + j) for j, part in enumerate(parts)]
    return BlockFeatures(features, {part.name: part.columns for part in parts})


def sizes_of(parts: list[Part]) -> Sizes:
    """Of all blocks together: their frequencies take as much memory as a matrix of these numbers."""
    each = [part.settings.sizes(part.columns.size) for part in parts]
    frequencies = sum(s.frequencies for s in each)
    mapped = max(s.mapped for s in each)
    if frequencies:
        mapped = -(-sum(s.mapped * s.frequencies for s in each) // frequencies)
    return Sizes(sum(s.features for s in each), mapped, frequencies)


def check_rows(rows: Any, parts: list[Part], name: str, first_row: int | np.ndarray) -> None:
    """Refuse entries that the kernels of their blocks do not take; see ``check_histograms``."""
    signed = [part.settings.exact.is_signed for part in parts]
    check_histograms(rows, name=name, signed=any(signed), first_row=first_row)
    if any(signed) and not all(signed):
        for part, is_signed in zip(parts, signed, strict=True):
            own = _arrays.take_columns(rows, part.columns)
            check_histograms(own, name=f"{name}, block {part.name!r}", signed=is_signed, first_row=first_row)


def normalised(rows: Any, parts: list[Part]) -> Any:
    """Rows whose blocks have the l1 norm 1 each; empty ones stay."""
    for part in parts:
        norms = _arrays.row_norms_l1(_arrays.take_columns(rows, part.columns))
        factors = 1 / np.where(norms > 0, norms, 1)
        if len(parts) == 1 and part.columns.size == rows.shape[1]:
            return _arrays.scale_rows(rows, factors)
        rows = _arrays.scale_entries(rows, part.columns, factors)
    return rows
