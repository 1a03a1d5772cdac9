"""Changes of the metadata on a disk that fails: what clients see is what a restart would see."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedded import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.wire import Wire, batch, produce

GROW = CreatePartitionsRequest([CreatePartitionsTopic("t", 2)])
SHRINK = IncrementalAlterConfigsRequest(
    [AlterConfigsResource(2, "t", [AlterableConfig("max.message.bytes", 0, "400")])]
)


def fails(*args: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def errors(wire: Wire) -> tuple[int, int]:
    """What comes of adding a partition and of a smaller limit."""
    (grown,) = wire.ask(GROW).results
    (shrunk,) = wire.ask(SHRINK).responses
    return grown.error_code, shrunk.error_code


def limits(wire: Wire) -> tuple[int, int]:
    """What a record gets in the new partition, and a large one in the old."""
    return (
        wire.produce("t", b"a", partition=1).error_code,
        wire.ask(produce("t", batch([bytes(500)])), 11).responses[0].partition_responses[0].error_code,
    )


def test_what_could_not_be_written_has_not_happened(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails)
        assert errors(wire) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
    assert limits(wire) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert errors(wire) == (0, 0)
    assert limits(wire) == (0, ErrorCode.MESSAGE_TOO_LARGE)


def test_what_was_written_but_not_forced_to_the_disk_has_happened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fails)
            patch.setattr(os, "fdatasync", fails)
            assert errors(wire) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
        assert limits(wire) == (0, ErrorCode.MESSAGE_TOO_LARGE)
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert limits(wire) == (0, ErrorCode.MESSAGE_TOO_LARGE)
