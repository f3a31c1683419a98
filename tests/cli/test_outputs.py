"""Outputs that would destroy something, streams that take no more, disks that are full, commands that are killed."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import time
from pathlib import Path

import numpy as np
import pytest

from chimap.cli.outputs import check_outputs

from .conftest import SMALL
from .terminal import SECONDS, run_many, start

pytestmark = pytest.mark.slow


def contents(folder: Path) -> dict[str, bytes]:
    return {str(p.relative_to(folder)): p.read_bytes() for p in sorted(folder.rglob("*")) if p.is_file()}


@pytest.fixture
def place(tmp_path):
    for name in ("data", "model", "other"):
        (tmp_path / name).write_text(name)
    os.link(tmp_path / "data", tmp_path / "hard")
    (tmp_path / "soft").symlink_to("data")
    (tmp_path / "folder").mkdir()
    (tmp_path / "to-new").symlink_to("new")
    os.mkfifo(tmp_path / "pipe")
    return tmp_path


# outputs, resumed, overwrite, what is said
REFUSED = {
    "the input": ({"--output": "data"}, {}, True, r"--output .*data is the input .*data itself"),
    "a hard link to the input": ({"--output": "hard"}, {}, True, r"--output .*hard is the input"),
    "a link to the input": ({"--output": "soft"}, {}, True, r"--output .*soft is the input"),
    "another spelling": ({"--output": "folder/../data"}, {}, True, r"is the input"),
    "the checkpoint": (
        {"--output": "new"},
        {"--checkpoint": "new"},
        True,
        r"--checkpoint .*new and --output .*new are the same file",
    ),
    "the checkpoint through a link": ({"--output": "new"}, {"--checkpoint": "to-new"}, True, r"are the same file"),
    "a checkpoint that is the input": ({"--output": "new"}, {"--checkpoint": "data"}, True, "is the input"),
    "two outputs": ({"--output": "new", "--page": "folder/../new"}, {}, True, r"--page .* and --output .* are the"),
    "a pipe": ({"--output": "pipe"}, {}, True, r"--output .*pipe is not a regular file"),
    "one that exists": ({"--output": "other"}, {}, False, r"--output .*other exists; .* add --overwrite"),
    "a folder": ({"--output": "folder"}, {}, True, r"--output .*folder is a folder"),
    "no folder": ({"--output": "no/new"}, {}, True, r"the folder .*no does not exist"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refused_before_any_work(place, name):
    outputs, resumed, overwrite, said = REFUSED[name]
    outputs, resumed = ({f: place / p for f, p in paths.items()} for paths in (outputs, resumed))
    with pytest.raises(OSError, match=said):
        check_outputs(outputs, [str(place / "data"), place / "model", None], overwrite, resumed=resumed)


def test_taken(place):
    check_outputs({"--output": place / "other"}, [place / "data"], True, resumed={"--checkpoint": place / "model"})
    check_outputs({"--output": place / "to-new", "--page": None}, [place / "data"], False)


def test_commands_refuse_what_would_destroy(folder, tmp_path):
    """The model that a fit has written was deleted with its checkpoint; a pipe and a link became files."""
    pipe, link, real = tmp_path / "pipe", tmp_path / "link.csv", tmp_path / "real"
    os.mkfifo(pipe)
    link.symlink_to(real)
    real.write_text("old")
    before = contents(folder)
    refused = [
        ["fit", "digits.npz", "-o", tmp_path / "x", "--checkpoint", tmp_path / "x", "--overwrite"],
        ["predict", "digits.model", "digits.npz", "-o", "digits.model", "--overwrite"],
        ["predict", "digits.model", "digits.npz", "-o", pipe, "--overwrite"],
        ["evaluate", "digits.model", "digits.npz", "-o", "digits.npz", "--overwrite"],
        ["export", "digits.model", "-o", "/dev/null", "--format", "weights", "--overwrite"],
        ["compare", "digits.npz", "-o", "digits.npz", "--overwrite"],
        ["learn-kernel", "digits.npz", "-o", tmp_path / "x", "--page", tmp_path / "x"],
    ]
    *errors, written = run_many(
        [*refused, ["predict", "digits.model", "digits.npz", "-o", link, "--overwrite"]], folder
    )
    assert [result.code for result in errors] == [2] * len(refused), errors
    assert all(result.err.count("\n") == 1 for result in errors)
    assert stat.S_ISFIFO(pipe.stat().st_mode)
    assert written.code == 0, written.err
    assert link.is_symlink()
    assert real.read_text().startswith("prediction\n")
    assert contents(folder) == before


@pytest.mark.parametrize(
    "command",
    [
        ["predict", "digits.model", "digits.npz", "-o", "p.csv"],
        ["evaluate", "digits.model", "digits.npz", "-o", "p.html"],
        ["export", "digits.model", "-o", "p.safetensors"],
    ],
)
def test_a_file_too_large_for_the_disk(folder, command):
    before = contents(folder)
    code, _, err = start(*command, cwd=folder, largest_file=1024).result()
    assert code == 2, err
    assert f"chimap: error: {command[-1]} could not be written" in err
    assert contents(folder) == before


def test_output_that_is_closed_full_or_left(folder):
    """As a shell has it: ``>&-``, ``> /dev/full``, ``| head -1``."""
    chimap = f"'{os.sys.executable}' -m chimap"
    predict = f"{chimap} predict digits.model digits.npz --output -"
    script = (
        f"{predict} >&-; echo $? >&2; {chimap} info digits.model > /dev/full; echo $? >&2; "
        f"set -o pipefail; {predict} | head -1; echo $? >&2"
    )
    done = subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True, text=True, timeout=SECONDS)
    assert done.stdout == "prediction\n"
    lines = done.stderr.splitlines()
    assert [line for line in lines if line.isdigit()] in (["2", "2", "141"], ["2", "2", "0"]), done.stderr
    said = [line for line in lines if line.startswith("chimap: error")]
    assert said[0] == "chimap: error: stdout: closed, so there is nowhere to write the result."
    assert "no space left" in said[1]
    assert len(said) == 2
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_command_that_is_ended_leaves_no_half_file(folder, tmp_path, number):
    X = np.load(folder / "rows.npy")
    np.save(tmp_path / "many.npy", np.tile(X, (400, 1)))
    process = start("predict", folder / "digits.model", "many.npy", "-o", "p.csv", cwd=tmp_path)
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline and process.is_running():
        if any("p.csv" in name or "(deleted)" in name for name in open_files(process.pid, tmp_path)):
            break
        time.sleep(0.01)
    process.send(number)
    assert process.result().code != 0, "it was over before it could be ended"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["many.npy"]


def open_files(pid: int, folder: Path) -> list[str]:
    """Of a process, in a folder, those that have no name yet too; empty where the system does not tell."""
    found = []
    for link in Path(f"/proc/{pid}/fd").glob("*"):
        try:
            found.append(os.readlink(link))
        except OSError:
            continue
    return [name for name in found if name.startswith(str(folder)) and "many" not in name]


def test_two_commands_on_one_output(folder, tmp_path):
    command = ["predict", folder / "digits.model", folder / "rows.npy", "-o", "p.csv"]
    both = [start(*command, cwd=tmp_path) for _ in range(2)]
    assert 0 in [process.result().code for process in both]
    assert (tmp_path / "p.csv").read_text().count("\n") == 1798
    assert [path.name for path in tmp_path.iterdir()] == ["p.csv"]


def test_a_fit_keeps_its_model_beside_its_checkpoint(folder, tmp_path):
    command = ["fit", folder / "digits.npz", "-o", "m", "--checkpoint", "m.checkpoint", *SMALL]
    [result] = run_many([command], tmp_path)
    assert result.code == 0, result.err
    assert [path.name for path in tmp_path.iterdir()] == ["m"]
