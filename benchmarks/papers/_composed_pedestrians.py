"""Compose photographs in the layouts of INRIA person and DaimlerChrysler, for when no pedestrians are available.

Faces of Caltech-101, as tall and narrow as a pedestrian's window, stand in for people; photographs of its background
class stand in for the street. Faces are easier to find than people, so they are half transparent, and everything that
is written has noise. The results on these images say nothing about pedestrians. They show that the protocol runs from
files to figures, and how kernels compare.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from pathlib import Path

import cv2
import numpy as np

from chimap.images.reading import ImageSet

PERSON, SCENE = (128, 64), (360, 480)  # height and width
MARGINS = {"Train": ("96X160H96", 16), "Test": ("70X134H96", 3)}
SMALL = (36, 18)
OPACITY = (0.15, 0.5)  # range of the opacity of a person
NOISE = 12.0  # standard deviation, for values up to 255


def of_class(images: ImageSet, name: str) -> list[np.ndarray]:
    return [images.read(i) for i in np.flatnonzero(images.labels == name)]


def resized(image: np.ndarray, shape: tuple[int, int]) -> np.ndarray:
    return cv2.resize(image, shape[::-1], interpolation=cv2.INTER_AREA)


def write(path: Path, image: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    picture = image if image.ndim == 2 else image[:, :, ::-1]
    if not cv2.imwrite(str(path), picture):
        raise OSError(f"{path} could not be written")


def noisy(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return (image + rng.normal(0, NOISE, image.shape)).clip(0, 255).astype(np.uint8)


def pasted(canvas: np.ndarray, person: np.ndarray, top: int, left: int, rng: np.random.Generator) -> None:
    """Paste a person into a photograph, with the borders blended in."""
    height, width = person.shape[:2]
    blend = np.zeros((height, width), np.float32)
    margin = max(2, width // 10)
    blend[margin:-margin, margin:-margin] = rng.uniform(*OPACITY)
    blend = cv2.blur(blend, (margin, margin)).reshape(height, width, *(1,) * (person.ndim - 2))
    place = canvas[top : top + height, left : left + width]
    place[:] = (place + blend * (person.astype(np.float32) - place)).astype(np.uint8)


def inria(folder: Path, images: ImageSet, seed: int = 0) -> Path:
    """Write INRIAPerson: crops with their margins, scenes without people, scenes with two people each and their boxes."""
    rng, root = np.random.default_rng(seed), folder / "INRIAPerson"
    photographs = [p for p in of_class(images, "BACKGROUND_Google") if min(p.shape[:2]) >= 100]
    halves = zip(_halves(of_class(images, "Faces_easy")), _halves(photographs), strict=True)
    for part, (people, streets) in zip(("Train", "Test"), halves, strict=True):
        place, margin = MARGINS[part]
        for i, street in enumerate(streets):
            write(root / part / "neg" / f"{i:08}.png", noisy(resized(street, SCENE), rng))
        for i, face in enumerate(people):
            person = resized(face, PERSON)
            for k, image in enumerate((person, np.ascontiguousarray(person[:, ::-1]))):
                crop = resized(streets[i % len(streets)], (PERSON[0] + 2 * margin, PERSON[1] + 2 * margin))
                pasted(crop, image, margin, margin, rng)
                write(root / place / part / "pos" / f"crop{i:06}{'ab'[k]}.png", noisy(crop, rng))
        for i in range(len(streets)):
            scene, boxes = _scene(streets[i], people, rng)
            write(root / part / "pos" / f"crop_{i:06}.png", noisy(scene, rng))
            notes = root / part / "annotations" / f"crop_{i:06}.txt"
            notes.parent.mkdir(parents=True, exist_ok=True)
            notes.write_text(_annotation(boxes))
    return folder


def _halves(items: list[np.ndarray]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    return items[: len(items) // 2], items[len(items) // 2 :]


def _scene(street, people, rng) -> tuple[np.ndarray, list[tuple[int, int, int, int]]]:
    scene, boxes = resized(street, SCENE), []
    for half, k in enumerate(rng.choice(len(people), 2, replace=False)):
        scale = rng.uniform(1, 2.2)
        height, width = int(scale * PERSON[0]), int(scale * PERSON[1])
        top = int(rng.integers(0, SCENE[0] - height))
        left = int(rng.integers(0, SCENE[1] // 2 - width)) + half * SCENE[1] // 2
        pasted(scene, resized(people[k], (height, width)), top, left, rng)
        boxes.append((left, top, left + width - 1, top + height - 1))
    return scene, boxes


def _annotation(boxes: list[tuple[int, int, int, int]]) -> str:
    lines = ["# PASCAL Annotation Version 1.00", "# Top left pixel co-ordinates : (0, 0)"]
    for k, (left, top, right, bottom) in enumerate(boxes, start=1):
        lines.append(
            f'Bounding box for object {k} "PASperson" (Xmin, Ymin) - (Xmax, Ymax) : ({left}, {top}) - ({right}, {bottom})'
        )
    return "\n".join(lines)


def daimler(folder: Path, images: ImageSet, seed: int = 0) -> Path:
    """Write DC-ped-dataset_base: five parts of gray windows of 18 x 36.

    Each part holds jittered copies of its own people and streets.
    """
    rng, root = np.random.default_rng(seed), folder / "DC-ped-dataset_base"
    faces, streets = of_class(images, "Faces_easy"), of_class(images, "BACKGROUND_Google")
    for k, part in enumerate(("1", "2", "3", "T1", "T2")):
        people, places = _people(faces[k::5], rng), _places(streets[k::5], rng)
        for i in range(240):
            street = next(places)
            write(root / part / "non-ped_examples" / f"img_{i:05}.pgm", noisy(street, rng))
            pasted(street, next(people), 0, 0, rng)
            write(root / part / "ped_examples" / f"img_{i:05}.pgm", noisy(street, rng))
    return folder


def _people(pool: list[np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield gray windows without end, of people that are moved and scaled by up to a tenth."""
    for image in itertools.cycle(pool):
        gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        height, width = gray.shape
        cut = [int(side * rng.uniform(0, 0.1)) for side in (height, height, width, width)]
        window = resized(gray[cut[0] : height - cut[1], cut[2] : width - cut[3]], SMALL)
        yield np.ascontiguousarray(window[:, ::-1]) if rng.random() < 0.5 else window


def _places(pool: list[np.ndarray], rng: np.random.Generator) -> Iterator[np.ndarray]:
    """Yield gray windows without end, cut at random places."""
    for image in itertools.cycle(pool):
        gray = cv2.cvtColor(image, cv2.COLOR_RGB2GRAY)
        height, width = gray.shape
        h = int(rng.uniform(0.3, 1.0) * min(height, 2 * width))
        top, left = int(rng.integers(0, height - h + 1)), int(rng.integers(0, width - h // 2 + 1))
        yield resized(gray[top : top + h, left : left + h // 2], SMALL)
