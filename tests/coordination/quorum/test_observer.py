"""An observer of the metadata, as responses and next requests."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.quorum.observer import (
    FETCH_VERSION,
    METADATA_TOPIC_ID,
    Address,
    Append,
    Observer,
    ReplicaEnd,
    Retry,
    StopObserver,
    TruncateToEnd,
    WriteChunk,
)
from ottla.errors import ErrorCode
from ottla.protocol.messages import fetch, fetch_snapshot
from ottla.protocol.messages.fetch import FetchableTopicResponse, FetchPartition, FetchRequest, FetchResponse
from ottla.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    PartitionSnapshot,
    RequestPartitionSnapshot,
    TopicSnapshot,
)

FIRST, SECOND, LEADER = Address("a", 1), Address("b", 2), Address("c", 3)
LEADS = fetch.LeaderIdAndEpoch(3, 5)
ENDPOINTS = [fetch.NodeEndpoint(2, "b", 2), fetch.NodeEndpoint(3, "c", 3)]


def observer() -> Observer:
    return Observer([FIRST, SECOND], 7, "cluster", UUID(int=50))


def answer(**said: object) -> FetchResponse:
    partition = fetch.PartitionData(**said)  # type: ignore[arg-type]
    topics = [FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[partition])]
    return FetchResponse(responses=topics, node_endpoints=ENDPOINTS)


def piece(position: int, data: bytes, *, size: int = 10, error: int = 0) -> FetchSnapshotResponse:
    reported = PartitionSnapshot(0, error, fetch_snapshot.SnapshotId(40, 3), None, size, position, data)
    return FetchSnapshotResponse(topics=[TopicSnapshot("__cluster_metadata", [reported])])


EMPTY = ReplicaEnd(0, -1)


def find_fetch(observer: Observer, end: ReplicaEnd = EMPTY) -> FetchPartition:
    request, version = observer.request(end)
    assert isinstance(request, FetchRequest)
    assert version == FETCH_VERSION
    return request.topics[0].partitions[0]


def find_chunk_request(observer: Observer) -> RequestPartitionSnapshot:
    request, _ = observer.request(EMPTY)
    assert isinstance(request, FetchSnapshotRequest)
    return request.topics[0].partitions[0]


def test_an_empty_observer_fetches_in_epoch_zero() -> None:
    first = find_fetch(observer())
    assert (first.fetch_offset, first.last_fetched_epoch, first.current_leader_epoch) == (0, 0, 0)


def test_fetches_contain_the_known_high_watermark() -> None:
    assert find_fetch(observer(), ReplicaEnd(90, 4, committed=70)).high_watermark == 70


def test_the_requested_epoch_is_never_older_than_the_log() -> None:
    first = find_fetch(observer(), ReplicaEnd(90, 4))
    assert (first.fetch_offset, first.last_fetched_epoch, first.current_leader_epoch) == (90, 4, 4)


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_a_node_that_does_not_lead_names_the_leader(code: int) -> None:
    known = observer()
    assert known.address == FIRST
    assert known.handle_response(answer(error_code=code, current_leader=LEADS)) == Retry()
    assert (known.address, find_fetch(known).current_leader_epoch) == (LEADER, 5)


def test_other_nodes_are_tried_if_one_does_not_respond_or_knows_no_leader() -> None:
    known = observer()
    assert known.handle_failure().after_ms > 0
    assert known.address == SECOND
    nobody = fetch.LeaderIdAndEpoch(-1, 5)
    outcome = known.handle_response(answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=nobody))
    assert isinstance(outcome, Retry)
    assert outcome.after_ms > 0
    assert known.address == FIRST


def test_the_leader_of_an_old_epoch_is_not_used_again() -> None:
    known = observer()
    known.handle_response(answer(error_code=ErrorCode.FENCED_LEADER_EPOCH, current_leader=LEADS))
    old = fetch.LeaderIdAndEpoch(2, 4)
    known.handle_response(answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=old))
    assert (known.address, known.leader_epoch) == (LEADER, 5)


def test_fetched_batches_include_the_high_watermark() -> None:
    known = observer()
    outcome = known.handle_response(answer(records=memoryview(b"batches"), high_watermark=8, current_leader=LEADS))
    assert isinstance(outcome, Append)
    assert (bytes(outcome.records), outcome.leader_epoch, outcome.high_watermark) == (b"batches", 5, 8)


def test_the_replica_is_truncated_at_the_divergence() -> None:
    parting = fetch.EpochEndOffset(2, 30)
    assert observer().handle_response(answer(diverging_epoch=parting, high_watermark=20)) == TruncateToEnd(2, 30)


def test_a_snapshot_is_fetched_in_chunks() -> None:
    known = observer()
    assert known.handle_response(answer(snapshot_id=fetch.SnapshotId(40, 3))) == Retry()
    first = find_chunk_request(known)
    assert (first.snapshot_id.end_offset, first.snapshot_id.epoch, first.position) == (40, 3, 0)
    assert known.handle_response(piece(0, b"123456")) == WriteChunk(40, 3, 0, memoryview(b"123456"), last=False)
    assert find_chunk_request(known).position == 6
    assert known.handle_response(piece(6, b"7890")) == WriteChunk(40, 3, 6, memoryview(b"7890"), last=True)
    assert find_fetch(known, ReplicaEnd(40, 3)).fetch_offset == 40


def test_a_replaced_snapshot_is_abandoned() -> None:
    known = observer()
    known.handle_response(answer(snapshot_id=fetch.SnapshotId(40, 3)))
    assert known.handle_response(piece(0, b"", error=ErrorCode.SNAPSHOT_NOT_FOUND)) == Retry()
    assert find_fetch(known).fetch_offset == 0


@pytest.mark.parametrize("lie", [piece(4, b"123"), piece(0, b"")])
def test_an_unrequested_chunk_is_ignored(lie: FetchSnapshotResponse) -> None:
    known = observer()
    known.handle_response(answer(snapshot_id=fetch.SnapshotId(40, 3)))
    outcome = known.handle_response(lie)
    assert isinstance(outcome, Retry)
    assert outcome.after_ms > 0


def test_controllers_of_another_cluster_are_not_used() -> None:
    outcome = observer().handle_response(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert isinstance(outcome, StopObserver)
    assert "another cluster than cluster" in outcome.sentence
