"""``chimap.sc``: models of cells that are fitted on AnnData objects, and answers that are written into them."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

import chimap
from chimap import HistogramClassifier, HistogramRegressor

anndata = pytest.importorskip("anndata")

SYMBOLS = [f"GENE{j}" for j in range(40)]
IDS = [f"ENSG{j:011d}" for j in range(40)]
SETTINGS = {"kernel": "hellinger", "normalize": "log-cp10k", "random_state": 0}


def cells(n=120, seed=0):
    rng = np.random.default_rng(seed)
    kinds = rng.integers(0, 3, n)
    counts = sp.csr_matrix(rng.poisson(6 * np.random.default_rng(7).gamma(0.3, size=(3, 40))[kinds]).astype(np.float32))
    obs = pd.DataFrame({"cell_type": np.array(["B", "NK", "T"])[kinds]}, index=[f"c{i}" for i in range(n)])
    obs["leiden"] = pd.Categorical([f"{k}" for k in kinds])
    obs["donor"] = [f"d{i % 4}" for i in range(n)]
    return anndata.AnnData(counts, obs=obs, var=pd.DataFrame({"gene_ids": IDS}, index=SYMBOLS))


def logged(adata):
    """The same cells as scanpy's pipelines leave them: counts in a layer and in raw, and logarithms in X."""
    adata = adata.copy()
    adata.layers["counts"] = adata.X.copy()
    adata.raw = adata.copy()
    adata.X = adata.X.log1p()
    return adata


@pytest.fixture(scope="module")
def model():
    return chimap.sc.fit(cells(), "cell_type", **SETTINGS)


def test_what_is_written(model):
    adata = cells(60, seed=1)
    assert chimap.sc.annotate(adata, model, over="leiden", unassigned=0.1) is None
    source = chimap.open_source(adata, "cell_type")
    labels, p = model.predict(source, unassigned=0.1), model.predict_proba(source)
    assert adata.obs["chimap"].tolist() == labels.tolist()
    assert adata.obs["chimap"].cat.categories.tolist() == ["B", "NK", "T", "unassigned"]
    assert (labels == "unassigned").any()
    np.testing.assert_array_equal(adata.obsm["chimap_probabilities"].to_numpy(), p)
    assert adata.obsm["chimap_probabilities"].columns.tolist() == ["B", "NK", "T"]
    np.testing.assert_array_equal(adata.obs["chimap_probability"], p.max(axis=1))
    for cluster, some in adata.obs.groupby("leiden", observed=True):
        counts = some["chimap"].value_counts()
        assert {*some["chimap_vote"]} == {counts.index[0]}, cluster
        np.testing.assert_allclose(some["chimap_vote_share"], counts.iloc[0] / len(some))
    assert adata.uns["chimap"] == {"kernel": "hellinger", "unassigned": 0.1, "matrix": "X"}


def test_contributions_are_the_mean_of_those_of_the_cells_of_a_class(model):
    adata = cells(60, seed=1)[:, ::-1].copy()
    adata = anndata.concat(
        [adata, anndata.AnnData(np.zeros((60, 1), np.float32), adata.obs, adata.var.iloc[:1].rename(lambda _: "new"))],
        axis=1,
        merge="first",
    )
    chimap.sc.annotate(adata, model, "mine", unassigned=None)
    found = adata.varm["mine_contributions"]
    assert found.columns.tolist() == ["B", "NK", "T"]
    assert found.loc["new"].isna().all()
    chosen = adata.obs["mine"].to_numpy() == "NK"
    explained = model.explain(adata[chosen][:, SYMBOLS].X).contributions[:, :, 1]
    assert chosen.sum() <= 50
    np.testing.assert_allclose(found.loc[SYMBOLS, "NK"], explained.mean(axis=0), rtol=1e-5, atol=1e-7)


def test_two_classes_have_contributions_of_opposite_sign():
    adata = cells()
    adata.obs["is_b"] = np.where(adata.obs["cell_type"] == "B", "B", "other")
    model = chimap.sc.fit(adata, "is_b", **SETTINGS)
    chimap.sc.annotate(adata, model, unassigned=None)
    found, of_second = adata.varm["chimap_contributions"], model.explain(adata.X).contributions[:, :, 0]
    chosen = adata.obs["chimap"].to_numpy()
    for name, sign in (("B", -1), ("other", 1)):
        places = np.flatnonzero(chosen == name)
        places = places[np.linspace(0, places.size - 1, min(places.size, 50)).astype(int)]
        np.testing.assert_allclose(found[name], sign * of_second[places].mean(axis=0), rtol=1e-5, atol=1e-7)


def test_models_that_mix_genes_say_why_they_have_no_contributions():
    model = chimap.sc.fit(cells(), "cell_type", kernel="exp-hellinger", alpha=1.0)
    adata = cells(20)
    chimap.sc.annotate(adata, model)
    assert "chimap_contributions" not in adata.varm
    assert "the kernel mixes genes" in adata.uns["chimap"]["contributions"]


@pytest.mark.parametrize("where", [{"layer": "counts"}, {"use_raw": True}])
def test_another_matrix_gives_the_same_answers(where, model, tmp_path):
    adata = logged(cells())
    adata.write_h5ad(tmp_path / "cells.h5ad")
    expected = cells()
    chimap.sc.annotate(expected, model)
    backed = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    for given in (adata, backed, backed[10:60, 5:] if "use_raw" in where else backed[10:60]):
        same = chimap.sc.fit(given, "cell_type", **where, **SETTINGS)
        again = chimap.sc.annotate(given, model, copy=True, **where)
        part = expected.obs.loc[given.obs_names]
        assert again.obs["chimap"].tolist() == part["chimap"].tolist()
        if given.n_obs == adata.n_obs:
            np.testing.assert_array_equal(same.feature_coef_, model.feature_coef_)
        assert "chimap" not in given.obs
    chimap.sc.annotate(backed, model, **where)
    assert backed.isbacked
    assert backed.obs["chimap"].tolist() == expected.obs["chimap"].tolist()
    backed.file.close()


@pytest.mark.parametrize("form", ["in memory", "backed"])
def test_genes_are_matched_by_symbol_or_by_id(form, model, tmp_path):
    adata, expected = cells(30, seed=2), cells(30, seed=2)
    chimap.sc.annotate(expected, model)
    adata.var = pd.DataFrame({"symbol": SYMBOLS}, index=IDS)
    if form == "backed":
        adata.write_h5ad(tmp_path / "cells.h5ad")
        adata = anndata.read_h5ad(tmp_path / "cells.h5ad", backed="r")
    chimap.sc.annotate(adata, model)
    assert adata.obs["chimap"].tolist() == expected.obs["chimap"].tolist()
    np.testing.assert_allclose(adata.varm["chimap_contributions"], expected.varm["chimap_contributions"])


def test_cells_without_a_label_are_left_out_and_donors_held_out_whole():
    adata = cells()
    adata.obs.loc[adata.obs_names[::5], "cell_type"] = None
    model = chimap.sc.fit(adata, "cell_type", groups="donor", **SETTINGS)
    assert model.n_rows_ == 96
    assert [*model.feature_names_in_] == SYMBOLS


def raises(adata, message, call=chimap.sc.fit, **given):
    arguments = {"labels": "cell_type"} if call is chimap.sc.fit else {}
    with pytest.raises(ValueError, match=message):
        call(adata, **{**arguments, **given})


def test_what_is_refused(model):
    adata = cells()
    raises(
        adata,
        r"no column 'cell_typ' in obs: did you mean 'cell_type'\? There are cell_type, leiden, donor",
        labels="cell_typ",
    )
    raises(adata, "no column 'donr' in obs: did you mean 'donor'", groups="donr")
    raises(adata, "no column 'louvain' in obs; there are", chimap.sc.annotate, model=model, over="louvain")
    raises(logged(adata), r"no layer='count': did you mean 'counts'\? There are counts", layer="count")
    raises(adata, "raw is None, and use_raw=True", use_raw=True)
    raises(logged(adata), "layer='counts' and use_raw=True name two matrices", layer="counts", use_raw=True)
    raises(
        logged(adata),
        r"X holds [\d.]+, and no counts\. Counts are in layer='counts' and use_raw=True; layer='X' takes it",
    )
    raises(logged(adata), r"X holds [\d.]+, and no counts", chimap.sc.annotate, model=model)
    scaled = cells()
    scaled.X = scaled.X.toarray() - 1
    raises(scaled, r"-1 is below 0, and these are no counts\. Take the counts of molecules")
    raises(adata.X, "expected an AnnData object.*got a csr_matrix")
    others = cells()
    others.var = pd.DataFrame(index=[f"ENSMUSG{j}" for j in range(40)])
    unnamed = chimap.sc.fit(
        anndata.AnnData(cells().X, cells().obs, pd.DataFrame(index=SYMBOLS)), "cell_type", **SETTINGS
    )
    raises(
        others,
        r"knows none of the 40 genes\. It was fitted on 'GENE0', 'GENE1', 'GENE2', \.\.\., and here are 'ENSMUSG0'",
        chimap.sc.annotate,
        model=unnamed,
    )
    regression = HistogramRegressor("chi2", alpha=1.0).fit(adata.X, np.arange(120.0))
    raises(
        adata,
        "annotated by a fitted HistogramClassifier.*got a HistogramRegressor",
        chimap.sc.annotate,
        model=regression,
    )
    assert "chimap" not in adata.obs


def test_a_model_may_be_a_file(model, tmp_path):
    model.save(tmp_path / "cells.model")
    adata = cells(20)
    chimap.sc.annotate(adata, tmp_path / "cells.model")
    assert isinstance(model, HistogramClassifier)
    assert adata.obs["chimap"].notna().all()
