"""The page on what the folds of a model from sums say."""

import numpy as np
import pytest

import chimap
from chimap._validation import DataError
from chimap.reports import SelectionPage

rng = np.random.default_rng(0)
Z = rng.standard_normal((400, 30)) * np.geomspace(3, 0.1, 30)
y = Z[:, 0] - Z[:, 2] + rng.standard_normal(400)
FOLDS = [chimap.Moments(30, 1).update(Z[k::5], y[k::5]) for k in range(5)]


def page(model, tmp_path, title="Sums", overwrite=False):
    return SelectionPage.of_sums(model, title).save(tmp_path / "page.html", overwrite=overwrite).read_text()


def test_components(tmp_path):
    model = chimap.ridge(FOLDS, n_components=[2, 5, 10, 30])
    text = page(model, tmp_path, "Signs <of> y")
    assert text.count("<svg") == 1
    for words in ("Cross-validated R²", "components and weights learned from the other folds", "Signs &lt;of&gt; y"):
        assert words in text
    assert f"Chosen: {model.pca.components.shape[1]} components" in text


def test_more_alphas_than_colours(tmp_path):
    model = chimap.ridge(FOLDS, np.geomspace(1e-3, 1e3, 30), n_components=[3, 30])
    assert page(model, tmp_path).count("<svg") == 1


def test_paths(tmp_path):
    text = page(chimap.lasso(FOLDS, n_alphas=12), tmp_path)
    assert text.count("<svg") == 3
    assert "optimality residual" in text
    assert "Karush, Kuhn, Tucker" in text
    given = chimap.lasso([sum(FOLDS[1:], FOLDS[0])], [0.1, 0.01])
    assert page(given, tmp_path, overwrite=True).count("<svg") == 2


def test_nothing_to_show(tmp_path):
    with pytest.raises(DataError, match="has chosen no number of components"):
        page(chimap.ridge(FOLDS, 1.0, 5), tmp_path)
    with pytest.raises(DataError, match="has chosen no number of components"):
        page(chimap.ridge(FOLDS, 1.0), tmp_path)
    model = chimap.HistogramRegressor("linear", features="additive", alpha=1.0).fit(np.abs(Z), y)
    with pytest.raises(DataError, match="HistogramRegressor has chosen no number of components by folds"):
        SelectionPage.of(model)
    assert not list(tmp_path.iterdir())
    (tmp_path / "page.html").touch()
    with pytest.raises(FileExistsError):
        page(chimap.lasso(FOLDS, n_alphas=3), tmp_path)
