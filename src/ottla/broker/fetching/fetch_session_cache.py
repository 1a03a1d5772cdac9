"""All fetch sessions of a broker, and which of them has to go when there is no room for another (KIP-227).

A session that was not used for two minutes goes first. Else one that is older than two minutes may have to make room
for one with more partitions, since that one gains more. Who gets no session fetches without.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.fetching.fetch_session import FetchSession

EVICTION_SECONDS = 120.0
"""Kafka's `min.incremental.fetch.session.eviction.ms`."""
NO_SESSION = 0


class FetchSessionCache:
    """Sessions by id, the one longest unused first."""

    def __init__(self, slots: int, draw_id: Callable[[], int]) -> None:
        """At most `slots` sessions; `draw_id` draws an id at random, above 0."""
        self._slots = slots
        self._draw_id = draw_id
        self._sessions: dict[int, FetchSession] = {}

    def __len__(self) -> int:
        return len(self._sessions)

    def get(self, session_id: int) -> FetchSession | None:
        """The session, None where there is none."""
        return self._sessions.get(session_id)

    def create(self, size: int, *, uses_ids: bool, privileged: bool, now: float) -> FetchSession | None:
        """An empty session that is to have `size` partitions; None where there is no room for it."""
        if len(self._sessions) >= self._slots and not self._make_room(size, privileged, now):
            return None
        session = FetchSession(self._new_id(), uses_ids=uses_ids, privileged=privileged, now=now)
        self._sessions[session.session_id] = session
        return session

    def touch(self, session: FetchSession, now: float) -> None:
        """Note that a session is in use."""
        session.last_used = now
        if self._sessions.pop(session.session_id, None) is not None:
            self._sessions[session.session_id] = session

    def remove(self, session_id: int) -> None:
        """End a session, if there is one."""
        session = self._sessions.pop(session_id, None)
        if session is not None:
            session.end()

    def check(self) -> None:
        assert len(self._sessions) <= self._slots
        used = [session.last_used for session in self._sessions.values()]
        assert used == sorted(used)
        for session in self._sessions.values():
            session.check()

    def _make_room(self, size: int, privileged: bool, now: float) -> bool:
        victim = self._victim(size, privileged, now)
        if victim is not None:
            self.remove(victim.session_id)
        return victim is not None

    def _victim(self, size: int, privileged: bool, now: float) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used > EVICTION_SECONDS:
            return oldest
        # A follower may also drive out consumers that are young, a consumer no follower at all that is.
        evictable = (
            session
            for session in self._sessions.values()
            if now - session.created > EVICTION_SECONDS or (privileged and not session.privileged)
        )
        least = min(evictable, key=worth, default=None)
        return least if least is not None and worth(least) < (privileged, size) else None

    def _new_id(self) -> int:
        while (drawn := self._draw_id()) in self._sessions:
            pass
        return drawn


def worth(session: FetchSession) -> tuple[bool, int]:
    """What a session gains: followers first, then whoever reads most partitions."""
    return session.privileged, len(session.partitions)
