"""Images read, decoded and described by threads, in order, within a memory budget."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError, Future, ThreadPoolExecutor
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from chimap import _threads
from chimap._memory import parse_memory
from chimap._validation import DataError, check_positive, format_bytes
from chimap.engines import Progress
from chimap.images.reading.decoding import ImageError
from chimap.images.reading.image_set import ImageSet

_AHEAD = 3  # images a thread that are begun or done, so that a slow one does not stop the others
_SHOWN = 5  # broken images whose names a message lists


class ImageReader:
    """An iterator of (i, work(i, image)) over images i, in order; of (i, image) without ``work``.

    Threads read, decode and work on different images at once. An image is broken if reading it, or its work, raises
    ``ImageError``: it is left out and named in ``broken``, unless ``strict``. Any other error is raised in its place.

    images: the set. rows: which of it, in this order; None is all.
    work: called with the index and the image (height, width, 3) uint8, with one thread of BLAS and of compiled loops;
    what it returns is the result.
    n_jobs: threads; None and -1 are all cores.
    memory: bytes that all images at work or waiting to be taken may need, ``bytes_a_pixel`` each: 3 of the image, as
    much while it is decoded, and what the work needs and gives. An image that needs more alone counts as broken.
    strict: whether a broken image is an error.

    After the last image ``broken`` holds the reason by index, in order; ``report()`` says it in words.

    Raises DataError at the end if all images were broken.

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
        pool = ThreadPoolExecutor(
            self._n_workers, thread_name_prefix="chimap-images", initializer=_threads.enter_pool
        )
        try:
            with threadpool_limits(1):
                for place, i in enumerate(self.rows):
                    waiting.append((place, i, pool.submit(self._one, budget, place, i)))
                    if len(waiting) >= _AHEAD * self._n_workers:
                        yield from self._taken(budget, *waiting.popleft())
                while waiting:
                    yield from self._taken(budget, *waiting.popleft())
        finally:
            budget.close()
            pool.shutdown(wait=True, cancel_futures=True)
        if self.rows and len(self.broken) == len(self.rows):
            raise DataError(f"{self.images.name}: {self.report()}")

    def report(self) -> str | None:
        """What was left out and why, in a sentence; None if nothing was."""
        if not self.broken:
            return None
        reasons = list(self.broken.values())
        more = f" ... and {len(reasons) - _SHOWN} more" if len(reasons) > _SHOWN else ""
        return f"{len(reasons)} of {len(self.rows)} images are broken: {' '.join(reasons[:_SHOWN])}{more}"

    def _taken(
        self, budget: _Budget, place: int, i: int, result: Future[object]
    ) -> Iterator[tuple[int, Any]]:
        """The result of the oldest image, or none if it is broken; its memory is free when the next is asked for."""
        try:
            value = result.result()
        except ImageError as error:
            if self.strict:
                raise
            self.broken[i] = str(error)
        else:
            yield i, value
        budget.give_back(place)

    def _one(self, budget: _Budget, place: int, i: int) -> object:
        picture, n_pixels = self.images.open(i)
        needed = n_pixels * self._bytes_a_pixel
        if needed > self._memory:
            enough = f"{-(-int(needed) // 2**20)}MiB"
            raise ImageError(
                f"{self.images.where(i)}: {picture.width} x {picture.height} pixels need {format_bytes(needed)}, more "
                f"than the budget of {format_bytes(self._memory)}. Scale it down, or give a budget of {enough} or more."
            )
        budget.take(place, needed)
        return self._work(i, self.images.pixels(i, picture))


class _Budget:
    """Bytes shared by places in a queue. The first place may always go on, so that none waits for a later one."""

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
        """Free the bytes of a place that is done with; the one after it is the first."""
        with self._changed:
            self._left += self._held.pop(place, 0.0)
            self._first = place + 1
            self._changed.notify_all()

    def close(self) -> None:
        """Let nobody wait any longer."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def counted(reader: ImageReader, progress: Progress) -> Iterator[np.ndarray]:
    """The results of a reader, each told to the progress once it has been used."""
    for _, result in reader:
        yield result
        progress.advance()
