"""Which of this broker's copies it leads and which it follows: taken on one after the other, a little at a time.

A role whose log is open is taken on at once. To open a log takes a millisecond, or much more after a crash, and the metadata may give
a broker thousands in one breath; these wait in a row, and between two stretches of `STRETCH_SECONDS` the loop serves its clients. A
copy that waits is neither led nor followed: who asks for it is told to ask again.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple
from uuid import UUID

from ottla.broker.fetching.waiting import Waiting
from ottla.broker.partitions.flusher import Flusher
from ottla.broker.partitions.partition import Partition
from ottla.broker.replication.followed_partition import FollowedPartition, begin_to_follow
from ottla.broker.replication.healing import RELIEF_SECONDS, Healing
from ottla.broker.replication.isr_changes import IsrChanges
from ottla.broker.replication.leader_fetcher import LeaderFetcher
from ottla.broker.settings.config import BrokerConfig
from ottla.broker.timers import Timers
from ottla.clock import Clock
from ottla.coordination.cluster.topic import PartitionState, Topic
from ottla.coordination.replication.assignment import Assignment, LiveBrokers
from ottla.coordination.replication.fetch_session import Place
from ottla.errors import KafkaError
from ottla.model import INT64_MAX
from ottla.storage.batches.damage import Damage, OfflineError, OutOfServiceError

log = logging.getLogger(__name__)
STRETCH_SECONDS = 0.02
AGAIN_SECONDS = 5.0
HEIR_LOOK_SECONDS = 0.5
NOWHERE = -1
"""Where the damage begins of a copy of which nothing can be used."""
Lead = Callable[[Partition, Assignment, LiveBrokers], None]


class Role(NamedTuple):
    """What the metadata want of a copy."""

    partition: Partition
    topic: Topic
    state: PartitionState

    @property
    def place(self) -> Place:
        return Place(self.topic.topic_id, self.state.index)


class ReplicaRoles:
    """Called in the loop alone."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        lead: Lead,
        fetcher: Callable[[int], LeaderFetcher],
        isr_changes: IsrChanges,
        waiting: Waiting,
        flusher: Flusher,
        timers: Timers,
        clock: Clock,
    ) -> None:
        """`fetcher` makes one for a leader."""
        self._config = config
        self._lead = lead
        self._fetcher = fetcher
        self._isr_changes = isr_changes
        self._waiting = waiting
        self._flusher = flusher
        self._timers = timers
        self._clock = clock
        self._me = config().node_id
        self.brokers = LiveBrokers()
        self.on_led: Callable[[Partition], None] = lambda partition: None
        self.on_lost: Callable[[Partition], None] = lambda partition: None
        self.on_failure: Callable[[UUID], None] = lambda topic_id: None
        """Told of the topic some seconds after one of its roles could not be taken on."""
        self.on_damaged: Callable[[Topic, PartitionState], None] = lambda topic, state: None
        """Told of a copy that is not to be in sync any more: it is damaged, and others are whole."""
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._followed: dict[Place, FollowedPartition] = {}
        self._healings: dict[Place, Healing] = {}
        self._waiting_roles: dict[Place, Role] = {}
        self._is_to_go_on = False

    def assign(self, partition: Partition, topic: Topic, state: PartitionState) -> None:
        """Take the role on: at once, or when `go_on` comes to it."""
        role = Role(partition, topic, state)
        self._waiting_roles.pop(role.place, None)
        if partition.opened_log is None:
            self._waiting_roles[role.place] = role
        else:
            self._try(role)

    def give_up(self, place: Place) -> None:
        self._waiting_roles.pop(place, None)
        self._healings.pop(place, None)
        self._stop_following(place)

    def awaits_relief(self, partition: Partition) -> bool:
        """Whether who reads what is damaged of a copy had better ask another, which may lead in a moment."""
        place = Place(partition.topic_id, partition.topic_partition.partition)
        leadership = partition.leadership
        if leadership is None:
            return place in self._followed
        others = (leadership.machine.assignment.in_sync & leadership.brokers.epochs.keys()) - {self._me}
        healing = self._healing(place)
        damage = healing.damage(partition.log, self._me)
        if damage is None or not others:
            return False
        return not healing.has_asked(damage, others) or healing.awaits_relief(self._clock.monotonic())

    def relocate(self, partition: Partition) -> None:
        """Go on with the log that a partition has now, in another directory."""
        followed = self._followed.get(Place(partition.topic_id, partition.topic_partition.partition))
        if followed is not None and followed.partition is partition:
            followed.log = partition.log
            self._hear(followed, followed.in_sync)

    def go_on(self) -> None:
        """Take on what waits, for a stretch; the rest in later turns of the loop."""
        end = self._clock.monotonic() + STRETCH_SECONDS
        while self._waiting_roles and self._clock.monotonic() < end:
            self._try(self._next())
        if self._waiting_roles and not self._is_to_go_on:
            self._is_to_go_on = True
            self._timers.at(self._clock.monotonic(), self._go_on_later)

    def finish(self) -> None:
        """Take on all that waits."""
        while self._waiting_roles:
            self._try(self._next())

    def close(self) -> None:
        self._waiting_roles.clear()
        for fetcher in self._fetchers.values():
            fetcher.close()
        self._fetchers.clear()

    def see(self, brokers: LiveBrokers, partitions: Iterable[Partition]) -> None:
        self.brokers = brokers
        for partition in partitions:
            if partition.leadership is not None:
                partition.leadership.see(brokers)
        self.watch(partitions)

    def watch(self, partitions: Iterable[Partition]) -> None:
        """Notice who lags though it does not fetch."""
        for partition in partitions:
            if partition.leadership is not None:
                partition.leadership.advance(self._clock.monotonic())
                self._isr_changes.look(partition.leadership)

    def _go_on_later(self) -> None:
        self._is_to_go_on = False
        self.go_on()

    def _next(self) -> Role:
        return self._waiting_roles.pop(next(iter(self._waiting_roles)))

    def _try(self, role: Role) -> None:
        try:
            self._take_on(role)
        except OfflineError:
            pass  # as was said of its directory
        except KafkaError as error:
            if role.partition.fault is None:  # else that was told
                log.error("%s cannot be used: %s", role.partition.topic_partition, error.reason)
            elif role.state.leader != self._me or len(role.state.replicas) == 1:
                return  # others lead it, or nobody else can
            self._try_again(role)
        except Exception:  # of one partition: the others are taken on
            log.exception("a partition could not be taken on, and is tried again partition=%s", role.partition)
            self._try_again(role)

    def _try_again(self, role: Role) -> None:
        again = self._clock.monotonic() + AGAIN_SECONDS
        self._timers.at(again, lambda: self.on_failure(role.topic.topic_id))

    def _take_on(self, role: Role) -> None:
        """Lead or follow; without a leader wait until there is one."""
        partition, topic, state = role
        partition.replicated = partition.replicated or len(state.replicas) > 1  # before anything opens its log
        if self._steps_down(role):
            return
        if state.leader == self._me:
            self._stop_following(role.place)
            self._begin_to_lead(partition, self._assignment(topic, state))
            return
        known = self._followed.get(role.place)
        if known is not None and (known.leader, known.machine.leader_epoch) == (state.leader, state.leader_epoch):
            self._hear(known, self._is_counted_on(state))
            return
        self._stop_following(role.place)
        led = partition.leads
        begin_to_follow(partition, state.leader_epoch, self._waiting, self._clock)
        if led:
            self.on_lost(partition)
        if state.leader >= 0:
            self._follow(partition, state.leader, self._is_counted_on(state))

    def _steps_down(self, role: Role) -> bool:
        """Ask others to go on without a copy that is damaged, if they can; whether it is not to be led here until they do.

        What is led already is led on: their log is the same, but for what is damaged.
        """
        partition, topic, state = role
        others = sorted(each for each in state.isr if each != self._me and each in self.brokers.epochs)
        heir = None if others else state.heir_of(self._me)
        if self._me not in state.isr or not (others or heir):
            return False  # its log, which may be one of thousands, is not opened for that
        healing, now = self._healing(role.place), self._clock.monotonic()
        damage = known_damage(partition, healing, state.leader)
        if damage is None and state.leader == self._me:
            damage = partition.log.fallen_short
        if damage is None:
            return False
        if heir is not None and heir not in self.brokers.epochs:
            return self._awaits_heir(role, healing)
        if healing.ask(damage, others if heir is None else [heir], now):
            log.warning("%s is damaged here, and %s", partition, hand_over(partition, others, heir, damage))
            self.on_damaged(topic, state)
            self._timers.at(now + RELIEF_SECONDS, lambda: self.on_failure(topic.topic_id))
        return state.leader == self._me and partition.leadership is None and healing.awaits_relief(now)

    def _awaits_heir(self, role: Role, healing: Healing) -> bool:
        """Whether to let nobody lead for now, as one is not there who had everything."""
        now = self._clock.monotonic()
        waits = role.partition.leadership is None and healing.awaits_heir(now)
        if waits:
            self._timers.at(now + HEIR_LOOK_SECONDS, lambda: self.on_failure(role.topic.topic_id))
        return waits

    def _is_counted_on(self, state: PartitionState) -> bool:
        """Whether the controllers may have this broker lead as it is."""
        return self._me in state.isr or self._me in state.elr

    def _healing(self, place: Place) -> Healing:
        healing = self._healings.get(place)
        if healing is None:
            healing = self._healings[place] = Healing()
        return healing

    def _hear(self, followed: FollowedPartition, in_sync: bool) -> None:
        if followed.see(in_sync=in_sync):
            self._fetchers[followed.leader].add(followed)

    def _begin_to_lead(self, partition: Partition, assignment: Assignment) -> None:
        self._lead(partition, assignment, self.brokers)
        partition.log.fallen_short = None  # From now on what is here is all there is.
        if partition.leadership is not None:
            partition.leadership.on_change = self._isr_changes.look
            self._isr_changes.look(partition.leadership)
        self.on_led(partition)

    def _follow(self, partition: Partition, leader: int, in_sync: bool) -> None:
        healing = self._healing(Place(partition.topic_id, partition.topic_partition.partition))
        followed = FollowedPartition(
            partition, leader, self._clock, self._flusher, self._waiting, healing, in_sync=in_sync
        )
        self._followed[followed.place] = followed
        if leader not in self._fetchers:
            self._fetchers[leader] = self._fetcher(leader)
        self._fetchers[leader].add(followed)

    def _stop_following(self, place: Place) -> None:
        followed = self._followed.pop(place, None)
        if followed is not None:
            self._fetchers[followed.leader].remove(place)

    def _assignment(self, topic: Topic, state: PartitionState) -> Assignment:
        in_sync = int(topic.configs.get("min.insync.replicas", self._config().min_insync_replicas))
        return Assignment(
            state.leader, state.leader_epoch, state.partition_epoch, state.replicas, frozenset(state.isr), in_sync
        )


def hand_over(partition: Partition, others: Sequence[int], heir: int | None, damage: Damage) -> str:
    """What is to be done about a damaged copy that others have."""
    anew = "" if partition.fault else f", and to be copied anew: {damage}"
    if heir is not None:
        return f"broker {heir} had all of it when it was killed: that is to lead, and this copy to be in sync no more{anew}"
    named = ", ".join(f"broker {each}" for each in others)
    return f"not with those who are in sync with it, {named}: it is to be so no more{anew}"


def known_damage(partition: Partition, healing: Healing, leader: int) -> Damage | None:
    """What is known to be damaged of a copy, and not of its leader's; where nobody may use the copy, all of it."""
    try:
        return healing.damage(partition.log, leader)
    except OfflineError:
        raise
    except OutOfServiceError:
        return Damage(Path(), 0, 0, NOWHERE, INT64_MAX, "nobody may use it")
