"""Mistakes that a controller could make, each to be planted and found by its histories."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import pytest

from ottla.coordination.cluster.metadata import REPLAYS
from ottla.coordination.cluster.node_records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerRegistrationChangeRecord,
    EndTransactionRecord,
)
from ottla.coordination.controller import broker_changes, heartbeats, isr_changes, partition_change, registrations
from ottla.coordination.controller.broker_states import BrokerControlState
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.partition_change import ElectionResult
from tests.coordination.controller.cluster import directory
from tests.simulation.controller_history import ControllerHistory
from tests.simulation.model_broker import ModelBroker

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def restarts_are_all_clean(patch: Patch) -> None:
    """Records lost with the power are assumed present (KIP-966)."""
    restart = broker_changes.restart_broker
    patch.setattr(
        broker_changes, "restart_broker", lambda draft, broker, clean, dirs: restart(draft, broker, True, dirs)
    )


def fenced_brokers_are_taken_in(patch: Patch) -> None:
    patch.setattr(isr_changes, "is_eligible", lambda draft, reported: True)


def any_online_replica_leads(patch: Patch) -> None:
    """An online replica is treated as a member of the ISR."""

    def first_alive(state: Any, target: Any, elr: Any, last_known: Any, election: Any, rules: Any) -> ElectionResult:
        able = [each for each in target.replicas if rules.can_lead(each)]
        return ElectionResult(state.leader if state.leader in able else able[0] if able else -1)

    patch.setattr(partition_change, "elect_leader", first_alive)


def eligible_leaders_are_never_removed(patch: Patch) -> None:
    """Though others acknowledge records by now."""
    patch.setattr(ClusterDraft, "min_isr", lambda draft, topic: 3)


def stale_leaders_are_accepted(patch: Patch) -> None:
    """Whatever epoch of the partition they know."""
    patch.setattr(isr_changes, "find_error", lambda draft, broker, state, reported, isr: 0)


def the_fenced_stay_in_sync(patch: Patch) -> None:
    patch.setattr(broker_changes, "remove_from_isrs", lambda draft, broker, **options: None)


def brokers_are_let_in_and_lead_nothing(patch: Patch) -> None:
    def unfenced(draft: ClusterDraft, broker: int) -> None:
        draft.write(BrokerRegistrationChangeRecord(broker, draft.registrations[broker].epoch, fenced=-1))

    patch.setitem(heartbeats.TRANSITIONS, BrokerControlState.UNFENCED, unfenced)


def a_registration_leaves_the_one_before_in_sync(patch: Patch) -> None:
    """Until its session ends, which is another's by then."""
    begun = registrations.start_incarnation

    def careless(draft: ClusterDraft, request: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(broker_changes, "restart_broker", lambda draft, broker, clean, dirs: None)
            return begun(draft, request)

    patch.setattr(registrations, "start_incarnation", careless)


def leaders_keep_their_epoch(patch: Patch) -> None:
    """When another leads."""
    named = partition_change.find_leader_field
    patch.setattr(
        partition_change,
        "find_leader_field",
        lambda state, target, elected: -2 if elected.leader >= 0 else named(state, target, elected),
    )


def brokers_apply_uncommitted_records(patch: Patch) -> None:
    """The next controller may have something else there."""

    def learn(self: ControllerHistory, broker: ModelBroker, most: int | None = None) -> None:
        written = [*self.committed, *chain.from_iterable(records for records, _, _ in self.pending)]
        broker.apply(written[broker.applied :])

    patch.setattr(ControllerHistory, "learn", learn)


def half_a_transaction_counts(patch: Patch) -> None:
    """KIP-868: its controller was stopped, and the next one takes nothing of it."""
    for kind in (BeginTransactionRecord, EndTransactionRecord, AbortTransactionRecord):
        patch.setitem(REPLAYS, kind, lambda machine, record: None)


def sessions_end_by_the_calendar(patch: Patch) -> None:
    """The wall clock is moved forward and back."""
    patch.setattr(ControllerHistory, "clock", lambda self: self.calendar)


PLANTED: dict[Plant, int] = {
    restarts_are_all_clean: 4,
    fenced_brokers_are_taken_in: 0,
    any_online_replica_leads: 1,
    eligible_leaders_are_never_removed: 19,
    stale_leaders_are_accepted: 0,
    the_fenced_stay_in_sync: 0,
    brokers_are_let_in_and_lead_nothing: 4,
    a_registration_leaves_the_one_before_in_sync: 4,
    leaders_keep_their_epoch: 1,
    brokers_apply_uncommitted_records: 0,
    half_a_transaction_counts: 1,
    sessions_end_by_the_calendar: 0,
}
"""And a seed that shows it, which is tried first."""


def an_emptied_disk_is_the_same_one(patch: Patch) -> None:
    """As in Apache Kafka, if `meta.properties` is left."""
    patch.setattr(ModelBroker, "directory", property(lambda broker: directory(broker.number)))


def the_last_leader_is_waited_for_whatever_became_of_its_disk(patch: Patch) -> None:
    patch.setattr(broker_changes, "is_in_other_directory", lambda state, broker, directories: False)


def replicas_killed_before_the_last_leader_are_forgotten(patch: Patch) -> None:
    """As in Kafka's controllers."""
    last_known = partition_change.find_last_known_leaders
    patch.setattr(
        partition_change,
        "find_last_known_leaders",
        lambda *about: last_known(*about)[:1] if about[0].leader < 0 else (),
    )


def isr_members_with_a_new_disk_keep_the_lost_directory(patch: Patch) -> None:
    """The controllers assume the old directory until the broker reports the new one; the broker may then be the last
    ISR member.
    """
    patch.setattr(isr_changes, "assign_new_directories", lambda draft, state, isr: {})


EMPTIED: dict[Plant, int] = {
    an_emptied_disk_is_the_same_one: 28,
    the_last_leader_is_waited_for_whatever_became_of_its_disk: 1,
    replicas_killed_before_the_last_leader_are_forgotten: 1,
    isr_members_with_a_new_disk_keep_the_lost_directory: 1404,
}
"""The mistakes with a disk that is emptied, each with a seed that finds it."""


def last_isr_members_are_forgotten_with_the_level(patch: Patch) -> None:
    """As in Kafka's controllers: there is no leader until an unclean election."""
    eligible, last_known = partition_change.find_elr, partition_change.find_last_known_leaders
    patch.setattr(partition_change, "find_elr", lambda *about: eligible(*about) if about[3].is_elr_enabled else ())
    patch.setattr(
        partition_change,
        "find_last_known_leaders",
        lambda *about: last_known(*about) if about[3].is_elr_enabled else (),
    )


LEVELLED: dict[Plant, int] = {last_isr_members_are_forgotten_with_the_level: 12}
"""A bug that appears when the ELR level changes, and a seed that finds it."""
