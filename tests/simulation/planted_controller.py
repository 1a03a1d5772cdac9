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
from ottla.coordination.controller import comings, heartbeats, isr_changes, partition_change, registrations
from ottla.coordination.controller.broker_states import BrokerState
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.partition_change import Elected
from tests.coordination.controller.cluster import directory
from tests.simulation.controller_history import ControllerHistory
from tests.simulation.model_broker import ModelBroker

Patch = pytest.MonkeyPatch
Plant = Callable[[Patch], None]


def restarts_are_all_clean(patch: Patch) -> None:
    """What a loss of power took counts as there (KIP-966)."""
    restart = comings.restart
    patch.setattr(comings, "restart", lambda draft, broker, clean, dirs: restart(draft, broker, True, dirs))


def fenced_brokers_are_taken_in(patch: Patch) -> None:
    patch.setattr(isr_changes, "eligible", lambda draft, told: True)


def anybody_who_lives_leads(patch: Patch) -> None:
    """As if it were in sync."""

    def first_alive(state: Any, copies: Any, elr: Any, heirs: Any, election: Any, rules: Any) -> Elected:
        able = [each for each in copies.replicas if rules.may_lead(each)]
        return Elected(state.leader if state.leader in able else able[0] if able else -1)

    patch.setattr(partition_change, "elect", first_alive)


def who_may_still_lead_is_never_struck_out(patch: Patch) -> None:
    """Though others acknowledge records by now."""
    patch.setattr(ClusterDraft, "min_isr", lambda draft, topic: 3)


def stale_leaders_are_heard(patch: Patch) -> None:
    """Whatever epoch of the partition they know."""
    patch.setattr(isr_changes, "error_of", lambda draft, broker, state, told, isr: 0)


def the_fenced_stay_in_sync(patch: Patch) -> None:
    patch.setattr(comings, "take_out", lambda draft, broker, lost=False, silent=(), left=None: None)


def brokers_are_let_in_and_lead_nothing(patch: Patch) -> None:
    def unfenced(draft: ClusterDraft, broker: int) -> None:
        draft.write(BrokerRegistrationChangeRecord(broker, draft.registrations[broker].epoch, fenced=-1))

    patch.setitem(heartbeats.STEPS, BrokerState.UNFENCED, unfenced)


def a_registration_leaves_the_one_before_in_sync(patch: Patch) -> None:
    """Until its session ends, which is another's by then."""
    begun = registrations.begun

    def careless(draft: ClusterDraft, request: Any) -> Any:
        with pytest.MonkeyPatch.context() as inner:
            inner.setattr(comings, "restart", lambda draft, broker, clean, dirs: None)
            return begun(draft, request)

    patch.setattr(registrations, "begun", careless)


def leaders_keep_their_epoch(patch: Patch) -> None:
    """When another leads."""
    named = partition_change.named_leader
    patch.setattr(
        partition_change,
        "named_leader",
        lambda state, copies, elected: -2 if elected.leader >= 0 else named(state, copies, elected),
    )


def brokers_act_on_what_is_not_committed(patch: Patch) -> None:
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
    """Which is put forward and back."""
    patch.setattr(ControllerHistory, "clock", lambda self: self.calendar)


PLANTED: dict[Plant, int] = {
    restarts_are_all_clean: 4,
    fenced_brokers_are_taken_in: 0,
    anybody_who_lives_leads: 1,
    who_may_still_lead_is_never_struck_out: 19,
    stale_leaders_are_heard: 0,
    the_fenced_stay_in_sync: 0,
    brokers_are_let_in_and_lead_nothing: 4,
    a_registration_leaves_the_one_before_in_sync: 4,
    leaders_keep_their_epoch: 1,
    brokers_act_on_what_is_not_committed: 0,
    half_a_transaction_counts: 1,
    sessions_end_by_the_calendar: 0,
}
"""And a seed that shows it, which is tried first."""


def an_emptied_disk_is_the_same_one(patch: Patch) -> None:
    """As with Apache Kafka, where `meta.properties` is left."""
    patch.setattr(ModelBroker, "directory", property(lambda broker: directory(broker.number)))


def the_last_leader_is_waited_for_whatever_became_of_its_disk(patch: Patch) -> None:
    patch.setattr(comings, "lies_elsewhere", lambda state, broker, directories: False)


def who_was_killed_before_the_last_leader_is_forgotten(patch: Patch) -> None:
    """As by Kafka's controllers."""
    heirs_of = partition_change.heirs_of
    patch.setattr(partition_change, "heirs_of", lambda *about: heirs_of(*about)[:1] if about[0].leader < 0 else ())


def who_is_in_sync_on_a_new_disk_is_still_on_the_lost_one(patch: Patch) -> None:
    """As far as the controllers know, until it has said so; then it may be the last one."""
    patch.setattr(isr_changes, "found_again", lambda draft, state, isr: {})


EMPTIED: dict[Plant, int] = {
    an_emptied_disk_is_the_same_one: 28,
    the_last_leader_is_waited_for_whatever_became_of_its_disk: 1,
    who_was_killed_before_the_last_leader_is_forgotten: 1,
    who_is_in_sync_on_a_new_disk_is_still_on_the_lost_one: 967,
}
"""The mistakes with a disk that is emptied, each with a seed that finds it."""


def who_was_in_sync_last_is_forgotten_with_the_level(patch: Patch) -> None:
    """As by Kafka's controllers: nobody leads, until somebody elects uncleanly."""
    eligible, heirs_of = partition_change.still_eligible, partition_change.heirs_of
    patch.setattr(partition_change, "still_eligible", lambda *about: eligible(*about) if about[3].elr else ())
    patch.setattr(partition_change, "heirs_of", lambda *about: heirs_of(*about) if about[3].elr else ())


LEVELLED: dict[Plant, int] = {who_was_in_sync_last_is_forgotten_with_the_level: 12}
"""A mistake where the level of ELR goes up and down, and a seed that finds it."""
