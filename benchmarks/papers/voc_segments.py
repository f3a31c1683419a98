"""Label figures by class, as the challenge of PASCAL VOC measures it: from masks to the table.

Each training image has true figures and proposed figures (regions of even colour and pairs of neighbours). A proposed
figure has the class of the object that it shares half with, or none. A figure and its background have histograms of
their own, of several descriptors. A model tells the classes apart, and what it takes for a class in new images is
painted, the best on top. The measure is the intersection over union of each class, over all pixels; the mean is the
challenge's score.

``--voc PATH`` names VOCdevkit. Without it, a folder in its layout is composed: clothes of Fashion-MNIST, tinted at
random, on photographs of Caltech-101, where ten classes take the place of VOC's first ten. ``limit of the proposals``
paints each figure with its true label.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np

from benchmarks.measure import data_file, report
from benchmarks.papers._composed_pedestrians import of_class, resized, write
from benchmarks.papers._segments import (
    labelled_figures,
    object_segments,
    painted_segments,
    proposed_figures,
    segment_histograms,
    segmentation_metrics,
    shared,
)
from benchmarks.papers.sets.pascal_voc import CLASSES, voc_segmentation
from chimap import HistogramClassifier, OptimalMap, open_images
from chimap.images import PHOG, SIFT, ColourHistogram, ImageHistograms

SCALES = (200.0, 600.0)
SHAPE, FIGURE = (120, 160), 64
MACHINES = {
    "linear": {"kernel": "linear"},
    "chi2, blocks": {"kernel": "chi2", "features": OptimalMap(n_terms=2)},
    "exp-chi2, landmarks, blocks": {"kernel": "exp-chi2", "features": "landmarks", "n_components": 400},
}


def compose(folder: Path, n_train: int, n_val: int) -> Path:
    rng, root = np.random.default_rng(0), folder / "VOCdevkit/VOC2007"
    streets = of_class(open_images(data_file("caltech101_45.tar")), "BACKGROUND_Google")
    with np.load(data_file("fashion_mnist.npz")) as z:
        pictures, y = z["x_train"][: 10 * (n_train + n_val)], z["y_train"]
    names = [f"{i:06}" for i in range(n_train + n_val)]
    for i, name in enumerate(names):
        image = resized(streets[i % len(streets)], SHAPE)
        classes, objects = np.zeros(SHAPE, np.uint8), np.zeros(SHAPE, np.uint8)
        for k in range(2):
            number = int(rng.integers(5 * i, 5 * i + 5)) + (5 * len(names) if k else 0)
            gray = cv2.resize(pictures[number], (FIGURE, FIGURE), interpolation=cv2.INTER_CUBIC)
            figure = cv2.resize(pictures[number], (FIGURE, FIGURE), interpolation=cv2.INTER_LINEAR) > 20
            top, left = int(rng.integers(0, SHAPE[0] - FIGURE)), int(rng.integers(0, 12)) + 80 * k
            place = np.s_[top : top + FIGURE, left : left + FIGURE]
            tint = rng.uniform(0.5, 1.0, 3)
            image[place][figure] = (gray[figure][:, None] * tint).astype(np.uint8)
            classes[place][figure], objects[place][figure] = int(y[number]) + 1, k + 1
        write(root / f"JPEGImages/{name}.jpg", image)
        for kind, mask in (("Class", classes), ("Object", objects)):
            edge = cv2.dilate(objects, np.ones((3, 3))) != cv2.erode(objects, np.ones((3, 3)))
            write(root / f"Segmentation{kind}/{name}.png", np.where(edge, 255, mask).astype(np.uint8))
    lists = root / "ImageSets/Segmentation"
    lists.mkdir(parents=True)
    for split, own in (("train", names[:n_train]), ("val", names[n_train:])):
        (lists / f"{split}.txt").write_text("".join(f"{name}\n" for name in own))
    return folder


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--voc", type=Path, metavar="PATH")
    parser.add_argument("--year", type=int, default=2007)
    parser.add_argument("--images", type=int, nargs=2, default=(90, 45), metavar=("TRAIN", "VAL"))
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = options.voc or compose(Path(folder), *options.images)
        run(path, options.year)


def run(path: Path, year: int) -> None:
    classes, objects = (voc_segmentation(path, year, masks=kind) for kind in ("class", "object"))
    train, val = (np.flatnonzero(classes.splits == split) for split in ("train", "val"))
    histograms = ImageHistograms(
        {"sift": SIFT(step=3, sizes=(3, 5)), "phog": PHOG(high=0), "colour": ColourHistogram("lab", (4, 4, 4))},
        n_words=200,
        n_regions=2,
        grids=((1, 1), (2, 2)),
        random_state=0,
    ).fit([classes.read(i) for i in train])
    began = time.perf_counter()
    rows, labels = [], []
    for i in train:
        image, truth = classes.read(i), object_segments(classes.mask(i), objects.mask(i))
        segments = truth + labelled_figures(proposed_figures(image, SCALES), truth)
        rows.append(segment_histograms(histograms, image, [s.figure for s in segments]))
        labels += [s.label for s in segments]
    X, y = np.concatenate(rows), np.array(labels)
    new = []
    for i in val:
        image, truth = classes.read(i), object_segments(classes.mask(i), objects.mask(i))
        figures = proposed_figures(image, SCALES)
        new.append((classes.mask(i), truth, figures, segment_histograms(histograms, image, figures)))
    n_figures = sum(len(figures) for _, _, figures, _ in new)
    print(
        f"{len(train)} images, {len(y)} figures ({(y > 0).mean():.0%} of a class) to train on; {len(val)} images, "
        f"{n_figures} figures to test on; {X.shape[1]} bins; {time.perf_counter() - began:.0f} s"
    )
    names = ["background", *CLASSES]
    limit = [(mask, _best_possible(mask.shape, truth, figures)) for mask, truth, figures, _ in new]
    _report("limit of the proposals", limit, names)
    for name, settings in MACHINES.items():
        blocks = {} if name == "linear" else {"blocks": histograms.blocks_}
        began = time.perf_counter()
        model = HistogramClassifier(**settings, **blocks, random_state=0, memory="4GiB").fit(X, y)
        fitted = time.perf_counter() - began
        pairs = []
        for mask, _, figures, own in new:
            scores = model.decision_function(own)
            found = model.classes_[scores.argmax(axis=1)]
            pairs.append((mask, painted_segments(mask.shape, figures, found.tolist(), scores.max(axis=1))))
        _report(f"{name}, {fitted:.0f} s", pairs, names)


def _best_possible(shape, truth, figures) -> np.ndarray:
    labels = [s.label for s in labelled_figures(figures, truth)]
    return painted_segments(
        shape, figures, labels, [max((shared(f, s.figure) for s in truth), default=0.0) for f in figures]
    )


def _report(name: str, pairs, names: list[str]) -> None:
    metrics = segmentation_metrics(pairs, names)
    report(f"{name}: mean intersection over union", f"{metrics.mean_intersection_over_union:.3f}", "")
    each = zip(names, metrics.intersection_over_union, strict=True)
    print("  " + ", ".join(f"{one} {value:.2f}" for one, value in each if np.isfinite(value)))


if __name__ == "__main__":
    main()
