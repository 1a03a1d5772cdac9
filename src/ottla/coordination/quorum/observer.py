"""An observer of the quorum: a broker's copy of the metadata log, which is fetched from the controllers without a vote.

KIP-595, KIP-630; Kafka's KafkaRaftClient in the observer role. The observer is a pure state machine: the caller sends
`Observer.request` to `Observer.address` and passes the response to `handle_response`. A controller without a vote is no `Observer`
but a `Raft` replica, because it may become a voter.

    Fetch ──► batches: append them, apply the committed ones
          ──► another leader: fetch from it
          ──► the logs diverge: truncate, and fetch again
          ──► a snapshot id: fetch that snapshot in chunks, then fetch records from its end offset

**Finding the leader.** The first request is sent to a bootstrap controller. A controller that does not lead rejects it, and names
the epoch, the id and the address of the leader that it knows. The observer sends the next request to that address at once. If
the response names no leader, or the request fails, the observer tries the next bootstrap controller after `RETRY_MS`. A response
of an earlier epoch changes nothing. After a response of a later epoch without an address the leader is unknown again. A leader
that has resigned or is unreachable is replaced in the same way.

Only committed records are final. Therefore the caller does not truncate the copy below the high watermark and applies no record
above it.
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
"""The replica id of a client that reads the log and is no replica."""
FETCH_VERSION, SNAPSHOT_VERSION = 18, 1
"""The versions of Fetch and FetchSnapshot to send before it is known which versions the controller supports.

A Fetch of version 18 contains the observer's high watermark, so the leader responds as soon as its own is greater (KIP-1166).
"""
MAX_WAIT_MS = 500
MAX_BYTES = 8 << 20
SNAPSHOT_BYTES = 1 << 20
RETRY_MS = 50
"""The time before the next bootstrap controller is tried."""
NEWS_OF_LEADERS = frozenset(
    (
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.BROKER_NOT_AVAILABLE,
    )
)
"""The errors of a controller that does not lead in the epoch of the request. Such a response may name the leader."""
NO_SNAPSHOT = frozenset((ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE))
"""The errors after the leader has deleted the snapshot: the response to the next fetch names a newer one."""


class Address(NamedTuple):
    host: str
    port: int

    def __str__(self) -> str:
        return f"{self.host}:{self.port}"


class ReplicaEnd(NamedTuple):
    """The end offset of the copy, the epoch of its last batch, and the greatest high watermark received so far."""

    offset: int
    epoch: int
    committed: int = 0


class Append(NamedTuple):
    """Append the batches, possibly none, and apply the records below the high watermark."""

    records: memoryview
    leader_epoch: int
    high_watermark: int


class TruncateToEnd(NamedTuple):
    """Truncate the copy, because it diverges from the leader's log, in which `epoch` ends at `end_offset`."""

    epoch: int
    end_offset: int


class WriteChunk(NamedTuple):
    """Write a chunk of a snapshot; the last chunk completes it."""

    end_offset: int
    epoch: int
    position: int
    data: memoryview
    last: bool


class Retry(NamedTuple):
    """Send the next request after `after_ms`; there is nothing to write."""

    after_ms: int = 0


class StopObserver(NamedTuple):
    """The observer cannot continue; a retry would not help."""

    sentence: str


Outcome = Append | TruncateToEnd | WriteChunk | Retry | StopObserver


class Snapshot(NamedTuple):
    """The snapshot that is being fetched, and the position of the next chunk."""

    end_offset: int
    epoch: int
    position: int = 0


class Observer:
    """The state machine of an observer: the known leader and its epoch, and the snapshot that is being fetched."""

    def __init__(self, controllers: Sequence[Address], node_id: int, cluster_id: str, directory_id: UUID) -> None:
        """Start without a leader. `controllers` are the bootstrap controllers of the settings. One that is reachable is enough, if it knows the leader."""
        self.bootstrap = controllers
        """The addresses to use while no leader is known."""
        self._tried = 0
        self._node_id = node_id
        self.cluster_id = cluster_id
        self._directory_id = directory_id
        self.leader: Address | None = None
        """The address of the quorum's leader; None if it is unknown."""
        self.leader_epoch = 0
        self._snapshot: Snapshot | None = None

    @property
    def address(self) -> Address:
        """The address for the next request: the leader's, or that of a controller that may know the leader."""
        return self.leader or self.bootstrap[self._tried % len(self.bootstrap)]

    def request(self, end: ReplicaEnd) -> tuple[Message, int]:
        """Return the next request and its version, for a copy with this end."""
        # A controller rejects a fetch as invalid if its epoch is less than that of the last fetched batch.
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

    def handle_failure(self) -> Retry:
        """Handle a failed request: forget the leader, and try the next bootstrap controller after a pause."""
        self.leader = None
        self._tried += 1
        return Retry(RETRY_MS)

    def handle_response(self, response: Message) -> Outcome:
        """Return what the caller has to do after a response. The leader that the response names is used from now on."""
        if isinstance(response, FetchSnapshotResponse):
            return self._handle_snapshot(response)
        assert isinstance(response, FetchResponse)
        if response.error_code or not response.responses:
            return self._refused(response.error_code)
        partition = response.responses[0].partitions[0]
        self._learn(partition.current_leader, response.node_endpoints)
        if partition.error_code:
            return self._refused(partition.error_code)
        if partition.diverging_epoch is not None:
            return TruncateToEnd(partition.diverging_epoch.epoch, partition.diverging_epoch.end_offset)
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

    def _handle_snapshot(self, response: FetchSnapshotResponse) -> Outcome:
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
        return WriteChunk(wanted.end_offset, wanted.epoch, wanted.position, data, last)

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

    def _refused(self, code: int) -> Retry | StopObserver:
        if code == ErrorCode.INCONSISTENT_CLUSTER_ID:
            return StopObserver(
                f"the controller at {self.address} belongs to another cluster than {self.cluster_id}: "
                "look at controller.quorum.bootstrap.servers, or format the directory for that cluster"
            )
        if code in NEWS_OF_LEADERS and self.leader is not None:
            return Retry()
        return self.handle_failure()
