"""Draw score against seconds of the fit for each data set of against_others: docs/assets/accuracy.png.

python -m benchmarks.accuracy.plot_against_others                      # of benchmarks/results/against_others.jsonl
python -m benchmarks.accuracy.plot_against_others --lines FILE.jsonl --output FILE.png
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "benchmarks" / "results"
# What a reader compares with; the linear model is the best of its rows as they are, divided by sums, or rooted.
_SECONDS = (0.03, 1000.0)  # of every panel, so that they compare
SHOWN = {
    "chimap": ("chimap", "o", "tab:red"),
    "linear-svm": ("linear SVM", "s", "tab:blue"),
    "lightgbm": ("LightGBM", "^", "tab:green"),
    "random-forest": ("random forest", "v", "tab:olive"),
    "exact-svm": ("exact SVM", "D", "tab:purple"),
}


def points(lines: list[dict]) -> dict[str, tuple[float, float]]:
    """Seconds and score of each shown method on one data set: means over seeds."""
    by_method = defaultdict(list)
    for line in lines:
        by_method[line["method"]].append((line["fit_seconds"], line["score"]))
    means = {method: tuple(np.mean(values, axis=0)) for method, values in by_method.items()}
    best = {}
    for method, (seconds, score) in means.items():
        family = "linear-svm" if method.startswith("linear-svm") else method
        if family in SHOWN and (family not in best or score > best[family][1]):
            best[family] = (max(seconds, 0.01), score)
    return best


def draw(lines: list[dict], output: Path) -> None:
    """A panel for each data set."""
    sets = list(dict.fromkeys(line["set"] for line in lines))
    columns = min(4, len(sets))
    n_rows = -(-len(sets) // columns)
    size = (3.1 * columns + 0.4, 2.5 * n_rows + 0.9)
    figure, axes = plt.subplots(n_rows, columns, figsize=size, layout="constrained", squeeze=False)
    for ax in axes.flat[len(sets) :]:
        ax.axis("off")
    for ax, name in zip(axes.flat, sets, strict=False):
        of = [line for line in lines if line["set"] == name]
        for method, (seconds, score) in points(of).items():
            label, marker, colour = SHOWN[method]
            ax.plot(seconds, score, marker, color=colour, label=label, markersize=8)
        ax.set(title=f"{name}, {of[0]['rows']} rows", xscale="log", xlim=_SECONDS, ylabel=of[0]["scoring"])
        ax.margins(0.15)
        ax.grid(alpha=0.3)
    for ax in axes[-1]:
        ax.set_xlabel("seconds of the fit")
    handles = {label: h for ax in axes.flat for h, label in zip(*ax.get_legend_handles_labels(), strict=True)}
    figure.legend(
        handles.values(), handles.keys(), loc="outside lower center", ncols=len(handles), frameon=False
    )
    figure.savefig(output, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--lines", type=Path, default=RESULTS / "against_others.jsonl")
    parser.add_argument("--output", type=Path, default=TOP / "docs" / "assets" / "accuracy.png")
    given = parser.parse_args()
    draw([json.loads(text) for text in given.lines.read_text(encoding="utf-8").splitlines()], given.output)


if __name__ == "__main__":
    main()
