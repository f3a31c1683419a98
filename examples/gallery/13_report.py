"""A report in a notebook

`chimap.report` scores a fitted model on rows that it has not seen. A notebook shows the page that `chimap evaluate`
writes; the values are attributes, and `save` writes the page to a file.
"""

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import chimap

# %%
# Small scans of handwritten digits: the amount of ink in each of 64 cells, of which a third of the scans is kept apart.
X, y = load_digits(return_X_y=True)
X, X_new, y, y_new = train_test_split(X, y, test_size=1 / 3, stratify=y, random_state=0)
model = chimap.HistogramClassifier("exp-chi2", random_state=0).fit(X, y)

# %%
# The rows that the model has learned from are optional. With them, the report fits a linear model to the same rows, and
# the model itself to parts of them. Printed, a report is the summary of the command line.
found = chimap.report(
    model, X_new, y_new, training=(X, y), which="a third of the scans, kept apart"
)
print(found)

# %%
# The values are attributes. More rows would hardly help, and the cells that matter most are in the middle.
curve, metrics = found.insight.curve, found.metrics
print(
    f"accuracy {metrics.accuracy:.3f}, of a linear model {found.insight.linear.score:.3f}"
)
print(
    f"macro F1 {np.nanmean(metrics.f1):.3f}; probabilities off by {found.reliability.error:.3f}"
)
figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.4))
left.plot(curve.rows, curve.scores, "o-")
left.set(
    xlabel="training rows", ylabel=f"held-out {curve.measure}", title="Learning curve"
)
names, values = zip(*found.insight.importance, strict=True)
right.barh(names[::-1], values[::-1])
right.set(xlabel="importance", ylabel="cell", title="Cells that matter most")
figure.tight_layout()

# %%
# In a notebook, a report at the end of a cell is shown as its page. `found.save("digits.html")` writes the page.
found
