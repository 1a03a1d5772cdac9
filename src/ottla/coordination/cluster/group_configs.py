"""The configs of a single consumer group, share group or streams group, which override the broker's settings (KIP-848, KIP-932, KIP-1071).

`consumer.assignment.interval.ms` does not exist here,
because the assignment is computed by the heartbeat that requires it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from typing import Annotated, Any, Literal, NamedTuple

from ottla.config import Between, Option, convert, options_of
from ottla.errors import ConfigError
from ottla.model import INT32_MAX
from ottla.settings_class import settings

HEARTBEAT, SESSION = "consumer.heartbeat.interval.ms", "consumer.session.timeout.ms"
SHARE_HEARTBEAT, SHARE_SESSION = "share.heartbeat.interval.ms", "share.session.timeout.ms"
STREAMS_HEARTBEAT, STREAMS_SESSION = "streams.heartbeat.interval.ms", "streams.session.timeout.ms"
RACK_TAGS = "streams.rack.aware.assignment.tags"
OFFSET_RESET = "share.auto.offset.reset"
Span = Annotated[int, Between(1, INT32_MAX)]
ABSENT: Mapping[str, str] = {
    "share.assignment.interval.ms": "this broker assigns with the heartbeat that makes it necessary",
    "streams.assignor.name": "there is one assignor, sticky",
    "consumer.assignment.interval.ms": "this broker assigns with the heartbeat that makes it necessary",
}
"""Prefix of Kafka configs that do not exist here → the reason, for the error."""


@settings
class ConsumerGroupConfig:
    """All configs of a group, with Kafka's defaults."""

    consumer_heartbeat_interval_ms: Span = 5000
    """The interval in which members of the group send heartbeats."""

    consumer_session_timeout_ms: Span = 45_000
    """The time without heartbeats after which a member of the group is removed."""


@settings
class ShareGroupConfigs:
    """The configs of a share group, with Kafka's defaults."""

    errors_deadletterqueue_copy_record_enable: bool = False
    """Copy key, value and headers of a record to the dead letter queue, not only its place."""

    errors_deadletterqueue_topic_name: str = ""
    """The topic to which records that are given up are copied; empty for none. It needs `errors.deadletterqueue.group.enable`."""

    share_auto_offset_reset: str = "latest"
    """The first offset of a new group: `earliest`, `latest`, or `by_duration:` with an ISO 8601 duration, such as `P1D`."""

    share_delivery_count_limit: Span = 5
    """The number of deliveries after which a record that was not accepted is given up."""

    share_heartbeat_interval_ms: Span = 5000
    """The interval in which members of the group send heartbeats."""

    share_isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    """Deliver the records of all transactions, or only of committed ones."""

    share_partition_max_record_locks: Span = 2000
    """The largest number of records of a partition that are in flight."""

    share_record_lock_duration_ms: Span = 30_000
    """The time for which a member has acquired a record; then another one may acquire it."""

    share_renew_acknowledge_enable: bool = True
    """Let members extend that time."""

    share_session_timeout_ms: Span = 45_000
    """The time without heartbeats after which a member of the group is removed."""


@settings
class StreamsGroupConfigs:
    """The configs of a streams group, with Kafka's defaults."""

    streams_assignment_interval_ms: Annotated[int, Between(0, INT32_MAX)] = 1000
    """The shortest time between two assignments of the group."""

    streams_heartbeat_interval_ms: Span = 5000
    """The interval in which members of the group send heartbeats."""

    streams_initial_rebalance_delay_ms: Annotated[int, Between(0, INT32_MAX)] = 3000
    """The time for which the first assignment of the empty group waits for more members."""

    streams_num_standby_replicas: Annotated[int, Between(0, INT32_MAX)] = 0
    """The number of standby tasks for each task with state."""

    streams_rack_aware_assignment_tags: str = ""
    """The client tags in which the processes with copies of a task should differ, with commas between."""

    streams_session_timeout_ms: Span = 45_000
    """The time without heartbeats after which a member of the group is removed."""


OFFSET_RESETS = ("earliest", "latest")
BY_DURATION = "by_duration:"
DURATION = re.compile(r"P(?:(\d+)D)?(?:T(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?")
"""An ISO 8601 duration as Java's Duration reads it, without a sign."""


class ConfigBound(NamedTuple):
    """The default, the minimum and the maximum of a config, from the broker's settings."""

    default: int
    minimum: int
    maximum: int

    def clamp(self, value: int) -> int:
        """Return the nearest allowed value: a stored value may violate limits that were changed later."""
        return min(max(value, self.minimum), self.maximum)


Bounds = Mapping[str, ConfigBound]
"""Dotted name of the config → its limits."""
NO_BOUNDS: Bounds = {name: ConfigBound(1, 1, INT32_MAX) for name in (HEARTBEAT, SESSION)}


@cache
def list_options() -> dict[str, Option]:
    """Return the configs by their dotted names."""
    classes: tuple[Any, ...] = (ConsumerGroupConfig, ShareGroupConfigs, StreamsGroupConfigs)
    return {option.name: option for each in classes for option in options_of(each)}


def find_fault(name: str, value: str) -> str | None:
    """Return the error of an invalid config; None if it is valid."""
    option = list_options().get(name)
    if option is None:
        why = next((f": {reason}" for prefix, reason in ABSENT.items() if name.startswith(prefix)), "")
        return f"Unknown group config name: {name}{why}"
    try:
        convert(name, value, option.type)
    except ConfigError as error:
        return str(error)
    if name == OFFSET_RESET and value.lower() not in OFFSET_RESETS and parse_reset_duration(value) is None:
        return f"{name} = {value!r}: expected earliest, latest or by_duration: with a duration such as P1D or PT2H30M"
    if name == RACK_TAGS and len(set(parse_tags(value))) < len(parse_tags(value)):
        return f"{name} = {value!r}: name each tag once"
    return None


def parse_tags(value: str) -> tuple[str, ...]:
    """Return the tags of a list with commas between."""
    return tuple(tag for each in value.split(",") if (tag := each.strip()))


def parse_reset_duration(value: str) -> timedelta | None:
    """Return the duration of `by_duration:PnDTnHnMn.nS`; None if the text is another value or malformed."""
    if not value.lower().startswith(BY_DURATION):
        return None
    found = DURATION.fullmatch(value[len(BY_DURATION) :].upper())
    if found is None or not any(found.groups()):
        return None
    days, hours, minutes, seconds = (float(each or 0) for each in found.groups())
    return timedelta(days=days, hours=hours, minutes=minutes, seconds=seconds)


def find_conflict(changed: Mapping[str, str], configs: Mapping[str, str], bounds: Bounds) -> str | None:
    """Return the error if configs conflict with the broker's settings or with each other; None if they do not."""
    values = find_effective_values(configs, bounds)
    for name, value in changed.items():
        bound = bounds.get(name)
        if bound is None:
            continue
        if int(value) < bound.minimum:
            return f"{name} = {value}: at least {bound.minimum}, by group.{limit_setting('min', name)}"
        if int(value) > bound.maximum:
            return f"{name} = {value}: at most {bound.maximum}, by group.{limit_setting('max', name)}"
    for session, heartbeat in (
        (SESSION, HEARTBEAT),
        (SHARE_SESSION, SHARE_HEARTBEAT),
        (STREAMS_SESSION, STREAMS_HEARTBEAT),
    ):
        if session in values and values[session] <= values[heartbeat]:
            return (
                f"{session} must be greater than {heartbeat}: they would be {values[session]} and {values[heartbeat]}"
            )
    return None


def limit_setting(end: str, name: str) -> str:
    """Return the name of a limit: `consumer.min.session.timeout.ms` for `consumer.session.timeout.ms`."""
    kind, _, rest = name.partition(".")
    return f"{kind}.{end}.{rest.removeprefix('num.')}"


def find_effective_values(configs: Mapping[str, str], bounds: Bounds) -> dict[str, int]:
    """Return the effective value of every config of a group that sets `configs`."""
    return {
        name: bound.clamp(int(configs[name])) if name in configs else bound.default for name, bound in bounds.items()
    }
