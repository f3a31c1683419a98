"""Kernels learned from the command line: widths, the page, and models that predict like any other."""

from __future__ import annotations

import re

import pytest

import chimap

from .terminal import run_many

pytestmark = pytest.mark.slow

HALVES = ["--blocks", "top=0:32,bottom=32:64"]
LEARN = ["learn-kernel", "digits.npz", *HALVES, "--components", "128", "--tune-components", "64", "--iterations", "4"]

BAD = {
    "overlap": (["--blocks", "top=0:40,bottom=32:64"], r"blocks overlap: column 32 is in 'top' and in 'bottom'"),
    "missing": (["--blocks", "top=0:32"], r"blocks miss 32 of the 64 columns, column 32 first"),
    "kernels": (["--kernel", "exp-chi2,gaussian"], r"--method widths learns one for all blocks"),
    "of widths": (["--method", "multiple"], r"--tune-components is for --method widths; leave it out"),
    "channels": (["--method", "multiple", "--blocks", ""], r"--method multiple needs blocks: name their columns"),
    "no width": (["--kernel", "chi2"], r"use its exponential form, such as 'exp-chi2'"),
    "rows": (["--tune-rows", "0"], r"--tune-rows must be a whole number of at least 1; got 0"),
    "iterations": (["--iterations", "0"], r"--iterations must be a whole number of at least 1; got 0"),
    "share": (["--validation-fraction", "1"], r"--validation-fraction must be above 0 and below 1; got 1"),
    "penalty": (["--width-strength=-1"], r"--width-strength must be a number of at least 0; got -1"),
    "rounds": (["--objective", "gradients", "--width-strength", "1"], r"gradients takes no --width-strength"),
    "page": (["--page", "nowhere/page.html"], r"the folder nowhere does not exist"),
}


def test_an_option_of_widths_has_the_name_of_its_parameter():
    from chimap.cli.commands.learn_kernel import KernelSettings
    from chimap.cli.messages import flag_of

    model = KernelSettings(width_strength=0.25, components="8").estimator("classify")
    assert (model.width_strength, model.width_penalty) == (0.25, "l2")
    assert flag_of("width_strength") == "--width-strength"


def test_widths_a_page_and_predictions(folder):
    [result, silent, rounds] = run_many(
        [
            [*LEARN, "--test-fraction", "0.3", "--output", "learned.model", "--page", "kernel.html"],
            [*LEARN, "--widths", "bin", "--kernel", "gaussian", "--output", "bins.model", "--json"],
            [*LEARN, "--objective", "gradients", "--output", "rounds.model", "--json"],
        ],
        folder,
    )
    assert rounds.code == 0, rounds.err
    assert chimap.load(folder / "rounds.model").objective == "gradients"
    assert result.code == 0, result.err
    assert re.search(r"objective +0\.\d+ to 0\.\d+ in \d iterations", result.out)
    assert re.search(r"(top|bottom): \d+\.\d\dx (narrower|wider)", result.out)
    assert "iteration   0: objective 0." in result.err
    page = (folder / "kernel.html").read_text()
    assert page.count("<svg") == 3
    assert "Learned widths" in page
    assert "Learning curve" in page
    assert "http" not in page.replace("http://www.w3.org", "")
    assert silent.code == 0, silent.err
    found = silent.json
    assert len(found["widths"]) == 64
    assert found["history"][-1]["objective"] < found["history"][0]["objective"]
    evaluated, predicted, described = run_many(
        [
            ["evaluate", "learned.model", "digits.npz", "--json"],
            ["predict", "learned.model", "unlabelled.npz", "--output", "learned.csv"],
            ["info", "learned.model"],
        ],
        folder,
    )
    assert evaluated.code == predicted.code == described.code == 0, (evaluated.err, predicted.err, described.err)
    assert evaluated.json["metrics"]["accuracy"] > 0.85
    assert len((folder / "learned.csv").read_text().split()) == 301
    assert "exp-chi2 of 2 widths" in described.out


def test_channel_weights_and_their_path(folder):
    flags = ["--method", "multiple", "--kernel", "exp-chi2,gaussian", "--components", "32", "--page", "channels.html"]
    [result] = run_many([["learn-kernel", "digits.npz", *HALVES, *flags, "--output", "channels.model"]], folder)
    assert result.code == 0, result.err
    assert re.search(r"channels +top: \d+\.\d %", result.out)
    page = (folder / "channels.html").read_text()
    assert "Channel weights" in page
    assert "Regularisation path" in page
    [evaluated] = run_many([["evaluate", "channels.model", "digits.npz", "--json"]], folder)
    assert evaluated.json["metrics"]["accuracy"] > 0.8


def test_bad_input(folder):
    commands = [[*LEARN, *flags, "--output", "bad.model"] for flags, _ in BAD.values()]
    for name, result in zip(BAD, run_many(commands, folder), strict=True):
        assert result.code == 2, (name, result)
        assert re.search(BAD[name][1], result.err), (name, result.err)
    assert not (folder / "bad.model").exists()
