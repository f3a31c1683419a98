"""What do exact machines lose when few rows learn their outputs? Score, log-loss and time by the rows that are kept.

The default settings are fitted on all training rows of a set, and the machine is compressed to some numbers of rows.
Printed are, for all test rows, the score and the log-loss of the probabilities, which are learned again; beside them the
share of answers like those of all rows, as ``chimap compress`` estimates it without test rows; and microseconds of a
row, measured on the rows of the machine. One seed.

python -m benchmarks.accuracy.compressed                                   # MNIST and CIFAR's words: minutes
python -m benchmarks.accuracy.compressed --sets hiv --rows 500,2000
"""

from __future__ import annotations

import argparse
import time
from typing import Any

from sklearn.metrics import get_scorer, log_loss

from benchmarks.sets import SETS, LabelledSet
from chimap import HistogramClassifier
from chimap.models.compress import compressions, exact_row


def measured(model: Any, data: LabelledSet) -> str:
    """Return the score and the log-loss on the test rows."""
    score = get_scorer(data.scoring)(model, data.X_test, data.y_test)
    return f"{score:10.4f}{log_loss(data.y_test, model.predict_proba(data.X_test), labels=model.classes_):10.4f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", default="mnist,cifar words")
    parser.add_argument("--rows", default="1000,2000,4000")
    options = parser.parse_args()
    print(f"{'set':14}{'rows':>8}{'score':>10}{'log-loss':>10}{'like all':>10}{'us a row':>10}")
    for name in options.sets.split(","):
        data = SETS[name]()
        model = HistogramClassifier(random_state=0).fit(data.X, data.y)
        kept, took = exact_row(model.fitted)
        print(f"{name:14}{kept:8,}{measured(model, data)}{'':10}{took:10.0f}", flush=True)
        began = time.perf_counter()
        for small in compressions(model.fitted, sorted(int(n) for n in options.rows.split(","))):
            shown = measured(model.with_model(small.model), data)
            print(f"{name:14}{small.n_rows:8,}{shown}{small.agreement:10.4f}{small.microseconds:10.0f}", flush=True)
        print(f"{name}: {time.perf_counter() - began:.0f} seconds", flush=True)


if __name__ == "__main__":
    main()
