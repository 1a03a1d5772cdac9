"""DeleteRecords of what other brokers copy: answered when they have heard of it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.embedded import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.broker.test_led_partitions import EPOCH, ME, OTHER, found, in_loop, lead
from tests.broker.wire import Wire
from tests.patience import eventually

VERSION = 2


@pytest.fixture
def broker() -> Iterator[Broker]:
    """One that leads ten committed records."""
    with Broker(node_id=ME) as broker, Wire(broker.bootstrap_servers) as wire:
        wire.create("t")
        lead(broker, ME, OTHER)
        for _ in range(10):
            assert wire.produce("t", b"a", acks=1).error_code == 0
        follow(wire, 10, 0)
        yield broker


@pytest.fixture
def wire(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


@pytest.fixture
def follower(broker: Broker) -> Iterator[Wire]:
    with Wire(broker.bootstrap_servers) as wire:
        yield wire


def follow(wire: Wire, offset: int, start: int) -> int:
    """Fetch as a follower that has all between; from where on its leader has anything."""
    wanted = FetchPartition(0, EPOCH, offset, EPOCH, start, partition_max_bytes=2**20)
    topic = FetchTopic(topic_id=wire.metadata("t").topics[0].topic_id, partitions=[wanted])
    answer = wire.ask(FetchRequest(max_wait_ms=0, topics=[topic], replica_state=ReplicaState(OTHER, 20)))
    begins: int = answer.responses[0].partitions[0].log_start_offset
    return begins


def asked(wire: Wire, offset: int, timeout_ms: int = 60_000) -> DeleteRecordsRequest:
    request = DeleteRecordsRequest([DeleteRecordsTopic("t", [DeleteRecordsPartition(0, offset)])], timeout_ms)
    wire.send(request, VERSION)
    return request


def answered(wire: Wire, request: DeleteRecordsRequest) -> DeleteRecordsPartitionResult:
    result: DeleteRecordsPartitionResult = wire.receive(request, VERSION)[1].topics[0].partitions[0]
    return result


def begins(broker: Broker) -> int:
    seen: list[int] = []
    in_loop(broker, lambda node: seen.append(found(node).log.start_offset))
    return seen[0]


def test_it_is_answered_when_the_copy_begins_there(broker: Broker, wire: Wire, follower: Wire) -> None:
    request = asked(wire, 4)
    eventually(lambda: begins(broker) == 4)
    assert follow(follower, 10, 0) == 4
    assert follow(follower, 10, 4) == 4
    result = answered(wire, request)
    assert (result.error_code, result.low_watermark) == (0, 4)


def test_to_the_end_is_up_to_what_was_committed_then(broker: Broker, wire: Wire, follower: Wire) -> None:
    assert follower.produce("t", b"b", acks=1).error_code == 0
    request = asked(wire, -1)
    eventually(lambda: begins(broker) == 10)
    follow(follower, 11, 10)
    result = answered(wire, request)
    assert (result.error_code, result.low_watermark) == (0, 10)


def test_a_copy_that_does_not_hear_of_it_in_time_is_told(broker: Broker, wire: Wire) -> None:
    result = answered(wire, asked(wire, 4, timeout_ms=1))
    assert (result.error_code, result.low_watermark, begins(broker)) == (ErrorCode.REQUEST_TIMED_OUT, 0, 4)


def test_beyond_what_is_committed_nothing_is_deleted(broker: Broker, wire: Wire, follower: Wire) -> None:
    assert follower.produce("t", b"b", acks=1).error_code == 0
    assert answered(wire, asked(wire, 11)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert begins(broker) == 0


def test_who_leads_no_more_says_so(broker: Broker, wire: Wire) -> None:
    request = asked(wire, 4)
    eventually(lambda: begins(broker) == 4)

    def lose(node: object) -> None:
        partition = found(node)  # type: ignore[arg-type]
        leadership, partition.leadership, partition.leads = partition.leadership, None, False
        assert leadership is not None
        leadership.end()

    in_loop(broker, lose)
    assert answered(wire, request).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answered(wire, asked(wire, 5)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
