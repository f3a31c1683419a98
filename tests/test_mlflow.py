"""Models in MLflow: what ``chimap.mlflow`` saves and logs, MLflow opens by itself, and it answers as the model does."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import chimap

from .histograms import classes

mlflow = pytest.importorskip("mlflow")
pyfunc = pytest.importorskip("mlflow.pyfunc")

X, Y = classes(120, 6)
TABLE = pd.DataFrame(np.round(100 * X), columns=["birch", "oak", "fern", "sedge", "moss", "sand"])
SITES = np.array(["bog", "fen", "heath"])[Y]


@pytest.fixture(scope="module")
def model():
    return chimap.HistogramClassifier("chi2", alpha=1.0).fit(TABLE, SITES)


def test_a_saved_model_is_a_python_function_with_a_signature(model, tmp_path):
    chimap.mlflow.save_model(model, tmp_path / "sites", TABLE[:5], metadata={"by": "us"})
    opened = pyfunc.load_model(str(tmp_path / "sites"))
    mixed = TABLE[[*TABLE.columns[::-1]]]
    assert opened.predict(mixed).tolist() == model.predict(TABLE).tolist()
    np.testing.assert_array_equal(
        opened.predict(TABLE, params={"predict_method": "predict_proba"}), model.predict_proba(TABLE)
    )
    assert opened.metadata.signature.inputs.input_names() == [*TABLE.columns]
    pd.testing.assert_frame_equal(opened.input_example, TABLE[:5])
    assert opened.metadata.metadata == {"by": "us"}
    requirements = (tmp_path / "sites" / "requirements.txt").read_text().split()
    assert f"chimap=={chimap.__version__}" in requirements
    with pytest.raises(Exception, match="oak"):
        opened.predict(TABLE.drop(columns="oak"))
    with pytest.raises(ValueError, match="predict_method must be one of predict, predict_proba, decision_function"):
        opened.predict(TABLE, params={"predict_method": "fit"})


def test_an_estimator_comes_back_with_all_that_it_can(model, tmp_path):
    chimap.mlflow.save_model(model, tmp_path / "sites")
    again = chimap.mlflow.load_model(tmp_path / "sites")
    assert type(again) is chimap.HistogramClassifier
    np.testing.assert_array_equal(again.explain(TABLE).contributions, model.explain(TABLE).contributions)
    regression = chimap.HistogramRegressor("chi2", alpha=1.0).fit(X, X[:, 0])
    chimap.mlflow.save_model(regression, tmp_path / "amounts", X[:3])
    opened = pyfunc.load_model(str(tmp_path / "amounts"))
    np.testing.assert_array_equal(opened.predict(X), regression.predict(X))


def test_a_logged_model_belongs_to_its_run(model, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    with mlflow.start_run() as run:
        info = chimap.mlflow.log_model(model, "sites", TABLE[:5])
    assert info.run_id == run.info.run_id
    assert pyfunc.load_model(info.model_uri).predict(TABLE).tolist() == model.predict(TABLE).tolist()
    assert chimap.mlflow.load_model(info.model_uri).classes_.tolist() == ["bog", "fen", "heath"]


def test_what_is_refused(model, tmp_path):
    with pytest.raises(ValueError, match="expected a fitted estimator of chimap, which has save; got a dict"):
        chimap.mlflow.save_model({}, tmp_path / "a")
    with pytest.raises(Exception, match="not fitted"):
        chimap.mlflow.save_model(chimap.HistogramClassifier(), tmp_path / "a")
    pyfunc.save_model(str(tmp_path / "other"), python_model=lambda rows: rows, pip_requirements=[], input_example=["a"])
    with pytest.raises(ValueError, match=r"other: not a model of chimap\.mlflow, but of mlflow\.pyfunc\.model"):
        chimap.mlflow.load_model(tmp_path / "other")
    assert not (tmp_path / "a").exists()
