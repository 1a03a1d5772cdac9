"""Changes of the metadata on a disk that fails: what clients see is what a restart would see."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.messages.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from tests.broker.wire import Wire, batch, produce
from tests.patience import eventually

GROW = CreatePartitionsRequest([CreatePartitionsTopic("t", 2)])
SHRINK = IncrementalAlterConfigsRequest(
    [AlterConfigsResource(2, "t", [AlterableConfig("max.message.bytes", 0, "400")])]
)


def fails(*args: Any) -> Any:
    raise OSError(errno.ENOSPC, "No space left on device")


def errors(wire: Wire) -> tuple[int, int]:
    """Return the results of added partitions and of a lower limit."""
    (grown,) = wire.ask(GROW).results
    (shrunk,) = wire.ask(SHRINK).responses
    return grown.error_code, shrunk.error_code


def limits(wire: Wire) -> tuple[int, int]:
    """Return the error codes of a record in the new partition, and of a large one in the old."""
    return (
        wire.produce("t", b"a", partition=1).error_code,
        wire.ask(produce("t", batch([bytes(500)])), 11).responses[0].partition_responses[0].error_code,
    )


def test_a_change_that_could_not_be_written_is_not_applied(wire: Wire, monkeypatch: pytest.MonkeyPatch) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", fails)
        assert errors(wire) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
    assert limits(wire) == (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, 0)
    assert errors(wire) == (0, 0)
    assert limits(wire) == (0, ErrorCode.MESSAGE_TOO_LARGE)


def test_a_change_that_was_written_and_flushed_later_is_applied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        wire.produce("t", b"a")
        with monkeypatch.context() as patch:
            patch.setattr(os, "fsync", fails)
            patch.setattr(os, "fdatasync", fails)
            assert errors(wire) == (ErrorCode.KAFKA_STORAGE_ERROR, ErrorCode.KAFKA_STORAGE_ERROR)
        eventually(lambda: limits(wire) == (0, ErrorCode.MESSAGE_TOO_LARGE))
    with Broker(tmp_path) as broker, Wire(broker.bootstrap_servers) as wire:
        assert limits(wire) == (0, ErrorCode.MESSAGE_TOO_LARGE)
