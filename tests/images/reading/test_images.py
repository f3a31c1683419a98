"""Sets of images from folders, archives and tables: names, labels, splits, and errors that say where."""

from __future__ import annotations

import json
import os
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pytest

from chimap._validation import DataError
from chimap.images.reading import ImageError, open_images

from .pictures import encoded, pixels, write_tree

PETS = ["cat/1.png", "cat/2.png", "dog/1.png", "dog/old/2.png"]


def packed(folder: Path, archive: Path) -> Path:
    """The folder's content in an archive of the kind that its ending says."""
    if archive.suffix == ".zip":
        with zipfile.ZipFile(archive, "w") as file:
            for path in sorted(folder.rglob("*")):
                file.write(path, path.relative_to(folder))
    else:
        ending = archive.name.split(".")[-1].removeprefix("t")
        with tarfile.open(archive, "w" if ending == "ar" else f"w:{ending}") as file:
            file.add(folder, ".")
    return archive


@pytest.fixture(params=["folder", "pets.tar", "pets.tar.gz", "pets.tar.xz", "pets.tgz", "pets.zip"])
def pets(request, tmp_path) -> Path:
    folder = write_tree(tmp_path / "pets", PETS)
    write_tree(folder, {"README.txt": b"four pets", "__MACOSX/cat/._1.png": b"", "cat/.hidden.png": b""})
    return folder if request.param == "folder" else packed(folder, tmp_path / request.param)


def test_folders_and_archives_are_one(pets):
    images = open_images(pets)
    assert images.names == PETS
    assert images.labels.tolist() == ["cat", "cat", "dog", "dog"]
    assert images.classes == ["cat", "dog"]
    assert len(images) == 4
    assert images.splits is None
    for i in range(4):
        np.testing.assert_array_equal(images.read(i), pixels(seed=i))


def test_taken_images_keep_what_is_theirs(pets):
    images = open_images(pets).take([3, 0])
    assert images.names == [PETS[3], PETS[0]]
    assert images.labels.tolist() == ["dog", "cat"]
    np.testing.assert_array_equal(images.read(0), pixels(seed=3))


def test_folders_around_it_all_are_passed_over(tmp_path):
    images = open_images(write_tree(tmp_path, [f"data/v2/{path}" for path in PETS]))
    assert images.labels.tolist() == ["cat", "cat", "dog", "dog"]


def test_one_class_keeps_its_name(tmp_path):
    assert open_images(write_tree(tmp_path, ["data/cat/1.png", "data/cat/2.png"])).classes == ["cat"]


@pytest.mark.parametrize("around", ["", "pets/"])
def test_splits(tmp_path, around):
    paths = [f"{around}{split}/{path}" for split in ("Training", "test") for path in PETS]
    images = open_images(write_tree(tmp_path, paths))
    assert images.classes == ["cat", "dog"]
    assert images.part("train").names == [p for p in sorted(paths) if "Training" in p]
    assert sorted(images.part("test").labels) == ["cat", "cat", "dog", "dog"]
    with pytest.raises(DataError, match="no split 'val'; it has test, train"):
        images.part("val")


def test_one_split_alone(tmp_path):
    images = open_images(write_tree(tmp_path, [f"train/{path}" for path in PETS]))
    assert images.classes == ["cat", "dog"]
    assert set(images.splits) == {"train"}


def test_images_without_folders_have_no_labels(tmp_path):
    images = open_images(write_tree(tmp_path, ["b.png", "a.png"]))
    assert images.names == ["a.png", "b.png"]
    assert images.labels is None
    assert open_images(tmp_path, labels=["x", "y"]).labels.tolist() == ["x", "y"]
    with pytest.raises(DataError, match="3 labels for 2 rows"):
        open_images(tmp_path, labels=[1, 2, 3])


def test_an_image_beside_the_class_folders_is_refused(tmp_path):
    write_tree(tmp_path, [*PETS, "stray.png"])
    with pytest.raises(DataError, match=r"stray\.png: in no folder of a class, as 4"):
        open_images(tmp_path)


def test_rings_of_links_end(tmp_path):
    write_tree(tmp_path, PETS)
    (tmp_path / "cat" / "again").symlink_to(tmp_path)
    assert open_images(tmp_path).names == PETS


def test_address():
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://pets/cat/1.png", "wb") as file:
        file.write(encoded())
    images = open_images("memory://pets")
    np.testing.assert_array_equal(images.read(0), pixels())


@pytest.mark.parametrize("heading", ["Path,Label,Split", ""])
def test_csv(tmp_path, heading):
    write_tree(tmp_path, PETS)
    rows = [f"{path},{name}" + (",test" if heading else "") for path, name in zip(PETS, "abba", strict=True)]
    (tmp_path / "pets.csv").write_text("\n".join(([heading] if heading else []) + rows) + "\n")
    images = open_images(tmp_path / "pets.csv")
    assert images.names == PETS
    assert images.labels.tolist() == list("abba")
    assert (images.splits is None) == (heading == "")
    np.testing.assert_array_equal(images.read(3), pixels(seed=3))


def test_csv_with_a_chosen_column(tmp_path):
    write_tree(tmp_path, PETS[:2])
    (tmp_path / "pets.csv").write_text(f"file,label,age\n{PETS[0]},cat,3\n{PETS[1]},cat,5\n")
    assert open_images(tmp_path / "pets.csv", labels="age").labels.tolist() == [3, 5]
    assert open_images(tmp_path / "pets.csv", labels=[1, 0]).labels.tolist() == [1, 0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("path,label\ncat/1.png,cat\ncat/9.png,cat\n", r"line 3: no file .*cat/9\.png \(1 of 2"),
        ("path,label\ncat/1.png,cat\ncat/2.png\n", "line 3: 1 columns"),
        ("where,what\ncat/1.png,cat\n", "no column of paths among where, what; call it path"),
        ("path,label\n", "no lines with images"),
    ],
)
def test_bad_csv(tmp_path, text, message):
    write_tree(tmp_path, PETS)
    (tmp_path / "pets.csv").write_text(text)
    with pytest.raises(DataError, match=message):
        open_images(tmp_path / "pets.csv")


@pytest.mark.parametrize("kind", ["binary", "struct"])
@pytest.mark.parametrize("parts", [1, 2])
def test_parquet(tmp_path, kind, parts):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    folder = tmp_path / "pets"
    folder.mkdir()
    names = {"info": {"features": {"label": {"names": ["cat", "dog"], "_type": "ClassLabel"}}}}
    for part in range(parts):
        content = [encoded(pixels(seed=3 * part + i)) for i in range(3)]
        image = content if kind == "binary" else [{"bytes": c, "path": None} for c in content]
        table = pa.table({"image": image, "label": [0, 1, 1]})
        if kind == "struct":
            table = table.replace_schema_metadata({"huggingface": json.dumps(names)})
        pq.write_table(table, folder / f"{part}.parquet", row_group_size=2)
    images = open_images(folder if parts > 1 else folder / "0.parquet")
    assert len(images) == 3 * parts
    assert images.labels.tolist() == ([0, 1, 1] if kind == "binary" else ["cat", "dog", "dog"]) * parts
    for i in range(len(images)):
        np.testing.assert_array_equal(images.read(i), pixels(seed=i))


def test_parquet_without_images_is_refused(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    pq.write_table(pa.table({"X": [[1.0, 2.0]], "y": [1]}), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"bytes of images.*X \(list.*open_source"):
        open_images(tmp_path / "rows.parquet")


def test_empty_folder(tmp_path):
    with pytest.raises(DataError, match="no images in it, of 0 files"):
        open_images(tmp_path)


def test_missing_and_unknown_files(tmp_path):
    with pytest.raises(FileNotFoundError, match="No such file"):
        open_images(tmp_path / "nothing.tar")
    (tmp_path / "rows.npz").write_bytes(b"x")
    with pytest.raises(DataError, match=r"unknown kind of file\. Images come in a folder"):
        open_images(tmp_path / "rows.npz")


@pytest.mark.parametrize("name", ["pets.tar", "pets.tar.gz", "pets.zip"])
def test_damaged_archives(tmp_path, name):
    (tmp_path / name).write_bytes(b"no archive at all" * 100)
    with pytest.raises(DataError, match=rf"{name}: not a (tar|zip) archive"):
        open_images(tmp_path / name)


def test_cut_off_archive(tmp_path):
    archive = packed(write_tree(tmp_path / "pets", PETS), tmp_path / "pets.tar.gz")
    archive.write_bytes(archive.read_bytes()[:-200])
    with pytest.raises(DataError, match="cut off"):
        open_images(archive)


def test_broken_images_are_named(pets):
    if pets.is_dir():
        (pets / PETS[1]).write_bytes(encoded()[:60])
        images = open_images(pets)
        with pytest.raises(ImageError, match=r"pets/cat/2\.png: damaged or cut off"):
            images.read(1)
        assert images.read(0).shape == (12, 16, 3)


def test_unreadable_file_is_named(tmp_path):
    write_tree(tmp_path, PETS)
    (tmp_path / "cat" / "3.png").symlink_to(tmp_path / "gone.png")
    images = open_images(tmp_path)
    with pytest.raises(ImageError, match=r"cat/3\.png: cannot be read \(No such file"):
        images.read(images.names.index("cat/3.png"))


@pytest.mark.skipif(os.name == "nt" or os.geteuid() == 0, reason="permissions do not hold for this user")
def test_forbidden_file_is_named(tmp_path):
    write_tree(tmp_path, PETS)
    (tmp_path / PETS[0]).chmod(0)
    with pytest.raises(ImageError, match=r"cat/1\.png: cannot be read \(Permission denied"):
        open_images(tmp_path).read(0)
