"""DescribeLogDirs: where the partitions are and how large they are."""

from __future__ import annotations

from pathlib import Path

import kafka.admin
import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsRequest,
    DescribeLogDirsResult,
)
from tests.broker.wire import Wire


def describe_directory(
    wire: Wire, topics: list[DescribableLogDirTopic] | None = None, version: int = 5
) -> DescribeLogDirsResult:
    (result,) = wire.ask(DescribeLogDirsRequest(topics), version).results
    assert result.error_code == 0
    return result  # type: ignore[no-any-return]


def sizes(result: DescribeLogDirsResult) -> dict[tuple[str, int], int]:
    return {
        (topic.name, partition.partition_index): partition.partition_size
        for topic in result.topics
        for partition in topic.partitions
    }


@pytest.mark.parametrize("version", range(1, 6))
def test_sizes_are_those_of_the_files(tmp_path: Path, version: int) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", 2)
        wire.produce("t", bytes(1000))
        result = describe_directory(wire, version=version)
        assert result.log_dir == str(tmp_path)
        written = (tmp_path / "t-0" / f"{0:020}.log").stat().st_size
        assert sizes(result) == {("t", 0): written, ("t", 1): 0}
        if version >= 4:
            assert result.total_bytes >= result.usable_bytes > 0


def test_an_unused_log_has_its_size_too(tmp_path: Path) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", bytes(1000))
        before = sizes(describe_directory(wire))
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert sizes(describe_directory(wire)) == before


def test_only_requested_and_existing_partitions_are_described(wire: Wire) -> None:
    wire.create("t", 2)
    wire.create("u")
    wanted = [DescribableLogDirTopic("t", [1, 1, 7]), DescribableLogDirTopic("nobody", [0])]
    assert sizes(describe_directory(wire, wanted)) == {("t", 1): 0}
    assert sizes(describe_directory(wire, [])) == {}


def test_kafka_pythons_admin_client_describes_log_dirs(broker: Broker, wire: Wire) -> None:
    wire.create("t")
    admin = kafka.admin.KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    found = admin.describe_log_dirs()
    admin.close()
    assert "'t'" in str(found)


def test_a_cordoned_directory_is_described_as_cordoned() -> None:
    with Broker() as broker, Wire(broker.bootstrap_servers) as wire:
        assert not describe_directory(wire).is_cordoned
    with Broker(cordoned_log_dirs="*") as broker, Wire(broker.bootstrap_servers) as wire:
        assert describe_directory(wire).is_cordoned
