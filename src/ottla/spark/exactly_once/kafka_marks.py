"""The marks where they are: offsets of consumer groups.

One `Admin` for each configuration and process: tasks follow each other there, and connecting costs. They are closed when the process ends.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin.config import AdminConfig
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer import Producer
from ottla.config import options_of
from ottla.errors import KafkaTimeoutError
from ottla.model import TopicPartition
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.names import Names

ADMIN_SETTINGS = frozenset(option.name for option in options_of(AdminConfig))
ENDED = {"CompleteAbort", "CompleteCommit", "Empty"}
"""States of transactions that nothing is open of."""
MARKS = "__consumer_offsets"
"""A topic that is always there once there are groups."""
PATIENCE = 3.0
"""Seconds that a write which has failed anyway waits for a broker, each time that it asks one."""
_admins: dict[tuple[tuple[str, Any], ...], Admin] = {}


def admin_of(settings: Mapping[str, Any]) -> Admin:
    """An admin client for the cluster that these settings of a producer lead to."""
    own = {name: text for name, text in settings.items() if name in ADMIN_SETTINGS}
    key = tuple(sorted(own.items()))
    if key not in _admins:
        _admins[key] = Admin(own)
    return _admins[key]


@atexit.register
def close_admins() -> None:
    """Let go of all connections; one that another thread waits at ends with the process."""
    for admin in _admins.values():
        with suppress(KafkaTimeoutError):
            admin.close(0)


class KafkaMarks:
    """Announcements and marks of one query."""

    def __init__(self, settings: Mapping[str, Any], names: Names, place: TopicPartition) -> None:
        self.admin = admin_of(settings)
        self.names = names
        self.place = place

    def announcements(self) -> dict[TopicPartition, Announcement]:
        """The newest at each place that the query has ever had its marks at."""
        found = self.admin.list_consumer_group_offsets(self.names.announcements, require_stable=True)
        return {place: Announcement.from_offset(kept) for place, kept in found.items()}

    def ensure_place(self, producer: Producer) -> None:
        """Have the brokers make the topic whose offsets are the marks, if they make topics by themselves and it is not there."""
        if self.place.topic != MARKS:  # which the first group has made
            producer.partitions_for(self.place.topic)

    def announcement(self, timeout: float | None = None) -> Announcement | None:
        """The newest; waits for transactions that may still change it."""
        found = self.admin.list_consumer_group_offsets(
            self.names.announcements, [self.place], timeout, require_stable=True
        )
        return Announcement.from_offset(found[self.place]) if self.place in found else None

    def marker(self, task: int) -> Marker | None:
        """A task's mark; waits for transactions that may still change it."""
        found = self.admin.list_consumer_group_offsets(self.names.task(task), [self.place], require_stable=True)
        return Marker.from_offset(found[self.place]) if self.place in found else None

    def enter(self, task: int) -> None:
        """Leave a first mark, of no batch."""
        self.admin.alter_consumer_group_offsets(self.names.task(task), {self.place: 0})

    def tasks(self) -> list[int]:
        """All tasks that have ever entered."""
        groups = (self.names.index_of(listing.group_id) for listing in self.admin.list_consumer_groups())
        return sorted(index for index in groups if index is not None)

    def announce(self, producer: Producer, announcement: Announcement) -> None:
        """As part of the producer's transaction."""
        group = ConsumerGroupMetadata(self.names.announcements)
        producer.send_offsets_to_transaction({self.place: announcement.to_offset()}, group)

    def mark(self, producer: Producer, task: int, marker: Marker) -> None:
        """As part of the producer's transaction."""
        group = ConsumerGroupMetadata(self.names.task(task))
        producer.send_offsets_to_transaction({self.place: marker.to_offset()}, group)

    def replace_announcement(self, announcement: Announcement) -> None:
        """Without a transaction, by a driver whose own word was the newest."""
        kept = {self.place: announcement.to_offset()}
        self.admin.alter_consumer_group_offsets(self.names.announcements, kept, timeout=PATIENCE)

    def open_transactions(self) -> list[str]:
        """The transactional ids of tasks that have something open."""
        listed = self.admin.list_transactions(timeout=PATIENCE)
        return [
            known.transactional_id
            for known in listed
            if self.names.index_of(known.transactional_id) is not None and known.state not in ENDED
        ]

    def give_up(self) -> None:
        """Say of a batch write that it has failed."""
        self.admin.alter_consumer_group_offsets(self.names.announcements, {self.place: 0}, timeout=PATIENCE)

    def is_given_up(self) -> bool:
        return bool(self.admin.list_consumer_group_offsets(self.names.announcements, [self.place]))
