"""Scale images down to a largest side."""

from __future__ import annotations

import numpy as np

from chimap._validation import DataError
from chimap.images.descriptors.base import opencv


def within(
    max_side: int, image: np.ndarray, mask: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the image scaled down to a longer side of at most ``max_side`` pixels, and its mask at the same size.

    Smaller images come back as they are. Raises DataError for a mask whose size differs from that of its image.
    """
    longest = max(image.shape[:2])
    if longest <= max_side:
        return image, mask
    cv2 = opencv()
    height, width = (max(1, round(side * max_side / longest)) for side in image.shape[:2])
    if mask is not None:
        if mask.shape != image.shape[:2]:
            raise DataError(
                f"the mask has shape {mask.shape}, its image {image.shape[:2]}: give a mask of the size of the image."
            )
        mask = cv2.resize(mask.astype(np.int32), (width, height), interpolation=cv2.INTER_NEAREST)
    return cv2.resize(image, (width, height), interpolation=cv2.INTER_AREA), mask
