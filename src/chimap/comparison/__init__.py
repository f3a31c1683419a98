"""Maps and features tried side by side on the user's own rows: errors, times, scores, sizes, and which one to take.

The way through the folder: ``candidates`` lists what is tried, from the catalogues of the package; ``rows`` draws the
rows; ``kernel_error`` compares with the exact kernel and with the least error possible; ``learning`` trains a ridge
on any features; ``references`` are the exact machine and the linear model; ``measure`` goes through them all. What
comes out is a ``chimap.report.Comparison``, which recommends.

>>> from sklearn.datasets import load_digits
>>> X, y = load_digits(return_X_y=True)
>>> from chimap.data import ArraySource
>>> found = compare(ArraySource(X, y), kernel="chi2", maps=["optimal"], n_terms=[1, 3], n_rows=600, exact_rows=200)
>>> [m.n_features for m in found.measured], found.recommendation.chosen.family
([64, 192], 'OptimalMap')
"""

from chimap.comparison.candidates import Candidate, candidates_for
from chimap.comparison.measure import compare

__all__ = ["Candidate", "candidates_for", "compare"]
