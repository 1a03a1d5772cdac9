"""The events that `Raft.step` accepts, and the actions that it returns.

The driver is the code that calls `Raft.step`: it owns the clock, the disk and the connections. It carries out the actions of a
step in their order, and finishes each before it starts the next. Therefore a vote is on the disk before the response that grants
it is sent, and a fetched record is on the disk before the fetch that confirms it. If an action fails, the driver stops the
process; the next start continues from the state on the disk.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.coordination.quorum.control_records import ControlRecord
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.state import ElectionState
from ottla.protocol.schema import Message

# Events


class Tick(NamedTuple):
    """Time has passed. `Raft.wake_at` is the next moment at which the driver has to send this event."""


class RequestReceived(NamedTuple):
    """A request of another node or of a client was received.

    `ticket` is the driver's number for the request; the action that responds to it has the same ticket.
    """

    ticket: int
    request: Message


class ResponseReceived(NamedTuple):
    """Node `by` has responded to the request that was sent with this `number` (`SendRequest`)."""

    by: int
    number: int
    response: Message


class RequestFailed(NamedTuple):
    """Request `number` to node `by` failed: the connection could not be opened, or was closed before the response."""

    by: int
    number: int
    has_ended: bool = False
    """True if the connection was refused, which shows that the process of the node has ended."""


class PeerConnected(NamedTuple):
    """A connection to a node was opened, and the node has sent its ApiVersions response."""

    node: int
    can_be_controller: bool
    """True if the node implements the requests of an active controller, according to its ApiVersions response.

    A node that does not can vote, copy the log and lead the quorum, but cannot decide changes of the metadata.
    """


class LogChanged(NamedTuple):
    """The log was appended to, truncated, flushed, or restarted at a snapshot."""

    shape: LogShape


class ShutDown(NamedTuple):
    """The process is about to stop. A leader resigns; any other replica starts no more elections."""


Event = Tick | RequestReceived | ResponseReceived | RequestFailed | PeerConnected | LogChanged | ShutDown

# Actions


class PersistElectionState(NamedTuple):
    """Write `quorum-state` and flush it."""

    state: ElectionState


class AppendControlRecords(NamedTuple):
    """Append control records of this leader as one batch of `epoch`. Report `LogChanged` after the append, and again after the flush."""

    epoch: int
    records: tuple[ControlRecord, ...]


class AppendFetched(NamedTuple):
    """Append batches that were fetched from the leader, unchanged, and flush the log; then report `LogChanged`.

    The next fetch confirms to the leader that the batches are on the disk.
    """

    records: Any
    leader_epoch: int


class TruncateLog(NamedTuple):
    """Remove everything from `offset` on, then report `LogChanged`."""

    offset: int


class WriteSnapshotChunk(NamedTuple):
    """Write a chunk of a fetched snapshot.

    The last chunk completes it. The log is then empty and starts at the end offset of the snapshot: report `LogChanged`.
    """

    snapshot: SnapshotId
    position: int
    data: Any
    last: bool


class SendRequest(NamedTuple):
    """Send a request to a node. Report `ResponseReceived` or `RequestFailed` with the same `number`."""

    to: int
    number: int
    request: Message


class SendResponse(NamedTuple):
    ticket: int
    response: Message


class SendRecords(NamedTuple):
    """Add the batches from `offset` on to the response and send it. Uncommitted batches are included.

    The batches have at most `max_bytes` in total; the first batch is added even if it is larger.
    """

    ticket: int
    response: Message
    offset: int
    max_bytes: int


class SendSnapshotChunk(NamedTuple):
    """Add a chunk of a snapshot to the response, or the error SNAPSHOT_NOT_FOUND if there is no such snapshot; then send it."""

    ticket: int
    response: Message
    snapshot: SnapshotId
    position: int
    max_bytes: int


class AdvanceHighWatermark(NamedTuple):
    """Apply every record below `high_watermark` and acknowledge it to clients: these records are committed."""

    high_watermark: int


class LeaderChanged(NamedTuple):
    """The leader of `epoch` is now `leader_id`; None if no leader is known.

    While another node leads, or none, this node may append only the batches of `AppendFetched`.
    """

    leader_id: int | None
    epoch: int


class ReportProblem(NamedTuple):
    """Log a warning about a problem that only an operator can solve. The driver logs a repeated warning once."""

    sentence: str


class Halt(NamedTuple):
    """Stop the process: an invariant of the quorum is violated."""

    sentence: str


Action = (
    PersistElectionState
    | AppendControlRecords
    | AppendFetched
    | TruncateLog
    | WriteSnapshotChunk
    | SendRequest
    | SendResponse
    | SendRecords
    | SendSnapshotChunk
    | AdvanceHighWatermark
    | LeaderChanged
    | ReportProblem
    | Halt
)
