"""Checkpoints: where a fit stands, written now and then, so that it can go on after whatever ended it."""

from __future__ import annotations

import time
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path

import numpy as np

from chimap import _files
from chimap._types import JSON
from chimap._validation import DataError, check_positive
from chimap._version import __version__
from chimap.data import Source
from chimap.data.rows import digest
from chimap.fit.recipe import Recipe
from chimap.fit.result import Known
from chimap.model_files import model_file
from chimap.moments import PCA, Moments

_FREE = ("n_jobs", "verbose")  # settings that change nothing but how fast it goes


@dataclass(frozen=True)
class Standing:
    """Where a fit stands.

    stage: "components" or "learning". place: which of the sources is being read in that stage. next_row: the
    first row of it that the moments have not seen. chunk_rows: rows a chunk. moments: of the blocks, or of the
    folds. principal: the components that the first stage found, or None. known: what was learned
    before the rows were added up.
    """

    stage: str
    place: int
    next_row: int
    chunk_rows: int
    moments: Sequence[Moments]
    principal: Sequence[PCA] | None
    known: Known


class Checkpoint:
    """A file that a fit writes now and then, and goes on from where it finds it.

    It holds the settings, what the features have learned, the moments so far and the next row. It is written beside and
    then renamed, so that it is whole at every moment: a process that is killed loses what it did since the last time. A
    fit that goes on gives the same model, to the bit, as one that was never interrupted.

    path: the file. seconds: between two writings.
    """

    def __init__(self, path: str | Path, seconds: float = 60.0):
        check_positive(seconds, "seconds (between checkpoints)")
        self.path, self.seconds = Path(path), float(seconds)
        self._last = time.monotonic()

    def open(self, recipe: Recipe, sources: Sequence[Source]) -> Standing | None:
        """Where the fit of this recipe on these sources stood; None where there is no file.

        Raises DataError for the checkpoint of other settings, data or version, naming what differs.
        """
        if not self.path.exists():
            _files.check_writable(self.path)
            return None
        meta, arrays = _files.read_tensors(self.path, "checkpoint")
        with model_file.checked(self.path):
            told = self._differing(meta, recipe, sources)
        if told:
            raise DataError(
                f"{self.path} is the checkpoint of another fit: {'; '.join(told[:3])}. Go on with the same data and "
                "settings, remove the file to begin anew, or name another."
            )
        with model_file.checked(self.path):
            state = model_file.decode(meta["state"], arrays)
            moments = [_moments(part, arrays, i) for i, part in enumerate(meta["moments"])]
            known = Known(**{one.name: state[one.name] for one in fields(Known)})
            standing = Standing(
                meta["stage"],
                meta["place"],
                meta["next_row"],
                meta["chunk_rows"],
                moments,
                state["principal"],
                known,
            )
        return standing

    def reached(self, recipe: Recipe, sources: Sequence[Source], standing: Standing) -> None:
        """Write where the fit stands, if it is time. A disk that is full is warned of, and the last file kept."""
        if time.monotonic() - self._last < self.seconds:
            return
        try:
            self.write(recipe, sources, standing)
        except OSError as error:
            warnings.warn(
                f"the checkpoint {self.path} could not be written ({error}); the fit goes on, and the last one that "
                "could be is kept. Make room on the disk.", stacklevel=2,
            )  # fmt: skip
        self._last = time.monotonic()

    def write(self, recipe: Recipe, sources: Sequence[Source], standing: Standing) -> None:
        """Write where the fit stands."""
        arrays: dict[str, np.ndarray] = {}
        known = {one.name: getattr(standing.known, one.name) for one in fields(Known)}
        state = model_file.encode(known | {"principal": standing.principal}, "state", arrays)
        meta = {
            "version": __version__,
            "settings": _settings(recipe),
            "sources": [_fingerprint(source) for source in sources],
            "stage": standing.stage,
            "place": standing.place,
            "next_row": standing.next_row,
            "chunk_rows": standing.chunk_rows,
            "moments": [_plain(own, arrays, i) for i, own in enumerate(standing.moments)],
            "state": state,
        }
        _files.write_tensors(self.path, "checkpoint", meta, arrays)

    def remove(self) -> None:
        """Remove the file: the fit has ended well."""
        self.path.unlink(missing_ok=True)

    def _differing(self, meta: JSON, recipe: Recipe, sources: Sequence[Source]) -> list[str]:
        told = []
        if meta["version"] != __version__:
            told.append(f"it was written by chimap {meta['version']}, and this is {__version__}")
        told += _differences("", meta["settings"], _settings(recipe))
        if len(meta["sources"]) != len(sources):
            told.append(f"it was of {len(meta['sources'])} source(s), and there are {len(sources)}")
        for before, source in zip(meta["sources"], sources, strict=False):
            told += _differences(f"of {source.name}: ", before, _fingerprint(source))
        return told


def _fingerprint(source: Source) -> JSON:
    """Of the rows and of their weights."""
    weights = {} if source.weights is None else {"weights": digest(source.weights)}
    return source.fingerprint() | weights


def _settings(recipe: Recipe) -> JSON:
    """The parameters of the estimator as JSON holds them; arrays by their content."""
    arrays: dict[str, np.ndarray] = {}
    given = {name: value for name, value in recipe.given.items() if name not in _FREE}
    settings = {name: model_file.encode(value, name, arrays) for name, value in given.items()}
    settings["arrays"] = {name: array.tolist() for name, array in arrays.items()}
    return {"estimator": recipe.estimator, **_files.plain_json(settings)}


def _differences(where: str, before: JSON, now: JSON) -> list[str]:
    """'kernel was "chi2" and is "exp-chi2"', for every entry that differs."""
    now = _files.plain_json(now)
    names = [*before, *(name for name in now if name not in before)]
    return [
        f"{where}{name} was {before.get(name)!r} and is {now.get(name)!r}"
        for name in names
        if before.get(name) != now.get(name)
    ]


def _plain(moments: Moments, arrays: dict[str, np.ndarray], i: int) -> JSON:
    meta, own = moments.state()
    arrays.update({f"moments{i}.{name}": array for name, array in own.items()})
    return meta


def _moments(meta: JSON, arrays: dict[str, np.ndarray], i: int) -> Moments:
    prefix = f"moments{i}."
    own = {name.removeprefix(prefix): array for name, array in arrays.items() if name.startswith(prefix)}
    return Moments.of_state(meta, own)
