"""The options of tables: what they mean, and one sentence for what is wrong."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.errors import ConfigError
from ottla.spark.tables.options import DeltaOptions, IcebergOptions, local_folder, read_table_options


def test_options_are_read_in_any_case_of_letters() -> None:
    options = read_table_options(
        DeltaOptions,
        {"path": "/t", "PARTITIONBY": "a, b", "mergeschema": "true", "targetFileSize": "1000", "queryname": "q"},
    )
    assert options == DeltaOptions(path="/t", partition_by=("a", "b"), merge_schema=True, target_file_size=1000)


def test_a_warehouse_alone_is_a_catalog_of_sqlite() -> None:
    options = read_table_options(IcebergOptions, {"path": "a.t", "warehouse": "/lake"})
    assert options.catalog_settings() == {
        "type": "sql",
        "uri": "sqlite:////lake/catalog.db",
        "warehouse": "file:///lake",
    }


def test_a_catalog_s_own_settings_win() -> None:
    given = {"path": "a.t", "warehouse": "/lake", "catalog.uri": "http://rest:8181", "catalog.token": "x"}
    assert read_table_options(IcebergOptions, given).catalog_settings() == {
        "uri": "http://rest:8181",
        "token": "x",
        "warehouse": "file:///lake",
    }


@pytest.mark.parametrize(
    ("given", "sentence"),
    [
        ({}, r"there is no table; pass it to save\(…\), start\(…\) or load\(…\)"),
        ({"path": "/t", "mergeShema": "1"}, "unknown option 'mergeShema'; did you mean 'mergeSchema'"),
        ({"path": "/t", "compression": "rar"}, "compression = 'rar'"),
        ({"path": "/t", "txnAppId": "a"}, "option txnAppId needs txnVersion; give both or none"),
        ({"path": "/t", "targetFileSize": "0"}, "targetFileSize = 0: must be at least 1"),
        ({"path": "/t", "warehouse": "/w"}, "unknown option 'warehouse'"),
    ],
)
def test_an_error_is_a_one_line_error(given: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError, match=sentence):
        read_table_options(DeltaOptions, given)


def test_folders_are_paths_or_file_addresses() -> None:
    assert local_folder("path", "/a b/c") == Path("/a b/c")
    assert local_folder("path", "file:/a b/c") == local_folder("path", "file:///a b/c") == Path("/a b/c")
    assert local_folder("path", "t") == Path.cwd() / "t"


@pytest.mark.parametrize("address", ["s3://bucket/t", "hdfs://name/t", "file://host/t"])
def test_a_path_that_is_not_a_folder_is_a_one_line_error(address: str) -> None:
    with pytest.raises(ConfigError, match=f"option path = '{address}': Ottla writes tables to folders"):
        local_folder("path", address)
