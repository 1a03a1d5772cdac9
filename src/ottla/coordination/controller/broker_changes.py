"""The records for a broker that starts, stops, is fenced or loses a directory (KIP-631, KIP-858, KIP-966).

The order of the records is Kafka's, so that no prefix of the log has a fenced broker as a leader. Before a broker is
fenced or unregistered, its replicas leave the ISRs and other leaders are elected. A broker is unfenced before it is
elected.

A replica that leaves the ISR may join the ELR if its log is intact: after a clean stop, or while the process may still
be running. After an unclean stop records that were not flushed may be missing, so the replica leaves the ELR too. A
replica in a directory that the new process does not have is lost entirely: it is not elected as the last known leader
either.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from ottla.coordination.cluster.features import METADATA_VERSION
from ottla.coordination.cluster.node_records import BrokerRegistrationChangeRecord, UnregisterBrokerRecord
from ottla.coordination.cluster.topic import MIGRATING, PartitionState
from ottla.coordination.controller.draft import UNASSIGNED, ClusterDraft, has_no_leader
from ottla.coordination.controller.partition_change import RequestedChange
from ottla.coordination.controller.reassignment import exclude_replicas

CORDONED_SINCE = 30
"""The first metadata.version in which the registration of a broker has its cordoned directories (KIP-1066)."""


def fence_broker(draft: ClusterDraft, broker: int, excluded: Collection[int] = ()) -> None:
    """Fence a broker that is not fenced yet, after its replicas have left every ISR.

    The sessions of the `excluded` brokers have expired too. They are fenced next, so they are not elected in its place.
    """
    registered = draft.registrations[broker]
    if not registered.fenced:
        remove_from_isrs(draft, broker, excluded=excluded)
        draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, fenced=1))


def unfence_broker(draft: ClusterDraft, broker: int) -> None:
    """Unfence a broker and elect it for the partitions that have no leader."""
    draft.write(BrokerRegistrationChangeRecord(broker, draft.registrations[broker].epoch, fenced=-1))
    elect_missing_leaders(draft, broker)


def elect_missing_leaders(draft: ClusterDraft, broker: int) -> None:
    """Elect a leader for each partition that has none and has a replica on the broker."""
    for topic, state in draft.partitions():
        if has_no_leader(state) and broker in state.replicas:
            draft.change_partition(topic, state, RequestedChange(draft.find_automatic_election(topic)))


def start_controlled_shutdown(draft: ClusterDraft, broker: int) -> None:
    """Start the controlled shutdown of a broker: its replicas leave the ISRs, and others lead where possible."""
    registered = draft.registrations[broker]
    if not registered.in_controlled_shutdown:
        draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, in_controlled_shutdown=1))
    remove_from_isrs(draft, broker)


def restart_broker(draft: ClusterDraft, broker: int, is_clean: bool, directories: Collection[UUID]) -> None:
    """Write the records for a broker process that was replaced by a new one.

    `is_clean` is true if the previous process stopped cleanly. Otherwise its unflushed records are lost, so its replicas
    also leave the ELRs, and those outside `directories`, the ones of the new process, are lost entirely.
    """
    remove_from_isrs(draft, broker, is_log_incomplete=draft.is_elr_enabled and not is_clean, remaining=directories)


def unregister_broker(draft: ClusterDraft, broker: int) -> None:
    """Unregister a broker. Its replicas count as lost with all their records."""
    remove_from_isrs(draft, broker, is_log_incomplete=draft.is_elr_enabled, remaining=())
    draft.write(UnregisterBrokerRecord(broker, draft.registrations[broker].epoch))


def remove_from_isrs(
    draft: ClusterDraft,
    broker: int,
    is_log_incomplete: bool = False,
    excluded: Collection[int] = (),
    remaining: Collection[UUID] | None = None,
) -> None:
    """Remove a broker from every ISR.

    With `is_log_incomplete`, remove it from the ELRs too, because its log may be incomplete. `excluded` are brokers that must not be
    elected. `remaining` are the directories that the broker still has; a replica in another directory is also removed from
    `last_known_elr`.
    """
    for topic, state in draft.partitions():
        empty = (
            (broker,)
            if is_log_incomplete and remaining is not None and is_in_other_directory(state, broker, remaining)
            else ()
        )
        if (
            broker in state.isr
            or (is_log_incomplete and broker in state.elr)
            or (empty and broker in state.last_known_elr)
        ):
            isr = exclude_replicas(state.isr, (broker,))
            wanted = RequestedChange(
                draft.find_automatic_election(topic),
                isr=isr,
                incomplete=(broker,) if is_log_incomplete else (),
                empty=empty,
            )
            draft.change_partition(topic, state, wanted, absent=(broker, *excluded))


def is_in_other_directory(state: PartitionState, broker: int, directories: Collection[UUID]) -> bool:
    """Return True if the replica was in none of these directories.

    False for the only replica of a partition: it starts empty in any directory, since no other replica could be
    elected.
    """
    if broker not in state.replicas or len(state.replicas) == 1:
        return False
    place = state.directories[state.replicas.index(broker)]
    return place not in (UNASSIGNED, MIGRATING) and place not in directories


def remove_offline_directories(draft: ClusterDraft, broker: int, offline: Sequence[UUID]) -> None:
    """Remove directories that went offline from the registration, and their replicas from the ISRs (KIP-858)."""
    registered = draft.registrations[broker]
    lost = set(offline) & set(registered.log_dirs)
    if not lost:
        return
    for topic, state in draft.partitions():
        if lost & {place for each, place in zip(state.replicas, state.directories, strict=True) if each == broker}:
            wanted = RequestedChange(draft.find_automatic_election(topic), isr=exclude_replicas(state.isr, (broker,)))
            draft.change_partition(topic, state, wanted, absent=(broker,))
    left = [each for each in registered.log_dirs if each not in lost]
    draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, log_dirs=left))


def cordon_directories(draft: ClusterDraft, broker: int, cordoned: Sequence[UUID] | None) -> None:
    """Record the directories that get no new partitions unless a request assigns them (KIP-1066).

    None leaves them unchanged. Ignored below metadata.version 30.
    """
    registered = draft.registrations[broker]
    present = registered.cordoned_log_dirs
    if cordoned is None or draft.metadata.features.get(METADATA_VERSION, 0) < CORDONED_SINCE:
        return
    if present is None or set(cordoned) != set(present):
        draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, cordoned_log_dirs=list(cordoned)))
