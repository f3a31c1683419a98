"""From linear outputs to answers: labels, probabilities and sets, or targets and intervals.

What is learned for them comes from outputs of rows that the machine has not seen.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from chimap._errors import InputError
from chimap.data.label_kinds import places_among
from chimap.losses import Loss, Square
from chimap.moments import of_entries
from chimap.recipe.task import HeldOutRows, Task, chosen_threshold, counts_of
from chimap.selection.calibration import Calibration, TaskCalibration
from chimap.selection.conformal import Conformal, Novelty
from chimap.selection.structures import Nominal, Structure


@dataclass(frozen=True, eq=False)
class ClassAnswers:
    """Labels, probabilities and sets of classes, or of several tasks of two classes.

    Parameters
    ----------
    classes : array of shape (classes,)
        The classes, or the numbers of the tasks.
    is_multilabel : bool
        Whether outputs are of several tasks.
    calibration : Calibration or TaskCalibration
        From outputs to probabilities.
    conformal : Conformal or None, default=None
        How improbable the true classes of held-out rows were; None if there were none.
    threshold : float or None, default=None
        The output above which a row belongs to the second of two classes, if one was chosen.
    novelty : Novelty or None, default=None
        How unlike the others left-out rows were; None if there were none.
    structure : Structure, default=Nominal()
        How the classes are related: which is the answer, and which sets there are.
    """

    loss: ClassVar[Loss] = Square()  # says how outputs become predictions: they are compared as they are
    classes: np.ndarray
    is_multilabel: bool
    calibration: Calibration | TaskCalibration
    conformal: Conformal | None = None
    threshold: float | None = None
    novelty: Novelty | None = None
    structure: Structure = field(default_factory=Nominal)

    @classmethod
    def of(cls, held_out: HeldOutRows | None, task: Task, distances: Distances | None = None) -> ClassAnswers:
        """Learn the calibration, the sets and the threshold from outputs for rows that the machine has not seen.

        distances: of left-out rows to the nearest of the others, if the machine keeps rows.
        """
        classes, n_targets, is_multilabel, conformal = task.classes, task.n_targets, task.is_multilabel, None
        assert classes is not None
        counts = counts_of(held_out, task.class_weight, classes)
        calibration: Calibration | TaskCalibration
        if held_out is None:
            calibration = TaskCalibration.unknown(n_targets) if is_multilabel else Calibration(1.0, np.zeros(n_targets))
        elif is_multilabel:
            weights = held_out.weights
            if weights is not None:  # a missing entry has no weight
                weights = np.where(np.isnan(held_out.y), 0.0, of_entries(weights))
            calibration = TaskCalibration.of(held_out.outputs, held_out.y, held_out.counted(weights))
            logs = calibration.logs(held_out.outputs)
            scores = np.where(held_out.y == 1, -logs[:, :, 1], -logs[:, :, 0])
            is_missing = np.isnan(held_out.y)
            place = np.where(is_missing, -1, held_out.y == 1).astype(np.intp)
            scores = np.where(is_missing, np.nan, scores)
            conformal = Conformal(scores, counts, place, held_out.counted_by_class(counts, place))
        else:
            place = places_among(held_out.y, classes)
            calibration = Calibration.of(held_out.outputs, place, held_out.counted(held_out.weights))
            unlike = task.structure.unlikeness(calibration.log(held_out.outputs))
            scores, place = unlike[np.arange(place.size), place, None], place[:, None]
            conformal = Conformal(scores, counts, place, held_out.counted_by_class(counts, place))
        chosen = None
        if task.threshold is not None:
            chosen = chosen_threshold(task.threshold, held_out, classes, counts, task.positive)
        novelty = None
        if held_out is not None and not is_multilabel:
            novelty = novelty_of(-largest(held_out.outputs), counts, distances)
        return cls(classes, is_multilabel, calibration, conformal, chosen, novelty, task.structure)

    def widened(self, factor: float) -> ClassAnswers:
        """Return the same answers: probabilities are fitted to the held-out rows, whatever chose the machine."""
        return self

    def labels(self, outputs: np.ndarray) -> np.ndarray:
        """Return the labels for linear outputs: (n,) or, with several tasks, (n, t).

        Rows without outputs, NaN, have no label: None.
        """
        is_blank = np.isnan(outputs[:, 0])
        if self.is_multilabel:
            labels = (outputs > 0).astype(np.int64)
        elif outputs.shape[1] == 1:
            is_second = outputs[:, 0] > float(self.threshold or 0.0)
            labels = self.classes[is_second.astype(np.intp)]
        else:
            assert isinstance(self.calibration, Calibration)
            labels = self.classes[self.structure.answers(outputs, self.calibration)]
        if is_blank.any():
            labels = labels.astype(object)
            labels[is_blank] = None  # type: ignore[call-overload]
        return labels

    predicted = labels

    def log_probabilities(self, outputs: np.ndarray) -> np.ndarray:
        """Return the log probabilities of the classes, (n, classes), or (n, t, 2) with several tasks."""
        if isinstance(self.calibration, TaskCalibration):
            return self.calibration.logs(outputs)
        return self.calibration.log(outputs)

    def sets(self, outputs: np.ndarray, alpha: float, class_conditional: bool = False) -> np.ndarray:
        """Return which classes each row may have: (n, classes) or, with several tasks, (n, t, 2)."""
        conformal, n_classes = known(self.conformal), 2 if self.is_multilabel else self.classes.size
        threshold = (
            conformal.class_thresholds(alpha, n_classes) if class_conditional else conformal.threshold(alpha)[:, None]
        )
        if self.is_multilabel:
            return -self.log_probabilities(outputs) <= threshold
        return self.structure.closed(self.unlikeness(outputs) <= threshold[0])

    def nodes(self, outputs: np.ndarray, level: float) -> np.ndarray:
        """Return the name (n,) of the deepest node that holds a conformal set of this level; None without outputs.

        Raise ValueError for classes that are in no tree, or if no rows were held out.
        """
        nodes = self.structure.nodes_of(self.sets(outputs, 1 - level))
        nodes[np.isnan(outputs[:, 0])] = None
        return nodes

    def unlikeness(self, outputs: np.ndarray) -> np.ndarray:
        """Return how unusual (n, classes) each class of a single task would be as the truth, by which sets are made."""
        return self.structure.unlikeness(self.log_probabilities(outputs))


@dataclass(frozen=True, eq=False)
class RealAnswers:
    """Targets and intervals of a regression.

    Parameters
    ----------
    conformal : Conformal or None, default=None
        How far outputs of held-out rows were from their targets; None if there were none.
    noise : array of shape (t,) or None, default=None
        Variance of the noise; None where it is not known.
    loss : Loss, default=Square()
        Says how outputs become predictions, and how far targets are from them.
    """

    classes: ClassVar[None] = None
    structure: ClassVar[Structure] = Nominal()
    is_multilabel: ClassVar[bool] = False
    calibration: ClassVar[None] = None
    threshold: ClassVar[None] = None
    conformal: Conformal | None = None
    noise: np.ndarray | None = None
    loss: Loss = field(default_factory=Square)

    @classmethod
    def of(cls, held_out: HeldOutRows | None, loss: Loss | None = None) -> RealAnswers:
        """Learn the noise and the widths of intervals from outputs for rows that the machine has not seen."""
        loss = loss or Square()
        if held_out is None:
            return cls(loss=loss)
        outputs = held_out.outputs
        distances = loss.distance(held_out.y.reshape(outputs.shape[0], -1), loss.predicted(outputs))
        return cls(Conformal(distances, held_out.counted(held_out.weights)), held_out.noise, loss)

    def widened(self, factor: float) -> RealAnswers:
        """Return answers with wider intervals and deviations of the noise, as ``RaceResult.luck`` asks for."""
        if self.conformal is None:
            return self
        conformal = replace(self.conformal, scores=factor * self.conformal.scores)
        return replace(self, conformal=conformal, noise=None if self.noise is None else factor**2 * self.noise)

    def targets(self, outputs: np.ndarray) -> np.ndarray:
        """Return the predictions for linear outputs: (n,) or, with several targets, (n, t)."""
        predicted = self.loss.predicted(outputs)
        return predicted[:, 0] if predicted.shape[1] == 1 else predicted

    predicted = targets

    def intervals(self, outputs: np.ndarray, alpha: float) -> np.ndarray:
        """Return lower and upper ends: (n, 2) or, with several targets, (n, t, 2)."""
        ends = self.loss.interval(self.loss.predicted(outputs), known(self.conformal).threshold(alpha))
        return ends[:, 0] if ends.shape[1] == 1 else ends


def learned_answers(
    task: Task, held_out: HeldOutRows | None, loss: Loss | None, distances: Distances | None = None
) -> ClassAnswers | RealAnswers:
    """Return how outputs become the answers of a task; see ``ClassAnswers.of`` and ``RealAnswers.of``."""
    return RealAnswers.of(held_out, loss) if task.classes is None else ClassAnswers.of(held_out, task, distances)


@dataclass(frozen=True)
class Distances:
    """Distances (m,) of some held-out rows to the nearest of the other rows, and their places (m,) among these."""

    places: np.ndarray
    distances: np.ndarray


def novelty_of(lowness: np.ndarray, counts: np.ndarray | None, distances: Distances | None) -> Novelty:
    """Return how novelty is measured, by held-out rows: how low their largest outputs are, and how far they are."""
    if distances is None:
        return Novelty(lowness[:, None], counts)
    places = distances.places
    weights = None if counts is None else counts[places]
    return Novelty(np.column_stack([lowness[places], distances.distances]), weights)


def named_tasks(answers: ClassAnswers | RealAnswers, n_outputs: int, names: np.ndarray | None) -> list[str] | None:
    """Return the names of several tasks or targets, "task_0" and so on without any; None for a single one."""
    if not answers.is_multilabel if answers.classes is not None else n_outputs == 1:
        return None
    return [f"task_{i}" for i in range(n_outputs)] if names is None else [str(name) for name in names]


def class_scores(outputs: np.ndarray) -> np.ndarray:
    """Return the score of each class, (n, classes), from outputs (n, t): with two classes, the first's is the negative.

    The outputs of several tasks stay as they are.
    """
    return np.hstack([-outputs, outputs]) if outputs.shape[1] == 1 else outputs


def largest(outputs: np.ndarray) -> np.ndarray:
    """Return the largest output (n,) of the classes; the two classes of a single output f have -f and f."""
    return np.abs(outputs[:, 0]) if outputs.shape[1] == 1 else outputs.max(axis=1)


def known(conformal: Conformal | None) -> Conformal:
    """Return what was learned from held-out rows. Raise ValueError if there were none."""
    if conformal is None:
        raise InputError("this model has no outputs of held-out rows: fit it again, with more rows.")
    return conformal
