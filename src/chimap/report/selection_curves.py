"""How a model from moments was chosen, drawn: scores over components and strengths, and along a path of strengths."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from chimap.report._figure import BAD, GOOD, LINES, MUTED, house_style, new_figure, to_svg
from chimap.report._plain import number
from chimap.report.curves import log_axis

_MOST_LINES = len(LINES)
_ROUNDING = 1e-17  # what a logarithmic axis shows for zero


def scores_by_components(
    n_components: np.ndarray,
    alphas: np.ndarray,
    scores: np.ndarray,
    name: str,
    chosen: tuple[int, float] | None,
) -> str:
    """A line a strength over the number of components (logarithmic); the pair that was chosen ringed.

    n_components: (P,). alphas: (S,). scores: (P, S), the better the higher. name: of the scores, 'held-out R²'. With
    more strengths than colours every other is left out, the one that was chosen never.
    """
    best = None if chosen is None else int(np.argmin(np.abs(alphas - chosen[1])))
    with house_style():
        figure = new_figure(380, 250)
        axes = figure.add_axes((0, 0, 1, 1))
        for colour, s in zip(LINES, _some(alphas.size, best), strict=False):
            width = 2.6 if s == best else 1.6
            axes.plot(n_components, scores[:, s], color=colour, linewidth=width, marker="o", markersize=4,
                      label=number(alphas[s], 2))  # fmt: skip
        if chosen is not None and best is not None:
            p = int(np.argmin(np.abs(n_components - chosen[0])))
            axes.plot(
                [n_components[p]], [scores[p, best]], "o", markersize=12, markerfacecolor="none", color=BAD
            )
        shown = scores[:, _some(alphas.size, best)]
        top = float(shown.max())
        # what fails altogether would press the rest into a line
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
            alt += f" Chosen: {chosen[0]} components, strength {number(chosen[1], 3)}."
        return to_svg(figure, "components", alt)


def along_path(
    alphas: np.ndarray, values: np.ndarray, name: str, chosen: float, *, band: np.ndarray | None = None,
    logarithmic: bool = False, id: str = "path",
) -> str:  # fmt: skip
    """Values (S,), with a band (S,) either way, over strengths (S,); the choice is a dashed line."""
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
        alt = f"{name} at {x.size} strengths from {number(x[0])} to {number(x[-1])}; {number(chosen, 3)} was chosen."
        return to_svg(figure, id, alt)


def _some(count: int, kept: int | None) -> Sequence[int]:
    """At most as many as there are colours, evenly, ``kept`` among them."""
    if count <= _MOST_LINES:
        return range(count)
    places = np.unique(np.linspace(0, count - 1, _MOST_LINES).round().astype(int)).tolist()
    if kept is not None and kept not in places:
        places[int(np.argmin(np.abs(np.array(places) - kept)))] = kept
    return places
