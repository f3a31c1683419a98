"""How far maps and features approximate a kernel: the numbers, and their figures over size."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

from chimap._formatting import one_line, plain
from chimap._types import JSON
from chimap.report.figures import INK, LINES, MARKERS, SIZE, drawing, legend_below, log_axis, to_svg

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


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


_FLOOR = 1e-16  # smaller errors are rounding


def value_error(errors: KernelErrors) -> str:
    """Draw the relative error over pairs of values by number of terms (logarithmic), with the bound."""
    return _error_figure(
        errors, lambda m: m.value_error, "values", "relative error over pairs of values", True
    )


def gram_error(errors: KernelErrors) -> str:
    """Draw the relative error of the kernel matrix by size (logarithmic), with the bound if it is one of the matrix."""
    has_bound = errors.bound_of == "gram"
    return _error_figure(
        errors, lambda m: m.error_relative, "matrix", "relative error of the kernel matrix", has_bound
    )


def _error_figure(
    errors: KernelErrors,
    error: Callable[[FeatureError], float | None],
    name: str,
    y_label: str,
    has_bound: bool,
) -> str:
    unit = "terms" if errors.bound_of == "values" else "features"
    with drawing(*SIZE) as (figure, axes):
        sizes: list[int] = []
        heights: list[float] = []
        for family, style in _styles(errors).items():
            points = [
                (m.size, max(e, _FLOOR))
                for m in errors.measured
                if m.family == family and m.unit == unit and (e := error(m)) is not None
            ]
            if points:
                x, y = zip(*sorted(points), strict=True)
                axes.plot(x, y, label=one_line(family, 60), **style)
                sizes += x
                heights += y
        bound = [(size, e) for size, e in sorted(errors.bounds.items()) if e > _FLOOR]
        if has_bound and bound:
            x, y = zip(*bound, strict=True)
            axes.plot(
                x, y, color=INK, linewidth=1.4, dashes=(4, 3), marker="_", label="smallest possible", zorder=5
            )
            heights += y
        axes.set_yscale("log")
        if unit == "terms":
            axes.set_xticks(sorted(set(sizes)))
        else:
            axes.set_xscale("log")
            _features_axis(axes, sizes)
        if heights:
            axes.set_ylim(min(heights) / 2, max(heights) * 2)
            log_axis(axes.yaxis, *axes.get_ylim())
        x_label = "terms per bin" if unit == "terms" else "number of features"
        return _finished(figure, axes, errors, name, x_label, y_label)


def _styles(errors: KernelErrors) -> dict[str, JSON]:
    """Return colour and marker of each family, in the order of measurement."""
    families = list(dict.fromkeys(m.family for m in errors.measured))
    return {
        family: {
            "color": LINES[i % len(LINES)],
            "marker": MARKERS[(i + i // len(LINES)) % len(MARKERS)],
            "markersize": 6,
            "linewidth": 1.7,
            "linestyle": "-" if i < len(LINES) else ":",
        }
        for i, family in enumerate(families)
    }


def _features_axis(axes: Axes, sizes: Sequence[int]) -> None:
    """Set ticks at the sizes if they are few and far apart, else as on any logarithmic axis."""
    from matplotlib.ticker import NullLocator

    ticks = sorted(set(sizes))
    low, high = ticks[0] / 1.2, ticks[-1] * 1.2
    axes.set_xlim(low, high)
    if len(ticks) > 5 or any(b < 1.6 * a for a, b in pairwise(ticks)):
        log_axis(axes.xaxis, low, high)
        return
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.xaxis.set_minor_locator(NullLocator())


def _finished(figure: Figure, axes: Axes, errors: KernelErrors, name: str, x_label: str, y_label: str) -> str:
    axes.grid(axis="y")
    axes.set(xlabel=x_label, ylabel=y_label)
    legend_below(axes)
    listed = ", ".join(one_line(m.name) for m in errors.ranked)
    return to_svg(figure, f"errors-{name}", f"{y_label} by {x_label}: {listed}.")
