"""Test pedestrian detectors as the papers do: how many people are missed, per window and per image, by kernel?

INRIA person (Dalal and Triggs 2005): blocks of gradients. The training rows are windows of people against ten windows
of each street and, in a second round, what the first round takes for people. Per window: crops of people against
every window of every size of the test streets. Per image: all test scenes; a detection is right if it shares half of
the union with a person.

DaimlerChrysler (Munder and Gavrila 2006): windows of 18 x 36, trained on two of three parts and tested on each of
two. The result is the mean of six. The kernel "hellinger" is the linear machine on the roots of the blocks (L1-sqrt
of the first paper).

``--inria PATH`` and ``--daimler PATH`` name the data sets as they are distributed. Without them, both are composed
from shared photographs (see ``_composed_pedestrians.py``) in a folder that is deleted afterwards. This tests the
protocol, and compares kernels with each other.
"""

from __future__ import annotations

import argparse
import itertools
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.measure import data_file, report
from benchmarks.papers import _composed_pedestrians as composed
from benchmarks.papers.sets import daimler_pedestrians, inria_people, inria_person, inria_scenes
from chimap import HistogramClassifier, OptimalMap, open_images
from chimap.images import HOGBlocks, ImageHistograms
from chimap.papers.detection import MissRates, mined_detector, scene_miss_rates, window_miss_rates

KERNELS = {
    "hellinger": {"features": OptimalMap(n_terms=1)},
    "intersection": {"features": OptimalMap(n_terms=3)},
    "chi2": {"features": OptimalMap(n_terms=3)},
}
INRIA_WINDOW, DAIMLER_WINDOW = (128, 64), (36, 18)
RATES = (0.05, 0.1)


def machine(kernel: str, settings: dict, alpha: float) -> HistogramClassifier:
    return HistogramClassifier(
        kernel, alpha=alpha, loss="hinge", normalize=None, random_state=0, memory="4GiB", **settings
    )


def read(images) -> list[np.ndarray]:
    return [images.read(i) for i in range(len(images))]


def inria(path: Path, kernels: list[str], rounds: int) -> None:
    windows, scenes = inria_person(path), inria_scenes(path)
    train, test = windows.part("train"), windows.part("test")
    objects = read(train.take(np.flatnonzero(train.labels == "person")))
    others = read(train.take(np.flatnonzero(train.labels != "person")))
    tests = read(test.take(np.flatnonzero(test.labels == "person")))
    streets = {
        part: read(scenes.part(part).take(np.flatnonzero(scenes.part(part).labels == "background")))
        for part in ("train", "test")
    }
    seen = scenes.part("test")
    known = [(seen.read(i), inria_people(seen, i)) for i in np.flatnonzero(seen.labels == "person")]
    histograms = ImageHistograms(HOGBlocks(INRIA_WINDOW), grids=((1, 1),)).fit(objects[:1])
    print(
        f"INRIA's layout: {len(objects)} people and {len(others)} windows to train on, {len(tests)} people, "
        f"{len(streets['test'])} streets and {len(known)} scenes to test on"
    )
    for kernel in kernels:
        began = time.perf_counter()
        detector, _ = mined_detector(
            machine(kernel, KERNELS[kernel], 0.01),
            histograms,
            objects,
            others,
            streets["train"],
            rounds=rounds,
            threshold=-0.5,
        )
        trained = time.perf_counter() - began
        per_window = window_miss_rates(detector, tests, streets["test"])
        per_image = scene_miss_rates(detector, known, threshold=-1.0)
        report(
            f"INRIA, {kernel}: missed at 1e-4, 1e-3 per window",
            f"{per_window.at(1e-4):.3f}, {per_window.at(1e-3):.3f}",
            "",
        )
        report(
            f"INRIA, {kernel}: missed at 0.1, 1 per image; log-average; training, s",
            f"{per_image.at(0.1):.3f}, {per_image.at(1.0):.3f}; {per_image.log_average:.3f}; {trained:.0f}",
            "",
        )


def daimler(path: Path, kernels: list[str]) -> None:
    images = daimler_pedestrians(path)
    histograms = ImageHistograms(HOGBlocks(DAIMLER_WINDOW, cells=(6, 3)), grids=((1, 1),))
    X = histograms.fit([images.read(0)]).transform(images)
    y = images.labels == "pedestrian"
    parts = np.unique(images.splits)
    print(f"DaimlerChrysler's layout: {len(y)} windows in the parts {', '.join(parts)}")
    for kernel in kernels:
        found = []
        for two in itertools.combinations(("1", "2", "3"), 2):
            rows = np.isin(images.splits, two)
            model = machine(kernel, KERNELS[kernel], 0.01).fit(X[rows], y[rows])
            for part in ("T1", "T2"):
                new = images.splits == part
                scores = model.decision_function(X[new])
                curve = MissRates.of(scores, y[new], int(y[new].sum()), int((~y[new]).sum()))
                found.append([*(curve.at(rate) for rate in RATES), ((scores > 0) != y[new]).mean()])
        mean, spread = np.mean(found, axis=0), np.std(found, axis=0, ddof=1)
        report(
            f"Daimler, {kernel}: missed at {RATES[0]}, {RATES[1]} per window; errors, mean of six",
            ", ".join(f"{m:.3f} +- {s:.3f}" for m, s in zip(mean, spread, strict=True)),
            "",
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--inria", type=Path, metavar="PATH")
    parser.add_argument("--daimler", type=Path, metavar="PATH")
    parser.add_argument("--kernels", nargs="+", choices=list(KERNELS), default=list(KERNELS))
    parser.add_argument("--rounds", type=int, default=1, help="rounds of mining; the paper has one")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        if options.inria is None and options.daimler is None:
            images = open_images(data_file("caltech101_45.tar"))
            options.inria = composed.inria(Path(folder), images)
            options.daimler = composed.daimler(Path(folder), images)
        if options.inria is not None:
            inria(options.inria, options.kernels, options.rounds)
        if options.daimler is not None:
            daimler(options.daimler, options.kernels)


if __name__ == "__main__":
    main()
