"""Weights of bins for a candidate of the race, learned from the rows of its rounds."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from chimap import _arrays
from chimap._validation import DataError
from chimap.engines import Progress
from chimap.estimators.bin_weights import LearnedBins, learn_bins
from chimap.estimators.race import Race
from chimap.estimators.race_rows import ROUNDS
from chimap.features.weighted import learned_weights
from chimap.fit.trial_machines import Split
from chimap.fit.trials import Trials
from chimap.selection.race_trials import SAME, Candidate, Outcome, Trial

_GRADIENTS = 1000  # rows whose gradients are averaged


@dataclass(frozen=True)
class WeighedBins:
    """Fits of a race with weights of the bins."""

    race: Race

    def learn(self, first: Trial, progress: Progress) -> LearnedBins:
        """Weights of bins for the candidate of a trial, learned with the rows of the last round.

        Of many rows those of the round before are looked at first: weights that lose there have nothing to gain.
        """
        progress.stage("bins", None, "fits")
        rounds = sorted(self.race.splits_of)
        is_dear = self.race.trials is not None and rounds[-1] > ROUNDS[1]
        for place in (len(rounds) - 2, len(rounds) - 1) if is_dear else (len(rounds) - 1,):
            n_rows = rounds[place]

            def weigh(
                candidate: Candidate, weights: np.ndarray, n_rows: int = n_rows
            ) -> tuple[Outcome, Callable[[], np.ndarray]]:
                progress.advance()
                return self.weigh(candidate, weights, n_rows)

            looked = replace(first, round=first.round - (len(rounds) - 1 - place), n_rows=n_rows)
            learned = learn_bins(
                weigh, first.candidate, self.race.splits_of[n_rows], self.race.rows.shape[1], looked
            )
            if not learned.gain > 0:
                break
        return learned

    def weigh(
        self, candidate: Candidate, weights: np.ndarray, n_rows: int
    ) -> tuple[Outcome, Callable[[], np.ndarray]]:
        """See ``Weighing``: with the rows of a round; each split is a fit of its own."""
        pairs = list(zip(self.race.splits_at(n_rows), weights, strict=True))
        is_quick = self.race.trials is not None and self.race.trials.weighs(candidate.settings)
        quick = self.race.trials if is_quick else None
        fits = [
            self._weighed_fit(candidate, own, split) if quick is None
            else self._weighed_trial(quick, candidate, own, split)
            for split, own in pairs
        ]  # fmt: skip
        outcomes = [outcome for outcome, _ in fits]
        joined = Outcome(
            float(np.mean([one.score for one in outcomes])), outcomes[-1].learned,
            tuple(value / len(fits) for one in outcomes for value in one.deviations),
            float(np.median([one.predict_seconds for one in outcomes])),
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
        settings = candidate.settings | {"bin_weights": weights}
        fitted = self.race.fitted(replace(candidate, settings=settings), train)
        score, deviations, seconds = self.race.scored(fitted, test)
        gamma = getattr(fitted.kernel_, "gamma", None)
        learned = {"alpha": fitted.alpha_} | ({} if gamma is None else {"gamma": float(gamma)})

        def following() -> np.ndarray:
            model = fitted._mapped_model()
            if model is None:
                raise DataError(
                    f"bin_weights='learn' takes gradients, which {fitted.features_.describe()} have none of. Give "
                    "weights, or name an exponential kernel."
                )
            rows = fitted._prepare(_arrays.take_rows(self.race.rows, train[:_GRADIENTS]), 0, "the sample")
            blocks = (
                [part.columns for part in fitted._parts(weights.size)] if fitted.blocks is not None else None
            )
            return learned_weights(model, rows, weights, blocks)

        return Outcome(score, learned, tuple(deviations.tolist()), seconds), following
