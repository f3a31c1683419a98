"""Checkpoints: the state of a fit, written at intervals, so that an interrupted fit can be resumed.

``fit.fit`` opens the checkpoint before it draws the sample, and calls ``reached`` after each chunk of a pass.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from chimap import _files
from chimap._messages import Message, Parameter, joined
from chimap._types import JSON, Parameters
from chimap._validation import AUTO, DataError, check_positive
from chimap._version import __version__
from chimap.data import Source
from chimap.data.rows import digest
from chimap.explain.background import RowStatistics
from chimap.features.principal import PCA
from chimap.machines.method import LearnedWidths, Method
from chimap.model_files import model_file
from chimap.models.race_result import RaceResult
from chimap.moments import Moments
from chimap.normalizations import Normalization
from chimap.recipe import Recipe
from chimap.recipe.codecs import Codec
from chimap.solvers.base import Swept

# Settings that do not distinguish fits: of the computing, which may change when a fit is resumed, and what follows from
# others. The seed is taken from the file.
_FREE = (
    "n_jobs",
    "verbose",
    "seed",
    "learner",
    "keeps_posterior",
    "is_classifier",
    "raced",
    "resolved",
    "covariate_columns",
    "weighed_rows",
)


@dataclass(frozen=True)
class SavedState:
    """The state to resume from.

    Parameters
    ----------
    stage : str
        The pass: "components" or "learning"; "blocks" of a sweep.
    place : int
        Index of the source that this pass is reading.
    next_row : int
        First row of that source that the moments do not contain yet; of a sweep, how many rows it has learned from.
    chunk_rows : int
        Rows of a chunk.
    moments : list of Moments
        Moments of each block ("components") or of each fold ("learning"); none of a sweep.
    principal : list of PCA or None
        Components that the first pass found, or None.
    fitted : FittedOnSample
        What was learned before the rows were added up.
    swept : Swept or None, default=None
        Where a sweep over blocks of rows stands. The rows are read again.
    digest : str, default=""
        Digest of all rows of a sweep.
    """

    stage: str
    place: int
    next_row: int
    chunk_rows: int
    moments: Sequence[Moments]
    principal: Sequence[PCA] | None
    fitted: FittedOnSample
    swept: Swept | None = None
    digest: str = ""

    def check_rows(self, digest: str, name: str) -> None:
        """Raise DataError if the rows that were read again from the source ``name`` have another digest."""
        if digest != self.digest:
            raise DataError(
                f"{name}: the rows have changed since the checkpoint was written. Resume with the rows as they were, "
                "or remove the file to begin anew."
            )


@dataclass(frozen=True)
class Choice:
    """What a race chose before the fit. A resumed fit does not race again: with another seed it would choose otherwise.

    Parameters
    ----------
    seed : int
        Seed of the fit.
    chosen : dict
        The settings that the race chose, by parameter.
    memory : str or int
        The memory budget.
    race : RaceResult or None
        Its result; None without a race.
    """

    seed: int
    chosen: Parameters
    memory: str | int
    race: RaceResult | None


Known = tuple[Recipe, RaceResult | None]
"""A recipe with what a race has chosen, and the race that it leads; None without one."""


@contextmanager
def resumable(
    checkpoint: Checkpoint | str | Path | None, asked: Recipe
) -> Iterator[tuple[Checkpoint | None, Known | None]]:
    """Yield the checkpoint of a fit, and what it knows of the race; the file of a path is removed at the end.

    asked: the settings. A race is known where these were asked for before.
    """
    log = Checkpoint(checkpoint) if isinstance(checkpoint, str | Path) else checkpoint
    choice, known = None if log is None else log.choice(asked), None
    if choice is not None:
        known = replace(asked, seed=choice.seed, memory=choice.memory).with_raced(**choice.chosen), choice.race
    yield log, known
    if log is not None and log is not checkpoint:
        log.remove()


class Checkpoint:
    """A file that a fit writes at intervals, and resumes from if it exists.

    It holds the settings, what a race chose, the fitted features, the moments so far and the next row; of a machine
    that is solved block by block of rows, the weights so far. Each version is written to another file that then
    replaces the old one, so the file is complete at every moment: a process that is killed loses only the work since
    the last version. A resumed fit gives the same model, bit for bit, as an uninterrupted one.

    Parameters
    ----------
    path : str or Path
        The file.
    seconds : float, default=60.0
        Time between two versions.
    """

    def __init__(self, path: str | Path, seconds: float = 60.0):
        check_positive(seconds, "seconds (between checkpoints)")
        self.path, self.seconds = Path(path), float(seconds)
        self._last = time.monotonic()
        self._choice = Choice(0, {}, AUTO, None)
        self._asked: JSON = {}

    def choice(self, asked: Recipe) -> Choice | None:
        """Return what a race chose where these settings were asked for; None if there is no file, or another's."""
        if not self.path.exists():
            return None
        meta, arrays = _files.read_tensors(self.path, "checkpoint")
        with model_file.damage_as_data_error(self.path):
            if meta["version"] != __version__ or meta["asked"] != _settings(asked):
                return None
            return Choice(**model_file.decode(meta["choice"], arrays))

    def keep(self, asked: Recipe, choice: Choice) -> None:
        """Write, with every version from now on, what a race chose where these settings were asked for."""
        self._asked, self._choice = _settings(asked), choice

    def open(self, method: Method, sources: Sequence[Source]) -> SavedState | None:
        """Return the state of the fit of this method on these sources, or None if there is no file.

        Raises
        ------
        DataError
            If the checkpoint has other settings, data or version; the message names what differs.
        """
        if not self.path.exists():
            _files.check_writable(self.path)
            return None
        meta, arrays = _files.read_tensors(self.path, "checkpoint")
        with model_file.damage_as_data_error(self.path):
            differing = self._differing(meta, method, sources)
        if differing:
            raise DataError(
                Message(
                    "{} is the checkpoint of another fit: {}. Resume with the same data and settings, remove the file "
                    "to begin anew, or name another file.",
                    self.path,
                    joined("; ", differing[:3]),
                )
            )
        with model_file.damage_as_data_error(self.path):
            state = model_file.decode(meta["state"], arrays)
            moments = [_moments(state_of_moments, arrays, i) for i, state_of_moments in enumerate(meta["moments"])]
            learned = FittedOnSample(**{field.name: state[field.name] for field in fields(FittedOnSample)})
            saved = SavedState(
                meta["stage"],
                meta["place"],
                meta["next_row"],
                meta["chunk_rows"],
                moments,
                state["principal"],
                learned,
                state["swept"],
                meta["digest"],
            )
        return saved

    def reached(self, method: Method, sources: Sequence[Source], saved: SavedState) -> None:
        """Write the state if the interval has passed; if the disk is full, warn and keep the last version."""
        if time.monotonic() - self._last < self.seconds:
            return
        try:
            self.write(method, sources, saved)
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error}); the fit continues, and the last complete "
                "version is kept. Make room on the disk.",
                stacklevel=2,
            )
        self._last = time.monotonic()

    def write(self, method: Method, sources: Sequence[Source], saved: SavedState) -> None:
        """Write the state."""
        arrays: dict[str, np.ndarray] = {}
        learned = {field.name: getattr(saved.fitted, field.name) for field in fields(FittedOnSample)}
        solved = {"principal": saved.principal, "swept": saved.swept}
        state = model_file.encode(learned | solved, "state", arrays)
        meta = {
            "version": __version__,
            "settings": _settings(method.recipe),
            "asked": self._asked,
            "choice": model_file.encode(vars(self._choice), "choice", arrays),
            "sources": [_fingerprint(source) for source in sources],
            "stage": saved.stage,
            "place": saved.place,
            "next_row": saved.next_row,
            "chunk_rows": saved.chunk_rows,
            "moments": [_plain(fold_moments, arrays, i) for i, fold_moments in enumerate(saved.moments)],
            "state": state,
            "digest": saved.digest,
        }
        _files.write_tensors(self.path, "checkpoint", meta, arrays)

    def remove(self) -> None:
        """Remove the file, after the fit has succeeded."""
        self.path.unlink(missing_ok=True)

    def _differing(self, meta: JSON, method: Method, sources: Sequence[Source]) -> list[str]:
        """Return what differs between the file and this fit, a phrase for each difference."""
        differing: list[str] = []
        if meta["version"] != __version__:
            differing.append(f"it was written by chimap {meta['version']}, and this is {__version__}")
        differing += [
            Message("{} was {!r} and is {!r}", Parameter(name), before, now)
            for name, before, now in _differing_entries(meta["settings"], _settings(method.recipe))
        ]
        if len(meta["sources"]) != len(sources):
            differing.append(f"it has {len(meta['sources'])} source(s), and this fit has {len(sources)}")
        for before, source in zip(meta["sources"], sources, strict=False):
            differing += [
                f"source {source.name}: {name} was {then!r} and is {now!r}"
                for name, then, now in _differing_entries(before, _fingerprint(source))
            ]
        return differing


def _fingerprint(source: Source) -> JSON:
    """Return what identifies the rows of a source and their weights."""
    weights = {} if source.weights is None else {"weights": digest(source.weights)}
    return source.fingerprint() | weights


def _settings(recipe: Recipe) -> JSON:
    """Return the settings of a recipe and of its learner, if any, as JSON, arrays as lists."""
    settings, learner = (
        {f.name: getattr(recipe, f.name) for f in fields(recipe) if f.name not in _FREE},
        recipe.learner,
    )
    if learner is not None:
        settings |= {f.name: getattr(learner, f.name) for f in fields(learner)}  # type: ignore[arg-type]
    arrays: dict[str, np.ndarray] = {}
    encoded = {name: model_file.encode(value, name, arrays) for name, value in settings.items()}
    return dict(_files.plain_json(encoded | {"arrays": {name: array.tolist() for name, array in arrays.items()}}))


def _differing_entries(before: JSON, now: JSON) -> list[tuple[str, object, object]]:
    """Return the name and both values of every entry that differs."""
    now = _files.plain_json(now)
    names = [*before, *(name for name in now if name not in before)]
    return [(name, before.get(name), now.get(name)) for name in names if before.get(name) != now.get(name)]


def _plain(moments: Moments, arrays: dict[str, np.ndarray], i: int) -> JSON:
    """Return the moments as JSON, and add their arrays to ``arrays`` under names with the number ``i``."""
    meta, state = moments.state()
    arrays.update({f"moments{i}.{name}": array for name, array in state.items()})
    return meta


def _moments(meta: JSON, arrays: dict[str, np.ndarray], i: int) -> Moments:
    """Return the moments with the number ``i`` from what ``_plain`` has written."""
    prefix = f"moments{i}."
    state = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return Moments.of_state(meta, state)


@dataclass(frozen=True)
class FittedOnSample:
    """What is learned before the rows are added up.

    Parameters
    ----------
    seed : int
        Seed of the fit.
    codec : Codec
        Encodes the targets.
    features : FittedFeatures
        The fitted features.
    normalization : Normalization or None
        The fitted normalisation of the rows.
    rows : RowStatistics
        Of the sample as prepared.
    width_search : LearnedWidths or None, default=None
        The widths that were learned, if any.
    """

    seed: int
    codec: Codec
    features: Any
    normalization: Normalization | None
    rows: RowStatistics
    width_search: LearnedWidths | None = None
