"""The replicas of new partitions: validation of an assignment, automatic placement, and the PartitionRecord."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ottla.coordination.cluster.records import PartitionRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.placement import UsableBroker, stripe_partitions
from ottla.errors import ErrorCode


def place_partitions(draft: ClusterDraft, partitions: int, replication_factor: int) -> list[tuple[int, ...]]:
    """Return the replicas for new partitions. Raise Refusal if there are too few usable brokers."""
    return stripe_partitions(usable_brokers(draft), partitions, replication_factor, draft.random_values.seed)


def usable_brokers(draft: ClusterDraft) -> list[UsableBroker]:
    """Return the brokers that get new replicas without an explicit assignment."""
    return [
        UsableBroker(number, each.rack, each.fenced)
        for number, each in sorted(draft.registrations.items())
        if each.can_get_replicas
    ]


def check_assignment(draft: ClusterDraft, replicas: Sequence[int], replication_factor: int | None) -> None:
    """Raise Refusal if the assignment is empty, has unknown, cordoned or repeated brokers, or not `replication_factor` brokers."""
    fault = None
    unknown = [broker for broker in sorted(replicas) if broker not in draft.registrations]
    closed = [
        broker
        for broker in sorted(replicas)
        if broker not in unknown and not draft.registrations[broker].can_get_replicas
    ]
    if not replicas:
        fault = "a partition is assigned to no broker"
    elif unknown:
        fault = f"a partition is assigned to broker {unknown[0]}, and there is none of that number"
    elif closed:
        fault = f"a partition is assigned to broker {closed[0]}, and all its directories are cordoned: shorten its cordoned.log.dirs first"
    elif len(set(replicas)) < len(replicas):
        fault = f"the assignment {list(replicas)} names a broker twice"
    elif replication_factor is not None and len(replicas) != replication_factor:
        fault = f"the assignment {list(replicas)} makes a partition of {len(replicas)} copies, others have {replication_factor}"
    if fault:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)


def check_active(draft: ClusterDraft, index: int, replicas: Sequence[int]) -> None:
    """Raise Refusal if no assigned broker is active: the partition would have no leader."""
    if not any(map(draft.is_active, replicas)):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"partition {index} would have no leader: each of its brokers {list(replicas)} is fenced or shutting down",
        )


def build_partition_record(draft: ClusterDraft, topic_id: UUID, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """Return the record of a new partition. Its ISR is every active replica, because all of them are empty."""
    isr = [broker for broker in replicas if draft.is_active(broker)]
    directories = [draft.choose_directory(broker) for broker in replicas]
    return PartitionRecord(
        index, topic_id, list(replicas), isr, leader=isr[0], leader_epoch=0, partition_epoch=0, directories=directories
    )
