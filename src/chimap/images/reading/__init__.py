"""Read images from folders, archives and tables, and decode them in threads."""

from chimap.images.reading.decoding import ImageError
from chimap.images.reading.image_set import ImageSet
from chimap.images.reading.open_images import open_images
from chimap.images.reading.reader import ImageReader

__all__ = ["ImageError", "ImageReader", "ImageSet", "open_images"]
