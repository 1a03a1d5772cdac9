"""The settings of a processor and their validation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.client.work.state.backoff import Backoff
from ottla.errors import ConfigError

NO_RETRIES = Backoff(0)
MOST_DELAYS = 10_000
"""More retries than these are not added up: their delays are beyond every limit, or nothing."""


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """The arguments of a processor except its clients and its function."""

    topics: tuple[str, ...]
    """The topics to read."""
    to: str | None = None
    """The topic of results that name none."""
    batches: bool = False
    """True if the function is called with the list of records of one poll."""
    arrow: bool = False
    """True if the function is called with a pyarrow Table of these records, and returns tables."""
    include_headers: bool = False
    """True if these tables have a headers column."""
    exactly_once: bool = True
    """True if results and offsets are committed together in transactions; otherwise each record is processed at least
    once.
    """
    commit_interval_ms: float = 100
    """The minimum time between commits, and the longest time until a processed record is committed. After a pause the
    commit follows at once.
    """
    dead_letter_topic: str | None = None
    """The topic of records for which the function raises. Without it the exception ends the processor."""
    name: str = "ottla-process"
    """The name of this processor in the headers of dead letters."""
    retries: Backoff = NO_RETRIES
    """How often the function is called again with a record for which it raises."""
    concurrency: int = 1
    """The number of records, with different keys, with which the function is called at a time."""

    @property
    def interval(self) -> float:
        """Seconds between commits."""
        return self.commit_interval_ms / 1000

    @property
    def repeats_calls(self) -> bool:
        """True if calls are retried or made concurrently."""
        return self.retries.retries > 0 or self.concurrency > 1

    @property
    def longest_delay_ms(self) -> float:
        """The longest time that the retries of one record wait, without the calls."""
        delays = (
            self.retries.delay(attempts, 0.0) for attempts in range(1, min(self.retries.retries, MOST_DELAYS) + 1)
        )
        return 1000 * sum(delays)


def check_settings(settings: ProcessSettings, reads: Any, writes: Any) -> None:
    """Raise ConfigError for settings that break the processing guarantee.

    `reads` and `writes` are the clients' settings.
    """
    for is_wrong, message in INVALID_SETTINGS:
        if is_wrong(settings, reads, writes):
            raise ConfigError(message.format(settings=settings, reads=reads, writes=writes))


INVALID_SETTINGS: tuple[tuple[Any, str], ...] = (
    (
        lambda settings, reads, writes: not settings.topics,
        "topics is empty: name a topic to read",
    ),
    (
        lambda settings, reads, writes: reads.group_id is None,
        "group.id is not set: the consumer needs one, offsets are committed by group",
    ),
    (
        lambda settings, reads, writes: reads.enable_auto_commit,
        "enable.auto.commit = true: set it to false, the offsets are committed with the results",
    ),
    (
        lambda settings, reads, writes: settings.exactly_once and writes.transactional_id is None,
        "transactional.id is not set: exactly once needs one for each processor; or set exactly_once=False",
    ),
    (
        lambda settings, reads, writes: settings.exactly_once and reads.isolation_level != "read_committed",
        "isolation.level = {reads.isolation_level}: set read_committed, or records of aborted transactions "
        "would be processed",
    ),
    (
        lambda settings, reads, writes: not settings.exactly_once and writes.transactional_id is not None,
        "exactly_once=False with a transactional.id: remove one of them",
    ),
    (
        lambda settings, reads, writes: (
            settings.dead_letter_topic is not None and (writes.key_serializer or writes.value_serializer)
        ),
        "dead_letter_topic with a serializer: dead letters keep their original bytes; let the function return bytes",
    ),
    (
        lambda settings, reads, writes: settings.batches and settings.arrow,
        "batches and arrow: the function takes a list or a table, not both; remove one of them",
    ),
    (
        lambda settings, reads, writes: settings.arrow and (reads.key_deserializer or reads.value_deserializer),
        "arrow with a deserializer: tables contain raw keys and values; let the function decode them",
    ),
    (
        lambda settings, reads, writes: settings.include_headers and not settings.arrow,
        "include_headers without arrow: records always have headers",
    ),
    (
        lambda settings, reads, writes: (
            isinstance(settings.concurrency, bool)
            or not isinstance(settings.concurrency, int)
            or settings.concurrency < 1
        ),
        "invalid value {settings.concurrency!r} for concurrency: expected a whole number from 1 on",
    ),
    (
        lambda settings, reads, writes: settings.repeats_calls and (settings.batches or settings.arrow),
        "retries and concurrency with batches or arrow: a batch that fails is split into halves instead; remove one of them",
    ),
    (
        lambda settings, reads, writes: (
            settings.exactly_once and settings.longest_delay_ms >= writes.transaction_timeout_ms
        ),
        "the delays of retries reach transaction.timeout.ms = {writes.transaction_timeout_ms}, after which the transaction "
        "is aborted: use fewer or shorter ones, or a longer timeout",
    ),
    (
        lambda settings, reads, writes: settings.longest_delay_ms >= reads.max_poll_interval_ms,
        "the delays of retries reach max.poll.interval.ms = {reads.max_poll_interval_ms}, after which the consumer leaves "
        "its group: use fewer or shorter ones, or a longer interval",
    ),
)
"""Pairs of a predicate that is true for invalid settings, and the error message."""
