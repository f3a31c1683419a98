"""An exact machine again with few rows, which learn its outputs.

A prediction of an exact machine takes a product with all n rows that it keeps. With m landmarks v in their place,

    f(x) = sum_j K(x, v_j) w_j + b   minimises   sum_i |f(x_i) - g_i|^2 + alpha w'K_vv w

over its rows, at most k = 8 m of them, where g_i are the outputs of the machine. With K_vv = R'R this is ridge on
z(x) = R^-T (K(x, v_1), .., K(x, v_m)), whose strength generalised cross-validation chooses. The first of these features
are those of the first landmarks, so that the same sums serve machines of fewer landmarks. They take k m (p + m)
multiply-adds for p mapped bins, after k n p for the outputs. Landmarks are centres of k-means on the mapped rows; a
kernel without a map, or a sum over blocks, has rows themselves.

A fifth of the rows, up to 3000, makes no landmark and is left out of the ridge one by one, so that their outputs are
those of rows to come. Probabilities, sets and intervals are learned from them again. The model does not hold their
labels: these are drawn as the exact machine has them, from its probabilities or from the ends of its intervals, by
outputs of machines that had not seen the row where the fit has left them.

Source: Hinton, Vinyals and Dean, Distilling the knowledge in a neural network (2015); Burges, Simplified support vector
decision rules (1996).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays, _cholesky
from chimap._errors import InputError
from chimap._messages import Message
from chimap._threads import threads
from chimap._validation import check_positive
from chimap.engines import Progress
from chimap.features.exact import RowKernel
from chimap.features.nearest import FAR, LEFT_OUT_ROWS, empty_rows
from chimap.models.answers import ClassAnswers, Distances, RealAnswers, learned_answers
from chimap.models.model import Model
from chimap.moments import FoldMoments
from chimap.recipe.task import HeldOutRows
from chimap.selection.base import OpenSettings
from chimap.selection.choose import choose
from chimap.solvers.findings import Findings
from chimap.solvers.from_moments import RidgeProblem
from chimap.solvers.held_out import HeldOut, ValidationRows

_ROWS = 1024  # rows whose features are in memory together
_ANSWERED_ROWS, _ANSWERED_SHARE = 3000, 0.2  # rows that are left out: as many as calibrate well
_DRAWS = 10  # labels of such a row: with one alone, sure answers would look like certain ones
_ROUNDS = 3  # of k-means: the first gain the most
_ROWS_A_LANDMARK = 8  # rows to learn from: more hardly add to what so many landmarks can tell
_JITTER = 1e-6  # of the mean diagonal of the landmarks' kernel, below which float32 values say nothing
_TIMED_ROWS, _TIMES = 256, 3


@dataclass(frozen=True, eq=False)
class Compressed:
    """An exact machine with few rows, and how its answers for rows that were left out compare with those of all rows.

    Parameters
    ----------
    model : Model
        The model.
    n_rows : int
        Rows that it keeps.
    agreement : float
        The share of equal answers; of real targets, R^2 of its outputs as those of the exact machine.
    microseconds : float
        Time of the products of a row with those that are kept, measured.
    """

    model: Model
    n_rows: int
    agreement: float
    microseconds: float


def compress(model: Model, n_rows: int, seed: int = 0) -> Model:
    """Return the exact machine of a model with few rows, which have learned its outputs.

    A prediction then takes a product with ``n_rows`` rows in place of all. Probabilities, sets and intervals are
    learned again; deviations (``return_std``) are not kept.

    Parameters
    ----------
    n_rows : int
        Rows to keep, at most four fifths of those of the machine.
    seed : int, default=0
        Seed of the choice of the rows, and of the labels by which probabilities are learned.

    Raises
    ------
    ValueError
        If the model is no exact machine, or has too few rows.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from chimap import HistogramClassifier
    >>> X, y = load_digits(return_X_y=True)
    >>> model = HistogramClassifier("exp-chi2", features="exact", alpha=0.1).fit(X[:1200], y[:1200])
    >>> compress(model.fitted, 300).describe()["features"]
    'values of the kernel with 300 rows'
    """
    return compressions(model, [n_rows], seed)[0].model


def compressions(
    model: Model, sizes: Sequence[int], seed: int = 0, progress: Progress | None = None
) -> list[Compressed]:
    """Return the exact machine of a model with few rows, for each number of them, ascending; see ``compress``."""
    teacher, rng, progress = Teacher.of(model), np.random.default_rng(seed), progress or Progress()
    for size in sizes:
        check_positive(size, "n_rows", integer=True)
    others = teacher.others(_ROWS_A_LANDMARK * max(sizes), rng)
    with threads(model.recipe.n_jobs), progress:
        learned = teacher.kernel.take(others)
        landmarks = learned.centres(teacher.different(learned, max(sizes), rng), _ROUNDS)
        pupil = Pupil.of(teacher, landmarks, np.union1d(others, teacher.answered), progress)
        return [pupil.compressed(size, np.random.default_rng([seed, size])) for size in sizes]


@dataclass(frozen=True, eq=False)
class Teacher:
    """The exact machine that is learned from.

    Parameters
    ----------
    model : Model
        Its model.
    kernel : RowKernel
        The kernel and the rows that it keeps.
    answered : array of shape (k,)
        Places of the rows that are left out.
    unseen : array of shape (k, t) or None
        Their outputs by machines that had not seen them, where the model holds these.
    """

    model: Model
    kernel: RowKernel
    answered: np.ndarray
    unseen: np.ndarray | None

    @classmethod
    def of(cls, model: Model) -> Teacher:
        """Return the exact machine of a model. Raise InputError for other models."""
        kernel, found = model.features.row_kernel, model.learned.findings
        if kernel is None:
            raise InputError(
                Message(
                    "this model is no exact machine: it has {}, and keeps no rows that could be fewer. Compress a "
                    "model of {features='exact'}, or fit again with a smaller {n_components}.",
                    model.features.describe(),
                )
            )
        n, unseen = kernel._n_features_out, None
        places = np.arange(n)
        if found.held_out is not None and found.row_numbers is not None and found.held_out.shape[0] == n:
            unseen = found.held_out[np.argsort(np.argsort(found.row_numbers))]
            places = np.flatnonzero(~np.isnan(unseen).any(axis=1))
        answered = places[-min(_ANSWERED_ROWS, int(_ANSWERED_SHARE * n)) :]
        return cls(model, kernel, answered, None if unseen is None else unseen[answered])

    def others(self, most: int, rng: np.random.Generator) -> np.ndarray:
        """Return places of rows that are not left out: all of them, or so many at random, ascending."""
        places = np.setdiff1d(np.arange(self.kernel._n_features_out), self.answered)
        return np.sort(rng.permutation(places)[:most])

    def different(self, rows: RowKernel, n_rows: int, rng: np.random.Generator) -> np.ndarray:
        """Return places of different rows at random, (n_rows,). Raise ValueError if there are not so many."""
        n = rows._n_features_out
        different = np.flatnonzero(rows.first_equal() == np.arange(n))
        if n_rows > different.size:
            raise InputError(
                Message(
                    "{n_rows=} is too many: the machine keeps {:,} rows, of which {:,} differ and are not needed to "
                    "learn probabilities from. Give fewer.",
                    n_rows,
                    self.kernel._n_features_out,
                    different.size,
                )
            )
        return rng.permutation(different)[:n_rows]

    def outputs(self, rows: RowKernel) -> np.ndarray:
        """Return outputs (m, t) of some of its own rows."""
        weights = self.model.merged[1]
        out = np.zeros((rows._n_features_out, weights.shape[1]))
        self.kernel.add_outputs_of(rows, 0, weights, out)
        return out + self.model.intercept

    def drawn(self, outputs: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """Return labels or targets of rows with these outputs, as the machine expects them: (k,) or (k, t)."""
        answers = self.model.answers
        if isinstance(answers, RealAnswers):
            assert answers.conformal is not None
            scores, weights = answers.conformal.scores, answers.conformal.weights
            shares = None if weights is None else weights / weights.sum()
            widths = scores[rng.choice(scores.shape[0], outputs.shape[0], p=shares)]
            ends = answers.loss.interval(answers.loss.predicted(outputs), widths)
            return np.where(rng.random(widths.shape) < 0.5, ends[:, :, 0], ends[:, :, 1])
        probabilities = np.exp(answers.log_probabilities(outputs))
        if answers.is_multilabel:
            return (rng.random(outputs.shape) < probabilities[:, :, 1]).astype(np.float64)
        places = (probabilities.cumsum(axis=1) < rng.random((outputs.shape[0], 1))).sum(axis=1)
        return np.asarray(answers.classes[np.minimum(places, answers.classes.size - 1)])


@dataclass(frozen=True, eq=False)
class Pupil:
    """Landmarks that learn the outputs of an exact machine.

    Parameters
    ----------
    teacher : Teacher
        The machine.
    landmarks : RowKernel
        The same kernel with the landmarks.
    triangle : array of shape (m, m)
        R^-1, where K_vv = R'R.
    moments : FoldMoments
        Sums over the rows of features z(x) and outputs.
    answered : ValidationRows
        Features and outputs of the rows that are left out.
    """

    teacher: Teacher
    landmarks: RowKernel
    triangle: np.ndarray
    moments: FoldMoments
    answered: ValidationRows

    @classmethod
    def of(cls, teacher: Teacher, landmarks: RowKernel, learned: np.ndarray, progress: Progress) -> Pupil:
        """Pass over the rows of the machine at some places, those that are left out among them."""
        dtype, triangle = teacher.model.recipe.dtype, whitening(landmarks)
        weights = triangle.astype(dtype)

        def pieces(places: np.ndarray) -> Iterator[tuple[np.ndarray, np.ndarray]]:
            for part in _arrays.slices(places.size, _ROWS):
                rows = teacher.kernel.take(places[part])
                Z = np.zeros((rows._n_features_out, weights.shape[1]))
                landmarks.add_outputs_of(rows, 0, weights, Z)
                yield Z, teacher.outputs(rows)

        shift, target_shift = (some.mean(axis=0) for some in next(pieces(learned)))
        moments = FoldMoments(1, weights.shape[1], teacher.model.n_outputs, shift, target_shift, dtype)
        progress.stage("compressing", learned.size)
        with moments.collecting():
            for Z, Y in pieces(learned):
                moments.add_shifted(0, np.ascontiguousarray(Z - shift, dtype), Y - target_shift)
                progress.advance(Z.shape[0])
        parts = [(np.asarray(Z - shift, dtype), Y - target_shift) for Z, Y in pieces(teacher.answered)]
        Z, Y = (np.concatenate(side) for side in zip(*parts, strict=True))
        answered = ValidationRows(teacher.answered, Z, Y, np.zeros(Z.shape[0], np.intp))
        return cls(teacher, landmarks, triangle, moments, answered)

    def compressed(self, size: int, rng: np.random.Generator) -> Compressed:
        """Return the machine of the first landmarks."""
        leading, landmarks = np.arange(size), self.landmarks.take(slice(size))
        moments = FoldMoments.of([fold.of_features(leading) for fold in self.moments.folds], self.moments.dtype)
        answered = replace(self.answered, Z=np.ascontiguousarray(self.answered.Z[:, :size]))
        chosen = choose(RidgeProblem(moments), OpenSettings(None), answered)
        coef = self.triangle[:size, :size] @ chosen.solution.coef
        model = self.teacher.model
        small = replace(
            model,
            features=model.features.with_row_kernel(landmarks),
            coef=coef,
            intercept=chosen.solution.intercept,
            answers=self.answers(chosen.held_out, landmarks, rng),
            posterior=None,
            # what the exact machine scored is no score of this one
            learned=replace(model.learned, findings=Findings(), selection=None, learning_curve=None, race=None),
        )
        weights = small.merged[1]
        return Compressed(small, size, self.agreement(chosen.held_out), microseconds(landmarks, self.teacher, weights))

    @property
    def expected(self) -> np.ndarray:
        """Outputs of the exact machine for the rows that are left out, as unseen as the model has them."""
        unseen = self.teacher.unseen
        return self.answered.Y + self.moments.target_shift if unseen is None else unseen

    def answers(
        self, held_out: HeldOut | None, landmarks: RowKernel, rng: np.random.Generator
    ) -> ClassAnswers | RealAnswers:
        """Return answers that are learned from outputs of rows that were left out."""
        model = self.teacher.model
        if held_out is None or model.answers.conformal is None or self.teacher.unseen is None:
            return model.answers  # outputs for rows that the machine has learned would be overconfident
        noise = None
        if isinstance(model.answers, RealAnswers) and model.answers.noise is not None:
            noise = model.answers.noise + np.square(held_out.outputs - self.expected).mean(axis=0)
        places = np.repeat(np.arange(held_out.rows.size), _DRAWS)
        labels = self.teacher.drawn(self.expected[places], rng)
        rows = HeldOutRows(held_out.outputs[places], labels, noise=noise, groups=places)
        task = replace(model.task, threshold=None, class_weight=None)
        answers = learned_answers(task, rows, model.learned.loss, self.distances(landmarks))
        if isinstance(answers, ClassAnswers) and isinstance(model.answers, ClassAnswers):
            return replace(answers, threshold=model.answers.threshold)  # it is one of outputs, which are the same
        return answers

    def distances(self, landmarks: RowKernel) -> Distances | None:
        """Return how far some rows that were left out are from the nearest landmark, if the model compares these."""
        answers, kernel, dtype = self.teacher.model.answers, self.teacher.kernel, self.moments.dtype
        if not isinstance(answers, ClassAnswers) or answers.novelty is None or not answers.novelty.has_distances:
            return None
        some = kernel.take(self.teacher.answered[:LEFT_OUT_ROWS])
        values = np.zeros((some._n_features_out, landmarks._n_features_out))
        landmarks.add_outputs_of(some, 0, np.eye(landmarks._n_features_out, dtype=dtype), values)
        squares = some.diagonal()[:, None] + landmarks.diagonal() - 2 * values
        is_empty, is_kept_empty = (
            empty_rows(self.teacher.model.features.with_row_kernel(rows), dtype) for rows in (some, landmarks)
        )
        squares[:, is_kept_empty] = np.inf
        found = np.sqrt(squares.min(axis=1).clip(0))
        found[is_empty | ~np.isfinite(found)] = FAR
        told = np.flatnonzero(found < FAR)
        return Distances(told * _DRAWS, found[told])

    def agreement(self, held_out: HeldOut | None) -> float:
        """Return the share of answers for rows that were left out that are those of the exact machine, or R^2."""
        if held_out is None:
            return float("nan")
        answers, outputs, exact = self.teacher.model.answers, held_out.outputs, self.expected
        if isinstance(answers, ClassAnswers):
            return float(np.mean(answers.labels(outputs) == answers.labels(exact)))
        residual, spread = np.square(outputs - exact).sum(), np.square(exact - exact.mean(axis=0)).sum()
        return float(1 - residual / spread)


def whitening(landmarks: RowKernel) -> np.ndarray:
    """Return R^-1 (m, m), upper triangular, float64, where R'R is the kernel of the landmarks."""
    m = landmarks._n_features_out
    lower = np.empty((m, m))
    diagonal = landmarks.gram_into(lower)
    lower = np.tril(lower, -1)
    jitter = _JITTER * float(diagonal.mean())
    while True:
        square = lower + lower.T
        square[np.diag_indices(m)] = diagonal + jitter
        if _cholesky.factorise(square):
            _cholesky.invert(square)
            return np.triu(square)
        jitter *= 10


def microseconds(kernel: RowKernel, teacher: Teacher, weights: np.ndarray) -> float:
    """Return the time of the outputs of a row: the fastest of a few, of rows that the exact machine keeps."""
    some, taken = teacher.kernel.take(slice(0, _TIMED_ROWS)), []
    for _ in range(_TIMES):
        out, began = np.zeros((some._n_features_out, weights.shape[1])), time.perf_counter()
        kernel.add_outputs_of(some, 0, weights, out)
        taken.append((time.perf_counter() - began) / out.shape[0])
    return 1e6 * min(taken)


def exact_row(model: Model) -> tuple[int, float]:
    """Return the rows and the microseconds of the exact machine itself, to compare with."""
    teacher = Teacher.of(model)
    return teacher.kernel._n_features_out, microseconds(teacher.kernel, teacher, model.merged[1])
