"""Reads and writes the marks, which are offsets of consumer groups.

There is one `Admin` for each configuration and process, because connecting takes time and a process runs many tasks.
They are closed when the process ends.
"""

from __future__ import annotations

import atexit
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from ottla.client.admin import Admin
from ottla.client.admin.config import select_admin_settings
from ottla.client.consumer.coordinator.generation import ConsumerGroupMetadata
from ottla.client.producer import Producer
from ottla.errors import KafkaTimeoutError
from ottla.model import TopicPartition
from ottla.spark.exactly_once.marker import Announcement, Marker
from ottla.spark.exactly_once.names import Names

ENDED = {"CompleteAbort", "CompleteCommit", "Empty"}
"""States of transactions that are not open."""
MARKS = "__consumer_offsets"
"""A topic that exists as soon as there are groups."""
PATIENCE = 10.0
"""The timeout in seconds of each request by a write that has failed already.

If such a request fails, readers wait for the timeout of the open transactions, which is longer.
"""
_admins: dict[tuple[tuple[str, Any], ...], Admin] = {}


def admin_of(settings: Mapping[str, Any]) -> Admin:
    """Return an admin client for the cluster of these producer settings."""
    own = select_admin_settings(settings)
    key = tuple(sorted(own.items()))
    if key not in _admins:
        _admins[key] = Admin(own)
    return _admins[key]


@atexit.register
def close_admins() -> None:
    """Close all clients. A client in use by another thread ends with the process."""
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
        """Return the newest announcement in each place where the query has ever had its marks."""
        found = self.admin.list_consumer_group_offsets(self.names.announcements, require_stable=True)
        return {place: Announcement.from_offset(kept) for place, kept in found.items()}

    def ensure_place(self, producer: Producer) -> None:
        """Make the brokers create the topic of the marks, if they create topics automatically."""
        if self.place.topic != MARKS:  # created with the first group
            producer.partitions_for(self.place.topic)

    def announcement(self, timeout: float | None = None) -> Announcement | None:
        """Return the newest announcement, after pending transactions that may change it have ended."""
        found = self.admin.list_consumer_group_offsets(
            self.names.announcements, [self.place], timeout, require_stable=True
        )
        return Announcement.from_offset(found[self.place]) if self.place in found else None

    def marker(self, task: int) -> Marker | None:
        """Return a task's mark, after pending transactions that may change it have ended."""
        found = self.admin.list_consumer_group_offsets(self.names.task(task), [self.place], require_stable=True)
        return Marker.from_offset(found[self.place]) if self.place in found else None

    def enter(self, task: int) -> None:
        """Write a first mark without a batch."""
        self.admin.alter_consumer_group_offsets(self.names.task(task), {self.place: 0})

    def tasks(self) -> list[int]:
        """Return all tasks that have ever entered."""
        groups = (self.names.index_of(listing.group_id) for listing in self.admin.list_consumer_groups())
        return sorted(index for index in groups if index is not None)

    def announce(self, producer: Producer, announcement: Announcement) -> None:
        """Write the announcement in the producer's transaction."""
        group = ConsumerGroupMetadata(self.names.announcements)
        producer.send_offsets_to_transaction({self.place: announcement.to_offset()}, group)

    def mark(self, producer: Producer, task: int, marker: Marker) -> None:
        """Write the mark in the producer's transaction."""
        group = ConsumerGroupMetadata(self.names.task(task))
        producer.send_offsets_to_transaction({self.place: marker.to_offset()}, group)

    def replace_announcement(self, announcement: Announcement) -> None:
        """Replace this driver's own announcement, without a transaction."""
        kept = {self.place: announcement.to_offset()}
        self.admin.alter_consumer_group_offsets(self.names.announcements, kept, timeout=PATIENCE)

    def open_transactions(self) -> list[str]:
        """Return the transactional ids of tasks with an open transaction."""
        listed = self.admin.list_transactions(timeout=PATIENCE)
        return [
            known.transactional_id
            for known in listed
            if self.names.index_of(known.transactional_id) is not None and known.state not in ENDED
        ]

    def mark_failed(self) -> None:
        """Record that a batch write has failed."""
        self.admin.alter_consumer_group_offsets(self.names.announcements, {self.place: 0}, timeout=PATIENCE)

    def has_failed(self) -> bool:
        return bool(self.admin.list_consumer_group_offsets(self.names.announcements, [self.place]))
