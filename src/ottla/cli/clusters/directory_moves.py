"""Show and start moves of replicas to another directory of their broker."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.cli.clusters.move_plan import ANYWHERE, PlannedMove
from ottla.cli.consent import confirm
from ottla.cli.output import echo
from ottla.cli.tables import format_table
from ottla.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, TopicPartitionReplica
    from ottla.model import TopicPartition

DIRECTORIES = ("PARTITION", "BROKER", "FROM", "TO")
Wanted = Mapping[tuple["TopicPartition", int], str]


def named_directories(plan: Mapping[TopicPartition, PlannedMove]) -> dict[tuple[TopicPartition, int], str]:
    """Return the directories that a plan names, by partition and broker."""
    return {
        (tp, broker): directory
        for tp, move in plan.items()
        for broker, directory in zip(move.replicas, move.directories, strict=True)
        if directory != ANYWHERE
    }


def move_directories(admin: Admin, wanted: Wanted, *, agreed: bool, in_json: bool) -> list[tuple[object, ...]]:
    """Move replicas to the given directories and return the rows of the moves.

    A broker without the replica remembers the directory and creates the replica there.
    """
    from ottla.client.admin import TopicPartitionReplica
    from ottla.model import TopicPartition

    replicas = {TopicPartitionReplica(*tp, broker): directory for (tp, broker), directory in wanted.items()}
    if not replicas:
        return []
    now = admin.describe_replica_log_dirs(replicas)
    rows: list[tuple[object, ...]] = [
        (TopicPartition(each.topic, each.partition), each.broker_id, now[each].current_replica_log_dir, to)
        for each, to in sorted(replicas.items())
        if to != (now[each].future_replica_log_dir or now[each].current_replica_log_dir)
    ]
    if not rows:
        echo("no replica is moved to another directory: all are in place or on their way", err=True)
        return []
    echo(format_table(DIRECTORIES, rows), err=in_json)
    confirm("Begin?", agreed=agreed)
    start_moves(admin, replicas)
    return rows


def start_moves(admin: Admin, replicas: Mapping[TopicPartitionReplica, str]) -> None:
    """Request the moves one by one, so that a missing replica does not prevent the others."""
    for replica, directory in replicas.items():
        try:
            admin.alter_replica_log_dirs({replica: directory})
        except KafkaError as error:
            if error.code != ErrorCode.REPLICA_NOT_AVAILABLE:
                raise
