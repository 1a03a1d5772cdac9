"""Copy a table through a topic into another table while all parts are killed: each row is there once."""

from __future__ import annotations

import json
import random
import threading
from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from examples.changes.story import FILE as EXAMPLE
from examples.changes.story import Pipelines, wait_for
from examples.flights.faults import MortalBroker
from ottla import Consumer, TopicPartition
from rivals.postgresql import Server, postgresql

pytestmark = [pytest.mark.behaviour("D1", "D2", "D3", "D5"), pytest.mark.usefixtures("quick_drivers")]

FILE = """\
settings: {bootstrap.servers: "${env:SERVERS}", checkpoints: state/}
pipelines:
  out:
    source: {type: database, url: "${env:DATABASE}", table: events, incrementing: id, batch.max.rows: 200}
    sink: {type: topic, topic: events, key: id}
    trigger: 100 milliseconds
  back:
    source: {type: topic, topic: events, valueFormat: json, valueSchema: "id bigint, text string", maxOffsetsPerTrigger: 300}
    sink: {type: database, url: "${env:DATABASE}", table: copies}
    trigger: 100 milliseconds
"""


class Writers:
    """Threads that insert rows in overlapping transactions, so that the commit order differs from the order of ids."""

    def __init__(self, url: str) -> None:
        self.url = url
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._work, args=(seed,)) for seed in range(3)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()

    def _work(self, seed: int) -> None:
        chance = random.Random(seed)
        while not self._stop.is_set():
            try:
                with psycopg.connect(self.url) as connection:
                    while not self._stop.wait(chance.random() / 20):
                        connection.execute("insert into events (text) values (%s)", (f"by {seed}",))
                        self._stop.wait(chance.random() / 10)
                        connection.execute("insert into events (text) values (%s)", (f"by {seed}",))
                        connection.commit() if chance.random() < 0.8 else connection.rollback()
            except psycopg.Error:
                self._stop.wait(0.2)


def ids(server: Server, table: str) -> list[int]:
    with psycopg.connect(server.url) as connection:
        return [row[0] for row in connection.execute(f"select id from {table} order by id").fetchall()]


def committed(servers: str) -> list[int]:
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tp = TopicPartition("events", 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        end, found = consumer.end_offsets([tp])[tp], list[int]()
        while consumer.position(tp) < end:
            found += [json.loads(record.value or b"")["id"] for record in consumer.poll(timeout=1)]
    return sorted(found)


@pytest.mark.long
def test_each_row_is_there_once_after_each_kill(tmp_path: Path) -> None:
    with postgresql() as server, closing(MortalBroker(str(tmp_path / "broker"))) as broker:
        with psycopg.connect(server.url) as connection:
            connection.execute("create table events (id bigserial primary key, text text not null)")
            connection.execute("create table copies (id bigint not null, text text)")
            connection.execute("insert into events (text) select 'first' from generate_series(1, 2000)")
        writers = Writers(server.url)
        pipelines = Pipelines(tmp_path, broker.address, server.url)
        (tmp_path / EXAMPLE.name).write_text(FILE, "utf-8")

        def everything() -> None:
            pipelines.kill()
            pipelines.start()

        def database() -> None:
            server.kill()
            server.start()

        def batches() -> None:
            seen = pipelines.batches("back")
            wait_for(lambda: pipelines.batches("back") >= seen + 2, pipelines, "two batches")

        pipelines.start()
        writers.start()
        try:
            for kill in (everything, database, broker.kill, everything):
                batches()
                kill()
            batches()
            writers.stop()
            wait_for(
                lambda: len(ids(server, "copies")) >= len(ids(server, "events")), pipelines, "that all rows arrive"
            )
            assert pipelines.stop() == 0
        finally:
            writers.stop()
            pipelines.kill()
        wanted = ids(server, "events")
        assert len(wanted) > 2000
        assert ids(server, "copies") == wanted
        assert committed(broker.address) == wanted
