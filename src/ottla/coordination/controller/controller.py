"""The active controller of a cluster: broker registrations, broker sessions and partitions (KIP-631). Pure.

    request or timer ──► decide ──► records ──► append to __cluster_metadata ──► replay ──► (committed) ──► response

The active controller is the leader of the metadata quorum, and nothing else appends to the metadata log. The records of
a decision are replayed when they are appended, so the next decision sees them; the response is sent when they are
committed. A controller that loses the leadership discards its state. The next active controller rebuilds it from a
snapshot and the log.

Broker sessions are not in the log. A new active controller gives each unfenced broker a fresh session, so a failover
fences no broker that is alive.

Requests that change configs, ACLs, quotas, credentials, tokens and feature levels are decided in `client_changes`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from importlib import import_module
from typing import Any

from ottla.coordination.cluster import events as cluster_events
from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.coordination.cluster.node_records import AbortTransactionRecord, RegisterBrokerRecord
from ottla.coordination.cluster.records import NO_LEADER, FeatureLevelRecord
from ottla.coordination.cluster.registration import BrokerRegistration
from ottla.coordination.cluster.replaying import replay_all
from ottla.coordination.cluster.topic import PartitionState
from ottla.coordination.controller import broker_changes, client_changes
from ottla.coordination.controller.client_changes import MOST_RECORDS, check_record_count
from ottla.coordination.controller.config import ControllerConfig
from ottla.coordination.controller.draft import BrokerFenced, ClusterDraft, ControllerState
from ottla.coordination.controller.events import (
    NO_RANDOM_VALUES,
    BrokerProcessEnded,
    ControllerActivated,
    ControllerEvent,
    ControllerRequest,
    PreferredElectionDue,
    SessionTimerExpired,
    UncleanElectionDue,
)
from ottla.coordination.controller.min_isr import enables_elr, unify_min_isr
from ottla.coordination.controller.sessions import NO_HEARTBEAT, BrokerHeartbeatReceived, SessionEnded, Sessions
from ottla.coordination.machine import Alarm, Decision, Reply
from ottla.protocol.apis import api_of
from ottla.protocol.schema import Message

SESSIONS = "sessions"
"""The timer that is followed by `SessionTimerExpired`."""
Written = Message | BrokerHeartbeatReceived | SessionEnded
SESSION_RECORDS = (BrokerHeartbeatReceived, SessionEnded)
"""Records that are replayed and never appended."""


class Controller:
    """The state machine of the active controller: the metadata and the broker sessions."""

    def __init__(
        self,
        config: ControllerConfig,
        metadata: ClusterMetadata | None = None,
        end_offset: int = 0,
        registration_offsets: Mapping[int, int] | None = None,
    ) -> None:
        """Continue from replayed metadata, the log of which ends at `end_offset`.

        `registration_offsets` maps brokers to the offsets of their registration records. An unknown offset is taken as the
        last one before `end_offset`: the broker then counts as caught up a little later than necessary.
        """
        self.metadata = ClusterMetadata() if metadata is None else metadata
        self.sessions = Sessions(config.session_timeout, config.own_broker)
        self.end_offset = end_offset
        """The offset of the next record in the log. The caller changes it if it appends other records."""
        self._config = config
        self._registration_offsets = dict.fromkeys(self.metadata.registrations, end_offset - 1) | dict(
            registration_offsets or {}
        )

    def decide(self, event: ControllerEvent | cluster_events.Event, now: float) -> Decision[Written]:
        """Return the records and replies for an event; the state does not change."""
        if not isinstance(event, ControllerEvent):
            return client_changes.decide(self.metadata, event, self._config)
        known = ControllerState(self.metadata, self.sessions, self._registration_offsets, self.end_offset)
        draft = ClusterDraft(
            known, self._config, now, event.random_values if isinstance(event, ControllerRequest) else NO_RANDOM_VALUES
        )
        replies = DECISIONS[type(event)](self, draft, event)
        name = api_of(event.request).name if isinstance(event, ControllerRequest) else ""
        if isinstance(event, ControllerRequest) and name in CLIENT_APIS:
            request: Any = event.request
            topics = len(request.topics) if name == "CreateTopics" else 0
            check_record_count(len(draft.records), MOST_RECORDS + topics)
        alarms = self._choose_alarms(draft, event, now)
        return Decision((*draft.records, *draft.session_changes), replies, alarms, tuple(draft.notes))

    def replay(self, record: Written, offset: int | None = None) -> None:
        """Apply one record: of the log, at its offset, or of a broker session."""
        if isinstance(record, SESSION_RECORDS):
            self.sessions.replay(record)
        else:
            self.replay_all([record], self.end_offset if offset is None else offset)

    def replay_all(self, records: Sequence[Message], offset: int) -> None:
        """Apply consecutive records of the log, the first of which is at `offset`."""
        replay_all(self.metadata, records)
        self.end_offset = offset + len(records)
        for at, record in enumerate(records, offset):
            if isinstance(record, RegisterBrokerRecord):
                self._registration_offsets[record.broker_id] = at

    def brokers_without_heartbeat(self) -> list[BrokerRegistration]:
        """Return the brokers that have a session from this active controller and have not sent it a heartbeat."""
        return [each for each in self.metadata.registrations.values() if self.sessions.lacks_heartbeat(each)]

    def check(self) -> None:
        self.metadata.check()
        for topic in self.metadata.topics.values():
            for state in topic.partitions:
                self._check_partition(state)

    def _check_partition(self, state: PartitionState) -> None:
        fenced = {broker for broker in state.isr if self._is_fenced(broker)}
        assert not set(state.isr) & set(state.elr)
        assert state.leader not in fenced
        # Without ELRs, the last replica of an ISR stays in it when it is fenced.
        assert not fenced or (state.leader == NO_LEADER and len(state.isr) == 1)
        assert {*state.adding_replicas, *state.removing_replicas} <= set(state.replicas)

    def _is_fenced(self, broker: int) -> bool:
        known = self.metadata.registrations.get(broker)
        return known is None or known.fenced

    def _answer_request(self, draft: ClusterDraft, event: ControllerRequest) -> tuple[Reply, ...]:
        return (Reply(event.ticket, load_handler(api_of(event.request).name)(draft, event.request)),)

    def _elect_preferred_leaders(self, draft: ClusterDraft, event: PreferredElectionDue) -> tuple[Reply, ...]:
        from ottla.coordination.controller import leader_elections

        return (Reply(event.ticket, leader_elections.elect_preferred_leaders(draft)),)

    def _elect_missing_leaders(self, draft: ClusterDraft, event: UncleanElectionDue) -> tuple[Reply, ...]:
        from ottla.coordination.controller import leader_elections

        return (Reply(event.ticket, leader_elections.elect_missing_leaders(draft)),)

    def _activate(self, draft: ClusterDraft, event: ControllerActivated) -> tuple[Reply, ...]:
        if self.metadata.in_transaction:
            draft.write(AbortTransactionRecord("its controller is not the leader any more"))
        if not self.metadata.features:
            levels = [FeatureLevelRecord(name, level) for name, level in self._config.features.items()]
            first = self._config.bootstrap or levels
            for record in (*first, *(unify_min_isr({}, self._config) if enables_elr(first) else ())):
                draft.write(record)
        own = self._config.own_broker
        for number, broker in list(draft.registrations.items()):
            if not broker.fenced and own is not None and number != own:
                broker_changes.fence_broker(
                    draft, number
                )  # the cluster had more nodes before, and this is the only one left
            elif not broker.fenced:
                draft.session_changes.append(BrokerHeartbeatReceived(number, broker.epoch, draft.now, NO_HEARTBEAT))
        return ()

    def _fence_expired_brokers(self, draft: ClusterDraft, event: SessionTimerExpired) -> tuple[Reply, ...]:
        silent = self.sessions.list_expired(draft.now)
        for broker in silent:
            known = draft.registrations.get(broker)
            if known is not None and self.sessions.find_session(known) is not None and not known.fenced:
                broker_changes.fence_broker(draft, broker, silent)
                reason = f"it sent no heartbeat for {self._config.session_timeout:g} s"
                draft.notes.append(BrokerFenced(f"Broker {broker} is fenced: {reason}."))
            draft.session_changes.append(SessionEnded(broker))
        return ()

    def _fence_ended_broker(self, draft: ClusterDraft, event: BrokerProcessEnded) -> tuple[Reply, ...]:
        """Fence a broker at once, as at the end of its session."""
        known = draft.registrations.get(event.broker_id)
        if known is not None and known.epoch == event.broker_epoch:
            if not known.fenced:
                broker_changes.fence_broker(draft, event.broker_id, [event.broker_id])
                draft.notes.append(BrokerFenced(f"Broker {event.broker_id} is fenced: its process has ended."))
            draft.session_changes.append(SessionEnded(event.broker_id))
        return ()

    def _choose_alarms(self, draft: ClusterDraft, event: ControllerEvent, now: float) -> tuple[Alarm, ...]:
        if isinstance(event, SessionTimerExpired):
            return (Alarm(SESSIONS, self.sessions.find_next_expiry(now)),)
        own = self._config.own_broker
        if any(isinstance(each, BrokerHeartbeatReceived) and each.broker_id != own for each in draft.session_changes):
            return (Alarm(SESSIONS, now + self._config.session_timeout, keep=True),)
        return ()


DECISIONS: dict[type[ControllerEvent], Callable[[Controller, ClusterDraft, Any], tuple[Reply, ...]]] = {
    ControllerRequest: Controller._answer_request,
    PreferredElectionDue: Controller._elect_preferred_leaders,
    UncleanElectionDue: Controller._elect_missing_leaders,
    ControllerActivated: Controller._activate,
    SessionTimerExpired: Controller._fence_expired_brokers,
    BrokerProcessEnded: Controller._fence_ended_broker,
}
Decide = Callable[[ClusterDraft, Any], Message]
"""The type of a function that decides a request and returns the response."""
HANDLERS: Mapping[str, tuple[str, str]] = {
    "AllocateProducerIds": ("producer_ids", "allocate_producer_ids"),
    "AlterPartition": ("isr_changes", "decide"),
    "AlterPartitionReassignments": ("reassignment_requests", "decide"),
    "AssignReplicasToDirs": ("directories", "decide"),
    "BrokerHeartbeat": ("heartbeats", "decide"),
    "BrokerRegistration": ("registrations", "register_broker"),
    "ControllerRegistration": ("registrations", "register_controller"),
    "CreatePartitions": ("topics", "create_partitions"),
    "CreateTopics": ("topics", "create_topics"),
    "ElectLeaders": ("leader_elections", "decide"),
    "ListPartitionReassignments": ("reassignment_requests", "list_reassignments"),
    "UnregisterBroker": ("registrations", "unregister_broker"),
    "UnregisterController": ("registrations", "unregister_controller"),
}
"""API name → the module of this package and its function that decides the requests. Imported at the first request."""
CLIENT_APIS = frozenset(("AlterPartitionReassignments", "CreatePartitions", "CreateTopics", "ElectLeaders"))
"""The APIs of clients that are decided here. Their requests have the limit MOST_RECORDS."""


@cache
def load_handler(api: str) -> Decide:
    """Return the function that decides the requests of an API."""
    module, function = HANDLERS[api]
    decide: Decide = getattr(import_module(f"{__package__}.{module}"), function)
    return decide
