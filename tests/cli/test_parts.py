"""Parts that a whole command does not reach: processors, labels and messages of all kinds."""

from __future__ import annotations

import dataclasses
import inspect
from types import SimpleNamespace

import numpy as np
import pytest

from chimap import AutomaticFeatures, FourierFeatures, HistogramClassifier
from chimap._messages import Message, Parameter, Setting
from chimap.cli import commands, data_rows, flag_values, machine, messages
from chimap.cli.fit_settings import Settings
from chimap.cli.fitted import bin_weights_line, choice_of_alpha, of_budget
from chimap.data.table import readings_of
from chimap.solvers.findings import Findings


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
    assert machine.recommended_coretype(str(tmp_path / "cpuinfo")) == expected
    assert machine.recommended_coretype(str(tmp_path / "missing")) is None


def test_what_the_user_has_set_stays(monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    monkeypatch.setenv("OPENBLAS_THREAD_TIMEOUT", "20")
    monkeypatch.setattr(machine, "recommended_coretype", lambda: "SkylakeX")
    machine.prepare_blas()
    assert (machine.os.environ["OPENBLAS_CORETYPE"], machine.os.environ["OPENBLAS_THREAD_TIMEOUT"]) == ("Haswell", "20")


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        (["a", "b", "c"], "classify"),
        ([True, False], "classify"),
        (np.arange(100) % 20, "classify"),
        (np.arange(100) % 20 * 1.0, "classify"),
        (np.arange(100) % 21, "regress"),
        (np.arange(2100) % 210, "classify"),
        (np.arange(40_000) % 1001, "regress"),
        (np.arange(10), "regress"),
        (np.arange(100) % 2 / 2, "regress"),
    ],
)
def test_task_of_labels(labels, expected):
    assert data_rows.decide_task(np.asarray(labels), "auto", "data")[0] == expected


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        (Message("{n_jobs} must not be 0"), "--jobs must not be 0"),
        (Message("{gamma='mean'}: all rows are equal"), "--gamma mean: all rows are equal"),
        (Message("{}: cut off", "data/n_terms.npz"), "data/n_terms.npz: cut off"),
        ("the machine has no memory left", "the machine has no memory left"),
        (
            Message("{features='exact'} does not support {}.", Setting("loss", "logistic")),
            "--features exact does not support --loss logistic.",
        ),
        (Message("does not support {blocks=}.", {"a": slice(0, 3)}), "does not support --blocks."),
        (
            Message("{normalize='l1'} divides; got {normalize=}", None),
            "--normalization l1 divides; got no --normalization",
        ),
        (Message("pass {overwrite=True}"), "pass --overwrite"),
        (Message("without {overwrite=False}"), "without no --overwrite"),
        (Message("{memory=!s} is too small", "1.0 MiB"), "--memory 1.0 MiB is too small"),
        (Message("at {alpha=:g}", 0.001), "at --alpha 0.001"),
        (Message("Use {selection='auto'}, or {selection=5}."), "Use no --folds, or --folds 5."),
        (Message("{bin_weights=None}, or {bin_weights='learn'}"), "--bin-weights none, or --bin-weights learn"),
        (Message("task {}: {}", 3, ValueError(Message("{n_terms} are few"))), "task 3: --terms are few"),
        (UserWarning(Message("give {alpha}")), "give --alpha"),
        (Message("read it with {} or {}", *readings_of("note")), "read it with --text note or --smiles note"),
        (UserWarning("n_components of another package"), "n_components of another package"),
        # what no flag gives, or no flag takes
        (Message("give {selection='gcv'}"), "give selection='gcv'"),
        (Message("give {n_anchors=5} of {n_anchors}"), "give n_anchors=5 of n_anchors"),
        (Message("got {features=}", FourierFeatures()), "got features=FourierFeatures()"),
        (Message("none of {alpha=!s}", np.array([0.5, 1])), "none of alpha=[0.5 1. ]"),
    ],
)
def test_messages_name_flags(message, expected):
    assert messages.in_flags(message) == expected


def test_every_parameter_with_a_flag_is_named_by_it():
    flags = {messages.flag_of(field.name) for field in dataclasses.fields(Settings)}
    owners = HistogramClassifier, AutomaticFeatures
    parameters = [name for owner in owners for name in inspect.signature(owner).parameters]
    flagged = [name for name in parameters if messages.flag_of(name) in flags]
    assert {"features", "selection", "normalize", "n_terms", "random_state", "kernel"} <= set(flagged)
    for name in flagged:
        flag = messages.flag_of(name)
        assert messages.in_flags(Message("{} is given", Setting(name, 5))) == f"{flag} 5 is given"
        assert messages.in_flags(Message("{} is given", Parameter(name))) == f"{flag} is given"


def test_the_flags_of_all_commands_are_known():
    assert {"--loss", "--words", "--tune-rows", "--tolerance", "--per-class"} <= commands.flags()


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
    assert messages.explain(error) == code
    said = capsys.readouterr().err
    assert said.splitlines()[-1].startswith("chimap: error: ")
    assert ("Please report it" in said) == isinstance(error, KeyError)


def test_notes_are_printed_once_and_errors_always(capsys, monkeypatch):
    monkeypatch.setattr(messages, "noted", set())
    for kind in ("note", "note", "error", "error"):
        messages.say(kind, "x.csv: 3 rows")
    assert [line.split()[1] for line in capsys.readouterr().err.splitlines()] == ["note:", "error:", "error:"]


def test_an_interrupt_says_what_is_there(capsys, monkeypatch):
    monkeypatch.setattr(messages, "written", ["my.model"])
    assert messages.explain_interrupt() == 130
    assert "files already written: my.model" in capsys.readouterr().err


def test_a_parameter_is_told_by_its_flag(capsys):
    import pickle

    from chimap._validation import ParameterError, check_positive

    with pytest.raises(ParameterError, match=r"n_terms must be a positive whole number; got 0\.") as caught:
        check_positive(0, "n_terms", integer=True)
    again = pickle.loads(pickle.dumps(caught.value))
    assert (again.name, again.value, again.wanted) == ("n_terms", 0, "a positive whole number")
    assert messages.explain(caught.value) == 2
    assert capsys.readouterr().err == "chimap: error: --terms must be a positive whole number; got 0.\n"


def test_a_summary_says_where_memory_was_too_small_to_learn_weights_of_bins():
    fitted = SimpleNamespace(learned=SimpleNamespace(race=object()), columns=None)
    raced = SimpleNamespace(bin_weights="learn", fitted=fitted, bin_weights_=[0.5, 1.5])
    assert bin_weights_line(raced) == "bin 1 1.5, bin 0 0.5; 0 of 2 below 0.01"
    unraced = SimpleNamespace(learned=SimpleNamespace(race=None), columns=None)
    skipped = SimpleNamespace(bin_weights="learn", fitted=unraced, bin_weights_=None)
    assert bin_weights_line(skipped) == "equal, as --memory is too small to learn them"
    equal = SimpleNamespace(bin_weights=None, fitted=fitted, bin_weights_=None)
    assert bin_weights_line(equal) is None


def test_how_the_strength_was_chosen():
    race = SimpleNamespace(trials=[SimpleNamespace(n_rows=3000)])
    chosen = SimpleNamespace(describe=lambda: "five folds")
    for words, alpha, raced, selection in (
        ("chosen by the race, on 3,000 rows", "auto", {"alpha": 0.1}, None),
        ("not cross-validated: too few rows, or all targets are equal", "auto", {}, None),
        ("as given", 0.5, {}, None),
        ("five folds", "auto", {"alpha": 0.1}, chosen),
    ):
        fitted = SimpleNamespace(learned=SimpleNamespace(race=race if raced else None, findings=Findings()))
        assert (
            choice_of_alpha(SimpleNamespace(alpha=alpha, chosen_=raced, selection_=selection, fitted=fitted)) == words
        )


def test_a_budget_that_is_given_is_not_called_automatic():
    model = HistogramClassifier("chi2", memory="512MiB", random_state=0).fit(np.eye(30), np.arange(30) % 2)
    assert of_budget(model) == " of 512 MiB"
    assert of_budget(model.set_params(memory="auto")) == " of 512 MiB (automatic: up to half of what is free)"
