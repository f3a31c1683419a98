"""Open a set of images: folders, archives and tables."""

from __future__ import annotations

import os
from dataclasses import replace

from chimap._validation import DataError
from chimap.data.formats.arrow_files import PARQUET
from chimap.data.image_names import TAR, ZIP, is_image_name
from chimap.data.io.files import existing_file, is_folder, plain_path
from chimap.data.labels import Labels, read_labels
from chimap.images.reading.decoding import ImageError, decode_image, decode_mask
from chimap.images.reading.files import open_files
from chimap.images.reading.folders import class_folders
from chimap.images.reading.image_set import ImageSet
from chimap.images.reading.tables import listed_images, parquet_images

__all__ = ["ImageSet", "ImageError", "open_images", "decode_image", "decode_mask"]

TABLES = (".csv", ".tsv")


def open_images(path: str | os.PathLike[str] | ImageSet, labels: Labels = None) -> ImageSet:
    """Open the images at a path, with labels where there are any.

    Parameters
    ----------
    path : str, Path or ImageSet
        A folder or an archive (tar, also compressed, or zip) with a folder for each class, and perhaps folders for
        train, val and test around these; a CSV or TSV file of paths and labels; or a Parquet file, or a folder of them,
        with the bytes of images. An ``ImageSet`` is returned as it is.
    labels : str, array or None, default=None
        Name of a column of a table; or an array or a file of labels,
        one per image in the order of ``names``, see ``read_labels``. None takes the labels found at the path.

    Returns
    -------
    ImageSet
        The images.

    Raises
    ------
    FileNotFoundError
        If there is nothing at the path.
    ImportError
        If a package is not installed.
    DataError
        If the folder has no images, the kind of file is unknown, or the labels do not fit.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from PIL import Image
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for name in ("dark", "light"):
    ...         (Path(folder) / name).mkdir()
    ...         Image.new("RGB", (8, 8), "black" if name == "dark" else "white").save(Path(folder) / name / "1.png")
    ...     images = open_images(folder)
    >>> len(images.names), images.labels.tolist()
    (2, ['dark', 'light'])
    """
    if isinstance(path, ImageSet):
        return path
    address = plain_path(path)
    if not is_folder(address):
        name = existing_file(address).name.lower()
        if name.endswith(TABLES):
            return listed_images(address, labels)
        if name.endswith(PARQUET):
            return parquet_images(address, labels)
        if not name.endswith(TAR + ZIP):
            raise DataError(
                f"{address}: unknown kind of file. Images come in a folder, an archive ({', '.join(TAR + ZIP)}), a "
                f"table of paths ({', '.join(TABLES)}) or a table of bytes ({', '.join(PARQUET)})."
            )
    files = open_files(address)
    # a table of histograms may lie among the images that it was made from
    has_images = any(map(is_image_name, files.paths))
    if is_folder(address) and not has_images and any(path.endswith(PARQUET) for path in files.paths):
        return parquet_images(address, labels)
    return _labelled(class_folders(files), labels)


def _labelled(images: ImageSet, labels: Labels) -> ImageSet:
    """Return the set with other labels; None leaves those that it has."""
    if labels is None:
        return images
    return replace(images, labels=read_labels(labels, len(images)), class_names=None)
