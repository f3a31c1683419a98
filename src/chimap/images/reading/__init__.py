"""Read images from folders, archives and tables, and decode them in threads."""

from chimap.images.reading.image_set import ImageSet
from chimap.images.reading.open_images import ImageError, open_images
from chimap.images.reading.reader import ImageReader

__all__ = ["ImageError", "ImageReader", "ImageSet", "open_images"]
