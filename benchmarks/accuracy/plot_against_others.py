"""Draw the kept figures of against_others, docs/assets/accuracy.png, and write their table into the README.

python -m benchmarks.accuracy.plot_against_others                      # of benchmarks/results/against_others.jsonl
python -m benchmarks.accuracy.plot_against_others --lines FILE.jsonl --output FILE.png    # the picture alone
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
README = TOP / "README.md"
KEPT = TOP / "benchmarks" / "results" / "against_others.jsonl"
BEGIN, END = "<!-- scores -->", "<!-- end of scores -->"  # markers around the table of the README
NAMES = {
    "mnist": "MNIST, pixels",
    "fashion_mnist": "Fashion-MNIST, pixels",
    "cifar words": "CIFAR-10, visual words",
    "caltech words": "Caltech-101, visual words",
    "newsgroups": "20 newsgroups, words",
    "hmp": "body sites, microbes",
    "hiv": "HIV, molecules (ROC AUC)",
    "moses logP": "logP, molecules (R²)",
}
MEASURES = {"accuracy": "accuracy", "roc_auc": "ROC AUC", "r2": "R²"}
# The methods shown. The linear SVM is the best of three: raw rows, rows divided by their sums, and square roots.
_SECONDS = (0.03, 1000.0)  # range of seconds in every panel, so that panels can be compared
SHOWN = {
    "chimap": ("chimap", "o", "tab:red"),
    "linear-svm": ("linear SVM", "s", "tab:blue"),
    "lightgbm": ("LightGBM", "^", "tab:green"),
    "random-forest": ("random forest", "v", "tab:olive"),
    "exact-svm": ("exact SVM", "D", "tab:purple"),
}


def kept_lines(path: Path = KEPT) -> list[dict]:
    """Return the kept lines, one per fit."""
    return [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]


def points(lines: list[dict]) -> dict[str, tuple[float, float]]:
    """Return seconds and score of each shown method on one data set, as means over the seeds."""
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


def table(lines: list[dict]) -> str:
    """Return score and seconds of the shown methods by data set, in Markdown, with the best score in bold."""
    by_set = {name: points([line for line in lines if line["set"] == name]) for name in NAMES}
    shown = [method for method in SHOWN if any(method in of for of in by_set.values())]
    rows = [["data set", *(SHOWN[method][0] for method in shown)], ["---"] * (len(shown) + 1)]
    for name, of in by_set.items():
        scores = {method: f"{score:.3f}" for method, (_, score) in of.items()}
        best = max(scores.values()) if len(scores) > 1 else None
        cells = []
        for method in shown:
            if method not in of:
                cells.append("-")
                continue
            seconds = of[method][0]
            score = f"**{scores[method]}**" if scores[method] == best else scores[method]
            cells.append(f"{score}, {seconds:.{0 if seconds >= 1 else 1}f} s")
        rows.append([NAMES[name], *cells])
    return "".join(f"| {' | '.join(row)} |\n" for row in rows)


def with_table(readme: str, lines: list[dict]) -> str:
    """Return the README with the table of these lines."""
    before, _, rest = readme.partition(BEGIN)
    _, end, after = rest.partition(END)
    assert end, f"README.md has no table between {BEGIN} and {END}"
    return f"{before}{BEGIN}\n{table(lines)}{END}{after}"


def draw(lines: list[dict], output: Path) -> None:
    """Draw one panel per data set."""
    sets = [name for name in NAMES if any(line["set"] == name for line in lines)]
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
        ax.set(
            title=f"{NAMES[name].partition(',')[0]}, {of[0]['rows']} rows",
            xscale="log",
            xlim=_SECONDS,
            ylabel=MEASURES[of[0]["scoring"]],
        )
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
    parser.add_argument("--lines", type=Path, default=KEPT)
    parser.add_argument("--output", type=Path, default=TOP / "docs" / "assets" / "accuracy.png")
    options = parser.parse_args()
    lines = kept_lines(options.lines)
    draw(lines, options.output)
    if options.lines == KEPT:
        README.write_text(with_table(README.read_text(encoding="utf-8"), lines), encoding="utf-8")


if __name__ == "__main__":
    main()
