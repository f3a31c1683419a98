"""Weights of bins for a candidate of the race, learned from the rows of its rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays
from chimap._memory import parse_memory, room_in
from chimap._messages import Message
from chimap._validation import DataError, check_blocks
from chimap.data import ArraySource
from chimap.data.table import named_blocks
from chimap.engines import Progress
from chimap.estimators.internals import mapped_model_of, preparation_of
from chimap.estimators.race import Race
from chimap.features.screened import screened_weights
from chimap.features.weighted import ROUNDS as WEIGHT_ROUNDS
from chimap.features.weighted import learned_weights
from chimap.fit.precision import rows_in
from chimap.fit.recipe import checked_normalizations
from chimap.fit.trials import Trials
from chimap.normalizations import Roots
from chimap.race.bins import LearnedBins, learn_bins
from chimap.race.machines import Split
from chimap.race.rows import ROUNDS
from chimap.race.trials import SAME, Candidate, Outcome, Trial

_GRADIENTS = 1000  # number of rows whose gradients are averaged, if memory allows
# float64 arrays of a mapped row, and of its features, that gradients take
_MAPPED_COPIES, _VALUE_COPIES = 4, 3


@dataclass(frozen=True)
class WeighedBins:
    """Fits of a race with weighted bins."""

    race: Race

    def footprint(self, candidate: Candidate) -> int:
        """Return the bytes of learning weights beside the sample; 0 for fits, which plan for themselves."""
        trials = self._trials_for(candidate)
        return 0 if trials is None else trials.weighing_bytes(self.race.splits_at(max(self.race.splits_of)))

    def beside_sample(self, candidate: Candidate) -> Candidate:
        """Return the candidate with the memory budget that the sample leaves to its fits."""
        return replace(candidate, settings=candidate.settings | {"memory": self._budget})

    @property
    def _budget(self) -> int:
        return max(1, parse_memory(self.race.model.memory) - _arrays.stored_bytes(self.race.rows))

    def _trials_for(self, candidate: Candidate) -> Trials | None:
        """Return the machines that share their products if they take the candidate, else None."""
        trials = self.race.trials
        return trials if trials is not None and trials.takes(candidate.settings) else None

    def _rounds(self, candidate: Candidate) -> int:
        """Return the most rounds of gradients: none for machines of ``fit.trials`` that have no gradients."""
        trials = self._trials_for(candidate)
        return WEIGHT_ROUNDS if trials is None or trials.weighs(candidate.settings) else 0

    def learn(self, first: Trial, progress: Progress) -> LearnedBins:
        """Learn weights of bins for the candidate of a trial, with the rows of the last round.

        If rows are many, weights are first learned with the rows of the round before: weights whose gain there is no
        larger than its standard error are not worth another round. On eight sets, with and without noise bins, this
        skips none that would have been kept. Weights of a screening that are kept are computed again from all rows of
        the sample.

        Weights of few rows are learned from parts of the rows and scored on the others, while the race has left out
        each row from all. Their trial has the score of the race plus the gain on the parts.
        """
        progress.stage("bins", None, "fits")
        rounds, n_rounds = sorted(self.race.splits_of), self._rounds(first.candidate)
        is_dear = self.race.trials is not None and len(rounds) > 1 and rounds[-1] > ROUNDS[1]
        for place in (len(rounds) - 2, len(rounds) - 1) if is_dear else (len(rounds) - 1,):
            n_rows = rounds[place]

            def weigh(
                candidate: Candidate, weights: np.ndarray, n_rows: int = n_rows
            ) -> tuple[Outcome, Callable[[], np.ndarray]]:
                progress.advance()
                return self.weigh(candidate, weights, n_rows)

            trial = replace(first, round=first.round - (len(rounds) - 1 - place), n_rows=n_rows)
            equal = np.ones((self.race.splits_of[n_rows], self.race.rows.shape[1]))
            screened = self.screened(first.candidate, n_rows)
            learned = learn_bins(
                weigh, first.candidate, equal, screened, trial, n_rounds, self.race.leaves_out
            )
            if not learned.is_promising:
                break
        if self.race.leaves_out:
            score = min(
                first.score + learned.gain, max(1.0, first.score)
            )  # gains of parts can add up to too much
            learned = replace(learned, trial=replace(learned.trial, score=score, deviations=first.deviations))
        if learned.weights is not None and learned.is_screened:
            everything = self._screened(first.candidate, np.arange(self.race.rows.shape[0]))
            return learned if everything is None else replace(learned, weights=everything)
        return learned

    def screened(self, candidate: Candidate, n_rows: int) -> np.ndarray | None:
        """Return weights (splits, bins) from what each bin alone says about the labels of a split.

        None if nearly all bins are informative.
        """
        split_weights = [self._screened(candidate, train) for train, _ in self.race.splits_at(n_rows)]
        screenings = [weights for weights in split_weights if weights is not None]
        return np.vstack(screenings) if len(screenings) == len(split_weights) else None

    def _screened(self, candidate: Candidate, chosen: np.ndarray) -> np.ndarray | None:
        """Return the weights of the screening on the rows ``chosen``, or None."""
        normalize, blocks = candidate.settings.get("normalize", self.race.model.normalize), self._blocks
        columns = blocks or [np.arange(self.race.rows.shape[1])]
        rows = rows_in(_arrays.take_rows(self.race.rows, chosen), np.dtype(np.float32), chosen, "the sample")
        (normalization,) = checked_normalizations(normalize)
        if normalization is not None:
            rows = normalization.fitted(ArraySource(rows))(rows, columns)
        targets = self.race.codec.encode(self.race.y)
        return screened_weights(Roots()(rows, columns), np.asarray(targets[chosen], dtype=np.float64), blocks)

    @property
    def _blocks(self) -> list[np.ndarray] | None:
        """Columns of each block, whose bins share a weight; None without blocks."""
        blocks = named_blocks(self.race.model.blocks, self.race.column_names)
        return None if blocks is None else check_blocks(blocks, self.race.rows.shape[1])[1]

    def weigh(
        self, candidate: Candidate, weights: np.ndarray, n_rows: int
    ) -> tuple[Outcome, Callable[[], np.ndarray]]:
        """Fit with the rows of a round, each split separately; see ``Weighing``."""
        pairs = list(zip(self.race.splits_at(n_rows), weights, strict=True))
        trials = self._trials_for(candidate)
        fits = [
            self._weighed_fit(candidate, bin_weights, split) if trials is None
            else self._weighed_trial(trials, candidate, bin_weights, split)
            for split, bin_weights in pairs
        ]  # fmt: skip
        outcomes = [outcome for outcome, _ in fits]
        joined = Outcome(
            float(np.mean([split_outcome.score for split_outcome in outcomes])), outcomes[-1].learned,
            tuple(value / len(fits) for split_outcome in outcomes for value in split_outcome.deviations),
            float(np.median([split_outcome.predict_seconds for split_outcome in outcomes])),
        )  # fmt: skip
        return joined, lambda: np.vstack([following() for _, following in fits])

    def _weighed_trial(
        self, trials: Trials, candidate: Candidate, weights: np.ndarray, split: Split
    ) -> tuple[Outcome, Callable[[], np.ndarray]]:
        settings = candidate.settings | {"bin_weights": weights}
        leader = self.race.leaders.get(split[0].size)
        fitted = trials.best(
            settings, [split], self.race.best.get(candidate.name),
            lambda score, outputs: len(self.race.splits) > 1 or leader is None or score > leader.score + SAME,
        )  # fmt: skip
        return self.race.outcome_of(trials, fitted, [split]), lambda: fitted.learned_weights(
            weights, self.race.seed
        )

    def _weighed_fit(
        self, candidate: Candidate, weights: np.ndarray, split: Split
    ) -> tuple[Outcome, Callable[[], np.ndarray]]:
        train, test = split
        weighed = replace(candidate, settings=candidate.settings | {"bin_weights": weights})
        fitted = self.race.fitted(self.beside_sample(weighed), train)
        score, deviations, seconds = self.race.scored(fitted, test)
        gamma = getattr(fitted.kernel_, "gamma", None)
        learned = {"alpha": fitted.alpha_} | ({} if gamma is None else {"gamma": float(gamma)})

        def following() -> np.ndarray:
            model = mapped_model_of(fitted)
            if model is None:
                raise DataError(
                    Message(
                        "{bin_weights='learn'} needs gradients, and {} have none. Give weights, or name an exponential "
                        "kernel.",
                        fitted.features_.describe(),
                    )
                )
            row_bytes = 8 * (_MAPPED_COPIES * model.bins.size + _VALUE_COPIES * fitted.coef_.shape[1])
            n_rows = min(_GRADIENTS, max(1, room_in(self._budget) // row_bytes))
            rows = preparation_of(fitted)(_arrays.take_rows(self.race.rows, train[:n_rows]), 0, "the sample")
            return learned_weights(model, rows, weights, self._blocks)

        return Outcome(score, learned, tuple(deviations.tolist()), seconds), following
