"""The client's view of the cluster, and when to refresh it, after Kafka's `Metadata`.

Time is an argument; `NetworkClient` sends the requests. Any thread may read, add a topic or wait for an update;
one lock guards the fields and is never held during I/O.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Mapping
from copy import copy
from typing import Any
from uuid import UUID

from msgspec.structs import replace

from ottla.client.metadata.metadata_snapshot import NO_ID, KnownTopic, MetadataSnapshot
from ottla.client.runtime.backoff import ExponentialBackoff
from ottla.errors import ErrorCode, name_of
from ottla.model import FOREVER, Node, PartitionInfo, TopicPartition
from ottla.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic

LOG = logging.getLogger(__name__)
PATIENT_ANSWERS = 4


class Metadata:
    """The last known cluster, and the topics to keep up to date."""

    def __init__(
        self,
        bootstrap: Iterable[Node],
        *,
        max_age_ms: float,
        backoff: ExponentialBackoff,
        allow_auto_topic_creation: bool = True,
        topic_idle_ms: float = FOREVER,
    ) -> None:
        self.cluster = MetadataSnapshot(nodes={node.node_id: node for node in bootstrap})
        self.bootstrap = tuple(bootstrap)
        self.version = 0
        """The number of received responses."""
        self.fatal: Exception | None = None
        """An error that a retry will not change; raised in waiting calls."""
        self._max_age = max_age_ms / 1000
        self._backoff = backoff
        self._topic_idle = topic_idle_ms / 1000
        self._allow_auto_topic_creation = allow_auto_topic_creation
        self._lock = threading.RLock()
        self._wanted: dict[str, float] = {}
        self._wanted_ids: frozenset[UUID] = frozenset()
        self._wants_all = False
        self._needed = False
        """True if all tracked topics have to be requested."""
        self._missing: set[str] = set()
        """Tracked topics that are unknown or have a partition without a leader: requested alone, as Kafka's producer does."""
        self._outdated = False
        """True if an update was requested after the request in flight was sent: its response may be too old."""
        self._attempts = 0
        """Consecutive requests without a response, or with a response that lacked a wanted topic or a leader."""
        self._repetitions = 0
        """Consecutive responses without news: more frequent requests do not help (KIP-580, KAFKA-14837)."""
        self._is_new_wanted = True
        """True if a wanted topic has not been requested yet: the pause after the last request does not apply."""
        self._last_answer = -FOREVER
        self._last_attempt = -FOREVER
        self._next_attempt = -FOREVER
        """The earliest time of the next request."""
        self._unanswered_since: float | None = None

    def track_topic(self, topic: str, now: float) -> None:
        """Keep the topic up to date from now on; an update is due if it is not known yet."""
        with self._lock:
            self._is_new_wanted |= topic not in self._wanted
            self._wanted[topic] = now
            if topic not in self.cluster.topics:
                self._missing.add(topic)

    def track_all_topics(self) -> None:
        """Keep all existing topics up to date, and discover new ones."""
        with self._lock:
            self._needed = self._needed or not self._wants_all
            self._is_new_wanted |= not self._wants_all
            self._wants_all = True

    def adopt_cluster(self, cluster: MetadataSnapshot, now: float) -> None:
        """Start with the view of another client of the same cluster, as if it had just been received."""
        with self._lock:
            self.cluster = cluster
            self.version += 1
            self._needed = False
            self._last_answer = now

    def track_only(self, topics: Iterable[str], now: float) -> None:
        """Keep exactly these topics up to date."""
        with self._lock:
            self._wants_all, self._wanted_ids = False, frozenset()
            wanted = dict.fromkeys(topics, now)
            if any(topic not in self.cluster.topics for topic in wanted):
                self._needed = True
            self._is_new_wanted |= not wanted.keys() <= self._wanted.keys()
            self._wanted = wanted
            self._missing &= wanted.keys()

    def track_ids(self, topic_ids: Iterable[UUID]) -> None:
        """Keep exactly the topics with these ids up to date; a request lists names or ids."""
        with self._lock:
            before, self._wanted_ids = self._wanted_ids, frozenset(topic_ids)
            self._is_new_wanted |= not self._wanted_ids <= before
            self._needed = self._needed or not self._wanted_ids <= self.cluster.names.keys()

    def touch_topic(self, topic: str, now: float) -> None:
        """Note the use of a topic; an unused one is dropped after a while."""
        self._wanted[topic] = now

    def request_update(self) -> int:
        """Refresh as soon as the backoff allows; return the version that the update will exceed."""
        with self._lock:
            self._needed = self._outdated = True
            return self.version

    def request_topic(self, topic: str) -> None:
        """Refresh a tracked topic as soon as the backoff allows: alone if it is unknown, with all others if it is known."""
        with self._lock:
            if topic in self.cluster.topics:
                self._needed = self._outdated = True
            else:
                self._missing.add(topic)

    def age(self, now: float) -> float:
        """Return the seconds since the last response; infinity before the first."""
        return now - self._last_answer

    def time_to_next_update(self, now: float) -> float:
        """Return the seconds until a request is due.

        Between two requests lie `retry.backoff.ms`, more if the last ones failed or said nothing new, whatever asks for
        them. Two requests do not wait: one for a topic that is wanted for the first time, and one that was asked for
        while a response was on its way that did bring news.
        """
        with self._lock:
            age = now - self._last_answer
            due = 0.0 if self._needed or self._missing else max(0.0, self._max_age - age)
            pause = 0.0 if self._is_new_wanted else max(0.0, self._next_attempt - now)
            return max(due, pause)

    def next_request(self, now: float) -> MetadataRequest:
        """Return the next request; it counts as sent at `now`."""
        with self._lock:
            if now - self._last_attempt > 2 * self._backoff.longest:  # for a while nothing was asked for
                self._repetitions = 0
            self._record_attempt(now)
            self._outdated = self._is_new_wanted = False
            self._unanswered_since = now if self._unanswered_since is None else self._unanswered_since
            self._forget_idle_topics(now)
            if self._wants_all:
                return MetadataRequest(topics=None, allow_auto_topic_creation=False)
            is_complete = self._needed or not self._missing or now - self._last_answer >= self._max_age
            topics = [MetadataRequestTopic(name=name) for name in self._wanted if is_complete or name in self._missing]
            if self._wanted_ids:
                topics = [MetadataRequestTopic(topic_id=each, name=None) for each in self._wanted_ids]
            return MetadataRequest(topics=topics, allow_auto_topic_creation=self._allow_auto_topic_creation)

    def update(self, answer: Any, now: float) -> None:
        """Apply a MetadataResponse. One that lacks tracked topics was a request for the missing ones: the others stay."""
        with self._lock:
            before, received = self.cluster, build_cluster(answer, self.cluster)
            is_partial = not self._wants_all and not self._wanted_ids and not received.describes(self._wanted)
            self.cluster = before.updated_by(received) if is_partial else received
            self.version += 1
            self.fatal = None
            self._missing = self._find_missing_topics()
            has_all_ids = self._wanted_ids <= self.cluster.names.keys()
            complete = has_all_ids and not self._missing
            self._needed = self._outdated or (is_partial and self._needed) or not has_all_ids
            self._attempts = 0 if complete else self._attempts + 1
            self._repetitions = self._repetitions + 1 if self.cluster == before else 0
            self._record_attempt(self._last_attempt)
            if self._outdated and complete and self._repetitions == 0:
                self._next_attempt = now
            if not is_partial:
                self._last_answer = now
            self._unanswered_since = None
            self._log_unknown_topics()

    def update_leaders(
        self, leaders: Mapping[TopicPartition, tuple[int, int]], nodes: Iterable[Node]
    ) -> set[TopicPartition]:
        """Apply the leaders (node, epoch) in a response of a broker that is not the leader (KIP-951); return the new ones."""
        if not leaders:
            return set()
        with self._lock:
            known = {**self.cluster.nodes, **{node.node_id: node for node in nodes}}
            news = {
                tp: (node, epoch)
                for tp, (node, epoch) in leaders.items()
                if node in known and epoch > self.cluster.leader_epoch(tp) >= 0
            }
            if news:
                self.cluster = self.cluster.with_leaders(news, known)
            return set(news)

    def record_failure(self, now: float) -> None:
        """Note that a request got no response."""
        with self._lock:
            self._needed = True
            self._attempts += 1
            self._record_attempt(now)

    def unanswered_seconds(self, now: float) -> float:
        """Return the seconds since the first request without a response."""
        with self._lock:
            return 0.0 if self._unanswered_since is None else now - self._unanswered_since

    def has_discovered_brokers(self) -> bool:
        """Return True if the known brokers come from a response, not from `bootstrap.servers`."""
        return any(node_id >= 0 for node_id in self.cluster.nodes)

    def rebootstrap(self) -> None:
        """Replace the brokers with the addresses of `bootstrap.servers` (KIP-899).

        Topics stay known until the next response, so that a producer waits for a leader, not for a topic.
        """
        with self._lock:
            self.cluster = replace(self.cluster, nodes={node.node_id: node for node in self.bootstrap})
            self._needed = True
            self._attempts = 0
            self._is_new_wanted = True
            self._unanswered_since = None

    def set_fatal_error(self, error: Exception) -> None:
        """Raise `error` in all waiting calls, because a retry is unlikely to help. A later response clears it."""
        with self._lock:
            self.fatal = error

    def is_newer_than(self, version: int) -> bool:
        """Return True if there is an update newer than `version`; raises a fatal error."""
        self.raise_fatal()
        return self.version > version

    def raise_fatal(self) -> None:
        """Raise a copy of the error that makes waiting useless, if there is one.

        The traceback of the original would keep the frames of its callers alive, and their clients.
        """
        if self.fatal is not None:
            raise copy(self.fatal)

    def _forget_idle_topics(self, now: float) -> None:
        if self._topic_idle < FOREVER:
            self._wanted = {t: used for t, used in self._wanted.items() if now - used < self._topic_idle}
            self._missing &= self._wanted.keys()

    def _record_attempt(self, now: float) -> None:
        """Plan the next request after one that was sent, or has failed, at `now`."""
        self._last_attempt = now
        self._next_attempt = now + self._backoff.span(max(1, self._attempts, self._repetitions))

    def _log_unknown_topics(self) -> None:
        """Log topics that stay unknown; the first responses after a topic's creation may not contain it."""
        if self._attempts == PATIENT_ANSWERS and self.cluster.errors:
            errors = ", ".join(f"{name!r}: {name_of(code)}" for name, code in self.cluster.errors.items())
            LOG.warning("topic metadata missing topics=%s; requested again", errors)

    def _find_missing_topics(self) -> set[str]:
        """Return the tracked topics that are unknown or have a partition without a leader."""
        return {name for name in self._wanted if not self.cluster.has_leaders(name)}


def build_cluster(answer: Any, before: MetadataSnapshot) -> MetadataSnapshot:
    """Return the cluster of a MetadataResponse, except for leaders older than the known ones (KIP-320)."""
    nodes = {b.node_id: Node(b.node_id, b.host, b.port, b.rack) for b in answer.brokers}
    topics: dict[str, KnownTopic] = {}
    errors: dict[str, int] = {}
    for topic in answer.topics:
        if topic.error_code == ErrorCode.NONE:
            topics[topic.name] = topic_info(topic, before)
        elif topic.name is not None:
            errors[topic.name] = topic.error_code
            keep_known_topic(topics, topic, before)
    return MetadataSnapshot(
        nodes=nodes or before.nodes,
        topics=topics,
        errors=errors,
        cluster_id=answer.cluster_id,
        controller_id=answer.controller_id,
        names={topic.topic_id: topic.name for topic in topics.values() if topic.topic_id != NO_ID},
    )


def keep_known_topic(topics: dict[str, KnownTopic], topic: Any, before: MetadataSnapshot) -> None:
    """Keep the known state of a topic that has no leader at the moment."""
    known = before.topics.get(topic.name)
    if known is not None and topic.error_code == ErrorCode.LEADER_NOT_AVAILABLE:
        topics[topic.name] = known


def topic_info(topic: Any, before: MetadataSnapshot) -> KnownTopic:
    """Return one topic of the response, its partitions in order."""
    known = before.topics.get(topic.name)
    same = known is not None and known.topic_id == topic.topic_id
    partitions = []
    for part in sorted(topic.partitions, key=lambda p: p.partition_index):
        received = PartitionInfo(
            topic.name,
            part.partition_index,
            part.leader_id if part.error_code != ErrorCode.LEADER_NOT_AVAILABLE else -1,
            part.leader_epoch,
            tuple(part.replica_nodes),
            tuple(part.isr_nodes),
        )
        old = before.partition(TopicPartition(topic.name, part.partition_index)) if same else None
        stale = old is not None and 0 <= received.leader_epoch < old.leader_epoch
        partitions.append(old if stale and old is not None else received)
    return KnownTopic(topic.name, topic.topic_id, topic.is_internal, tuple(partitions))
