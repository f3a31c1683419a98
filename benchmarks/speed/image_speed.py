"""How many images per second become histograms, and how close is that to the matrix products in it?

Dense SIFT at four scales, hard words, three levels, Caltech-101 images scaled to 300 x 300 pixels, on all cores.
Decoding is not counted first, then counted, from the archive at the images' own size. The bound is the product of all
descriptors with all words, and nothing else, on as many threads. The competitor is OpenCV's SIFT at the same points,
on some of the images.
"""

from __future__ import annotations

import sys

import cv2
import numpy as np

from benchmarks.measure import data_file, ratio, report, seconds
from chimap import _threads
from chimap.images import SIFT, ImageHistograms
from chimap.images.reading import open_images

N_IMAGES = 64


def main() -> None:
    images = open_images(data_file("caltech101_45.tar"))
    chosen = np.linspace(0, len(images) - 1, N_IMAGES).astype(int)
    square = [cv2.resize(images.read(i), (300, 300), interpolation=cv2.INTER_AREA) for i in chosen]
    cores = _threads.available()
    for step, n_words, coding in ((3, 600, "hard"), (4, 600, "hard"), (4, 1000, "hard"), (4, 600, "soft")):
        histograms = ImageHistograms(SIFT(step=step), n_words=n_words, coding=coding, random_state=0).fit(square)
        ours = seconds(lambda made=histograms: made.transform(square), repeats=3)
        what = f"300 x 300, step {step}, {n_words} {coding} words, images/s on {cores} cores"
        report(what, f"{N_IMAGES / np.median(ours):.1f}", ">= 12")
        if coding == "hard":
            points = SIFT(step=step).points(square[0]).vectors.repeat(cores, axis=0)
            centres = histograms.vocabularies_[0].centres
            bound = seconds(lambda V=points, C=centres: V @ C.T, repeats=3) * N_IMAGES / cores
            report("   seconds over those of the products with the words alone", ratio(ours, bound), "<= 3")
    from_archive = seconds(lambda: histograms.transform(images.take(chosen)), repeats=3)
    report("from the archive, at the images' own size, images/s", f"{N_IMAGES / np.median(from_archive):.1f}", "")
    peer(square[:2])


def peer(square: list[np.ndarray]) -> None:
    """Time descriptors alone, on one thread each."""
    sift = SIFT(step=4)
    cv2.setNumThreads(1)
    opencv = cv2.SIFT_create()

    def theirs() -> None:
        for image in square:
            points = sift.points(image)
            size = np.repeat(sift.sizes, [x.size * y.size for x, y in (sift.grid(image.shape, s) for s in sift.sizes)])
            keypoints = [
                cv2.KeyPoint(float(x), float(y), s / 1.5, 0.0) for x, y, s in zip(points.x, points.y, size, strict=True)
            ]
            opencv.compute(cv2.cvtColor(image, cv2.COLOR_RGB2GRAY), keypoints)

    ours = seconds(lambda: [sift.points(image) for image in square], repeats=3)
    report(
        "OpenCV's SIFT at these points, seconds over ours, one thread", ratio(seconds(theirs, repeats=1), ours), ">= 5"
    )


if __name__ == "__main__":
    sys.exit(main())
