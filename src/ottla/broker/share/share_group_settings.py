"""The settings of one share group, from its configs and the broker's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping

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


class ShareSettings:
    """The settings of all share groups, computed again when the configs of the broker or of a group have changed."""

    def __init__(
        self,
        config: Callable[[], BrokerConfig],
        group_configs: Callable[[], Mapping[str, Mapping[str, str]]],
        has_dead_letter_queues: Callable[[], bool],
    ) -> None:
        """`config` and `group_configs` return another object after each change."""
        self._config = config
        self._group_configs = group_configs
        self._has_dead_letter_queues = has_dead_letter_queues
        self._sources: tuple[object, object, bool] = (None, None, False)
        self._known: dict[str, ShareGroupSettings] = {}
        self._defaults: ShareGroupSettings | None = None

    def find(self, group_id: str) -> ShareGroupSettings:
        """Return the settings of a group."""
        config, groups, has_queues = self._config(), self._group_configs(), self._has_dead_letter_queues()
        before = self._sources
        if before[0] is not config or before[1] is not groups or before[2] != has_queues:
            self._sources = config, groups, has_queues
            self._known = {}
            self._defaults = None
        if group_id not in groups:  # not kept by name, because clients choose the names
            if self._defaults is None:
                self._defaults = settings_of(config, {}, has_dead_letter_queues=has_queues)
            return self._defaults
        found = self._known.get(group_id)
        if found is None:
            found = settings_of(config, groups[group_id], has_dead_letter_queues=has_queues)
            self._known[group_id] = found
        return found
