"""Which strength and gamma suit the blocks to come? Sweeps over blocks, scored on rows that none has seen.

A machine in blocks begins with the strength and gamma that its race found on a few thousand rows, and meets contenders
(``chimap.solvers.contenders``). The benchmark learns the first blocks of a sweep again at that strength divided by some
numbers, with gamma moved by octaves, each from its first block on, and prints after every block
the score of the last rows of the sweep, its difference from that of the undivided strength with its standard error
(by the jackknife, over fifty parts of these rows), their mean squared error, and the length of the step.

python -m benchmarks.accuracy.strengths_of_blocks                       # four sets, a quarter of the strength, 3 blocks
python -m benchmarks.accuracy.strengths_of_blocks --sets hiv --blocks 4 --by 4,16 --scored 8000
python -m benchmarks.accuracy.strengths_of_blocks --by .316 --octaves 1   # twice the gamma, at three times the strength
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unittest.mock import patch

import numpy as np

from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier, HistogramRegressor
from chimap.fit import rivals
from chimap.moments import of_rows
from chimap.selection.leave_one_out import LeavingOut, strengths_of
from chimap.solvers.base import KernelRows
from chimap.solvers.block_kernel import block_kernel
from chimap.solvers.blocks import BlockRidge, core_rows

PARTS = 50


class Begun(Exception):
    """A fit has come to its first block."""


@dataclass(frozen=True)
class FirstBlocks:
    """The rows of a fit in the order of its sweep, the ends of its blocks, and the strength of its race."""

    rows: KernelRows
    borders: np.ndarray
    alpha: float

    @classmethod
    def of(cls, data: LabelledSet, seed: int) -> FirstBlocks:
        """Return what a fit without settings begins its sweep with, and stop it there."""
        found: list[FirstBlocks] = []

        def choose(self: LeavingOut, problem: Any, open_settings: Any) -> None:
            strengths = strengths_of(open_settings)
            found.append(cls(problem.rows, problem.borders, min(strengths)))
            raise Begun

        made = HistogramRegressor if data.scoring == "r2" else HistogramClassifier
        scoring = data.scoring if data.scoring == "roc_auc" else None
        with patch.object(LeavingOut, "choose", choose), patch.object(rivals, "FEWEST_ROWS", 10**9):
            try:
                made(scoring=scoring, random_state=seed).fit(data.X, data.y)
            except Begun:
                return found[0]
        raise ValueError(f"{data.name} is not learned in blocks: take a larger set")

    def sweep(self, alpha: float, n_blocks: int, scored: slice) -> Iterator[tuple[int, np.ndarray, float]]:
        """Yield the rows learned, the outputs of rows to score, and the length of the step, after each block."""
        rows, ends = self.rows, self.borders[: n_blocks + 1]
        n_core, first = core_rows(int(ends[1])), slice(int(ends[1]))
        most = max(int(ends[1]), n_core + int(np.diff(ends[1:]).max(initial=0)))
        weights = None if rows.weights is None else of_rows(rows.weights)
        intercept = np.average(rows.Y[first], axis=0, weights=None if weights is None else weights[first])
        kernel = block_kernel(rows.features, most, rows.dtype)
        machine = BlockRidge(kernel, rows.Y, weights, alpha, intercept, n_core, is_lifted=rows.features.is_centred)
        outputs = np.zeros((scored.stop - scored.start, rows.Y.shape[1]))
        for begin, end in pairwise(ends):
            machine.learn(slice(int(begin), int(end)))
            outputs += machine.change_of_outputs(scored)
            yield int(end), outputs + machine.intercept, machine.length


def compared(rows: KernelRows, outputs: np.ndarray, others: np.ndarray, scored: slice) -> tuple[float, float, float]:
    """Return the score of outputs, how far it is above that of others, and the standard error of the difference."""
    places = np.arange(scored.start, scored.stop)
    part = np.random.default_rng(0).permutation(places.size) % PARTS
    scores = [rows.scored(each, places) for each in (outputs, others)]
    gains = [
        rows.scored(outputs[part != k], places[part != k]) - rows.scored(others[part != k], places[part != k])
        for k in range(PARTS)
    ]
    return scores[0], scores[0] - scores[1], float(np.sqrt((PARTS - 1) * np.var(gains)))


def main() -> None:
    """Print a line for each set, strength and block."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sets", default="mnist,fashion_mnist,cifar words,hiv")
    parser.add_argument("--by", default="4", help="numbers that divide the strength of the race")
    parser.add_argument("--octaves", type=int, default=0, help="octaves of gamma from that of the race")
    parser.add_argument("--blocks", type=int, default=3, help="blocks to learn")
    parser.add_argument("--scored", type=int, default=5000, help="rows to score, the last of the sweep")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    for name in options.sets.split(","):
        begun = FirstBlocks.of(SETS[name](), options.seed)
        n = begun.rows.Y.shape[0]
        scored = slice(n - options.scored, n)
        if begun.borders[options.blocks] > scored.start:
            raise ValueError(f"{name}: {options.blocks} blocks reach into the {options.scored:,} rows to score")
        before = dict[int, np.ndarray]()
        for place, divisor in enumerate((1.0, *map(float, options.by.split(",")))):
            begun.rows.features.set_octaves(options.octaves if place == 1 else 0)
            for learned, outputs, length in begun.sweep(begun.alpha / divisor, options.blocks, scored):
                others = before.setdefault(learned, outputs)
                score, gain, error = compared(begun.rows, outputs, others, scored)
                squares = float(np.square(begun.rows.Y[scored] - outputs).mean())
                print(
                    f"{name:<14}{begun.alpha / divisor:>9.3g}{learned:>8,} rows {score:.4f} {gain:+.4f} ± {error:.4f} "
                    f"squared error {squares:.5f} length {length:.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
