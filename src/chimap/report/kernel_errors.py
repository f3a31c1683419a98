"""``KernelErrors``: how far maps and features approximate a kernel, as one frozen value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from chimap._types import JSON
from chimap.report._plain import plain


@dataclass(frozen=True)
class FeatureError:
    """The error of one family of features at one size.

    Parameters
    ----------
    family : str
        Name of the features, such as "OptimalMap".
    size : int
        Their size, in ``unit``.
    unit : {"terms", "features"}
        Terms per bin, or features in total.
    n_features : int
        Number of features in total.
    error_mean : float
        Mean error of the kernel over pairs of rows; see ``chimap.comparison.kernel_error.KernelError``.
    error_worst : float
        Largest error of the kernel over pairs of rows.
    error_relative : float
        Frobenius norm of the error of the kernel matrix, relative to that of the matrix.
    value_error : float or None
        Relative error over pairs of single values; None for features that are not a map of single values.
    map_seconds : float
        Time to compute the features of a row, after warm-up.
    row_bytes : float
        Bytes of a row of features in its smallest storage form.
    """

    family: str
    size: int
    unit: str
    n_features: int
    error_mean: float
    error_worst: float
    error_relative: float
    value_error: float | None
    map_seconds: float
    row_bytes: float

    @property
    def name(self) -> str:
        """Family and size, such as 'OptimalMap, 2 terms'."""
        unit = self.unit.removesuffix("s") if self.size == 1 else self.unit
        return f"{self.family}, {self.size:,} {unit}"


@dataclass(frozen=True)
class Refused:
    """Features that could not be fitted to the rows.

    Parameters
    ----------
    family : str
        Name of the features.
    size : int
        Their size.
    reason : str
        The message of the error.
    """

    family: str
    size: int
    reason: str


@dataclass(frozen=True)
class KernelErrors:
    """Errors of all features of a kernel on the same rows.

    Parameters
    ----------
    kernel : str
        Name of the kernel.
    gamma : float or None
        Its gamma; None for a kernel that has none fitted.
    measured : tuple of FeatureError
        The features that were measured.
    refused : tuple of Refused
        The features that could not be fitted.
    bounds : mapping of int to float
        Smallest possible relative error at each size.
    bound_of : {"values", "gram"}
        What the bounds apply to: pairs of single values (by terms), or the kernel matrix (by features).
    n_gram_rows : int
        Number of rows of the kernel matrix.
    """

    kernel: str
    gamma: float | None
    measured: tuple[FeatureError, ...]
    refused: tuple[Refused, ...]
    bounds: Mapping[int, float]
    bound_of: str
    n_gram_rows: int

    @property
    def ranked(self) -> tuple[FeatureError, ...]:
        """The measured features, most accurate first."""
        return tuple(sorted(self.measured, key=lambda m: (m.error_relative, m.name)))

    def as_dict(self) -> JSON:
        """Return the errors as JSON types."""
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return plain(
            facts
            | {
                "measured": [dataclasses.asdict(m) | {"name": m.name} for m in self.ranked],
                "refused": [dataclasses.asdict(refusal) for refusal in self.refused],
                "bounds": [{"size": size, "error": error} for size, error in self.bounds.items()],
            }
        )
