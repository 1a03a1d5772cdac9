"""The change of one partition: leader, ISR, ELR and replicas after an event (KIP-455, KIP-966). Pure.

Every change of a partition is decided by `decide_change`. The caller states what it wants (another ISR, another set
of replicas, an election); the function derives the rest, in this order:

1. If every new replica of a reassignment is in the ISR, the reassignment is completed and the old replicas are removed.
2. If the ISR becomes smaller than `min.insync.replicas`, the replicas that leave it join the ELR (`find_elr`). They have
   every committed record, because nothing is acknowledged while the ISR is too small. The ELR is cleared when the ISR
   is large enough again.
3. A leader is elected from the ISR, or, if that is empty, from the ELR. Otherwise from `last_known_elr`, or with an
   unclean election from any active replica; both may lose records, so the new leader starts in recovery.

The result is a record with the fields that change, or None.

The leader epoch increases with each new leader, and when replicas are removed, so that a removed replica cannot
continue with its old metadata. The partition epoch increases with each record.

Differences from Kafka:

* A replica that a completed reassignment removes is not added to the ELR.
* The ELR is also cleared if the elected leader alone satisfies `min.insync.replicas`.
* A partition that never had a leader has no last known leader.
* `last_known_elr` also has the replicas that were complete when their processes were killed. One of them can be elected
  if the disk of the last leader is lost (decision 0106).
* The ELR of a partition with an empty ISR is kept when the feature is switched off.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from enum import Enum
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct, field

from ottla.coordination.cluster.records import NO_LEADER, SAME_LEADER, PartitionChangeRecord
from ottla.coordination.cluster.topic import ANY_DIRECTORY, PartitionState
from ottla.coordination.controller.reassignment import (
    PartitionReplicas,
    complete_reassignment,
    exclude_replicas,
    read_replicas,
)

RECOVERED, RECOVERING = 0, 1
"""`leader_recovery_state`.

A leader that was not in the ISR or ELR is in recovery until it reports with AlterPartition that it is done.
"""
NO_CHANGE = -1


class ElectionType(Enum):
    """The rules for the election of a leader."""

    ONLINE = "online"
    """Keep the leader while it is eligible; else elect the first eligible replica."""
    PREFERRED = "preferred"
    """Elect the first replica if it is eligible."""
    UNCLEAN = "unclean"
    """Any active replica if ONLINE finds none. Committed records may be lost."""


class RequestedChange(Struct, frozen=True):
    """The requested change of a partition; None leaves a field as it is."""

    election: ElectionType = ElectionType.ONLINE
    isr: tuple[int, ...] | None = None
    replicas: PartitionReplicas | None = None
    """The replicas after a reassignment was started or cancelled. `isr` takes precedence over the ISR in it."""
    leader_recovery_state: int | None = None
    incomplete: Collection[int] = ()
    """Brokers that stopped without a flush, so that the end of their logs may be missing."""
    empty: Collection[int] = ()
    """Brokers of `incomplete` without the directory of the replica, so that all of it is lost.

    They are not elected as last known leaders.
    """
    directories: Mapping[int, UUID] = field(default_factory=dict)
    """Broker → new directory of its replica."""


class ElectionRules(NamedTuple):
    """The configuration and the metadata that the decision depends on."""

    can_lead: Callable[[int], bool]
    """Returns true if the broker is active and the directory of its replica is online."""
    min_isr: int
    is_elr_enabled: bool
    """True if replicas outside the ISR may be eligible (`eligible.leader.replicas.version` is 1)."""
    choose_directory: Callable[[int], UUID] = lambda broker: ANY_DIRECTORY
    """Returns the directory for a new replica on a broker."""


class ElectionResult(NamedTuple):
    """The elected leader, and true if the election may lose committed records."""

    leader: int
    is_unclean: bool = False


def decide_change(
    topic_id: UUID, state: PartitionState, wanted: RequestedChange, rules: ElectionRules
) -> PartitionChangeRecord | None:
    """Return the record of the change; None if nothing changes."""
    target = complete_reassignment(apply_request(state, wanted))
    elr = find_elr(state, target, wanted, rules)
    last_known = find_last_known_leaders(state, target, wanted, rules)
    elected = elect_leader(state, target, elr, last_known, wanted.election, rules)
    if elected.is_unclean or elected.leader in elr:
        target = target._replace(isr=(elected.leader,))
    if elected.is_unclean or len(target.isr) >= (rules.min_isr if rules.is_elr_enabled else 1):
        elr = ()  # From now on records are acknowledged that the ELR does not have.
    if not target.isr and not rules.is_elr_enabled:
        # Without ELRs, the last ISR is the only record of the eligible replicas.
        target = target._replace(isr=state.isr)
    leader = find_leader_field(state, target, elected)
    directories = list_directories(state, target, wanted, rules)
    record = PartitionChangeRecord(
        state.index,
        topic_id,
        isr=changed_or_none(target.isr, state.isr),
        leader=leader,
        replicas=changed_or_none(target.replicas, state.replicas),
        removing_replicas=changed_or_none(target.removing, state.removing_replicas),
        adding_replicas=changed_or_none(target.adding, state.adding_replicas),
        leader_recovery_state=find_recovery_field(state, wanted, elected.is_unclean),
        directories=None if directories == state.directories else directories,
        eligible_leader_replicas=changed_or_none(exclude_replicas(elr, target.isr), state.elr),
        last_known_elr=find_last_known_field(state, target, elr, last_known, elected, rules),
    )
    return None if record == PartitionChangeRecord(state.index, topic_id) else record


def apply_request(state: PartitionState, wanted: RequestedChange) -> PartitionReplicas:
    """Return the requested replicas and ISR, before anything is derived from them."""
    target = read_replicas(state) if wanted.replicas is None else wanted.replicas
    return target if wanted.isr is None else target._replace(isr=wanted.isr)


def find_elr(
    state: PartitionState, target: PartitionReplicas, wanted: RequestedChange, rules: ElectionRules
) -> tuple[int, ...]:
    """Return the new ELR: replicas outside the ISR that have every committed record.

    They left the ISR while it was too small, so nothing was acknowledged since.
    """
    if (
        not rules.is_elr_enabled
    ):  # The feature was switched off while the ISR was empty: only these are known to be complete.
        return (
            () if state.isr else exclude_replicas([each for each in state.elr if each in target.replicas], target.isr)
        )
    candidates = (set(state.elr) | set(state.isr)) & set(target.replicas)
    return exclude_replicas(sorted(candidates), {*target.isr, *wanted.incomplete})


def find_last_known_leaders(
    state: PartitionState, target: PartitionReplicas, wanted: RequestedChange, rules: ElectionRules
) -> tuple[int, ...]:
    """Return the replicas to elect if the ISR and the ELR are empty, the first one first.

    The first is the last leader, as in Kafka. It is followed by the replicas that were complete when they were killed
    while the ISR was too small, for the case that the last leader has lost its log: nothing was acknowledged without
    them.
    """
    if len(target.isr) >= (rules.min_isr if rules.is_elr_enabled else 1) or (state.isr and not rules.is_elr_enabled):
        return ()
    last = (state.leader,) if rules.is_elr_enabled and not target.isr and state.leader != NO_LEADER else ()
    killed = (each for each in (*state.isr, *state.elr) if rules.is_elr_enabled and each in wanted.incomplete)
    known = dict.fromkeys((*last, *state.last_known_elr, *killed))
    return exclude_replicas([each for each in known if each in target.replicas], {*target.isr, *wanted.empty})


def elect_leader(
    state: PartitionState,
    target: PartitionReplicas,
    elr: tuple[int, ...],
    last_known: tuple[int, ...],
    election: ElectionType,
    rules: ElectionRules,
) -> ElectionResult:
    """Return the leader after the change.

    The present one stays if it is eligible and the preferred one is not requested.
    """
    able = [each for each in target.replicas if each in (target.isr or elr) and rules.can_lead(each)]
    if election is ElectionType.PREFERRED and target.replicas[0] in able:
        return ElectionResult(target.replicas[0])
    if state.leader in able:
        return ElectionResult(state.leader)
    if able:
        return ElectionResult(able[0])
    return elect_unclean_leader(target, elr, last_known, election, rules)


def elect_unclean_leader(
    target: PartitionReplicas,
    elr: tuple[int, ...],
    last_known: tuple[int, ...],
    election: ElectionType,
    rules: ElectionRules,
) -> ElectionResult:
    """Elect a replica that may lack committed records.

    This is the first last known leader if it is active, else, in an unclean election, any active replica.
    """
    candidates = list(last_known[:1]) if not elr and not target.isr else []
    if election is ElectionType.UNCLEAN:
        candidates += target.replicas
    living = next(filter(rules.can_lead, candidates), None)
    return ElectionResult(NO_LEADER) if living is None else ElectionResult(living, True)


def find_leader_field(state: PartitionState, target: PartitionReplicas, elected: ElectionResult) -> int:
    """Return the leader field of the record. A leader other than SAME_LEADER starts a new leader epoch."""
    starts_epoch = (
        elected.is_unclean or elected.leader != state.leader or not set(state.replicas) <= set(target.replicas)
    )
    return elected.leader if starts_epoch else SAME_LEADER


def find_recovery_field(state: PartitionState, wanted: RequestedChange, is_unclean: bool) -> int:
    """Return the `leader_recovery_state` field of the record."""
    requested = state.leader_recovery_state if wanted.leader_recovery_state is None else wanted.leader_recovery_state
    after = RECOVERING if is_unclean else requested
    return NO_CHANGE if after == state.leader_recovery_state else after


def find_last_known_field(
    state: PartitionState,
    target: PartitionReplicas,
    elr: tuple[int, ...],
    last_known: tuple[int, ...],
    elected: ElectionResult,
    rules: ElectionRules,
) -> tuple[int, ...] | None:
    """Return the `last_known_elr` field of the record; None if it does not change."""
    if elected.is_unclean and (not rules.is_elr_enabled or len(target.isr) >= rules.min_isr):
        last_known = ()  # From now on records are acknowledged that only the elected leader has.
    elif elected.is_unclean:
        # The leader alone acknowledges nothing, so the others stay as complete as it is.
        last_known = exclude_replicas(last_known, target.isr)
    elif elected.leader != NO_LEADER:
        last_known = exclude_replicas(last_known, {*target.isr, *elr})
    return changed_or_none(last_known, state.last_known_elr)


def list_directories(
    state: PartitionState, target: PartitionReplicas, wanted: RequestedChange, rules: ElectionRules
) -> tuple[UUID, ...]:
    """Return the directories of the replicas, in the order of the replicas."""
    known = {**dict(zip(state.replicas, state.directories, strict=True)), **wanted.directories}
    return tuple(known[each] if each in known else rules.choose_directory(each) for each in target.replicas)


def changed_or_none(value: tuple[int, ...], present: tuple[int, ...]) -> tuple[int, ...] | None:
    """Return the value, or None if it equals the present one."""
    return None if value == present else value
