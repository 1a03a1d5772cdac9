"""Result tables in compacted topics, with lookups by key.

A thread reads each topic from its beginning and keeps the last value of each key; a tombstone deletes it. Uncommitted
records are not read. A table answers only after it has read up to the end offsets at its start.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from ottla.client.consumer import Consumer
from ottla.config import unknown
from ottla.errors import OttlaError
from ottla.model import TopicPartition
from ottla.pipelines.file.reading import PipelineDefinition
from ottla.pipelines.manager.build import context_of
from ottla.pipelines.manager.rest.answers import RestError, not_found_error
from ottla.pipelines.sinks.topic import TopicSinkBase

POLL_SECONDS = 0.2
AGAIN_SECONDS = 2.0
"""Seconds before unavailable brokers are tried again."""


class TableOfTopic(NamedTuple):
    """A topic to serve as a table."""

    topic: str
    clients: Mapping[str, str]


class ServedTable:
    """One table, filled by one thread and read by others."""

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
        """Read from the beginning; a table that is read again starts empty."""
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
        """Return the table's value for a key; RestError if there is none."""
        table = self._tables.get(name)
        if table is None:
            raise not_found_error(f"{unknown('table', name, self._tables)}; set table: true at the topic sink")
        if not table.ready:
            raise RestError(503, f"table {name!r} is being read: {table.trouble or 'try again in a moment'}")
        found = table.rows.get(key)
        if found is None:
            raise not_found_error(f"table {name!r} has no key {key.decode(errors='replace')!r}")
        return found


def tables_of(reads: Iterable[PipelineDefinition]) -> list[TableOfTopic]:
    """Return the topics of sinks that are tables."""
    found: dict[str, TableOfTopic] = {}
    for read in reads:
        sink = read.model.sink
        if isinstance(sink, TopicSinkBase) and sink.table and sink.topic is not None:
            clients = context_of(read).any_client("consumer", sink)
            found.setdefault(sink.topic, TableOfTopic(sink.topic, clients))
    return list(found.values())
