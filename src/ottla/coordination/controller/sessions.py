"""When each broker was heard last, and how far it knew the metadata. It is in no log: a new controller gives each a fresh session.

Decisions are made of it, so it changes as state does: by what is replayed (`BrokerHeard`, `SessionEnded`), which is never appended.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ottla.coordination.cluster.registration import Registration

NOT_HANDING_OVER = -1
UNHEARD = -1
"""How far a broker knows the metadata that has not said it."""


class BrokerHeard(Struct, frozen=True):
    """A broker is there. Dies with the process."""

    broker_id: int
    broker_epoch: int
    at: float
    metadata_offset: int
    handover_offset: int = NOT_HANDING_OVER
    """The end of the records that took its partitions from it, once it wants to go."""


class SessionEnded(Struct, frozen=True):
    """Nobody waits for a broker any more. Dies with the process."""

    broker_id: int


class Session(NamedTuple):
    """One incarnation of a broker, as it was heard last."""

    epoch: int
    heard_at: float
    metadata_offset: int = UNHEARD
    handover_offset: int = NOT_HANDING_OVER

    @property
    def handing_over(self) -> bool:
        return self.handover_offset != NOT_HANDING_OVER


class Sessions:
    def __init__(self, timeout: float) -> None:
        self._timeout = timeout
        self._by_broker: dict[int, Session] = {}

    def replay(self, record: BrokerHeard | SessionEnded) -> None:
        if isinstance(record, SessionEnded):
            self._by_broker.pop(record.broker_id, None)
        else:
            self._by_broker[record.broker_id] = Session(
                record.broker_epoch, record.at, record.metadata_offset, record.handover_offset
            )

    def of(self, broker: Registration) -> Session | None:
        """That of this incarnation, not of an earlier one."""
        session = self._by_broker.get(broker.broker_id)
        return session if session is not None and session.epoch == broker.epoch else None

    def valid(self, broker: Registration, now: float) -> bool:
        """Whether it was heard lately."""
        session = self.of(broker)
        return session is not None and now < session.heard_at + self._timeout

    def is_given(self, broker: Registration) -> bool:
        """Whether it has a session, and was not heard since."""
        session = self.of(broker)
        return session is not None and session.metadata_offset == UNHEARD

    def expired(self, now: float) -> list[int]:
        """Who was silent for too long, the longest first."""
        silent = ((session.heard_at, broker) for broker, session in self._by_broker.items())
        return [broker for heard_at, broker in sorted(silent) if now >= heard_at + self._timeout]

    def deadline(self, now: float) -> float | None:
        """When the next session ends that has not ended yet."""
        ends = [session.heard_at + self._timeout for session in self._by_broker.values()]
        return min((end for end in ends if end > now), default=None)
