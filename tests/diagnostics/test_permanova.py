"""PERMANOVA in the space of a kernel: by its definitions, and by how its p-values are distributed."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import permutations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.stats import f_oneway, kstest

from chimap import HistogramClassifier, open_source
from chimap._errors import InputError
from chimap._progress import Progress
from chimap._validation import DataError, MemoryBudgetError
from chimap.data import ArraySource
from chimap.data.covariates import table_of_values
from chimap.diagnostics import coordinates, difference
from chimap.diagnostics.coordinates import KernelCoordinates, RowsInKernel, permuted_squares
from chimap.diagnostics.formula import Design, design_of_category, terms_of
from chimap.diagnostics.permanova import dispersion_of, permanova, table_of_terms
from chimap.kernels import as_kernel
from chimap.selection.shuffles import Shuffles
from tests.references.permanova import distances_to_means, one_way, sequential

KERNELS = ("chi2", "intersection", "hellinger", "exp-chi2", "linear", "minmax", "chi2+pq")


def counts(n=60, bins=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(1, 6, (n, bins)))
    X[:, 0] += 1
    site = np.repeat(["gut", "mouth", "skin"], n // 3)
    X[site == "skin", 2] += 7
    return X, {
        "site": site,
        "age": rng.random(n),
        "subject": np.tile(np.arange(n // 3), 3),
        "sex": rng.choice(list("fm"), n),
    }


def squared_distances(X, kernel):
    P = X / X.sum(axis=1, keepdims=True)
    return as_kernel(kernel).fitted(P, 0).distance(P)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_f_and_r2_are_those_of_sums_over_pairs(kernel, form):
    X, about = counts()
    found = permanova(form(X.astype(float)), "site", about, kernel=kernel, permutations=9)
    f, r2 = one_way(squared_distances(X, kernel), about["site"])
    assert found.terms[0].f == pytest.approx(f, rel=1e-10)
    assert found.terms[0].r2 == pytest.approx(r2, rel=1e-10)


def test_sums_of_squares_are_sequential():
    X, about = counts()
    found = permanova(X, "site * age + sex", about, covariates=["sex"], permutations=9)
    site = (about["site"][:, None] == np.unique(about["site"])).astype(float)
    sex, age = (about["sex"][:, None] == "f").astype(float), about["age"][:, None]
    expected = sequential(squared_distances(X, "chi2"), [sex, site, age, site * age])
    assert [term.name for term in found.terms] == ["sex", "site", "age", "site:age"]
    assert [term.df for term in found.terms] == [1, 2, 1, 2]
    assert [term.ss for term in found.terms] == pytest.approx(expected, rel=1e-9)
    total = sum(term.ss for term in found.terms) + found.residual_ss
    assert total == pytest.approx(found.total_ss)
    assert found.residual_df == 60 - 1 - 6
    assert [term.is_covariate for term in found.terms] == [True, False, False, False]


def test_p_is_that_of_all_orders():
    X, _ = counts(n=6)
    groups = np.array(list("aaabbb"))
    D2 = squared_distances(X, "chi2")
    every = np.array([one_way(D2, groups[list(order)])[0] for order in permutations(range(6))])
    exact = np.mean(every >= every[0] - 1e-9)
    found = permanova(X, "group", {"group": groups}, permutations=3999)
    assert found.terms[0].p == pytest.approx(exact, abs=4 * np.sqrt(exact * (1 - exact) / 3999))
    assert "20 different orders" in found.notes[0]


def p_of(design, Z, shuffles, seed, n=99):
    return [line.p for line in table_of_terms(design, Z - Z.mean(axis=0), shuffles, n, seed, Progress())[0]]


def test_p_is_uniform_under_the_null_within_strata():
    """Strata differ much, and so do their numbers of rows of a group; groups within strata do not."""
    strata = np.repeat(np.arange(12), 5)
    codes, ps = np.zeros(60, int), []
    shuffles = Shuffles.within(strata, 60)
    for seed in range(200):
        rng = np.random.default_rng(seed)
        for s in range(12):
            codes[5 * s : 5 * s + 5] = rng.permutation(np.arange(5) < 1 + s % 4)
        Z = rng.normal(size=(60, 6)) + 4 * rng.normal(size=(12, 6))[strata]
        design = design_of_category("group", np.array(["a", "b"]), codes)
        ps += p_of(design, Z, shuffles, seed)
    assert kstest(ps, "uniform").pvalue > 0.02


def test_p_is_uniform_given_a_covariate_that_groups_follow():
    ps = []
    for seed in range(200):
        rng = np.random.default_rng(seed)
        age = rng.random(50)
        about = pd.DataFrame({"age": age, "group": np.where(age + 0.3 * rng.normal(size=50) > 0.5, "a", "b")})
        table = table_of_values(about, 50)
        design = Design.of([("age",)], [("group",)], table)
        Z = rng.normal(size=(50, 5)) + 5 * age[:, None]
        ps.append(p_of(design, Z, Shuffles.within(None, 50), seed)[1])
    assert kstest(ps, "uniform").pvalue > 0.02


def test_dispersion_is_the_analysis_of_distances_to_means():
    X, about = counts()
    found = permanova(X, "site + age + sex", about, permutations=99)
    assert [each.term for each in found.dispersions] == ["site", "sex"]
    for each in found.dispersions:
        groups = about[each.term]
        expected = distances_to_means(squared_distances(X, "chi2"), groups)
        of_groups = [expected[groups == level] for level in each.groups]
        assert each.distances == pytest.approx([some.mean() for some in of_groups], rel=1e-9)
        assert each.f == pytest.approx(f_oneway(*of_groups).statistic, rel=1e-8)
        assert each.counts == tuple(some.size for some in of_groups)


def test_dispersions_of_groups_of_other_sizes_that_are_spread_alike_do_not_differ():
    codes, ps = np.repeat([0, 1], [12, 40]), []
    term = design_of_category("group", np.array(["a", "b"]), codes).terms[0]
    for seed in range(200):
        Z = np.random.default_rng(seed).normal(size=(52, 20))
        ps.append(dispersion_of(term, Z, Shuffles.within(None, 52), 99, seed, Progress()).p)
    assert kstest(ps, "uniform").pvalue > 0.02


def test_a_group_that_is_spread_more_is_found():
    codes = np.repeat([0, 1], 30)
    term = design_of_category("group", np.array(["a", "b"]), codes).terms[0]
    Z = np.random.default_rng(0).normal(size=(60, 5)) * (1 + codes[:, None])
    found = dispersion_of(term, Z, Shuffles.within(None, 60), 199, 0, Progress())
    assert found.p == pytest.approx(1 / 200)
    assert found.distances[1] > 1.5 * found.distances[0]


@pytest.mark.parametrize("strata", [None, "subject"])
def test_mmd_of_two_groups_is_their_sum_of_squares(strata):
    X, about = counts()
    found = permanova(X, "sex", about, strata=strata, permutations=199)
    two, n = found.difference, np.array(found.difference.counts)
    assert two.mmd2 * n.prod() / n.sum() == pytest.approx(found.terms[0].ss, rel=1e-9)
    assert two.groups == ("f", "m")
    assert abs(two.p - found.terms[0].p) < 0.1


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "jensen_shannon", "linear"])
def test_each_bin_has_its_share_of_the_difference(kernel):
    X, about = counts()
    found = permanova(X, "site", about, between=("skin", "gut"), kernel=kernel, permutations=9)
    two, P = found.difference, X / X.sum(axis=1, keepdims=True)
    h = np.select([about["site"] == "skin", about["site"] == "gut"], [1 / 20, -1 / 20])
    by_bin = [h @ as_kernel(kernel)(P[:, [j]]) @ h for j in range(X.shape[1])]
    places = [int(name.removeprefix("bin ")) for name in two.bins]
    assert two.shares * two.mmd2 == pytest.approx(np.array(by_bin)[places], abs=1e-12)
    assert two.is_exact
    assert two.bins[0] == "bin 2"
    assert two.correlations[0] > 0.5
    assert two.means[0] == pytest.approx([P[about["site"] == site, 2].mean() for site in ("skin", "gut")])
    assert (np.diff(two.shares) <= 0).all()


def test_shares_of_many_rows_are_those_of_a_map(monkeypatch):
    X, about = counts(n=120)
    exact = permanova(X, "sex", about, permutations=9).difference
    monkeypatch.setattr(difference, "EXACT_ROWS", 50)
    mapped = permanova(X, "sex", about, permutations=9).difference
    assert not mapped.is_exact
    of_exact = dict(zip(exact.bins, exact.shares, strict=True))
    assert mapped.shares == pytest.approx([of_exact[name] for name in mapped.bins], abs=0.01)


def test_bins_of_other_kernels_are_told_by_the_witness_function():
    X, about = counts()
    two = permanova(X, "site", about, between=("skin", "gut"), kernel="exp-chi2", permutations=9).difference
    assert two.shares is None
    assert two.bins[0] == "bin 2"
    assert two.correlations[0] > 0.5


def test_landmarks_are_near_the_exact_kernel(monkeypatch):
    X, about = counts(n=300, bins=40)
    exact = permanova(X, "site + age", about, permutations=99)
    monkeypatch.setattr(coordinates, "EXACT_ROWS", 100)
    near = permanova(X, "site + age", about, permutations=99, landmarks=150)
    assert near.data["landmarks"] == 150
    for one, other in zip(near.terms, exact.terms, strict=True):
        assert one.r2 == pytest.approx(other.r2, rel=0.1)
        assert one.f == pytest.approx(other.f, rel=0.1)
    with pytest.raises(MemoryBudgetError, match="give at least"):
        permanova(X, "site", about, memory="4KiB")


def test_coordinates_have_the_products_and_distances_of_the_kernel():
    X, _ = counts()
    P = X / X.sum(axis=1, keepdims=True)
    rows = RowsInKernel.of(ArraySource(X.astype(float)), None, "exp-chi2", "l1", "mean", 0)
    made = KernelCoordinates.of(rows)
    D2 = rows.kernel.distance(P)
    Z = made.project(rows.prepared(X.astype(float)))
    np.testing.assert_allclose(made.Z, Z, atol=1e-6)
    assert np.square(made.Z[:, None] - made.Z).sum(axis=2) == pytest.approx(D2, abs=1e-12)
    assert made.Z.mean(axis=0) == pytest.approx(0, abs=1e-7)


def test_shuffles_keep_rows_in_their_strata():
    strata = np.array([3, 1, 3, 2, 1, 3, 2, 9])
    order = Shuffles.within(strata, 8).draw(np.random.default_rng(0))
    assert sorted(order) == list(range(8))
    assert (strata[order] == strata).all()
    assert Shuffles.within(strata, 8).n_different(np.array([0, 0, 1, 0, 1, 1, 0, 0])) == 3 * 2


def test_taking_columns_out_before_rows_are_permuted_takes_small_products_only():
    rng = np.random.default_rng(0)
    columns = np.linalg.qr(np.column_stack([np.ones(20), rng.normal(size=(20, 5))]))[0][:, 1:]
    Z = rng.normal(size=(20, 7))
    Z -= Z.mean(axis=0)
    shuffles = Shuffles.within(np.arange(20) % 3, 20)
    found = permuted_squares(Z, columns, shuffles, 6, [4], Progress(), (0, 2, 5))
    drawn = np.random.default_rng([4])
    for of_order in found:
        order = shuffles.draw(drawn)
        for s, squares in zip((0, 2, 5), of_order, strict=True):
            left = Z - columns[:, :s] @ columns[:, :s].T @ Z
            assert squares == pytest.approx(np.square(columns[order].T @ left).sum(axis=1))


def test_metadata_come_from_columns_tables_and_frames(tmp_path):
    X, about = counts()
    names = [f"otu{i}" for i in range(X.shape[1])]
    frame = pd.DataFrame(X, columns=names, index=[f"s{i}" for i in range(60)])
    expected = permanova(X, "site + age", about, strata="subject", permutations=49)
    meta = pd.DataFrame(about, index=frame.index).sample(frac=1, random_state=0)
    meta.to_csv(tmp_path / "meta.csv", index_label="id")
    frame.to_csv(tmp_path / "counts.csv", index_label="id")
    whole = frame.assign(**{name: about[name] for name in ("site", "age", "subject")})
    for found in (
        permanova(whole, "site + age", strata="subject", permutations=49),
        permanova(frame, "site + age", pd.DataFrame(about), strata=about["subject"], permutations=49),
        permanova(tmp_path / "counts.csv", "site + age", tmp_path / "meta.csv", strata="subject", permutations=49),
    ):
        assert found.data["bins"] == 8
        assert [(t.name, t.p) for t in found.terms] == [(t.name, t.p) for t in expected.terms]
        assert [t.ss for t in found.terms] == pytest.approx([t.ss for t in expected.terms])


def test_rows_without_metadata_are_left_out():
    X, about = counts()
    age = [None if i in (3, 40) else value for i, value in enumerate(about["age"])]
    found = permanova(X, "site + age", about | {"age": age}, permutations=9)
    kept = np.setdiff1d(np.arange(60), [3, 40])
    expected = permanova(X[kept], "site + age", {n: v[kept] for n, v in about.items()}, permutations=9)
    assert [t.ss for t in found.terms] == pytest.approx([t.ss for t in expected.terms])
    assert found.notes[0] == "2 of 60 rows are left out, for want of metadata: age in 2."
    with pytest.raises(DataError, match="no row has a value in every column"):
        permanova(X, "site + age", about | {"age": [None] * 60})


def test_a_model_brings_its_kernel_and_normalisation():
    X, about = counts()
    model = HistogramClassifier("intersection", normalize="l1", random_state=0).fit(X, about["site"])
    found = permanova(X, "site", about, model=model, permutations=9)
    expected = permanova(X, "site", about, kernel="intersection", permutations=9)
    assert found.terms[0].ss == pytest.approx(expected.terms[0].ss, rel=1e-5)
    assert "of the model" in found.data["kernel"]


BAD = {
    "one group": ("one", {}, DataError, "'one' is 'x' in all 60 rows, one group"),
    "constant number": ("zero", {}, DataError, "'zero' is 0 in all 60 rows"),
    "no column": ("sight", {}, DataError, "no column 'sight' for formula: did you mean 'site'"),
    "the same twice": ("site + copy", {}, DataError, "'copy' tells nothing that 'site' does not"),
    "ids": ("id", {}, DataError, "take every degree of freedom of 60 rows"),
    "more terms than rows": ("C(subject) * site", {}, DataError, "take every degree of freedom"),
    "nested in strata": ("site", {"strata": "site"}, DataError, "every stratum of strata has one value of 'site'"),
    "groups that never meet": ("sex", {"strata": "patch", "between": ("f", "m")}, DataError, "one value of 'sex'"),
    "no such group": ("site", {"between": ("gut", "nose")}, DataError, "two different groups of gut, mouth, skin"),
    "the same group": ("site", {"between": ("gut", "gut")}, DataError, "two different groups"),
    "no category": ("age", {"between": ("gut", "skin")}, InputError, "no term of formula is a category"),
    "an empty term": ("site + ", {}, InputError, "formula must be columns joined by"),
    "a term twice": ("site + site", {}, InputError, "the term 'site' twice"),
    "no permutations": ("site", {"permutations": 0}, InputError, "permutations must be"),
    "no normalisation": ("site", {"normalize": "l7"}, InputError, "normalize must be one of"),
    "no kernel": ("site", {"kernel": "chi3"}, InputError, "kernel must be one of"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_input(case):
    X, about = counts()
    formula, more, error, message = BAD[case]
    about |= {"one": np.full(60, "x"), "zero": np.zeros(60), "copy": np.char.upper(about["site"])}
    about |= {"id": np.array([f"s{i}" for i in range(60)]), "patch": about["sex"]}
    with pytest.raises(error, match=message.replace("(", r"\(")):
        permanova(X, formula, about, **more)


def test_rows_that_are_all_equal_have_nothing_to_compare():
    with pytest.raises(DataError, match="all rows are the same to the kernel"):
        permanova(np.ones((6, 3)), "group", {"group": list("aaabbb")})


def test_covariates_that_strata_hold_are_taken_out_and_not_tested():
    X, about = counts()
    about["cohort"] = about["subject"] % 2
    found = permanova(X, "site", about, covariates="C(cohort)", strata="subject", permutations=9)
    assert np.isnan(found.terms[0].p)
    assert "not tested" in found.notes[0]
    assert found.as_dict()["terms"][0]["p"] is None


def test_numbers_of_which_two_differ_are_groups():
    X, about = counts()
    ill = (about["sex"] == "f").astype(int)
    found, words = permanova(X, "ill", {"ill": ill}, permutations=9), permanova(X, "sex", about, permutations=9)
    assert found.difference.groups == ("0", "1")
    assert found.terms[0].ss == pytest.approx(words.terms[0].ss)


def test_formulas():
    assert terms_of("a + b") == [("a",), ("b",)]
    assert terms_of("meta.tsv::a:b") == [("meta.tsv::a", "b")]
    assert terms_of("a*b*c")[-1] == ("a", "b", "c")
    assert len(terms_of("a*b*c")) == 7


def test_the_page_shows_terms_dispersion_and_difference():
    X, about = counts()
    found = permanova(X, "sex + site", about, permutations=9)
    assert [section.title for section in found.sections()] == ["Terms", "Dispersion", "f and m"]
    page = found.to_html()
    assert page.count("<svg") == 2
    assert found.sentence in page
    assert json.loads(json.dumps(found.as_dict()))["terms"][1]["name"] == "site"
    without = replace(found, dispersions=(), difference=None)
    assert [section.title for section in without.sections()] == ["Terms"]


def test_a_source_keeps_its_columns():
    X, about = counts()
    frame = pd.DataFrame(X, columns=[f"b{i}" for i in range(8)]).assign(site=about["site"])
    source = open_source(frame, aside="site", with_labels=False)
    assert permanova(source, "site", permutations=9).terms[0].df == 2
