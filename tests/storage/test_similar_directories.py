"""The data directory that was meant is found when the name of a new one is misspelt."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.storage.directory.similar_directories import find_similar_directory


def make_data_directory(path: Path) -> Path:
    path.mkdir(parents=True)
    (path / "meta.properties").write_text("version=1\n")
    return path


@pytest.mark.parametrize("misspelt", ["lib/otla/data", "lib/ottla/dta", "lib/Ottla/data", "Lib/ottla/data"])
def test_find_the_data_directory_with_one_misspelt_part_of_its_path(tmp_path: Path, misspelt: str) -> None:
    meant = make_data_directory(tmp_path / "lib/ottla/data")
    assert find_similar_directory(tmp_path / misspelt) == meant


def test_find_it_although_an_earlier_mistake_has_created_the_misspelt_directory(tmp_path: Path) -> None:
    meant = make_data_directory(tmp_path / "orders")
    (tmp_path / "order").mkdir()
    assert find_similar_directory(tmp_path / "order") == meant


def test_find_the_most_similar_of_several(tmp_path: Path) -> None:
    make_data_directory(tmp_path / "order-data-old")
    meant = make_data_directory(tmp_path / "order-data")
    assert find_similar_directory(tmp_path / "oder-data") == meant


@pytest.mark.parametrize("other", ["node-1", "payments", "node-"])
def test_do_not_report_directories_of_other_nodes_and_of_other_names(tmp_path: Path, other: str) -> None:
    make_data_directory(tmp_path / other)
    assert find_similar_directory(tmp_path / "node-2") is None


def test_do_not_report_a_similar_directory_without_data(tmp_path: Path) -> None:
    (tmp_path / "orders").mkdir()
    assert find_similar_directory(tmp_path / "order") is None
