"""What becomes of the topics a member subscribes to: the group shares out anew when there is something else to share.

No I/O of its own: it says which topics it wants to hear of, and looks at the metadata when there is new.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from ottla.client.consumer.group.leader import counted
from ottla.client.consumer.subscription_state import SubscriptionState
from ottla.client.metadata.cluster import REFUSED_TOPIC, Cluster
from ottla.client.metadata.metadata import Metadata
from ottla.errors import error_for, topic_asked


class TopicWatch:
    """What was there to be shared out at the last rebalance, against what there is now."""

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
        """The member leaves: nothing is to be compared any more."""
        self._joined_topics = self._counts = None

    def joined(self) -> None:
        """The member joins with the topics as they are."""
        self._joined_topics, self._counts = self._subscriptions.topics, None

    def led(self, counts: Mapping[str, int], now: float) -> None:
        """The member has shared these topics out, with so many partitions: it must notice their growth."""
        self._counts = counts
        self._seen_version = -1  # topics may have grown since the leader counted
        self._metadata.want_only(self._wanted_topics(), now)
        if self._subscriptions.pattern is not None:
            self._metadata.want_all()

    def changed(self, now: float) -> None:
        """The user wants something else."""
        if self._subscriptions.broker_pattern is not None:
            return  # only what is assigned has to be known, and that has not changed yet
        version = self._metadata.version
        if self._subscriptions.pattern is not None:
            self._metadata.want_all()
            if self._metadata.time_to_next_update(now) <= 0 or not version:
                self._pattern_version = version
        else:
            self._metadata.want_only(self._wanted_topics(), now)
        self._seen_version = -1

    def awaits_pattern(self) -> bool:
        """Whether it is not known yet what there is for the pattern to match."""
        return self._subscriptions.pattern is not None and self._metadata.version <= self._pattern_version

    def wants(self, topic: str) -> bool:
        """Whether partitions of this topic may be assigned."""
        if self._subscriptions.broker_pattern is not None:
            return True
        pattern: re.Pattern[str] | None = self._subscriptions.pattern
        if pattern is not None:  # the leader may have heard of a new topic first
            return pattern.fullmatch(topic) is not None
        return topic in self._subscriptions.topics

    def look(self) -> None:
        """Have the group rebalance when there is something else to share out; raises for topics that are of no use."""
        metadata = self._metadata
        if metadata.version == self._seen_version or not metadata.version:
            return
        self._seen_version = metadata.version
        cluster = metadata.cluster
        for topic in self._subscriptions.topics:
            if (code := cluster.errors.get(topic, 0)) in REFUSED_TOPIC:
                raise error_for(code, f"{topic_asked(code, topic)}, which this consumer subscribes to")
        self._subscriptions.match(cluster, exclude_internal=self._exclude_internal)
        self._compare_topics()
        self._compare_counts(cluster)

    def _compare_topics(self) -> None:
        before, topics = self._joined_topics, self._subscriptions.topics
        if before is not None and before != topics:
            self._joined_topics = topics
            self._request_rejoin(
                f"we subscribed to {sorted(before)} when the rebalance began, and to {sorted(topics)} by now",
                resubscribed=True,
            )

    def _compare_counts(self, cluster: Cluster) -> None:
        before = self._counts
        if before is None:
            return
        complete = self._subscriptions.pattern is not None
        counts = counted(cluster, self._subscriptions.topics, before, complete=complete)
        if counts != before:
            self._counts = None
            self._request_rejoin(
                f"the topics' partitions were {dict(before)} when the rebalance began, and are {counts}"
            )

    def _wanted_topics(self) -> set[str]:
        """The user's topics, and where this member leads those of the others, whose growth it must notice."""
        return {*self._subscriptions.topics, *(self._counts or ())}
