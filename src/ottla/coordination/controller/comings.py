"""What it means for partitions that a broker comes, goes, or loses a directory: the records of it, in Kafka's order.

Who goes is taken out of sync before it is said to be gone, who comes is said to be there before it leads: at no record of the log is
a fenced broker a leader.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from uuid import UUID

from ottla.coordination.cluster.features import METADATA_VERSION
from ottla.coordination.cluster.node_records import BrokerRegistrationChangeRecord, UnregisterBrokerRecord
from ottla.coordination.cluster.topic import MIGRATING, PartitionState
from ottla.coordination.controller.draft import UNASSIGNED, ClusterDraft, leaderless
from ottla.coordination.controller.partition_change import Wanted
from ottla.coordination.controller.reassignment import without

CORDONED_SINCE = 30
"""The metadata.version from which on brokers say which directories are cordoned."""


def fence(draft: ClusterDraft, broker: int, silent: Collection[int] = ()) -> None:
    """It is not to be used until it is let in again. Who is silent too, and will be fenced next, does not lead in its place."""
    registered = draft.registrations[broker]
    if not registered.fenced:
        take_out(draft, broker, silent=silent)
        draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, fenced=1))


def unfence(draft: ClusterDraft, broker: int) -> None:
    """It is to be used, and leads at once what nobody leads and it may."""
    draft.write(BrokerRegistrationChangeRecord(broker, draft.registrations[broker].epoch, fenced=-1))
    for topic, state in draft.partitions():
        if leaderless(state) and broker in state.replicas:
            draft.change(topic, state, Wanted(draft.election(topic)))


def begin_shutdown(draft: ClusterDraft, broker: int) -> None:
    """It wants to go: others lead what it leads, as far as there are others."""
    registered = draft.registrations[broker]
    if not registered.in_controlled_shutdown:
        draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, in_controlled_shutdown=1))
    take_out(draft, broker)


def restart(draft: ClusterDraft, broker: int, clean: bool, directories: Collection[UUID]) -> None:
    """It has been stopped and started; what it had not forced to the disk is lost, if its stop was not clean.

    So are copies in other directories than it has now.
    """
    take_out(draft, broker, lost=draft.elr and not clean, left=directories)


def unregister(draft: ClusterDraft, broker: int) -> None:
    """It is gone for good, and so are its copies."""
    take_out(draft, broker, lost=draft.elr, left=())
    draft.write(UnregisterBrokerRecord(broker, draft.registrations[broker].epoch))


def take_out(
    draft: ClusterDraft,
    broker: int,
    lost: bool = False,
    silent: Collection[int] = (),
    left: Collection[UUID] | None = None,
) -> None:
    """It is in sync nowhere any more. What is lost may not lead either, though it was in sync last.

    `left` are the directories that it still has, where one may be missing.
    """
    for topic, state in draft.partitions():
        gone = (broker,) if lost and left is not None and lies_elsewhere(state, broker, left) else ()
        if broker in state.isr or (lost and broker in state.elr) or (gone and broker in state.last_known_elr):
            isr = without(state.isr, (broker,))
            wanted = Wanted(draft.election(topic), isr=isr, lost=(broker,) if lost else (), gone=gone)
            draft.change(topic, state, wanted, absent=(broker, *silent))


def lies_elsewhere(state: PartitionState, broker: int, directories: Collection[UUID]) -> bool:
    """Whether a copy lay in none of these; the only one of a partition begins anew wherever it is."""
    if broker not in state.replicas or len(state.replicas) == 1:
        return False
    place = state.directories[state.replicas.index(broker)]
    return place not in (UNASSIGNED, MIGRATING) and place not in directories


def lose_directories(draft: ClusterDraft, broker: int, offline: Sequence[UUID]) -> None:
    """Its copies in these directories are gone as if the broker were."""
    registered = draft.registrations[broker]
    gone = set(offline) & set(registered.log_dirs)
    if not gone:
        return
    for topic, state in draft.partitions():
        if gone & {place for each, place in zip(state.replicas, state.directories, strict=True) if each == broker}:
            wanted = Wanted(draft.election(topic), isr=without(state.isr, (broker,)))
            draft.change(topic, state, wanted, absent=(broker,))
    left = [each for each in registered.log_dirs if each not in gone]
    draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, log_dirs=left))


def cordon(draft: ClusterDraft, broker: int, cordoned: Sequence[UUID] | None) -> None:
    """In these directories nothing is put unless somebody says so (KIP-1066); None says nothing of it."""
    registered = draft.registrations[broker]
    present = registered.cordoned_log_dirs
    if cordoned is None or draft.metadata.features.get(METADATA_VERSION, 0) < CORDONED_SINCE:
        return
    if present is None or set(cordoned) != set(present):
        draft.write(BrokerRegistrationChangeRecord(broker, registered.epoch, cordoned_log_dirs=list(cordoned)))
