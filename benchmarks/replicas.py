"""Measure replication: two replicas on two brokers of ours next to two of Apache Kafka's, in one cluster.

One Kafka controller manages all of them. The figures are the throughput and processor time with `acks=all`, the latency
at 500 and at 2,000 records per second, the time until a write is acknowledged after `kill -9` of the leader, and the
speed with which a restarted follower catches up. `python -m benchmarks.replicas [writing …]`
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import confluent_kafka as ck

from benchmarks.brokers import Running
from benchmarks.confluent import PRODUCER
from benchmarks.duel import Figures, Line, duel, report
from benchmarks.librdkafka import fill
from benchmarks.race import cpu_seconds
from ottla import Admin, NewTopic
from ottla.coordination.cluster.records import PartitionChangeRecord, decode_record
from ottla.records.columns import decode
from rivals import apache_kafka as rival
from rivals.kafka_cluster import LOG, KafkaNode, Node, OttlaNode, View, image_of, wait_for

SIZES = {100: 1_000_000, 1024: 300_000}
"""The size of a value in bytes, and the number of records in one turn."""
RATES, TIMED_SECONDS, WARM_SECONDS = (500, 2_000), 5, 1
"""The rates of single records per second. The second one may be too much for the two cores of this machine."""
BEHIND = 2 << 30
"""The number of bytes that a follower has to fetch."""
SESSION = {"broker.session.timeout.ms": "9000"}
BEAT = {"broker.heartbeat.interval.ms": "2000"}
"""Kafka's default."""
SECONDS = 120.0
serial = count()
Aimed = list[tuple[Line, str]]


IN_THE_CLEAR = {
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,INTERNAL:PLAINTEXT",
    "inter.broker.listener.name": "PLAINTEXT",
}
"""The benchmark measures replication, not encryption."""


class QuickKafkaNode(KafkaNode):
    """A node with the heap of Kafka's own start script."""

    command = ("java", *rival.HEAP, *rival.FLAGS, *rival.java("kafka.Kafka")[1:])


class Pair:
    """Two brokers of one kind."""

    def __init__(self, name: str, nodes: tuple[Node, Node], kafka: rival.ApacheKafka) -> None:
        self.nodes = nodes
        self.view = View(kafka)
        self._log = kafka.directory / LOG
        self.bootstrap = kafka.bootstrap_servers
        self.running = Running(name, ",".join(node.address for node in nodes), nodes[0].process_id)

    def new_topic(self, min_in_sync: int = 2) -> str:
        """Create a topic of one partition with the first broker as leader and the second as follower, both in sync."""
        name = f"replicas-{next(serial)}"
        ids = tuple(node.node_id for node in self.nodes)
        with Admin(bootstrap_servers=self.bootstrap) as admin:
            configs = {"min.insync.replicas": str(min_in_sync)}
            admin.create_topics([NewTopic(name, replica_assignments={0: ids}, configs=configs)])
        self.settle(name)
        return name

    def settle(self, topic: str) -> None:
        """Wait until both are in sync, and the first responds to requests."""
        ids = {node.node_id for node in self.nodes}
        wait_for(lambda: self.view.in_sync(topic) == ids, f"{topic} is not in sync", SECONDS)

    def led_anew_at(self, topic: str) -> float:
        """Return the time of the last leader change in the controller's log, in seconds of the wall clock."""
        columns = decode(self._log.read_bytes())
        topic_id = image_of(self._log).topics[topic].topic_id
        changes = ((row, decode_record(columns.value(row) or b"")) for row in range(columns.count))
        return max(
            columns.timestamps[row] / 1000
            for row, each in changes
            if isinstance(each, PartitionChangeRecord) and each.topic_id == topic_id and each.leader >= 0
        )

    def cpu(self) -> float:
        return sum(cpu_seconds(node.process_id) for node in self.nodes)


Pairs = dict[Running, Pair]


def written(pairs: Pairs, server: Running, size: int, records: int) -> Figures:
    """Fill a new topic with librdkafka."""
    pair = pairs[server]
    topic, before = pair.new_topic(), pair.cpu()
    begun = time.perf_counter()
    fill(server, topic, size, records, {**PRODUCER, "acks": "all"})
    span = time.perf_counter() - begun
    megabytes = size * records / 1e6
    return {"MB/s": megabytes / span, "CPU s/GB of both": (pair.cpu() - before) / megabytes * 1000}


def acknowledged(pairs: Pairs, server: Running, rate: int) -> Figures:
    """Measure milliseconds from `produce` to the acknowledgement of both replicas."""
    pair = pairs[server]
    topic, before = pair.new_topic(), pair.cpu()
    producer = ck.Producer({"bootstrap.servers": server.bootstrap, "linger.ms": 0, "acks": "all", "log_level": 3})
    producer.list_topics(topic)
    spans: list[float] = []
    begun = time.perf_counter()
    records = rate * TIMED_SECONDS
    for number in range(records):
        while (left := begun + number / rate - time.perf_counter()) > 0:
            producer.poll(left)
        sent = time.perf_counter()
        producer.produce(
            topic,
            bytes(100),
            partition=0,
            on_delivery=lambda *_, sent=sent: spans.append((time.perf_counter() - sent) * 1e3),
        )
        producer.poll(0)
    producer.flush()
    quantiles = statistics.quantiles(spans[rate * WARM_SECONDS :], n=100)
    used = (pair.cpu() - before) / records
    return {"p50 ms": quantiles[49], "p99 ms": quantiles[98], "CPU ms/record of both": used * 1e3}


def failed_over(pairs: Pairs, server: Running) -> Figures:
    """Measure seconds from `kill -9` of the leader to the first acknowledgement of a later record.

    The time until the controller elects another leader varies: the session counts from the last heartbeat.
    """
    pair = pairs[server]
    topic, leader = pair.new_topic(min_in_sync=1), pair.nodes[0]
    settings = {"bootstrap.servers": server.bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0}
    producer = ck.Producer({**settings, "retry.backoff.ms": 20, "topic.metadata.refresh.fast.interval.ms": 50})
    assert send(producer, topic)
    leader.kill()
    begun = time.perf_counter()
    assert send(producer, topic)
    span, now = time.perf_counter() - begun, time.time()
    since = now - pair.led_anew_at(topic)
    leader.start()
    leader.wait_until_in()
    pair.settle(topic)
    return {"s to the next acknowledgement": span, "ms of it since the controller chose": since * 1e3}


def send(producer: ck.Producer, topic: str) -> bool:
    """Send one record, and return True if it was acknowledged."""
    errors: list[object] = []
    producer.produce(topic, b"x", partition=0, on_delivery=lambda error, _: errors.append(error))
    producer.flush(SECONDS)
    return errors == [None]


def caught_up(pairs: Pairs, server: Running) -> Figures:
    """Measure the speed with which a follower fetches missed records, from its registration until it is in sync."""
    pair = pairs[server]
    topic, follower = pair.new_topic(min_in_sync=1), pair.nodes[1]
    follower.kill()
    wait_for(lambda: pair.view.in_sync(topic) == {pair.nodes[0].node_id})
    fill(server, topic, 1024, BEHIND // 1024)
    begun = time.perf_counter()
    follower.start()
    follower.wait_until_in()
    let_in = time.perf_counter()
    before = pair.cpu()
    pair.settle(topic)
    span = time.perf_counter() - let_in
    gigabytes = BEHIND / 1e9
    return {
        "s from start to let in": let_in - begun,
        "MB/s": gigabytes * 1e3 / span,
        "CPU s/GB of both": (pair.cpu() - before) / gigabytes,
    }


def aimed(what: str, lines: list[Line], aims: tuple[str, ...]) -> Aimed:
    return [(each._replace(name=f"{what}: {each.name}"), aim) for each, aim in zip(lines, aims, strict=True)]


def writing(pairs: Pairs) -> Aimed:
    found: Aimed = []
    for size, records in SIZES.items():
        lines = duel(list(pairs), partial(written, pairs, size=size, records=records))
        found += aimed(f"acks=all, {size} B", lines, ("≥ 1", "≤ 0.5"))
    return found


def waiting(pairs: Pairs) -> Aimed:
    found: Aimed = []
    for rate in RATES:
        lines = duel(list(pairs), partial(acknowledged, pairs, rate=rate))
        found += aimed(f"acks=all at {rate:,}/s", lines, ("", "≤ 1", "≤ 1"))
    return found


def failing(pairs: Pairs) -> Aimed:
    return aimed("leader killed", duel(list(pairs), partial(failed_over, pairs), rounds=5), ("≤ 1", "≤ 1"))


def catching_up(pairs: Pairs) -> Aimed:
    lines = duel(list(pairs), partial(caught_up, pairs), rounds=2)
    return aimed("2 GB behind", lines, ("", "≥ 1", ""))


PARTS: dict[str, Callable[[Pairs], Aimed]] = {
    "writing": writing,
    "waiting": waiting,
    "failing": failing,
    "catching_up": catching_up,
}


@contextmanager
def both() -> Iterator[Pairs]:
    """Start two of ours and two of Kafka's, and warm them up."""
    with TemporaryDirectory(prefix="ottla-bench-") as folder, ExitStack() as stack:
        kafka = stack.enter_context(rival.apache_kafka(SESSION))
        kinds = {11: OttlaNode, 12: OttlaNode, 21: QuickKafkaNode, 22: QuickKafkaNode}
        nodes = []
        for node_id, kind in kinds.items():
            (home := Path(folder, str(node_id))).mkdir()
            nodes.append(kind(node_id, kafka, home, {**BEAT, **IN_THE_CLEAR}))
            stack.callback(nodes[-1].stop)
            nodes[-1].start()
        for node in nodes:
            node.wait_until_in()
        ours, theirs = Pair("ottla", (nodes[0], nodes[1]), kafka), Pair("Apache Kafka", (nodes[2], nodes[3]), kafka)
        pairs = {ours.running: ours, theirs.running: theirs}
        for server in pairs:
            written(pairs, server, 1024, SIZES[1024])  # a JVM needs to warm up
        yield pairs


def main() -> None:
    wanted = sys.argv[1:] or list(PARTS)
    if unknown := set(wanted) - set(PARTS):
        sys.exit(f"there is no part {unknown.pop()!r}; there are {', '.join(PARTS)}")
    rival.fetch()
    with both() as pairs:
        for part in wanted:
            report(f"two copies: {part}", list(pairs), PARTS[part](pairs))


if __name__ == "__main__":
    main()
