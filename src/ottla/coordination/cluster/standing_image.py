"""The metadata as they are at a moment, for whoever needs long to write them down while they go on."""

from __future__ import annotations

from collections.abc import Iterator

from ottla.coordination.cluster.metadata import ClusterMetadata
from ottla.protocol.schema import Message


def standing_image(machine: ClusterMetadata) -> Iterator[Message]:
    """The records of its state of now, whatever becomes of it: values are replaced there and never changed."""
    still = ClusterMetadata()
    still.features, still.controllers = dict(machine.features), dict(machine.controllers)
    still.registrations, still.topics = dict(machine.registrations), dict(machine.topics)
    still.brokers, still.groups, still.others = dict(machine.brokers), machine.groups, dict(machine.others)
    still.subscriptions = machine.subscriptions
    still.acls.by_id, still.quotas.values = dict(machine.acls.by_id), dict(machine.quotas.values)
    still.passwords, still.tokens = dict(machine.passwords), dict(machine.tokens)
    still.foreign, still.next_producer_id = list(machine.foreign), machine.next_producer_id
    return still.records()
