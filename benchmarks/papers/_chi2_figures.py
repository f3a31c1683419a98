"""Draw Figures 1 and 2 of the chi2 paper: error of the map, and accuracy of its random features, by terms per bin."""

from pathlib import Path

import matplotlib.style
import numpy as np
from matplotlib.figure import Figure

from benchmarks.accuracy import STYLE
from benchmarks.papers._chi2_page import DIMENSIONS, METHODS, SETS, TERMS, Cells

COLOURS = dict(zip(METHODS[1:], ("#8f8f8f", "#d98c2b", "#b3401f", "#0b6e99"), strict=True))


def draw(known: Cells, path: Path) -> None:
    """Draw a row of panels for each set that has been computed."""
    matplotlib.style.use(STYLE)
    names = [name for name in SETS if f"{name}/errors" in known]
    figure = Figure(figsize=(9, 3.3 * len(names)), layout="constrained")
    for (error, accuracy), name in zip(figure.subplots(len(names), 2, squeeze=False), names, strict=True):
        for aside, (method, colour) in zip((-0.12, -0.04, 0.04, 0.12), COLOURS.items(), strict=True):
            errors = {n: known[f"{name}/errors"].get(f"bins {method} {n}") for n in TERMS}
            error.plot(*_series(errors), "o-", color=colour, label=method, markersize=4)
            terms, means, deviations = _spreads(known, name, method)
            beside = np.add(terms, aside)  # a shift, so that the error bars of the methods can be told apart
            accuracy.errorbar(beside, means, deviations, fmt="o-", color=colour, markersize=4, capsize=2)
        exact = 100 * known[f"{name}/exact"]["Exact exp-chi2"]
        accuracy.axhline(exact, color="#7f848c", linestyle="--", linewidth=1)
        accuracy.annotate("exact kernel", (TERMS[-2] + 1, exact), xytext=(0, 3), textcoords="offset points", fontsize=8)
        title = SETS[name].split(";")[0]
        error.set(title=f"{title}: error of k", xlabel="terms per bin", ylabel="relative error", yscale="log")
        accuracy.set(
            title=f"accuracy at {DIMENSIONS[-1]} dimensions",
            xlabel="terms per bin",
            ylabel="mean accuracy per class, %",
        )
        for axes in (error, accuracy):
            axes.set_xticks(TERMS)
            axes.spines[["top", "right"]].set_visible(False)
        error.legend(frameon=False, fontsize=8)
    figure.savefig(path, dpi=100)


def _series(values: dict[int, float | None]) -> tuple[list[int], list[float]]:
    found = {n: value for n, value in values.items() if value is not None}
    return list(found), list(found.values())


def _spreads(known: Cells, name: str, method: str) -> tuple[list[int], list[float], list[float]]:
    """Return (terms, mean accuracy in %, its standard deviation over the seeds)."""
    cells = [cell for key, cell in known.items() if key.startswith(f"{name}/terms/{method}/")]
    terms = [n for n in TERMS if cells and str(n) in cells[0]]
    found = 100 * np.array([[cell[str(n)] for n in terms] for cell in cells])
    if not terms:
        return [], [], []
    return (terms, list(found.mean(axis=0)), list(found.std(axis=0, ddof=1) if len(found) > 1 else 0 * found[0]))
