"""The figures of a selection: scores over components and strengths, and values along a path of strengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.report._figure import BAD, GOOD, LINES, MUTED, house_style, new_figure, to_svg
from chimap.report._plain import number
from chimap.report.curves import log_axis

_MOST_LINES = len(LINES)
_ROUNDING = 1e-17  # drawn instead of zero on a logarithmic axis


def scores_by_components(
    n_components: np.ndarray,
    alphas: np.ndarray,
    scores: np.ndarray,
    name: str,
    chosen: tuple[int, float] | None,
) -> str:
    """Draw one line per strength over the number of components (logarithmic), with a ring around the chosen pair.

    If there are more strengths than colours, evenly spaced ones are drawn, the chosen one among them.

    Parameters
    ----------
    n_components : ndarray of shape (P,)
        Numbers of components, ascending.
    alphas : ndarray of shape (S,)
        Strengths, ascending.
    scores : ndarray of shape (P, S)
        Scores of all pairs; greater is better.
    name : str
        Name of the scores, such as 'held-out R²'.
    chosen : tuple of int and float, or None
        The chosen number of components and strength.
    """
    best = None if chosen is None else int(np.argmin(np.abs(alphas - chosen[1])))
    with house_style():
        figure = new_figure(380, 250)
        axes = figure.add_axes((0, 0, 1, 1))
        for colour, s in zip(LINES, _drawn(alphas.size, best), strict=False):
            width = 2.6 if s == best else 1.6
            axes.plot(n_components, scores[:, s], color=colour, linewidth=width, marker="o", markersize=4,
                      label=number(alphas[s], 2))  # fmt: skip
        if chosen is not None and best is not None:
            p = int(np.argmin(np.abs(n_components - chosen[0])))
            axes.plot(
                [n_components[p]], [scores[p, best]], "o", markersize=12, markerfacecolor="none", color=BAD
            )
        shown = scores[:, _drawn(alphas.size, best)]
        top = float(shown.max())
        # Without this limit, pairs that fail entirely would compress all others into a line.
        bottom = max(float(shown.min()), top - max(0.05, 4 * float(top - np.median(shown))))
        axes.set(ylim=(bottom - 0.04 * (top - bottom + 1e-9), top + 0.06 * (top - bottom + 1e-9)))
        if n_components.size > 1:
            axes.set(xscale="log", xlim=(n_components[0] / 1.1, n_components[-1] * 1.1))
            log_axis(axes.xaxis, *axes.get_xlim())
        axes.grid(axis="y")
        axes.set_xlabel("principal components", labelpad=8)
        axes.set_ylabel(name, labelpad=8)
        axes.legend(title="alpha", loc="upper left", bbox_to_anchor=(1.01, 1.02), labelcolor=MUTED)
        alt = f"{name} over {n_components.size} numbers of components at {alphas.size} strengths."
        if chosen is not None:
            alt += f" Chosen: {chosen[0]} components at strength {number(chosen[1], 3)}."
        return to_svg(figure, "components", alt)


def along_path(
    alphas: np.ndarray, values: np.ndarray, name: str, chosen: float, *, band: np.ndarray | None = None,
    logarithmic: bool = False, id: str = "path",
) -> str:  # fmt: skip
    """Draw values (S,) over strengths (S,), with ``band`` (S,) to either side; a dashed line marks the choice."""
    order = np.argsort(alphas)
    x, y = alphas[order], np.maximum(values[order], _ROUNDING) if logarithmic else values[order]
    with house_style():
        figure = new_figure(330, 220)
        axes = figure.add_axes((0, 0, 1, 1))
        axes.axvline(chosen, color=BAD, linewidth=1.2, dashes=(4, 3), zorder=1)
        if band is not None:
            axes.fill_between(x, y - band[order], y + band[order], color=GOOD, alpha=0.2, linewidth=0)
        axes.plot(x, y, color=GOOD, linewidth=2, marker="o", markersize=4)
        axes.set(xscale="log", xlim=(x[0] / 1.2, x[-1] * 1.2))
        log_axis(axes.xaxis, *axes.get_xlim())
        if logarithmic:
            axes.set(yscale="log", ylim=(y.min() / 3, y.max() * 3))
            log_axis(axes.yaxis, *axes.get_ylim())
        axes.grid(axis="y")
        axes.set_xlabel("strength of the penalty", labelpad=8)
        axes.set_ylabel(name, labelpad=8)
        alt = f"{name} at {x.size} strengths from {number(x[0])} to {number(x[-1])}; {number(chosen, 3)} is chosen."
        return to_svg(figure, id, alt)


def _drawn(count: int, kept: int | None) -> Sequence[int]:
    """Return at most as many indices as there are colours, evenly spaced, ``kept`` among them."""
    if count <= _MOST_LINES:
        return range(count)
    places = np.unique(np.linspace(0, count - 1, _MOST_LINES).round().astype(int)).tolist()
    if kept is not None and kept not in places:
        places[int(np.argmin(np.abs(np.array(places) - kept)))] = kept
    return places
