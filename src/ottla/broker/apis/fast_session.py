"""The fetch session of a request on the fast path: the partitions to read, and those to include in the response (KIP-227).

The handler changes the session as soon as it reads a request (`FetchSession.update`, `advance`). Here this waits until the
first read of the logs has shown that the fast path supports the request. Until then nothing is changed, and the handler
can process the request from the start. After `advance` the handler continues with the session as for its own waiting
requests (`IncrementalFetch`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from ottla.broker.apis.fetch import IncrementalFetch, session_error
from ottla.broker.node import BrokerNode
from ottla.broker.replica_manager.fetch_session import FetchedPartition, FetchSession, Key, ReportedState
from ottla.protocol.messages.fetch import FetchPartition

Found = TypeVar("Found", bound=ReportedState)


class FastSession:
    """A session, and the changes to it by one request."""

    __slots__ = ("asked", "fetched", "named", "session")

    def __init__(self, session: FetchSession, named: dict[FetchedPartition, FetchPartition]) -> None:
        self.session = session
        self.asked = IncrementalFetch(session)
        self.named = named
        """Partitions that the request adds or changes, until `advance` applies them to the session."""
        self.fetched: list[FetchedPartition] = []
        """The session's partition for each partition that the fetch reads."""

    def list_partitions(self) -> list[tuple[str, UUID, FetchPartition]] | None:
        """Return the partitions to read.

        None if another request has advanced the session meanwhile, or a topic is unknown.
        """
        if not self.asked.is_current:
            return None
        named = self.named
        self.fetched = list(dict.fromkeys([*self.session.news, *named]))
        listed: list[tuple[str, UUID, FetchPartition]] = []
        for fetched in self.fetched:
            if fetched.name is None:
                return None
            listed.append((fetched.name, fetched.topic_id, named.get(fetched) or fetched.wanted))
        return listed

    def watches(self, found: Sequence[object]) -> bool:
        """Return True if the partitions that were found are the ones that the session watches for new records."""
        return all(fetched.watched is partition for fetched, partition in zip(self.fetched, found, strict=True))

    def advance(self, node: BrokerNode) -> None:
        """Apply the request's changes, and advance the session."""
        session = self.session
        for fetched, wanted in self.named.items():
            fetched.wanted = wanted
            session.news[fetched] = None
        self.named = {}
        node.fetch_sessions.touch(session, node.clock.monotonic())
        session.advance()
        self.asked = IncrementalFetch(session)

    def take_changed(
        self, found: Sequence[Found], uses_ids: bool
    ) -> tuple[bytes, list[tuple[int, int, int]], list[Found]]:
        """Return the changed partitions for the response, after the topics' names and their positions and counts."""
        topics: dict[bytes, list[Found]] = {}
        for fetched, each in zip(self.fetched, found, strict=True):
            if fetched.differs(each):
                topics.setdefault(title_of(fetched, uses_ids), []).append(each)
        self.session.handle_response(zip(self.fetched, found, strict=True))
        places: list[tuple[int, int, int]] = []
        at = 0
        for title, entries in topics.items():
            places.append((at, at + len(title), len(entries)))
            at += len(title)
        return b"".join(topics), places, [each for entries in topics.values() for each in entries]


def find_session(
    node: BrokerNode, session_id: int, epoch: int, named: Iterable[tuple[Key, FetchPartition]], uses_ids: bool
) -> FastSession | None:
    """Return the session of a consumer's request; None if the request is not valid for it or adds partitions."""
    session = node.fetch_sessions.get(session_id)
    if session is None or session.privileged or not session.partitions or session_error(session, epoch, uses_ids):
        return None
    known: dict[FetchedPartition, FetchPartition] = {}
    for key, wanted in named:
        fetched = session.partitions.get(key)
        if fetched is None:
            return None
        known[fetched] = wanted
    return FastSession(session, known)


def title_of(fetched: FetchedPartition, uses_ids: bool) -> bytes:
    """Return a topic as a response names it: by its id, or by the length of its name and the name."""
    if uses_ids:
        return fetched.topic_id.bytes
    name = (fetched.name or "").encode()
    size = len(name) + 1
    return bytes((size,)) + name if size < 0x80 else bytes((size & 0x7F | 0x80, size >> 7)) + name
