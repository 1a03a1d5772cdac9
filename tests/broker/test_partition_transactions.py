"""Transactions as partitions know them: batches, markers, and what readers of committed records see."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.model import EARLIEST, LATEST, MAX_TIMESTAMP
from ottla.protocol.messages.describe_producers import DescribeProducersRequest, TopicRequest
from ottla.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from ottla.protocol.messages.produce import PartitionProduceResponse
from ottla.protocol.messages.write_txn_markers import WritableTxnMarker, WritableTxnMarkerTopic, WriteTxnMarkersRequest
from ottla.records.columns import decode
from tests.broker.wire import Wire, fetch, produce, values
from tests.storage.producing import produced

UNCHECKED: dict[str, Any] = {"transaction_partition_verification_enable": False}
"""A substitute for the coordinator, which does not know these producers."""


@pytest.fixture
def broker() -> Iterator[Broker]:
    with Broker(**UNCHECKED) as broker:
        yield broker


def send(wire: Wire, producer_id: int, sequence: int, count: int = 1, *, epoch: int = 0) -> PartitionProduceResponse:
    """Part of a transaction."""
    request = produce("t", produced(producer_id, sequence, count, epoch=epoch, transactional=True))
    request.transactional_id = "tx"
    result: PartitionProduceResponse = wire.ask(request, 11).responses[0].partition_responses[0]
    return result


def end(wire: Wire, producer_id: int, *, commit: bool, version: int = 1, partition: int = 0, **more: int) -> int:
    """The error code with which a transaction's end is answered."""
    topics = [WritableTxnMarkerTopic("t", [partition])]
    marker = WritableTxnMarker(producer_id, 0, commit, topics, **more)
    (result,) = wire.ask(WriteTxnMarkersRequest([marker]), version).markers
    code: int = result.topics[0].partitions[0].error_code
    return code


def committed(wire: Wire, offset: int = 0, **more: Any) -> Any:
    """Return the response to a read-committed reader."""
    request = fetch("t", offset, **more)
    request.isolation_level = 1
    return wire.ask(request, 12).responses[0].partitions[0]


def listed(wire: Wire, timestamp: int, isolation_level: int) -> int:
    topic = ListOffsetsTopic("t", [ListOffsetsPartition(0, timestamp=timestamp)])
    response = wire.ask(ListOffsetsRequest(-1, isolation_level, [topic]), 8)
    offset: int = response.topics[0].partitions[0].offset
    return offset


def offsets_of(found: Any, from_offset: int = 0) -> tuple[list[int], int]:
    """Return the records of a response, and the next offset."""
    aborted = [(each.producer_id, each.first_offset) for each in found.aborted_transactions or ()]
    columns = decode(bytes(found.records or b""), from_offset=from_offset, aborted=aborted)
    return list(columns.offsets), columns.next_offset


def seen(wire: Wire) -> list[int]:
    """The offsets of all records that a reader of committed records gets to see."""
    offsets: list[int] = []
    position = 0
    while position < (found := committed(wire, position)).last_stable_offset:
        more, position = offsets_of(found, position)
        offsets += more
    return offsets


def test_a_read_committed_reader_gets_records_once_the_transaction_has_ended(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"before")
    send(wire, 7, 0, 2)
    wire.produce("t", b"after")
    open_ = committed(wire)
    assert (open_.last_stable_offset, open_.high_watermark, values(open_)) == (1, 4, [b"before"])
    assert end(wire, 7, commit=True) == 0
    ended = committed(wire)
    assert (ended.last_stable_offset, seen(wire)) == (5, [0, 1, 2, 3])


def test_aborted_records_are_listed_and_left_out(wire: Wire) -> None:
    wire.create("t")
    send(wire, 7, 0, 2)
    send(wire, 8, 0)
    end(wire, 7, commit=False)
    end(wire, 8, commit=True)
    found = committed(wire)
    assert [(each.producer_id, each.first_offset) for each in found.aborted_transactions] == [(7, 0)]
    assert seen(wire) == [2]
    assert wire.fetch("t").aborted_transactions is None


def test_a_waiting_read_committed_fetch_is_answered_when_the_transaction_ends(wire: Wire, broker: Broker) -> None:
    wire.create("t")
    send(wire, 7, 0, 5)
    with Wire(broker.bootstrap_servers) as reader:
        request = fetch("t", 0, max_wait_ms=15_000, min_bytes=100)
        request.isolation_level = 1
        reader.send(request, 12)
        send(wire, 7, 5, 5)
        end(wire, 7, commit=True)
        found = reader.receive(request, 12)[1].responses[0].partitions[0]
    assert offsets_of(found)[0] == list(range(10))


def test_the_end_offset_depends_on_the_isolation_level(wire: Wire) -> None:
    wire.create("t")
    wire.produce("t", b"a")
    send(wire, 7, 0)
    assert [listed(wire, LATEST, level) for level in (0, 1)] == [2, 1]
    assert [listed(wire, MAX_TIMESTAMP, level) for level in (0, 1)] == [1, -1]
    assert [listed(wire, 2_000, level) for level in (0, 1)] == [1, -1]
    assert [listed(wire, EARLIEST, level) for level in (0, 1)] == [0, 0]


def test_a_transactional_batch_requires_a_transactional_id(wire: Wire) -> None:
    wire.create("t")
    (topic,) = wire.ask(produce("t", produced(7, 0, transactional=True)), 9).responses
    assert topic.partition_responses[0].error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    assert "names no transactional.id" in topic.partition_responses[0].error_message


def test_invalid_markers_are_rejected(wire: Wire) -> None:
    wire.create("t")
    assert end(wire, 7, commit=True, partition=3) == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert end(wire, -1, commit=True) == ErrorCode.INVALID_PRODUCER_ID_MAPPING
    send(wire, 7, 0, epoch=3)
    assert end(wire, 7, commit=True) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(wire, 8, commit=True, coordinator_epoch=5) == 0
    assert end(wire, 8, commit=True, coordinator_epoch=4) == ErrorCode.TRANSACTION_COORDINATOR_FENCED


def test_a_marker_of_transaction_version_2_has_an_epoch_above_that_of_its_records(wire: Wire) -> None:
    wire.create("t")
    send(wire, 7, 0)
    assert end(wire, 7, commit=True, version=2, transaction_version=2) == ErrorCode.INVALID_PRODUCER_EPOCH
    assert end(wire, 7, commit=True, version=2) == 0


def test_active_producers_are_described(wire: Wire) -> None:
    wire.create("t")
    send(wire, 7, 0, 3)
    wire.ask(produce("t", produced(8, 5, timestamp=1234)), 9)
    end(wire, 9, commit=True, coordinator_epoch=4)
    request = DescribeProducersRequest([TopicRequest("t", [0, 1])])
    here, nowhere = wire.ask(request, 0).topics[0].partitions
    open_, plain, marked = here.active_producers
    assert (open_.producer_id, open_.last_sequence, open_.current_txn_start_offset) == (7, 2, 0)
    assert (plain.producer_id, plain.last_sequence, plain.last_timestamp) == (8, 5, 1234)
    assert (plain.coordinator_epoch, plain.current_txn_start_offset) == (-1, -1)
    assert (marked.producer_id, marked.last_sequence, marked.coordinator_epoch) == (9, -1, 4)
    assert nowhere.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("clean", [True, False])
def test_transactional_state_is_the_same_after_a_restart(tmp_path: Path, clean: bool) -> None:
    broker = Broker(tmp_path, process=not clean, **UNCHECKED)
    with broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        send(wire, 7, 0, 2)
        end(wire, 7, commit=False)
        send(wire, 8, 0)
        if not clean:
            os.kill(broker.pid, signal.SIGKILL)
    with Broker(tmp_path, **UNCHECKED) as broker, Wire(broker.bootstrap_servers) as wire:
        found = committed(wire)
        assert (found.last_stable_offset, seen(wire)) == (3, [])
        assert send(wire, 8, 0).base_offset == 3
        assert send(wire, 7, 1).error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert end(wire, 8, commit=True) == 0
        assert seen(wire) == [3]
