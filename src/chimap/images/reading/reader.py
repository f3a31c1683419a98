"""Read, decode and process images in threads, in order, within a memory budget."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from chimap import _threads
from chimap._memory import format_bytes, parse_memory
from chimap._validation import DataError, check_positive
from chimap.engines import Progress
from chimap.images.reading.decoding import ImageError
from chimap.images.reading.image_set import ImageSet

IMAGES_AHEAD = 3  # images per thread that are started or finished, so that a slow image does not stop the others
MOST_LISTED = 3  # broken images that a message lists


class ImageReader:
    """Iterator over pairs (i, work(i, image)) for images i in order, or (i, image) without ``work``.

    Threads read, decode and process different images at once. An image is broken if reading it or its work raises
    ``ImageError``: it is left out and listed in ``broken``, unless ``strict``. Any other error is raised when its turn
    comes.

    Parameters
    ----------
    images : ImageSet
        The images.
    work : callable or None, default=None
        Called with the index and the image (height, width, 3) uint8, while BLAS and compiled loops use one thread; the
        result is what it returns.
    rows : sequence of int or None, default=None
        Indices of the images to read, in this order; None is all.
    n_jobs : int or None, default=None
        Number of threads; None and -1 are all cores.
    memory : str or int, default="512MiB"
        Budget of bytes for all images in work or waiting to be taken. An image that alone needs more counts as broken.
    bytes_a_pixel : float, default=6.0
        Bytes that an image needs for each pixel: 3 for the image, 3 more while it is decoded, and what the work needs
        and returns.
    strict : bool, default=False
        Whether a broken image is an error.

    Attributes
    ----------
    broken : dict of int to str
        Reason by index of each broken image, in order; complete after the last image.

    Raises
    ------
    DataError
        At the end, if all images were broken.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from chimap.images.reading import open_images
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = pathlib.Path(folder, "a.ppm").write_bytes(b"P6 1 1 255 abc")
    ...     _ = pathlib.Path(folder, "b.ppm").write_bytes(b"<html>")
    ...     reader = ImageReader(open_images(folder), lambda i, image: image.sum())
    ...     [(i, int(total)) for i, total in reader], list(reader.broken)
    ([(0, 294)], [1])
    """

    def __init__(
        self,
        images: ImageSet,
        work: Callable[[int, np.ndarray], object] | None = None,
        *,
        rows: Sequence[int] | np.ndarray | None = None,
        n_jobs: int | None = None,
        memory: str | int = "512MiB",
        bytes_a_pixel: float = 6.0,
        strict: bool = False,
    ) -> None:
        check_positive(bytes_a_pixel, "bytes_a_pixel")
        self.images, self.strict = images, strict
        self.rows = range(len(images)) if rows is None else [int(i) for i in rows]
        self.broken: dict[int, str] = {}
        self._work = work or (lambda i, image: image)
        self._memory, self._bytes_a_pixel = parse_memory(memory), bytes_a_pixel
        with _threads.threads(n_jobs):
            self._n_workers = _threads.count()

    def __iter__(self) -> Iterator[tuple[int, Any]]:
        self.broken = {}
        budget = _Budget(self._memory)
        waiting: deque[tuple[int, int, Future[object]]] = deque()
        pool = ThreadPoolExecutor(self._n_workers, thread_name_prefix="chimap-images", initializer=_threads.enter_pool)
        try:
            with threadpool_limits(1):
                for place, i in enumerate(self.rows):
                    waiting.append((place, i, pool.submit(self._process, budget, place, i)))
                    if len(waiting) >= IMAGES_AHEAD * self._n_workers:
                        yield from self._taken(budget, *waiting.popleft())
                while waiting:
                    yield from self._taken(budget, *waiting.popleft())
        finally:
            budget.close()
            pool.shutdown(wait=True, cancel_futures=True)
        if self.rows and len(self.broken) == len(self.rows):
            raise DataError(f"{self.images.name}: {self.report()}")

    def report(self) -> str | None:
        """Return a sentence on which images were left out and why; None if there are none."""
        return broken_in_words([*self.broken.values()], len(self.rows)) if self.broken else None

    def _taken(self, budget: _Budget, place: int, i: int, result: Future[object]) -> Iterator[tuple[int, Any]]:
        """Yield the result of the oldest image, or nothing if it is broken.

        Its memory is freed when the next result is requested.
        """
        try:
            value = result.result()
        except ImageError as error:
            if self.strict:
                raise
            self.broken[i] = str(error)
        else:
            yield i, value
        budget.give_back(place)

    def _process(self, budget: _Budget, place: int, i: int) -> object:
        picture, (height, width) = self.images.open(i)
        needed = height * width * self._bytes_a_pixel
        if needed > self._memory:
            enough = f"{-(-int(needed) // 2**20)}MiB"
            raise ImageError(
                f"{self.images.where(i)}: {width} x {height} pixels need {format_bytes(needed)}, more "
                f"than the budget of {format_bytes(self._memory)}. Scale it down, or set a budget of {enough} or more."
            )
        budget.take(place, needed)
        return self._work(i, self.images.pixels(i, picture))


def broken_in_words(reasons: Sequence[str], n_images: int) -> str:
    """Return how many of the images are broken, and why the first of them are.

    >>> broken_in_words(["a.png: cut off."], 10)
    '1 of 10 images are broken: a.png: cut off.'
    """
    more = f" ... and {len(reasons) - MOST_LISTED} more" if len(reasons) > MOST_LISTED else ""
    return f"{len(reasons)} of {n_images} images are broken: {' '.join(reasons[:MOST_LISTED])}{more}"


class _Budget:
    """A budget of bytes for places in a queue.

    The first place may always proceed, so that no place waits for a later one.
    """

    def __init__(self, total: float) -> None:
        self._left, self._first, self._closed = total, 0, False
        self._held: dict[int, float] = {}
        self._changed = threading.Condition()

    def take(self, place: int, n: float) -> None:
        """Wait until n bytes are free or this place is the first."""
        with self._changed:
            self._changed.wait_for(lambda: self._closed or place == self._first or n <= self._left)
            if self._closed:
                raise CancelledError
            self._held[place] = n
            self._left -= n

    def give_back(self, place: int) -> None:
        """Free the bytes of a finished place; the next place becomes the first."""
        with self._changed:
            self._left += self._held.pop(place, 0.0)
            self._first = place + 1
            self._changed.notify_all()

    def close(self) -> None:
        """Stop all waiting."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def counted(reader: ImageReader, progress: Progress) -> Iterator[np.ndarray]:
    """Yield the results of a reader, and advance the progress after each has been used."""
    for _, result in reader:
        yield result
        progress.advance()
