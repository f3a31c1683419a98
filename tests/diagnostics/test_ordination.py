"""Ordination in the space of a kernel: by its definition, with projected rows, bins and pictures."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp

from chimap import HistogramClassifier
from chimap._errors import InputError
from chimap._validation import DataError
from chimap.diagnostics import coordinates
from chimap.diagnostics.ordination import draw, ordinate
from chimap.kernels import as_kernel
from chimap.reports.figures import drawing


def counts(n=60, bins=8, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.poisson(rng.gamma(1, 6, (n, bins))) + (np.arange(bins) == 0)
    site = np.repeat(["gut", "mouth", "skin"], n // 3)
    X[site == "skin", 2] += 12
    return X, site


@pytest.mark.parametrize("kernel", ["chi2", "intersection", "exp-chi2", "minmax"])
@pytest.mark.parametrize("form", [np.asarray, sp.csr_matrix])
def test_axes_are_the_principal_coordinates_of_the_distances(kernel, form):
    X, _ = counts()
    found = ordinate(form(X.astype(float)), kernel=kernel, n_axes=4)
    P = X / X.sum(axis=1, keepdims=True)
    J = np.eye(60) - 1 / 60
    values, vectors = np.linalg.eigh(-J @ as_kernel(kernel).fitted(P, 0).distance(P) @ J / 2)
    assert values[0] > -1e-9 * values[-1]  # a kernel has no negative ones
    assert found.shares == pytest.approx(values[:-5:-1] / values.sum(), rel=1e-8)
    expected = vectors[:, :-5:-1] * np.sqrt(values[:-5:-1])
    signs = np.sign((expected * found.coordinates).sum(axis=0))
    np.testing.assert_allclose(found.coordinates, expected * signs, atol=1e-8)


def test_all_axes_keep_every_distance():
    X, _ = counts()
    found = ordinate(X, n_axes=60)
    P = X / X.sum(axis=1, keepdims=True)
    distances = np.square(found.coordinates[:, None] - found.coordinates).sum(axis=2)
    np.testing.assert_allclose(distances, as_kernel("chi2").distance(P), atol=1e-10)
    assert found.shares.sum() == pytest.approx(1)


def test_new_rows_stand_where_the_same_rows_stand_and_columns_match_by_name():
    X, _ = counts()
    frame = pd.DataFrame(X, columns=[f"otu{j}" for j in range(8)], index=[f"s{i}" for i in range(60)])
    found = ordinate(frame, new=frame.iloc[5:9, ::-1], n_axes=3)
    np.testing.assert_allclose(found.new, found.coordinates[5:9], atol=1e-8)
    assert found.new_names.tolist() == ["s5", "s6", "s7", "s8"]
    others, _ = counts(seed=3)
    assert ordinate(X, new=others).new.shape == (60, 2)
    with pytest.raises(DataError, match="bins"):
        ordinate(X, new=others[:, :5])


def test_bins_are_ordered_by_their_correlation_with_the_axes():
    X, site = counts()
    found = ordinate(X, colour=site, n_axes=3)
    P = X / X.sum(axis=1, keepdims=True)
    for name, r in zip(found.bins, found.correlations, strict=True):
        values = P[:, int(name.removeprefix("bin "))]
        assert r == pytest.approx([np.corrcoef(values, axis)[0, 1] for axis in found.coordinates.T], abs=1e-9)
    lengths = np.linalg.norm(found.correlations[:, :2], axis=1)
    assert (np.diff(lengths) <= 1e-12).all()


def test_landmarks_give_nearly_the_same_plane(monkeypatch):
    X, _ = counts(n=300, bins=30)
    exact = ordinate(X, new=X[:4])
    monkeypatch.setattr(coordinates, "EXACT_ROWS", 100)
    near = ordinate(X, new=X[:4], landmarks=200)
    assert near.data["landmarks"] == 200
    for one, other in zip(near.coordinates.T, exact.coordinates.T, strict=True):
        assert abs(np.corrcoef(one, other)[0, 1]) > 0.97
    np.testing.assert_allclose(near.new, near.coordinates[:4], atol=1e-4)


def test_a_model_brings_its_kernel():
    X, site = counts()
    model = HistogramClassifier("intersection", normalize="l1", random_state=0).fit(X, site)
    found, expected = ordinate(X, model=model), ordinate(X, kernel="intersection")
    assert found.shares == pytest.approx(expected.shares, rel=1e-4)


COLOURS = {
    "none": None,
    "groups": np.array(["a", "b", None] * 20, dtype=object),
    "many groups": np.array([f"g{i % 20}" for i in range(60)]),
    "numbers": np.linspace(0, 1, 60),
}


@pytest.mark.parametrize("colour", COLOURS)
def test_every_row_is_drawn(colour, tmp_path):
    X, _ = counts()
    found = ordinate(X, colour=COLOURS[colour], new=X[:3])
    with drawing(300, 300) as (_, axes):
        draw(found, axes, None)
        drawn = sum(len(points.get_offsets()) for points in axes.collections)
        labels = axes.get_legend_handles_labels()[1]
    assert drawn == 63
    assert "new" in labels
    assert ("12 others" in labels) == (colour == "many groups")
    assert ("missing" in labels) == (colour == "groups")
    found.save_picture(tmp_path / "rows.png")
    assert (tmp_path / "rows.png").read_bytes().startswith(b"\x89PNG")


def test_a_page_of_many_rows_draws_some(monkeypatch):
    from chimap.diagnostics import ordination

    X, site = counts()
    monkeypatch.setattr(ordination, "_POINTS_DRAWN", 20)
    found = ordinate(X, colour=site)
    with drawing(300, 300) as (_, axes):
        draw(found, axes, 20)
        assert sum(len(points.get_offsets()) for points in axes.collections) == 20
    page = found.to_html()
    assert page.count("<svg") == 2
    assert "20 of 60 rows are drawn" in page


def test_values_and_tables(tmp_path):
    X, site = counts()
    found = ordinate(X, colour=site, new=X[:2])
    as_json = json.loads(json.dumps(found.as_dict()))
    assert as_json["colour"][:2] == ["gut", "gut"]
    assert len(as_json["coordinates"]) == 60
    found.save_table(tmp_path / "axes.csv")
    table = pd.read_csv(tmp_path / "axes.csv")
    assert table.columns.tolist() == ["row", "axis 1", "axis 2", "new"]
    assert table["new"].sum() == 2
    np.testing.assert_allclose(table["axis 1"][:60], found.coordinates[:, 0])


def test_one_axis_and_bad_input():
    X, _ = counts()
    one = ordinate(X, n_axes=1)
    assert one.sentence.startswith("The first axis shows")
    assert one.to_html().count("<svg") == 2
    assert ordinate([[1, 3], [3, 1], [2, 2]], n_axes=9).shares.size == 2
    with pytest.raises(InputError, match="n_axes must be"):
        ordinate(X, n_axes=0)
    with pytest.raises(DataError, match="all rows are the same"):
        ordinate(np.ones((5, 3)))
    with pytest.raises(DataError, match="no column 'site' for colour"):
        ordinate(X, {"place": ["a"] * 60}, colour="site")
    with pytest.raises(DataError, match="values for 60 rows"):
        ordinate(X, colour=["a", "b"])
