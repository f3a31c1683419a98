"""Fit on a file, and store a description of the fit in the model file."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from chimap._errors import InputError
from chimap._formatting import counted
from chimap._memory import keep_no_large_blocks
from chimap._validation import DataError
from chimap._version import __version__
from chimap.cli import data_rows, flag_values, image_rows, messages, show
from chimap.cli.data_rows import Parts, warn_of_repeats
from chimap.cli.fit_settings import Settings
from chimap.cli.image_rows import ImageSettings
from chimap.cli.options import AS_IT_IS, AT_RANDOM, ForwardOptions, TableOptions, TaskName
from chimap.data.labelled import labels_of, with_numbers
from chimap.data.split import held_out_rows
from chimap.engines import Stopwatch
from chimap.fit.checkpoint import Checkpoint
from chimap.readers.image_names import holds_images

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

    from chimap._types import JSON
    from chimap.data import Source
    from chimap.data.reading import Reading
    from chimap.diagnostics.shortcuts import ShortcutScore
    from chimap.images import ImageHistograms
    from chimap.images.table import PartFolder
    from chimap.reports.linear import LinearRival
    from chimap.reports.score import Score


@dataclasses.dataclass(frozen=True)
class FittedModel:
    """A model, the source it was fitted on, its parts, the reason for its task, and its score on held-out rows or None.

    ``shortcuts`` are what tells the labels besides the counts, and ``linear`` is the best linear model on the held-out
    rows.
    """

    model: BaseEstimator
    source: Source
    parts: Parts
    task_reason: str
    held_out: Score | None
    shortcuts: Sequence[ShortcutScore] = ()
    linear: LinearRival | None = None


def train(
    data: str,
    labels: str | None,
    output: Path,
    settings: Settings,
    *,
    overwrite: bool = False,
    silent: bool = False,
    unlabelled: str | None = None,
    scheduler: str | None = None,
    checkpoint: Path | None = None,
    checkpoint_every: float = 60.0,
    images: ImageSettings | None = None,
    table: TableOptions = AS_IT_IS,
    forward: ForwardOptions = AT_RANDOM,
    reading: Reading | None = None,
    learning_curve: bool = False,
    lines_to_keep: Callable[[FittedModel], Mapping[str, str]] = lambda fitted: {},
    verbose: bool = False,
) -> FittedModel:
    """Fit on a file or on images, score on the held-out rows, and write the model.

    The caller has checked the path ``output``. ``unlabelled`` names rows without labels to include in the principal
    components, ``scheduler`` is the address of a Dask cluster, ``checkpoint`` the file to save progress to and to
    resume from, and ``reading`` makes rows from a column of text or molecules. ``lines_to_keep`` are those that the
    model file holds for 'chimap info', by name. With ``verbose``, notes of the stages are shown.
    """
    keep_no_large_blocks()
    images = images or ImageSettings()
    is_images = holds_images(data)
    settings.check(len(flag_values.listed(images.descriptors)) if is_images else 0)
    if scheduler is not None and settings.engine != "dask":
        raise InputError("--scheduler needs --engine dask: add it, or leave --scheduler out.")
    log = None if checkpoint is None else Checkpoint(checkpoint, checkpoint_every)
    histograms: ImageHistograms | None = None
    described: PartFolder | None = None
    clock = Stopwatch()
    if is_images:
        if {*table.asides().values(), table.covariates, forward.time} != {None}:
            raise InputError(
                "--groups, --split, --time, --sample-weight and --covariates name columns of tables, but DATA holds "
                "images. Write their histograms first: chimap features IMAGES --output FILE."
            )
        image_set, y = image_rows.readable_set(data, labels, images, silent, clock)
        task, reason = _decide(y, image_set.name, settings)
        classes = y if task == "classify" else None
        is_held_out = held_out_rows(y.size, settings.test_fraction, settings.seed, classes)
        _check_classes(y, image_set.name, task, is_held_out)
        source, histograms, described = image_rows.training_rows(
            image_set, images, is_held_out, settings.seed, settings.jobs, silent, clock, checkpoint
        )
        parts = Parts.of(source, settings.test_fraction, settings.seed, classes=classes)
    else:
        images.check_unused(data)
        source = data_rows.open_data(data, labels, table=table, reading=reading, metadata=forward.aside())
        data_rows.weigh(source, table)
        y = labels_of(source)
        task, reason = _decide(y, source.name, settings)
        source = with_numbers(source) if task == "regress" else source
        classes = y if task == "classify" and y.ndim == 1 else None
        parts = Parts.of(source, settings.test_fraction, settings.seed, table, classes, forward.time)
        _check_classes(y, source.name, task, parts.is_held_out, forward.time)
        warn_of_repeats(parts.training, parts.held_out)
    model = settings.estimator(task).set_params(**settings.weighing(task, y))
    if (covariates := data_rows.covariates_of(table.covariates, table.metadata)) is not None:
        model.set_params(covariates=covariates)
    if histograms is not None and len(histograms.blocks_) > 1 and settings.blocks is None:
        model.set_params(blocks=histograms.blocks_)
    try:
        extra_rows = None if unlabelled is None else _unlabelled(unlabelled, data, source, table)
        progress = show.progress(silent, verbose=verbose, later_steps=int(parts.held_out is not None))
        model.fit_source(
            parts.training,
            progress,
            unlabelled=extra_rows,
            checkpoint=log,
            engine=scheduler or settings.engine,
            groups=parts.groups,
            learning_curve=learning_curve,
        )
        about = _remembered(source, parts, labels, settings, task) | {"table": table.given()}
        model.remember(histograms=histograms, stage_seconds=clock.seconds | model.stage_seconds_, training=about)
        shortcuts = _shortcuts(parts, task)
        result = linear = None
        if parts.held_out is not None:
            from chimap.reports.linear import linear_model  # loads what half of the fits do not need
            from chimap.reports.score import score_of

            result = score_of(
                model.fitted, parts.held_out, progress, groups=parts.held_out_groups, scoring=settings.scoring
            )
            linear = linear_model(model, parts.training, parts.held_out, result, parts.held_out_groups)
    except DataError:
        # names the row of the file, not that of a sample or part
        data_rows.check_every_row(source, settings.precision)
        raise
    fitted = FittedModel(model, source, parts, reason, result, shortcuts, linear)
    scored = result and result.scalars() | {"baseline": result.baseline.as_dict()}
    kept = {"held_out": scored, "linear": linear and linear.as_dict(), "lines": dict(lines_to_keep(fitted))}
    model.remember(training=about | kept)
    model.save(output, overwrite=overwrite)
    if log is not None:
        log.remove()
    if described is not None:
        described.remove()
    messages.written.append(str(output))
    return fitted


def _shortcuts(parts: Parts, task: TaskName) -> Sequence[ShortcutScore]:
    """Return what tells the labels of the training rows besides the counts; nothing for images, whose totals do not."""
    from chimap.diagnostics.shortcuts import shortcuts_at_fit

    if parts.training.images is not None:
        return ()
    return shortcuts_at_fit(parts.training, labels_of(parts.training), task == "classify", parts.groups)


def _unlabelled(unlabelled: str, data: str, source: Source, table: TableOptions) -> Source:
    """Return the rows to include in the principal components: another file, or the unlabelled rows of the data."""
    if unlabelled == data and source.unlabelled is not None:
        return source.unlabelled
    return data_rows.open_data(unlabelled, table=dataclasses.replace(table, missing=None), reads_labels=False)


def _decide(y: np.ndarray, name: str, settings: Settings) -> tuple[TaskName, str]:
    """Return the task for the labels ``y``, and the reason for it. Raise an error if the loss is for another task."""
    from chimap.losses import OF_CLASSES

    wanted, is_of_numbers = settings.task, settings.loss not in OF_CLASSES
    why = ""
    if wanted == "auto" and is_of_numbers:
        wanted, why = "regress", f"--loss {settings.loss} is for numbers"
    elif wanted == "auto" and (settings.ordered or settings.label_tree):
        wanted, why = "classify", f"{'--ordered' if settings.ordered else '--label-tree'} is for classes"
    task, reason = data_rows.decide_task(y, wanted, name)
    reason = why or reason
    flag_values.check_loss(settings.loss, task)
    return task, reason


def _check_classes(y: np.ndarray, name: str, task: TaskName, is_held_out: np.ndarray, time: str | None = None) -> None:
    """Raise DataError if there is a single class, or if all rows of a class are held out."""
    if task == "regress" or y.ndim == 2:
        return
    if np.unique(y).size < 2:
        raise DataError(
            f"{name}: one class only: all {y.size:,} labels are {y[0]!s}. A classifier needs at least two classes."
        )

    lost = np.setdiff1d(y, y[~is_held_out])
    if lost.size:
        late = "" if time is None else f" as the latest by {time}"
        remedy = "Use another --seed or a smaller --test-fraction" if time is None else "Use a smaller --test-fraction"
        raise DataError(
            f"{name}: all rows of {counted(lost.size, 'class')}, such as {lost[0]!s}, are held out{late}, so none is "
            f"left to learn from. {remedy}, or remove classes with so few rows."
        )


def _remembered(source: Source, parts: Parts, labels: str | None, settings: Settings, task: TaskName) -> JSON:
    """Return the description of the training that the model file stores, as plain values."""
    from chimap.reports.score import about_labels

    return {
        "file": source.name,
        "labels": labels,
        "columns_aside": [*source.columns_aside],
        "fingerprint": source.fingerprint(),
        "rows_in_file": source.n_rows,
        "split": parts.about,
        "settings": dataclasses.asdict(settings),
        "task": task,
        "version": __version__,
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        **about_labels(labels_of(parts.training), task == "classify"),
    }
