"""The settings of one share group, from its configs and the broker's settings."""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct

from ottla.broker.settings.config import BrokerConfig
from ottla.coordination.cluster.group_configs import find_effective_values
from ottla.coordination.share.events import ShareLimits

EARLIEST, LATEST = "earliest", "latest"


class ShareGroupSettings(Struct, frozen=True):
    """The settings of a group."""

    limits: ShareLimits
    offset_reset: str
    reads_committed: bool
    may_renew: bool
    dead_letter_topic: str
    """The topic for records that are given up; empty for none."""
    copies_records: bool
    """True if key, value and headers are copied to the dead letter queue."""


def settings_of(config: BrokerConfig, own: Mapping[str, str], *, has_dead_letter_queues: bool) -> ShareGroupSettings:
    """Return the settings of a group with these configs."""
    values = find_effective_values(own, config.group_bounds())
    topic = own.get("errors.deadletterqueue.topic.name", "") if has_dead_letter_queues else ""
    limits = ShareLimits(
        values["share.partition.max.record.locks"],
        values["share.delivery.count.limit"],
        values["share.record.lock.duration.ms"] / 1000,
        has_dead_letter_queue=bool(topic),
    )
    return ShareGroupSettings(
        limits,
        own.get("share.auto.offset.reset", LATEST).lower(),
        own.get("share.isolation.level", "read_uncommitted").lower() == "read_committed",
        own.get("share.renew.acknowledge.enable", "true").lower() == "true",
        topic,
        own.get("errors.deadletterqueue.copy.record.enable", "false").lower() == "true",
    )
