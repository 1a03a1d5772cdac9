"""The settings of a share consumer, with Kafka's names. Values only."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal

from ottla.client.config.common_config import CommonConfig, Millis, read_client_settings
from ottla.client.consumer.config import Deserializer
from ottla.config import Between
from ottla.errors import ConfigError
from ottla.settings_class import settings

AUTOMATIC = "omit it: a share group has no such setting in its members"
UNSUPPORTED: Mapping[str, str] = {
    "auto.offset.reset": "set share.auto.offset.reset of the group, with `ottla configs alter --group`",
    "enable.auto.commit": "set share.acknowledgement.mode, implicit or explicit",
    "isolation.level": "set share.isolation.level of the group, with `ottla configs alter --group`",
    "group.protocol": "omit it: ShareConsumer has one protocol",
    "group.instance.id": AUTOMATIC,
    "group.remote.assignor": AUTOMATIC,
    "partition.assignment.strategy": AUTOMATIC,
    "interceptor.classes": AUTOMATIC,
    "session.timeout.ms": "set share.session.timeout.ms of the group, with `ottla configs alter --group`",
    "heartbeat.interval.ms": "set share.heartbeat.interval.ms of the group, with `ottla configs alter --group`",
}
"""Settings of a consumer that a share consumer does not have, with the remedy (KIP-932)."""


@settings
class ShareConsumerConfig(CommonConfig):
    """Settings of a share consumer."""

    group_id: str | None = None
    """The share group. Its members receive different records of the subscribed topics, also of the same partition."""

    share_acknowledgement_mode: Literal["implicit", "explicit"] = "implicit"
    """`implicit`: the next `poll`, `commit` or `commit_async` accepts the records of the last `poll`. `explicit`: the
    program acknowledges each record before the next `poll`.
    """

    share_acquire_mode: Literal["batch_optimized", "record_limit"] = "batch_optimized"
    """`batch_optimized`: the broker acquires whole record batches, so it may acquire more than `max.poll.records`.
    `record_limit`: it acquires at most `max.poll.records` (KIP-1206), which needs Kafka 4.2 or Ottla.
    """

    max_poll_records: Annotated[int, Between(1)] = 500
    """The most records that one `poll` returns. Records acquired beyond this number are returned by the next `poll`;
    their locks are running meanwhile.
    """

    max_poll_interval_ms: Annotated[int, Between(1)] = 300_000
    """The longest time between two calls of `poll`. A member that exceeds it leaves the group, logs a warning, and
    joins again at the next `poll`.
    """

    fetch_min_bytes: Annotated[int, Between(0)] = 1
    """The broker delays its response until this many bytes are available, or `fetch.max.wait.ms` has passed."""

    fetch_max_wait_ms: Millis = 500
    """The longest time that the broker delays its response."""

    fetch_max_bytes: Annotated[int, Between(0)] = 52_428_800
    """The approximate limit of bytes in one response; a first batch that is larger is returned whole."""

    client_rack: str = ""
    """The rack of this consumer, named as in the brokers' `broker.rack`."""

    check_crcs: bool = True
    """If true, the CRC of each batch is checked."""

    default_api_timeout_ms: Millis = 60_000
    """The timeout of a call without its own timeout, the time for which an acknowledgement is retried, and the time
    after which `poll` raises if no broker was ever reached.
    """

    allow_auto_create_topics: bool = True
    """If true, a metadata request may create a topic, if the broker allows it."""

    key_deserializer: Deserializer | None = None
    """Converts the bytes of a key to `record.key`. None: bytes."""

    value_deserializer: Deserializer | None = None
    """Converts the bytes of a value to `record.value`. None: bytes."""

    statistics_interval_ms: Millis = 0
    """How often `on.statistics` is called. 0: never."""

    on_statistics: Callable[[Any], Any] | None = None
    """A function that is called with the result of `metrics()` every `statistics.interval.ms`, within `poll` on the
    polling thread; later if the program does not poll.
    """

    def __post_init__(self) -> None:
        if self.group_id == "":
            raise ConfigError("group.id is empty: set a group name")


def read_share_consumer_settings(
    settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> ShareConsumerConfig:
    """Return the settings of a share consumer. Raises ConfigError for settings that share groups do not have."""
    for name in [*(settings if isinstance(settings, Mapping) else ()), *keywords]:
        dotted = str(name).replace("_", ".")
        if dotted in UNSUPPORTED:
            raise ConfigError(f"{dotted}: not supported by a share consumer; {UNSUPPORTED[dotted]}")
    return read_client_settings(ShareConsumerConfig, "share consumer", {}, settings, keywords)
