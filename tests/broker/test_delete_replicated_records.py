"""DeleteRecords of replicated partitions: answered when the followers have the new log start."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.errors import ErrorCode
from ottla.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsPartitionResult,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ReplicaState
from tests.broker.test_replicated_partitions import EPOCH, ME, OTHER, found, in_loop, lead
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


def delete_request(wire: Wire, offset: int, timeout_ms: int = 60_000) -> DeleteRecordsRequest:
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


def test_a_deletion_is_answered_when_the_replica_has_the_new_log_start(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    request = delete_request(wire, 4)
    eventually(lambda: begins(broker) == 4)
    assert follow(follower, 10, 0) == 4
    assert follow(follower, 10, 4) == 4
    result = answered(wire, request)
    assert (result.error_code, result.low_watermark) == (0, 4)


def test_a_deletion_to_the_end_stops_at_the_high_watermark_of_the_request(
    broker: Broker, wire: Wire, follower: Wire
) -> None:
    assert follower.produce("t", b"b", acks=1).error_code == 0
    request = delete_request(wire, -1)
    eventually(lambda: begins(broker) == 10)
    follow(follower, 11, 10)
    result = answered(wire, request)
    assert (result.error_code, result.low_watermark) == (0, 10)


def test_a_replica_that_does_not_follow_in_time_is_reported(broker: Broker, wire: Wire) -> None:
    result = answered(wire, delete_request(wire, 4, timeout_ms=1))
    assert (result.error_code, result.low_watermark, begins(broker)) == (ErrorCode.REQUEST_TIMED_OUT, 0, 4)


def test_records_above_the_high_watermark_are_not_deleted(broker: Broker, wire: Wire, follower: Wire) -> None:
    assert follower.produce("t", b"b", acks=1).error_code == 0
    assert answered(wire, delete_request(wire, 11)).error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert begins(broker) == 0


def test_a_former_leader_rejects_a_deletion(broker: Broker, wire: Wire) -> None:
    request = delete_request(wire, 4)
    eventually(lambda: begins(broker) == 4)

    def lose(node: object) -> None:
        partition = found(node)  # type: ignore[arg-type]
        leadership, partition.leadership, partition.leads = partition.leadership, None, False
        assert leadership is not None
        leadership.end()

    in_loop(broker, lose)
    assert answered(wire, request).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert answered(wire, delete_request(wire, 5)).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
