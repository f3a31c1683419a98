"""ImageNet: the folders of the ILSVRC classification sets."""

from __future__ import annotations

import hashlib
import io
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np
import scipy.sparse as sp

from benchmarks.papers.sets.origin import PublishedSet, lines_of
from chimap._types import JSON, Rows
from chimap._validation import DataError, check_choice
from chimap.data.source import StreamSource
from chimap.images.reading.files import ImageFiles
from chimap.images.reading.image_set import ImageSet
from chimap.readers.image_names import is_image_name
from chimap.readers.io.files import plain_path

SYNSET = re.compile(r"n\d{8}")
IMAGENET = PublishedSet(
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
    files = IMAGENET.open(path)
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
        raise IMAGENET.absent(files, "train/SYNSET/")
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
    files = IMAGENET.open(path)
    mapping = _ending(files, "LOC_synset_mapping.txt")
    if mapping:
        return dict(tuple(line.split(" ", 1)) for line in lines_of(files, mapping))
    meta = _ending(files, "meta.mat")
    if meta is None:
        raise IMAGENET.absent(files, "LOC_synset_mapping.txt or meta.mat")
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


N_WORDS = 1000
BAGS_OF_WORDS = PublishedSet(
    "the bags of words of ILSVRC 2010",
    "train/n01440764.sbow.mat, val/val.0001.sbow.mat and test/test.0001.sbow.mat",
    "https://www.image-net.org/challenges/LSVRC/2010/",
    "Deng, Berg, Li and Fei-Fei, What does classifying more than 10,000 image categories tell us?, 2010",
)
SPLITS = ("train", "val", "test")


class Ilsvrc2010Bow(StreamSource):
    """Counts of 1000 visual words in the cells of grids, one row per image, in CSR of float32.

    A file ``*.sbow.mat`` holds the array of structures ``image_sbow`` with the fields ``ID`` and ``sbow``; ``sbow`` has
    one entry a descriptor in each of ``word`` (from 0), ``x``, ``y``, ``scale`` and ``norm``. A file of the training
    part has the images of one synset, which is their label. The labels of the other parts are in
    ``*_validation_ground_truth.txt`` and ``*_test_ground_truth.txt`` of the development kit, as numbers of
    ``meta.mat``, in the order of the files; without these there are no labels.

    Parameters
    ----------
    path : str or Path
        Folder or archive with the folders of the splits.
    split : str, default="train"
        "train", "val" or "test".
    grids : sequence of (rows, columns), default=((1, 1),)
        Grid of each level. Cells divide the bounding box of all points of the image, since the files do not hold its
        size. Columns are ordered by level, cell (row by row) and word.

    Raises
    ------
    DataError
        If a file is damaged or of another layout; the message names it.
    """

    is_sparse = True
    from_files = True
    dtype = np.dtype(np.float32)

    def __init__(
        self, path: str | os.PathLike[str], split: str = "train", grids: Sequence[tuple[int, int]] = ((1, 1),)
    ) -> None:
        check_choice(split, "split", SPLITS)
        self.name = f"{plain_path(path)}, {split}"
        self._grids = [(int(rows), int(columns)) for rows, columns in grids]
        self._files = BAGS_OF_WORDS.open(path)
        root = BAGS_OF_WORDS.root(self._files, f"{split}/")
        self._parts = [p for p in self._files.paths if p.startswith(f"{root}{split}/") and p.endswith(".sbow.mat")]
        if not self._parts:
            raise BAGS_OF_WORDS.absent(self._files, f"{split}/*.sbow.mat")
        self.n_features = N_WORDS * sum(rows * columns for rows, columns in self._grids)
        self._sizes = [_count(self._files, part) for part in self._parts]
        self.n_rows = sum(self._sizes)
        first = self._block(self._parts[0])
        self.row_bytes = 8.0 * first.nnz / first.shape[0] + 4
        # a file as it is stored, decoded, and its rows before they are counted
        self.held_bytes = 4.0 * max(self._sizes) * self.row_bytes
        self._y = self._train_labels() if split == "train" else self._listed_labels(split)

    def _blocks(self) -> Iterator[Rows]:
        return map(self._block, self._parts)

    def _content(self) -> JSON:
        total = hashlib.blake2b(digest_size=16)
        for part in self._parts[:: max(1, len(self._parts) // 10)]:
            total.update(self._files.read(part))
        return {"files": len(self._parts), "grids": self._grids, "digest": total.hexdigest()}

    def _block(self, part: str) -> sp.csr_matrix:
        """Return the rows of a file."""
        images = _images(self._files, part)
        where = self._files.where(part)
        rows = [self._row(image["sbow"], f"{where}, image {i}") for i, image in enumerate(images)]
        starts = np.cumsum([0, *(row.size for row in rows)])
        columns, counts = np.unique(
            np.concatenate(rows) + self.n_features * np.repeat(np.arange(len(rows)), np.diff(starts)),
            return_counts=True,
        )
        row_of, column = np.divmod(columns, self.n_features)
        indptr = np.searchsorted(row_of, np.arange(len(rows) + 1))
        return sp.csr_matrix((counts.astype(np.float32), column, indptr), shape=(len(rows), self.n_features))

    def _row(self, sbow: np.ndarray, where: str) -> np.ndarray:
        """Return the column of each descriptor at each level."""
        try:
            entry = np.asarray(sbow).reshape(-1)[0]
            word, x, y = np.array([np.ravel(entry[name]) for name in ("word", "x", "y")], dtype=np.float64)
        except (ValueError, IndexError, TypeError) as error:
            raise DataError(f"{where}: no words with positions ({error}). Copy the file again.") from error
        if word.size and not (word.min() >= 0 and word.max() < N_WORDS):
            raise DataError(
                f"{where}: words from {word.min():g} to {word.max():g}; expected 0 to {N_WORDS - 1}. Copy "
                "the file again."
            )
        columns, first = [], 0
        for rows, across in self._grids:
            cell = across * _cells(y, rows) + _cells(x, across)
            columns.append(first + N_WORDS * cell + word.astype(np.int64))
            first += N_WORDS * rows * across
        return np.concatenate(columns)

    def _train_labels(self) -> np.ndarray:
        synset = [part.rpartition("/")[2].partition(".")[0] for part in self._parts]
        return np.repeat(np.array(synset), self._sizes)

    def _listed_labels(self, split: str) -> np.ndarray | None:
        ending = {"val": "_validation_ground_truth.txt", "test": "_test_ground_truth.txt"}[split]
        listed = next((p for p in self._files.paths if p.endswith(ending)), None)
        meta = next((p for p in self._files.paths if p.endswith("meta.mat")), None)
        if listed is None or meta is None:
            return None
        numbers = lines_of(self._files, listed)
        if len(numbers) != self.n_rows:
            raise DataError(
                f"{self._files.where(listed)}: {len(numbers)} labels for {self.n_rows} images in {split}/. Get "
                "the missing files."
            )
        by_number = {number: wnid for number, wnid, _ in synsets(self._files, meta)}
        return np.array([by_number[int(number)] for number in numbers])


def _images(files: ImageFiles, path: str) -> np.ndarray:
    """Return the structures of a file, (n,)."""
    from scipy.io import loadmat

    with _naming(files, path):
        return np.ravel(loadmat(io.BytesIO(files.read(path)))["image_sbow"])


def _count(files: ImageFiles, path: str) -> int:
    """Return the number of images of a file, from its header."""
    from scipy.io import whosmat

    with _naming(files, path):
        shapes = {name: shape for name, shape, _ in whosmat(io.BytesIO(files.read(path)))}
        return int(np.prod(shapes["image_sbow"]))


@contextmanager
def _naming(files: ImageFiles, path: str) -> Iterator[None]:
    from scipy.io.matlab import MatReadError

    try:
        yield
    except (MatReadError, ValueError, KeyError, TypeError, OSError, EOFError, zlib.error) as error:
        raise DataError(
            f"{files.where(path)}: not a Matlab file with image_sbow, or cut off ({error}). Copy it again."
        ) from error


def _cells(places: np.ndarray, n: int) -> np.ndarray:
    """Return the index of the part that holds each place, for n equal parts of the range of places."""
    if n == 1 or places.size == 0:
        return np.zeros(places.size, np.int64)
    low, high = places.min(), places.max()
    return np.minimum((places - low) * (n / max(high - low, np.finfo(float).tiny)), n - 1).astype(np.int64)
