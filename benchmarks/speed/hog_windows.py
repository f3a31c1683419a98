"""What does it cost to scan a photograph by gradients in blocks, compared with OpenCV's sliding window?

The windows are those of pedestrians: 64 x 128 pixels in steps of 8, cells of 8, blocks of 2 x 2, nine orientations,
at sizes 1.2 apart. OpenCV has a linear machine on L2-Hys blocks with a Gaussian in each. Here the kernels are
additive, and the scores equal those of windows that are cut out. OpenCV 5 has moved its detector out of the main
package, so run this with version 4. Both sides scan the same photographs in turn and find nothing, so that only
scanning counts.
"""

from __future__ import annotations

import sys
import time

import cv2
import numpy as np

from benchmarks.measure import data_file, report
from benchmarks.speed.detector import of_class, resized
from chimap import HistogramClassifier
from chimap.images import PHOG, HOGBlocks, ImageHistograms
from chimap.images.reading import open_images
from chimap.papers.detection import WindowDetector

WINDOW, SCENE = (128, 64), (480, 640)
REPEATS = 4
NOTHING = 1e9  # a threshold that no window passes


def detector_of(
    descriptor, photographs: list[np.ndarray], grids, **settings
) -> tuple[WindowDetector, HistogramClassifier]:
    """Return a detector that tells upper halves of photographs from lower ones; its answers do not matter here."""
    halves = [
        resized(image[part], WINDOW)
        for image in photographs
        for half in [image.shape[0] // 2]
        for part in (slice(None, half), slice(half, None))
    ]
    histograms = ImageHistograms(descriptor, grids=grids).fit(halves[:1])
    model = HistogramClassifier(alpha=0.01, loss="hinge", random_state=0, **settings)
    model.fit(histograms.transform(halves), np.tile([False, True], len(photographs)))
    return WindowDetector(model, histograms, WINDOW, step=8), model


def main() -> None:
    if not hasattr(cv2, "HOGDescriptor"):
        sys.exit(f"skipped: OpenCV {cv2.__version__} has no HOGDescriptor; with opencv-python-headless<5 there is one.")
    images = open_images(data_file("caltech101_45.tar"))
    photographs = of_class(images, "BACKGROUND_Google")[:30]
    scenes = [resized(photograph, SCENE) for photograph in photographs[:2]]
    peer = cv2.HOGDescriptor()
    peer.setSVMDetector(cv2.HOGDescriptor_getDefaultPeopleDetector())
    blocks, edges = HOGBlocks(WINDOW), PHOG(low=150, high=150, border=2)
    detectors = {
        "blocks, hellinger": detector_of(blocks, photographs, ((1, 1),), kernel="hellinger"),
        "blocks, chi2, 3 terms": detector_of(blocks, photographs, ((1, 1),), kernel="chi2", n_terms=3),
        "edges in 85 cells, chi2": detector_of(
            edges, photographs, ((1, 1), (2, 2), (4, 4), (8, 8)), kernel="chi2", n_terms=1
        ),
    }
    scans = {
        name: lambda scene, detector=detector: detector.detect(scene, NOTHING)
        for name, (detector, _) in detectors.items()
    }
    scans["OpenCV"] = lambda scene: peer.detectMultiScale(
        scene, hitThreshold=NOTHING, winStride=(8, 8), padding=(0, 0), scale=1.2
    )
    best = dict.fromkeys(scans, np.inf)
    for repeat in range(REPEATS + 1):
        for name, scan in scans.items():
            began = time.perf_counter()
            for scene in scenes:
                scan(scene)
            if repeat:
                best[name] = min(best[name], (time.perf_counter() - began) / len(scenes))
    report("OpenCV, ms a photograph of 640 x 480", f"{1e3 * best['OpenCV']:.1f}", "")
    for name in detectors:
        report(f"{name}: times OpenCV's", f"{best[name] / best['OpenCV']:.2f}", "")
    cut_outs(detectors, scenes[0])


def cut_outs(detectors: dict[str, tuple[WindowDetector, HistogramClassifier]], scene: np.ndarray) -> None:
    """Return the same scores window by window, for the first two rows of windows."""
    for name, (detector, model) in detectors.items():
        scores = detector.scores(scene)
        began = time.perf_counter()
        detector.scores(scene)
        scan = time.perf_counter() - began
        cuts = [
            scene[top : top + WINDOW[0], left : left + WINDOW[1]]
            for top in (0, detector.step)
            for left in range(0, SCENE[1] - WINDOW[1] + 1, detector.step)
        ]
        began = time.perf_counter()
        others = model.decision_function(detector.histograms.transform(cuts))
        alone = time.perf_counter() - began
        gain = (alone / len(cuts)) / (scan / scores.size)
        report(f"{name}: windows cut out, time over that of the scan", f"{gain:.0f}", "")
        report(
            f"{name}: largest difference of the scores", f"{np.abs(scores[:2].ravel() - others).max():.1e}", "<= 1e-4"
        )


if __name__ == "__main__":
    main()
