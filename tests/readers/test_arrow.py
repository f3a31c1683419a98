"""Parquet and Arrow files: columns, partitions, order, and what is wrong with a part."""

import datetime as dt
from decimal import Decimal

import numpy as np
import pytest

from chimap._arrays import to_dense
from chimap._validation import DataError
from chimap.readers import ArrowSource, open_source

from .small_sources import COUNTS, LABELS, N_FEATURES, N_ROWS, parquet, table, table_of_lists

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")
feather = pytest.importorskip("pyarrow.feather")


def all_rows(source):
    return np.concatenate([to_dense(chunk.X) for chunk in source.chunks(50)])


def test_hive_partitions_give_labels(tmp_path):
    for label in (-1, 1):
        part = tmp_path / "data.parquet" / f"year=2024/side={label}" / "part-0.parquet"
        part.parent.mkdir(parents=True)
        pq.write_table(table(COUNTS[label == LABELS], None), part)
    source = open_source(tmp_path / "data.parquet", "side")
    np.testing.assert_array_equal(source.labels(), np.sort(LABELS))
    np.testing.assert_array_equal(all_rows(source), COUNTS[np.argsort(LABELS, kind="stable")])
    assert open_source(tmp_path / "data.parquet").labels() is None
    np.testing.assert_array_equal(open_source(tmp_path / "data.parquet", "year").labels(), 2024)


@pytest.mark.parametrize("values", [["cat", "dog"], ["1", "2"]])
def test_a_partition_of_nulls_has_no_labels(tmp_path, values):
    pq.write_to_dataset(
        pa.table({"a": np.arange(6.0), "b": np.ones(6), "kind": [None, values[0], values[1], None, *values]}),
        tmp_path / "data.parquet",
        partition_cols=["kind"],
    )
    assert (tmp_path / "data.parquet" / "kind=__HIVE_DEFAULT_PARTITION__").is_dir()
    source = open_source(tmp_path / "data.parquet", "kind")
    assert source.labels().astype(str).tolist() == [values[0]] * 2 + [values[1]] * 2
    assert sorted(all_rows(source.unlabelled)[:, 0].tolist()) == [0.0, 3.0]


DAY, MOMENT = dt.date(2024, 1, 31), dt.datetime(2024, 1, 31, 10)
MIDNIGHT = dt.datetime(2024, 1, 31)
WRITTEN = {
    "dates": (pa.array([DAY, dt.date(2023, 1, 1), DAY]), ["2024-01-31", "2023-01-01", "2024-01-31"]),
    "timestamps": (
        pa.array([MOMENT, MOMENT.replace(microsecond=500000), MIDNIGHT], pa.timestamp("ns")),
        ["2024-01-31 10:00:00", "2024-01-31 10:00:00.5", "2024-01-31"],
    ),
    "timestamps with a zone": (
        pa.array([MOMENT] * 2 + [MIDNIGHT], pa.timestamp("us", "UTC")),
        ["2024-01-31 10:00:00+00:00"] * 2 + ["2024-01-31 00:00:00+00:00"],
    ),
    "times": (pa.array([dt.time(10), dt.time(10, 0, 7), dt.time(10)]), ["10:00:00", "10:00:07", "10:00:00"]),
    "durations": (pa.array([1, 2, 1], pa.duration("s")), ["0 days 00:00:01", "0 days 00:00:02", "0 days 00:00:01"]),
    "decimals": (pa.array([Decimal("1.50"), Decimal("2.25"), Decimal("1.50")]), [1.5, 2.25, 1.5]),
    "whole decimals": (pa.array([Decimal(12), Decimal(7), Decimal(12)], pa.decimal128(9, 0)), [12, 7, 12]),
    "bytes": (pa.array([b"cat", "h\u00e9n".encode(), b"cat"]), ["cat", "h\u00e9n", "cat"]),
    "bytes of one length": (pa.array([b"ab", b"cd", b"ab"], pa.binary(2)), ["ab", "cd", "ab"]),
    "dates in a dictionary": (pa.array([DAY] * 3).dictionary_encode(), ["2024-01-31"] * 3),
}


@pytest.mark.parametrize("kind", WRITTEN)
@pytest.mark.parametrize("use", ["labels", "groups", "joined labels"])
def test_what_is_no_number_is_read_as_from_text(tmp_path, kind, use):
    column, expected = WRITTEN[kind]
    rows = pa.table({"id": ["x", "y", "z"], "a": [1.0, 2.0, 3.0], "b": [0.0, 1.0, 0.0]})
    pq.write_table(rows.append_column("what", column), tmp_path / "rows.parquet")
    if use == "labels":
        values = open_source(tmp_path / "rows.parquet", "what").labels()
    elif use == "groups":
        values = open_source(tmp_path / "rows.parquet", aside="what").column("what")
    else:
        pq.write_table(rows, tmp_path / "alone.parquet")
        values = open_source(tmp_path / "alone.parquet", f"{tmp_path}/rows.parquet::what").labels()
    assert values.tolist() == expected


def test_missing_dates_and_bytes_are_missing_labels(tmp_path):
    for column in ([DAY, None, DAY], [b"a", None, b"b"], [Decimal("1.5"), None, Decimal("2.5")]):
        table = pa.table({"a": [1.0, 5.0, 3.0], "b": [0.0, 1.0, 0.0], "what": pa.array(column)})
        pq.write_table(table, tmp_path / "rows.parquet")
        assert open_source(tmp_path / "rows.parquet", "what").n_left_out == 1


def test_bytes_that_are_no_text(tmp_path):
    table = pa.table({"a": [1.0, 2.0], "b": [0.0, 1.0], "what": pa.array([b"a", b"\xff"])})
    pq.write_table(table, tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"rows\.parquet, column 'what': bytes that are not text in UTF-8"):
        open_source(tmp_path / "rows.parquet", "what")


def test_labels_are_a_column_an_array_or_a_file(tmp_path):
    words = np.where(LABELS > 0, "tree", "fish")
    whole = table(y=None).append_column("kind", pa.array(words).dictionary_encode())
    pq.write_table(whole, tmp_path / "rows.pq")
    assert open_source(tmp_path / "rows.pq", "kind").labels().tolist() == words.tolist()
    np.save(tmp_path / "y.npy", LABELS)
    for labels in (LABELS, tmp_path / "y.npy"):
        source = ArrowSource(tmp_path / "rows.pq", labels, [f"bin {j}" for j in range(3)])
        np.testing.assert_array_equal(source.labels(), LABELS)
        np.testing.assert_array_equal(all_rows(source), COUNTS[:, :3])
    with pytest.raises(DataError, match=r"rows\.pq: column 'kind' is dictionary.*expected numbers.*labels"):
        open_source(tmp_path / "rows.pq")


def test_features_are_named_by_member_or_argument(tmp_path):
    parquet(tmp_path, table_of_lists(True))
    assert open_source(f"{tmp_path}/rows.parquet::histogram").n_features == N_FEATURES
    assert ArrowSource(tmp_path / "rows.parquet", features=["id"]).n_features == 1
    with pytest.raises(DataError, match=r"rows\.parquet: no column 'x'; it holds id, histogram, y\."):
        ArrowSource(tmp_path / "rows.parquet", features="x")
    with pytest.raises(DataError, match=r"1 columns of lists among the features \['id', 'histogram'\]"):
        ArrowSource(tmp_path / "rows.parquet", features=["id", "histogram"])


def test_the_index_of_a_data_frame_is_no_bin(tmp_path):
    pq.write_table(table().append_column("__index_level_0__", [np.arange(N_ROWS)]), tmp_path / "a.parquet")
    assert open_source(tmp_path / "a.parquet").n_features == N_FEATURES


def test_shuffled_row_groups_come_in_an_order_of_the_seed(tmp_path):
    parquet(tmp_path, table(), compression="none")
    path = tmp_path / "rows.parquet"
    stored = np.split(np.arange(N_ROWS), [50, 100])
    orders = set()
    for seed in range(8):
        source = ArrowSource(path, shuffle=True, random_state=seed)
        given = ArrowSource(path, LABELS, [f"bin {j}" for j in range(12)], shuffle=True, random_state=seed)
        order = [g for _, g in source._table.groups]
        places = np.concatenate([stored[g] for g in order])
        np.testing.assert_array_equal(all_rows(source), COUNTS[places])
        np.testing.assert_array_equal(all_rows(source), all_rows(source))
        np.testing.assert_array_equal(source.labels(), LABELS[places])
        np.testing.assert_array_equal(given.labels(), LABELS[places])
        np.testing.assert_array_equal(source.take(np.array([3, 60, 136])), COUNTS[places[[3, 60, 136]]])
        orders.add(tuple(order))
    assert len(orders) > 2


@pytest.fixture
def parts(tmp_path):
    """A folder of two parts, each with a row group of 50 rows and one of the rest."""
    for name, rows in (("a", slice(0, 68)), ("b", slice(68, None))):
        pq.write_table(table(COUNTS[rows], LABELS[rows]), tmp_path / f"{name}.parquet", row_group_size=50)
    return tmp_path


def rewrite(path, change):
    pq.write_table(change(pq.read_table(path)), path, row_group_size=50)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop_columns("bin 3"), r"column 'bin 3' must be uint8 as in a\.parquet, but there is none"),
        (lambda t: t.set_column(3, "bin 3", [t[3].cast("float")]), "must be uint8 .* but it is float"),
        (lambda t: t.append_column("bin 12", t[3]), r"column 'bin 12' is not in a\.parquet, whose 12 columns are"),
        (lambda t: t.drop_columns("label"), "the labels 'label' must be int64 .* but there is none"),
        (lambda t: t.set_column(12, "label", [t[12].cast("string")]), "labels 'label' .* but it is string"),
    ],
)
def test_parts_whose_columns_differ(parts, change, message):
    rewrite(parts / "b.parquet", change)
    with pytest.raises(DataError, match=r"b\.parquet: .*" + message):
        open_source(parts)


def test_columns_that_are_not_asked_for_may_differ(parts):
    rewrite(parts / "b.parquet", lambda t: t.append_column("bin 12", t[3]))
    source = ArrowSource(parts, features=["bin 0", "bin 3"])
    np.testing.assert_array_equal(all_rows(source), COUNTS[:, [0, 3]])


def test_rows_without_a_label_are_left_out(parts):
    values = [1] * 68 + [1]
    values[61] = None
    rewrite(parts / "b.parquet", lambda t: t.set_column(12, "label", [pa.array(values, pa.int64())]))
    source = open_source(parts)
    assert source.n_rows == N_ROWS - 1
    assert source.n_left_out == 1
    np.testing.assert_array_equal(all_rows(source), np.delete(COUNTS, 68 + 61, axis=0))


@pytest.mark.parametrize("column", ["bin 3"])
def test_nulls(parts, column):
    values = [1] * 68
    values[61] = None
    kind = pa.uint8() if column == "bin 3" else pa.int64()
    place = 3 if column == "bin 3" else 12
    rewrite(parts / "b.parquet", lambda t: t.set_column(place, column, [pa.array([*values, 1], kind)]))
    with pytest.raises(DataError, match=rf"b\.parquet, row group 1, row 11: null in column '{column}'.*fill it"):
        list(open_source(parts).chunks(30))


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ([[1.0, 2.0], [3.0]], "row 1: 1 values in 'x', expected 2 as in the first row"),
        ([[1.0, 2.0], None], "row 1: null in column 'x'"),
        ([[1.0, 2.0], [3.0, None]], "row 1: a null in the list of 'x'"),
        ([[], [1.0]], "the lists of the first row are empty"),
        ([["a"], ["b"]], "column 'x' is list<.*expected numbers"),
    ],
)
@pytest.mark.parametrize("write", [pq.write_table, feather.write_feather])
def test_lists(tmp_path, write, lists, message):
    path = tmp_path / f"rows{'.parquet' if write is pq.write_table else '.feather'}"
    write(pa.table({"x": lists}), path)
    with pytest.raises(DataError, match=r"rows\.\w+.*" + message):
        list(open_source(path).chunks(10))


def test_parts_of_lists_of_another_length(tmp_path):
    pq.write_table(pa.table({"x": [[1.0, 2.0]]}), tmp_path / "a.parquet")
    pq.write_table(pa.table({"x": [[1.0, 2.0, 3.0]]}), tmp_path / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet, row group 0, row 0: 3 values in 'x', expected 2"):
        list(open_source(tmp_path).chunks(10))
    for name, width in (("a", 2), ("b", 3)):
        lists = pa.FixedSizeListArray.from_arrays(pa.array(np.ones(6)), width)
        pq.write_table(pa.table({"x": lists}), tmp_path / f"{name}.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: column 'x' must be fixed_size_list.*\[2\].* it is .*\[3\]"):
        open_source(tmp_path)


def test_damaged_parts(parts):
    path = parts / "b.parquet"
    rng = np.random.default_rng(0)
    pq.write_table(table(rng.random((2000, 12)), np.ones(2000)), parts / "a.parquet")
    noise = table(rng.random((2000, 12)), np.ones(2000))
    pq.write_table(noise, path, row_group_size=1000, write_page_checksum=True)
    whole = path.read_bytes()
    path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"b\.parquet: cannot be read \(.*damaged, cut off"):
        open_source(parts)
    middle = int(0.7 * len(whole))
    path.write_bytes(whole[:middle] + bytes(64) + whole[middle + 64 :])
    with pytest.raises(DataError, match=r"b\.parquet, row group 1: cannot be read"):
        list(open_source(parts).chunks(100))
    path.write_bytes(b"")
    with pytest.raises(DataError, match=r"b\.parquet is empty"):
        open_source(parts)


def test_a_stream_is_told_from_a_damaged_file(tmp_path):
    with pa.ipc.new_stream(tmp_path / "a.arrow", table().schema) as stream:
        stream.write_table(table())
    with pytest.raises(DataError, match=r"a\.arrow: an Arrow IPC stream.*new_file"):
        open_source(tmp_path / "a.arrow")


def test_damaged_feather(tmp_path):
    feather.write_feather(table(), tmp_path / "a.feather")
    whole = (tmp_path / "a.feather").read_bytes()
    (tmp_path / "a.feather").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"a\.feather: cannot be read"):
        open_source(tmp_path / "a.feather")


def test_folders_without_parts_or_rows(tmp_path):
    (tmp_path / "notes.txt").write_text("nothing")
    with pytest.raises(DataError, match="a folder without parts; expected files that end in"):
        open_source(tmp_path)
    pq.write_table(table(COUNTS[:0], LABELS[:0]), tmp_path / "a.parquet")
    with pytest.raises(DataError, match="no rows"):
        open_source(tmp_path)


def test_parts_that_come_go_or_change(parts):
    source = open_source(parts)
    pq.write_table(table(COUNTS[:5], LABELS[:5]), parts / "c.parquet")
    with pytest.raises(DataError, match="has other parts than when it was opened"):
        list(source.chunks(10))
    (parts / "c.parquet").rename(parts / "_c.parquet")
    assert sum(chunk.X.shape[0] for chunk in source.chunks(10)) == N_ROWS
    chunks = source.chunks(10)
    next(chunks)
    pq.write_table(table(COUNTS[:5], LABELS[:5]), parts / "b.parquet")
    with pytest.raises(DataError, match=r"b\.parquet: the file has changed since it was opened \(it had"):
        list(chunks)
    (parts / "b.parquet").unlink()
    with pytest.raises(DataError, match=r"b\.parquet: the file has changed .*it is gone"):
        next(source.chunks(10))
