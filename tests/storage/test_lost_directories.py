"""A data directory of which nothing but its `meta.properties` is left is another one, and copies in it are known not to be whole."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from uuid import UUID

import pytest

from ottla.broker.controller.formatting import format_without_voters
from ottla.broker.settings.config import BrokerConfig
from ottla.kafka_id import id_of
from ottla.model import TopicPartition
from ottla.storage.batches.damage import OfflineError
from ottla.storage.directory.data_directories import DataDirectories, open_directories
from ottla.storage.directory.data_directory import DataDirectory
from ottla.storage.directory.meta_properties import MetaProperties
from ottla.storage.log_config import LogConfig

COPY = TopicPartition("t", 0)
OTHER = UUID(int=1234)


def used(path: Path) -> UUID:
    """A directory in which a broker ran, and the id that it had."""
    directory = DataDirectory.open(path, node_id=1)
    directory.open_log(COPY, LogConfig(), now_ms=0)
    directory.close(clean=False)
    return directory.directory_id


def emptied(path: Path) -> None:
    for each in path.iterdir():
        if each.name != "meta.properties":
            shutil.rmtree(each) if each.is_dir() else each.unlink()


def test_an_emptied_directory_gets_a_new_id_and_logs_it(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    former = used(tmp_path)
    emptied(tmp_path)
    directory = DataDirectory.open(tmp_path, node_id=1)
    assert directory.directory_id != former
    assert "has nothing but its meta.properties: it is taken for a new disk" in caplog.text
    assert directory.has_less_than(COPY, former)
    directory.close()


def test_the_new_id_stays(tmp_path: Path) -> None:
    former = used(tmp_path)
    emptied(tmp_path)
    ids = {used(tmp_path) for _ in range(2)}
    assert len(ids) == 1
    directory = DataDirectory.open(tmp_path, node_id=1)
    assert directory.has_less_than(COPY, former), "as long as the metadata have it there"
    directory.close()


def test_an_unused_formatted_directory_keeps_its_id(tmp_path: Path) -> None:
    config = BrokerConfig(node_id=1, log_dirs=f"{tmp_path / 'a'},{tmp_path / 'b'}")
    format_without_voters(config, "cluster")
    for name in ("a", "b"):
        formatted = MetaProperties.parse(tmp_path / name / "meta.properties").directory_id
        directory = DataDirectory.open(tmp_path / name, node_id=1)
        assert directory.directory_id == id_of(formatted)
        directory.close(clean=False)


def test_a_directory_formatted_by_kafka_for_a_voter_keeps_its_id(tmp_path: Path) -> None:
    formatted = MetaProperties.format(tmp_path, 1, "cluster")
    (tmp_path / "bootstrap.checkpoint").touch()
    (tmp_path / "__cluster_metadata-0").mkdir()
    directory = DataDirectory.open(tmp_path, node_id=1)
    assert directory.directory_id == id_of(formatted.directory_id)
    directory.close()


def test_a_directory_that_may_only_have_been_formatted_causes_no_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    MetaProperties.format(tmp_path, 1, "cluster")
    (tmp_path / "bootstrap.checkpoint").touch()
    DataDirectory.open(tmp_path, node_id=1).close()
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_a_replica_with_a_folder_here_was_moved_and_is_complete(tmp_path: Path) -> None:
    used(tmp_path)
    directory = DataDirectory.open(tmp_path, node_id=1)
    assert not directory.has_less_than(COPY, OTHER)
    assert directory.has_less_than(COPY._replace(partition=1), OTHER)
    assert directory.has_less_than(COPY, OTHER), "others of that directory began anew"
    directory.close()


@pytest.mark.parametrize("former", [UUID(int=0), UUID(int=1), UUID(int=2)])
def test_a_replica_without_a_known_directory_was_never_stored(tmp_path: Path, former: UUID) -> None:
    directory = DataDirectory.open(tmp_path, node_id=1)
    assert not directory.has_less_than(COPY, former)
    directory.close()


def test_one_emptied_directory_of_several_is_formatted_again(tmp_path: Path) -> None:
    paths = [str(tmp_path / "a"), str(tmp_path / "b")]
    open_directories(paths, node_id=1).close()
    former = id_of(MetaProperties.parse(tmp_path / "b" / "meta.properties").directory_id)
    emptied(tmp_path / "b")
    directories = open_directories(paths, node_id=1)
    assert isinstance(directories, DataDirectories)
    directories.assigned = lambda partition: former
    assert directories.place(COPY).path == tmp_path / "b"
    assert directories.has_less_than(COPY, former)
    assert not directories.has_less_than(COPY, directories.main.directory_id), "it moves from one to the other"
    directories.close()


def test_a_directory_that_is_none_of_several_is_reported_once_with_the_remedy(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directories = open_directories([str(tmp_path / "a"), str(tmp_path / "b")], node_id=1)
    assert isinstance(directories, DataDirectories)
    directories.assigned = lambda partition: UUID(int=1000)
    for index in range(2):
        with pytest.raises(OfflineError, match=r"of id AAAAAAAAAAAAAAAAAAAD6A, which is none of log\.dirs"):
            directories.place(TopicPartition("t", index))
    directories.close()
    (record,) = caplog.records
    assert record.getMessage().startswith(
        "t-0 and possibly other replicas of this broker are in the directory with the id AAAA"
    )
    assert "mount its disk and start again" in record.getMessage()
