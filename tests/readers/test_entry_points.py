"""A package with a reader, installed beside chimap: its entry point is all that it needs."""

from __future__ import annotations

import subprocess
import sys
import zipfile

import numpy as np
import pytest

from chimap import HistogramClassifier, open_source
from chimap._errors import InputError
from chimap._validation import DataError
from chimap.readers import catalogue

READER = """
import numpy as np
from chimap.data import ArraySource
from chimap.data.views import select_columns


class Spectra:
    '''Files of spectra: a line of wavelengths, then a line a spectrum; and spectra in memory.'''

    def takes(self, data):
        return type(data).__name__ == "Spectrum" or str(data).endswith(".spectra")

    def open(self, data, labels, choice):
        lines = [line.split() for line in open(data)] if isinstance(data, str) else data.lines
        rows = np.array(lines[1:], dtype=float)
        return select_columns(ArraySource(rows, labels, "spectra", column_names=lines[0]), choice)


reader, other = Spectra(), "no reader"
"""
LINES = "400nm 410nm 420nm\n1 2 3\n4 0 1\n0 2 5\n"


def wheel(folder, entry):
    """Write the package as a wheel."""
    path, info = folder / "spectra_files-1.0-py3-none-any.whl", "spectra_files-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("spectra_files.py", READER)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: spectra-files\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/entry_points.txt", f"[chimap.readers]\nspectra = spectra_files:{entry}\n")
        archive.writestr(f"{info}/RECORD", "")
    return path


def found_in(folder, monkeypatch):
    """Let Python look for packages in a folder, or in a wheel, too."""
    monkeypatch.syspath_prepend(folder)
    monkeypatch.delitem(sys.modules, "spectra_files", raising=False)
    catalogue._of_other_packages.cache_clear()


@pytest.fixture(autouse=True)
def _forget_packages():
    yield
    catalogue._of_other_packages.cache_clear()


def test_files_and_objects_of_an_installed_package_are_opened(tmp_path, monkeypatch):
    file = tmp_path / "rows.spectra"
    file.write_text(LINES)
    with pytest.raises(DataError, match="unknown kind of file"):
        open_source(file)
    pip = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target"]
    subprocess.run([*pip, str(tmp_path / "site"), str(wheel(tmp_path, "reader"))], check=True)
    found_in(tmp_path / "site", monkeypatch)
    source = open_source(str(file), ["a", "b", "a"], exclude="410nm")
    assert source.column_names == ("400nm", "420nm")
    np.testing.assert_array_equal(source.take(np.arange(3)), [[1, 3], [4, 1], [0, 5]])
    spectrum = type("Spectrum", (), {"lines": [line.split() for line in LINES.splitlines()]})()
    model = HistogramClassifier("linear", alpha=1.0).fit(spectrum, ["a", "b", "a"])
    assert model.feature_names_in_.tolist() == ["400nm", "410nm", "420nm"]
    assert model.predict(spectrum).shape == (3,)


def test_an_entry_point_that_is_no_reader_is_named(tmp_path, monkeypatch):
    found_in(wheel(tmp_path, "other"), monkeypatch)
    with pytest.raises(InputError, match=r"'spectra' of chimap\.readers, spectra_files:other, is no reader: .* takes"):
        open_source(tmp_path / "rows.spectra")
