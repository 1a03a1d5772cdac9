"""The active controller of a cluster (KIP-631): brokers' lives, and who leads and copies each partition. Pure.

It is the leader of the metadata's log, and nobody else writes there. What it decides is replayed when it is appended, and answered when it
is committed. Whoever stops leading throws it away; the next one builds it from a snapshot and the log, and gives every broker a fresh
session, since those are in no log.

Everything that a cluster of one broker decides as well (configs, passwords, rules, quotas, levels of features) is decided in `cluster/`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ottla.coordination.cluster import events as cluster_events
from ottla.coordination.cluster.metadata import MOST_RECORDS, ClusterMetadata, ensure_few
from ottla.coordination.cluster.node_records import AbortTransactionRecord, RegisterBrokerRecord
from ottla.coordination.cluster.records import NO_LEADER, FeatureLevelRecord
from ottla.coordination.cluster.registration import Registration
from ottla.coordination.cluster.replaying import replay_all
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller import (
    comings,
    directories,
    heartbeats,
    isr_changes,
    leader_elections,
    moves,
    producer_ids,
    registrations,
    topics,
)
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.draft import ClusterDraft, Known
from ottla.coordination.controller.events import (
    NO_CHANCE,
    Activated,
    Asked,
    BalanceDue,
    BrokerGone,
    ControllerEvent,
    RecoveryDue,
    SessionsDue,
)
from ottla.coordination.controller.handed_on import handed_on
from ottla.coordination.controller.min_isr import is_raised_by, one_for_all
from ottla.coordination.controller.sessions import UNHEARD, BrokerHeard, SessionEnded, Sessions
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.protocol.messages.allocate_producer_ids import AllocateProducerIdsRequest
from ottla.protocol.messages.alter_partition import AlterPartitionRequest
from ottla.protocol.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from ottla.protocol.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest
from ottla.protocol.messages.broker_heartbeat import BrokerHeartbeatRequest
from ottla.protocol.messages.broker_registration import BrokerRegistrationRequest
from ottla.protocol.messages.controller_registration import ControllerRegistrationRequest
from ottla.protocol.messages.create_partitions import CreatePartitionsRequest
from ottla.protocol.messages.create_topics import CreateTopicsRequest
from ottla.protocol.messages.elect_leaders import ElectLeadersRequest
from ottla.protocol.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from ottla.protocol.messages.unregister_broker import UnregisterBrokerRequest
from ottla.protocol.schema import Message

SESSIONS = "sessions"
"""The alarm after which `SessionsDue` comes."""
Written = Message | BrokerHeard | SessionEnded
SOFT = (BrokerHeard, SessionEnded)
"""What is replayed and never appended."""


class Controller:
    def __init__(
        self,
        config: ControllerConfig,
        metadata: ClusterMetadata | None = None,
        end_offset: int = 0,
        registered_at: Mapping[int, int] | None = None,
    ) -> None:
        """`registered_at` has the offsets of the brokers' registrations, where they are known; else they are before `end_offset`."""
        self.metadata = ClusterMetadata() if metadata is None else metadata
        self.sessions = Sessions(config.session_timeout)
        self.end_offset = end_offset
        """The offset of the next record of the log; whoever appends something else moves it."""
        self._config = config
        self._registered_at = dict.fromkeys(self.metadata.registrations, end_offset - 1) | dict(registered_at or {})

    def decide(self, event: ControllerEvent | cluster_events.Event, now: float) -> Decision[Written]:
        """What is to be written and answered; changes nothing."""
        if not isinstance(event, ControllerEvent):
            return handed_on(self.metadata, event, now, self._config)
        known = Known(self.metadata, self.sessions, self._registered_at, self.end_offset)
        draft = ClusterDraft(known, self._config, now, event.chance if isinstance(event, Asked) else NO_CHANCE)
        replies = DECISIONS[type(event)](self, draft, event)
        if isinstance(event, Asked) and isinstance(event.request, OF_CLIENTS):
            topics = len(event.request.topics) if isinstance(event.request, CreateTopicsRequest) else 0
            ensure_few(len(draft.records), MOST_RECORDS + topics)
        alarms = self._alarms(draft, event, now)
        return Decision((*draft.records, *draft.heard), replies, alarms, tuple(draft.notes))

    def replay(self, record: Written, offset: int | None = None) -> None:
        """Let a record of the log, at its offset, become state, or what is in no log."""
        if isinstance(record, SOFT):
            self.sessions.replay(record)
        else:
            self.replay_all([record], self.end_offset if offset is None else offset)

    def replay_all(self, records: Sequence[Message], offset: int) -> None:
        """Let records of the log become state that stand there from that offset on."""
        replay_all(self.metadata, records)
        self.end_offset = offset + len(records)
        for at, record in enumerate(records, offset):
            if isinstance(record, RegisterBrokerRecord):
                self._registered_at[record.broker_id] = at

    def unheard(self) -> list[Registration]:
        """The brokers that have a session because there is a new controller, and for no other reason."""
        return [each for each in self.metadata.registrations.values() if self.sessions.is_given(each)]

    def check(self) -> None:
        self.metadata.check()
        for topic in self.metadata.topics.values():
            for state in topic.partitions:
                self._check_partition(state)

    def _check_partition(self, state: PartitionState) -> None:
        fenced = {broker for broker in state.isr if self._fenced(broker)}
        assert not set(state.isr) & set(state.elr)
        assert state.leader not in fenced
        # Without ELR the last one in sync is remembered as such.
        assert not fenced or (state.leader == NO_LEADER and len(state.isr) == 1)
        assert {*state.adding_replicas, *state.removing_replicas} <= set(state.replicas)

    def _fenced(self, broker: int) -> bool:
        known = self.metadata.registrations.get(broker)
        return known is None or known.fenced

    def _answer(self, draft: ClusterDraft, event: Asked) -> tuple[Reply, ...]:
        return (Reply(event.ticket, ANSWERS[type(event.request)](draft, event.request)),)

    def _activate(self, draft: ClusterDraft, event: Activated) -> tuple[Reply, ...]:
        if self.metadata.in_transaction:
            draft.write(AbortTransactionRecord("its controller leads no more"))
        if not self.metadata.features:
            levels = [FeatureLevelRecord(name, level) for name, level in self._config.features.items()]
            first = self._config.bootstrap or levels
            for record in (*first, *(one_for_all({}, self._config) if is_raised_by(first) else ())):
                draft.write(record)
        for number, broker in draft.registrations.items():
            if not broker.fenced:
                draft.heard.append(BrokerHeard(number, broker.epoch, draft.now, UNHEARD))
        return ()

    def _fence_silent(self, draft: ClusterDraft, event: SessionsDue) -> tuple[Reply, ...]:
        silent = self.sessions.expired(draft.now)
        for broker in silent:
            known = draft.registrations.get(broker)
            if known is not None and self.sessions.of(known) is not None and not known.fenced:
                comings.fence(draft, broker, silent)
                draft.notes.append(
                    f"Broker {broker} is fenced: it was not heard for {self._config.session_timeout:g} s."
                )
            draft.heard.append(SessionEnded(broker))
        return ()

    def _fence_gone(self, draft: ClusterDraft, event: BrokerGone) -> tuple[Reply, ...]:
        """What its session would end with is done at once."""
        known = draft.registrations.get(event.broker_id)
        if known is not None and known.epoch == event.broker_epoch:
            if not known.fenced:
                comings.fence(draft, event.broker_id, [event.broker_id])
                draft.notes.append(f"Broker {event.broker_id} is fenced: its process has ended.")
            draft.heard.append(SessionEnded(event.broker_id))
        return ()

    def _alarms(self, draft: ClusterDraft, event: ControllerEvent, now: float) -> tuple[Alarm, ...]:
        if isinstance(event, SessionsDue):
            return (Alarm(SESSIONS, self.sessions.deadline(now)),)
        if any(isinstance(each, BrokerHeard) for each in draft.heard):
            return (Alarm(SESSIONS, now + self._config.session_timeout, keep=True),)
        return ()


DECISIONS: dict[type[ControllerEvent], Callable[[Controller, ClusterDraft, Any], tuple[Reply, ...]]] = {
    Asked: Controller._answer,
    BalanceDue: lambda machine, draft, event: (Reply(event.ticket, leader_elections.balance(draft)),),
    RecoveryDue: lambda machine, draft, event: (Reply(event.ticket, leader_elections.recover(draft)),),
    Activated: Controller._activate,
    SessionsDue: Controller._fence_silent,
    BrokerGone: Controller._fence_gone,
}
ANSWERS: dict[type[Message], Callable[[ClusterDraft, Any], Message]] = {
    AllocateProducerIdsRequest: producer_ids.allocate,
    AlterPartitionReassignmentsRequest: moves.decide,
    AlterPartitionRequest: isr_changes.decide,
    AssignReplicasToDirsRequest: directories.decide,
    BrokerHeartbeatRequest: heartbeats.decide,
    BrokerRegistrationRequest: registrations.register,
    ControllerRegistrationRequest: registrations.register_controller,
    CreatePartitionsRequest: topics.grow,
    CreateTopicsRequest: topics.create,
    ElectLeadersRequest: leader_elections.decide,
    ListPartitionReassignmentsRequest: moves.listed,
    UnregisterBrokerRequest: registrations.unregister,
}
"""What a request becomes."""
OF_CLIENTS = (
    AlterPartitionReassignmentsRequest,
    CreatePartitionsRequest,
    CreateTopicsRequest,
    ElectLeadersRequest,
)
"""Requests that may change as much as one request of a client may."""
