"""The session that a Fetch of the short way goes on with: what it has to look at, and what its client does not know yet (KIP-227).

What the handler does at once, `FetchSession.update` and `advance`, is put off here until a first look has found all as usual. Until then
nothing is changed, and a request that turns out to be more than usual is the handler's from its beginning; once `begin` was called, it
goes on as the handler's second half does (`IncrementalFetch`).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar
from uuid import UUID

from ottla.broker.fetching.fetch_session import FetchedPartition, FetchSession, Key, Told
from ottla.broker.handlers.fetch import IncrementalFetch, session_error
from ottla.broker.node import BrokerNode
from ottla.protocol.messages.fetch import FetchPartition

Found = TypeVar("Found", bound=Told)


class PlainSession:
    """A session, as one request goes on with it."""

    __slots__ = ("asked", "fetched", "named", "session")

    def __init__(self, session: FetchSession, named: dict[FetchedPartition, FetchPartition]) -> None:
        self.session = session
        self.asked = IncrementalFetch(session)
        self.named = named
        """What the request says anew of partitions, until that is the session's."""
        self.fetched: list[FetchedPartition] = []
        """What goes with each of a fetch's wants."""

    def listed(self) -> list[tuple[str, UUID, FetchPartition]] | None:
        """What a look has to look at; None where another request has gone on with the session meanwhile, or a topic is not known."""
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

    def hears(self, found: Sequence[object]) -> bool:
        """Whether the partitions that were found, for what is listed, are those that the session hears of."""
        return all(fetched.watched is partition for fetched, partition in zip(self.fetched, found, strict=True))

    def begin(self, node: BrokerNode) -> None:
        """The session is as far now as the request says."""
        session = self.session
        for fetched, wanted in self.named.items():
            fetched.wanted = wanted
            session.news[fetched] = None
        self.named = {}
        node.fetch_sessions.touch(session, node.clock.monotonic())
        session.advance()
        self.asked = IncrementalFetch(session)

    def tell(self, found: Sequence[Found], uses_ids: bool) -> tuple[bytes, list[tuple[int, int, int]], list[Found]]:
        """What its client does not know of what was found: the topics' names, where each of them is and how many are of it, and these."""
        topics: dict[bytes, list[Found]] = {}
        for fetched, each in zip(self.fetched, found, strict=True):
            if fetched.differs(each):
                topics.setdefault(title_of(fetched, uses_ids), []).append(each)
        self.session.answered(zip(self.fetched, found, strict=True))
        places: list[tuple[int, int, int]] = []
        at = 0
        for title, told in topics.items():
            places.append((at, at + len(title), len(told)))
            at += len(title)
        return b"".join(topics), places, [each for told in topics.values() for each in told]


def find_session(
    node: BrokerNode, session_id: int, epoch: int, named: Iterable[tuple[Key, FetchPartition]], uses_ids: bool
) -> PlainSession | None:
    """The session of a consumer that a request goes on with; None where it names what is not known there."""
    session = node.fetch_sessions.get(session_id)
    if session is None or session.privileged or not session.partitions or session_error(session, epoch, uses_ids):
        return None
    known: dict[FetchedPartition, FetchPartition] = {}
    for key, wanted in named:
        fetched = session.partitions.get(key)
        if fetched is None:
            return None
        known[fetched] = wanted
    return PlainSession(session, known)


def title_of(fetched: FetchedPartition, uses_ids: bool) -> bytes:
    """A topic as an answer calls it: by its id, or its name behind the name's length."""
    if uses_ids:
        return fetched.topic_id.bytes
    name = (fetched.name or "").encode()
    size = len(name) + 1
    return bytes((size,)) + name if size < 0x80 else bytes((size & 0x7F | 0x80, size >> 7)) + name
