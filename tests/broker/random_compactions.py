"""Clusters whose nodes are killed and stopped in turn while a topic is compacted, drawn from a seed: the last of each key has to stay.

    plain records and transactions, a third of them aborted ──┐
    a node is killed or stopped, and started again ───────────┤──► everything is read ──► all are killed or stopped ──► everything is read
    segments of a moment, cleaned at once ────────────────────┘

    python -m tests.broker.random_compactions --seed 100 --count 20        # `make cleanings`; some thirty seconds each

Producers try again until all of it is acknowledged, so that what the topic has to say in the end is known. The exit status is 1 where it says something else.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct, field

from ottla import Admin, Cluster, Consumer, NewTopic, Producer, TopicPartition
from ottla.errors import OttlaError

PLACE = TopicPartition("t", 0)
SECONDS = 180.0
"""Options for clients of a cluster in which one node may be down."""
DAY_MS = "86400000"
"""A broker that is down longer than delete.retention.ms may miss tombstones, as with Kafka, so no node stays down if
there are any.
"""
Value = bytes | None


class Drawn(NamedTuple):
    """The parameters of a history."""

    nodes: int
    keys: int
    deletes: bool
    """True if some values are tombstones."""
    settings: dict[str, Any]
    configs: dict[str, str]
    compression: str
    seconds: float


class Table(Struct):
    """The expected content of the topic."""

    last: dict[bytes, Value] = field(default_factory=dict)
    aborted: set[bytes] = field(default_factory=set)
    written: int = 0

    def values(self, chance: random.Random, drawn: Drawn, most: int) -> Iterator[tuple[bytes, Value]]:
        """Keys with unique values; one of ten may be a tombstone."""
        for _ in range(chance.randint(1, most)):
            self.written += 1
            value = b"%d " % self.written * chance.choice([1, 30, 3000])
            yield b"k%d" % chance.randrange(drawn.keys), None if drawn.deletes and chance.random() < 0.1 else value


def draw(chance: random.Random) -> Drawn:
    nodes, deletes = chance.choice([1, 3, 3, 3]), chance.random() < 0.3
    settings = {
        "log_cleaner_backoff_ms": chance.choice([20, 100, 400]),
        "log_index_interval_bytes": chance.choice([100, 4096]),
        "transaction_state_log_num_partitions": 1,
    }
    configs = {
        "cleanup.policy": chance.choice(["compact", "compact,delete"]),
        "retention.ms": "-1",
        "segment.ms": chance.choice(["100", "400", "1500"]),
        "min.cleanable.dirty.ratio": "0.01",
        "delete.retention.ms": DAY_MS if deletes else "0",
    }
    return Drawn(
        nodes,
        chance.choice([3, 40, 400]),
        deletes,
        settings,
        configs,
        chance.choice(["none", "lz4"]),
        chance.uniform(15, 35),
    )


def write(cluster: Cluster, drawn: Drawn, chance: random.Random, table: Table) -> None:
    settings, until = cluster.client_settings(), time.monotonic() + drawn.seconds
    patient: dict[str, Any] = {"delivery_timeout_ms": int(SECONDS * 1000), "compression_type": drawn.compression}
    with Producer(settings, **patient) as plain, Producer(settings, transactional_id="x", **patient) as transactional:
        transactional.init_transactions(SECONDS)
        while time.monotonic() < until:
            if chance.random() < 0.7:
                write_plainly(plain, drawn, chance, table)
            else:
                write_at_once(transactional, drawn, chance, table)


def write_plainly(producer: Producer, drawn: Drawn, chance: random.Random, table: Table) -> None:
    records = list(table.values(chance, drawn, 60))
    for future in [producer.send("t", value, key=key, partition=0) for key, value in records]:
        future.result(SECONDS)
    table.last.update(records)


def write_at_once(producer: Producer, drawn: Drawn, chance: random.Random, table: Table) -> None:
    """In a transaction; a third are aborted."""
    records = list(table.values(chance, drawn, 30))
    producer.begin_transaction()
    for key, value in records:
        producer.send("t", value, key=key, partition=0)
    if chance.random() < 0.3:
        producer.flush()
        producer.abort_transaction()
        table.aborted.update(value for _, value in records if value is not None)
    else:
        producer.commit_transaction()
        table.last.update(records)


@contextmanager
def nodes_that_end(cluster: Cluster, chance: random.Random) -> Iterator[None]:
    """One at a time, now and then; all run when this is over."""
    over = threading.Event()

    def go_on() -> None:
        while not over.wait(chance.uniform(0.1, 2.5)):
            node = chance.choice(cluster.nodes)
            end(cluster, node, chance)
            cluster.start(node)

    thread = threading.Thread(target=go_on)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def end(cluster: Cluster, node: int, chance: random.Random) -> None:
    (cluster.kill if chance.random() < 0.7 else cluster.stop)(node)


def faults(cluster: Cluster, table: Table) -> Iterator[str]:
    """Return the differences that a read-committed reader finds."""
    found: dict[bytes, Value] = {}
    with Consumer(cluster.client_settings(), isolation_level="read_committed") as consumer:
        consumer.assign([PLACE])
        end_offset = consumer.end_offsets([PLACE], timeout=SECONDS)[PLACE]
        consumer.seek(PLACE, 0)
        until, last = time.monotonic() + SECONDS, -1
        while consumer.position(PLACE, timeout=SECONDS) < end_offset:
            if time.monotonic() > until:
                yield f"nothing comes any more at {consumer.position(PLACE)} of {end_offset}"
                return
            for record in consumer.poll(0.2):
                if record.offset <= last:
                    yield f"offset {record.offset} comes after {last}"
                if record.value in table.aborted:
                    yield f"offset {record.offset} was aborted"
                last, found[record.key or b""] = record.offset, record.value
    wrong = [key for key, value in table.last.items() if found.get(key) != value]
    if wrong:
        yield f"{len(wrong)} of {len(table.last)} keys have another value than was written last, the first {wrong[0]!r}"


def history(folder: Path, chance: random.Random) -> tuple[Drawn, Table, list[str]]:
    """Print the parameters, the expected content and the differences."""
    drawn, table = draw(chance), Table()
    said: list[str] = []
    try:
        with Cluster(drawn.nodes, data_dir=folder, **drawn.settings) as cluster:
            with Admin(cluster.client_settings()) as admin:
                admin.create_topics([NewTopic("t", 1, drawn.nodes, configs=drawn.configs)])
            with nodes_that_end(cluster, random.Random(chance.random())):
                write(cluster, drawn, chance, table)
            said += faults(cluster, table)
            for node in cluster.nodes:
                end(cluster, node, chance)
            cluster.start(*cluster.nodes)
            said += faults(cluster, table)
    except OttlaError as error:
        said.append(f"{type(error).__name__}: {error}")
    return drawn, table, said


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--count", type=int, default=10, help="how many")
    asked = parser.parse_args(arguments)
    wrong = 0
    for seed in range(asked.seed, asked.seed + asked.count):
        with tempfile.TemporaryDirectory() as folder:
            drawn, table, said = history(Path(folder, "cluster"), random.Random(seed))
        wrong += bool(said)
        print(
            f"{seed} {drawn.nodes} nodes, {drawn.keys} keys, segments of {drawn.configs['segment.ms']} ms, {table.written} records: {'; '.join(said) or 'whole'}",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
