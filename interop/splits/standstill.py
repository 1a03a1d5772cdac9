"""Looks whether readers of committed records stand still at a partition: its last stable offset does not move, though there is more behind it."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence

from interop.splits.history import History
from ottla import Admin, Consumer, TopicPartition
from ottla.errors import OttlaError
from ottla.model import LATEST

LONG_SECONDS = 20.0


class Standstills:
    """Tells of each, with how the transactional ids stand."""

    def __init__(self, address: str, places: Sequence[TopicPartition], ids: Sequence[str], history: History) -> None:
        self._address, self._places, self._ids, self._history = address, places, ids, history
        self._since: dict[TopicPartition, tuple[int, float]] = {}
        self._told: set[TopicPartition] = set()
        """Of which it is told that they stand."""
        self.longest = 0.0
        self.count = 0
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Standstills:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()

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
            self._history.add(f"{place} stands at {offset} of {end}: {self._transactions(admin)}")

    def _transactions(self, admin: Admin) -> str:
        told = []
        for each in self._ids:
            try:
                found = admin.describe_transactions([each], 3)[each]
                told.append(f"{each} {found.state} at {found.coordinator_id} {found.topic_partitions}")
            except OttlaError as error:
                told.append(f"{each}: {error}")
        return "; ".join(told)
