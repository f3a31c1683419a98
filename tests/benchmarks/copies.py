"""Tiny copies of the data sets, laid out as they come."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from benchmarks.papers.sets.class_folders import SCENES, SPORTS
from benchmarks.papers.sets.pascal_voc import CLASSES
from PIL import Image
from scipy.io import savemat

from ..images.reading.pictures import encoded, pixels, write_tree

SYNSETS = ["n01440764", "n02119789", "n07565083"]


def photo(width: int, height: int, seed: int = 0, format: str = "JPEG") -> bytes:
    return encoded(pixels(height, width, seed), format)


def caltech101(folder: Path) -> Path:
    classes = ("BACKGROUND_Google", "Faces", "accordion", "yin_yang")
    paths = [f"101_ObjectCategories/{name}/image_{i:04}.jpg" for name in classes for i in range(1, 4)]
    files = {path: photo(30, 20, i) for i, path in enumerate(paths)}
    return write_tree(folder, files | {"101_ObjectCategories/BACKGROUND_Google/tmp": b"leftover"})


def scenes(folder: Path, numbered: bool = False) -> Path:
    if numbered:
        return write_tree(folder, {f"15-Scene/{i:02}/{j}.jpg": photo(30, 20) for i in range(15) for j in (1, 10)})
    return write_tree(folder, {f"scene_categories/{n}/image_{j:04}.jpg": photo(30, 20) for n in SCENES for j in (1, 2)})


def sports(folder: Path) -> Path:
    files = {f"event_dataset/{n}/{n}_{j}.jpg": photo(30, 20) for n in SPORTS for j in (1, 2)}
    return write_tree(folder, files | {"event_dataset/readme.txt": b"eight events"})


def daimler(folder: Path) -> Path:
    files = {
        f"DC-ped-dataset_base/{part}/{kind}/img_{i:05}.pgm": encoded(pixels(36, 18, i)[:, :, 0], "PPM")
        for part in ("1", "2", "3", "T1", "T2")
        for kind, n in (("ped_examples", 2), ("non-ped_examples", 3))
        for i in range(n)
    }
    return write_tree(folder, files)


def annotated_people(*boxes: tuple[int, int, int, int], corner: int = 0) -> bytes:
    """The annotation of a scene: people's boxes, the last pixels included, and what the first pixel is called."""
    kinds = " ".join(['"PASperson"'] * len(boxes))
    lines = [
        "# PASCAL Annotation Version 1.00",
        'Database : "The INRIA Rh\u00f4ne-Alpes Annotated Person Database"',
        f"Objects with ground truth : {len(boxes)} {{ {kinds} }}",
        f"# Top left pixel co-ordinates : ({corner}, {corner})",
    ]
    for k, (left, top, right, bottom) in enumerate(boxes, start=1):
        lines += [
            f'# Details for object {k} ("PASperson")',
            f'Center point on object {k} "PASperson" (X, Y) : ({left + 9}, {top + 9})',
            f'Bounding box for object {k} "PASperson" (Xmin, Ymin) - (Xmax, Ymax) : '
            f"({left}, {top}) - ({right}, {bottom})",
        ]
    return "\r\n".join(lines).encode("latin-1")


def inria(folder: Path, links: bool = True) -> Path:
    """Crops with their margin and scenes of different sizes; one is too small for a window."""
    root = "INRIAPerson/"
    files = {
        f"{root}Train/neg/00000002a.jpg": photo(200, 150, 1),
        f"{root}Train/neg/00000003a.png": photo(64, 128, 2, "PNG"),
        f"{root}Train/neg/small.jpg": photo(100, 100, 2),
        f"{root}Test/neg/00001147.png": photo(90, 140, 3, "PNG"),
        f"{root}Train/pos/crop_000010.png": photo(200, 200, 4, "PNG"),
        f"{root}Train/annotations/crop_000010.txt": annotated_people((261, 109, 511, 705), (3, 4, 60, 99)),
        f"{root}Test/pos/crop_000001.jpg": photo(120, 150, 7),
        f"{root}Test/annotations/crop_000001.txt": annotated_people((1, 1, 40, 80), corner=1),
    }
    people = {
        f"{root}96X160H96/Train/pos/crop001001a.png": photo(96, 160, 5, "PNG"),
        f"{root}70X134H96/Test/pos/crop_000001a.png": photo(70, 134, 6, "PNG"),
    }
    if not links:  # unpacked where there are no links: the crops lie in the folders of the windows
        places = {"96X160H96/Train": "train_64x128_H96", "70X134H96/Test": "test_64x128_H96"}
        people = {p.replace(a, b): c for a, b in places.items() for p, c in people.items() if a in p}
    write_tree(folder, files | people)
    if links:
        (folder / root / "train_64x128_H96").mkdir()
        (folder / root / "train_64x128_H96/pos").symlink_to("../96X160H96/Train/pos")
    return folder


def annotation(*objects: tuple[str, tuple[int, int, int, int], int]) -> bytes:
    """The XML of an image: objects with name, box as the file counts it, and whether difficult."""
    parts = [
        f"<object><name>{name}</name><pose>Left</pose><difficult>{difficult}</difficult><bndbox><xmin>{a}</xmin>"
        f"<ymin>{b}</ymin><xmax>{c}</xmax><ymax>{d}</ymax></bndbox></object>"
        for name, (a, b, c, d), difficult in objects
    ]
    return f"<annotation><folder>VOC2007</folder>{''.join(parts)}</annotation>".encode()


# image: what is there, and whether all of it is difficult
VOC = {
    "000005": ("train", {"chair": 0}),
    "000007": ("train", {"car": 0, "person": 1}),
    "000009": ("val", {"horse": 0, "person": 0}),
    "000001": ("test", {"dog": 0}),
    "000002": ("test", {"train": 1}),
}


def voc(folder: Path, lists: bool = True) -> Path:
    root = "VOCdevkit/VOC2007/"
    files = {}
    for i, (name, (_, classes)) in enumerate(VOC.items()):
        files[f"{root}JPEGImages/{name}.jpg"] = photo(50, 40, i)
        files[f"{root}Annotations/{name}.xml"] = annotation(
            *((c, (3, 5, 20, 30), hard) for c, hard in classes.items()),
            *(("head", (1, 1, 2, 2), 0) for _ in range(i == 1)),  # a part of a person, which is no class
        )
    for split in ("train", "val", "test"):
        ids = [name for name, (part, _) in VOC.items() if part == split]
        files[f"{root}ImageSets/Main/{split}.txt"] = "".join(f"{i}\n" for i in ids).encode()
        for c in CLASSES if lists else ():
            signs = [{None: -1, 0: 1, 1: 0}[VOC[i][1].get(c)] for i in ids]
            text = "".join(f"{i} {sign:2}\n" for i, sign in zip(ids, signs, strict=True))
            files[f"{root}ImageSets/Main/{c}_{split}.txt"] = text.encode()
    files[f"{root}ImageSets/Segmentation/train.txt"] = b"000007\n"
    files[f"{root}ImageSets/Segmentation/val.txt"] = b"000009\n"
    for k, name in enumerate(("000007", "000009")):
        files[f"{root}SegmentationClass/{name}.png"] = mask(7 + 8 * k)
        files[f"{root}SegmentationObject/{name}.png"] = mask(1)
    return write_tree(folder, files)


def mask(inside: int) -> bytes:
    """Background, a region of this index, and a border that does not count, with a palette."""
    indices = np.zeros((40, 50), np.uint8)
    indices[10:30, 10:30] = 255
    indices[12:28, 12:28] = inside
    picture = Image.fromarray(indices)
    picture.putpalette(np.random.default_rng(0).integers(0, 256, 768).tolist())
    return encoded(picture)


def imagenet(folder: Path, truth: str = "csv") -> Path:
    """Three synsets; the validation images in one folder, with labels by table, by development kit, or not at all."""
    root = "ILSVRC/Data/CLS-LOC/"
    files = {f"{root}train/{s}/{s}_{i}.JPEG": photo(30, 20, i) for s in SYNSETS for i in (1, 20)}
    labels = [2, 0, 1, 0]
    files |= {f"{root}val/ILSVRC2012_val_{i:08}.JPEG": photo(30, 20, i) for i in range(1, 5)}
    if truth == "csv":
        rows = [f"ILSVRC2012_val_{i:08},{SYNSETS[k]} 1 2 30 20 " for i, k in reversed(list(enumerate(labels, 1)))]
        files["LOC_val_solution.csv"] = "\n".join(["ImageId,PredictionString", *rows]).encode()
        words = ["tench, Tinca tinca", "kit fox", "menu"]
        files["LOC_synset_mapping.txt"] = "\n".join(map(" ".join, zip(SYNSETS, words, strict=True))).encode()
    write_tree(folder, files)
    if truth == "devkit":
        development_kit(folder, "ILSVRC2012", {"validation": labels})
    return folder


def development_kit(folder: Path, name: str, labels: dict[str, list[int]]) -> None:
    """``meta.mat``, whose synsets are not in the order of their WordNet ids, and the lists of numbers."""
    data = folder / f"{name}_devkit" / "data"
    data.mkdir(parents=True)
    kind = [(f"{name}_ID", "O"), ("WNID", "O"), ("words", "O"), ("num_train_images", "O")]
    order = [2, 0, 1]
    rows = [(number, SYNSETS[k], f"words of {k}", 2) for number, k in enumerate(order, 1)]
    savemat(data / "meta.mat", {"synsets": np.array(rows, dtype=kind).reshape(-1, 1)})
    for part, classes in labels.items():
        text = "".join(f"{order.index(k) + 1}\n" for k in classes)
        (data / f"{name}_{part}_ground_truth.txt").write_text(text)


def sbow(*images: tuple[list[int], list[float], list[float]]) -> np.ndarray:
    """The array of structures of a file: words, x and y of each image."""
    kind = [(name, "O") for name in ("word", "x", "y", "scale", "norm")]
    rows = []
    for i, (words, x, y) in enumerate(images):
        values = (np.int16(words), np.float32(x), np.float32(y), np.zeros(len(words), np.int8), np.float32(x))
        inner = np.array([[tuple(v.reshape(1, -1) for v in values)]], dtype=kind)
        rows.append((f"image_{i}", inner))
    return np.array(rows, dtype=[("ID", "O"), ("sbow", "O")]).reshape(-1, 1)


def ilsvrc2010_bow(folder: Path) -> Path:
    words = {
        "train/n02119789": [([5, 5, 999], [0.1, 0.9, 0.9], [0.1, 0.1, 0.9]), ([0], [0.5], [0.5])],
        "train/n01440764": [([7, 8], [0.0, 1.0], [1.0, 0.0])],
        "val/val.0001": [([1, 1], [0, 1], [0, 1]), ([2], [0], [0])],
        "val/val.0002": [([3, 4], [0, 1], [0, 1])],
    }
    for path, images in words.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        savemat(folder / f"{path}.sbow.mat", {"image_sbow": sbow(*images)})
    development_kit(folder, "ILSVRC2010", {"validation": [2, 0, 0]})
    return folder
