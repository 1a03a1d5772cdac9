"""The cluster as it will be, while one event is decided.

What is written here is seen by what is decided next for the same event: who is fenced leads nothing that is looked at a moment later, and two
reasons to change a partition are two changes, one after the other, and not two changes of the same state.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import NamedTuple
from uuid import UUID

from ottla.coordination.cluster import partition_record, registration
from ottla.coordination.cluster.features import ELR_VERSION
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import (
    BrokerRegistrationChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from ottla.coordination.cluster.records import NO_LEADER
from ottla.coordination.cluster.registration import Registration
from ottla.coordination.cluster.topic import ANY_DIRECTORY, LOST, MIGRATING, PartitionState, Topic
from ottla.coordination.cluster.topic_configs import defaults
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.events import NO_CHANCE, Chance
from ottla.coordination.controller.partition_change import Election, Rules, Wanted, partition_change
from ottla.coordination.controller.sessions import BrokerHeard, SessionEnded, Sessions
from ottla.protocol.schema import Message

UNASSIGNED = ANY_DIRECTORY
"""The broker says later in which of its directories a copy lies."""


class Known(NamedTuple):
    """All that a controller knows."""

    metadata: ClusterMetadata
    sessions: Sessions
    registered_at: Mapping[int, int]
    """The offsets of brokers' registrations: who knows the metadata up to there knows all before it."""
    end_offset: int
    """The offset of the first record that will be written."""


class ClusterDraft:
    """Reads the metadata through what was written so far."""

    def __init__(self, known: Known, config: ControllerConfig, now: float, chance: Chance = NO_CHANCE) -> None:
        self.metadata, self.sessions, self.registered_at, self.end_offset = known
        self.config, self.now, self.chance = config, now, chance
        self.records: list[Message] = []
        self.heard: list[BrokerHeard | SessionEnded] = []
        self.notes: list[str] = []
        """What a person wants to know of it."""
        self.registrations = dict(self.metadata.registrations)
        self.elr = self.metadata.features.get(ELR_VERSION, 0) > 0
        self._partitions: dict[tuple[UUID, int], PartitionState] = {}

    def write(self, record: Message) -> None:
        """Say that it is so from here on."""
        self.records.append(record)
        if isinstance(record, RegisterBrokerRecord):
            self.registrations[record.broker_id] = registration.registered(record)
        elif isinstance(record, UnregisterBrokerRecord):
            del self.registrations[record.broker_id]
        elif isinstance(record, BrokerRegistrationChangeRecord):
            broker = self.registrations[record.broker_id]
            self.registrations[record.broker_id] = registration.changed(broker, record)

    def change(
        self, topic: Topic, state: PartitionState, wanted: Wanted, absent: Collection[int] = ()
    ) -> PartitionState | None:
        """Let a partition have what is wanted, as far as it goes; None where nothing changes. Who is absent may not lead."""
        record = partition_change(topic.topic_id, state, wanted, self._rules(topic, state, wanted, absent))
        if record is None:
            return None
        after = partition_record.changed(state, record)
        self._partitions[topic.topic_id, state.index] = after
        self.records.append(record)
        return after

    def partition(self, topic: Topic, index: int) -> PartitionState | None:
        if not 0 <= index < len(topic.partitions):
            return None
        return self._partitions.get((topic.topic_id, index), topic.partitions[index])

    def partitions(self) -> Iterator[tuple[Topic, PartitionState]]:
        """Every partition, as it is when its turn comes."""
        for topic in self.metadata.topics.values():
            for state in topic.partitions:
                yield topic, self._partitions.get((topic.topic_id, state.index), state)

    def active(self, broker: int) -> bool:
        """Whether it is there and wants to stay."""
        known = self.registrations.get(broker)
        return known is not None and not known.fenced and not known.in_controlled_shutdown

    def leads(self, broker: int) -> bool:
        return any(state.leader == broker for _, state in self.partitions())

    def min_isr(self, topic: Topic) -> int:
        """How many have to be in sync for a write, as far as there are as many copies."""
        return min(int(self.setting(topic, "min.insync.replicas")), len(topic.partitions[0].replicas))

    def election(self, topic: Topic) -> Election:
        """How leaders are sought by themselves."""
        allowed = self.setting(topic, "unclean.leader.election.enable").strip().lower() == "true"
        return Election.UNCLEAN if allowed else Election.ONLINE

    def setting(self, topic: Topic, name: str) -> str:
        """A config of a topic as it is in force."""
        changed = self.metadata.brokers
        nearer = (topic.configs, changed.get(str(self.config.node_id), {}), changed.get("", {}))
        for layer in (*nearer, self.config.topic_defaults, defaults()):
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def new_directory(self, broker: int) -> UUID:
        """Where a copy lies that comes to a broker: it says so itself if it has several directories."""
        known = self.registrations.get(broker)
        if known is None or len(known.log_dirs) > 1:
            return UNASSIGNED
        return known.log_dirs[0] if known.log_dirs else MIGRATING

    def _rules(self, topic: Topic, state: PartitionState, wanted: Wanted, absent: Collection[int]) -> Rules:
        places = {**dict(zip(state.replicas, state.directories, strict=True)), **wanted.directories}

        def may_lead(broker: int) -> bool:
            return broker not in absent and self.active(broker) and self.online(broker, places.get(broker, UNASSIGNED))

        return Rules(may_lead, self.min_isr(topic), self.elr, self.new_directory)

    def online(self, broker: int, directory: UUID) -> bool:
        """Whether the directory is there, as far as anybody has said."""
        known: Registration = self.registrations[broker]
        if not known.log_dirs or directory in (UNASSIGNED, MIGRATING):
            return True
        return directory != LOST and directory in known.log_dirs


def leaderless(state: PartitionState) -> bool:
    return state.leader == NO_LEADER
