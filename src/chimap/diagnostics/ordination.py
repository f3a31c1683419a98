"""Ordination: rows in the plane that shows most of how a kernel tells them apart.

Rows z about their mean have the kernel for products, Z Z' = G. The principal components U of Z give the coordinates
Z U: principal coordinates of the distances of the kernel, and kernel PCA by another name. The share of an axis in the
variation is its eigenvalue over the trace of G; no eigenvalue is negative, as a kernel is positive semi-definite.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from chimap._files import replacing
from chimap._formatting import number, one_line, percent
from chimap._progress import Progress
from chimap._types import Parameters
from chimap._validation import check_positive
from chimap.diagnostics.answer import Answer
from chimap.diagnostics.coordinates import KernelCoordinates, RowsInKernel
from chimap.diagnostics.metadata import Data, Metadata, columns_of, opened
from chimap.features.principal import PCA
from chimap.kernels import Kernel
from chimap.moments import Moments
from chimap.reports.figures import INK, LINES, MARKERS, MUTED, drawing, horizontal_bars, to_svg
from chimap.reports.section import Figure, Section, folded, text_table

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from sklearn.base import BaseEstimator

    from chimap.models.predictor import Predictor

_POINTS_DRAWN = 3000  # of a page, whose figures are text; a picture has all
_DOTS_PER_INCH = 200  # of pictures; figures are in 72nds of an inch


@dataclass(frozen=True, eq=False, repr=False)
class Ordination(Answer):
    """Rows along the axes that show most of how a kernel tells them apart.

    Parameters
    ----------
    coordinates : ndarray of shape (n, k)
        The rows along the axes; their distances are close to those of the kernel where the axes hold most.
    shares : ndarray of shape (k,)
        The share of each axis in the variation of all.
    names : ndarray of shape (n,)
        Ids of the rows, or their numbers.
    colour : masked array of shape (n,), or None
        What the points are coloured by: text or numbers.
    new : ndarray of shape (m, k)
        Rows that were projected and did not make the axes.
    new_names : ndarray of shape (m,)
        Their ids, or numbers.
    bins : ndarray of text, shape (bins,)
        Names of the bins, those that follow the first two axes most first.
    correlations : ndarray of shape (bins, k)
        Correlation of each bin, as the kernel takes it, with each axis.
    **about
        What every ``Answer`` holds.
    """

    kind: ClassVar[str] = "ordination"

    coordinates: np.ndarray
    shares: np.ndarray
    names: np.ndarray
    colour: np.ma.MaskedArray | None
    new: np.ndarray
    new_names: np.ndarray
    bins: np.ndarray
    correlations: np.ndarray

    @property
    def sentence(self) -> str:
        """How much of the variation the axes show, and the bins that follow them most."""
        axes = "The first axis shows" if self.shares.size == 1 else "The first two axes show"
        bins = ", ".join(one_line(name) for name in self.bins[:3])
        return f"{axes} {percent(float(self.shares[:2].sum()))} of the variation; {bins} follow them most."

    def save_picture(self, path: Path) -> None:
        """Write the first two axes as a picture (.png), with every point."""
        with drawing(*_SIZE) as (figure, axes), replacing(path) as unfinished:
            draw(self, axes, None)
            figure.savefig(unfinished, format="png", dpi=_DOTS_PER_INCH, bbox_inches="tight", facecolor="white")

    def save_table(self, path: Path) -> None:
        """Write the coordinates as text (.csv): a line for each row, new ones last."""
        import pandas as pd

        columns = [f"axis {k}" for k in range(1, self.shares.size + 1)]
        table = pd.DataFrame(np.vstack([self.coordinates, self.new]), columns=columns)
        table.insert(0, "row", np.concatenate([self.names, self.new_names]))
        table["new"] = np.arange(len(table)) >= len(self.names)
        with replacing(path) as unfinished:
            table.to_csv(unfinished, index=False)


def ordinate(
    X: Data,
    metadata: Metadata = None,
    *,
    colour: str | Sequence[object] | None = None,
    new: Data | None = None,
    n_axes: int = 2,
    kernel: str | Kernel = "chi2",
    normalize: str | None = "l1",
    gamma: float | str = "mean",
    model: Predictor | BaseEstimator | None = None,
    landmarks: int | None = None,
    memory: str | int = "1GiB",
    random_state: int = 0,
    progress: Progress | None = None,
) -> Ordination:
    """Return rows along the axes that show most of how a kernel tells them apart, with the bins that follow the axes.

    These are the principal coordinates of the distances of the kernel, D^2 = K(x, x) + K(y, y) - 2 K(x, y).

    Parameters
    ----------
    X : array, sparse matrix, data frame, path or Source of n rows
        The counts.
    metadata : data frame, mapping, path or None, default=None
        Where the column ``colour`` is; see ``permanova``.
    colour : str or array of shape (n,), default=None
        Column, or values, that colour the points; ``C(year)`` is a category though it holds numbers.
    new : rows of the same bins, default=None
        Rows to project onto the axes of X.
    n_axes : int, default=2
        Number of axes.
    kernel, normalize, gamma, model, landmarks, memory, random_state, progress
        The kernel, and how it is computed; see ``permanova``.

    Returns
    -------
    Ordination
        Coordinates, shares of the variation, and correlations of the bins.

    Raises
    ------
    DataError
        If a column is missing, if rows are invalid, or if all are the same to the kernel.

    References
    ----------
    Gower, Some distance properties of latent root and vector methods used in multivariate analysis (1966). Scholkopf,
    Smola and Muller, Nonlinear component analysis as a kernel eigenvalue problem (1998).

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> X = rng.poisson(5, (40, 6))
    >>> X[:20, 2] += 20
    >>> found = ordinate(X, colour=["a"] * 20 + ["b"] * 20)
    >>> found.coordinates.shape, str(found.bins[0]), bool(found.shares[0] > 0.3)
    ((40, 2), 'bin 2', True)
    """
    check_positive(n_axes, "n_axes", integer=True)
    column, given = ([colour], {}) if isinstance(colour, str) else ([], {} if colour is None else {"colour": colour})
    machine = None if model is None else getattr(model, "fitted", model).exact
    source = opened(X, column, machine)
    shades = columns_of(source, {"colour": column}, metadata, given) if column or given else None
    with progress or Progress() as shown:
        rows = RowsInKernel.of(source, machine, kernel, normalize, gamma, random_state)
        space = KernelCoordinates.of(rows, landmarks, memory, random_state, shown)
        shown.stage("axes", None)
        n, r = space.Z.shape
        pca = PCA.of(Moments(r, 0).update(space.Z, np.zeros((n, 0))), min(n_axes, r))
        coordinates = pca.transform(space.Z).astype(np.float64)
        others = None if new is None else rows.matching(new)
        parts = [] if others is None else [pca.transform(space.project(some)) for _, some in others.chunks()]
        correlations = rows.correlations(coordinates)
    order = np.argsort(-np.linalg.norm(correlations[:, :2], axis=1), kind="stable")
    data = rows.facts() | {"new rows": None if others is None else others.n_rows, "landmarks": space.n_landmarks}
    return Ordination(
        coordinates,
        pca.shares,
        rows.row_names,
        None if shades is None else shades.values[0],
        np.vstack(parts) if parts else np.zeros((0, coordinates.shape[1])),
        np.array([]) if others is None else others.row_names,
        np.array(rows.names, dtype=object)[order],
        correlations[order],
        data=data,
        settings={"colour": column[0] if column else "given" if given else None, "random_state": random_state},
    )


# --- the picture, and the sections of the page

_SIZE = (480, 400)
_MOST_COLOURED = len(LINES)
_ARROWS, _ARROW_LENGTH = 6, 0.8  # and the length of a correlation of 1, in that of the farthest row
_ROOM_OF_NAME = (0.4, 0.06)  # width and height of a name, as shares of the picture


def draw(found: Ordination, axes: Axes, most: int | None) -> None:
    """Draw the rows along the first two axes, or the only one, with arrows of bins; ``most`` limits the points."""
    n = found.coordinates.shape[0]
    chosen = np.arange(n)
    if most is not None and n > most:
        chosen = np.sort(np.random.default_rng(0).choice(n, most, replace=False))
    x, y = _plane(found.coordinates)
    size = float(np.clip(10_000 / max(chosen.size, 1), 6, 30))
    for where, style in _groups(found, chosen):
        if where.size:
            axes.scatter(x[where], y[where], s=size, linewidths=0, alpha=0.75, **style)
    if found.new.size:
        of_new = _plane(found.new)
        axes.scatter(*of_new, s=2 * size, marker="D", facecolors="none", edgecolors=INK, linewidths=1, label="new")
    _draw_arrows(found, axes)
    labels = [f"axis {k + 1} ({percent(float(share))})" for k, share in enumerate(found.shares[:2])]
    axes.set(xlabel=labels[0], ylabel=labels[1] if len(labels) > 1 else "")
    axes.margins(0.04)
    if axes.get_legend_handles_labels()[1]:
        title = None if found.settings["colour"] in (None, "given") else str(found.settings["colour"])
        below = {"bbox_to_anchor": (-0.02, -0.16), "ncols": 2, "alignment": "left"}
        axes.legend(loc="upper left", borderaxespad=0, markerscale=1.4, title=title, **below)


def _plane(coordinates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return coordinates[:, 0], coordinates[:, 1] if coordinates.shape[1] > 1 else np.zeros(coordinates.shape[0])


def _groups(found: Ordination, chosen: np.ndarray) -> list[tuple[np.ndarray, Parameters]]:
    """Return places of points, in layers, with how they are drawn: by level, by number, or without a value."""
    colour = found.colour
    if colour is None:
        return [(chosen, {"color": LINES[0]})]
    gaps = np.ma.getmaskarray(colour)[chosen]
    layers: list[tuple[np.ndarray, Parameters]] = [(chosen[gaps], {"color": MUTED, "label": "missing"})]
    known, values = chosen[~gaps], np.ma.getdata(colour)
    if values.dtype.kind != "U":
        low, high = (number(float(end(values[known])), 3) for end in (np.min, np.max)) if known.size else ("", "")
        label = f"dark {low}, light {high}"
        return [*layers, (known, {"c": values[known], "cmap": "viridis", "label": label})]
    levels, sizes = np.unique(values[~np.ma.getmaskarray(colour)], return_counts=True)
    largest = sorted(levels[np.argsort(-sizes, kind="stable")][:_MOST_COLOURED])
    rest = known[~np.isin(values[known], largest)]
    layers.append((rest, {"color": MUTED, "label": f"{levels.size - len(largest)} others"}))
    for k, level in enumerate(largest):
        style: Parameters = {"color": LINES[k], "marker": MARKERS[k % len(MARKERS)], "label": one_line(level, 24)}
        layers.append((known[values[known] == level], style))
    return layers


def _draw_arrows(found: Ordination, axes: Axes) -> None:
    """Draw arrows of the bins that follow the axes most, without those whose names would cover that of a longer one."""
    of_rows, of_bins = (np.column_stack(_plane(some)) for some in (found.coordinates, found.correlations))
    low, high = of_rows.min(axis=0), of_rows.max(axis=0)
    span = np.maximum(high - low, np.finfo(float).tiny)
    tips = _ARROW_LENGTH * float(np.abs(of_rows).max()) * of_bins
    drawn: list[np.ndarray] = []
    for name, tip in zip(found.bins, tips, strict=True):
        if any((np.abs((tip - other) / span) < _ROOM_OF_NAME).all() for other in drawn):
            continue
        drawn.append(tip)
        axes.annotate("", tip, (0, 0), arrowprops={"arrowstyle": "->", "color": INK, "linewidth": 0.9, "alpha": 0.8})
        beside, above = "left" if tip[0] >= 0 else "right", "bottom" if tip[1] >= 0 else "top"
        axes.annotate(one_line(name, 20), tip, fontsize=10, color=INK, ha=beside, va=above)
        axes.update_datalim([tip + np.copysign([_ROOM_OF_NAME[0] * span[0], 0], tip)])
        if len(drawn) == _ARROWS:
            break


def picture(found: Ordination) -> Section:
    """Return the rows along the first two axes."""

    def drawn() -> str:
        with drawing(*_SIZE) as (figure, axes):
            draw(found, axes, _POINTS_DRAWN)
            about = f"{found.data['rows']:,} rows along two axes. {found.sentence}"
            return to_svg(figure, "ordination", about)

    n = found.coordinates.shape[0]
    some = f" {_POINTS_DRAWN:,} of {n:,} rows are drawn." if n > _POINTS_DRAWN else ""
    return Section(
        "Rows",
        "Rows that are near each other are alike to the kernel. An arrow points to where a bin is larger; its length "
        f"is the correlation of the bin with the axes.{some}",
        (Figure(drawn),),
        note=" ".join(found.notes),
        lines={
            "kernel": str(found.data["kernel"]),
            "new": None if not len(found.new) else f"{len(found.new):,} rows projected",
        },
        lead=found.sentence,
        layout="stack",
    )


def axes_and_bins(found: Ordination) -> Section:
    """Return the shares of the axes, and the bins that follow them."""
    names, shares = [f"axis {k}" for k in range(1, found.shares.size + 1)], [percent(float(s)) for s in found.shares]

    def drawn() -> str:
        with drawing(380, 28 * len(names)) as (figure, axes):
            horizontal_bars(axes, names, found.shares, shares, room=1.3)
            return to_svg(figure, "ordination-axes", f"Shares of the axes in the variation: {', '.join(shares)}.")

    lines = [
        (one_line(name), *(f"{value:+.2f}".replace("-", "−") for value in values))
        for name, values in zip(found.bins[:100], found.correlations[:100], strict=True)
    ]
    return Section(
        "Axes and bins",
        "The share of each axis in the variation of all rows, and the correlation of bins with the axes.",
        (Figure(drawn),),
        folded(("Bin", *names), lines, "bins"),
        lines={
            "axes": "\n".join(map("{}: {}".format, names, shares)),
            "bins": text_table([("", *names), *lines[:_ARROWS]]),
        },
        layout="stack",
    )
