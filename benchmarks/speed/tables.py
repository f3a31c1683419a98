"""How much faster are tables than map and dot, and than the exact machine? How large are they, and their error?"""

import numpy as np
import scipy.sparse as sp
from sklearn.svm import SVC

from benchmarks.measure import counts, mnist, ratio, report, seconds
from chimap import HistogramClassifier, OptimalMap, chi2
from chimap._memory import format_bytes
from chimap._types import MatrixLike

X, y, X_test, y_test = mnist(normalize=True)
ROWS = 10_000
X, y = X[:ROWS], y[:ROWS]


def compare(name: str, model: HistogramClassifier, rows: MatrixLike, target: str):
    """Compare tables with the model itself, and with its map and dot into existing memory."""
    compiled = model.compile()
    tables = seconds(lambda: compiled.decision_function(rows), 9)
    whole = seconds(lambda: model.decision_function(rows), 5)
    report(f"{name}: times as fast as decision_function", ratio(whole, tables), target)
    if not sp.issparse(rows):
        psi, weights = model.features_, np.ascontiguousarray(model.feature_coef_.T, np.float32)
        Z = np.empty((2048, len(weights)), np.float32)

        def map_and_dot():
            for first in range(0, rows.shape[0], 2048):
                part = rows[first : first + 2048]
                psi.transform_into(part, Z[: part.shape[0]])
                Z[: part.shape[0]] @ weights

        report(f"{name}: as map, 2048 rows at once, and dot alone", ratio(seconds(map_and_dot, 5), tables), target)
    gap = np.abs(compiled.decision_function(rows) - model.decision_function(rows)).max()
    found = compiled.tables_
    size = np.abs(model.decision_function(rows)).max()
    print(
        f"  {found.n_pieces} pieces per bin, spacing 1/2^{found.power}, {format_bytes(found.nbytes)}; scores up to {size:.2g} off"
        f" by {gap:.1e}, bound {found.worst_error:.1e}; {1e9 * np.median(tables) / rows.shape[0] / rows.shape[1]:.2f} ns per value"
    )
    return compiled, tables


dense = np.random.default_rng(0).dirichlet(np.full(500, 0.5), size=ROWS).astype(np.float32)
for terms in (2, 3):
    for classes in (2, 10):
        labels = np.arange(ROWS) % classes
        model = HistogramClassifier("chi2", features=OptimalMap(n_terms=terms), alpha=1.0).fit(dense, labels)
        outputs = 1 if classes == 2 else classes
        compare(f"500 full bins, {terms} terms, {outputs} outputs", model, dense, "5")
model = HistogramClassifier("chi2", features=OptimalMap(n_terms=3), alpha=1.0).fit(X, y)
compiled, tables = compare("MNIST, 3 terms, 10 outputs", model, X_test, "5")
report(
    "  accuracy of the model; of the tables",
    f"{model.score(X_test, y_test):.4f}; {compiled.score(X_test, y_test):.4f}",
    "equal",
)
compare("MNIST as CSR, 3 terms, 10 outputs", model, sp.csr_matrix(X_test), "-")

words = counts("newsgroups20_counts.npz").astype(np.float32)
words = words[:, np.argsort(-words.getnnz(axis=0))[:2000]]
some = np.arange(words.shape[0]) % 2
compare(
    "20 newsgroups, CSR, 1 output",
    HistogramClassifier("chi2", features=OptimalMap(n_terms=3), alpha=1.0).fit(words, some),
    words,
    "-",
)

# --- the exact machine of the same kernel: its predict needs the kernel with every support vector

train, test = X[:5000], X_test[:1000]
machine = SVC(kernel=lambda A, B: chi2(A, B), C=10.0).fit(train, y[:5000])
model = HistogramClassifier("chi2", features=OptimalMap(n_terms=3), alpha=1.0).fit(train, y[:5000]).compile()
exact = seconds(lambda: machine.predict(test), 3)
report(
    f"exact SVC on 5000 rows ({machine.support_.size} support vectors): tables are times as fast",
    ratio(exact, seconds(lambda: model.predict(test), 21)),
    "500",
)
