"""Result tables that are kept as compacted topics, and looked up by key.

A thread reads the topics from their beginning and keeps the last value of each key; a tombstone takes it away. What is not
committed is not seen. The rule: a table answers once it has all that was there when it began.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.client.consumer import Consumer
from ottla.config import unknown
from ottla.errors import OttlaError
from ottla.model import TopicPartition
from ottla.pipelines.file.reading import Read
from ottla.pipelines.manager.build import surroundings_of
from ottla.pipelines.manager.rest.answers import RestError, not_found
from ottla.pipelines.sinks.topic import TopicSinkBase

POLL_SECONDS = 0.2
AGAIN_SECONDS = 2.0
"""Before brokers that could not be reached are tried again."""


class TableOfTopic(NamedTuple):
    """A topic that is to be served."""

    topic: str
    clients: Mapping[str, str]


class ServedTable:
    """One table, which one thread fills and others look into."""

    def __init__(self, wanted: TableOfTopic) -> None:
        self.topic, self.clients = wanted.topic, wanted.clients
        self.rows: dict[bytes | None, bytes] = {}
        self.ready = False
        self.trouble: str | None = None
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"table-{self.topic}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def close(self) -> None:
        self._stop.set()
        self._thread.join()

    def facts(self) -> dict[str, Any]:
        known = {"name": self.topic, "keys": len(self.rows), "ready": self.ready}
        return known | ({"reason": self.trouble} if self.trouble else {})

    def _run(self) -> None:
        while not self._stop.is_set():
            try:
                self._read()
            except OttlaError as error:
                self.ready, self.trouble = False, str(error)
                self._stop.wait(AGAIN_SECONDS)

    def _read(self) -> None:
        """From the beginning on; a table that is read anew begins empty."""
        rows: dict[bytes | None, bytes] = {}
        with Consumer({**self.clients, "isolation.level": "read_committed"}) as consumer:
            tps = [TopicPartition(self.topic, one.partition) for one in consumer.partitions_for(self.topic)]
            consumer.assign(tps)
            consumer.seek_to_beginning(*tps)
            ends = consumer.end_offsets(tps)
            while not self._stop.is_set():
                if not self.ready and all(consumer.position(tp) >= end for tp, end in ends.items()):
                    self.rows, self.ready, self.trouble = rows, True, None
                for record in consumer.poll(timeout=POLL_SECONDS):
                    if record.raw_value is None:
                        rows.pop(record.raw_key, None)
                    else:
                        rows[record.raw_key] = record.raw_value


class ServedTables:
    """All tables of a manager, by name."""

    def __init__(self, wanted: Iterable[TableOfTopic]) -> None:
        self._tables = {one.topic: ServedTable(one) for one in wanted}

    def start(self) -> None:
        for table in self._tables.values():
            table.start()

    def close(self) -> None:
        for table in self._tables.values():
            table.close()

    def all(self) -> list[ServedTable]:
        return list(self._tables.values())

    def value(self, name: str, key: bytes) -> bytes:
        """What the table has for a key."""
        table = self._tables.get(name)
        if table is None:
            raise not_found(f"{unknown('table', name, self._tables)}; a sink that is a topic has table: true")
        if not table.ready:
            raise RestError(503, f"table {name!r} is being read: {table.trouble or 'ask again in a moment'}")
        found = table.rows.get(key)
        if found is None:
            raise not_found(f"table {name!r} has no key {key.decode(errors='replace')!r}")
        return found


def tables_of(reads: Iterable[Read]) -> list[TableOfTopic]:
    """The topics of sinks that are tables."""
    found: dict[str, TableOfTopic] = {}
    for read in reads:
        sink = read.model.sink
        if isinstance(sink, TopicSinkBase) and sink.table and sink.topic is not None:
            clients = surroundings_of(read).any_client("consumer", sink)
            found.setdefault(sink.topic, TableOfTopic(sink.topic, clients))
    return list(found.values())
