"""A fetch session with one broker: after the first request only what changed is told, both ways (KIP-227).

Pure. The broker may have no room for a session, or lose it; then everything is told again.

A consumer of a thousand partitions would name all of them in each Fetch, and be told of each in the answer. A session
is what the broker remembers instead: the partitions, and for each what was asked last. Both sides count: a request
carries the session's id and an epoch one higher than the one before, and a broker that expected another number
refuses (INVALID_FETCH_SESSION_EPOCH), for then one side has missed something that the other takes for known. There is
no repair but to begin anew.

* epoch 0 asks for a session, and ends the one named beside it; the full list of partitions comes with it;
* epoch 1, 2, 3 … continue it: `send` has what is new or changed, `forget` what is not wanted any more;
* epoch -1 ends it, when the consumer is closed.

An answer of a session names only partitions with news. So one that is silent is not forgotten, and one that failed
must be asked for again in words: `Fetcher` leaves it out for its backoff, whereby it is forgotten, and then it is
new.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from ottla.client.metadata.cluster import NO_ID
from ottla.errors import ErrorCode
from ottla.model import TopicPartition
from ottla.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic, ForgottenTopic

NO_SESSION = 0
FINAL_EPOCH = -1
"""Ends the session that is named."""
INITIAL_EPOCH = 0
"""Asks for a new session, and ends the one that is named."""
LAST_EPOCH = 2**31 - 1


class PartitionData(NamedTuple):
    """How one partition is asked for."""

    topic_id: UUID
    """Zero where the broker has no ids."""
    offset: int
    leader_epoch: int
    max_bytes: int


class SessionFetch(NamedTuple):
    """What to say in the next request."""

    session_id: int
    epoch: int
    send: Mapping[TopicPartition, PartitionData]
    """The partitions that are new, or asked for differently; all of them where a session is to begin."""
    forget: Sequence[tuple[TopicPartition, UUID]]
    """The partitions to leave out from now on."""


class FetchSessionHandler:
    """What one broker knows of what we want from it."""

    def __init__(self) -> None:
        self._session_id = NO_SESSION
        self._epoch = INITIAL_EPOCH
        self._known: Mapping[TopicPartition, PartitionData] = {}

    @property
    def session_id(self) -> int:
        """As the broker named it; 0 for none."""
        return self._session_id

    def plan(self, wanted: Mapping[TopicPartition, PartitionData]) -> SessionFetch:
        """The next request, for exactly these partitions."""
        known, self._known = self._known, dict(wanted)
        if uses_ids(known) != uses_ids(wanted):
            self.lost()
        if self._epoch == INITIAL_EPOCH:
            return SessionFetch(self._session_id, INITIAL_EPOCH, wanted, ())
        send = {tp: want for tp, want in wanted.items() if known.get(tp) != want}
        # A topic that was made anew has another id: under the old one it is wanted no more.
        gone = [
            (tp, old.topic_id) for tp, old in known.items() if tp not in wanted or wanted[tp].topic_id != old.topic_id
        ]
        return SessionFetch(self._session_id, self._epoch, send, gone)

    def answered(self, session_id: int) -> None:
        """The broker took the request, and named the session; zero where there is none, or none any more."""
        if session_id == NO_SESSION:
            self._session_id, self._epoch = NO_SESSION, INITIAL_EPOCH
        else:
            self._session_id, self._epoch = session_id, 1 if self._epoch == LAST_EPOCH else self._epoch + 1

    def refused(self, code: int) -> None:
        """The broker answered with an error: begin anew, and end the session if it may still be there."""
        if code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND:
            self._session_id = NO_SESSION
        self.lost()

    def lost(self) -> None:
        """No answer came: nobody knows what the broker knows."""
        self._epoch = INITIAL_EPOCH


def farewell(session_id: int) -> FetchRequest:
    return FetchRequest(max_wait_ms=0, min_bytes=0, session_id=session_id, session_epoch=FINAL_EPOCH)


def uses_ids(wanted: Mapping[TopicPartition, PartitionData]) -> bool:
    """Whether all topics can be named by their ids; a session has either ids or names."""
    return all(want.topic_id != NO_ID for want in wanted.values())


def fetch_topics(send: Mapping[TopicPartition, PartitionData]) -> list[FetchTopic]:
    """The partitions grouped by topic, as a request has them."""
    topics: dict[tuple[str, UUID], list[FetchPartition]] = {}
    for tp, want in send.items():
        part = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=want.leader_epoch,
            fetch_offset=want.offset,
            partition_max_bytes=want.max_bytes,
        )
        topics.setdefault((tp.topic, want.topic_id), []).append(part)
    return [FetchTopic(topic=name, topic_id=topic_id, partitions=parts) for (name, topic_id), parts in topics.items()]


def forgotten_topics(forget: Sequence[tuple[TopicPartition, UUID]]) -> list[ForgottenTopic]:
    """As `fetch_topics`, of what is to be left out."""
    topics: dict[tuple[str, UUID], list[int]] = {}
    for tp, topic_id in forget:
        topics.setdefault((tp.topic, topic_id), []).append(tp.partition)
    return [
        ForgottenTopic(topic=name, topic_id=topic_id, partitions=parts) for (name, topic_id), parts in topics.items()
    ]


def add_session(request: FetchRequest, plan: SessionFetch) -> FetchRequest:
    """The request with what the session has to say."""
    request.session_id, request.session_epoch = plan.session_id, plan.epoch
    request.topics, request.forgotten_topics_data = fetch_topics(plan.send), forgotten_topics(plan.forget)
    return request
