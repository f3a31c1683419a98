"""How far maps and features of a kernel are from the exact one, as one frozen value."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass

from chimap._types import JSON
from chimap.report._plain import plain


@dataclass(frozen=True)
class FeatureError:
    """Features of a family at one size.

    family, size, unit: what they are; size in ``unit``, "terms" a bin or "features" in all. n_features: in all.
    error_mean, error_worst, error_relative: of the kernel, see ``chimap.comparison.kernel_error.KernelError``.
    value_error: relative, over pairs of single values; None for what is no map of values.
    map_seconds: a row, once it is warm. row_bytes: a row of features, in the smallest form that it has.
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
        """Family and size: 'OptimalMap, 2 terms'."""
        unit = self.unit.removesuffix("s") if self.size == 1 else self.unit
        return f"{self.family}, {self.size:,} {unit}"


@dataclass(frozen=True)
class Refused:
    """Features that refused the rows, and what they said."""

    family: str
    size: int
    reason: str


@dataclass(frozen=True)
class KernelErrors:
    """Features of a kernel on the same rows.

    bounds: the least relative error by size, of ``bound_of``: "values" (by terms, pairs of single values) or "gram"
    (by features, the kernel matrix of ``n_gram_rows`` rows).
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
        """The most accurate first."""
        return tuple(sorted(self.measured, key=lambda m: (m.error_relative, m.name)))

    def as_dict(self) -> JSON:
        """Plain JSON types."""
        facts = {f.name: getattr(self, f.name) for f in dataclasses.fields(self)}
        return plain(
            facts
            | {
                "measured": [dataclasses.asdict(m) | {"name": m.name} for m in self.ranked],
                "refused": [dataclasses.asdict(one) for one in self.refused],
                "bounds": [{"size": size, "error": error} for size, error in self.bounds.items()],
            }
        )
