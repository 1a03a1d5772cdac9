"""`ottla cluster quorum`: the voters and observers of the metadata log, and their progress."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ottla.cli.clusters.health import describe_silence
from ottla.cli.options import bootstrap_server, json_option, settings_option
from ottla.cli.output import echo
from ottla.cli.tables import as_json, format_table
from ottla.cli.topics import admin_at
from ottla.errors import KafkaTimeoutError, OttlaError

if TYPE_CHECKING:
    from ottla.client.admin import QuorumInfo, QuorumReplicaState

COLUMNS = ("NodeId", "DirectoryId", "LogEndOffset", "Lag", "LastFetchTimestamp", "LastCaughtUpTimestamp", "Status")
SHORT = ("NodeId", "Status", "LogEndOffset", "Lag", "LastFetch", "LastCaughtUp")
"""The columns that fit on a narrow terminal."""


@click.command()
@bootstrap_server
@json_option
@settings_option("client")
def quorum(bootstrap_server: str, in_json: bool, settings: tuple[str, ...]) -> None:
    """Print the voters, the leader, and the progress of each voter and observer of the metadata log."""
    with admin_at(bootstrap_server, settings) as admin:
        nodes = admin.describe_cluster().nodes
        try:
            found = admin.describe_metadata_quorum()
        except KafkaTimeoutError as error:
            raise OttlaError("; ".join(describe_silence(nodes))) from error
    if in_json:
        echo(as_json(COLUMNS, [row_of(found, replica, status) for replica, status in members_of(found)]))
        return
    now = int(time.time() * 1000)
    leader = f"leader {found.leader_id}" if found.leader_id >= 0 else "no leader"
    echo(f"{leader}, epoch {found.leader_epoch}, high watermark {found.high_watermark}\n")
    echo(format_table(SHORT, [short_row(found, replica, status, now) for replica, status in members_of(found)]))


def members_of(found: QuorumInfo) -> Iterator[tuple[QuorumReplicaState, str]]:
    """Yield all voters and observers with their role."""
    for voter in found.voters:
        yield voter, "Leader" if voter.replica_id == found.leader_id else "Follower"
    for observer in found.observers:
        yield observer, "Observer"


def lag_of(found: QuorumInfo, replica: QuorumReplicaState) -> int | None:
    """Return the lag behind the leader in records; None if one of the end offsets is unknown."""
    ends = [each.log_end_offset for each in found.voters if each.replica_id == found.leader_id]
    known = bool(ends) and ends[0] >= 0 and replica.log_end_offset >= 0
    return max(0, ends[0] - replica.log_end_offset) if known else None


def row_of(found: QuorumInfo, replica: QuorumReplicaState, status: str) -> tuple[object, ...]:
    fetched, caught_up = replica.last_fetch_timestamp, replica.last_caught_up_timestamp
    place = (replica.replica_id, replica.replica_directory_id, replica.log_end_offset)
    return (*place, lag_of(found, replica), fetched, caught_up, status)


def short_row(found: QuorumInfo, replica: QuorumReplicaState, status: str, now: int) -> tuple[object, ...]:
    times = (format_age(now, at) for at in (replica.last_fetch_timestamp, replica.last_caught_up_timestamp))
    return (replica.replica_id, status, replica.log_end_offset, lag_of(found, replica), *times)


def format_age(now: int, at: int | None) -> str | None:
    """Return the time since `at` (ms) in words, such as `2 min ago`; None if unknown."""
    if at is None or at < 0:
        return None
    seconds = max(0, now - at) / 1000
    for length, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= length:
            return f"{seconds / length:.0f} {unit} ago"
    return f"{seconds:.1f} s ago"
