"""Which features are worth their seconds? Score against seconds of the fit.

The benchmark compares landmarks chosen in three ways, random features, structured random features, the additive map,
and the exact machine, which keeps every row. It uses official splits, at most 10 000 training rows, gamma from the
mean distance, and alpha chosen by the fit. The kernel is exp-chi2 (chi2 for the additive map); counts are divided by
their sums. With --keep, lines go to benchmarks/results/features_by_time.jsonl, where they replace earlier lines of
the same sets, and the picture goes to docs/assets/features_by_time.png.

python -m benchmarks.accuracy.features_by_time --keep                     # about ten minutes on two cores
python -m benchmarks.accuracy.features_by_time --sets newsgroups --rows 3000
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import STYLE
from benchmarks.sets import SETS, LabelledSet
from chimap import AutomaticFeatures, HistogramClassifier, OptimalMap

TOP = Path(__file__).resolve().parents[2]
RESULTS = TOP / "benchmarks" / "results" / "features_by_time.jsonl"
PICTURE = TOP / "docs" / "assets" / "features_by_time.png"
WAYS: dict[str, list[dict[str, Any]]] = {
    **{
        f"landmarks, {how}": [
            {"features": AutomaticFeatures("landmarks", landmarks=how), "n_components": m} for m in (250, 1000, 4000)
        ]
        for how in ("kmeans", "uniform", "rpcholesky")
    },
    **{
        f"random, {sampling}": [
            {"features": AutomaticFeatures("fourier", sampling=sampling), "n_components": D} for D in (1024, 4096)
        ]
        for sampling in ("orthogonal", "structured")
    },
    "additive": [{"kernel": "chi2", "features": OptimalMap(n_terms=n)} for n in (1, 3)],
    "exact": [{"features": "exact"}],
}
MARKS = dict(zip(WAYS, "oovs^Dd", strict=False)) | {"landmarks, uniform": "v", "exact": "*"}


def line_of(data: LabelledSet, way: str, settings: dict[str, Any]) -> dict[str, Any]:
    """Run one fit and return its seconds and its score."""
    normalize = None if data.name in ("mnist", "fashion_mnist") else "l1"
    fixed = {"kernel": "exp-chi2", "normalize": normalize, "memory": "4GiB", "random_state": 0}
    model = HistogramClassifier(**fixed | settings)
    began = time.perf_counter()
    model.fit(data.X, data.y)
    seconds = time.perf_counter() - began
    score = float(np.mean(model.predict(data.X_test) == data.y_test))
    size = settings.get("n_components", settings.get("n_terms"))
    line = {"set": data.name, "rows": data.X.shape[0], "way": way, "size": size}
    return line | {"seconds": round(seconds, 3), "score": round(score, 4)}


def draw(lines: list[dict[str, Any]], output: Path) -> None:
    """Draw one panel per set: seconds on the x axis, score on the y axis, one line per kind of features."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    plt.style.use(STYLE)
    sets = list(dict.fromkeys(line["set"] for line in lines))
    figure, axes = plt.subplots(1, len(sets), figsize=(3.3 * len(sets), 3.4), layout="constrained", squeeze=False)
    for ax, name in zip(axes.flat, sets, strict=True):
        of = [line for line in lines if line["set"] == name]
        for i, way in enumerate(WAYS):
            points = sorted((line["seconds"], line["score"]) for line in of if line["way"] == way)
            if points:
                ax.plot(*zip(*points, strict=True), marker=MARKS[way], color=f"C{i}", label=way, markersize=5)
        ax.set(title=f"{name}, {of[0]['rows']:,} rows", xscale="log", xlabel="seconds of the fit")
        ax.grid(alpha=0.3)
    axes.flat[0].set_ylabel("accuracy on the official test part")
    figure.legend(*axes.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
    figure.savefig(output, dpi=130)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="mnist,fashion_mnist,cifar words,newsgroups")
    parser.add_argument("--rows", type=int, default=10_000)
    parser.add_argument("--keep", action="store_true")
    parser.add_argument("--output", type=Path, help="file of the picture; with --keep, the picture of the docs")
    options = parser.parse_args()
    lines = []
    for name in options.sets.split(","):
        data = SETS[name]().some(options.rows, 0)
        warm = data.some(400, 0)
        for way, sizes in WAYS.items():
            line_of(warm, way, sizes[0] | ({"n_components": 50} if "n_components" in sizes[0] else {}))
            for settings in sizes:
                lines.append(line_of(data, way, settings))
                print(json.dumps(lines[-1]), flush=True)
    if options.keep:
        ran = {line["set"] for line in lines}
        kept = map(json.loads, RESULTS.read_text(encoding="utf-8").splitlines() if RESULTS.exists() else [])
        lines = [line for line in kept if line["set"] not in ran] + lines
        RESULTS.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    output = options.output or (PICTURE if options.keep else None)
    if output is not None:
        draw(lines, output)


if __name__ == "__main__":
    main()
