"""Feature families of landmarks: by products of mapped rows, and for every kernel."""

from __future__ import annotations

from typing import ClassVar

from chimap import _threads
from chimap.features.additive.families import map_bytes, mapped_bins
from chimap.features.base import Features, FeatureSettings, Footprint, gamma_bytes, median_bytes
from chimap.features.landmarks.choosing import PIECE_ROWS, sample_rows
from chimap.features.landmarks.landmark_features import LandmarkFeatures
from chimap.features.landmarks.nystroem import NystroemFeatures
from chimap.kernels import AdditiveKernel, Exponential, Kernel


class LandmarkFamily:
    """``LandmarkFeatures``, with one term for each bin unless the settings name more."""

    makes: ClassVar[type] = LandmarkFeatures

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return LandmarkFeatures.takes(kernel)

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        return LandmarkFeatures(
            settings.exact, settings.size(), map=settings.map, n_terms=settings.terms(1),
            landmarks=settings.landmarks, random_state=seed,
        )  # fmt: skip

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Count mapped landmarks as a matrix of frequencies, and whitening as one more over m further mapped bins.

        Landmarks that the user gives are not rows of the sample.
        """
        m, p = settings.size(), mapped_bins(settings, n_bins, 1)
        sampled_landmarks = m if isinstance(settings.landmarks, str) else 0
        return Footprint(m, p + m, m, sample_rows=sample_rows(m), landmarks=sampled_landmarks)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the larger of what the map takes and what choosing and factorising landmarks takes.

        The latter are the mapped rows and their differences from the mean, products of each thread with
        the centres, the kernel of the landmarks, in whose memory its factor is inverted, and the triangle.
        """
        m = settings.size()
        mapped = 2 * int(n_rows * row_bytes) * mapped_bins(settings, 1, 1)
        products = itemsize * m * min(n_rows, PIECE_ROWS * _threads.count())
        return max(
            map_bytes(settings, n_rows, row_bytes, itemsize), mapped + products + (8 + itemsize) * m * m
        )


class NystroemFamily:
    """``NystroemFeatures``, whose landmarks are rows of the sample."""

    makes: ClassVar[type] = NystroemFeatures

    @classmethod
    def takes(cls, kernel: Kernel) -> bool:
        """See ``Family``."""
        return True

    @classmethod
    def of(cls, settings: FeatureSettings, seed: int) -> Features:
        """See ``Family``."""
        return NystroemFeatures(settings.exact, settings.size(), random_state=seed)

    @classmethod
    def footprint(cls, settings: FeatureSettings, n_bins: int) -> Footprint:
        """Count kernel values in place of mapped bins; the landmarks are rows of the sample."""
        m = settings.size()
        return Footprint(m, m, m, sample_rows=2 * m, landmarks=m)

    @classmethod
    def fitting_bytes(cls, settings: FeatureSettings, n_rows: int, row_bytes: float, itemsize: int) -> int:
        """Return the larger of what the kernel's parameters take and what the landmarks take.

        The latter are the kernel values of all rows with the landmarks beside two float64 copies of the rows, and the
        eigenproblem of the landmarks.
        """
        kernel, m = settings.exact, settings.size()
        if kernel.name == "gaussian":
            parameters = gamma_bytes(kernel, n_rows, row_bytes, itemsize)
        elif isinstance(kernel, Exponential | AdditiveKernel):
            parameters = map_bytes(settings, n_rows, row_bytes, itemsize)
        else:
            parameters = max(
                median_bytes(kernel, n_rows, row_bytes, itemsize), int(16 * n_rows * row_bytes / itemsize)
            )
        copies = int(16 * n_rows * row_bytes / itemsize)
        return max(parameters, copies + 8 * m * (n_rows + 3 * m))
