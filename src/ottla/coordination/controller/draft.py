"""The metadata as changed by the records of the present decision.

One event often causes many records, and each must take the earlier ones into account: a broker that is fenced by the
first record must not be elected by the second, and two changes of one partition must be two successive changes, not two
changes of the same old state. Decisions therefore read partitions and registrations from the draft, and write their
records to it.
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
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.coordination.cluster.topic import ANY_DIRECTORY, LOST, MIGRATING, ClusterTopic, PartitionState
from ottla.coordination.cluster.topic_configs import list_defaults
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.events import NO_RANDOM_VALUES, RandomValues
from ottla.coordination.controller.partition_change import ElectionRules, ElectionType, RequestedChange, decide_change
from ottla.coordination.controller.sessions import BrokerHeartbeatReceived, SessionEnded, Sessions
from ottla.protocol.schema import Message

UNASSIGNED = ANY_DIRECTORY
"""The directory of a replica on a broker with several directories. The broker chooses one and reports it."""


class BrokerFenced(str):
    """A log message about a broker that was fenced: its partitions have other leaders, or none."""

    __slots__ = ()


class ControllerState(NamedTuple):
    """The state of the controller."""

    metadata: ClusterMetadata
    sessions: Sessions
    registration_offsets: Mapping[int, int]
    """Broker → offset of its registration record. A broker that has replayed that offset has caught up."""
    end_offset: int
    """The offset of the first record that this decision writes."""


class ClusterDraft:
    """The metadata and the pending records of one decision."""

    def __init__(
        self,
        state: ControllerState,
        config: ControllerConfig,
        now: float,
        random_values: RandomValues = NO_RANDOM_VALUES,
    ) -> None:
        self.metadata, self.sessions, self.registration_offsets, self.end_offset = state
        self.config, self.now, self.random_values = config, now, random_values
        self.records: list[Message] = []
        self.session_changes: list[BrokerHeartbeatReceived | SessionEnded] = []
        self.notes: list[str] = []
        """Log messages."""
        self.registrations = dict(self.metadata.registrations)
        self.is_elr_enabled = self.metadata.features.get(ELR_VERSION, 0) > 0
        self._partitions: dict[tuple[UUID, int], PartitionState] = {}

    def write(self, record: Message) -> None:
        """Add a record, and apply it to the registrations if it changes one."""
        self.records.append(record)
        if isinstance(record, RegisterBrokerRecord):
            self.registrations[record.broker_id] = registration.read_registration(record)
        elif isinstance(record, UnregisterBrokerRecord):
            del self.registrations[record.broker_id]
        elif isinstance(record, BrokerRegistrationChangeRecord):
            broker = self.registrations[record.broker_id]
            self.registrations[record.broker_id] = registration.apply_change(broker, record)

    def change_partition(
        self, topic: ClusterTopic, state: PartitionState, wanted: RequestedChange, absent: Collection[int] = ()
    ) -> PartitionState | None:
        """Apply a change to a partition and return its new state; None if nothing changes.

        `absent` are brokers that must not be elected.
        """
        record = decide_change(topic.topic_id, state, wanted, self._election_rules(topic, state, wanted, absent))
        if record is None:
            return None
        after = partition_record.apply_change(state, record)
        self._partitions[topic.topic_id, state.index] = after
        self.records.append(record)
        return after

    def find_partition(self, topic: ClusterTopic, index: int) -> PartitionState | None:
        """Return the present state of a partition; None if the topic has no such partition."""
        if not 0 <= index < len(topic.partitions):
            return None
        return self._partitions.get((topic.topic_id, index), topic.partitions[index])

    def partitions(self) -> Iterator[tuple[ClusterTopic, PartitionState]]:
        """Yield every partition. Changes during the iteration are visible in the partitions that follow."""
        for topic in self.metadata.topics.values():
            for state in topic.partitions:
                yield topic, self._partitions.get((topic.topic_id, state.index), state)

    def is_active(self, broker: int) -> bool:
        """Return True if the broker is registered, unfenced and not in a controlled shutdown."""
        known = self.registrations.get(broker)
        return known is not None and not known.fenced and not known.in_controlled_shutdown

    def leads_partition(self, broker: int) -> bool:
        """Return True if the broker leads any partition."""
        return any(state.leader == broker for _, state in self.partitions())

    def min_isr(self, topic: ClusterTopic) -> int:
        """Return `min.insync.replicas` of the topic, at most its replication factor."""
        return min(int(self.find_config_value(topic, "min.insync.replicas")), len(topic.partitions[0].replicas))

    def find_automatic_election(self, topic: ClusterTopic) -> ElectionType:
        """Return the kind of automatic election that `unclean.leader.election.enable` of the topic allows."""
        allowed = self.find_config_value(topic, "unclean.leader.election.enable").strip().lower() == "true"
        return ElectionType.UNCLEAN if allowed else ElectionType.ONLINE

    def find_config_value(self, topic: ClusterTopic, name: str) -> str:
        """Return the effective value of a topic config. Raise KeyError if the config does not exist."""
        changed = self.metadata.broker_configs
        nearer = (topic.configs, changed.get(str(self.config.node_id), {}), changed.get("", {}))
        for layer in (*nearer, self.config.topic_defaults, list_defaults()):
            if name in layer:
                return layer[name]
        raise KeyError(name)

    def choose_directory(self, broker: int) -> UUID:
        """Return the directory for a new replica. It is UNASSIGNED if the broker has several, and reports its choice."""
        known = self.registrations.get(broker)
        if known is None or len(known.log_dirs) > 1:
            return UNASSIGNED
        return known.log_dirs[0] if known.log_dirs else MIGRATING

    def _election_rules(
        self, topic: ClusterTopic, state: PartitionState, wanted: RequestedChange, absent: Collection[int]
    ) -> ElectionRules:
        places = {**dict(zip(state.replicas, state.directories, strict=True)), **wanted.directories}

        def may_lead(broker: int) -> bool:
            return (
                broker not in absent
                and self.is_active(broker)
                and self.is_online(broker, places.get(broker, UNASSIGNED))
            )

        return ElectionRules(may_lead, self.min_isr(topic), self.is_elr_enabled, self.choose_directory)

    def is_online(self, broker: int, directory: UUID) -> bool:
        """Return True unless the directory is known to be lost or not registered by the broker."""
        known: BrokerRegistration = self.registrations[broker]
        if not known.log_dirs or directory in (UNASSIGNED, MIGRATING):
            return True
        return directory != LOST and directory in known.log_dirs


def has_no_leader(state: PartitionState) -> bool:
    return state.leader == NO_LEADER
