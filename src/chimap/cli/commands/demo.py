"""``chimap demo``: fit and evaluate on a small data set that comes with scikit-learn."""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from chimap.cli import flag_values, messages, outputs, show
from chimap.cli.commands import evaluate
from chimap.cli.fit_settings import Settings
from chimap.cli.fitted import lines_to_keep

if TYPE_CHECKING:
    import numpy as np

    from chimap._types import Rows
    from chimap.cli import training
    from chimap.data import Source
    from chimap.reports import Evaluation

ABOUT = (
    "1797 scans of handwritten digits; each row holds the amount of ink in 8 x 8 blocks of 16 pixels (UCI Optical "
    "Recognition of Handwritten Digits, test part, as in scikit-learn's load_digits). Written by 'chimap demo'."
)
FILES = ("digits.npz", "digits.model", "digits.html", "plots.csv", "new-plots.csv")
SITES = ("bog", "heath", "meadow", "wood")
PLANTS = (
    "bilberry,bracken,bramble,clover,cotton-grass,cowslip,daisy,dogwood,fescue,foxglove,heather,ivy,knapweed,moss,"
    "nettle,oak,orchid,plantain,primrose,rush,sedge,sorrel,sphagnum,sundew,thyme,vetch,violet,yarrow"
)
N_NEW_PLOTS = 20


def demo(*, output: Path = Path("chimap-demo"), seed: int = 0, overwrite: bool = False, json: bool = False) -> None:
    """Run a complete example on handwritten digits.

    The demo fits and evaluates a model on 1797 scans, and compares it with a linear model and an exact kernel machine.
    It writes digits.npz, digits.model and digits.html to FOLDER, and beside them a table to try other commands on:
    plots.csv, 500 made-up plots of land with counts of plants, and new-plots.csv, whose sites are to be predicted. A
    second run replaces them.

    Parameters
    ----------
    output : FOLDER, common
        Folder to write to; made if it is not there.
    overwrite : common
        Replace files with these names that the demo did not write.

    \b
    Examples:
      chimap demo
      chimap demo --output digits
      chimap demo --output digits --seed 1
    """
    from chimap.cli import training

    began = time.perf_counter()
    flag_values.check_least(seed, "--seed", 0)
    data, model, report, plots, new_plots = (output / name for name in FILES)
    _check_folder(output, overwrite)
    _write_digits(data)
    write_plots(plots, new_plots)
    settings = dataclasses.replace(Settings(), kernel="exp-chi2", test_fraction=0.3, seed=seed)
    fitted = training.train(str(data), None, model, settings, overwrite=True, silent=json, lines_to_keep=lines_to_keep)
    evaluated = evaluate.measure(model, str(data), None, report, overwrite=True, silent=json)
    others = {} if evaluated.linear is None else {evaluated.linear.name: evaluated.linear.score}
    with show.busy("fitting an exact kernel machine of scikit-learn"):
        others |= _exact(fitted)
    seconds = time.perf_counter() - began
    if json:
        show.as_json(
            {
                "command": "demo",
                "folder": str(output),
                "files": [str(output / name) for name in FILES],
                "seconds": seconds,
                "fit_seconds": sum(fitted.model.stage_seconds_.values()),
                "reference_accuracy": others,
                **evaluated.as_dict(),
            }
        )
        return
    show.facts(f"Handwritten digits in {show.duration(seconds)}", _summary(evaluated, fitted, others, report))
    show.next_commands(
        "Next, a table as yours may be (open it in a spreadsheet):",
        f"chimap fit {plots} --labels site --test-fraction 0.2 --output plots.model",
        f"chimap evaluate plots.model {plots} --labels site --output report.html",
    )


def _check_folder(folder: Path, overwrite: bool) -> None:
    """Create the folder if it is missing. Refuse one that is not writable.

    A folder that holds foreign files with the names of the demo's files is refused unless ``overwrite`` is set.
    """
    if not folder.exists():
        outputs.check_folder(folder.absolute().parent, f"--output {folder}")
        folder.mkdir()
    outputs.check_folder(folder, f"--output {folder}")
    existing = [name for name in FILES if (folder / name).exists()]
    if existing and not overwrite and not _is_ours(folder / FILES[0]):
        raise FileExistsError(
            f"--output {folder} holds {', '.join(existing)}, not written by 'chimap demo'; choose another folder, "
            "or add --overwrite to replace them."
        )


def _is_ours(data: Path) -> bool:
    """Return whether the demo wrote this file."""
    from chimap._validation import DataError
    from chimap.readers.io.numpy_files import Archive

    try:
        return "about" in Archive(data).members
    except (DataError, FileNotFoundError):
        return False


def _write_digits(path: Path) -> None:
    import numpy as np
    from sklearn.datasets import load_digits

    from chimap._files import replacing

    X, y = load_digits(return_X_y=True)
    with replacing(path) as unfinished, unfinished.open("wb") as file:
        np.savez_compressed(file, X=X.astype(np.uint8), y=y, about=ABOUT)
    messages.written.append(str(path))


def write_plots(labelled: Path, new: Path) -> None:
    """Write made-up plots of land as CSV: counts of plants, and the site of all but the new ones.

    Each site has three kinds of vegetation, so that no single plant tells it, and plots differ in how many plants were
    counted. Shares of plants are drawn around those of a kind, and counts from the shares.
    """
    import numpy as np

    from chimap._files import replacing

    rng = np.random.default_rng(0)
    kinds = rng.dirichlet(np.full(len(PLANTS.split(",")), 0.5), (len(SITES), 3))
    lines = []
    for site, kind in rng.integers((len(SITES), 3), size=(500 + N_NEW_PLOTS, 2)):
        shares = rng.dirichlet(12 * kinds[site, kind] + 0.05)
        counts = rng.multinomial(20 + rng.geometric(1 / 150), shares)
        lines.append((",".join(map(str, counts)), SITES[site]))
    tables = {
        labelled: [f"{PLANTS},site", *map(",".join, lines[N_NEW_PLOTS:])],
        new: [PLANTS, *(counts for counts, _ in lines[:N_NEW_PLOTS])],
    }
    for path, texts in tables.items():
        with replacing(path) as unfinished:
            unfinished.write_text("\n".join(texts) + "\n", encoding="utf-8")
        messages.written.append(str(path))


def _exact(fitted: training.FittedModel) -> dict[str, float]:
    """Return the held-out accuracy of scikit-learn's machine with the exact kernel, by name, on the same rows."""
    import numpy as np
    from sklearn.svm import SVC

    kernel = fitted.model.kernel_
    assert fitted.parts.held_out is not None
    (train, y_train), (test, y_test) = (_arrays_of(part) for part in (fitted.parts.training, fitted.parts.held_out))
    exact = SVC(kernel="precomputed", C=10.0).fit(kernel(train), y_train)
    return {f"exact {kernel.name} SVM": float(np.mean(exact.predict(kernel(test, train)) == y_test))}


def _arrays_of(part: Source) -> tuple[Rows, np.ndarray | None]:
    chunk = next(iter(part.chunks(part.n_rows)))
    return chunk.X, chunk.y


def _summary(
    evaluated: Evaluation, fitted: training.FittedModel, others: dict[str, float], report: Path
) -> dict[str, str | None]:
    metrics: Any = evaluated.metrics
    low, high = (f"{100 * end:.1f}" for end in metrics.interval)
    model = fitted.model
    if evaluated.baseline is not None:
        others[evaluated.baseline.name] = evaluated.baseline.value
    lines: dict[str, str | None] = {
        "data": f"{model.n_rows_:,} training rows, {metrics.n_rows:,} held out; {model.n_features_in_} bins",
        "held-out accuracy": (
            f"{show.percent(metrics.accuracy)}  chimap, {model.kernel_.name}, {model.feature_coef_.shape[1]:,} "
            f"features ({low} to {high} at 95 % confidence)"
        ),
    }
    return lines | {
        "in comparison": "\n".join(f"{show.percent(value)}  {name}" for name, value in others.items()),
        "time to fit": show.stages(fitted.model.stage_seconds_),
        "peak memory": show.size(show.peak_memory()),
        "report": str(report),
    }
