"""The settings of a consumer, under Kafka's names.

Values only.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Literal

from ottla.client.config import CommonConfig, Millis, read_client_settings
from ottla.config import Between

Deserializer = Callable[[bytes], Any]


@dataclass(frozen=True, kw_only=True)
class ConsumerConfig(CommonConfig):
    """What is fetched, and where reading begins."""

    group_id: str | None = None
    """The consumer group. So far it only gives the client its name: groups are not there yet."""

    auto_offset_reset: Literal["latest", "earliest", "none"] = "latest"
    """Where to begin in a partition without a position, or whose position no longer exists: at its `latest` or
    `earliest` offset, or raise an error (`none`)."""

    fetch_min_bytes: Annotated[int, Between(0)] = 1
    """The broker holds its answer until there are this many bytes, or `fetch.max.wait.ms` is over."""

    fetch_max_wait_ms: Millis = 500
    """How long the broker may hold its answer."""

    fetch_max_bytes: Annotated[int, Between(0)] = 52_428_800
    """About the most bytes in one answer; a first batch that is larger comes whole."""

    max_partition_fetch_bytes: Annotated[int, Between(0)] = 1_048_576
    """About the most bytes per partition in one answer; a first batch that is larger comes whole."""

    max_poll_records: Annotated[int, Between(1)] = 500
    """The most records that one `poll` returns. `poll_arrow` has a limit in bytes of its own."""

    check_crcs: bool = True
    """Whether damage to records is looked for."""

    default_api_timeout_ms: Millis = 60_000
    """How long a call that has no timeout of its own may take, and how long `poll` puts up with never having reached
    a broker."""

    allow_auto_create_topics: bool = True
    """Whether asking about a topic may create it, if the broker is willing."""

    key_deserializer: Deserializer | None = None
    """Turns the bytes of a key into what `record.key` is. None: bytes."""

    value_deserializer: Deserializer | None = None
    """Turns the bytes of a value into what `record.value` is. None: bytes."""

    isolation_level: Literal["read_uncommitted", "read_committed"] = "read_uncommitted"
    """Whether records of open and aborted transactions are seen, or only of committed ones. Ottla's own broker has no
    transactions yet; Apache Kafka has."""

    enable_auto_commit: Literal[False] = False
    """Whether positions are committed in the background. Only false so far; Kafka's default is true."""

    @property
    def isolation_number(self) -> int:
        """`isolation.level` as it travels."""
        return 1 if self.isolation_level == "read_committed" else 0


GROUPS = "consumer groups are not there yet; use assign()"
NOT_YET: Mapping[str, str] = dict.fromkeys(
    (
        "auto.commit.interval.ms",
        "exclude.internal.topics",
        "group.instance.id",
        "group.protocol",
        "group.remote.assignor",
        "heartbeat.interval.ms",
        "max.poll.interval.ms",
        "partition.assignment.strategy",
        "session.timeout.ms",
    ),
    GROUPS,
)


def read_consumer_settings(settings: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> ConsumerConfig:
    """The settings of a consumer."""
    return read_client_settings(ConsumerConfig, NOT_YET, settings, keywords)
