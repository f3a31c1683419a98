"""Reading ahead by threads: order, budget, broken images, and an end that leaves nothing behind."""

from __future__ import annotations

import threading
import time

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.images.histograms import ImageArrays
from chimap.images.reading import ImageError, ImageReader, open_images

from .pictures import encoded, pixels, write_tree

SIDE = 30
ONE = 6 * SIDE * SIDE  # bytes that the reader counts for an image


@pytest.fixture
def images(tmp_path):
    return open_images(write_tree(tmp_path, {f"{i:02}.png": encoded(pixels(SIDE, SIDE, i)) for i in range(20)}))


def spoil(images, *broken: int) -> None:
    for i in broken:
        with open(images.where(i), "wb") as file:
            file.write(b"<html>")


def image_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("chimap-images")]


@pytest.mark.parametrize("n_jobs", [1, 2, 5])
def test_results_come_in_order(images, n_jobs):
    def work(i, image):
        time.sleep(0.01 * (i % 3 == 0))
        return image.copy()

    found = list(ImageReader(images, work, n_jobs=n_jobs))
    assert [i for i, _ in found] == list(range(20))
    for i, image in found:
        np.testing.assert_array_equal(image, pixels(SIDE, SIDE, i))


def test_chosen_rows_come_as_asked(images):
    assert [i for i, _ in ImageReader(images, rows=np.array([7, 3, 3]))] == [7, 3, 3]


@pytest.mark.parametrize("fitting", [1, 2, 3])
def test_no_more_at_work_than_the_budget_holds(images, fitting):
    alive, most, lock = 0, 0, threading.Lock()

    def work(i, image):
        nonlocal alive, most
        with lock:
            alive += 1
            most = max(most, alive)
        time.sleep(0.005)
        return i

    for _ in ImageReader(images, work, n_jobs=8, memory=fitting * ONE, bytes_a_pixel=6):
        time.sleep(0.002)
        with lock:
            alive -= 1
    assert most <= fitting + 1  # the consumer takes a result before it is counted off here


def test_large_images_alone_are_broken(images, tmp_path):
    (tmp_path / "00.png").write_bytes(encoded(pixels(200, 200)))
    reader = ImageReader(images, memory=4 * ONE)
    assert len(list(reader)) == 19
    assert "200 x 200 pixels need 234 KiB, more than the budget of" in reader.broken[0]


def test_large_arrays_are_broken_too():
    reader = ImageReader(ImageArrays([pixels(20, 20), pixels(200, 300)]), memory=4 * ONE)
    assert [i for i, _ in reader] == [0]
    assert "image 1: 300 x 200 pixels need" in reader.broken[1]


@pytest.mark.parametrize("n_jobs", [1, 3])
def test_broken_images_are_left_out_and_named(images, n_jobs):
    spoil(images, 0, 7, 19)
    reader = ImageReader(images, n_jobs=n_jobs)
    assert [i for i, _ in reader] == [i for i in range(20) if i not in (0, 7, 19)]
    assert list(reader.broken) == [0, 7, 19]
    assert reader.report().startswith("3 of 20 images are broken: ")
    assert "07.png: not an image" in reader.report()


def test_strict(images):
    spoil(images, 5)
    with pytest.raises(ImageError, match=r"05\.png: not an image"):
        list(ImageReader(images, strict=True))
    assert image_threads() == []


def test_nothing_but_broken_images_is_an_error(images):
    spoil(images, *range(20))
    with pytest.raises(DataError, match=r"20 of 20 images are broken: .* and 17 more"):
        list(ImageReader(images))


def test_work_may_find_an_image_broken(images):
    def work(i, image):
        if i == 3:
            raise ImageError("03.png: too small to describe")

    reader = ImageReader(images, work)
    assert len(list(reader)) == 19
    assert reader.broken == {3: "03.png: too small to describe"}


def test_other_errors_are_raised(images):
    with pytest.raises(ZeroDivisionError):
        list(ImageReader(images, lambda i, image: 1 / (i - 4)))
    assert image_threads() == []


def test_a_consumer_may_stop_early(images):
    found = iter(ImageReader(images, n_jobs=4, memory=ONE))
    next(found)
    found.close()
    assert image_threads() == []


def test_no_images_no_error(images):
    reader = ImageReader(images, rows=[])
    assert list(reader) == []
    assert reader.report() is None
