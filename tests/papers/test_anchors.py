"""Nearest-anchor maps: the anchors, the square root, the neighbours and the codes."""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from chimap import AnchorMap, AutomaticFeatures, FourierFeatures, HistogramClassifier, chi2, intersection, load
from chimap._loops import kmeans_on_line
from chimap._validation import DataError
from chimap.kernels import CATALOGUE as KERNELS
from chimap.papers.codes import _quantiles, add_up, check_codes, code_dtype, look_up, rounded_down

from ..golden import RELATIVE, golden
from ..histograms import DTYPES, SPARSE_KINDS, classes, histograms, relative_error, signed_histograms

FORMS = {
    "uniform": {},
    "kmeans": {"anchors": "kmeans", "n_anchors": 12},
    "two, interpolated": {"n_neighbors": 2},
    "three, interpolated, kmeans": {"n_neighbors": 3, "anchors": "kmeans", "n_anchors": 12},
    "two, averaged": {"n_neighbors": 2, "weights": "uniform"},
    "three, averaged, kmeans": {"n_neighbors": 3, "weights": "uniform", "anchors": "kmeans", "n_anchors": 12},
}
every_form = pytest.mark.parametrize("form", FORMS.values(), ids=FORMS)
with_codes = pytest.mark.parametrize("form", [f for n, f in FORMS.items() if "interpolated" not in n])


def neighbours_by_sorting(psi, i, x):
    """Anchors and weights of a value by the definition: sort all anchors by their distance."""
    anchors = psi.anchors_[i][np.isfinite(psi.anchors_[i])]
    x = min(x, anchors[-1])
    gaps = np.abs(anchors - x)
    nearest = np.lexsort((anchors, gaps))[: psi.n_neighbors]
    if x == 0:
        return nearest[:1], np.ones(1)
    if psi.weights == "uniform":
        return nearest, np.full(nearest.size, 1 / nearest.size)
    if gaps[nearest[0]] == 0:
        return nearest[:1], np.ones(1)
    weights = 1 / gaps[nearest]
    return nearest, weights / weights.sum()


# --- the definition


@pytest.mark.parametrize("dtype", RELATIVE)
def test_golden(dtype):
    table = golden("anchors")
    X = np.array(table["points"], dtype)[:, None]
    for case in table["cases"]:
        psi = AnchorMap(case["kernel"], energy=1.0, n_anchors=len(table["anchors"])).fit(X)
        np.testing.assert_allclose(psi.anchors_[0], table["anchors"], rtol=1e-15)
        Z = psi.transform(X)
        tolerance = RELATIVE[dtype]
        np.testing.assert_allclose(Z @ Z.T, case["one_nn"], rtol=tolerance, atol=tolerance)


@every_form
@pytest.mark.parametrize("kernel", KERNELS.values(), ids=KERNELS)
def test_full_rank_is_the_kernel_of_the_anchors(form, kernel):
    """Features with all terms have the dot products of the (averaged) anchors."""
    X = histograms(40, 3)
    X[0] = X.max(axis=0) * 3  # beyond what it is fitted on
    psi = AnchorMap(kernel.with_gamma(0.7), energy=1.0, **form).fit(X[1:])
    Z = psi.transform(X).reshape(40, -1, 3)
    for i in range(3):
        picked = [neighbours_by_sorting(psi, i, x) for x in X[:, i]]
        anchors = psi.anchors_[i][np.isfinite(psi.anchors_[i])]
        gram = psi.kernel_(anchors[:, None])
        mixed = np.array([np.bincount(n, w, anchors.size) for n, w in picked])
        np.testing.assert_allclose(Z[:, :, i] @ Z[:, :, i].T, mixed @ gram @ mixed.T, rtol=1e-9, atol=1e-11)


@every_form
@given(x=st.lists(st.floats(0, 1), min_size=1, max_size=20), cut=st.integers(1, 4))
def test_truncation_takes_from_the_diagonal(form, x, cut):
    """Q'Q less its smallest eigenvalues: what is missing is positive semi-definite."""
    X = np.array(x)[:, None]
    whole = AnchorMap("chi2", energy=1.0, **form).fit(X)
    less = AnchorMap("chi2", cut, **form).fit(X)
    Z, S = whole.transform(X), less.transform(X)
    missing = Z @ Z.T - S @ S.T
    assert np.linalg.eigvalsh(missing).min() >= -1e-9 * max(1.0, np.abs(Z @ Z.T).max())


def test_energy_is_reached_with_as_few_terms_as_can_be():
    X = histograms(60)
    for kernel in (chi2, intersection):
        for energy in (0.9, 0.95, 0.99):
            psi = AnchorMap(kernel, n_anchors=30, energy=energy).fit(X)
            values = np.linalg.eigvalsh(kernel(np.linspace(0, 1, 30)[:, None]))[::-1]
            share = np.cumsum(values) / values.sum()
            assert share[psi.n_terms_ - 1] >= energy - 1e-12
            assert psi.n_terms_ == 1 or share[psi.n_terms_ - 2] < energy
    assert AnchorMap("hellinger").fit(X).n_terms_ == 1


def test_number_of_terms_is_that_of_the_neediest_bin():
    X = histograms(60, 5)
    X[:, 0] = 0.3
    X[:, 1] = 0
    psi = AnchorMap("intersection", anchors="kmeans", n_anchors=20).fit(X)
    alone = [AnchorMap("intersection", anchors="kmeans", n_anchors=20).fit(X[:, [i]]) for i in range(5)]
    assert [one.n_terms_ for one in alone][:2] == [1, 1]
    assert psi.n_terms_ == max(one.n_terms_ for one in alone) > 1
    Z = psi.transform(X).reshape(60, -1, 5)
    assert not Z[:, 1:, 0].any()
    for i, one in enumerate(alone):
        np.testing.assert_allclose(Z[:, : one.n_terms_, i], one.transform(X[:, [i]]), rtol=1e-9, atol=1e-12)
    given = AnchorMap("intersection", 40, anchors="kmeans", n_anchors=20).fit(X)
    assert given.transform(X).shape == (60, 40 * 5)


def test_error_falls_with_the_anchors():
    X = histograms(300, 8, empty=0.1)
    for form, slope in (("uniform", 0.62), ("two, interpolated", 0.45), ("kmeans", 0.55)):
        errors = []
        for n_anchors in (13, 25, 49, 97):
            settings = {**FORMS[form], "n_anchors": n_anchors}
            Z = AnchorMap("intersection", energy=1.0, **settings).fit_transform(X)
            errors.append(relative_error(Z @ Z.T, intersection(X)))
        assert all(b < slope * a for a, b in pairwise(errors))


def test_worst_case_and_expectation_of_the_error():
    """sec. 4: rounding changes k by its slope times the distance at worst, and by second order on average."""
    x = np.random.default_rng(0).uniform(0.2, 1.0, (4000, 2))
    x[0] = 1
    worst, mean = [], []
    for n_anchors in (9, 17, 33):
        psi = AnchorMap("chi2", energy=1.0, n_anchors=n_anchors).fit(x.reshape(-1, 1))
        Z = psi.transform(x.reshape(-1, 1)).reshape(4000, 2, -1)
        gap = (Z[:, 0] * Z[:, 1]).sum(axis=1) - 2 * x[:, 0] * x[:, 1] / x.sum(axis=1)
        half = 0.5 / (n_anchors - 1)
        assert np.abs(gap).max() < 2 * half * 2  # |dk/dx| <= 2 for both sides
        worst.append(np.abs(gap).max())
        mean.append(abs(gap.mean()))
    assert worst[0] / worst[2] < 8  # first order: a quarter of the spacing gave about a quarter
    assert mean[2] < 0.05 * worst[2]


# --- anchors


def all_clusterings(x, counts, k):
    """The smallest sum of squares over every way to cut sorted x into k runs, the first of which belongs to 0."""
    best = np.inf
    for cuts in combinations(range(x.size + k), k - 1):
        borders = [0, *(c - p for p, c in enumerate(cuts)), x.size]
        if max(borders) > x.size or any(b < a for a, b in pairwise(borders)):
            continue
        total = (counts[: borders[1]] * x[: borders[1]] ** 2).sum()
        for a, b in pairwise(borders[1:]):
            if a < b:
                mean = np.average(x[a:b], weights=counts[a:b])
                total += (counts[a:b] * (x[a:b] - mean) ** 2).sum()
        best = min(best, total)
    return best


def cost_of(x, counts, centres):
    gaps = np.abs(x[:, None] - np.concatenate([[0.0], centres]))
    return (counts * gaps.min(axis=1) ** 2).sum()


@given(x=st.lists(st.integers(1, 40), min_size=1, max_size=9, unique=True), k=st.integers(2, 5), seed=st.integers(0, 5))
def test_kmeans_is_the_best_of_all_clusterings(x, k, seed):
    x = np.sort(np.array(x, float)) / 40
    counts = np.random.default_rng(seed).integers(1, 9, x.size).astype(float)
    centres = kmeans_on_line(x, counts, k)
    assert np.all(np.diff(centres) > 0)
    np.testing.assert_allclose(cost_of(x, counts, centres), all_clusterings(x, counts, k), atol=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_kmeans_by_the_plain_recursion(seed):
    """At a size where monotone search matters: the same optimum as the search over all i."""
    rng = np.random.default_rng(seed)
    x = np.unique(rng.gamma(0.5, size=300))
    x, counts, k = x / x[-1], rng.integers(1, 5, x.size).astype(float), 12
    n = x.size
    cost = np.concatenate([[0], np.cumsum(counts * x**2)])
    w, s, q = (np.concatenate([[0], np.cumsum(v)]) for v in (counts, counts * x, counts * x**2))
    i, j = np.meshgrid(np.arange(n + 1), np.arange(n + 1), indexing="ij")
    mass = np.where(i < j, w[j] - w[i], 1)
    spread = np.where(i < j, (q[j] - q[i]) - (s[j] - s[i]) ** 2 / mass, np.where(i == j, 0, np.inf))
    for _ in range(k - 1):
        cost = (cost[:, None] + spread).min(axis=0)
    np.testing.assert_allclose(cost_of(x, counts, kmeans_on_line(x, counts, k)), cost[n], rtol=1e-9)


def test_kmeans_of_many_values_is_that_of_their_quantiles(monkeypatch):
    monkeypatch.setattr("chimap.papers.codes._SAMPLE_VALUES", 1000)
    X = histograms(3000, 2)
    psi = AnchorMap(anchors="kmeans", n_anchors=20).fit(X)
    x, counts = np.unique(X[:, 0][X[:, 0] > 0], return_counts=True)
    best = kmeans_on_line(x, counts.astype(float), 20)
    assert cost_of(x, counts, psi.anchors_[0, 1:]) < 1.05 * cost_of(x, counts, best)
    assert psi.scale_[0] <= x[-1]


def test_few_distinct_values_are_all_anchors():
    X = np.array([[1.0, 0.0, 2.0], [3.0, 0.0, 2.0], [1.0, 0.0, 0.0]])
    for rows in (X, sp.csr_matrix(X)):
        psi = AnchorMap(anchors="kmeans", n_anchors=5, energy=1.0).fit(rows)
        np.testing.assert_array_equal(
            psi.anchors_, [[0, 1, 3, np.inf, np.inf], [0, *[np.inf] * 4], [0, 2, *[np.inf] * 3]]
        )
        np.testing.assert_allclose(psi.transform(X) @ psi.transform(X).T, chi2(X), rtol=1e-12)
        # above the last anchor, and in a bin that was empty
        np.testing.assert_array_equal(psi.encode(np.array([[9.0, 5.0, 9.0], [1.9, 1e-9, 1.1]])), [[2, 0, 1], [1, 0, 1]])


@pytest.mark.parametrize("scale", [1e-300, 1e300])
@every_form
def test_scale_of_the_data_does_not_matter(form, scale):
    X = histograms(30, 4)
    plain, scaled = (AnchorMap("chi2", 3, **form).fit(rows) for rows in (X, X * scale))
    Z = scaled.transform(X * scale)
    np.testing.assert_allclose(Z / np.sqrt(scale), plain.transform(X), rtol=1e-7, atol=1e-9)


# --- codes


@with_codes
@pytest.mark.parametrize("dtype", DTYPES)
def test_codes_name_the_nearest_anchor(form, dtype):
    X = histograms(200, 5).astype(dtype)
    psi = AnchorMap("chi2", 3, **form).fit(X)
    codes = psi.encode(X)
    assert codes.dtype == np.uint8
    assert codes.max() < psi.n_codes_
    for i in range(5):
        picked = [neighbours_by_sorting(psi, i, x)[0] for x in X[:, i].astype(float)]
        lift = 1 if psi.n_neighbors > 1 else 0
        expected = [0 if x == 0 else p.min() + lift for x, p in zip(X[:, i], picked, strict=True)]
        np.testing.assert_array_equal(codes[:, i], expected)


@with_codes
@pytest.mark.parametrize("kind", SPARSE_KINDS)
def test_sparse_codes_as_dense(form, kind):
    X = histograms(40, 9)
    psi = AnchorMap("chi2", 3, **form).fit(X)
    codes = psi.encode(SPARSE_KINDS[kind](X))
    assert codes.dtype == np.uint8
    assert codes.format == "csr"
    codes.check_format(full_check=True)
    assert np.all(codes.data > 0)
    np.testing.assert_array_equal(codes.toarray(), psi.encode(X))


@with_codes
def test_tables_of_weights_are_the_model_on_the_features(form):
    for kernel, X in ((chi2, histograms(50, 7)), (chi2.signed().with_gamma(0.5), signed_histograms(50, 7))):
        psi = AnchorMap(kernel, **form).fit(X)
        rng = np.random.default_rng(0)
        Z, codes = psi.transform(X), psi.encode(X)
        W, R = rng.normal(size=(3, Z.shape[1])), rng.normal(size=(50, 3))
        tables = psi.tables(W)
        assert tables.shape == (3, 7, psi.n_codes_)
        for form_of_codes in (codes, psi.encode(sp.csr_matrix(X))):
            looked_up = look_up(form_of_codes, psi.tables_by_bin(W))
            np.testing.assert_allclose(looked_up, Z @ W.T, rtol=1e-12, atol=1e-13)
            one = look_up(form_of_codes, psi.tables_by_bin(W[0]))
            np.testing.assert_allclose(one[:, 0], Z @ W[0], rtol=1e-12, atol=1e-13)
            back = psi.weights_by_term(add_up(form_of_codes, R, psi.n_codes_))
            np.testing.assert_allclose(back, R.T @ Z, rtol=1e-11, atol=1e-12)


def test_signed_codes():
    X = np.array([[1.0, -2.0], [-0.5, 2.0], [0.0, -0.1]])
    psi = AnchorMap(chi2.signed(), n_anchors=5).fit(X)
    assert psi.n_codes_ == 9
    np.testing.assert_array_equal(psi.encode(X), [[4, 8], [6, 4], [0, 0]])


def test_codes_take_two_bytes_from_257_on():
    assert [code_dtype(n).itemsize for n in (2, 256, 257, 65535)] == [1, 1, 2, 2]
    X = histograms()
    assert AnchorMap(n_anchors=256).fit(X).encode(X).dtype == np.uint8
    psi = AnchorMap(n_anchors=257, output="codes").fit(X)
    codes = psi.transform(X)
    assert codes.dtype == np.uint16
    assert codes.max() == 256
    assert AnchorMap(chi2.signed(), n_anchors=129).fit(X).encode(X).dtype == np.uint16


def test_output_of_codes_in_a_pipeline():
    X = histograms()
    psi = AnchorMap(output="codes").fit(X)
    np.testing.assert_array_equal(psi.transform(X), AnchorMap().fit(X).encode(X))
    assert psi.get_feature_names_out().tolist() == [f"x{i}_code" for i in range(12)]


def test_equal_numbers_have_equal_codes_in_either_precision():
    X = np.random.default_rng(0).random((500, 6)).astype(np.float32)
    for anchors in ("uniform", "kmeans"):
        psi = AnchorMap(anchors=anchors).fit(X)
        np.testing.assert_array_equal(psi.encode(X), psi.encode(X.astype(np.float64)))


@given(st.floats(0, 1e300), st.sampled_from(DTYPES))
def test_rounding_down_keeps_comparisons(border, dtype):
    down = rounded_down(np.array([border]), np.dtype(dtype))[0]
    assert float(down) <= border
    with np.errstate(over="ignore"):
        assert float(np.nextafter(down, dtype(np.inf))) > border


def test_sums_by_code_add_up_whatever_the_threads():
    from chimap._threads import threads

    codes = np.random.default_rng(0).integers(0, 9, (4000, 30)).astype(np.uint8)
    R = np.random.default_rng(1).normal(size=(4000, 2))
    with threads(1):
        one = add_up(codes, R, 9), add_up(sp.csr_matrix(codes), R, 9)
    with threads(3):
        np.testing.assert_array_equal(add_up(codes, R, 9), one[0])
        np.testing.assert_array_equal(add_up(sp.csr_matrix(codes), R, 9), one[1])
    np.testing.assert_array_equal(one[0][:, 1:], one[1][:, 1:])
    np.testing.assert_allclose(one[0].sum(axis=1), np.tile(R.sum(axis=0), (30, 1)), rtol=1e-10)


@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_foreign_codes(kind):
    codes = np.ones((5, 3), np.uint8)
    codes[3, 1] = 7
    with pytest.raises(DataError, match=r"codes, row 3, column 1: 7, but this map has 7 codes"):
        check_codes(kind(codes), 3, 7)
    for wrong in (codes[:, :2], codes.astype(float)):
        with pytest.raises(DataError, match=r"codes must be whole numbers \(rows, 3\)"):
            check_codes(kind(wrong), 3, 9)


# --- what it refuses, and its place in the whole


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_anchors": 1}, "n_anchors must be between 2"),
        ({"n_anchors": 40000}, "n_anchors must be between 2 .* 32768"),
        ({"n_anchors": 2.5}, "n_anchors must be a positive whole number"),
        ({"n_neighbors": 0}, "n_neighbors must be a positive whole number"),
        ({"n_neighbors": 6, "n_anchors": 5}, "n_neighbors must be at most n_anchors = 5; got 6"),
        ({"anchors": "random"}, "anchors must be one of 'uniform', 'kmeans'"),
        ({"weights": "gauss"}, "weights must be one of"),
        ({"output": "bits"}, "output must be one of"),
        ({"energy": 0}, "energy must be a positive number"),
        ({"energy": 1.5}, "energy is a share"),
        ({"n_terms": 0}, "n_terms must be a positive whole number"),
    ],
    ids=str,
)
def test_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        AnchorMap(**settings).fit(histograms())


def test_interpolated_features_have_no_codes():
    psi = AnchorMap(n_neighbors=2).fit(histograms())
    for call in (psi.encode, lambda X: psi.tables(np.ones(psi.transform(X).shape[1]))):
        with pytest.raises(ValueError, match="Use n_neighbors=1 or weights='uniform'"):
            call(histograms())


def test_under_random_features_and_the_estimators(tmp_path):
    X, y = classes(300)
    features = FourierFeatures("exp-chi2", 512, map=AnchorMap(anchors="kmeans"), random_state=0)
    Z = features.fit_transform(X)
    assert relative_error(Z @ Z.T, features.kernel_(X)) < 0.1
    for kernel in ("chi2", "exp-chi2"):
        psi = AnchorMap(n_terms=3, anchors="kmeans")
        model = HistogramClassifier(kernel, features=AutomaticFeatures(map=psi), n_components=64, random_state=0)
        assert model.fit(X, y).score(X, y) > 0.85
        path = tmp_path / f"{kernel}.model"
        model.save(path)
        np.testing.assert_array_equal(load(path).decision_function(X), model.decision_function(X))


def test_terms_that_are_rounding_are_zero():
    """The Gram matrix of the Hellinger kernel has rank 1, whatever the number of anchors."""
    psi = AnchorMap("hellinger", n_terms=4, n_anchors=400).fit(np.ones((1, 1)))
    Z = psi.transform(psi.anchors_[0][:, None])
    np.testing.assert_allclose(Z[:, 0], np.sqrt(psi.anchors_[0]), atol=1e-12)
    np.testing.assert_array_equal(Z[:, 1:], 0)


def test_quantiles_keep_the_largest_value_and_as_many_as_the_limit_allows():
    values = np.random.default_rng(0).permutation(np.arange(1.0, 1001))
    kept = _quantiles(values, 250)
    assert kept.size == 250
    assert kept.max() == 1000
    assert set(np.abs(np.diff(kept))) == {4.0}
    assert _quantiles(values, 1000) is values
