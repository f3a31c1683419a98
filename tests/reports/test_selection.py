"""The page on what the folds of a model from moments say."""

import numpy as np
import pytest

from chimap import MomentsLasso, MomentsRidge, MomentsRidgeClassifier
from chimap._validation import DataError
from chimap.reports import SelectionPage

rng = np.random.default_rng(0)
Z = rng.standard_normal((400, 30)) * np.geomspace(3, 0.1, 30)
y = Z[:, 0] - Z[:, 2] + rng.standard_normal(400)


def page(model, tmp_path, overwrite=False, **options):
    return SelectionPage.of(model, **options).save(tmp_path / "page.html", overwrite=overwrite).read_text()


def test_components(tmp_path):
    model = MomentsRidgeClassifier(n_components=[2, 5, 10, 30], random_state=0).fit(Z[:300], y[:300] > 0)
    text = page(model, tmp_path, curves=model.curves(Z[300:], y[300:] > 0), title="Signs <of> y")
    assert text.count("<svg") == 3
    for words in ("Cross-validated R²", "Accuracy on other rows", "Scores on 100 other rows", "Signs &lt;of&gt; y"):
        assert words in text
    assert f"Chosen: {model.n_components_} components" in text
    alone = page(MomentsRidge(n_components=[2, 5], random_state=0).fit(Z, y), tmp_path, overwrite=True)
    assert alone.count("<svg") == 1


def test_more_alphas_than_colours(tmp_path):
    alphas = np.geomspace(1e-3, 1e3, 30)
    model = MomentsRidge(alphas, n_components=[3, 30], random_state=0).fit(Z, y)
    assert page(model, tmp_path).count("<svg") == 1


def test_paths(tmp_path):
    model = MomentsLasso(n_alphas=12, random_state=0).fit(Z, y)
    text = page(model, tmp_path)
    assert text.count("<svg") == 3
    assert "optimality residual" in text
    assert "Karush, Kuhn, Tucker" in text
    given = MomentsLasso([0.1, 0.01], selection=1).fit(Z, y)
    assert page(given, tmp_path, overwrite=True).count("<svg") == 2


def test_nothing_to_show(tmp_path):
    with pytest.raises(DataError, match=r"MomentsRidge has chosen nothing by folds.*model\.curves\(X, y\)"):
        page(MomentsRidge(1.0, 5).fit(Z, y), tmp_path)
    with pytest.raises(DataError, match="has chosen nothing"):
        page(MomentsRidge(1.0).fit(Z, y), tmp_path)
    assert not list(tmp_path.iterdir())
    (tmp_path / "page.html").touch()
    with pytest.raises(FileExistsError):
        page(MomentsLasso(n_alphas=3, random_state=0).fit(Z, y), tmp_path)
