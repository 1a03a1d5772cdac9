"""Events that a `Raft` replica takes in, and actions that it asks its driver to carry out.

The driver carries out the actions of one step in their order and finishes each before it starts the next: what has to be
persistent is on the disk before anything that depends on it is sent. A driver that cannot carry out an action stops the process;
the next start continues with what the disk holds.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.coordination.quorum.control_records import ControlRecord
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.state import ElectionState
from ottla.protocol.schema import Message

# Events


class Tick(NamedTuple):
    """Time has passed; `Raft.wake_at` is the next moment at which that matters."""


class RequestReceived(NamedTuple):
    """A request of another node or of a client. The response carries the same ticket."""

    ticket: int
    request: Message


class ResponseReceived(NamedTuple):
    """The response of node `by` to the request that was sent under `number`."""

    by: int
    number: int
    response: Message


class RequestFailed(NamedTuple):
    """No response to request `number` will come: the connection failed or was closed."""

    by: int
    number: int
    is_gone: bool = False
    """True if the connection was refused, so that the node's process has ended."""


class PeerConnected(NamedTuple):
    """A connection to a node was opened, and ApiVersions has shown what the node supports."""

    node: int
    can_be_controller: bool
    """True if the node could be the active controller, not only a leader of the log."""


class LogChanged(NamedTuple):
    """The log was appended to, truncated, flushed, or restarted at a snapshot."""

    shape: LogShape


class ShutDown(NamedTuple):
    """The process is about to stop. A leader resigns and names its preferred successors."""


Event = Tick | RequestReceived | ResponseReceived | RequestFailed | PeerConnected | LogChanged | ShutDown

# Actions


class PersistElectionState(NamedTuple):
    """Write `quorum-state` and flush it."""

    state: ElectionState


class AppendControlRecords(NamedTuple):
    """Append the leader's control records as one batch of `epoch`; report `LogChanged` afterwards, and again after the flush."""

    epoch: int
    records: tuple[ControlRecord, ...]


class AppendFetched(NamedTuple):
    """Append the leader's batches unchanged and flush; then report `LogChanged`. The next fetch confirms them to the leader."""

    records: Any
    leader_epoch: int


class TruncateLog(NamedTuple):
    """Remove everything from `offset` on, then report `LogChanged`."""

    offset: int


class WriteSnapshotChunk(NamedTuple):
    """Write a chunk of a fetched snapshot. After the last one the log restarts at the snapshot: report `LogChanged`."""

    snapshot: SnapshotId
    position: int
    data: Any
    last: bool


class SendRequest(NamedTuple):
    """Send a request to a node; report the response, or the failure, under `number`."""

    to: int
    number: int
    request: Message


class SendResponse(NamedTuple):
    ticket: int
    response: Message


class SendRecords(NamedTuple):
    """Fill in batches from `offset` on, committed or not, at least one and at most `max_bytes`; then send the response."""

    ticket: int
    response: Message
    offset: int
    max_bytes: int


class SendSnapshotChunk(NamedTuple):
    """Fill in a chunk of a snapshot, or SNAPSHOT_NOT_FOUND; then send the response."""

    ticket: int
    response: Message
    snapshot: SnapshotId
    position: int
    max_bytes: int


class AdvanceHighWatermark(NamedTuple):
    """Everything below `high_watermark` is committed: it may be applied to state and acknowledged."""

    high_watermark: int


class LeaderChanged(NamedTuple):
    """The known leader of `epoch`, or None. Unless it is this node, nothing may be appended here except fetched batches."""

    leader_id: int | None
    epoch: int


class ReportProblem(NamedTuple):
    """Log a warning once: an operator has to look at it."""

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
