"""ImageNet: the folders of the ILSVRC classification sets."""

from __future__ import annotations

import io
import os
import re

import numpy as np

from chimap._validation import DataError
from chimap.data.image_names import is_image_name
from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet
from chimap.images.sets._origin import PublishedSet, lines_of

SYNSET = re.compile(r"n\d{8}")
ORIGIN = PublishedSet(
    "ImageNet (ILSVRC)",
    "train/n01440764/n01440764_10026.JPEG",
    "https://www.image-net.org/download.php",
    "Russakovsky and others, ImageNet large scale visual recognition challenge, 2015",
)


def imagenet(path: str | os.PathLike[str]) -> ImageSet:
    """Open ImageNet: the images of ``train/SYNSET/`` and ``val/``, labelled by synset (``n01440764``).

    The splits are "train" and "val". Validation images may lie in folders of synsets, or all in ``val/`` as they are
    published. Their labels are then read from ``LOC_val_solution.csv``, or from ``*_validation_ground_truth.txt`` and
    ``meta.mat`` of the development kit, anywhere in the folder; without these files the images are left out. The
    archive of the training set holds one archive for each synset: unpack both.

    Parameters
    ----------
    path : str or Path
        The folder, or an archive of it.
    """
    files = ORIGIN.open(path)
    names, labels, splits, loose = [], [], [], []
    for name in files.paths:
        steps = name.split("/")
        if not is_image_name(name) or not {"train", "val"} & set(steps):
            continue
        split = "val" if "val" in steps[:-1] else "train"
        synset = next((step for step in reversed(steps[:-1]) if SYNSET.fullmatch(step)), None)
        if synset is None:
            loose.append(name)
            continue
        names.append(name)
        labels.append(synset)
        splits.append(split)
    truth = _validation_labels(files, loose) if loose else None
    if truth is not None:
        names += loose
        labels += truth
        splits += ["val"] * len(loose)
    if not names:
        raise ORIGIN.absent(files, "train/SYNSET/")
    order = np.argsort(np.array(names), kind="stable")
    y, parts = np.array(labels)[order], np.array(splits)[order]
    return ImageSet(files, [names[i] for i in order], y, parts)


def synset_names(path: str | os.PathLike[str]) -> dict[str, str]:
    """Return the meaning of each synset by its WordNet id.

    Meanings come from ``LOC_synset_mapping.txt`` (lines such as ``n01440764 tench``) or from ``meta.mat``.

    Parameters
    ----------
    path : str or Path
        The folder with one of these files.
    """
    files = ORIGIN.open(path)
    mapping = _ending(files, "LOC_synset_mapping.txt")
    if mapping:
        return dict(tuple(line.split(" ", 1)) for line in lines_of(files, mapping))  # type: ignore[misc]
    meta = _ending(files, "meta.mat")
    if meta is None:
        raise ORIGIN.absent(files, "LOC_synset_mapping.txt or meta.mat")
    return {wnid: words for _, wnid, words in synsets(files, meta)}


def synsets(files: ImageFiles, path: str) -> list[tuple[int, str, str]]:
    """Return (number, WordNet id, words) of each synset in the ``meta.mat`` of a development kit, ordered by number."""
    from scipy.io import loadmat

    try:
        table = loadmat(io.BytesIO(files.read(path)), squeeze_me=True)["synsets"]
        number = next(name for name in table.dtype.names if name.endswith("_ID"))
        rows = [(int(row[number]), str(row["WNID"]), str(row["words"])) for row in np.atleast_1d(table)]
    except (ValueError, KeyError, TypeError, StopIteration) as error:
        raise DataError(
            f"{files.where(path)}: not the meta.mat of a development kit ({error}). Copy it again."
        ) from error
    return sorted(rows)


def _validation_labels(files: ImageFiles, names: list[str]) -> list[str] | None:
    """Return the synsets of the validation images of these names; None if no file has them."""
    solution = _ending(files, "LOC_val_solution.csv")
    if solution is not None:
        lines = (line.partition(",") for line in lines_of(files, solution)[1:])
        by_name = {image: synset.split()[0] for image, _, synset in lines}
        unknown = next((name for name in names if _stem(name) not in by_name), None)
        if unknown is not None:
            raise DataError(
                f"{files.where(unknown)}: neither in the folder of a synset nor a line of {solution}. Remove the "
                "image, or get the whole list."
            )
        return [by_name[_stem(name)] for name in names]
    numbers, meta = _ending(files, "_validation_ground_truth.txt"), _ending(files, "meta.mat")
    if numbers is None or meta is None:
        return None
    by_number = {number: wnid for number, wnid, _ in synsets(files, meta)}
    labels = [by_number[int(line)] for line in lines_of(files, numbers)]
    if len(labels) != len(names):
        raise DataError(
            f"{files.where(numbers)}: {len(labels)} labels for {len(names)} validation images. The images "
            "must be those of this development kit, all of them."
        )
    return labels


def _ending(files: ImageFiles, ending: str) -> str | None:
    return next((path for path in files.paths if path.endswith(ending)), None)


def _stem(path: str) -> str:
    return path.rpartition("/")[2].partition(".")[0]
