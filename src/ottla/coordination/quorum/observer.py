"""Copies the log of the metadata from the controllers, as one that has no vote (KIP-595, KIP-630). Pure.

    Fetch ──► batches: append, and act on what is committed
          ──► another leader: ask there
          ──► where the logs part: cut, and ask again
          ──► a snapshot: fetch that piece by piece, and go on at its end

Any controller may be asked first: who is not the leader, or hears of an epoch that is over, says who leads and where. An
observer never goes back behind the high watermark, and acts on nothing above it: only that can never be taken back.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple
from uuid import UUID

from ottla.errors import ErrorCode
from ottla.protocol.messages import fetch, fetch_snapshot
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, ReplicaState
from ottla.protocol.messages.fetch_snapshot import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    RequestPartitionSnapshot,
    RequestTopicSnapshot,
)
from ottla.protocol.schema import Message

METADATA_TOPIC, METADATA_TOPIC_ID = "__cluster_metadata", UUID(int=1)
NOBODY = -1
"""The number of one that reads, and is no replica."""
FETCH_VERSION, SNAPSHOT_VERSION = 18, 1
"""What is asked of a controller that knows no newer one; in Fetch 18 (KIP-1166) it is told how much is known to be committed, and says at once that it is more."""
MAX_WAIT_MS = 500
MAX_BYTES = 8 << 20
SNAPSHOT_BYTES = 1 << 20
RETRY_MS = 50
"""Before the next controller is tried."""
NEWS_OF_LEADERS = frozenset(
    (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
    )
)
"""Errors that say, or may say, who leads."""
NO_SNAPSHOT = frozenset((ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE))
"""It was replaced meanwhile: the next fetch tells of another."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class LogEnd(NamedTuple):
    """Where the copy ends, the epoch of its last batch, and how much of it is known to be committed."""

    offset: int
    epoch: int
    committed: int = 0


class Append(NamedTuple):
    """Batches that come next, perhaps none, and what of the log is committed."""

    records: memoryview
    leader_epoch: int
    high_watermark: int


class Cut(NamedTuple):
    """The leader's log has this end in that epoch, or has no such epoch: drop what goes beyond."""

    epoch: int
    end_offset: int


class KeepPiece(NamedTuple):
    """Of a snapshot; the last piece makes it whole."""

    end_offset: int
    epoch: int
    position: int
    data: memoryview
    last: bool


class Retry(NamedTuple):
    """Ask again, in a moment where that is said."""

    after_ms: int = 0


class Fail(NamedTuple):
    """It is no use to ask again."""

    sentence: str


Outcome = Append | Cut | KeepPiece | Retry | Fail


class Snapshot(NamedTuple):
    """One that is being fetched, and how far it is."""

    end_offset: int
    epoch: int
    position: int = 0


class Observer:
    """What is known of the quorum, and what is to be asked next."""

    def __init__(self, controllers: Sequence[Address], node_id: int, cluster_id: str, directory_id: UUID) -> None:
        """`controllers` are those that the settings name; any of them will do."""
        self.bootstrap = controllers
        """Whom to ask while nobody is known to lead."""
        self._tried = 0
        self._node_id = node_id
        self.cluster_id = cluster_id
        self._directory_id = directory_id
        self.leader: Address | None = None
        """Where the active controller is; None while that is not known."""
        self.leader_epoch = 0
        self._snapshot: Snapshot | None = None

    @property
    def address(self) -> Address:
        """The leader, or who may know of it."""
        return self.leader or self.bootstrap[self._tried % len(self.bootstrap)]

    def request(self, end: LogEnd) -> tuple[Message, int]:
        """What to ask, and in which version, where the copy ends there."""
        # Before there is a leader: the epoch must be none that the log is ahead of, or the fetch makes no sense.
        self.leader_epoch = max(self.leader_epoch, end.epoch)
        if self._snapshot is not None:
            return self._snapshot_request(self._snapshot), SNAPSHOT_VERSION
        partition = FetchPartition(
            current_leader_epoch=self.leader_epoch,
            fetch_offset=end.offset,
            last_fetched_epoch=max(end.epoch, 0),
            log_start_offset=0,
            replica_directory_id=self._directory_id,
            high_watermark=end.committed,
        )
        return (
            FetchRequest(
                cluster_id=self.cluster_id,
                replica_state=ReplicaState(self._node_id, -1),
                max_wait_ms=MAX_WAIT_MS,
                max_bytes=MAX_BYTES,
                topics=[FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[partition])],
            ),
            FETCH_VERSION,
        )

    def lost(self) -> Retry:
        """Nobody answered: whoever leads by now, the others may know."""
        self.leader = None
        self._tried += 1
        return Retry(RETRY_MS)

    def answered(self, response: Message) -> Outcome:
        """What follows from an answer."""
        if isinstance(response, FetchSnapshotResponse):
            return self._snapshot_came(response)
        assert isinstance(response, FetchResponse)
        if response.error_code or not response.responses:
            return self._refused(response.error_code)
        partition = response.responses[0].partitions[0]
        self._learn(partition.current_leader, response.node_endpoints)
        if partition.error_code:
            return self._refused(partition.error_code)
        if partition.diverging_epoch is not None:
            return Cut(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
        if partition.snapshot_id is not None and partition.snapshot_id.end_offset >= 0:
            self._snapshot = Snapshot(partition.snapshot_id.end_offset, partition.snapshot_id.epoch)
            return Retry()
        return Append(memoryview(partition.records or b""), self.leader_epoch, partition.high_watermark)

    def _snapshot_request(self, wanted: Snapshot) -> FetchSnapshotRequest:
        partition = RequestPartitionSnapshot(
            current_leader_epoch=self.leader_epoch,
            snapshot_id=fetch_snapshot.SnapshotId(wanted.end_offset, wanted.epoch),
            position=wanted.position,
            replica_directory_id=self._directory_id,
        )
        return FetchSnapshotRequest(
            self.cluster_id, self._node_id, SNAPSHOT_BYTES, [RequestTopicSnapshot(METADATA_TOPIC, [partition])]
        )

    def _snapshot_came(self, response: FetchSnapshotResponse) -> Outcome:
        wanted = self._snapshot
        assert wanted is not None
        if response.error_code or not response.topics:
            self._snapshot = None
            return self._refused(response.error_code)
        piece = response.topics[0].partitions[0]
        self._learn(piece.current_leader, response.node_endpoints)
        if piece.error_code:
            self._snapshot = None
            return Retry() if piece.error_code in NO_SNAPSHOT else self._refused(piece.error_code)
        data = memoryview(piece.unaligned_records or b"")
        position = wanted.position + len(data)
        last = position >= piece.size
        if piece.position != wanted.position or not (data or last):
            self._snapshot = None
            return Retry(RETRY_MS)
        self._snapshot = None if last else wanted._replace(position=position)
        return KeepPiece(wanted.end_offset, wanted.epoch, wanted.position, data, last)

    def _learn(
        self,
        leader: fetch.LeaderIdAndEpoch | fetch_snapshot.LeaderIdAndEpoch | None,
        endpoints: Sequence[fetch.NodeEndpoint | fetch_snapshot.NodeEndpoint],
    ) -> None:
        if leader is None or leader.leader_epoch < self.leader_epoch:
            return
        if leader.leader_epoch > self.leader_epoch:
            self.leader = None
        self.leader_epoch = leader.leader_epoch
        for each in endpoints:
            if each.node_id == leader.leader_id:
                self.leader = Address(each.host, each.port)

    def _refused(self, code: int) -> Retry | Fail:
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return Fail(
                f"the controller at {self.address} belongs to another cluster than {self.cluster_id}: "
                "look at controller.quorum.bootstrap.servers, or format the directory for that cluster"
            )
        if code in NEWS_OF_LEADERS and self.leader is not None:
            return Retry()
        return self.lost()
