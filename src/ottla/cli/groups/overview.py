"""The rows of `ottla groups list --long`: type, state, members and lag of each group."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ottla.cli.groups.kinds import SHARE, STREAMS
from ottla.cli.groups.positions import committed_and_ends, lags_of, streams_committed_and_ends

if TYPE_CHECKING:
    from ottla.client.admin import Admin, GroupListing
    from ottla.model import OffsetAndMetadata, TopicPartition

COLUMNS = ("GROUP", "TYPE", "STATE", "MEMBERS", "LAG")


def overview_rows(admin: Admin, listings: Sequence[GroupListing]) -> list[tuple[Any, ...]]:
    """Return a row per group. Groups of other protocols, such as Connect's, have no known members and lag."""
    from ottla.client.admin.group_calls import CONSUMER_PROTOCOL_TYPES  # already imported by the listing

    consumers = [each.group_id for each in listings if each.protocol_type in CONSUMER_PROTOCOL_TYPES]
    shared, streams = ([each.group_id for each in listings if each.protocol_type == kind] for kind in (SHARE, STREAMS))
    members_and_lag: dict[str, tuple[int, int | None]] = {}
    for group in admin.describe_consumer_groups(consumers).values() if consumers else ():
        committed, ends = committed_and_ends(admin, group)
        members_and_lag[group.group_id] = (len(group.members), total_lag(committed, ends))
    for name, share_group in (admin.describe_share_groups(shared) if shared else {}).items():
        lags = (each.lag for each in admin.list_share_group_offsets(name).values())
        members_and_lag[name] = (len(share_group.members), sum_of_known(lags))
    for name, streams_group in (admin.describe_streams_groups(streams) if streams else {}).items():
        committed, ends = streams_committed_and_ends(admin, streams_group)
        members_and_lag[name] = (len(streams_group.members), total_lag(committed, ends))
    return [
        (each.group_id, each.type, each.state, *members_and_lag.get(each.group_id, (None, None))) for each in listings
    ]


def total_lag(committed: Mapping[TopicPartition, OffsetAndMetadata], ends: Mapping[TopicPartition, int]) -> int | None:
    """Return the lag of all committed partitions together; None if none is known."""
    return sum_of_known(lags_of(committed, committed, ends).values())


def sum_of_known(lags: Iterable[int | None]) -> int | None:
    """Return the sum of the known lags; None if none is known."""
    known = [lag for lag in lags if lag is not None]
    return sum(known) if known else None
