"""How a processor works, and what could not keep its promise."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ottla.errors import ConfigError


@dataclass(frozen=True, slots=True)
class ProcessSettings:
    """What is said to a processor beside its clients and its function."""

    topics: tuple[str, ...]
    """What is read."""
    to: str | None = None
    """Where results go that name no topic themselves."""
    batches: bool = False
    """Whether the function is called with the list of records that one poll returned."""
    arrow: bool = False
    """Whether the function is called with them as a pyarrow Table, and returns tables."""
    include_headers: bool = False
    """Whether these tables have a column of headers."""
    exactly_once: bool = True
    """Whether results and offsets count together, by transactions; else each record is processed at least once."""
    commit_interval_ms: float = 100
    """From one commit to the next, at least; what is read counts so late at the latest, after a rest at once."""
    dead_letter_topic: str | None = None
    """Where a record goes for which the function raises; without it, that ends the processor."""
    name: str = "ottla-process"
    """What dead letters say about who wrote them."""

    @property
    def interval(self) -> float:
        """Seconds between commits."""
        return self.commit_interval_ms / 1000


def check_settings(settings: ProcessSettings, reads: Any, writes: Any) -> None:
    """ConfigError for what could not keep the promise, with the remedy; `reads` and `writes` are the clients' settings."""
    for is_wrong, message in FAULTS:
        if is_wrong(settings, reads, writes):
            raise ConfigError(message.format(reads=reads, writes=writes))


FAULTS: tuple[tuple[Any, str], ...] = (
    (
        lambda settings, reads, writes: not settings.topics,
        "topics is empty: name a topic to read",
    ),
    (
        lambda settings, reads, writes: reads.group_id is None,
        "group.id is not set: the consumer needs one, for how far it has read is kept by group",
    ),
    (
        lambda settings, reads, writes: reads.enable_auto_commit,
        "enable.auto.commit = true: set it to false, the offsets are committed with the results",
    ),
    (
        lambda settings, reads, writes: settings.exactly_once and writes.transactional_id is None,
        "transactional.id is not set: exactly once needs one for each processor; or say exactly_once=False",
    ),
    (
        lambda settings, reads, writes: settings.exactly_once and reads.isolation_level != "read_committed",
        "isolation.level = {reads.isolation_level}: set read_committed, or records of transactions that are aborted "
        "would be processed",
    ),
    (
        lambda settings, reads, writes: not settings.exactly_once and writes.transactional_id is not None,
        "exactly_once=False with a transactional.id: take away one of them",
    ),
    (
        lambda settings, reads, writes: (
            settings.dead_letter_topic is not None and (writes.key_serializer or writes.value_serializer)
        ),
        "dead_letter_topic with a serializer: dead letters are sent as they came; let the function return bytes",
    ),
    (
        lambda settings, reads, writes: settings.batches and settings.arrow,
        "batches and arrow: the function takes a list or a table, not both; take away one of them",
    ),
    (
        lambda settings, reads, writes: settings.arrow and (reads.key_deserializer or reads.value_deserializer),
        "arrow with a deserializer: tables have keys and values as they came; let the function decode them",
    ),
    (
        lambda settings, reads, writes: settings.include_headers and not settings.arrow,
        "include_headers without arrow: records have their headers anyway",
    ),
)
"""When it is wrong, and what a person is told."""
