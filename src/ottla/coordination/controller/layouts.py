"""Where the copies of new partitions lie, as somebody says or as they are laid out, and the records of that."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from ottla.coordination.cluster.records import PartitionRecord
from ottla.coordination.cluster.topic_request import Refusal
from ottla.coordination.controller.draft import ClusterDraft
from ottla.coordination.controller.placement import UsableBroker, place
from ottla.errors import ErrorCode


def laid_out(draft: ClusterDraft, partitions: int, copies: int) -> list[tuple[int, ...]]:
    """New partitions where they lie best; Refusal where nobody could lead one."""
    return place(usable_brokers(draft), partitions, copies, draft.chance.seed)


def usable_brokers(draft: ClusterDraft) -> list[UsableBroker]:
    """Brokers on which something may be put that nobody has said a place for."""
    return [
        UsableBroker(number, each.rack, each.fenced)
        for number, each in sorted(draft.registrations.items())
        if each.takes_partitions
    ]


def check_assignment(draft: ClusterDraft, replicas: Sequence[int], copies: int | None) -> None:
    """Refuse copies on brokers that are none, twice on one, or other in number than those of the partitions beside it."""
    fault = None
    unknown = [broker for broker in sorted(replicas) if broker not in draft.registrations]
    if not replicas:
        fault = "a partition is assigned to no broker"
    elif unknown:
        fault = f"a partition is assigned to broker {unknown[0]}, and there is none of that number"
    elif len(set(replicas)) < len(replicas):
        fault = f"the assignment {list(replicas)} names a broker twice"
    elif copies is not None and len(replicas) != copies:
        fault = f"the assignment {list(replicas)} makes a partition of {len(replicas)} copies, others have {copies}"
    if fault:
        raise Refusal(ErrorCode.INVALID_REPLICA_ASSIGNMENT, fault)


def check_present(draft: ClusterDraft, index: int, replicas: Sequence[int]) -> None:
    """Refuse a partition that nobody could lead."""
    if not any(map(draft.active, replicas)):
        raise Refusal(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            f"nobody could lead partition {index}: of its brokers {list(replicas)} each is fenced or about to stop",
        )


def partition_record(draft: ClusterDraft, topic_id: UUID, index: int, replicas: Sequence[int]) -> PartitionRecord:
    """A partition that begins: those that are there are in sync, as nothing has been written yet."""
    isr = [broker for broker in replicas if draft.active(broker)]
    directories = [draft.new_directory(broker) for broker in replicas]
    return PartitionRecord(
        index, topic_id, list(replicas), isr, leader=isr[0], leader_epoch=0, partition_epoch=0, directories=directories
    )
