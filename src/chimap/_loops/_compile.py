"""How the loops are compiled."""

SUMS = {
    "cache": True,
    "nogil": True,
    "error_model": "numpy",
    "fastmath": {"reassoc", "contract", "nsz", "arcp"},
}
"""For reductions: sums may be reassociated, which is what lets them use vector registers."""

EXACT = {"cache": True, "nogil": True, "error_model": "numpy", "fastmath": {"contract", "nsz"}}
"""For everything else: the range reductions of the logarithm and the cosine rely on the order of operations."""

INLINED = {**EXACT, "forceinline": True}
"""For long formulas inside of loops: the compiler would call them, and not vectorise the loop."""
