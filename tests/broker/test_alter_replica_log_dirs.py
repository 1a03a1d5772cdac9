"""AlterReplicaLogDirs: with one directory, every other directory is an error."""

from __future__ import annotations

from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDir,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirTopic,
)
from tests.broker.wire import Wire


@pytest.mark.parametrize("version", [1, 2])
def test_a_replica_can_only_be_assigned_to_its_present_directory(tmp_path: Path, version: int) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t", partitions=2)
        here = AlterReplicaLogDir(str(tmp_path), [AlterReplicaLogDirTopic("t", [0, 5])])
        there = AlterReplicaLogDir("/elsewhere", [AlterReplicaLogDirTopic("t", [1])])
        (topic,) = wire.ask(AlterReplicaLogDirsRequest([here, there]), version).results
        assert {result.partition_index: result.error_code for result in topic.partitions} == {
            0: ErrorCode.NONE,
            5: ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
            1: ErrorCode.LOG_DIR_NOT_FOUND,
        }
