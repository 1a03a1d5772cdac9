"""Groups of other types: share groups, Kafka Streams, Connect.

`groups list --type` lists them. Share groups are described, reset and deleted as well, streams groups are described and deleted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ottla.cli.output import echo
from ottla.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from ottla.client.admin import (
        Admin,
        ConsumerGroupDescription,
        GroupListing,
        ShareGroupDescription,
        StreamsGroupDescription,
    )

STATES = (
    "PreparingRebalance",
    "CompletingRebalance",
    "Stable",
    "Dead",
    "Empty",
    "Assigning",
    "Reconciling",
    "NotReady",
)
TYPES = ("classic", "consumer", "share", "streams")
"""Kafka's names for the states of groups of all types. Brokers return no group for an unknown name."""
SHARE, STREAMS = "share", "streams"


def of_consumers(found: Sequence[GroupListing]) -> list[GroupListing]:
    """Return the consumer groups; write the types of the others to standard error."""
    from ottla.client.admin.group_calls import CONSUMER_PROTOCOL_TYPES  # already imported by the listing

    others = Counter(each.protocol_type for each in found if each.protocol_type not in CONSUMER_PROTOCOL_TYPES)
    if others:
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        echo(f"not shown are groups of other kinds: {counted} (--type lists share and streams)", err=True)
    return [each for each in found if each.protocol_type in CONSUMER_PROTOCOL_TYPES]


def share_groups_among(admin: Admin, names: Sequence[str]) -> list[str]:
    """Return those of the groups that are share groups."""
    return groups_among(admin, names, SHARE)


def groups_among(admin: Admin, names: Sequence[str], kind: str) -> list[str]:
    """Return those of the groups that have a protocol type."""
    known = {each.group_id for each in admin.list_groups() if each.protocol_type == kind}
    return [name for name in names if name in known]


def describe_groups(
    admin: Admin, names: Sequence[str]
) -> tuple[list[ConsumerGroupDescription], list[ShareGroupDescription], list[StreamsGroupDescription]]:
    """Return consumer groups, share groups and streams groups. The types are requested only if a group is not a consumer group."""
    try:
        return list(admin.describe_consumer_groups(names).values()), [], []
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        shared, streams = (groups_among(admin, names, kind) for kind in (SHARE, STREAMS))
        if not shared and not streams:
            raise
    others = [name for name in names if name not in (*shared, *streams)]
    return (
        list(admin.describe_consumer_groups(others).values()) if others else [],
        list(admin.describe_share_groups(shared).values()) if shared else [],
        list(admin.describe_streams_groups(streams).values()) if streams else [],
    )
