"""Copies that move to another directory of their broker: shown, asked for, begun."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from ottla.cli.clusters.move_plan import ANYWHERE, Move
from ottla.cli.consent import ask
from ottla.cli.output import echo
from ottla.cli.tables import aligned
from ottla.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, TopicPartitionReplica
    from ottla.model import TopicPartition

DIRECTORIES = ("PARTITION", "BROKER", "FROM", "TO")
Wanted = Mapping[tuple["TopicPartition", int], str]


def named_directories(plan: Mapping[TopicPartition, Move]) -> dict[tuple[TopicPartition, int], str]:
    """The directories that a plan names, by partition and broker."""
    return {
        (tp, broker): directory
        for tp, move in plan.items()
        for broker, directory in zip(move.replicas, move.directories, strict=True)
        if directory != ANYWHERE
    }


def move_directories(admin: Admin, wanted: Wanted, *, agreed: bool, in_json: bool) -> list[tuple[object, ...]]:
    """Have copies moved to these directories, and say which; a broker that has none yet is told where it is to make it."""
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
        echo("nothing is to be moved to another directory: it is so already, or on its way", err=True)
        return []
    echo(aligned(DIRECTORIES, rows), err=in_json)
    ask("Begin?", agreed=agreed)
    begin(admin, replicas)
    return rows


def begin(admin: Admin, replicas: Mapping[TopicPartitionReplica, str]) -> None:
    """One by one: a copy that is not there yet is no reason to leave the others."""
    for replica, directory in replicas.items():
        try:
            admin.alter_replica_log_dirs({replica: directory})
        except KafkaError as error:
            if error.code != ErrorCode.REPLICA_NOT_AVAILABLE:
                raise
