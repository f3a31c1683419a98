"""Quick trials of machines that share their products: the basis on which a race compares candidates.

Each trial has machines that learn from some rows and are scored on others (``race.machines``). Its strength and gamma
are chosen by the score on the same rows that the candidate is compared on; no other rows are held out for this. What
several machines need is computed once: a kernel and its exponential form share the map and the products of rows, and
every gamma shares one matrix of products.

``Search`` moves over a grid of settings; at each, the machines learn and are scored. A setting is a pair: the place of
the strength, among the given ones or in half decades of the machine's scale, and the octaves of gamma.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from chimap import _arrays, _threads
from chimap._types import Rows
from chimap._validation import AUTO, DataError, check_blocks
from chimap.data import ArraySource
from chimap.features.exact import KeptRows, with_mean_gamma
from chimap.features.over_map import fitted_map
from chimap.features.scaled import Scale
from chimap.features.weighted import weights_of
from chimap.kernels import Exponential, Kernel, OnColumns, Sum
from chimap.normalizations import Normalization
from chimap.race.machines import (
    MAPPED_BYTES,
    KernelMachine,
    LeftOutMachine,
    MappedRows,
    MarginMachine,
    Products,
    Split,
    TrialMachine,
)
from chimap.recipe import Recipe
from chimap.recipe.codecs import Codec, known_targets
from chimap.recipe.parts import parts_of
from chimap.recipe.preparation import Preparation
from chimap.selection.base import checked_alpha
from chimap.selection.climb import LESS, Scored, Setting, SettingSearch, climb, mean_square
from chimap.selection.leave_one_out import OCTAVES
from chimap.selection.scoring import OutputScore, probability_errors
from chimap.solvers.kernel_matrix import has_exact_machine

# Neighbours of a setting, the cheapest first: half a decade of the strength reuses the matrix, an octave of gamma
# computes another one.
_STEPS = ((-1, 0), (1, 0), (0, 1), (0, -1))
_UNTHREADED_ROWS = 1200  # rows whose machine is solved before two threads could have synchronised
_COUNTED_ROWS = 1000  # rows whose frequent columns are counted to estimate the size of mapped rows
_FEWEST_ROWS_FOR_ONE_TERM = 2000  # dense rows whose maps have a feature a bin in trials
_WELL_FILLED = 0.15  # share of entries: pictures and descriptors have more, words, species and substructures less
_FEWEST_ERRORS_TO_COMPARE = 0.1  # expected errors; with fewer, probabilities cannot rank settings
_UNCOUNTED_SECONDS = 0.05  # of a trial, which are not counted as operations: maps, scores
_NOTHING: tuple[object, Scale, list[Products]] = (None, Scale(), [])

SearchesOn = Callable[[float, Sequence[np.ndarray]], bool]
"""Takes the score and the outputs of a setting, and returns whether its neighbours are worth trying."""


@dataclass(frozen=True)
class BestSetting:
    """The best setting of a machine.

    Parameters
    ----------
    setting : tuple of int
        Place of the strength, and octaves of gamma.
    score : float
        Mean score of the splits.
    outputs : list of arrays of shape (m, t)
        Outputs for the rows to score of each split.
    alpha : float
        The strength.
    gamma : float or None
        Gamma for rows before they are scaled; None if the kernel has none.
    seconds : float
        Seconds to compute the outputs of one row.
    machines : sequence of TrialMachine
        The machines of the splits.
    tried : list of ScoredOutputs
        The settings that were tried and could be solved.
    """

    setting: Setting
    score: float
    outputs: list[np.ndarray]
    alpha: float
    gamma: float | None
    seconds: float
    machines: Sequence[TrialMachine]
    tried: list[ScoredOutputs]

    def learned_weights(self, weights: np.ndarray, seed: int) -> np.ndarray:
        """Return the next bin weights (bins,) from the machine of the only split, which was fitted with ``weights``."""
        (machine,) = self.machines
        relevance = machine.relevance(self.alpha, self.setting[1], seed)
        bins = np.arange(relevance.products.size) % weights.size
        # u = sqrt(w) psi, so df/dpsi = sqrt(w) df/du
        return weights_of(weights * relevance.summed(bins, weights.size).above_noise(), weights)


@dataclass(frozen=True)
class ScoredOutputs(Scored):
    """The score of a setting with the outputs for the rows to score of each split: none where it cannot be solved."""

    outputs: list[np.ndarray]


@dataclass(frozen=True)
class OutputsByError(ScoredOutputs):
    """The same, where the least squared error is the best, whatever the score."""

    def beats(self, other: Scored) -> bool:
        """Whether the error is smaller by more than rounding may explain."""
        return self.error < LESS * other.error


class Search(SettingSearch[ScoredOutputs]):
    """Search for the setting of machines with the best mean score on the rows to score.

    Parameters
    ----------
    shared : SharedMachines
        Has the targets, and the score of outputs for rows. Ties go to the smaller squared error.
    machines : sequence of TrialMachine
        A machine for each split.
    splits : sequence of (array, array)
        Rows to learn from and rows to score, in the order of the machines.
    gamma : float or None, default=None
        Gamma at 0 octaves, for rows before they are scaled; None if the kernel has none.
    chooses_gamma : bool, default=False
        Whether gamma is chosen too.
    by_error : bool, default=False
        Whether the setting with the least squared error is the best, whatever its score. Of more than two classes it is
        that of the probabilities: outputs, each of a class against all others, have errors mostly of the others.
    """

    def __init__(
        self,
        shared: SharedMachines,
        machines: Sequence[TrialMachine],
        splits: Sequence[Split],
        gamma: float | None = None,
        chooses_gamma: bool = False,
        by_error: bool = False,
    ):
        super().__init__(shared.alphas, OCTAVES)
        self.shared, self.machines, self.splits = shared, machines, splits
        self.gamma, self.chooses_gamma = gamma, chooses_gamma
        self._trial_of = OutputsByError if by_error else ScoredOutputs
        self._by_probability = by_error and shared.has_many_classes

    @cached_property
    def scale(self) -> float:
        return self.machines[0].scale()

    def best(self, start: Setting | None, searches_on: SearchesOn) -> BestSetting:
        """Return the best setting.

        From ``start`` the search goes uphill if ``searches_on`` says so. Without a start it first goes down by decades
        from where the machine begins. Raise DataError if no setting can be solved.
        """
        setting = None if start is None else self.weakest_solved(start) or start
        first = None if setting is None else self.trial(setting)
        if setting is None or first is None or not first.outputs or searches_on(first.score, first.outputs):
            steps = _STEPS if self.chooses_gamma else _STEPS[:2]
            setting = climb(self.better, setting or self._beginning(), steps)
        trial, alpha = self.trial(setting), self.alpha(setting[0])
        if trial is None or alpha is None or not np.isfinite(trial.score):
            raise DataError(
                "none of the strengths has a score: the matrix is singular to rounding, or the score is not a number"
            )
        n_scored = sum(test.size for _, test in self.splits)
        return BestSetting(
            setting,
            trial.score,
            trial.outputs,
            alpha,
            None if self.gamma is None else self.gamma * 2.0 ** setting[1],
            sum(machine.seconds for machine in self.machines) / max(1, n_scored),
            self.machines,
            [trial for trial in self.trials.values() if trial.outputs],
        )

    def _beginning(self) -> Setting:
        """Return the setting to climb from: the largest of given strengths, or the best of a descent by decades."""
        return self.downhill(self.machines[0].begins_at) if self.alphas is None else (len(self.alphas) - 1, 0)

    def scored(self, setting: Setting, alpha: float) -> ScoredOutputs:
        """See ``SettingSearch``; there are no outputs where one of the machines cannot be solved."""
        few = max(train.size for train, _ in self.splits) <= _UNTHREADED_ROWS
        with warnings.catch_warnings(), _threads.one_thread() if few and len(self.machines) == 1 else nullcontext():
            # A machine that LIBLINEAR stopped early remains a candidate: its score on the held-out rows decides.
            warnings.simplefilter("ignore", ConvergenceWarning)
            answers = _threads.tasks(self.machines, lambda machine: machine.outputs(alpha, setting[1]))
        shared = self.shared
        units = 1.0 if shared.codec.units is None else shared.codec.units
        outputs = [(output + shared.codec.shift) * units for output in answers if output is not None]
        if len(outputs) < len(answers):
            return self._trial_of(-np.inf, np.inf, [])
        parts = [(output, test) for (_, test), output in zip(self.splits, outputs, strict=True)]
        score = float(np.mean([shared.score(output, test) for output, test in parts]))
        error = float(np.mean([self._error(output / units, test) for output, test in parts]))
        return self._trial_of(score if np.isfinite(score) else -np.inf, error, outputs)

    def _error(self, output: np.ndarray, rows: np.ndarray) -> float:
        """Return the mean squared error of outputs (m, t), in units of the targets, or of their probabilities."""
        shared = self.shared
        weights = None if shared.score.sample_weight is None else shared.score.sample_weight[rows]
        if self._by_probability:
            errors = probability_errors(output, shared.Y[rows].argmax(axis=1), weights)
            return max(
                mean_square(errors, weights), 2 * _FEWEST_ERRORS_TO_COMPARE / errors.size
            )  # a row that is wrong has the errors 1, 1
        return mean_square(output - shared.codec.shift - shared.Y[rows], weights)


@dataclass
class SharedMachines:
    """Machines on a sample of rows, which share what they can.

    Consecutive machines with the same kernel, normalisation, bin weights and splits share their products.

    Parameters
    ----------
    rows : array or sparse matrix of shape (n, bins)
        The sample. A trial maps only the rows of its splits.
    y : array of shape (n,) or (n, t)
        Labels or targets.
    codec : Codec
        Encodes them.
    score : OutputScore
        Score of outputs.
    row_weights : array of shape (n,) or (n, t), or None
        Weights of the rows.
    asked : Recipe
        What all candidates share: precision, strengths, terms of maps, seed.
    numbers : array of shape (n,) or None, default=None
        Numbers of the rows in the source, which errors name; None for their places in the sample.
    work : float, default=0.0
        Estimated seconds of all trials so far, see ``TrialMachine``.
    """

    rows: Rows
    y: np.ndarray
    codec: Codec
    score: OutputScore
    row_weights: np.ndarray | None
    asked: Recipe
    numbers: np.ndarray | None = None
    work: float = 0.0
    # (what identifies the rows and the kernel, the scale of the rows, products of each split)
    _shared: tuple[object, Scale, list[Products]] = _NOTHING
    _normalizations: dict[str, Normalization] = field(default_factory=dict)  # fitted to the sample

    def __post_init__(self) -> None:
        self.Y = np.asarray(self.codec.encode(self.y), dtype=np.float64)
        alphas = checked_alpha(self.asked.alpha)
        self.alphas = None if alphas is None else sorted(np.atleast_1d(alphas).tolist())

    @property
    def has_many_classes(self) -> bool:
        """Whether each row has one of more than two classes."""
        return self.asked.is_classifier and self.y.ndim == 1 and self.Y.shape[1] > 1

    def let_go(self) -> None:
        """Free what trials share; the next trial computes it again."""
        self._shared = _NOTHING

    def footprint(self, splits: Sequence[Split]) -> int:
        """Return the bytes of machines on these splits.

        They are the kernel values and mapped rows of each split, one block of mapped rows to score, and a copy of it.
        """
        row, size, total = (KeptRows.bytes_of(self.rows[:_COUNTED_ROWS], self._terms), self.asked.dtype.itemsize, 0.0)
        for n, m in ((train.size, test.size) for train, test in splits):
            total += size * KernelMachine.n_values(n, m) + n * row
        return int(total + 2 * min(MAPPED_BYTES, row * max(test.size for _, test in splits)))

    def weighing_bytes(self, splits: Sequence[Split]) -> int:
        """Return the bytes of machines on these splits, and of learning bin weights from one of them at a time."""
        n = max(train.size for train, _ in splits)
        row = KeptRows.bytes_of(self.rows[:_COUNTED_ROWS], self._terms)
        return self.footprint(splits) + int(n * (self.asked.dtype.itemsize * KernelMachine.RELEVANCE * n + row))

    @staticmethod
    def weighs(recipe: Recipe) -> bool:
        """Whether the machine of a candidate can learn bin weights."""
        is_ridge = recipe.is_exact and recipe.loss == "square"
        return is_ridge and recipe.exact_kernel.inner is not None

    @staticmethod
    def takes(recipe: Recipe) -> bool:
        """Whether a candidate has a machine here: others are fitted one by one."""
        if recipe.features == "additive":
            return recipe.loss in ("hinge", "squared_hinge")
        has_sum = recipe.blocks is None or recipe.exact_kernel.inner is None
        return recipe.is_exact and has_sum and has_exact_machine(recipe.loss)

    def best(
        self,
        recipe: Recipe,
        splits: Sequence[Split],
        start: Setting | None,
        searches_on: SearchesOn = lambda score, outputs: True,
    ) -> BestSetting:
        """Return the best strength and gamma of a machine.

        Parameters
        ----------
        recipe : Recipe
            The recipe of a candidate that ``takes`` accepts.
        splits : sequence of (array, array)
            Rows to learn from and rows to score.
        start : tuple of int or None
            Setting to begin from, which was the best for fewer rows.
        searches_on : callable, default=lambda score, outputs: True
            Whether to search beyond ``start``, given its score and outputs.

        Raises
        ------
        DataError
            If the kernel does not accept the rows, or no setting can be solved.
        """
        if recipe.features == "additive":
            machines, gamma = self._margins(recipe, splits), None
        else:
            machines, gamma = self._kernels(recipe, splits)
        return self._searched(machines, gamma, recipe, splits, start, searches_on)

    def best_left_out(
        self,
        recipe: Recipe,
        groups: Sequence[np.ndarray] | None,
        start: Setting | None,
        searches_on: SearchesOn = lambda score, outputs: True,
        by_error: bool = False,
    ) -> BestSetting:
        """Return the best strength and gamma of an exact machine of all rows, by its outputs for left-out rows.

        ``groups`` are adjacent rows that are left out together, and cover all rows in order; None for single rows.
        ``by_error`` takes the setting of the least squared error in place of the best score. See ``best`` for the other
        parameters, and for what it raises.
        """
        everything = np.arange(self.rows.shape[0])
        products, gamma, unscaled_gamma = self._kernel_of(recipe, [(everything, everything[:0])])
        machine = LeftOutMachine(products[0], gamma, self.Y, self.row_weights, recipe.requested_loss, groups)
        return self._searched(
            [machine], unscaled_gamma, recipe, [(everything, everything)], start, searches_on, by_error
        )

    def _searched(
        self,
        machines: Sequence[TrialMachine],
        gamma: float | None,
        recipe: Recipe,
        splits: Sequence[Split],
        start: Setting | None,
        searches_on: SearchesOn,
        by_error: bool = False,
    ) -> BestSetting:
        """Return the best setting of machines, one for each split."""
        chooses = gamma is not None and recipe.leaves_open("gamma")
        try:
            return Search(self, machines, splits, gamma, chooses, by_error).best(start, searches_on)
        finally:
            self.work += _UNCOUNTED_SECONDS + sum(machine.work for machine in machines)

    def _kernels(self, recipe: Recipe, splits: Sequence[Split]) -> tuple[list[TrialMachine], float | None]:
        """Return the machines, and the gamma of unscaled rows that corresponds to 0 octaves."""
        products, gamma, unscaled_gamma = self._kernel_of(recipe, splits)
        return [
            KernelMachine(split_products, gamma, self.Y[train], self._weights(train), recipe.requested_loss)
            for split_products, (train, _) in zip(products, splits, strict=True)
        ], unscaled_gamma

    def _kernel_of(self, recipe: Recipe, splits: Sequence[Split]) -> tuple[list[Products], float | None, float | None]:
        """Return the products of each split, and the gamma of scaled and of unscaled rows, if the kernel has one."""
        kernel = recipe.exact_kernel
        base = kernel.inner or kernel
        if recipe.blocks is not None:
            _, columns = check_blocks(recipe.blocks, self.rows.shape[1])
            base = Sum(tuple(OnColumns(base, block) for block in columns))
        scale, products = self._products(base, recipe, splits)
        gamma = unscaled_gamma = None
        if isinstance(kernel, Exponential):
            first = products[0]  # each split has all rows
            assert first.train is not None
            assert first.spread is not None
            scaled = with_mean_gamma(kernel.rescaled(scale.factor), first.train, first.spread)
            gamma, unscaled_gamma = float(scaled.gamma), float(scaled.rescaled(1 / scale.factor).gamma)
        return products, gamma, unscaled_gamma

    def _products(self, base: Kernel, recipe: Recipe, splits: Sequence[Split]) -> tuple[Scale, list[Products]]:
        """Return the products of the splits under an additive kernel, and the scale of the rows before the map."""
        weights = recipe.given_bin_weights
        weighed = None if weights is None else weights.tobytes()
        columns = [] if recipe.blocks is None else check_blocks(recipe.blocks, self.rows.shape[1])[1]
        told = [*columns, *(part for split in splits for part in split)]
        key = (base.name, recipe.normalize, weighed, tuple(hash(each.tobytes()) for each in told))
        if self._shared[0] != key:
            self._shared = _NOTHING  # free the old products before new ones are allocated
            plain = replace(recipe, kernel=base, features=AUTO)
            products, scale = list[Products](), None
            for prepared, places in self._prepared_splits(plain, splits):
                scale = scale or Scale.of(prepared, [base])
                rows, kernel = scale.rows(prepared), scale.kernel(base)
                if kernel.inner is not None:
                    mapped_rows = MappedRows(fitted_map(kernel, rows, self._terms), rows)
                    products += [Products.of(mapped_rows, split) for split in places]
                else:
                    kernel = kernel.fitted(rows, self.asked.seed)
                    products += [Products.of_values(kernel, rows, split) for split in places]
            assert scale is not None
            self._shared = key, scale, products
            self.work += sum(split_products.work for split_products in products)
        return self._shared[1:]

    @cached_property
    def _terms(self) -> int:
        """Features of each bin. For many well filled rows one is enough: it ranks kernels as two do, in half the time.

        The numbers decide and not how they are stored: a table has one winner, as an array and as a sparse matrix.
        """
        if not isinstance(self.asked.n_terms, str):
            return self.asked.n_terms
        if self.rows.shape[0] < _FEWEST_ROWS_FOR_ONE_TERM:
            return 2
        n_filled, (n, n_bins) = np.count_nonzero(_arrays.stored_values(self.rows)), self.rows.shape
        return 1 if n_filled > _WELL_FILLED * n * n_bins else 2

    def _margins(self, recipe: Recipe, splits: Sequence[Split]) -> list[TrialMachine]:
        """Return LIBLINEAR machines on the features of an additive map."""
        machines: list[TrialMachine] = []
        for rows, places in self._prepared_splits(recipe, splits):
            (whole,) = parts_of(recipe, None, rows.shape[1])
            fitted = whole.fitted(rows, self.asked.seed)
            Z = fitted.mapped(_arrays.to_sparse(rows) if fitted.keeps_zeros else rows)
            for train, test in places:
                learned = splits[len(machines)][0]
                machines.append(
                    MarginMachine(
                        _arrays.take_rows(Z, train),
                        _arrays.take_rows(Z, test),
                        self.Y[learned],
                        self._weights(learned),
                        self.asked.seed,
                        str(recipe.loss),
                    )
                )
        return machines

    def _weights(self, rows: np.ndarray) -> np.ndarray | None:
        return None if self.row_weights is None else self.row_weights[rows]

    def _prepared_splits(self, recipe: Recipe, splits: Sequence[Split]) -> Iterator[tuple[Rows, list[Split]]]:
        """Yield prepared rows with the splits that use them, as places among them: all at once, if they can share them.

        What a normalisation learns from labels, it learns for each split from the rows to learn from.
        """
        for joint in [[split] for split in splits] if recipe.normalizes_by_labels else [splits]:
            taken, places = _taken(joint)
            yield self._prepared(recipe, taken, joint[0][0]), places

    def _prepared(self, recipe: Recipe, taken: np.ndarray, learned: np.ndarray) -> Rows:
        """Return the rows that are taken, checked and normalised; labels are known of those that are learned from."""
        parts, rows = parts_of(recipe, None, self.rows.shape[1]), self.rows
        if taken.size < rows.shape[0]:
            rows = _arrays.take_rows(rows, taken)
        numbers = taken if self.numbers is None else self.numbers[taken]
        prepare = Preparation(parts, self.asked.dtype, self._normalization(recipe, learned), recipe.given_bin_weights)
        return prepare(rows, numbers, "the sample of the race")

    def _normalization(self, recipe: Recipe, learned: np.ndarray) -> Normalization | None:
        """Return the normalisation, fitted to the sample: to more rows than are learned from, but to no more labels."""
        unfitted = recipe.normalization
        if unfitted is None:
            return None
        source = ArraySource(self.rows)
        source.weights = self.row_weights
        if unfitted.needs_labels:
            hidden = np.ones(self.rows.shape[0], dtype=bool)
            hidden[learned] = False
            return unfitted.fitted(source, known_targets(self.codec, self.y, hidden))
        if unfitted.name not in self._normalizations:
            self._normalizations[unfitted.name] = unfitted.fitted(source)
        return self._normalizations[unfitted.name]


def _taken(splits: Sequence[Split]) -> tuple[np.ndarray, list[Split]]:
    """Return the rows that the splits use, ascending, and the splits as places among these."""
    taken = np.unique(np.concatenate([part for split in splits for part in split]))
    return taken, [(np.searchsorted(taken, train), np.searchsorted(taken, test)) for train, test in splits]
