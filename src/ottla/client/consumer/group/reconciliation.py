"""What the user's thread does so that a member of KIP-848 has what its coordinator wants it to have.

Gives up what goes, once its offsets are committed, takes what comes, and says so. What a topic is called the metadata
tells; an id that it does not know yet has to wait, and everything else does not wait for it.

Which epoch waits for what. A group of KIP-848 has no moment at which all stand still. Three numbers run after each
other:

    group epoch       grows when members, subscriptions or topics change: there is something else to share out
    target assignment computed by the coordinator for a group epoch, for all members at once
    member epoch      the group epoch up to which one member has gone along with its target

The coordinator takes each member towards its target by itself, in two steps, and never gives a partition away before
its owner has said that it let go of it:

1. It answers a heartbeat with the part of the target that the member may have now: what it keeps, without what goes.
   The member's epoch stays (where nothing goes, this step falls away). Here that is `target`: what is missing is
   committed and given up, and the next heartbeat, sent at once (`acknowledge`), tells what the member has left.
2. Only that answer moves the member to the new epoch, and brings what it gains as far as others have let go of it.
   What they have not comes with later answers under the same epoch: each is a new `target`, and this is gone through
   again.

So a commit belongs before the acknowledgement: until then the coordinator takes it under the member's epoch,
afterwards the partition may have another reader. A commit that may still succeed is tried without end, for an
acknowledgement that overtook it would let it arrive when another has begun to read; the coordinator's own bound is
the rebalance timeout, after which it fences a member that does not let go.

A fenced member (or one that was silent for too long) has lost all at once. It joins again with epoch 0 only when the
user's thread has said that it reads nothing any more (`released`); `life` tells targets from before that from those
after it.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from uuid import UUID

from ottla.client.consumer.coordinator.generation import Generation
from ottla.client.consumer.group.membership.consumer_member import TargetAssignment
from ottla.client.consumer.group.membership.consumer_membership import ConsumerMembership
from ottla.client.consumer.group.membership.heartbeat_fields import SubscribedTopics
from ottla.client.consumer.group.membership.retry import Retry
from ottla.client.consumer.group.partition_exchange import compared
from ottla.client.consumer.group.parts import GroupParts
from ottla.client.consumer.group.topic_watch import TopicWatch
from ottla.model import FOREVER, TopicPartition

Owned = Mapping[TopicPartition, UUID]
"""Partitions, and for each the id of its topic."""


class Reconciliation:
    """From what a member has to what it is to have."""

    def __init__(self, parts: GroupParts, membership: ConsumerMembership, topics: TopicWatch) -> None:
        self._membership = membership
        self._topics = topics
        self._lock, self._wake_thread, self._log = parts.lock, parts.wake_thread, parts.log
        self._subscriptions, self._metadata = parts.subscriptions, parts.metadata
        self._exchange, self._auto_commit = parts.exchange, parts.auto_commit
        self._retry = Retry(parts.backoff)
        self._wanted: SubscribedTopics | None = None
        self._owned: dict[TopicPartition, UUID] = {}
        self._brought_about: TargetAssignment | None = None
        self._waits_for_names = False
        self._seen_version = -1

    @property
    def taken_as(self) -> Generation:
        """The generation in which this member had its partitions last; also once it is lost. The caller holds the lock."""
        return self._membership.last_generation

    def look(self) -> None:
        """What is under way for what is lost by now is not waited for."""
        if self._exchange.waits and not self._exchange.listening and self._must_release():
            self._exchange.abandon()

    def proceed(self, now: float) -> None:
        """Go on as far as it goes."""
        if self._must_release():
            self._brought_about = None
            self._exchange.give_up(list(self._subscriptions.assigned()), lost=True, then=self._release)
        if self._exchange.waits:
            return
        self._tell_wishes()
        with self._lock:
            target = self._membership.target
        if target is not None and self._has_news(target, now):
            self._reconcile(target, now)

    def wait_span(self, now: float) -> float:
        """Seconds until names are to be asked for again."""
        return max(0.0, self._retry.at - now) if self._waits_for_names else FOREVER

    def restart(self) -> None:
        """Bring the target about again from what is assigned: an exception has ended the last attempt half done."""
        assigned = set(self._subscriptions.assigned())
        self._owned = {tp: topic_id for tp, topic_id in self._owned.items() if tp in assigned}
        self._brought_about = self._wanted = None

    def reset(self) -> None:
        self._wanted, self._owned, self._brought_about, self._waits_for_names = None, {}, None, False
        self._metadata.want_ids(())

    def _must_release(self) -> bool:
        with self._lock:
            return self._membership.must_release

    def _release(self) -> None:
        """What was lost is given up: the member may join again."""
        self._owned = {}
        with self._lock:
            self._membership.released()
        self._wake_thread()

    def _tell_wishes(self) -> None:
        """Let the coordinator hear what the user wants, as soon as that is known."""
        subscriptions = self._subscriptions
        wanted = SubscribedTopics(subscriptions.topics, subscriptions.broker_pattern)
        if wanted == self._wanted or self._topics.awaits_pattern():
            return
        self._wanted = wanted
        self._topics.joined()
        for tp, state in subscriptions.states().items():  # what nobody wants any more is not handed out
            state.revoking = not self._topics.wants(tp.topic)
        with self._lock:
            self._membership.want(wanted)
        self._wake_thread()

    def _has_news(self, target: TargetAssignment, now: float) -> bool:
        if target is not self._brought_about:
            return True
        if self._waits_for_names and now >= self._retry.at:
            self._retry.failed(now)
            self._metadata.request_update()
        return self._waits_for_names and self._metadata.version != self._seen_version

    def _reconcile(self, target: TargetAssignment, now: float) -> None:
        wanted = self._named(target, now)
        self._brought_about = target
        gone = [tp for tp in self._subscriptions.assigned() if wanted.get(tp) != self._owned.get(tp)]
        if self._waits_for_names and not gone and len(wanted) == len(self._owned):
            return  # there is nothing to do before the names are known
        self._log.info(
            "reconciling in epoch %d\n\tMember:                                    %s\n%s",
            self._membership.epoch,
            self._membership.member_id,
            compared(wanted, self._subscriptions.assigned()),
        )
        self._auto_commit.later(now)
        offsets = self._exchange.consumed(gone)
        then = partial(self._give_up, target, wanted, gone)
        if offsets:
            self._exchange.commit_first(gone, offsets, now, then, self._retry)
        else:
            then()

    def _named(self, target: TargetAssignment, now: float) -> dict[TopicPartition, UUID]:
        """The partitions that are to be had, as far as it is known what their topics are called."""
        if self._subscriptions.broker_pattern is not None:
            self._metadata.want_ids(topic_id for topic_id, _ in target.partitions)
        names = self._metadata.cluster.names
        self._seen_version = self._metadata.version
        missing = {topic_id for topic_id, _ in target.partitions if topic_id not in names}
        if missing and not self._waits_for_names:
            self._retry.succeeded()
            self._retry.failed(now)
            self._metadata.request_update()
        self._waits_for_names = bool(missing)
        return {TopicPartition(names[topic_id], n): topic_id for topic_id, n in target.partitions if topic_id in names}

    def _give_up(self, target: TargetAssignment, wanted: Owned, gone: list[TopicPartition]) -> None:
        if self._is_over(target):
            return  # the generation was over while offsets were committed
        self._exchange.give_up(gone, lost=False, then=partial(self._assign, target, wanted, gone))

    def _assign(self, target: TargetAssignment, wanted: Owned, gone: list[TopicPartition]) -> None:
        for tp in gone:
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
