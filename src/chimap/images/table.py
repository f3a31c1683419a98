"""Write the histograms of images to a Parquet or Zarr table, with labels and names."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from chimap import _files
from chimap._errors import InputError
from chimap.data.io.files import needed
from chimap.data.label_kinds import is_text
from chimap.engines import Progress
from chimap.images.histogram_source import check_single_labels
from chimap.images.histograms import ImageHistograms
from chimap.images.parts import PART_IMAGES, PartFolder, columns_of
from chimap.images.reading import ImageSet


@dataclass(frozen=True)
class WrittenTable:
    """Summary of a table that was written.

    Parameters
    ----------
    histograms : ImageHistograms
        The fitted histograms.
    n_rows : int
        Number of rows written.
    broken : dict of str to str
        Reason why each broken image has no row, by name.
    n_resumed : int
        Number of images that an earlier call had described.
    """

    histograms: ImageHistograms
    n_rows: int
    broken: dict[str, str]
    n_resumed: int


def write_table(
    images: ImageSet,
    histograms: ImageHistograms,
    output: str | Path,
    progress: Progress | None = None,
    *,
    strict: bool = False,
    overwrite: bool = False,
) -> WrittenTable:
    """Write the histograms of all images to a Parquet file or a Zarr store.

    The output appears only when it is complete. Until then the work lies in a folder beside it, OUTPUT.parts, from
    which another call with the same images and settings resumes.

    Parameters
    ----------
    images : ImageSet
        The images, with one label per image or none.
    histograms : ImageHistograms
        If they are not fitted, they learn their words from these images first.
    output : str or Path
        ``.parquet``, with the columns X, y (where there are labels) and name; or ``.zarr``, with arrays of these names.
    progress : Progress or None, default=None
        Display of progress.
    strict : bool, default=False
        Whether a broken image is an error. Otherwise it has no row.
    overwrite : bool, default=False
        Whether an existing output is replaced.

    Returns
    -------
    WrittenTable
        The fitted histograms and what was written.

    Raises
    ------
    DataError
        If the folder of parts belongs to other images or settings, or an image has several labels.
    ValueError
        If the output has another ending.
    FileExistsError
        If the output exists, unless ``overwrite``.
    """
    output, progress = Path(output), progress or Progress()
    _files.check_free(output, overwrite)
    write = writer(output)
    check_single_labels(images)
    parts = PartFolder(output, images, histograms)
    n_left = sum(parts.images_of(number).size for number in parts.missing)
    with progress:
        fitted = parts.completed(histograms, strict, progress)
        broken = parts.broken()
        progress.stage("writing", len(images) - len(broken), "images")
        write(output, parts, images, fitted.n_columns, progress)
    parts.remove()
    return WrittenTable(fitted, len(images) - len(broken), broken, len(images) - n_left)


def writer(output: Path) -> Callable[[Path, PartFolder, ImageSet, int, Progress], None]:
    """Return the function that writes a path with this ending; raises ValueError for other endings."""
    if output.suffix.lower() not in FORMATS:
        raise InputError(f"{output}: the ending must be {' or '.join(FORMATS)}.")
    return FORMATS[output.suffix.lower()]


def _write_parquet(
    output: Path, parts: PartFolder, images: ImageSet, n_columns: int, progress: Progress
) -> None:
    arrow = needed("pyarrow", "Parquet files")
    parquet = needed("pyarrow.parquet", "Parquet files")
    row = arrow.list_(arrow.float32(), n_columns)
    label = [] if images.labels is None else [("y", arrow.array(images.labels[:1]).type)]
    schema = arrow.schema([("X", row), *label, ("name", arrow.string())])
    with (
        _files.replacing(output) as beside,
        parquet.ParquetWriter(beside, schema, compression="zstd") as file,
    ):
        for part in parts:
            lists = arrow.FixedSizeListArray.from_arrays(arrow.array(part.rows.ravel()), n_columns)
            table = arrow.table({"X": lists, **columns_of(part, images)}, schema=schema)
            if table.num_rows:
                file.write_table(table)
            progress.advance(table.num_rows)


def _write_zarr(
    output: Path, parts: PartFolder, images: ImageSet, n_columns: int, progress: Progress
) -> None:
    zarr = needed("zarr", "Zarr stores")
    beside, chunk = parts.path / "store.zarr", max(1, min(PART_IMAGES, 2**22 // (4 * n_columns)))
    root = zarr.open_group(str(beside), mode="w")
    n_rows = len(images) - len(parts.broken())
    X = root.create_array("X", shape=(n_rows, n_columns), chunks=(chunk, n_columns), dtype="float32")
    others: dict[str, list[np.ndarray]] = {}
    start = 0
    for part in parts:
        X[start : start + len(part.rows)] = part.rows
        for name, values in columns_of(part, images).items():
            others.setdefault(name, []).append(np.asarray(values))
        start += len(part.rows)
        progress.advance(len(part.rows))
    for name, values in others.items():
        joined = np.concatenate([v for v in values if v.size])
        # Zarr format 3 has no text of fixed width, only of variable length
        root.create_array(name, data=joined.astype(np.dtypes.StringDType()) if is_text(joined) else joined)
    output = Path(os.path.realpath(output))  # a link stays, and its target is replaced
    if output.is_dir():  # os.replace fails for a full folder: the old one goes with the parts
        os.replace(output, parts.path / "replaced.zarr")
    os.replace(beside, output)


FORMATS = {".parquet": _write_parquet, ".zarr": _write_zarr}
