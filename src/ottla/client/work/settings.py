"""The settings of a worker and their validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Any, Protocol

import msgspec

from ottla.client.config.common_config import select_common_settings
from ottla.client.config.synonyms import translate_names
from ottla.client.work.state.backoff import Backoff, checked_backoff
from ottla.client.work.state.schedule import ORDERS, Order
from ottla.errors import ConfigError

CONCURRENCY = 10
"""The default number of calls at a time."""
POLL_RECORDS = 500
"""The default of `max.poll.records`."""
MANAGED = {
    "group.id": "give the group as `group`",
    "enable.auto.commit": "remove it: a worker commits what is finished",
    "share.acknowledgement.mode": "remove it: a worker acknowledges each record itself",
}
"""Settings of the consumer that a worker sets itself, with the remedy."""


class Spans(Protocol):
    """Makes a span around the processing of a record, such as `ottla.opentelemetry.ConsumerSpans`."""

    def process(self, record: Any) -> AbstractContextManager[Any]: ...


class WorkSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The arguments of a worker except its function and the settings of its clients."""

    topics: tuple[str, ...]
    """The topics to read."""
    group: str
    """The consumer group, or the share group."""
    is_share: bool
    """True for a share group."""
    concurrency: int
    """The maximum number of calls of the function at a time."""
    processes: int | None
    """The number of processes that run the function; None for threads or tasks of this process."""
    order: Order
    """Which records keep their order: those with the same key, those of a partition, or none."""
    backoff: Backoff
    """The retries of a failed record."""
    dead_letters: str | None
    """The topic of records that have failed for the last time."""
    time_limit: float | None
    """The maximum duration of one call in seconds."""
    commit_interval_ms: float
    """The minimum time between commits, and about the maximum time until a finished record is committed."""
    drain_seconds: float
    """How long a stop or a rebalance waits for running calls."""
    buffer_records: int
    """The number of unfinished records, divided by the number of partitions, from which on a partition is paused."""
    buffer_bytes: int
    """The bytes of unfinished keys and values from which on all partitions are paused."""
    spans: Spans | None
    """Makes the spans of calls."""

    @property
    def commit_interval(self) -> float:
        """Seconds between commits."""
        return self.commit_interval_ms / 1000


def make_settings(
    topics: str | Iterable[str],
    group: str,
    share: bool,
    concurrency: int | None,
    processes: int | None,
    order: Order | None,
    retries: Backoff | int,
    dead_letters: str | None,
    time_limit: float | None,
    commit_interval_ms: float,
    drain_seconds: float,
    buffer_records: int,
    buffer_bytes: int,
    spans: Spans | None,
) -> WorkSettings:
    """Return the settings. Raises ConfigError for an invalid one."""
    settings = WorkSettings(
        topics=(topics,) if isinstance(topics, str) else tuple(topics),
        group=group,
        is_share=share,
        concurrency=choose_concurrency(concurrency, processes),
        processes=processes,
        order=order or ("none" if share else "key"),
        backoff=checked_backoff(retries),
        dead_letters=dead_letters,
        time_limit=time_limit,
        commit_interval_ms=commit_interval_ms,
        drain_seconds=drain_seconds,
        buffer_records=buffer_records,
        buffer_bytes=buffer_bytes,
        spans=spans,
    )
    for is_wrong, message in INVALID_SETTINGS:
        if is_wrong(settings):
            raise ConfigError(message.format(settings=settings))
    return settings


def choose_concurrency(concurrency: int | None, processes: int | None) -> int:
    """Return the number of calls at a time; each process runs one."""
    if concurrency is None:
        return CONCURRENCY if processes is None else processes
    if processes is not None and processes != concurrency:
        raise ConfigError(
            f"processes={processes!r} with concurrency={concurrency!r}: each process runs one call; leave out concurrency"
        )
    return concurrency


def is_whole(value: object) -> bool:
    """Return True for a whole number from 1 on."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1


INVALID_SETTINGS: tuple[tuple[Callable[[WorkSettings], bool], str], ...] = (
    (
        lambda each: not each.topics,
        "topics is empty: name a topic to read",
    ),
    (
        lambda each: not isinstance(each.group, str) or not each.group,
        "invalid value {settings.group!r} for group: expected the name of the group, such as 'billing'",
    ),
    (
        lambda each: each.order not in ORDERS,
        "invalid value {settings.order!r} for order: expected key, partition or none",
    ),
    (
        lambda each: each.is_share and each.order != "none",
        "order={settings.order!r} with share=True: the records of a key are delivered to several members of a share "
        "group; set order='none', or use a consumer group",
    ),
    (
        lambda each: each.dead_letters in each.topics,
        "dead_letters={settings.dead_letters!r} is one of the topics to read: name another topic",
    ),
    (
        lambda each: each.processes is not None and not is_whole(each.processes),
        "invalid value {settings.processes!r} for processes: expected a whole number from 1 on, or None for threads",
    ),
    (
        lambda each: not is_whole(each.concurrency),
        "invalid value {settings.concurrency!r} for concurrency: expected a whole number from 1 on",
    ),
    (
        lambda each: not is_whole(each.buffer_records),
        "invalid value {settings.buffer_records!r} for buffer_records: expected a whole number from 1 on",
    ),
    (
        lambda each: not is_whole(each.buffer_bytes),
        "invalid value {settings.buffer_bytes!r} for buffer_bytes: expected a whole number from 1 on",
    ),
    (
        lambda each: not each.commit_interval_ms >= 0,
        "invalid value {settings.commit_interval_ms!r} for commit_interval_ms: expected milliseconds from 0 on",
    ),
    (
        lambda each: not each.drain_seconds >= 0,
        "invalid value {settings.drain_seconds!r} for drain_seconds: expected seconds from 0 on",
    ),
    (
        lambda each: each.time_limit is not None and not each.time_limit > 0,
        "invalid value {settings.time_limit!r} for time_limit: expected seconds above 0, or None for no limit",
    ),
)
"""Pairs of a predicate that is true for invalid settings, and the error message."""


def consumer_settings(
    settings: WorkSettings, config: Mapping[str, Any] | None, keywords: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the settings of the worker's consumer, with dotted names. Those of the user precede the defaults.

    A new group starts with the earliest records: what was sent before the first worker has started is not lost.
    """
    given = dotted_settings(config, keywords)
    for name, remedy in MANAGED.items():
        if name in given:
            raise ConfigError(f"{name}: set by the worker; {remedy}")
    if settings.is_share:
        # With whole batches one worker could hold all tasks, while the others have none.
        defaults: dict[str, Any] = {
            "share.acquire.mode": "record_limit",
            "max.poll.records": settings.concurrency,
        }
        return {**defaults, **given, "group.id": settings.group, "share.acknowledgement.mode": "explicit"}
    defaults = {
        "auto.offset.reset": "earliest",
        "max.poll.records": min(POLL_RECORDS, settings.buffer_records),
    }
    if settings.spans is not None and hasattr(settings.spans, "on_consume"):
        given["interceptor.classes"] = [settings.spans, *given.get("interceptor.classes", ())]
    return {**defaults, **given, "group.id": settings.group, "enable.auto.commit": False}


def producer_settings(config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of the producer of dead letters: those of the consumer that all clients have."""
    found = select_common_settings(dotted_settings(config, keywords))
    if "client.id" in found:
        found["client.id"] += "-dead-letters"
    return {**found, "acks": "all"}


def dotted_settings(config: Mapping[str, Any] | None, keywords: Mapping[str, Any]) -> dict[str, Any]:
    """Return all settings of a client under Kafka's dotted names."""
    if config is not None and not isinstance(config, Mapping):
        raise ConfigError(f"config = {config!r}: expected a dict, such as {{'bootstrap.servers': 'localhost:9092'}}")
    merged = {**translate_names(config or {}), **translate_names(keywords)}
    return {name.replace("_", "."): value for name, value in merged.items()}
