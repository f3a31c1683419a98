"""How many objects are missed, per window and per image? Gradients in blocks, before and after mining.

Faces of Caltech-101 are pasted at several sizes into photographs without faces, as in ``benchmarks.speed.detector``,
because no set of pedestrians is shared. The training photographs and faces differ from those of the scenes. A window
counts as a mistake if it scores above the threshold in a photograph without faces. A detection in a scene counts as a
face if it shares half of the union with one.
"""

from __future__ import annotations

import numpy as np

from benchmarks.measure import data_file, report
from benchmarks.speed.detector import SCENE, of_class, resized, scene
from chimap import HistogramClassifier, OptimalMap
from chimap.images import HOGBlocks, ImageHistograms
from chimap.images.reading import open_images
from chimap.papers.detection import MissRates, WindowDetector, mined_detector, scene_miss_rates, window_miss_rates

WINDOW = (72, 64)
N_TRAIN, N_SCENES = 20, 24


def windows_of(photographs: list[np.ndarray], n: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Return n random windows of each photograph."""
    found = []
    for photograph in photographs:
        image = resized(photograph, SCENE)
        for _ in range(n):
            top, left = (int(rng.integers(side - own + 1)) for side, own in zip(SCENE, WINDOW, strict=True))
            found.append(image[top : top + WINDOW[0], left : left + WINDOW[1]])
    return found


def rates(detector: WindowDetector, faces, photographs, scenes) -> tuple[MissRates, MissRates]:
    """Return miss rates per window, at the size of the window itself, and per image."""
    streets = [resized(image, SCENE) for image in photographs]
    return window_miss_rates(detector, faces, streets, largest=1), scene_miss_rates(detector, scenes, -1.0)


def main() -> None:
    rng = np.random.default_rng(0)
    images = open_images(data_file("caltech101_45.tar"))
    faces, photographs = of_class(images, "Faces_easy"), of_class(images, "BACKGROUND_Google")
    photographs = [photograph for photograph in photographs if min(photograph.shape[:2]) >= 100]
    known, unknown = photographs[:N_TRAIN], photographs[N_TRAIN:]
    objects = [resized(face, WINDOW) for face in faces[:N_TRAIN]]
    objects += [np.ascontiguousarray(face[:, ::-1]) for face in objects]
    others = windows_of(known, 15, rng)
    tests = [resized(face, WINDOW) for face in faces[N_TRAIN:]]
    scenes = [
        scene(unknown[k % len(unknown)], [faces[i] for i in rng.choice(range(N_TRAIN, len(faces)), 2, False)], rng)
        for k in range(N_SCENES)
    ]
    histograms = ImageHistograms(HOGBlocks(WINDOW), grids=((1, 1),)).fit(objects[:1])
    model = HistogramClassifier("chi2", features=OptimalMap(n_terms=1), alpha=0.01, loss="hinge", random_state=0)
    once = model.fit(histograms.transform(objects + others), np.arange(len(objects) + len(others)) < len(objects))
    learned = {
        "drawn windows": (WindowDetector(once, histograms, WINDOW, target=True), once),
        "with two rounds of mining": mined_detector(
            model, histograms, objects, others, [resized(image, SCENE) for image in known], threshold=-0.5
        ),
    }
    for name, (detector, _) in learned.items():
        per_window, per_image = rates(detector, tests, unknown, scenes)
        report(
            f"{name}: missed at 1e-4 and 1e-3 per window", f"{per_window.at(1e-4):.3f}, {per_window.at(1e-3):.3f}", ""
        )
        report(f"{name}: missed at 0.1 and 1 per image", f"{per_image.at(0.1):.3f}, {per_image.at(1.0):.3f}", "")
        report(f"{name}: log-average miss rate per image", f"{per_image.log_average:.3f}", "")


if __name__ == "__main__":
    main()
