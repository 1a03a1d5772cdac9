"""Groups of other types: share groups, Kafka Streams, Connect.

`groups list --type` lists them. Share groups are described, reset and deleted as well, the others are not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cli.output import echo
from ottla.errors import ErrorCode, KafkaError, OttlaError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, ConsumerGroupDescription, GroupListing, ShareGroupDescription

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
TOOLS = {"streams": "kafka-streams-groups"}
SHARE = "share"


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
    known = {each.group_id for each in admin.list_groups() if each.protocol_type == SHARE}
    return [name for name in names if name in known]


def describe_groups(
    admin: Admin, names: Sequence[str]
) -> tuple[list[ConsumerGroupDescription], list[ShareGroupDescription]]:
    """Return consumer groups and share groups. The types are requested only if a group is not a consumer group."""
    with explain_other_group_types(admin):
        try:
            return list(admin.describe_consumer_groups(names).values()), []
        except KafkaError as error:
            if error.code != ErrorCode.GROUP_ID_NOT_FOUND or not (shared := share_groups_among(admin, names)):
                raise
        others = [name for name in names if name not in shared]
        described = list(admin.describe_consumer_groups(others).values()) if others else []
        return described, list(admin.describe_share_groups(shared).values())


@contextmanager
def explain_other_group_types(admin: Admin) -> Iterator[None]:
    """Replace GROUP_ID_NOT_FOUND by an explanation if the group exists with another type."""
    try:
        yield
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        for each in admin.list_groups():
            if each.protocol_type in TOOLS and repr(each.group_id) in str(error):
                raise OttlaError(
                    f"group {each.group_id!r} is a {each.protocol_type} group; Ottla does not show its members and offsets; "
                    f"use Kafka's {TOOLS[each.protocol_type]}"
                ) from error
        raise
