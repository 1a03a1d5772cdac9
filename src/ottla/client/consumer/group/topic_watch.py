"""Watch the subscribed topics, and request a rebalance when they or their partition counts change.

No I/O of its own: it registers topics with the metadata, and compares when new metadata has arrived.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ottla.client.consumer.group.leader import count_partitions
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metadata.metadata import Metadata
from ottla.client.metadata.metadata_snapshot import REFUSED_TOPIC, MetadataSnapshot
from ottla.errors import error_for, topic_asked


class TopicWatch:
    """The topics and partition counts at the last rebalance, and the current ones."""

    def __init__(
        self,
        subscriptions: SubscriptionState,
        metadata: Metadata,
        request_rejoin: Callable[..., None],
        *,
        exclude_internal: bool,
    ) -> None:
        self._subscriptions = subscriptions
        self._metadata = metadata
        self._request_rejoin = request_rejoin
        self._exclude_internal = exclude_internal
        self._joined_topics: frozenset[str] | None = None
        self._counts: Mapping[str, int] | None = None
        self._seen_version = -1
        self._pattern_version = -1

    def reset(self) -> None:
        """Forget the last rebalance: the member leaves."""
        self._joined_topics = self._counts = None

    def record_join(self) -> None:
        """Record the topics with which the member joins."""
        self._joined_topics, self._counts = self._subscriptions.topics, None

    def record_assignment(self, counts: Mapping[str, int], now: float) -> None:
        """Record the partition counts of the leader's assignment, to detect their growth."""
        self._counts = counts
        self._seen_version = -1  # topics may have grown since the leader counted
        self._metadata.track_only(self._wanted_topics(), now)
        if self._subscriptions.pattern is not None:
            self._metadata.track_all_topics()

    def record_subscription_change(self, now: float) -> None:
        """Record a changed subscription."""
        if self._subscriptions.broker_pattern is not None:
            return  # only metadata of assigned topics is needed, and the assignment has not changed yet
        version = self._metadata.version
        if self._subscriptions.pattern is not None:
            self._metadata.track_all_topics()
            if self._metadata.time_to_next_update(now) <= 0 or not version:
                self._pattern_version = version
        else:
            self._metadata.track_only(self._wanted_topics(), now)
        self._seen_version = -1

    def is_awaiting_pattern(self) -> bool:
        """Return True if the metadata for the pattern has not arrived yet."""
        return self._subscriptions.pattern is not None and self._metadata.version <= self._pattern_version

    def is_subscribed(self, topic: str) -> bool:
        """Return True if partitions of this topic may be assigned."""
        if self._subscriptions.broker_pattern is not None:
            return True
        pattern: re.Pattern[str] | None = self._subscriptions.pattern
        if pattern is not None:  # the leader may know a new topic first
            return pattern.fullmatch(topic) is not None
        return topic in self._subscriptions.topics

    def check_topics(self) -> None:
        """Compare new metadata with the last rebalance, and request another one if needed. Raises for unusable topics."""
        metadata = self._metadata
        if metadata.version == self._seen_version or not metadata.version:
            return
        self._seen_version = metadata.version
        cluster = metadata.cluster
        for topic in self._subscriptions.topics:
            if (code := cluster.errors.get(topic, 0)) in REFUSED_TOPIC:
                raise error_for(code, f"{topic_asked(code, topic)}, which this consumer subscribes to")
        self._subscriptions.match_topics(cluster, exclude_internal=self._exclude_internal)
        self._compare_topics()
        self._compare_counts(cluster)

    def _compare_topics(self) -> None:
        before, topics = self._joined_topics, self._subscriptions.topics
        if before is not None and before != topics:
            self._joined_topics = topics
            self._request_rejoin(
                f"the subscription has changed from {sorted(before)} to {sorted(topics)} since the rebalance started",
                resubscribed=True,
            )

    def _compare_counts(self, cluster: MetadataSnapshot) -> None:
        before = self._counts
        if before is None:
            return
        complete = self._subscriptions.pattern is not None
        counts = count_partitions(cluster, self._subscriptions.topics, before, complete=complete)
        if counts != before:
            self._counts = None
            self._request_rejoin(
                f"partition counts have changed from {dict(before)} to {counts} since the rebalance started"
            )

    def _wanted_topics(self) -> set[str]:
        """Return the subscribed topics, and for a leader those of the other members, to detect their growth."""
        return {*self._subscriptions.topics, *(self._counts or ())}
