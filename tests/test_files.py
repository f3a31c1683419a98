"""Files appear whole or not at all, whatever they replace and however the process ends."""

from __future__ import annotations

import errno
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from chimap import _files


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def write(path, text="new"):
    with _files.replacing(path) as unfinished:
        unfinished.write_text(text)


@pytest.fixture(params=["without a name", "with a name"])
def kind_of_file(request, monkeypatch):
    """Unfinished files as Linux has them, and as other systems do."""
    if request.param == "with a name":
        monkeypatch.delattr(os, "O_TMPFILE", raising=False)


@pytest.mark.usefixtures("kind_of_file")
class TestReplacing:
    def fail_halfway(self, path, error):
        with _files.replacing(path) as unfinished:
            unfinished.write_text("half")
            raise error

    def test_new_and_old(self, tmp_path):
        for text in ("one", "two"):
            write(tmp_path / "a", text)
            assert (tmp_path / "a").read_text() == text
        assert names(tmp_path) == ["a"]

    def test_an_error_leaves_what_was_there(self, tmp_path):
        (tmp_path / "a").write_text("old")
        with pytest.raises(RuntimeError):
            self.fail_halfway(tmp_path / "a", RuntimeError())
        assert (tmp_path / "a").read_text() == "old"
        assert names(tmp_path) == ["a"]

    def test_a_link_is_written_through(self, tmp_path):
        (tmp_path / "folder").mkdir()
        (tmp_path / "folder" / "real").write_text("old")
        (tmp_path / "link").symlink_to("folder/real")
        write(tmp_path / "link")
        assert (tmp_path / "link").is_symlink()
        assert (tmp_path / "folder" / "real").read_text() == "new"

    def test_a_link_to_a_file_that_is_not_there_yet(self, tmp_path):
        (tmp_path / "link").symlink_to("real")
        write(tmp_path / "link")
        assert (tmp_path / "real").read_text() == "new"
        assert (tmp_path / "link").is_symlink()

    def test_permissions(self, tmp_path):
        (tmp_path / "old").touch()
        (tmp_path / "old").chmod(0o640)
        old_mask = os.umask(0o027)
        try:
            write(tmp_path / "old")
            write(tmp_path / "new")
        finally:
            os.umask(old_mask)
        modes = [stat.S_IMODE((tmp_path / name).stat().st_mode) for name in ("old", "new")]
        assert modes == [0o640, 0o640]

    def test_a_pipe_and_a_device_stay(self, tmp_path):
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(OSError, match="pipe is a pipe, not a regular file"):
            write(tmp_path / "pipe")
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)
        for attempt in (write, _files.check_writable):
            with pytest.raises(OSError, match="/dev/null is a device"):
                attempt("/dev/null")

    @pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EFBIG])
    def test_a_full_disk_is_named(self, tmp_path, number):
        with pytest.raises(OSError, match=r"a could not be written \(.*\); no partial file is left"):
            self.fail_halfway(tmp_path / "a", OSError(number, os.strerror(number)))
        assert names(tmp_path) == []

    def test_tensors(self, tmp_path):
        _files.write_tensors(tmp_path / "a", "test", {"one": 1}, {"x": np.arange(3.0)})
        meta, arrays = _files.read_tensors(tmp_path / "a", "test")
        assert meta["one"] == 1
        assert arrays["x"].tolist() == [0, 1, 2]
        assert names(tmp_path) == ["a"]


@pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="unfinished files have names here")
def test_a_process_that_is_killed_leaves_nothing(tmp_path):
    program = (
        "import os, signal, sys\nfrom chimap import _files\n"
        "with _files.replacing(sys.argv[1]) as unfinished:\n"
        "    unfinished.write_text('half')\n    os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    done = subprocess.run([sys.executable, "-c", program, tmp_path / "a"], check=False)
    assert done.returncode == -signal.SIGKILL
    assert names(tmp_path) == []


def test_two_that_write_one_file_leave_one_of_both_whole(tmp_path):
    with _files.replacing(tmp_path / "a") as one, _files.replacing(tmp_path / "a") as other:
        one.write_text("one" * 1000)
        other.write_text("other")
    assert (tmp_path / "a").read_text() in ("one" * 1000, "other")
    assert names(tmp_path) == ["a"]


def test_a_claim_is_for_one_process(tmp_path):
    held = _files.claim(tmp_path / "lock")
    program = "import sys; from chimap import _files; _files.claim(sys.argv[1])"
    command = [sys.executable, "-c", program, tmp_path / "lock"]
    refused = subprocess.run(command, check=False, capture_output=True, text=True)
    assert "is in use by another process" in refused.stderr
    held.close()
    assert subprocess.run(command, check=False).returncode == 0


def test_two_writers_of_one_file_leave_one_of_both(tmp_path):
    path = tmp_path / "model"
    with _files.replacing(path) as first, _files.replacing(path) as second:
        first.write_bytes(b"a" * 10_000)
        second.write_bytes(b"b" * 5_000)
    assert path.read_bytes() in (b"a" * 10_000, b"b" * 5_000)
    assert [file.name for file in tmp_path.iterdir()] == ["model"]
