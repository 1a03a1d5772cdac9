"""Reconcile the owned partitions of a KIP-848 member with its target assignment, in the user's thread.

Commits and revokes removed partitions, assigns new ones, and acknowledges that. Topic names come from the metadata. A
partition with an unknown topic id is assigned later; the other partitions do not wait for it.

A KIP-848 group has no moment at which all members stop. Three numbers follow each other:

    group epoch       grows when members, subscriptions or topics change
    target assignment computed by the coordinator for a group epoch, for all members at once
    member epoch      the group epoch of the last target that this member has reached

The coordinator moves each member towards its target independently, in two steps, and never assigns a partition before
its owner has reported that it revoked it:

1. A heartbeat response contains the partitions that the member keeps, with an unchanged member epoch. It is `target`
here: missing partitions are committed and revoked, and the next heartbeat, sent at once (`acknowledge`), reports the
remaining ones. If nothing is revoked, this step is skipped.

2. The response to that heartbeat contains the new member epoch and the new partitions that other members have already
revoked. The rest is contained in later responses with the same epoch; each is a new `target`, and this procedure is
repeated.

The commit must precede the acknowledgement, because the partition may have another owner afterwards. Until the
acknowledgement the coordinator accepts the commit with the member's epoch. A commit with a retriable error is repeated
without limit. The coordinator limits the total time: after the rebalance timeout it fences a member that has not
revoked its partitions.

A fenced member (or one with an expired session) has lost all partitions. It joins again with epoch 0 only after the
user's thread has removed them (`record_release`). Each loss increments `life`, so that a target received before a loss
is not applied after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from uuid import UUID

from ottla.client.consumer.coordinator.generation import Generation
from ottla.client.consumer.group.membership.consumer_member import TargetAssignment
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership
from ottla.client.consumer.group.membership.heartbeat_fields import SubscribedTopics
from ottla.client.consumer.group.membership.retry import RetryTimer
from ottla.client.consumer.group.partition_exchange import describe_change
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.topic_watch import TopicWatch
from ottla.model import FOREVER, TopicPartition

Owned = Mapping[TopicPartition, UUID]
"""Partitions with the ids of their topics."""


class Reconciliation:
    """Reconciles the owned partitions with the target."""

    def __init__(self, parts: GroupParts, membership: ConsumerMembership, topics: TopicWatch) -> None:
        self._membership = membership
        self._topics = topics
        self._lock, self._wake_thread, self._log = parts.lock, parts.wake_thread, parts.log
        self._subscriptions, self._metadata = parts.subscriptions, parts.metadata
        self._exchange, self._auto_commit = parts.exchange, parts.auto_commit
        self._retry = RetryTimer(parts.backoff)
        self._wanted: SubscribedTopics | None = None
        self._owned: dict[TopicPartition, UUID] = {}
        self._reconciled: TargetAssignment | None = None
        self._has_unknown_names = False
        self._seen_version = -1

    @property
    def assigned_generation(self) -> Generation:
        """The generation of the last assignment; kept after it is lost. The caller holds the lock."""
        return self._membership.last_generation

    def drop_obsolete_wait(self) -> None:
        """Stop waiting for the commit of partitions that have been lost since it was sent."""
        if self._exchange.is_waiting and not self._exchange.is_listener_running and self._should_release():
            self._exchange.abandon()

    def proceed(self, now: float) -> None:
        """Continue as far as possible."""
        if self._should_release():
            self._reconciled = None
            self._exchange.revoke(list(self._subscriptions.assigned()), lost=True, then=self._release)
        if self._exchange.is_waiting:
            return
        self._report_subscription()
        with self._lock:
            target = self._membership.target
        if target is not None and self._should_reconcile(target, now):
            self._reconcile(target, now)

    def wait_span(self, now: float) -> float:
        """Return the seconds until unknown topic names are requested again."""
        return max(0.0, self._retry.at - now) if self._has_unknown_names else FOREVER

    def restart(self) -> None:
        """Reconcile again from the current assignment, after an exception has interrupted the last attempt."""
        assigned = set(self._subscriptions.assigned())
        self._owned = {tp: topic_id for tp, topic_id in self._owned.items() if tp in assigned}
        self._reconciled = self._wanted = None

    def reset(self) -> None:
        self._wanted, self._owned, self._reconciled, self._has_unknown_names = None, {}, None, False
        self._metadata.track_ids(())

    def _should_release(self) -> bool:
        with self._lock:
            return self._membership.should_release

    def _release(self) -> None:
        """Confirm that the lost partitions were given up; the member may join again."""
        self._owned = {}
        with self._lock:
            self._membership.record_release()
        self._wake_thread()

    def _report_subscription(self) -> None:
        """Pass a changed subscription to the membership."""
        subscriptions = self._subscriptions
        wanted = SubscribedTopics(subscriptions.topics, subscriptions.broker_pattern)
        if wanted == self._wanted or self._topics.is_awaiting_pattern():
            return
        self._wanted = wanted
        self._topics.record_join()
        for tp, state in subscriptions.states().items():  # records of unsubscribed topics are not returned any more
            state.is_revoking = not self._topics.is_subscribed(tp.topic)
        with self._lock:
            self._membership.set_subscription(wanted)
        self._wake_thread()

    def _should_reconcile(self, target: TargetAssignment, now: float) -> bool:
        if target is not self._reconciled:
            return True
        if self._has_unknown_names and now >= self._retry.at:
            self._retry.record_failure(now)
            self._metadata.request_update()
        return self._has_unknown_names and self._metadata.version != self._seen_version

    def _reconcile(self, target: TargetAssignment, now: float) -> None:
        wanted = self._resolve_names(target, now)
        self._reconciled = target
        removed = [tp for tp in self._subscriptions.assigned() if wanted.get(tp) != self._owned.get(tp)]
        if self._has_unknown_names and not removed and len(wanted) == len(self._owned):
            return  # nothing to do before the names are known
        self._log.info(
            "reconciling in epoch %d\n\tMember:                                    %s\n%s",
            self._membership.epoch,
            self._membership.member_id,
            describe_change(wanted, self._subscriptions.assigned()),
        )
        self._auto_commit.schedule_next(now)
        offsets = self._exchange.consumed(removed)
        then = partial(self._revoke, target, wanted, removed)
        if offsets:
            self._exchange.commit_first(removed, offsets, now, then, self._retry)
        else:
            then()

    def _resolve_names(self, target: TargetAssignment, now: float) -> dict[TopicPartition, UUID]:
        """Return the target partitions with known topic names."""
        if self._subscriptions.broker_pattern is not None:
            self._metadata.track_ids(topic_id for topic_id, _ in target.partitions)
        names = self._metadata.cluster.names
        self._seen_version = self._metadata.version
        missing = {topic_id for topic_id, _ in target.partitions if topic_id not in names}
        if missing and not self._has_unknown_names:
            self._retry.reset()
            self._retry.record_failure(now)
            self._metadata.request_update()
        self._has_unknown_names = bool(missing)
        return {TopicPartition(names[topic_id], n): topic_id for topic_id, n in target.partitions if topic_id in names}

    def _revoke(self, target: TargetAssignment, wanted: Owned, removed: list[TopicPartition]) -> None:
        if self._is_over(target):
            return  # the membership was lost during the commit
        self._exchange.revoke(removed, lost=False, then=partial(self._assign, target, wanted, removed))

    def _assign(self, target: TargetAssignment, wanted: Owned, removed: list[TopicPartition]) -> None:
        for tp in removed:
            self._owned.pop(tp, None)
        if self._is_over(target):
            return
        added = sorted(tp for tp in wanted if tp not in self._owned)
        self._owned = dict(wanted)
        self._exchange.assign(list(wanted), added, partial(self._acknowledge, target))

    def _acknowledge(self, target: TargetAssignment) -> None:
        partitions = frozenset((topic_id, tp.partition) for tp, topic_id in self._owned.items())
        with self._lock:
            self._membership.acknowledge(target, partitions)
        self._wake_thread()

    def _is_over(self, target: TargetAssignment) -> bool:
        with self._lock:
            return target.life != self._membership.life
