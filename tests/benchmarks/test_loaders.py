"""The loaders on tiny copies of the data sets, laid out as they come."""

from __future__ import annotations

import tarfile
from collections import Counter

import numpy as np
import pytest
from benchmarks.papers import sets as image_sets
from benchmarks.papers.sets import CATALOGUE
from benchmarks.papers.sets.pascal_voc import CLASSES, one_against_rest, voc_objects

from chimap._validation import DataError

from ..images.reading.pictures import encoded, write_tree
from . import copies

COPIES = {
    "caltech101": copies.caltech101,
    "daimler_pedestrians": copies.daimler,
    "imagenet": copies.imagenet,
    "inria_person": copies.inria,
    "inria_scenes": copies.inria,
    "scene15": copies.scenes,
    "uiuc_sports": copies.sports,
    "voc2007": copies.voc,
    "voc2007_segmentation": copies.voc,
}


@pytest.mark.parametrize("layout", COPIES)
def test_every_image_is_read_with_its_label(tmp_path, layout):
    images = CATALOGUE[layout](COPIES[layout](tmp_path))
    assert len(images) > 0
    assert len(set(images.names)) > 1
    for i in range(len(images)):
        assert images.read(i).ndim == 3
    if layout != "voc2007_segmentation":
        assert len(images.labels) == len(images)


@pytest.mark.parametrize("layout", COPIES)
def test_the_archive_is_as_good_as_the_folder(tmp_path, layout):
    folder = COPIES[layout](tmp_path / "unpacked")
    with tarfile.open(tmp_path / "data.tar", "w") as archive:
        archive.add(folder, ".")
    unpacked, packed = CATALOGUE[layout](folder), CATALOGUE[layout](tmp_path / "data.tar")
    assert packed.names == unpacked.names
    for name in ("labels", "splits", "windows", "masks"):
        np.testing.assert_array_equal(getattr(packed, name), getattr(unpacked, name))


@pytest.mark.parametrize("layout", COPIES)
def test_the_folder_around_or_in_it_may_be_named(tmp_path, layout):
    folder = COPIES[layout](tmp_path / "a" / "b")
    inner = next(iter(sorted(path for path in folder.iterdir() if path.is_dir())))
    expected = CATALOGUE[layout](folder)
    roots = [tmp_path] + ([inner] if layout not in ("imagenet",) else [])
    for root in roots:
        found = CATALOGUE[layout](root)
        np.testing.assert_array_equal(found.labels, expected.labels)
        np.testing.assert_array_equal(found.read(0), expected.read(0))


@pytest.mark.parametrize("layout", CATALOGUE)
def test_absent_data_say_where_to_get_them(tmp_path, layout):
    with pytest.raises(FileNotFoundError, match=r"nothing is there\. Get .* from http.*so that there is"):
        CATALOGUE[layout](tmp_path / "nothing")
    write_tree(tmp_path, {"cats/1.png": encoded(), "notes.txt": b"mine"})
    with pytest.raises(DataError, match=r"so it is not .* as published\. Get .* from http"):
        CATALOGUE[layout](tmp_path)


def test_caltech101_without_background(tmp_path):
    folder = copies.caltech101(tmp_path)
    assert Counter(image_sets.caltech101(folder).labels) == {
        "BACKGROUND_Google": 3,
        "Faces": 3,
        "accordion": 3,
        "yin_yang": 3,
    }
    assert image_sets.caltech101(folder, background=False).classes == ["Faces", "accordion", "yin_yang"]


def test_numbered_scenes_have_their_names(tmp_path):
    named, numbered = copies.scenes(tmp_path / "a"), copies.scenes(tmp_path / "b", numbered=True)
    assert image_sets.scene15(numbered).labels.tolist() == image_sets.scene15(named).labels.tolist()


def test_daimler_has_five_parts(tmp_path):
    images = image_sets.daimler_pedestrians(copies.daimler(tmp_path))
    assert Counter(images.splits) == dict.fromkeys(("1", "2", "3", "T1", "T2"), 5)
    assert Counter(images.part("T1").labels) == {"pedestrian": 2, "non-pedestrian": 3}
    assert images.read(0).shape == (36, 18, 3)


@pytest.mark.parametrize("links", [True, False])
def test_inria_windows(tmp_path, links):
    folder = copies.inria(tmp_path, links)
    images = image_sets.inria_person(folder, windows_a_scene=4)
    assert Counter(zip(images.splits.tolist(), images.labels.tolist(), strict=True)) == {
        ("train", "person"): 1,
        ("train", "background"): 8,
        ("test", "person"): 1,
        ("test", "background"): 4,
    }
    assert {images.read(i).shape for i in range(len(images))} == {(128, 64, 3)}
    person = images.names.index(next(n for n in images.names if "crop001001a" in n))
    np.testing.assert_array_equal(images.windows[person], (16, 16, 80, 144))
    again = image_sets.inria_person(folder, windows_a_scene=4)
    np.testing.assert_array_equal(again.windows, images.windows)
    other = image_sets.inria_person(folder, windows_a_scene=4, random_state=1)
    assert (other.windows != images.windows).any()


def test_inria_scenes_and_their_people(tmp_path):
    images = image_sets.inria_scenes(copies.inria(tmp_path))
    assert Counter(zip(images.splits.tolist(), images.labels.tolist(), strict=True)) == {
        ("train", "person"): 1,
        ("train", "background"): 3,
        ("test", "person"): 1,
        ("test", "background"): 1,
    }
    found = {name.rpartition("/")[2]: image_sets.inria_people(images, i) for i, name in enumerate(images.names)}
    assert found["crop_000010.png"] == [(261, 109, 512, 706), (3, 4, 61, 100)]
    assert found["crop_000001.jpg"] == [(0, 0, 40, 80)]  # an annotation that counts from 1
    assert sum(map(bool, found.values())) == 2
    damaged = tmp_path / "INRIAPerson/Test/annotations/crop_000001.txt"
    damaged.write_text("# PASCAL Annotation Version 1.00\n")
    with pytest.raises(DataError, match=r"crop_000001\.txt: no 'Bounding box for object'"):
        image_sets.inria_people(images, images.names.index(next(n for n in images.names if "crop_000001" in n)))


@pytest.mark.parametrize("lists", [True, False])
def test_voc_labels_from_lists_and_from_annotations(tmp_path, lists):
    images = image_sets.voc_classification(copies.voc(tmp_path, lists))
    assert images.labels.shape[1] == len(CLASSES)
    assert images.splits.tolist() == ["train", "train", "val", "test", "test"]
    for i, name in enumerate(images.names):
        _, there = copies.VOC[name.rpartition("/")[2].removesuffix(".jpg")]
        expected = [{None: -1, 0: 1, 1: 0}[there.get(c)] for c in CLASSES]
        assert images.labels[i].tolist() == expected


def test_voc_one_class(tmp_path):
    images = one_against_rest(image_sets.voc_classification(copies.voc(tmp_path)), "person")
    assert images.labels.tolist() == [-1, 1, -1, -1]  # the image with difficult people alone is left out
    with pytest.raises(ValueError, match="class_name must be one of 'aeroplane'"):
        one_against_rest(image_sets.voc_classification(tmp_path), "unicorn")


def test_voc_objects(tmp_path):
    images = image_sets.voc_classification(copies.voc(tmp_path))
    car, person, head = image_sets.voc_objects(images, 1)
    assert car == ("car", (2, 4, 20, 30), False)
    assert (person.name, person.difficult, head.name) == ("person", True, "head")


def test_damaged_annotation_is_named(tmp_path):
    images = image_sets.voc_classification(copies.voc(tmp_path))
    (tmp_path / "VOCdevkit/VOC2007/Annotations/000005.xml").write_text("<annotation><object>")
    with pytest.raises(DataError, match=r"000005\.xml: not an annotation of VOC"):
        image_sets.voc_objects(images, 0)


@pytest.mark.parametrize("kind", ["class", "object"])
def test_voc_masks(tmp_path, kind):
    images = image_sets.voc_segmentation(copies.voc(tmp_path), masks=kind)
    assert images.splits.tolist() == ["train", "val"]
    assert [sorted(np.unique(images.mask(i))) for i in range(2)] == (
        [[0, 7, 255], [0, 15, 255]] if kind == "class" else [[0, 1, 255]] * 2
    )
    assert images.mask(0).shape == images.read(0).shape[:2]
    assert CLASSES[7 - 1] == "car"


@pytest.mark.parametrize("truth", ["csv", "devkit", "none"])
def test_imagenet_validation_labels(tmp_path, truth):
    images = image_sets.imagenet(copies.imagenet(tmp_path, truth))
    assert Counter(images.part("train").labels) == dict.fromkeys(copies.SYNSETS, 2)
    if truth == "none":
        assert set(images.splits) == {"train"}
    else:
        assert images.part("val").labels.tolist() == [copies.SYNSETS[k] for k in (2, 0, 1, 0)]
        assert set(image_sets.synset_names(tmp_path)) == set(copies.SYNSETS)


def test_imagenet_with_missing_validation_images(tmp_path):
    copies.imagenet(tmp_path, "devkit")
    (tmp_path / "ILSVRC/Data/CLS-LOC/val/ILSVRC2012_val_00000002.JPEG").unlink()
    with pytest.raises(DataError, match="4 labels for 3 validation images"):
        image_sets.imagenet(tmp_path)


def test_imagenet_with_an_image_that_the_list_does_not_name(tmp_path):
    copies.imagenet(tmp_path, "csv")
    write_tree(tmp_path, {"ILSVRC/Data/CLS-LOC/val/mine.JPEG": encoded()})
    with pytest.raises(
        DataError, match=r"mine\.JPEG: neither in the folder of a synset nor a line of LOC_val_solution"
    ):
        image_sets.imagenet(tmp_path)


def test_the_folder_of_a_year_of_voc_may_be_named(tmp_path):
    folder = copies.voc(tmp_path) / "VOCdevkit/VOC2007"
    found, expected = (image_sets.voc_classification(path) for path in (folder, tmp_path))
    np.testing.assert_array_equal(found.labels, expected.labels)
    assert voc_objects(found, 0) == voc_objects(expected, 0)
    with pytest.raises(DataError, match="no VOC2012/JPEGImages/ in it"):
        CATALOGUE["voc2012"](folder)
