"""Doubts about rows are said once, name what is wrong, and are silent where nothing is."""

from __future__ import annotations

import warnings
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from chimap import (
    HistogramClassifier,
    HistogramRegressor,
    LookupClassifier,
    OnlineIntersectionClassifier,
    load,
    open_source,
)
from chimap.data import ArraySource
from chimap.data.doubts import DataWarning, are_nearly_equal, doubts_at_fit, first_look, repeated_rows
from chimap.data.overlap import TrainingMass
from chimap.data.units import RowTraits, Units, discrimination

from ..cli.terminal import run_many
from .test_names import anndata

pd = pytest.importorskip("pandas")

DATA = Path(__file__).parents[3] / "shared" / "data"
N = 300
rng = np.random.default_rng(0)
COUNTS = rng.poisson(5, (N, 6))
KINDS = np.where(COUNTS[:, 0] > COUNTS[:, 1], "more", "less")
FRAME = pd.DataFrame(COUNTS, columns=list("abcdef"), index=[f"row {i}" for i in range(N)])
SUMS = {f"k__{k}": COUNTS[:, 2 * i] + COUNTS[:, 2 * i + 1] for i, k in enumerate("ABC")}
TREE = pd.DataFrame(SUMS | {f"k__{'ABC'[j // 2]}|p__{j}": COUNTS[:, j] for j in range(6)}, index=FRAME.index)


def said(ask):
    """The doubts that are said while a function runs."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ask()
    return [str(warning.message) for warning in caught if issubclass(warning.category, DataWarning)]


def at_fit(frame, y=KINDS, kernel="chi2", **options):
    model = HistogramClassifier(kernel, random_state=0, **options)
    return said(lambda: model.fit_source(open_source(frame, labels=y)))


WRONG = {
    "sums of other columns": (TREE, "3 columns, such as 'k__A', are the sums of the columns below them"),
    "a code of the label": (FRAME.assign(code=(KINDS == "less") * 7), "the bin 'code' alone tells every label"),
    "ids": (FRAME.assign(number=rng.permutation(N) + 1000), "column 'number' has another whole number in every row"),
    "times": (FRAME.assign(time=10**6 + np.cumsum(rng.integers(1, 999, N))), "column 'time' has another whole"),
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("is_sparse", [False, True])
def test_columns_that_are_no_counts(wrong, is_sparse, tmp_path):
    frame, words = WRONG[wrong]
    data = anndata(frame, tmp_path) if is_sparse else frame
    [doubt] = at_fit(data)
    assert words in doubt


COUNTERS = {"HTSeq": ["__no_feature", "__ambiguous"], "STAR": ["N_unmapped"]}


@pytest.mark.parametrize("program", COUNTERS)
@pytest.mark.parametrize("kind", ["frame", "csv", "parquet", "cells"])
def test_reports_of_programs_are_no_bins(program, kind, tmp_path):
    frame, counters = FRAME.assign(**dict.fromkeys(COUNTERS[program], 9)), COUNTERS[program]
    frame.to_csv(tmp_path / "rows.csv")
    frame.to_parquet(tmp_path / "rows.parquet")
    data = {"frame": frame, "csv": tmp_path / "rows.csv", "parquet": tmp_path / "rows.parquet"}.get(kind)
    data = anndata(frame, tmp_path) if data is None else data
    source = open_source(data)
    assert source.column_names == tuple(FRAME)
    told = f"counts of reads of no gene are left out: {', '.join(map(repr, counters))}."
    assert sum(told in note for note in source.notes) == 1
    assert open_source(data, columns=["a", counters[0]]).column_names == ("a", counters[0])
    model = HistogramClassifier("chi2", random_state=0)
    [doubt] = said(lambda: model.fit(frame, KINDS))
    assert {*open_source(data, like=model).column_names} == {*frame}
    assert f"{', '.join(map(repr, counters))} count reads that belong to no bin" in doubt


def test_targets_among_the_bins():
    y = COUNTS[:, 0] * 2.0 + COUNTS[:, 1]
    [doubt] = said(lambda: HistogramRegressor("chi2", random_state=0).fit(FRAME.assign(dose=y), y))
    assert "the bin 'dose' alone tells every label exactly" in doubt
    noisy = y + rng.normal(0, 0.5, N)
    assert said(lambda: HistogramRegressor("chi2", random_state=0).fit(FRAME.assign(dose=y), noisy)) == []


def test_targets_less_their_mean_among_the_bins():
    y = COUNTS[:, 0] * 2.0 + COUNTS[:, 1]
    signed = FRAME.assign(dose=3 * (y.mean() - y))
    [doubt] = said(lambda: HistogramRegressor("gaussian", random_state=0).fit(signed, y))
    assert "the bin 'dose' alone tells every label exactly" in doubt


def test_targets_that_are_almost_among_the_bins_or_of_few_rows():
    y = COUNTS[:, 0] * 2.0 + COUNTS[:, 1]
    close = FRAME.assign(dose=y + rng.normal(0, 0.005 * y.std(), N))
    assert said(lambda: HistogramRegressor("gaussian", random_state=0).fit(close, y)) == []
    few = FRAME.assign(dose=y)[:30]
    assert said(lambda: HistogramRegressor("gaussian", random_state=0).fit(few, y[:30])) == []


def pairs_at(share, n_pairs):
    """Pairs of rows whose distance is this share of the distance to all others."""
    cosine = 1 - share**2
    ones, zeros = np.eye(n_pairs), np.zeros((n_pairs, n_pairs))
    return np.vstack([np.hstack([ones, zeros]), np.hstack([cosine**2 * ones, (1 - cosine**2) * ones])])


def test_pairs_are_nearly_equal_only_if_they_are_near():
    assert are_nearly_equal(pairs_at(0.1, 30))
    assert not are_nearly_equal(pairs_at(0.45, 30))  # the gap to the next is as large, but not so near
    assert not are_nearly_equal(pairs_at(0.1, 15))  # of so few rows, nothing is said


def test_good_columns_are_not_accused():
    assert at_fit(FRAME) == []
    almost = np.where(np.arange(N) == 5, 1 - (KINDS == "less"), KINDS == "less")  # wrong in one row
    assert at_fit(FRAME.assign(marker=almost)) == []
    assert at_fit(FRAME.assign(depth=COUNTS.sum(axis=1) * 1000 + rng.integers(0, 10**6, N))) == []
    names = {f"k__A|p__{j}": COUNTS[:, j] for j in range(6)}  # one rank only
    assert at_fit(pd.DataFrame(names, index=FRAME.index)) == []


def test_groups_in_python():
    films = np.repeat(np.arange(30), 10)
    rows = rng.random((30, 6))[films] + 0.005 * rng.random((N, 6))
    frame = pd.DataFrame(rows, columns=list("abcdef")).assign(film=films)
    source = open_source(frame, labels=np.where(films % 2, "p", "q"), aside="film")
    model = HistogramClassifier("chi2", random_state=0)
    [doubt] = said(lambda: model.fit_source(source))
    assert "column 'film' looks like a group" in doubt
    assert "groups='film'" in doubt
    assert said(lambda: model.fit_source(source, groups="film")) == []
    assert said(lambda: model.fit_source(source, groups=films)) == []


FILMS = np.repeat(np.arange(30), 10)
FRAMES = rng.random((30, 6))[FILMS] + 0.005 * rng.random((N, 6))
IN_MEMORY = {
    "HistogramClassifier": lambda: HistogramClassifier("chi2", random_state=0),
    "LookupClassifier": LookupClassifier,
    "OnlineIntersectionClassifier": OnlineIntersectionClassifier,
}


@pytest.mark.parametrize("name", IN_MEMORY)
@pytest.mark.parametrize("kind", [np.asarray, sp.csr_matrix])
def test_rows_that_are_nearly_equal_are_noticed_without_a_column(name, kind):
    [doubt] = said(lambda: IN_MEMORY[name]().fit(kind(FRAMES), np.where(FILMS % 2, "p", "q")))
    assert "most rows are nearly equal to a few others" in doubt
    assert said(lambda: IN_MEMORY[name]().fit(kind(rng.random((N, 6))), np.where(FILMS % 2, "p", "q"))) == []


@pytest.mark.parametrize("name", IN_MEMORY)
def test_every_estimator_says_its_doubts(name):
    doubts = said(lambda: IN_MEMORY[name]().fit(FRAME.assign(code=(KINDS == "less") * 7), KINDS))
    assert sum("the bin 'code' alone tells every label exactly" in doubt for doubt in doubts) == 1


def test_groups_that_are_named_and_other_rows_are_not_accused():
    labels = np.where(FILMS % 2, "p", "q")
    assert said(lambda: IN_MEMORY["HistogramClassifier"]().fit(FRAMES, labels, groups=FILMS)) == []
    assert not are_nearly_equal(FRAMES[:30])  # of three films
    assert not are_nearly_equal(rng.dirichlet(np.ones(2), N))
    assert not are_nearly_equal(rng.poisson(0.3, (N, 6)).astype(float))  # most are equal to others
    assert not are_nearly_equal(np.ones((N, 6)))
    assert not are_nearly_equal(np.where(FRAMES > 0.5, np.nan, FRAMES))


@pytest.mark.skipif(not DATA.exists(), reason="needs the shared data sets")
@pytest.mark.parametrize(
    "name", ["hmp_otu_counts", "hiv_morgan_counts", "domains/mlrepo_claesson", "domains/pep_unidl_umami"]
)
def test_rows_of_the_shared_data_are_not_nearly_equal(name):
    with np.load(DATA / f"{name}.npz") as z:
        X = sp.csr_matrix((z["data"], z["indices"], z["indptr"]), shape=tuple(z["shape"])) if "indptr" in z else z["X"]
    assert not are_nearly_equal(X)


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "my.model"
    HistogramClassifier("chi2", random_state=0).fit(COUNTS, KINDS).save(path)
    return load(path)


def test_batches_have_units():
    batched = HistogramClassifier("chi2", random_state=0).partial_fit(COUNTS, KINDS, classes=["less", "more"])
    assert said(lambda: batched.predict(COUNTS)) == []
    assert said(lambda: batched.predict(COUNTS[:5] / 3)) == []  # a few rows may be anything
    with pytest.warns(DataWarning, match="fractions"):
        batched.predict(COUNTS / COUNTS.sum(axis=1, keepdims=True))


def test_what_a_file_says_of_its_units(tmp_path):
    table = anndata(FRAME, tmp_path)
    table.uns["log1p"] = {"base": None}
    table.write_h5ad(tmp_path / "log.h5ad")
    for data in (table, tmp_path / "log.h5ad"):
        [doubt] = at_fit(data, normalize="log1p")
        assert "the rows are logarithms already; normalize='log1p'" in doubt
        assert at_fit(data) == []
    table.uns.clear()
    table.raw = table.copy()
    table.X = COUNTS - COUNTS.mean(axis=0)
    table.write_h5ad(tmp_path / "scaled.h5ad")
    [doubt] = at_fit(tmp_path / "scaled.h5ad", kernel="gaussian")
    assert "the file has others: scaled.h5ad::raw" in doubt


def test_kernels_that_fall_out():
    [doubt] = at_fit(FRAME - 3, kernel="auto")
    assert "entries are negative" in doubt
    assert "chi2, jensen_shannon, hellinger, intersection" in doubt


def tenx(folder, kinds):
    """A folder of Cell Ranger with the types of its features."""
    home = folder / "matrix"
    home.mkdir()
    entries = [f"{j + 1} {i + 1} {COUNTS[i, j] + 1}" for i in range(40) for j in range(6)]
    head = ["%%MatrixMarket matrix coordinate integer general", "6 40 240"]
    (home / "matrix.mtx").write_text("\n".join([*head, *entries]) + "\n")
    (home / "barcodes.tsv").write_text("".join(f"cell {i}\n" for i in range(40)))
    (home / "features.tsv").write_text("".join(f"g{j}\tgene {j}\t{kind}\n" for j, kind in enumerate(kinds)))
    return home


def test_proteins_beside_genes(tmp_path):
    home = tenx(tmp_path, ["Gene Expression"] * 4 + ["Antibody Capture"] * 2)
    source = open_source(home)
    assert source.column_names == tuple(f"gene {j}" for j in range(4))
    [note] = source.notes
    assert "2 columns that measure no genes (Antibody Capture) are left out" in note
    assert open_source(home, columns="0:6").n_features == 6
    fitted = HistogramClassifier("chi2", random_state=0).fit_source(open_source(home, KINDS[:40], columns="0:6"))
    assert open_source(home, like=fitted).n_features == 6


@pytest.mark.parametrize("kind", ["Gene Expression", "Antibody Capture"])
def test_features_of_one_kind_stay(kind, tmp_path):
    source = open_source(tenx(tmp_path, [kind] * 6))
    assert source.n_features == 6
    assert source.notes == ()


def test_test_rows_that_occur_in_training():
    rows = np.vstack([COUNTS[:200], COUNTS[:50], np.zeros((50, 6))])
    training, held_out = ArraySource(rows[:200]), ArraySource(rows[200:])
    assert repeated_rows(training, held_out) == 50  # empty rows are no repeats
    assert repeated_rows(ArraySource(sp.csr_matrix(rows[:200])), ArraySource(sp.csr_matrix(rows[200:]))) == 50


@pytest.mark.slow
def test_the_command_line_says_each_doubt_once(tmp_path):
    rows = np.vstack([COUNTS, COUNTS[:150]])
    frame = pd.DataFrame(rows, columns=list("abcdef")).assign(code=np.tile(KINDS == "more", 2)[:450] * 1)
    frame.assign(kind=np.tile(KINDS, 2)[:450]).to_csv(tmp_path / "rows.csv", index=False)
    (frame / 7).to_csv(tmp_path / "shares.csv", index=False)
    fit, evaluated, told = run_many(
        [
            [
                "fit",
                "rows.csv",
                "--labels",
                "kind",
                "--kernel",
                "chi2",
                "--test-fraction",
                "0.3",
                "--output",
                "my.model",
            ],
            ["evaluate", "my.model", "rows.csv", "--labels", "kind"],
            ["predict", "my.model", "shares.csv", "--output", "answers.csv"],
        ],
        tmp_path,
    )
    assert (fit.code, evaluated.code, told.code) == (0, 0, 0), fit.err + evaluated.err + told.err
    assert fit.err.count("alone tells every label exactly") == 1
    assert "--exclude code" in fit.err
    assert fit.err.count("test rows also occur in training") == 1
    assert evaluated.err.count("test rows also occur in training") == 1
    assert told.err.count("chimap: note: ") == told.err.count("chimap: note: shares.csv: fractions") == 1


SETS = sorted([*DATA.glob("*.npz"), *(DATA / "domains").glob("*.npz")])


@pytest.mark.parametrize("path", SETS or [None], ids=lambda path: "absent" if path is None else path.stem)
def test_real_tables_are_not_accused(path):
    if path is None:
        pytest.skip("needs the shared data")
    file = np.load(path)
    names = [name for name in file.files if name.startswith("y")]
    if "indptr" in file.files:
        X = sp.csr_matrix((file["data"], file["indices"], file["indptr"]), shape=tuple(file["shape"]))
    elif "X" in file.files or "x_train" in file.files:
        X = file["X"] if "X" in file.files else file["x_train"].reshape(len(file["x_train"]), -1)
    else:
        pytest.skip("holds no rows")
    for name in names:
        y = file[name]
        if y.shape != (X.shape[0],):
            continue
        source = ArraySource(X, y, path.stem)
        rows, labels = first_look(source)
        assert [*doubts_at_fit(source, rows, labels, None, y.dtype.kind != "f")] == []
        told = None if y.dtype.kind == "f" else discrimination(np.asarray(rows.sum(axis=1), float).reshape(-1), labels)
        assert told is None or told < 0.8  # by totals alone
    n = X.shape[0]
    tests = [np.random.default_rng(0).random(n) < 0.3]
    tests += [~file[name].astype(bool) for name in ("is_train",) if name in file.files]
    tests += [*file["is_test"].astype(bool)] if "is_test" in file.files else []
    tests += [file["subject"] % 3 == 0] if "subject" in file.files and file["subject"].dtype.kind in "iu" else []
    for test in tests:
        fit, new = (np.random.default_rng(0).permutation(np.flatnonzero(part))[:2000] for part in (~test, test))
        if min(fit.size, new.size) < 5:
            continue
        rows, mass = X[fit], TrainingMass.of(X[fit])
        units = Units.of(RowTraits.of(rows, mass.shares), None)
        assert [*units.doubts(RowTraits.of(X[new[:256]], mass.shares), path.stem)] == []
