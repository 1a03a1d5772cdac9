"""Groups that are not of consumers: share groups, those of Kafka Streams and of Connect. They are listed where asked for, and not described."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from ottla.cli.output import echo
from ottla.errors import ErrorCode, KafkaError, OttlaError

if TYPE_CHECKING:
    from ottla.client.admin import Admin, GroupListing

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
TOOLS = {"share": "kafka-share-groups", "streams": "kafka-streams-groups"}


def of_consumers(found: Sequence[GroupListing]) -> list[GroupListing]:
    """Return the consumer groups; write the types of the others to standard error."""
    from ottla.client.admin.group_calls import OF_CONSUMERS  # loaded by now, for they were listed

    others = Counter(each.protocol_type for each in found if each.protocol_type not in OF_CONSUMERS)
    if others:
        counted = ", ".join(f"{count} {kind}" for kind, count in sorted(others.items()))
        echo(f"not shown are groups of other kinds: {counted} (--type lists share and streams)", err=True)
    return [each for each in found if each.protocol_type in OF_CONSUMERS]


@contextmanager
def kinds_told(admin: Admin) -> Iterator[None]:
    """A group of another kind is said to be that, and not that there is none."""
    try:
        yield
    except KafkaError as error:
        if error.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise
        for each in admin.list_groups():
            if each.protocol_type in TOOLS and repr(each.group_id) in str(error):
                raise OttlaError(
                    f"group {each.group_id!r} is a {each.protocol_type} group, whose members and offsets Ottla does not "
                    f"show; Kafka's {TOOLS[each.protocol_type]} does"
                ) from error
        raise
