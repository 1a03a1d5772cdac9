"""A fetch session with one broker: after the first request both sides send only changes (KIP-227).

Corresponds to Java's FetchSessionHandler. Pure. Without sessions, a consumer of a thousand partitions would name all of
them in each Fetch request, and the broker in each response. In a session the broker remembers the partitions and the
last offset requested for each.

Each request contains the session id and an epoch. The client increments the epoch after each successful response, and
the broker expects the incremented epoch. If a request or a response was lost, the epochs differ, and the broker returns
INVALID_FETCH_SESSION_EPOCH. The client then starts a new session; a session cannot be repaired.

* Epoch 0 requests a new session with the full list of partitions, and ends the session named in the request.
* Epochs 1, 2, 3 … continue a session: `changed` contains new and changed partitions, `forgotten` the removed ones.
* Epoch -1 ends a session when the consumer is closed.

The broker may have no memory for a session (it returns session id 0), or evict it. Then the next request is a full one.

A response within a session contains only partitions with records, an error or changed offsets.

Every change of the requested partitions is a change of the session. `Fetcher` does not request a partition while its
data is buffered or while it waits for a retry. The partition is then in `forgotten`, and later in `changed` again. This
also makes the broker send a failed partition again, which it would otherwise regard as unchanged.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from ottla.client.metadata.metadata_snapshot import NO_ID
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION = 0
FINAL_EPOCH = -1
"""Ends the session named in the request."""
INITIAL_EPOCH = 0
"""Requests a new session, and ends the session named in the request."""
LAST_EPOCH = 2**31 - 1


class PartitionFetchParameters(NamedTuple):
    """The request parameters of one partition."""

    topic_id: UUID
    """NO_ID (zero) if the broker does not support topic ids."""
    offset: int
    leader_epoch: int
    max_bytes: int


class SessionFetch(NamedTuple):
    """The session fields of the next request."""

    session_id: int
    epoch: int
    changed: Mapping[TopicPartition, PartitionFetchParameters]
    """Partitions that are new or have changed parameters; all of them if the session is new."""
    forgotten: Sequence[tuple[TopicPartition, UUID]]
    """Partitions to remove from the session."""


class FetchSessionHandler:
    """The session with one broker and the partitions that the broker remembers."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: Mapping[TopicPartition, PartitionFetchParameters] = {}

    @property
    def session_id(self) -> int:
        """The id that the broker assigned; 0 for none."""
        return self._session_id

    def plan(self, wanted: Mapping[TopicPartition, PartitionFetchParameters]) -> SessionFetch:
        """Return the session fields of the next request, which is to request exactly these partitions."""
        known, self._known = self._known, dict(wanted)
        if can_use_ids(known) != can_use_ids(wanted):
            self.handle_disconnect()
        if self._epoch == INITIAL_EPOCH:
            return SessionFetch(self._session_id, INITIAL_EPOCH, wanted, ())
        changed = {tp: params for tp, params in wanted.items() if known.get(tp) != params}
        # A recreated topic has another id: its partitions are forgotten under the old id.
        removed = [
            (tp, old.topic_id) for tp, old in known.items() if tp not in wanted or wanted[tp].topic_id != old.topic_id
        ]
        return SessionFetch(self._session_id, self._epoch, changed, removed)

    def handle_response(self, session_id: int) -> None:
        """Handle a successful response. Session id 0 means that the broker has not stored the session."""
        if session_id == NO_SESSION:
            self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._session_id, self._epoch = session_id, 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def handle_error(self, code: int) -> None:
        """Handle an error response.

        The next request starts a new session, and ends the old one unless the broker does not know it.
        """
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = NO_SESSION
        self.handle_disconnect()

    def handle_disconnect(self) -> None:
        """Handle a missing response.

        It is unknown whether the broker has received the request, so the next request starts a new session.
        """
        self._epoch = INITIAL_EPOCH


def close_session_request(session_id: int) -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=FINAL_EPOCH)


def can_use_ids(wanted: Mapping[TopicPartition, PartitionFetchParameters]) -> bool:
    """Return True if all topic ids are known. A session uses either ids or names for all topics."""
    return all(params.topic_id != NO_ID for params in wanted.values())


def fetch_topics(changed: Mapping[TopicPartition, PartitionFetchParameters]) -> list[FetchTopic]:
    """Group the partitions by topic, in the form of the request."""
    topics: dict[tuple[str, UUID], list[FetchPartition]] = {}
    for tp, params in changed.items():
        part = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=params.leader_epoch,
            fetch_offset=params.offset,
            partition_max_bytes=params.max_bytes,
        )
        topics.setdefault((tp.topic, params.topic_id), []).append(part)
    return [FetchTopic(topic=name, topic_id=topic_id, partitions=parts) for (name, topic_id), parts in topics.items()]


def forgotten_topics(forgotten: Sequence[tuple[TopicPartition, UUID]]) -> list[ForgottenTopic]:
    """Group the forgotten partitions by topic, in the form of the request."""
    topics: dict[tuple[str, UUID], list[int]] = {}
    for tp, topic_id in forgotten:
        topics.setdefault((tp.topic, topic_id), []).append(tp.partition)
    return [
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=parts) for (name, topic_id), parts in topics.items()
    ]


def add_session(request: FetchRequest, plan: SessionFetch) -> FetchRequest:
    """Add the session fields to a request."""
    request.session_id, request.session_epoch = plan.session_id, plan.epoch
    request.topics, request.forgotten_topics_data = fetch_topics(plan.changed), forgotten_topics(plan.forgotten)
    return request
