"""New rows that lack bins of the model, or name them otherwise."""

from dataclasses import replace

import numpy as np
import pytest

import chimap
from chimap import HistogramClassifier, open_source
from chimap._validation import DataError
from chimap.data import DataWarning
from chimap.data.overlap import LEAST_MASS, Overlap, TrainingMass

pd = pytest.importorskip("pandas")
pytest.importorskip("pyarrow")

rng = np.random.default_rng(0)
GENES = [f"ENSG{j:011d}.{1 + j % 3}" for j in range(50)]
X = rng.poisson(np.linspace(0.02, 3, 50), (80, 50))
FRAME = pd.DataFrame(X, columns=GENES)
Y = np.arange(80) % 2
RARE = GENES[:5]  # the rarest
WITHOUT_RARE = FRAME.assign(**dict.fromkeys(RARE, 0))


@pytest.fixture(scope="module")
def model():
    return HistogramClassifier("chi2").fit(FRAME, Y)


@pytest.mark.parametrize("missing_columns", [None, "zero"])
@pytest.mark.parametrize("ending", [".csv", ".parquet", None])
def test_rare_columns_of_counts_are_zero(tmp_path, model, ending, missing_columns):
    rows = FRAME.drop(columns=RARE)
    if ending is not None:
        (rows.to_csv if ending == ".csv" else rows.to_parquet)(tmp_path / f"rows{ending}", index=False)
    source = open_source(
        rows if ending is None else tmp_path / f"rows{ending}", like=model, missing_columns=missing_columns
    )
    expected = model.predict_source(open_source(WITHOUT_RARE, like=model))
    np.testing.assert_array_equal(model.predict_source(source), expected)
    share = 100 * X[:, 5:].sum() / X.sum()
    [note] = [note for note in source.notes if "45 of 50 columns" in note]
    assert f"45 of 50 columns, {share:.3g} % of the training mass" in note
    assert RARE[0] in note
    with pytest.raises(DataError, match=r"no column 'ENSG0+\.1', .* \(5 of 50 columns are missing\)"):
        open_source(rows, like=model, missing_columns="refuse")


def test_sparse_rows(model):
    sp = pytest.importorskip("scipy.sparse")
    order = rng.permutation(np.arange(5, 50))
    source = chimap.data.ArraySource(sp.csr_matrix(X[:, order]), column_names=[GENES[j] for j in order])
    with pytest.warns(DataWarning, match="45 of 50 columns"):
        found = model.predict_source(source)
    np.testing.assert_allclose(found, model.predict_source(open_source(WITHOUT_RARE, like=model)), atol=1e-6)


def test_too_little_of_the_mass(model):
    shares = X.sum(axis=0) / X.sum()
    n = int(np.searchsorted(np.cumsum(shares[::-1]), LEAST_MASS))  # one column less than are needed
    rows = FRAME[GENES[50 - n :]].rename(columns={GENES[-1]: "GAPDH"})
    with pytest.raises(DataError) as caught:
        open_source(rows, like=model, missing_columns="zero")
    message = str(caught.value)
    assert f"There are {n - 1} of 50 columns, " in message
    assert "from 80 % of it on, the others are taken as zero" in message
    assert "does not know: 'GAPDH'." in message
    assert GENES[0] in message
    enough = FRAME[GENES[50 - n - 1 :]]
    assert open_source(enough, like=model).n_features == 50


def test_no_column_at_all(model):
    with pytest.raises(DataError, match=r"50 of 50 columns are missing.*does not know: 'a', 'b'"):
        open_source(pd.DataFrame({"a": [1], "b": [2]}), like=model)


def test_rows_that_are_no_counts_are_refused_unless_told(tmp_path):
    spectra = pd.DataFrame(5 + rng.random((60, 20)), columns=[f"nm{j}" for j in range(20)])
    fitted = HistogramClassifier("chi2").fit(spectra, Y[:60])
    rows = spectra.drop(columns=["nm3"])
    with pytest.raises(DataError, match=r"no column 'nm3'.*not fitted on counts, say missing_columns='zero'"):
        open_source(rows, like=fitted)
    assert open_source(rows, like=fitted, missing_columns="zero").n_features == 20
    with pytest.raises(ValueError, match="missing_columns must be one of 'zero', 'refuse'"):
        open_source(rows, like=fitted, missing_columns="nan")


def test_a_model_keeps_the_mass_in_its_file(tmp_path, model):
    model.save(tmp_path / "a.model")
    loaded = chimap.load(tmp_path / "a.model")
    assert loaded.mass_ == model.mass_ == TrainingMass.of(X)
    np.testing.assert_allclose(model.mass_.shares, X.sum(axis=0) / X.sum(), rtol=1e-6)
    loaded.model_ = replace(loaded.model_, schema=replace(loaded.schema, mass=None))  # as in older files
    with pytest.raises(DataError, match="5 of 50 columns are missing"):
        open_source(FRAME.drop(columns=RARE), like=loaded, missing_columns="zero")


@pytest.mark.parametrize(
    ("rows", "are_counts"),
    [
        (X, True),
        (X / X.sum(axis=1, keepdims=True), True),  # shares with zeros
        (0.5 + rng.random((9, 4)), False),
        (rng.normal(size=(9, 4)), False),
        (-X, False),
    ],
)
def test_which_rows_are_counts(rows, are_counts):
    assert TrainingMass.of(rows).are_counts == are_counts


@pytest.mark.parametrize(
    ("bins", "columns", "places", "told"),
    [
        (["ENSG00000141510", "a"], ["a", "ENSG00000141510.17"], [1, 0], ["without the version"]),
        (["ENSG00000141510.3"], ["ENSG00000141510.17"], [0], ["without the version"]),
        (["ENSMUSG00000059552.1"], ["ENSMUSG00000059552"], [0], ["without the version"]),
        (["TP53.1"], ["TP53"], [-1], []),  # a version of no Ensembl id
        (["Otu1", "b"], ["OTU1", "B"], [0, 1], ["whatever the case"]),
        (["Otu1"], ["OTU1", "otu1"], [-1], []),  # two are alike
        (["otu1", "OTU1"], ["Otu1"], [-1, -1], []),
        (["a", "A"], ["A", "a"], [1, 0], []),  # the same names go first
        (["cafe\u0301"], ["caf\u00e9"], [0], []),  # the form of Unicode makes no difference
    ],
)
def test_names_that_are_alike(bins, columns, places, told):
    overlap = Overlap.of(bins, columns)
    assert overlap.places.tolist() == places
    notes = [*overlap.notes("rows.csv")]
    assert len(notes) == len(told)
    assert all(word in note for word, note in zip(told, notes, strict=True))


def test_two_versions_of_one_gene_are_no_match():
    assert Overlap.of(["ENSG00000141510"], ["ENSG00000141510.1", "ENSG00000141510.2"]).places.tolist() == [-1]


def test_genes_by_their_other_name():
    anndata = pytest.importorskip("anndata")
    ids, symbols = [f"ENSG{j:011d}" for j in range(6)], [f"GENE{j}" for j in range(6)]
    counts = rng.poisson(2.0, (60, 6)).astype(np.float32)
    by_id = pd.DataFrame(counts, columns=ids)
    fitted = HistogramClassifier("chi2").fit(by_id, Y[:60])
    cells = anndata.AnnData(counts, var=pd.DataFrame({"gene_ids": [f"{id}.4" for id in ids]}, index=symbols))
    source = open_source(cells, like=fitted)
    assert any("6 columns are matched by the other name of genes, such as 'GENE0'" in note for note in source.notes)
    np.testing.assert_array_equal(fitted.predict_source(source), fitted.predict_source(open_source(by_id, like=fitted)))


def test_a_model_keeps_the_other_names_of_genes(tmp_path):
    anndata = pytest.importorskip("anndata")
    ids, symbols = [f"ENSG{j:011d}" for j in range(6)], [f"GENE{j}" for j in range(6)]
    counts = rng.poisson(2.0, (60, 6)).astype(np.float32)
    cells = anndata.AnnData(counts, var=pd.DataFrame({"gene_ids": ids}, index=symbols))
    HistogramClassifier("chi2").fit_source(open_source(cells, labels=Y[:60])).save(tmp_path / "symbols.model")
    fitted = chimap.load(tmp_path / "symbols.model")
    by_id = open_source(pd.DataFrame(counts, columns=ids)[ids[::-1]], like=fitted)
    assert any(f"6 columns are matched by the other name of genes, such as {ids[0]!r}" in note for note in by_id.notes)
    np.testing.assert_array_equal(fitted.predict(by_id), fitted.predict(pd.DataFrame(counts, columns=symbols)))
