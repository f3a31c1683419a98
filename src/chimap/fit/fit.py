"""A fit from beginning to end: sample, features, passes over the rows, solution; and where to go on after a break."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from chimap import _arrays
from chimap._validation import check_width, parse_memory
from chimap.data import Source
from chimap.engines import Engine, Progress, Stopwatch, chunk_rows_within
from chimap.engines.device import DeviceBlockPass, DevicePass, check_device, on_host
from chimap.engines.keeping import KeepingPass, KeptFeatures
from chimap.engines.local import BlockPass, LocalEngine, Pass
from chimap.engines.memory import FIRST_ROWS
from chimap.engines.rows import KeptRows, ReplayedRows
from chimap.features.blocks import BlockMoments, PrincipalFeatures
from chimap.features.rounded import RoundedFeatures
from chimap.fit.checkpoint import Checkpoint, Standing
from chimap.fit.liblinear import keeping_job
from chimap.fit.plan import plan, room_for
from chimap.moments import PCA, FoldMoments


class Fit:
    """One fit of a model to a source.

    unlabelled : rows that join the principal components alone, or None. checkpoint : where to write where the
    fit stands and to go on from, or None. engine : what reads the rows.
    """

    def __init__(
        self,
        model: Any,
        source: Source,
        unlabelled: Source | None,
        checkpoint: Checkpoint | None,
        engine: Engine,
        progress: Progress,
    ):
        self.model, self.source, self.engine, self.progress = model, source, engine, progress
        self.sources = [source] if unlabelled is None else [source, unlabelled]
        self.checkpoint = checkpoint
        self.clock = Stopwatch()
        self.chunk_rows = 0
        self._check()

    def run(self) -> None:
        """Fit; the model has learned when it returns."""
        model = self.model
        standing = self._begin()
        principal = self._principal(standing)
        features = model.features_ if principal is None else PrincipalFeatures(model.features_, principal)
        if model._keeps_features():
            self._learn_kept(features)
        else:
            self._learn(features, standing, principal)
        if isinstance(features, PrincipalFeatures):
            model._coef, model._intercept = features.folded(model._coef, model._intercept)

    def _learn(self, features: Any, standing: Standing | None, principal: Sequence[PCA] | None) -> None:
        """The weights from moments and, for losses other than the square, further passes."""
        model, clock = self.model, self.clock
        work, kept = self._pass(features, standing)
        first = standing.next_row if standing and standing.stage == "learning" else 0
        self.engine.run(
            work,
            self.source,
            self.chunk_rows,
            self.progress,
            "learning",
            first,
            self._reached("learning", 0, principal),
        )
        if isinstance(work, DevicePass):
            work.finish()
        work.moments.release_buffers()
        if model._chooses_components():
            model._solve_components(work.moments, features.borders, clock, self.progress)
        elif model._is_ridge():
            model._solve(work.moments, clock, self.progress)
        else:
            assert isinstance(work, Pass)  # other losses run on this machine
            rows = kept or ReplayedRows(work, self.source, self.chunk_rows, self.engine)
            model._solve_loss(work.moments, rows, clock, self.progress)

    def _learn_kept(self, features: Any) -> None:
        """The weights from the features of all rows, kept by one pass."""
        model = self.model
        if model._is_rounded:
            model.shift_ = np.zeros(features._n_features_out)
            features = RoundedFeatures(features, model.shift_)
        job = keeping_job(model._job(self.source), self.source, self._first_rows, features)
        chunk_rows = chunk_rows_within(job, parse_memory(model.memory))
        del self._first_rows
        kept = KeptFeatures(model._fold_count(self.source.n_rows), model._seed)
        work = KeepingPass(model._prepare, features, model._encode, kept, self.clock, job.is_sparse)
        self.engine.run(
            work, self.source, chunk_rows, self.progress, "learning", 0, self._reached("learning", 0, None)
        )
        model._solve_hinge(kept, self.clock, self.progress)

    def _check(self) -> None:
        check_device(self.model.device)
        if not on_host(self.model.device) and not (
            self.checkpoint is None and isinstance(self.engine, LocalEngine)
        ):
            raise ValueError(
                f"device={self.model.device!r} keeps its moments there: it has no checkpoint and takes engine='local'."
            )
        if self.model._keeps_features() and self.checkpoint is not None:
            raise ValueError("loss='hinge' keeps the features of all rows in memory: it has no checkpoint.")
        if self.model._keeps_features() and not self.engine.can_keep:
            raise ValueError(
                "loss='hinge' keeps the features of all rows in the memory of one process: use engine='local', or "
                "loss='squared_hinge', whose passes run on the workers."
            )
        if len(self.sources) > 1 and self.model.n_principal is None:
            raise ValueError("unlabelled rows join principal components alone: give n_principal.")
        for other in self.sources[1:]:
            check_width(np.empty((0, other.n_features)), self.source.n_features, type(self.model).__name__)

    def _begin(self) -> Standing | None:
        """Learn from the labels and a sample, or take from the checkpoint what was learned from them."""
        model = self.model
        with self.clock("sample"):
            self.progress.stage("sampling", None)
            model._check_settings()
            standing = self.checkpoint.open(model, self.sources) if self.checkpoint else None
            if standing is None:
                model._learn_targets(self.source.labels())
            keep = self.engine.can_keep and self.checkpoint is None
            if not model._keeps_features() or model.n_principal is not None:
                job = replace(model._job(self.source), n_waiting=self.engine.n_waiting)
                self._job, self.chunk_rows = plan(
                    job, parse_memory(model.memory), is_ridge=model._is_ridge(), may_keep=keep
                )
            if standing is not None:
                self.chunk_rows = standing.chunk_rows
                return standing
            sample = model._sample(self.source)
        with self.clock("map"):
            model._fit_features(sample)
        model._learn_features(self.source, sample, self.clock, self.progress)
        self._first_rows = _first(sample)
        return None

    @cached_property
    def _first_rows(self) -> Any:
        """Of the sample, which moments start from; the others are not kept."""
        return _first(self.model._sample(self.source))

    def _principal(self, standing: Standing | None) -> Sequence[PCA] | None:
        """Principal components of the blocks, from a pass of their own over all sources."""
        model = self.model
        if model.n_principal is None:
            return None
        if standing is not None and standing.principal is not None:
            return standing.principal
        if standing is None:
            moments = BlockMoments.about(model.features_, self._first_rows)
        else:
            moments = BlockMoments(standing.moments)
        work = self._component_pass(moments)
        place, first = (0, 0) if standing is None else (standing.place, standing.next_row)
        for i in range(place, len(self.sources)):
            self.engine.run(
                work, self.sources[i], self.chunk_rows, self.progress, "components", first if i == place else 0,
                self._reached("components", i, None),
            )  # fmt: skip
        if isinstance(work, DeviceBlockPass):
            work.finish()
        with self.clock("components"):
            most = int(np.max(model.n_principal))
            return [PCA.of(own, min(most, own.n_features), model.device) for own in work.moments.blocks]

    def _component_pass(self, moments: BlockMoments) -> BlockPass | DeviceBlockPass:
        model = self.model
        if on_host(model.device):
            return BlockPass(model._prepare, model.features_, moments, self.clock)
        return DeviceBlockPass(
            model._prepare, model.features_, moments, self.clock, model._dtype, model.device
        )

    def _pass(self, features: Any, standing: Standing | None) -> tuple[Pass | DevicePass, KeptRows | None]:
        """The pass that learns, with empty moments or those of the checkpoint; and where it keeps the features."""
        model = self.model
        with self.clock("map"):
            if standing is not None and standing.stage == "learning":
                moments = FoldMoments.of(standing.moments, model._dtype, model._is_rounded)
            else:
                moments = model._start(features, self._first_rows, self.source.n_rows)
                del self._first_rows
        kept = room_for(self._job, moments, model._seed, model._dtype)
        return model._pass(features, moments, self.clock, kept and kept.put), kept

    def _reached(self, stage: str, place: int, principal: Sequence[PCA] | None) -> Callable[[Any, int], None]:
        """What to do after each chunk: write the checkpoint if it is time."""

        def reached(work: Any, next_row: int) -> None:
            if self.checkpoint is not None:
                moments = work.moments.folds if stage == "learning" else work.moments.blocks
                standing = Standing(stage, place, next_row, self.chunk_rows, moments, principal)
                with self.clock("checkpoint"):
                    self.checkpoint.reached(self.model, self.sources, standing)

        return reached


def _first(sample: Any) -> Any:
    """A copy of the first rows, so that the sample can be let go."""
    return _arrays.take_rows(sample, slice(FIRST_ROWS)).copy()
