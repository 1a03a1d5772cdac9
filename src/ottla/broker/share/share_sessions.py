"""The share sessions of a broker: the partitions that each member fetches, and the epoch of its next request (KIP-932).

    epoch 0 ──► opened, 1 ──► 2 ──► … ──► epoch -1: closed, and the acquired records are released

A session belongs to a connection and ends with it. As in Kafka a member that opens a session again keeps the records that
it has acquired.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple
from uuid import UUID

from ottla.errors import ErrorCode, KafkaError
from ottla.model import INT32_MAX

INITIAL_EPOCH, FINAL_EPOCH = 0, -1


class SharedPartition(NamedTuple):
    """A partition of a share session."""

    topic_id: UUID
    partition: int


class ShareSession:
    """The session of one member of a group with this broker."""

    __slots__ = ("connection", "epoch", "group_id", "member_id", "partitions")

    def __init__(
        self, group_id: str, member_id: str, connection: object, partitions: Iterable[SharedPartition]
    ) -> None:
        self.group_id = group_id
        self.member_id = member_id
        self.connection = connection
        self.epoch = INITIAL_EPOCH + 1
        """The epoch of the next request."""
        self.partitions = dict.fromkeys(partitions)
        """The partitions in the order in which they are read."""

    def update(self, added: Iterable[SharedPartition], forgotten: Iterable[SharedPartition]) -> None:
        self.partitions.update(dict.fromkeys(added))
        for each in forgotten:
            self.partitions.pop(each, None)

    def rotate(self) -> list[SharedPartition]:
        """Return the partitions in order, and read the first one last the next time, so that none is always first."""
        order = list(self.partitions)
        if len(order) > 1:
            del self.partitions[order[0]]
            self.partitions[order[0]] = None
        return order


class ShareSessions:
    """The open sessions by group and member."""

    def __init__(self, limit: Callable[[], int]) -> None:
        """`limit` returns the largest number of sessions (`group.share.max.share.sessions`)."""
        self._limit = limit
        self._sessions: dict[tuple[str, str], ShareSession] = {}
        self._by_connection: dict[object, dict[ShareSession, None]] = {}
        self._counts: dict[str, int] = {}
        """The number of sessions of each group."""

    def __len__(self) -> int:
        return len(self._sessions)

    def open(
        self, group_id: str, member_id: str, connection: object, partitions: Iterable[SharedPartition]
    ) -> ShareSession:
        """Open a session in place of the member's previous one. Raise KafkaError(SHARE_SESSION_LIMIT_REACHED)."""
        self.close(group_id, member_id)
        if len(self._sessions) >= self._limit():
            raise KafkaError(
                ErrorCode.SHARE_SESSION_LIMIT_REACHED,
                f"there are {len(self._sessions)} share sessions (group.share.max.share.sessions)",
            )
        session = ShareSession(group_id, member_id, connection, partitions)
        self._sessions[group_id, member_id] = session
        self._by_connection.setdefault(connection, {})[session] = None
        self._counts[group_id] = self._counts.get(group_id, 0) + 1
        return session

    def has_group(self, group_id: str) -> bool:
        """Return True if any member of a group has a session."""
        return group_id in self._counts

    def find(self, group_id: str, member_id: str) -> ShareSession:
        """Return a session. Raise KafkaError(SHARE_SESSION_NOT_FOUND)."""
        session = self._sessions.get((group_id, member_id))
        if session is None:
            raise KafkaError(ErrorCode.SHARE_SESSION_NOT_FOUND, f"member {member_id} has no share session here")
        return session

    def advance(self, group_id: str, member_id: str, epoch: int) -> ShareSession:
        """Return the session of a request and expect the next epoch. Raise KafkaError(INVALID_SHARE_SESSION_EPOCH)."""
        session = self.find(group_id, member_id)
        if session.epoch != epoch:
            raise KafkaError(
                ErrorCode.INVALID_SHARE_SESSION_EPOCH, f"share session epoch {epoch} is not {session.epoch}"
            )
        session.epoch = 1 if epoch == INT32_MAX else epoch + 1
        return session

    def close(self, group_id: str, member_id: str) -> None:
        session = self._sessions.pop((group_id, member_id), None)
        if session is None:
            return
        self._counts[group_id] -= 1
        if not self._counts[group_id]:
            del self._counts[group_id]
        sessions = self._by_connection[session.connection]
        del sessions[session]
        if not sessions:
            del self._by_connection[session.connection]

    def close_connection(self, connection: object) -> list[ShareSession]:
        """Close the sessions of a connection and return them."""
        sessions = list(self._by_connection.get(connection, ()))
        for each in sessions:
            self.close(each.group_id, each.member_id)
        return sessions
