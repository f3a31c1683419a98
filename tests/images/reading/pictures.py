"""Small image files of every kind, made with Pillow."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image


def pixels(height: int = 12, width: int = 16, seed: int = 0) -> np.ndarray:
    """A smooth random image, (height, width, 3) uint8."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width]
    waves = [np.sin(x * a + y * b + c) for a, b, c in rng.uniform(0.1, 0.8, (3, 3))]
    return (127.5 + 127.5 * np.stack(waves, axis=2)).astype(np.uint8)


def encoded(image: Any = None, format: str = "PNG", **options: Any) -> bytes:
    """The bytes of an image file, of an array or a picture."""
    image = pixels() if image is None else image
    picture = Image.fromarray(image) if isinstance(image, np.ndarray) else image
    buffer = io.BytesIO()
    picture.save(buffer, format, **options)
    return buffer.getvalue()


def write_tree(folder: Path, paths: dict[str, bytes] | list[str]) -> Path:
    """Files with these contents (small images by default) at these paths in a folder."""
    contents = paths if isinstance(paths, dict) else {p: encoded(pixels(seed=i)) for i, p in enumerate(paths)}
    for path, content in contents.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_bytes(content)
    return folder
