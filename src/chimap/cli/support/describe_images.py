"""Describe a set of images, without decoding them, or a file of visual words."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from chimap.cli.support import image_models, show

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import JSON
    from chimap.images import ImageHistograms

Described: TypeAlias = "tuple[JSON, dict[str, str | None]]"


def describe(path: str, labels: str | None) -> Described:
    """Return facts about a set of images as plain values, and as lines for the terminal."""
    import numpy as np

    images = image_models.open_set(path, labels, None)

    def counted(values: np.ndarray | None) -> dict[object, int] | None:
        if values is None:
            return None
        names, counts = np.unique(values, return_counts=True)
        return dict(zip(names.tolist(), counts.tolist(), strict=True))

    facts: JSON = {
        "data": images.name,
        "images": len(images),
        "classes": counted(images.labels),
        "parts": counted(images.splits),
        "masks": images.masks is not None,
    }
    return facts, {
        "images": f"{len(images):,}",
        "classes": _classes_line(facts["classes"]),
        "parts": facts["parts"] and ", ".join(f"{name}: {count:,}" for name, count in facts["parts"].items()),
        "masks": "one for each image" if facts["masks"] else None,
    }


def is_words(path: str) -> bool:
    """Return whether a chimap file holds visual words."""
    from chimap._files import read_header

    return read_header(path).get("kind") == "words"


def describe_words(path: Path) -> Described:
    """Return facts about a file of visual words as plain values, and as lines for the terminal.

    Raise DataError for other files.
    """
    from chimap.images import ImageHistograms

    histograms = ImageHistograms.load(path)
    facts: JSON = {
        "words": str(path),
        "histograms": histograms.describe(),
        "bins": histograms.n_columns,
        "blocks": {name: [columns.start, columns.stop] for name, columns in histograms.blocks_.items()},
        "coding": str(histograms.coder),
        "bytes": path.stat().st_size,
    }
    return facts, {
        "histograms": facts["histograms"],
        "descriptors": "\n".join(map(str, histograms.descriptors_)),
        "coding": facts["coding"],
        "bins": f"{histograms.n_columns:,}",
        "blocks": blocks_flag(histograms) or None,
        "size": show.size(facts["bytes"]),
    }


def blocks_flag(histograms: ImageHistograms) -> str:
    """Return the --blocks flag that gives each descriptor its own kernel, or "" for a single descriptor."""
    blocks = [f"{name}={columns.start}:{columns.stop}" for name, columns in histograms.blocks_.items()]
    return f"--blocks {','.join(blocks)}" if len(blocks) > 1 else ""


def _classes_line(classes: dict[object, int] | None) -> str | None:
    if classes is None:
        return "none: the images are not in folders by class; name labels with --labels"
    least, most = min(classes, key=classes.__getitem__), max(classes, key=classes.__getitem__)
    if classes[least] == classes[most]:
        return f"{len(classes):,}, {classes[most]:,} images each"
    return f"{len(classes):,}, from {classes[least]:,} images ({least}) to {classes[most]:,} ({most})"
