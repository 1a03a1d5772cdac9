"""What the quorum is told, and what it wants done.

Wishes are done one after the other, each before the next: what is to be persisted is on the disk before anything that follows is
sent. Whoever cannot do one ends, and begins again with what the disk has.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from ottla.coordination.quorum.control_records import ControlRecord
from ottla.coordination.quorum.log_shape import LogShape, SnapshotId
from ottla.coordination.quorum.state import ElectionState
from ottla.protocol.schema import Message

# told


class Passed(NamedTuple):
    """Time did; `Raft.wake_at` says when that matters."""


class Asked(NamedTuple):
    """Somebody asks, and waits for an answer under that ticket."""

    ticket: int
    request: Message


class Answered(NamedTuple):
    """A node has answered what was sent to it under that number."""

    by: int
    number: int
    response: Message


class Lost(NamedTuple):
    """No answer will come: there is no connection, or there is none any more."""

    by: int
    number: int
    is_gone: bool = False
    """Whether nobody listens at its address any more."""


class Met(NamedTuple):
    """A node has said what it can do, before it was asked anything else."""

    node: int
    decides: bool
    """Whether it could be the active controller, and go on with the metadata where it leads."""


class Logged(NamedTuple):
    """The log is another than before: appended to, cut, forced to the disk, or begun anew behind a snapshot."""

    shape: LogShape


class Left(NamedTuple):
    """The process is about to end: who leads gives that up, and tells whom it would have next."""


Event = Passed | Asked | Answered | Lost | Met | Logged | Left

# wanted


class Persist(NamedTuple):
    """Write it to `quorum-state`, and force it to the disk."""

    state: ElectionState


class AppendControl(NamedTuple):
    """The leader's own records, in one batch of that epoch; tell of the log afterwards, and again when it is on the disk."""

    epoch: int
    records: tuple[ControlRecord, ...]


class Append(NamedTuple):
    """What a leader sent, as it came; force it to the disk, then tell of the log: the next fetch says that it is there."""

    records: Any
    leader_epoch: int


class Truncate(NamedTuple):
    """Drop everything from that offset on, then tell of the log."""

    offset: int


class KeepPiece(NamedTuple):
    """Of a snapshot; with the last piece it stands for the log, of which is told then."""

    snapshot: SnapshotId
    position: int
    data: Any
    last: bool


class Send(NamedTuple):
    """Ask a node, and tell of the answer under that number."""

    to: int
    number: int
    request: Message


class Answer(NamedTuple):
    ticket: int
    response: Message


class AnswerRecords(NamedTuple):
    """Answer with batches from that offset on, committed or not; of bytes as many as that, a batch at least."""

    ticket: int
    response: Message
    offset: int
    max_bytes: int


class AnswerPiece(NamedTuple):
    """Answer with a piece of a snapshot, or with an error where there is no such one."""

    ticket: int
    response: Message
    snapshot: SnapshotId
    position: int
    max_bytes: int


class Commit(NamedTuple):
    """Everything below is committed: it may become state, and be answered."""

    high_watermark: int


class Lead(NamedTuple):
    """Who leads by now, or nobody; where that is another than this node, nobody may append here."""

    leader_id: int | None
    epoch: int


class Tell(NamedTuple):
    """Have a person know, once: somebody will have to look at it."""

    sentence: str


class Fail(NamedTuple):
    """End: what holds the quorum together does not hold."""

    sentence: str


Wish = (
    Persist
    | AppendControl
    | Append
    | Truncate
    | KeepPiece
    | Send
    | Answer
    | AnswerRecords
    | AnswerPiece
    | Commit
    | Lead
    | Tell
    | Fail
)
