"""The states of a record in a share group, and the acknowledgements of consumers (KIP-932, KIP-1222, KIP-1191).

                  acquire                      ACCEPT
    Available ──────────────► Acquired ──────────────────────► Acknowledged
        ▲                        │  │ │
        │  RELEASE, lock expiry, │  │ │ REJECT or the delivery limit, without a dead letter queue; a gap
        └──── closed session ────┘  │ └──────────────────────► Archived
                                    │                             ▲
                                    └──► Archiving ───────────────┘
                   REJECT or the delivery limit,    the record was
                   with a dead letter queue         copied to the queue

Acquired is never persisted: a new leader of the partition sees the record as it was before that delivery.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum


class RecordState(IntEnum):
    """The delivery state of a record, with Kafka's numbers."""

    AVAILABLE = 0
    ACQUIRED = 1
    ACKNOWLEDGED = 2
    ARCHIVING = 3
    ARCHIVED = 4

    @property
    def is_final(self) -> bool:
        """True if the record is never delivered again and needs no further work."""
        return self == RecordState.ACKNOWLEDGED or self == RecordState.ARCHIVED


NEXT_STATES: Mapping[RecordState, frozenset[RecordState]] = {
    RecordState.AVAILABLE: frozenset({RecordState.ACQUIRED, RecordState.ARCHIVED}),
    RecordState.ACQUIRED: frozenset(
        {RecordState.AVAILABLE, RecordState.ACKNOWLEDGED, RecordState.ARCHIVING, RecordState.ARCHIVED}
    ),
    RecordState.ACKNOWLEDGED: frozenset(),
    RecordState.ARCHIVING: frozenset({RecordState.ARCHIVED}),
    RecordState.ARCHIVED: frozenset(),
}
"""State → the states that may follow. An available record is archived if the log no longer has it."""


class AcknowledgeType(IntEnum):
    """The acknowledgement of one record, with the numbers of ShareAcknowledge."""

    GAP = 0
    """The log has no record at this offset."""
    ACCEPT = 1
    RELEASE = 2
    REJECT = 3
    RENEW = 4
    """The lock is extended, the state does not change (KIP-1222)."""


ACKNOWLEDGED_STATES: Mapping[AcknowledgeType, RecordState] = {
    AcknowledgeType.GAP: RecordState.ARCHIVED,
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}
"""Acknowledgement → state, before the delivery limit and the dead letter queue are applied."""
