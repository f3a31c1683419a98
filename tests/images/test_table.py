"""Files of histograms: what is in them, and work that goes on where it was cut off."""

from __future__ import annotations

import sys

import numpy as np
import pytest
from PIL import Image

pytest.importorskip("cv2")

from chimap import open_source
from chimap._validation import DataError
from chimap.engines import Progress
from chimap.images import SIFT, ColourHistogram, ImageHistograms, table, vocabulary
from chimap.images.histogram_source import ImageSource, readable
from chimap.images.reading import open_images
from chimap.images.table import write_table
from chimap.images.vocabulary import learn_vocabulary
from chimap.readers.image_names import holds_images

from .pictures import stripes


def small() -> ImageHistograms:
    descriptors = {"sift": SIFT(step=8, sizes=(4,)), "colour": ColourHistogram(bins=(2, 2, 2))}
    return ImageHistograms(descriptors, n_words=6, grids=((1, 1), (2, 1)), random_state=0)


@pytest.fixture
def folder(tmp_path):
    """Two classes of five images, one of them cut off, one no image at all."""
    for name, angle in (("flat", 0.0), ("steep", 1.2)):
        (tmp_path / "images" / name).mkdir(parents=True)
        for i in range(5):
            Image.fromarray(stripes(30, 34, angle, i)).save(tmp_path / "images" / name / f"{i}.png")
    cut = tmp_path / "images" / "flat" / "3.png"
    cut.write_bytes(cut.read_bytes()[:300])
    (tmp_path / "images" / "steep" / "1.png").write_text("<html>not found</html>")
    return tmp_path


@pytest.fixture
def short_parts(monkeypatch):
    monkeypatch.setattr(table, "PART_IMAGES", 3)


@pytest.mark.parametrize("ending", ["parquet", "zarr"])
def test_what_is_written_is_a_source(folder, ending, short_parts):
    images, output = open_images(folder / "images"), folder / f"rows.{ending}"
    table = write_table(images, small(), output)
    assert (table.n_rows, table.n_resumed, sorted(table.broken)) == (8, 0, ["flat/3.png", "steep/1.png"])
    source = open_source(output)
    assert source.labels().tolist() == ["flat"] * 4 + ["steep"] * 4
    kept = images.take([0, 1, 2, 4, 5, 7, 8, 9])
    np.testing.assert_array_equal(source.take(np.arange(8)), table.histograms.transform(kept))
    assert sorted(path.name for path in folder.iterdir()) == ["images", output.name]
    assert not holds_images(output)


def test_without_labels(folder, short_parts):
    images = open_images(folder / "images" / "flat")
    assert images.labels is None
    write_table(images, small(), folder / "rows.parquet")
    assert open_source(folder / "rows.parquet").labels() is None


class CutOff(Progress):
    """Ends the work after so many images have been described."""

    def __init__(self, after: int) -> None:
        self.left, self.name = after, ""

    def stage(self, name, total, unit="rows"):
        self.name = name

    def advance(self, amount=1):
        if self.name == "describing":
            self.left -= amount
            if self.left < 0:
                raise KeyboardInterrupt


@pytest.mark.parametrize("ending", ["parquet", "zarr"])
def test_work_goes_on_to_the_same_file(folder, ending, short_parts):
    images, output = open_images(folder / "images"), folder / f"rows.{ending}"
    write_table(images, small(), folder / f"whole.{ending}")
    with pytest.raises(KeyboardInterrupt):
        write_table(images, small(), output, CutOff(4))
    assert not output.exists()
    table = write_table(images, small(), output)
    assert table.n_resumed == 3
    rows = [open_source(path).take(np.arange(8)) for path in (output, folder / f"whole.{ending}")]
    np.testing.assert_array_equal(*rows)
    assert not (folder / f"rows.{ending}.parts").exists()


def test_words_go_on_from_their_sample(folder, short_parts, monkeypatch):
    images, output = open_images(folder / "images"), folder / "rows.parquet"
    whole = write_table(images, small(), folder / "whole.parquet").histograms
    learned = []

    def learn(*arguments):
        if not learned:
            learned.append(0)
            raise KeyboardInterrupt
        return learn_vocabulary(*arguments)

    monkeypatch.setattr(vocabulary, "learn_vocabulary", learn)
    with pytest.raises(KeyboardInterrupt):
        write_table(images, small(), output)
    kept = sorted(file.name for file in (folder / "rows.parquet.parts").iterdir())
    assert kept == ["job", "lock", "sample%20sift"]
    monkeypatch.setattr(vocabulary, "reservoir", None)  # the images are not read for a sample again
    found = write_table(images, small(), output).histograms
    np.testing.assert_array_equal(found.vocabularies_[0].centres, whole.vocabularies_[0].centres)
    assert found.vocabularies_[0].spread == whole.vocabularies_[0].spread


def test_nothing_stays_where_no_words_can_be_learned(folder):
    with pytest.raises(DataError, match="different descriptors to learn words from"):
        write_table(open_images(folder / "images"), small().set_params(n_words=5000), folder / "rows.parquet")
    assert [path.name for path in folder.iterdir()] == ["images"]


def test_parts_of_another_job_are_refused(folder, short_parts):
    images, output = open_images(folder / "images"), folder / "rows.parquet"
    with pytest.raises(KeyboardInterrupt):
        write_table(images, small(), output, CutOff(4))
    with pytest.raises(DataError, match="other settings"):
        write_table(images, small().set_params(n_words=5), output)
    with pytest.raises(DataError, match="other settings"):
        write_table(images, small().fit(images.take([0, 1])), output)
    with pytest.raises(DataError, match="other images"):
        write_table(images.take(range(9)), small(), output)
    assert write_table(images, small(), output).n_resumed == 3


def test_words_of_other_images(folder, tmp_path):
    images = open_images(folder / "images")
    words = small().fit(images)
    words.save(folder / "words")
    again = ImageHistograms.load(folder / "words")
    assert (again.descriptors_, again.blocks_, again.levels_) == (words.descriptors_, words.blocks_, words.levels_)
    np.testing.assert_array_equal(again.vocabularies_[0].centres, words.vocabularies_[0].centres)
    some = images.take([0, 1])
    table = write_table(some, again, folder / "some.parquet")
    np.testing.assert_array_equal(open_source(folder / "some.parquet").take(np.arange(2)), words.transform(some))
    assert table.histograms is again
    with pytest.raises(FileExistsError):
        words.save(folder / "words")


def test_strict_and_nothing_left(folder):
    images = open_images(folder / "images")
    with pytest.raises(DataError, match=r"3\.png"):
        write_table(images, small(), folder / "rows.parquet", strict=True)
    with pytest.raises(DataError, match="all 2 images are broken"):
        write_table(images.take([3, 6]), small().fit(images), folder / "broken.parquet")
    with pytest.raises(ValueError, match=r"\.parquet or \.zarr"):
        write_table(images, small(), folder / "rows.csv")
    assert not (folder / "rows.csv").exists()


def test_nothing_is_left_of_a_job_that_cannot_begin(folder):
    images = open_images(folder / "images")
    with pytest.raises(DataError, match="different descriptors"):
        write_table(images, small().set_params(n_words=5000), folder / "rows.parquet")
    assert sorted(path.name for path in folder.iterdir()) == ["images"]


def test_every_kind_of_file(tmp_path):
    """Modes, one pixel, large: all of them rows; what is no image is named."""
    picture = Image.fromarray(stripes(60, 70, 0.7, 0))
    made = {
        "gray.png": picture.convert("L"),
        "palette.png": picture.convert("P"),
        "alpha.png": picture.convert("RGBA"),
        "cmyk.jpg": picture.convert("CMYK"),
        "bilevel.png": picture.convert("1"),
        "pixel.png": picture.resize((1, 1)),
        "deep.png": Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257),
        "rgb.jpg": picture,
        "large.jpg": picture.resize((5000, 4000)),
        "line.png": picture.resize((3000, 1)),
    }
    for name, image in made.items():
        image.save(tmp_path / name)
    (tmp_path / "text.jpg").write_text("no image")
    (tmp_path / "nothing.png").write_bytes(b"")
    (tmp_path / "cut.jpg").write_bytes((tmp_path / "rgb.jpg").read_bytes()[:-400])
    table = write_table(open_images(tmp_path), small(), tmp_path / "rows.parquet")
    assert (table.n_rows, sorted(table.broken)) == (10, ["cut.jpg", "nothing.png", "text.jpg"])
    rows = open_source(tmp_path / "rows.parquet").take(np.arange(10))
    colour = rows[:, table.histograms.blocks_["colour"]]
    np.testing.assert_allclose(colour.sum(axis=1), 2, rtol=1e-5)
    names = [name for name in open_images(tmp_path).names if name not in table.broken]
    one, other = (rows[names.index(name)] for name in ("gray.png", "deep.png"))
    np.testing.assert_array_equal(one, other)
    without_points = [name for name, row in zip(names, rows, strict=True) if not row[:18].any()]
    assert without_points == ["line.png", "pixel.png"]


def test_an_empty_folder(tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(DataError, match="no images"):
        open_images(tmp_path / "empty")


def test_without_opencv(monkeypatch):
    monkeypatch.setitem(sys.modules, "cv2", None)
    with pytest.raises(ImportError, match=r'pip install "chimap\[vision\]"'):
        small().fit([np.zeros((30, 30, 3), np.uint8)])


def test_image_source(folder):
    images = open_images(folder / "images")
    words = small().fit(images)
    source = ImageSource(images, words)
    assert (source.n_rows, source.n_features) == (8, words.n_columns)
    assert "2 of 10 images are broken" in source.report
    assert source.unread == {}
    whole = ImageSource(images, words, blanks=True)
    assert whole.row_ids.tolist() == images.names
    broken = [images.names.index(name) for name in ("flat/3.png", "steep/1.png")]
    assert [*whole.unread] == broken
    assert "steep/1.png: not an image" in whole.unread[broken[1]]
    rows = whole.take(np.arange(10))
    assert not rows[broken].any()
    np.testing.assert_array_equal(np.delete(rows, broken, axis=0), source.take(np.arange(8)))
    assert source.row_ids.tolist() == [n for n in images.names if n not in ("flat/3.png", "steep/1.png")]
    good, report = readable(images)
    assert good.names == source.row_ids.tolist()
    assert "not an image" in report
    np.testing.assert_array_equal(source.take(np.arange(8)), words.transform(good))
    np.testing.assert_array_equal(np.vstack([c.X for c in source.chunks(3)]), words.transform(good))
    assert source.fingerprint() == ImageSource(good, words).fingerprint() | {}
    assert source.labels().tolist() == good.labels.tolist()


def test_what_holds_images(folder):
    assert holds_images(folder / "images")
    (folder / "list.csv").write_text("path,label\nimages/flat/0.png,flat\n")
    (folder / "rows.csv").write_text("a,b\n1,2\n")
    (folder / "empty").mkdir()
    np.save(folder / "rows.npy", np.eye(3))
    assert holds_images(folder / "list.csv")
    assert not any(holds_images(folder / name) for name in ("rows.csv", "empty", "rows.npy"))
    with pytest.raises(FileNotFoundError):
        holds_images(folder / "missing")


def test_parquet_with_text_in_bytes_holds_rows(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    for name, column in (("text", [None, b"cat", "h\u00e9n".encode()]), ("photos", [b"\xff\xd8\xff", b"", b""])):
        pq.write_table(pa.table({"a": [1, 2, 3], "what": column}), tmp_path / f"{name}.parquet")
    assert not holds_images(tmp_path / "text.parquet")
    assert holds_images(tmp_path / "photos.parquet")
