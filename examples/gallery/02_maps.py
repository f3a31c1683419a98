"""Maps: a kernel as a few numbers a bin

A kernel measures how alike two rows of counts are. A map turns each count into `n_terms` numbers, so that the dot
product of two mapped rows approximates the kernel. How large is the error of each map, by number of terms?
"""

# %%
# We draw rows whose bins differ widely in size, as species counts do.
import matplotlib.pyplot as plt
import numpy as np

from chimap import ChebyshevMap, DirectMap, HomogeneousMap, OptimalMap, chi2

X = np.random.default_rng(0).dirichlet(np.geomspace(0.05, 5, 40), size=300)
exact = chi2(X)


def error(psi):
    Z = psi.fit_transform(X)
    return np.linalg.norm(Z @ Z.T - exact) / np.linalg.norm(exact)


# %%
# `OptimalMap`, the default, has the least possible error for the density of these values.
terms = range(1, 8)
figure, left = plt.subplots(figsize=(6, 3.6))
for kind in (ChebyshevMap, HomogeneousMap, DirectMap, OptimalMap):
    allowed = [n for n in terms if n % 2 or kind is not HomogeneousMap]
    errors = [error(kind(n_terms=n)) for n in allowed]
    left.semilogy(allowed, errors, marker="o", label=kind.__name__)
    print(f"{kind.__name__:15} 3 terms: {errors[allowed.index(3)]:.1e}")
left.set(
    xlabel="terms per bin",
    ylabel="relative error of the kernel",
    title="Error of maps by terms",
)
left.legend()

# %%
# The map has learned three functions of the value of a bin.
psi = OptimalMap(n_terms=3).fit(X)
x = np.geomspace(1e-4, 0.3, 300)
figure, right = plt.subplots(figsize=(6, 3.6))
right.semilogx(x, psi.eigenfunctions(x), label=["term 1", "term 2", "term 3"])
right.set(xlabel="value of a bin", title="The terms of the optimal map")
right.legend()
