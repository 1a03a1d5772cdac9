"""An observer of the metadata, told as what it is answered and what it asks next."""

from __future__ import annotations

from uuid import UUID

import pytest

from ottla.coordination.quorum.observer import (
    FETCH_VERSION,
    METADATA_TOPIC_ID,
    Address,
    Append,
    Cut,
    Fail,
    KeepPiece,
    LogEnd,
    Observer,
    Retry,
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
    told = PartitionSnapshot(0, error, fetch_snapshot.SnapshotId(40, 3), None, size, position, data)
    return FetchSnapshotResponse(topics=[TopicSnapshot("__cluster_metadata", [told])])


EMPTY = LogEnd(0, -1)


def asked(observer: Observer, end: LogEnd = EMPTY) -> FetchPartition:
    request, version = observer.request(end)
    assert isinstance(request, FetchRequest)
    assert version == FETCH_VERSION
    return request.topics[0].partitions[0]


def asked_piece(observer: Observer) -> RequestPartitionSnapshot:
    request, _ = observer.request(EMPTY)
    assert isinstance(request, FetchSnapshotRequest)
    return request.topics[0].partitions[0]


def test_who_knows_nothing_asks_in_the_epoch_that_is_before_all_others() -> None:
    first = asked(observer())
    assert (first.fetch_offset, first.last_fetched_epoch, first.current_leader_epoch) == (0, 0, 0)


def test_the_leader_is_told_how_much_is_known_to_be_committed() -> None:
    assert asked(observer(), LogEnd(90, 4, committed=70)).high_watermark == 70


def test_the_epoch_that_is_asked_in_is_never_behind_the_log() -> None:
    first = asked(observer(), LogEnd(90, 4))
    assert (first.fetch_offset, first.last_fetched_epoch, first.current_leader_epoch) == (90, 4, 4)


@pytest.mark.parametrize("code", [ErrorCode.FENCED_LEADER_EPOCH, ErrorCode.NOT_LEADER_OR_FOLLOWER])
def test_whoever_is_not_the_leader_says_who_is(code: int) -> None:
    known = observer()
    assert known.address == FIRST
    assert known.answered(answer(error_code=code, current_leader=LEADS)) == Retry()
    assert (known.address, asked(known).current_leader_epoch) == (LEADER, 5)


def test_the_others_are_asked_where_nobody_answers_and_where_nobody_leads() -> None:
    known = observer()
    assert known.lost().after_ms > 0
    assert known.address == SECOND
    nobody = fetch.LeaderIdAndEpoch(-1, 5)
    assert known.answered(answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=nobody)).after_ms > 0  # type: ignore[union-attr]
    assert known.address == FIRST


def test_a_leader_of_an_epoch_that_is_over_is_not_gone_back_to() -> None:
    known = observer()
    known.answered(answer(error_code=ErrorCode.FENCED_LEADER_EPOCH, current_leader=LEADS))
    old = fetch.LeaderIdAndEpoch(2, 4)
    known.answered(answer(error_code=ErrorCode.NOT_LEADER_OR_FOLLOWER, current_leader=old))
    assert (known.address, known.leader_epoch) == (LEADER, 5)


def test_batches_come_with_what_of_them_is_committed() -> None:
    known = observer()
    outcome = known.answered(answer(records=memoryview(b"batches"), high_watermark=8, current_leader=LEADS))
    assert isinstance(outcome, Append)
    assert (bytes(outcome.records), outcome.leader_epoch, outcome.high_watermark) == (b"batches", 5, 8)


def test_where_the_logs_part_the_copy_is_cut() -> None:
    parting = fetch.EpochEndOffset(2, 30)
    assert observer().answered(answer(diverging_epoch=parting, high_watermark=20)) == Cut(2, 30)


def test_a_snapshot_is_fetched_piece_by_piece() -> None:
    known = observer()
    assert known.answered(answer(snapshot_id=fetch.SnapshotId(40, 3))) == Retry()
    first = asked_piece(known)
    assert (first.snapshot_id.end_offset, first.snapshot_id.epoch, first.position) == (40, 3, 0)
    assert known.answered(piece(0, b"123456")) == KeepPiece(40, 3, 0, memoryview(b"123456"), last=False)
    assert asked_piece(known).position == 6
    assert known.answered(piece(6, b"7890")) == KeepPiece(40, 3, 6, memoryview(b"7890"), last=True)
    assert asked(known, LogEnd(40, 3)).fetch_offset == 40


def test_a_snapshot_that_was_replaced_meanwhile_is_given_up() -> None:
    known = observer()
    known.answered(answer(snapshot_id=fetch.SnapshotId(40, 3)))
    assert known.answered(piece(0, b"", error=ErrorCode.SNAPSHOT_NOT_FOUND)) == Retry()
    assert asked(known).fetch_offset == 0


@pytest.mark.parametrize("lie", [piece(4, b"123"), piece(0, b"")])
def test_a_piece_that_was_not_asked_for_is_not_kept(lie: FetchSnapshotResponse) -> None:
    known = observer()
    known.answered(answer(snapshot_id=fetch.SnapshotId(40, 3)))
    outcome = known.answered(lie)
    assert isinstance(outcome, Retry)
    assert outcome.after_ms > 0


def test_controllers_of_another_cluster_are_no_use() -> None:
    outcome = observer().answered(FetchResponse(error_code=ErrorCode.INCONSISTENT_CLUSTER_ID))
    assert isinstance(outcome, Fail)
    assert "another cluster than cluster" in outcome.sentence
