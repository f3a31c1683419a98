"""Scores study by study: of models that have not seen the study, within each study, and against permuted labels.

Rows of one study (a cohort, a batch, a laboratory) resemble each other beyond what the labels say. Three numbers tell
what a model has learned:

- across: the score on each study of a model trained on all others. It is what a new study may expect;
- within: the cross-validated score of a model that sees one study alone. Where it is high and the score across is low,
  studies differ, or what is learned within them is of the study;
- a permutation test: how often labels that are shuffled within each study score as well. Labels that go with a study
  keep doing so when they are permuted within it, so that differences between studies do not make a p-value small.
"""

from __future__ import annotations

import csv
import math
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from warnings import catch_warnings, simplefilter

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.model_selection import KFold, LeaveOneGroupOut, StratifiedKFold

from chimap import _arrays
from chimap._errors import InputError
from chimap._files import replacing
from chimap._formatting import NARROW_SPACE, counted, measure_in_words, one_line, plain, seconds
from chimap._messages import Message
from chimap._threads import threads
from chimap._types import JSON, ArrayLike, Rows, Scoring
from chimap._validation import DataError
from chimap.data import ArraySource
from chimap.data.label_kinds import texts_of
from chimap.engines import Progress
from chimap.losses import Square
from chimap.models.row_values import RowValues
from chimap.recipe.codecs import ClassCodec
from chimap.reports.section import text_table
from chimap.selection.scoring import HeldOutScore, MeanScore, OutputScore
from chimap.selection.shuffles import Shuffles, p_value
from chimap.solvers.downdates import machines_by_strength

if TYPE_CHECKING:
    from sklearn.base import BaseEstimator

_FOLDS = 5  # within a study
_ENTRIES = 2**23  # targets of permutations that are solved for together
STUDIES_NAMED = 30  # drawn and printed
_NOTES_PRINTED = 5


@dataclass(frozen=True, eq=False)
class PermutationTest:
    """Scores of labels that are permuted within each study.

    Parameters
    ----------
    score : float
        Mean score over the studies, each by a machine of the other studies, for the labels as they are.
    permuted : ndarray of shape (n,)
        The same for n permutations of the labels.
    method : str
        How they were computed, in words.
    """

    score: float
    permuted: np.ndarray
    method: str

    @property
    def p_value(self) -> float:
        """Probability of so high a score without a relation within the studies; see ``selection.shuffles.p_value``."""
        return p_value(self.score, self.permuted)

    def as_dict(self) -> JSON:
        """Return the test as JSON types."""
        values = {"score": self.score, "p_value": self.p_value, "n_permutations": self.permuted.size}
        return plain(values | {"method": self.method, "permuted": self.permuted})


@dataclass(frozen=True, eq=False)
class StudyScores:
    """Scores of s studies.

    Parameters
    ----------
    measure : str
        Name of the score, such as "roc_auc"; greater is better.
    studies : tuple of str
        Names of the studies.
    n_rows : ndarray of shape (s,)
        Rows of each study.
    across : ndarray of shape (s,)
        Score on each study of a model trained on all other studies; NaN where it is not defined.
    within : ndarray of shape (s,)
        Cross-validated score of models trained on the study alone; NaN where it has too few rows.
    notes : tuple of str, default=()
        Why scores are missing.
    test : PermutationTest or None, default=None
        The score against permuted labels.
    """

    measure: str
    studies: tuple[str, ...]
    n_rows: np.ndarray
    across: np.ndarray
    within: np.ndarray
    notes: tuple[str, ...] = ()
    test: PermutationTest | None = None

    @property
    def mean(self) -> float:
        """Mean of the scores across studies that are defined."""
        return _mean(self.across)

    @property
    def spread(self) -> float:
        """Standard deviation over studies of the scores across studies; NaN for fewer than two."""
        known = self.across[np.isfinite(self.across)]
        return float(known.std(ddof=1)) if known.size > 1 else float("nan")

    @property
    def mean_within(self) -> float:
        """Mean of the scores within studies that are defined."""
        return _mean(self.within)

    @property
    def name(self) -> str:
        """Name of the score in words."""
        return measure_in_words(self.measure)

    @property
    def listed(self) -> list[tuple[str, int, float, float]]:
        """Name, rows and the scores across and within of each study."""
        return list(zip(self.studies, self.n_rows, self.across, self.within, strict=True))

    def lines(self) -> dict[str, str | None]:
        """Return the table and the test in lines of text."""
        named = [(name, f"{n:,}", *map(_cell, scores)) for name, n, *scores in self.listed[:STUDIES_NAMED]]
        means = ("mean", f"{self.n_rows.sum():,}", _cell(self.mean), _cell(self.mean_within))
        rows = text_table([("", "rows", self.name, "within"), *named, means]).splitlines()
        if len(self.studies) > STUDIES_NAMED:
            rows.insert(-1, f"and {len(self.studies) - STUDIES_NAMED} more; the page, the table and the JSON show all")
        spread = "" if math.isnan(self.spread) else f" +- {self.spread:.3f}"
        lines: dict[str, str | None] = {"by study": "\n".join(rows)}
        lines["across"] = (
            f"mean {self.name} {_cell(self.mean)}{spread} on studies that the model has not seen; "
            f"{_cell(self.mean_within)} within studies"
        )
        if self.test is not None:
            found = self.test
            lines["permutations"] = (
                f"p = {found.p_value:.2g}: {found.score:.3f} against {found.permuted.mean():.3f} +- "
                f"{found.permuted.std():.3f} of {found.permuted.size:,} permutations within studies ({found.method})"
            )
        more = len(self.notes) - _NOTES_PRINTED
        told = [*self.notes[:_NOTES_PRINTED], *([f"and {more} more; the JSON shows all"] if more > 0 else [])]
        lines["not scored"] = "\n".join(told) or None
        return lines

    def as_dict(self) -> JSON:
        """Return the scores as JSON types, a dictionary a study."""
        fields = {
            "measure": self.measure,
            "studies": [dict(zip(("study", "rows", "across", "within"), line, strict=True)) for line in self.listed],
            "mean": self.mean,
            "spread": self.spread,
            "mean_within": self.mean_within,
            "notes": self.notes,
            "permutations": self.test and self.test.as_dict(),
        }
        found: JSON = plain(fields)
        return found


def save_table(by_machine: Mapping[str, StudyScores], path: Path) -> None:
    """Write the scores of machines by study as CSV, with a line for each machine and study; no text for no score."""
    with replacing(path) as unfinished, unfinished.open("w", encoding="utf-8", newline="") as file:
        lines = csv.writer(file, lineterminator="\n")
        lines.writerow(("machine", "study", "rows", "measure", "across", "within"))
        for machine, scores in by_machine.items():
            for study, n, *both in scores.listed:
                found = ("" if math.isnan(score) else repr(float(score)) for score in both)
                lines.writerow((machine, study, n, scores.measure, *found))


def _mean(scores: np.ndarray) -> float:
    known = scores[np.isfinite(scores)]
    return float(known.mean()) if known.size else float("nan")


def _cell(score: float) -> str:
    return "-" if math.isnan(score) else f"{score:.3f}"


# --- the rows


class _Studied(NamedTuple):
    """Rows, labels (n,) or (n, t), names of the studies and the study of each row as a place among them."""

    X: Rows
    y: np.ndarray
    names: tuple[str, ...]
    places: np.ndarray

    @property
    def splits(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """For each study, the rows of all others, and its own."""
        return list(LeaveOneGroupOut().split(self.places, groups=self.places))

    @property
    def rows(self) -> list[np.ndarray]:
        """The rows of each study."""
        return [rows for _, rows in self.splits]


def check_studies(has_classes: bool, y: np.ndarray, groups: np.ndarray | None, permutations: int, name: str) -> None:
    """Raise an error, before any fit, if the rows ``name`` cannot be scored study by study.

    ``groups`` is the study of each row (n,), and ``permutations`` their number, 0 for no test.
    """
    if groups is None:
        raise InputError(Message("scores study by study need the study of each row: name its column with {groups}."))
    studies, places = np.unique(groups, return_inverse=True)
    if studies.size < 2:
        raise DataError(
            Message(
                "{}: all rows are of one study, {}, so none can be left out. Give another {groups}.", name, studies[0]
            )
        )
    if y.ndim == 1 and all(_is_constant(y[places == k]) for k in range(studies.size)):
        raise DataError(
            Message(
                "{}: in each of the {:,} studies all labels are the same, so no score is defined there. Name a column "
                "of studies with several labels each with {groups}.",
                name,
                studies.size,
            )
        )
    if has_classes and y.ndim == 1:
        for k, study in enumerate(studies):
            others = np.unique(y[places != k])
            if others.size < 2:
                raise DataError(
                    Message(
                        "{}: without study {} all labels are {}, so no classifier can be trained on the other "
                        "studies. Give another {groups}, or join studies.",
                        name,
                        study,
                        others[0],
                    )
                )
    if permutations < 0:
        raise InputError(Message("{permutations} must be 0, for no test, or more; got {}.", permutations))
    codes = np.unique(y, axis=0 if y.ndim == 2 else None, return_inverse=True)[1].reshape(-1)
    distinct = Shuffles.within(places, codes.size).n_different(codes)
    if distinct <= permutations:
        raise DataError(
            Message(
                "{}: only {} of the labels within studies differ, too few for {permutations=}. Give {permutations=} or "
                "less, or a {groups} with more labels of each kind in a study.",
                name,
                counted(int(distinct), "permutation"),
                permutations,
                int(distinct) - 1,
            )
        )


# --- scores


def study_scores(
    model: BaseEstimator,
    X: Rows,
    y: ArrayLike,
    groups: ArrayLike,
    *,
    permutations: int = 0,
    random_state: int = 0,
    progress: Progress | None = None,
) -> StudyScores:
    """Score copies of a model study by study: across studies, within each, and against permuted labels.

    Each copy is trained from scratch, with the settings of the model: where these leave the kernel open, it is raced
    anew without the study.

    With the square loss, the permutations cost next to nothing: leaving a study g out of ridge on the kernel matrix K
    of all rows changes its residuals to

        M_gg^-1 a_g,   M = A^-1 - A^-1 1 1'A^-1 / (1'A^-1 1),   A = K + alpha,   a = M Y,

    so that one factor a strength serves all permutations, which are columns of Y. Each of them, and the labels as they
    are, chooses its own strength by rows left out one at a time. Kernel, normalisation and gamma are those of the
    model: where they were chosen with these labels, p is a little too small. Other losses, weighted classes and more
    rows than ``memory`` holds a kernel matrix of are fitted anew for every permutation.

    Parameters
    ----------
    model : estimator
        A ``HistogramClassifier``, ``HistogramRegressor`` or kernel learner; fitted, if labels are permuted.
    X : array or CSR matrix of shape (n, bins)
        The rows.
    y : array of shape (n,) or (n, t)
        Labels or targets; a column a task for several, without missing entries if labels are permuted.
    groups : array of shape (n,)
        The study of each row.
    permutations : int, default=0
        Number of permutations of the labels within studies; 0 for no test. The smallest p-value is
        1 / (1 + permutations).
    random_state : int, default=0
        Seed of the permutations and of the folds within studies.
    progress : Progress or None, default=None
        Receives the fits.

    Returns
    -------
    StudyScores

    Raises
    ------
    DataError
        If there is a single study, if a study holds all rows of the classes but one, or if the labels have too few
        permutations.
    InputError
        If ``permutations`` is below 0.

    References
    ----------
    Wirbel et al. (2021), SIAMCAT, for models transferred between studies and confounders; Winkler et al. (2015) for
    permutations within blocks; Phipson and Smyth (2010) for the p-value; Allen (1974) for rows left out in closed form.

    Examples
    --------
    >>> from chimap import HistogramClassifier
    >>> rng = np.random.default_rng(0)
    >>> study, sick = np.repeat(["Lyon", "Riga", "Oslo"], 40), np.tile([False, True], 60)
    >>> counts = rng.poisson(np.where(sick, 8, 4)[:, None], (120, 6)) + rng.poisson(2, (120, 6))
    >>> model = HistogramClassifier("chi2", random_state=0).fit(counts, sick)
    >>> found = study_scores(model, counts, sick, study, permutations=99)
    >>> found.measure, found.studies, bool(found.mean > 0.8), found.test.p_value
    ('roc_auc', ('Lyon', 'Oslo', 'Riga'), True, 0.01)
    """
    model = model.exact_
    if model is None:
        raise InputError("a model of codes cannot be trained anew: give the model that it was compiled from.")
    progress = progress or Progress()
    labels, names = np.asarray(y), np.asarray(groups)
    check_studies(is_classifier(model), labels, names, permutations, "X")
    values, places = np.unique(names, return_inverse=True)
    studied = _Studied(X, labels, tuple(one_line(v) for v in texts_of(values)), places)
    with progress:
        progress.stage("studies", (1 + _FOLDS) * len(studied.names), "fits")
        across, within, notes = _scored(model, studied, random_state, progress)
        test = _permuted(model, studied, permutations, random_state, progress) if permutations else None
    return StudyScores(
        _score(model, labels, _targets(model, labels)[1]).name,
        studied.names,
        np.bincount(places),
        across,
        within,
        notes,
        test,
    )


def _score(model: BaseEstimator, y: np.ndarray, classes: np.ndarray | None) -> OutputScore:
    """Return the user's score of outputs for rows with labels y, or one that unequal classes do not spoil."""
    scoring: Scoring = model.scoring
    if scoring is None and classes is not None:
        scoring = "roc_auc" if y.ndim == 2 or classes.size == 2 else "balanced_accuracy"
    return MeanScore(y, classes, scoring) if y.ndim == 2 else HeldOutScore(y, classes, scoring)


def _fitted_score(estimator: BaseEstimator, studied: _Studied, train: np.ndarray, test: np.ndarray) -> float:
    """Return the score on some rows of a copy of the estimator that is trained on others."""
    X, y, _, places = studied
    several = np.unique(places[train]).size > 1
    groups = {"groups": places[train]} if several else {}
    with catch_warnings():
        simplefilter("ignore")  # the fit of the model has said what is doubtful about the rows
        fitted = clone(estimator).fit(_arrays.take_rows(X, train), y[train], **groups)
    classes = fitted.classes_ if is_classifier(fitted) else None
    outputs = fitted.predict_source(ArraySource(_arrays.take_rows(X, test)))
    return _score(estimator, y[test], classes)(outputs)


def _is_constant(y: np.ndarray) -> bool:
    """Whether labels or numbers of one task do not differ: neither R2 nor a score of classes is defined for them."""
    return y.ndim == 1 and np.unique(y).size < 2


def _scored(
    model: BaseEstimator, studied: _Studied, seed: int, progress: Progress
) -> tuple[np.ndarray, np.ndarray, tuple[str, ...]]:
    """Return the scores of each study by a model of the others, and within it, and why some are missing."""
    has_classes = is_classifier(model) and studied.y.ndim == 1
    across, within = np.full((2, len(studied.names)), np.nan)
    notes = []
    for k, (others, rows) in enumerate(studied.splits):
        name, y = studied.names[k], studied.y[rows]
        fewest = int(np.unique(y, return_counts=True)[1].min()) if has_classes else rows.size // 2
        n_folds = min(_FOLDS, fewest)
        if _is_constant(y):
            notes.append(f"{name}: all labels are {y[0]}, so neither score is defined")
        else:
            across[k] = _fitted_score(model, studied, others, rows)
            if n_folds < 2:
                notes.append(f"{name}: too few rows of a class to cross-validate within it")
            else:
                kind = StratifiedKFold if has_classes else KFold
                folds = kind(n_folds, shuffle=True, random_state=seed).split(rows, y if has_classes else None)
                within[k] = _mean(np.array([_fitted_score(model, studied, rows[a], rows[b]) for a, b in folds]))
        progress.advance(1 + _FOLDS)
    return across, within, tuple(notes)


# --- permuted labels


def _permuted(model: BaseEstimator, studied: _Studied, n: int, seed: int, progress: Progress) -> PermutationTest:
    """Return the test: the same mean score for the labels as they are, which come first, and for each permutation."""
    shuffles, rng = Shuffles.within(studied.places, studied.places.size), np.random.default_rng(seed)
    orders = [np.arange(studied.places.size), *(shuffles.draw(rng) for _ in range(n))]
    scored = [split for split in studied.splits if not _is_constant(studied.y[split[1]])]
    values = _row_values(model, studied)
    if values is not None:
        progress.stage("permutations", n + 1, "labels")
        scores = _by_one_factor(model, studied, values, orders, [rows for _, rows in scored], progress)
        return PermutationTest(scores[0], scores[1:], "one factor for all")
    progress.stage("permutations", (n + 1) * len(scored), "fits")
    chosen = _with_its_kernel(model)
    began, scores = time.perf_counter(), np.empty(n + 1)
    for i, order in enumerate(orders):
        shuffled = studied._replace(y=studied.y[order])
        found = []
        for others, rows in scored:
            found.append(_fitted_score(chosen, shuffled, others, rows))
            progress.advance()
        scores[i] = _mean(np.array(found))
        if i == 0:
            expected = seconds(n * (time.perf_counter() - began)).replace(NARROW_SPACE, " ")
            progress.note(f"{n:,} permutations take {n * len(scored):,} fits, about {expected}.")
    return PermutationTest(scores[0], scores[1:], "a fit for each")


def _with_its_kernel(model: BaseEstimator) -> BaseEstimator:
    """Return an unfitted copy with the kernel that a race chose; the strength is chosen in each fit."""
    chosen = {"kernel", "normalize", "loss"} & model.chosen_.keys()
    settings = {name: model.chosen_[name] for name in chosen}
    if model.bin_weights_ is not None:
        settings["bin_weights"] = model.bin_weights_
    return clone(model).set_params(**settings)


def _row_values(model: BaseEstimator, studied: _Studied) -> RowValues | None:
    """Return the rows as the machine of the square loss sees them; None where the model is another."""
    recipe, features, n = model.fitted.recipe, model.fitted.features, studied.places.size
    is_square = recipe.loss == "square" or isinstance(recipe.loss, Square)
    has_gaps = studied.y.ndim == 2 and bool(np.isnan(studied.y.astype(float)).any())
    width = 3 * n if features.row_kernel is not None else max(3 * n, features._n_features_out)
    if not is_square or recipe.class_weight is not None or has_gaps or 8 * n * width > recipe.budget:
        return None
    with threads(model.n_jobs):
        return RowValues.of(model.fitted, studied.X)


def _targets(model: BaseEstimator, y: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
    """Return the targets (n, t) of the square loss, and the classes, which are 0 and 1 for several tasks."""
    if not is_classifier(model):
        return y.astype(np.float64).reshape(len(y), -1), None
    codec = ClassCodec.of(y)
    return np.asarray(codec.encode(y), np.float64), codec.classes if isinstance(codec, ClassCodec) else np.arange(2)


def _by_one_factor(
    model: BaseEstimator,
    studied: _Studied,
    values: RowValues,
    orders: list[np.ndarray],
    scored: list[np.ndarray],
    progress: Progress,
) -> np.ndarray:
    """Return the mean score of each order of the labels, (n,), from one factor of the rows a strength."""
    Y, classes = _targets(model, studied.y)
    n, t = Y.shape
    scores, step = np.empty(len(orders)), max(1, _ENTRIES // (n * t))
    with threads(model.n_jobs):
        for first in range(0, len(orders), step):
            some = orders[first : first + step]
            outputs = _left_out(values, np.hstack([Y[order] for order in some]), t, studied.rows)
            for i, order in enumerate(some):
                score = _score(model, studied.y[order], classes)
                mine = outputs[:, i * t : (i + 1) * t]
                scores[first + i] = _mean(np.array([score(mine[rows], rows) for rows in scored]))
                progress.advance()
    return scores


def _left_out(values: RowValues, Y: np.ndarray, t: int, studies: list[np.ndarray]) -> np.ndarray:
    """Return the outputs (n, columns) for each study when it is left out, at the best strength of every t columns."""
    least, outputs = np.full(Y.shape[1] // t, np.inf), np.zeros(Y.shape)
    for machine in machines_by_strength(lambda alpha: values.machine(Y, alpha), values.scatter):
        errors = np.square(Y - machine.left_out()).sum(axis=0).reshape(-1, t).sum(axis=1)
        better = np.flatnonzero(np.repeat(errors < least, t))
        least = np.minimum(errors, least)
        if better.size:
            outputs[:, better] = machine.left_out(studies)[:, better]
    return outputs
