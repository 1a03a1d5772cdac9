"""Detect partitions with a blocked last stable offset: it does not advance although the log continues after it.

An open transaction may last as long as its producer waits for a broker. A decided transaction has to end soon;
otherwise its markers are late.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from interop.background import Background
from interop.splits.history import History
from ottla import Admin, Consumer, TopicPartition
from ottla.errors import OttlaError
from ottla.model import LATEST

LONG_SECONDS = 20.0


class Standstills(Background):
    """Reports each blocked partition with the state of its transaction."""

    def __init__(self, address: str, places: Sequence[TopicPartition], history: History) -> None:
        self._address, self._places, self._history = address, places, history
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self._told: set[TopicPartition] = set()
        """Partitions that have been reported as blocked."""
        self.longest = 0.0
        self.count = self.late_markers = 0
        """The number of long blocks, and how many of these had a decided transaction."""
        super().__init__(daemon=True)

    def _run(self) -> None:
        settings = {"bootstrap.servers": self._address, "request.timeout.ms": 3000, "metadata.max.age.ms": 500}
        with Consumer(settings, isolation_level="read_committed") as stable, Admin(settings) as admin:
            while not self._over.wait(1.0):
                for place in self._places:
                    self._look(place, stable, admin)

    def _look(self, place: TopicPartition, stable: Consumer, admin: Admin) -> None:
        try:
            offset = stable.end_offsets([place], 3)[place]
            end = admin.list_offsets({place: LATEST}, 3)[place].offset
        except OttlaError:
            return
        known, since = self._since.get(place, (-1, 0.0))
        now = time.monotonic()
        if offset != known or offset >= end:
            if place in self._told:
                self._told.remove(place)
                self._history.add(f"{place} moves on from {known} after {now - since:.0f} s")
            self._since[place] = (offset, now)
            return
        self.longest = max(self.longest, now - since)
        if now - since > LONG_SECONDS and place not in self._told:
            self.count += 1
            self._told.add(place)
            state = self._state(place, admin)
            self.late_markers += state.startswith("Prepare")
            self._history.add(f"{place} stands at {offset} of {end}: {state}")

    def _state(self, place: TopicPartition, admin: Admin) -> str:
        """Describe the transaction of the partition's writer. The transactional id is part of the topic's name."""
        transactional_id = place.topic.rpartition("-")[0]
        try:
            found = admin.describe_transactions([transactional_id], 3)[transactional_id]
        except OttlaError as error:
            return str(error)
        return f"{found.state} at {found.coordinator_id}"
