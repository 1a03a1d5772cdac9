"""The broker sessions: the time of the last heartbeat of each broker, and its metadata offset.

Sessions are not in the log: a heartbeat must not cost an append. A new active controller gives each unfenced broker a
fresh session. Decisions depend on them, so they change as the rest of the state does, by replaying `BrokerHeartbeatReceived` and
`SessionEnded`. These two are never appended.
"""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from ottla.coordination.cluster.registration import BrokerRegistration

NO_HANDOVER = -1
NO_HEARTBEAT = -1
"""The metadata offset of a broker that has not sent a heartbeat to this active controller."""


class BrokerHeartbeatReceived(Struct, frozen=True):
    """A heartbeat of a broker; in memory only."""

    broker_id: int
    broker_epoch: int
    received_at: float
    metadata_offset: int
    handover_offset: int = NO_HANDOVER
    """In a controlled shutdown, the offset of the last record that moved leaders away from the broker."""


class SessionEnded(Struct, frozen=True):
    """The session of a broker has expired or was ended; in memory only."""

    broker_id: int


class Session(NamedTuple):
    """The session of one incarnation of a broker."""

    epoch: int
    heartbeat_at: float
    metadata_offset: int = NO_HEARTBEAT
    handover_offset: int = NO_HANDOVER

    @property
    def is_handing_over(self) -> bool:
        """True while the broker is in a controlled shutdown."""
        return self.handover_offset != NO_HANDOVER


class Sessions:
    """The sessions of all brokers."""

    def __init__(self, timeout: float, own_broker: int | None = None) -> None:
        """`own_broker` has no session, because it stops together with the controller.

        So it neither expires nor blocks the registration of its next incarnation.
        """
        self._timeout = timeout
        self._own_broker = own_broker
        self._by_broker: dict[int, Session] = {}

    def replay(self, record: BrokerHeartbeatReceived | SessionEnded) -> None:
        if record.broker_id == self._own_broker:
            return
        if isinstance(record, SessionEnded):
            self._by_broker.pop(record.broker_id, None)
        else:
            self._by_broker[record.broker_id] = Session(
                record.broker_epoch, record.received_at, record.metadata_offset, record.handover_offset
            )

    def find_session(self, broker: BrokerRegistration) -> Session | None:
        """Return the session of this incarnation; None if there is none, or only one of another incarnation."""
        session = self._by_broker.get(broker.broker_id)
        return session if session is not None and session.epoch == broker.epoch else None

    def is_valid(self, broker: BrokerRegistration, now: float) -> bool:
        """Return True if the session has not expired."""
        session = self.find_session(broker)
        return session is not None and now < session.heartbeat_at + self._timeout

    def lacks_heartbeat(self, broker: BrokerRegistration) -> bool:
        """Return True if the active controller gave the broker its session, and no heartbeat has arrived since."""
        session = self.find_session(broker)
        return session is not None and session.metadata_offset == NO_HEARTBEAT

    def list_expired(self, now: float) -> list[int]:
        """Return the brokers with expired sessions, the longest expired first."""
        silent = ((session.heartbeat_at, broker) for broker, session in self._by_broker.items())
        return [broker for last_heartbeat, broker in sorted(silent) if now >= last_heartbeat + self._timeout]

    def find_next_expiry(self, now: float) -> float | None:
        """Return the time of the next expiry after `now`; None if there is none."""
        ends = [session.heartbeat_at + self._timeout for session in self._by_broker.values()]
        return min((end for end in ends if end > now), default=None)
