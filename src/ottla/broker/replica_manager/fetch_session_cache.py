"""The fetch sessions of a broker, with eviction of one if there is no slot for another (KIP-227).

A session that was not used for two minutes is evicted first. Otherwise one that is older than two minutes is evicted
for a session with more partitions, which saves more. A client without a session sends full fetches.
"""

from __future__ import annotations

from collections.abc import Callable

from ottla.broker.replica_manager.fetch_session import FetchSession

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
        """Return the session, or None."""
        return self._sessions.get(session_id)

    def create(self, size: int, *, uses_ids: bool, privileged: bool, now: float) -> FetchSession | None:
        """Return an empty session for `size` partitions, None if there is no slot for it."""
        if len(self._sessions) >= self._slots and not self._evict(size, privileged, now):
            return None
        session = FetchSession(self._new_id(), uses_ids=uses_ids, privileged=privileged, now=now)
        self._sessions[session.session_id] = session
        return session

    def touch(self, session: FetchSession, now: float) -> None:
        """Record the use of a session."""
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

    def _evict(self, size: int, privileged: bool, now: float) -> bool:
        victim = self._choose_victim(size, privileged, now)
        if victim is not None:
            self.remove(victim.session_id)
        return victim is not None

    def _choose_victim(self, size: int, privileged: bool, now: float) -> FetchSession | None:
        oldest = next(iter(self._sessions.values()), None)
        if oldest is None or now - oldest.last_used > EVICTION_SECONDS:
            return oldest
        # A follower may also replace a consumer's young session. A consumer never replaces a follower's one in use.
        evictable = (
            session
            for session in self._sessions.values()
            if now - session.created > EVICTION_SECONDS or (privileged and not session.privileged)
        )
        least = min(evictable, key=eviction_priority, default=None)
        return least if least is not None and eviction_priority(least) < (privileged, size) else None

    def _new_id(self) -> int:
        while (drawn := self._draw_id()) in self._sessions:
            pass
        return drawn


def eviction_priority(session: FetchSession) -> tuple[bool, int]:
    """Return a session's priority: followers first, then sessions with more partitions."""
    return session.privileged, len(session.partitions)
