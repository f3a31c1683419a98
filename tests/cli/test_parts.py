"""Parts that a whole command does not reach: processors, labels and messages of all kinds."""

from __future__ import annotations

import dataclasses
import inspect
import io

import numpy as np
import pytest

from chimap import HistogramClassifier
from chimap._progress import LineProgress
from chimap.cli.support import blas, data_rows, errors, flag_values
from chimap.cli.support.fit_settings import Settings
from chimap.cli.support.options import Task


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("fpu avx2 avx512f avx512dq avx512bw avx512vl avx512_bf16", "SkylakeX"),
        ("fpu avx2 avx512f avx512dq", None),
        ("fpu avx2", None),
    ],
)
def test_coretype_of_a_processor(tmp_path, flags, expected):
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: {flags}\n")
    assert blas.recommended_coretype(str(tmp_path / "cpuinfo")) == expected
    assert blas.recommended_coretype(str(tmp_path / "missing")) is None


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "20")
    monkeypatch.setattr(blas, "recommended_coretype", lambda: "SkylakeX")
    blas.prepare_blas()
    assert (blas.os.environ["OPENBLAS_CORETYPE"], blas.os.environ["OPENBLAS_THREAD_TIMEOUT"]) == (
        "Haswell",
        "20",
    )


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", "b", "c"], Task.classify),
        ([True, False], Task.classify),
        (np.arange(100) % 20, Task.classify),
        (np.arange(100) % 20 * 1.0, Task.classify),
        (np.arange(100) % 21, Task.regress),
        (np.arange(2100) % 210, Task.classify),
        (np.arange(40_000) % 1001, Task.regress),
        (np.arange(10), Task.regress),
        (np.arange(100) % 2 / 2, Task.regress),
    ],
)
def test_task_of_labels(labels, expected):
    assert data_rows.decide_task(np.asarray(labels), Task.auto, "data")[0] is expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("n_jobs must not be 0", "--jobs must not be 0"),
        ("memory must be a number", "--memory must be a number"),
        ("gamma='mean': all rows are equal", "--gamma mean: all rows are equal"),
        ("data/n_terms.npz: cut off", "data/n_terms.npz: cut off"),
        ("the machine has no memory left", "the machine has no memory left"),
        (
            "features='exact' solves loss='square' or 'squared_hinge' on the kernel matrix, and does not support "
            "loss='logistic'. Leave that out, or use features='landmarks'.",
            "--features exact solves --loss square or squared_hinge on the kernel matrix, and does not support "
            "--loss logistic. Leave that out, or use --features landmarks.",
        ),
        ("does not support blocks={'a': slice(0, 3, None)}.", "does not support --blocks."),
        ("normalize='l1' divides; got normalize=None", "--normalization l1 divides; got no --normalization"),
        ("features must be one of auto", "--features must be one of auto"),
        ("the features of all rows", "the features of all rows"),
        ("give features=FourierFeatures()", "give features=FourierFeatures()"),
        ("Use selection='auto', or selection=5.", "Use no --folds, or --folds 5."),
        ("give selection='gcv'", "give selection='gcv'"),  # which no flag gives
        ("bin_weights=None, or bin_weights='learn'", "--bin-weights none, or --bin-weights learn"),
        ("have a class_weight", "have a --class-weight"),
    ],
)
def test_messages_name_flags(message, expected):
    assert errors.in_flags(message) == expected


def test_every_parameter_with_a_flag_is_named_by_it():
    flags = {errors.flag_of(field.name) for field in dataclasses.fields(Settings)}
    flagged = [
        name for name in inspect.signature(HistogramClassifier).parameters if errors.flag_of(name) in flags
    ]
    assert {"features", "selection", "normalize", "n_terms", "random_state", "kernel"} <= set(flagged)
    for name in flagged:
        value = "5" if name == "selection" else "'some'"
        message = f"here {name}={value} is given"
        assert errors.in_flags(message) == f"here {errors.flag_of(name)} {value.strip(chr(39))} is given"


@pytest.mark.parametrize("text", ["", "x", "-1", "0", "nan", "inf"])
def test_numbers_are_checked(text):
    with pytest.raises(ValueError, match="--gamma must be 'mean' or a positive number"):
        flag_values.number_or("mean", text, "--gamma")


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (FileNotFoundError(2, "No such file", "x.npz"), 2),
        (PermissionError(13, "Permission denied", "x.npz"), 2),
        (OSError(28, "No space left on device"), 2),
        (MemoryError(), 1),
        (KeyError("x"), 1),
    ],
)
def test_exit_codes(capsys, error, code):
    assert errors.explain(error) == code
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("chimap: error: ")
    assert ("Please report it" in said) == isinstance(error, KeyError)


def test_notes_are_printed_once_and_errors_always(capsys, monkeypatch):
    monkeypatch.setattr(errors, "noted", set())
    for kind in ("note", "note", "error", "error"):
        errors.say(kind, "x.csv: 3 rows")
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["note:", "error:", "error:"]


def test_an_interrupt_says_what_is_there(capsys, monkeypatch):
    monkeypatch.setattr(errors, "written", ["my.model"])
    assert errors.explain_interrupt() == 130
    assert "files already written: my.model" in capsys.readouterr().err


def test_lines_of_progress_for_logs():
    stream = io.StringIO()
    progress = LineProgress(every=0.0, stream=stream)
    progress.stage("learning", 2000)
    progress.advance(500)
    assert stream.getvalue().startswith("learning: 500 of 2,000 rows, ")
    assert stream.getvalue().endswith(" left\n")
    progress.stage("learning", 2000)
    progress.advance(0)
    assert stream.getvalue().endswith("\nlearning: 0 of 2,000 rows\n")  # nobody knows how long yet
    quiet = io.StringIO()
    LineProgress(every=60.0, stream=quiet).advance(500)
    assert quiet.getvalue() == ""


def test_defaults_are_those_of_the_estimator():
    import inspect

    from chimap import HistogramClassifier
    from chimap.cli.support.declared import _defaults
    from chimap.cli.support.fit_settings import Settings

    parameters = inspect.signature(HistogramClassifier).parameters
    declared = _defaults()
    assert declared == {name: parameters[name].default for name in declared}
    assert {
        "kernel",
        "gamma",
        "n_components",
        "n_terms",
        "alpha",
        "loss",
        "memory",
        "precision",
    } <= declared.keys()
    assert (Settings.kernel, Settings.components) == (declared["kernel"], declared["n_components"])


def test_a_parameter_is_told_by_its_flag(capsys):
    import pickle

    from chimap._validation import ParameterError, check_positive

    with pytest.raises(ParameterError, match=r"n_terms must be a positive whole number; got 0\.") as caught:
        check_positive(0, "n_terms", integer=True)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.name, again.value, again.wanted) == ("n_terms", 0, "a positive whole number")
    assert errors.explain(caught.value) == 2
    assert capsys.readouterr().err == "chimap: error: --terms must be a positive whole number; got 0.\n"
