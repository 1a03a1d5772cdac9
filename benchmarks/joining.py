"""Measure the time until a broker that joins a cluster serves requests, and the cost of a large cluster's metadata.

`python -m benchmarks.joining [starting image]`. The first part compares ours with Apache Kafka's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

from benchmarks.brokers import Running
from benchmarks.duel import Figures, duel, report
from benchmarks.race import resident_bytes
from benchmarks.replicas import IN_THE_CLEAR, SESSION, QuickKafkaNode
from ottla.broker.metadata.observed_metadata import ObservedMetadata
from ottla.clock import SystemClock
from ottla.coordination.cluster.node_records import BrokerRegistrationChangeRecord, RegisterBrokerRecord
from ottla.coordination.cluster.records import PartitionRecord, TopicRecord, decode_record, encode_record
from ottla.model import INT32_MAX
from ottla.protocol.schema import Message
from ottla.records.columns import decode
from ottla.storage.log import Log
from ottla.storage.log_config import LogConfig
from ottla.storage.state_log.snapshot import SnapshotId, write_state
from ottla.storage.state_log.voter import SoleVoter
from rivals import apache_kafka as rival
from rivals.apache_kafka import listens
from rivals.kafka_cluster import LOG, Node, OttlaNode, wait_for

TOPICS, PARTITIONS, COPIES = 1_000, 100, 3
NODES: dict[str, type[Node]] = {"ottla": OttlaNode, "Apache Kafka": QuickKafkaNode}
serial = count(11)


def reported_times(kafka: rival.ApacheKafka, node_id: int) -> dict[type[Message], int]:
    """Return the time of the controllers' last record about a broker by the type of record, in milliseconds."""
    columns = decode((kafka.directory / LOG).read_bytes())
    found: dict[type[Message], int] = {}
    for row in range(columns.count):
        record = decode_record(columns.value(row) or b"")
        if isinstance(record, RegisterBrokerRecord | BrokerRegistrationChangeRecord) and record.broker_id == node_id:
            found[type(record)] = int(columns.timestamps[row])
    return found


def started(kafka: rival.ApacheKafka, folder: Path, server: Running) -> Figures:
    """Return the seconds from the start of the process until the broker is unfenced and its port responds.

    The directory is empty.
    """
    node_id = next(serial)
    (home := folder / str(node_id)).mkdir()
    node = NODES[server.name](node_id, kafka, home, IN_THE_CLEAR)
    begun = time.perf_counter()
    node.start()
    try:
        wait_for(lambda: BrokerRegistrationChangeRecord in reported_times(kafka, node_id) and listens(node.port))
        span = time.perf_counter() - begun
        moments = reported_times(kafka, node_id)
    finally:
        node.stop()
    let_in = moments[BrokerRegistrationChangeRecord] - moments[RegisterBrokerRecord]
    return {"s from start to let in": span, "ms from registered to let in": float(let_in)}


def starting() -> None:
    with TemporaryDirectory(prefix="ottla-bench-") as folder, ExitStack() as stack:
        kafka = stack.enter_context(rival.apache_kafka(SESSION))
        servers = [Running(name, kafka.bootstrap_servers, kafka.process) for name in NODES]
        lines = duel(servers, partial(started, kafka, Path(folder)))
        report("a broker that joins", servers, list(zip(lines, ("≤ 0.5 s", "≤ 100 ms"), strict=True)))


def image() -> None:
    """Measure the loading of a snapshot of 100,000 partitions, as at a start, in a process of its own."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder:
        made = [each for number in range(TOPICS) for each in topic(number)]
        write_state(Path(folder), SnapshotId(len(made), 1), made, 0, SoleVoter(1, UUID(int=1)), sync=False)
        size = sum(map(len, made))
        del made
        print(f"{TOPICS * PARTITIONS:,} partitions, {size / 1e6:.1f} MB of records", flush=True)
        subprocess.run([sys.executable, "-m", "benchmarks.joining", folder], check=True)


def topic(number: int) -> list[bytes]:
    topic_id = UUID(int=number + 2)
    records: list[Message] = [TopicRecord(f"topic-{number}", topic_id)]
    for index in range(PARTITIONS):
        replicas = [(number + index + each) % 50 for each in range(COPIES)]
        directories = [UUID(int=1000 + each) for each in replicas]
        records.append(
            PartitionRecord(index, topic_id, replicas, replicas, leader=replicas[0], directories=directories)
        )
    return [encode_record(each) for each in records]


def load(folder: str) -> None:
    """Load the snapshot, and print the duration and the memory that remains in use."""
    before, used_before, begun = resident_bytes(os.getpid()), time.process_time(), time.perf_counter()
    config = LogConfig(max_message_bytes=INT32_MAX, segment_bytes=INT32_MAX, retention_ms=-1)
    metadata = ObservedMetadata(Log.open(Path(folder), config, now_ms=0, clean=True), SystemClock())
    span, cpu = time.perf_counter() - begun, time.process_time() - used_before
    assert len(metadata.machine.topics) == TOPICS
    used = resident_bytes(os.getpid()) - before
    print(
        f"loaded in {span:.2f} s (aim ≤ 5 s), of which {cpu:.2f} s on a processor; {used / 1e6:.0f} MB more (aim ≤ 400 MB)"
    )


PARTS = {"starting": starting, "image": image}


def main() -> None:
    wanted = sys.argv[1:] or list(PARTS)
    if len(wanted) == 1 and Path(wanted[0]).is_absolute():
        load(wanted[0])
        return
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    rival.fetch()
    for part in wanted:
        PARTS[part]()


if __name__ == "__main__":
    main()
