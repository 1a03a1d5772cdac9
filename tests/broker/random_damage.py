"""Clusters of three nodes in which one file of one node is damaged, drawn from a seed: no acknowledged record may be lost or repeated silently.

    transactions, a group, two leader epochs ──► all are stopped, or killed at once ──► one file is damaged ──► all are started
                        ──► everything is read ──► the damaged node leads all ──► everything is read again ──► a commit, a write

    python -m tests.broker.random_damage --seed 100 --count 50        # `make damages`; some ten seconds each

Reported damage is correct: a node that does not start, or an error at a reader. The exit status is 1 if anything was lost silently.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from ottla import Admin, Cluster, Consumer, NewTopic, OffsetAndMetadata, Producer, TopicPartition
from ottla.errors import KafkaError, OttlaError
from tests.broker.in_sync import in_sync
from tests.patience import eventually

PARTITIONS = [TopicPartition("t", index) for index in range(3)]
REPLICAS = {index: tuple((index + each) % 3 + 1 for each in range(3)) for index in range(3)}
SETTINGS: dict[str, Any] = {
    "log_index_interval_bytes": 300,
    "offsets_topic_num_partitions": 2,
    "transaction_state_log_num_partitions": 2,
}
COMMITTED = 31
SECONDS = 30.0
"""Options for clients of a cluster in which one node may be down."""
KINDS = ("bit", "bytes", "cut", "zeros", "gone", "more")
Records = list[tuple[int, bytes]]
"""Offsets and values."""


class Fault(NamedTuple):
    """A change of a file."""

    file: Path
    kind: str
    at: int

    def happen(self, chance: random.Random) -> None:
        data, at = bytearray(self.file.read_bytes()), self.at
        if self.kind == "gone":
            self.file.unlink()
            return
        if self.kind == "bit":
            data[at] ^= 1 << chance.randrange(8)
        elif self.kind == "bytes":
            data[at : at + 8] = chance.randbytes(len(data[at : at + 8]))
        elif self.kind == "more":
            data += chance.randbytes(20)
        else:
            data[at:] = bytes(len(data) - at if self.kind == "zeros" else 0)
        self.file.write_bytes(data)


class Read(NamedTuple):
    """The committed records that a reader found in a partition, and its error if it did not reach the end."""

    records: Records
    reported: str = ""


def fill(cluster: Cluster) -> dict[TopicPartition, Records]:
    """Write, in two leader epochs; what was acknowledged and committed."""
    acknowledged: dict[TopicPartition, Records] = {each: [] for each in PARTITIONS}
    with Admin(cluster.client_settings()) as admin:
        admin.create_topics([NewTopic("t", replica_assignments=REPLICAS)])
        write(cluster, acknowledged, range(300))
        write_in_transactions(cluster, acknowledged)
        with Consumer(cluster.client_settings(), group_id="g") as consumer:
            consumer.assign(PARTITIONS)
            consumer.commit({each: OffsetAndMetadata(COMMITTED) for each in PARTITIONS})
        cluster.kill(2)
        write(cluster, acknowledged, range(300, 390))
        cluster.start(2)
        eventually(lambda: in_sync(admin, "t") == {1, 2, 3})
    return acknowledged


def write(cluster: Cluster, acknowledged: dict[TopicPartition, Records], numbers: range) -> None:
    with Producer(cluster.client_settings(), acks="all") as producer:
        for number in numbers:
            place, value = PARTITIONS[number % 3], b"%d" % number * 5
            sent = producer.send("t", value, partition=place.partition).result(SECONDS)
            acknowledged[place].append((sent.offset, value))


def write_in_transactions(cluster: Cluster, acknowledged: dict[TopicPartition, Records]) -> None:
    """Every other one is aborted."""
    with Producer(cluster.client_settings(), transactional_id="x") as producer:
        producer.init_transactions(SECONDS)
        for number in range(6):
            producer.begin_transaction()
            sent = [(each, producer.send("t", b"t%d" % number, partition=each.partition)) for each in PARTITIONS]
            if number % 2:
                producer.abort_transaction()
                continue
            producer.commit_transaction()
            for place, future in sent:
                acknowledged[place].append((future.result(SECONDS).offset, b"t%d" % number))


def draw(chance: random.Random, node: Path) -> Fault:
    """A file of a log, or of whatever else there is."""
    files = [each for each in sorted(node.rglob("*")) if each.is_file() and each.stat().st_size]
    logs, others = ([each for each in files if (each.suffix == ".log") is is_log] for is_log in (True, False))
    file = chance.choice(logs if chance.random() < 0.5 else others)
    return Fault(file, chance.choice(KINDS), chance.randrange(file.stat().st_size))


def read(cluster: Cluster, place: TopicPartition) -> Read:
    records: Records = []
    settings = cluster.client_settings()
    with Consumer(settings, isolation_level="read_committed", auto_offset_reset="earliest") as consumer:
        consumer.assign([place])
        until = time.monotonic() + SECONDS
        try:
            end = consumer.end_offsets([place], timeout=SECONDS)[place]
            consumer.seek(place, 0)
            while consumer.position(place, timeout=SECONDS) < end:
                records += [(each.offset, each.value or b"") for each in consumer.poll(0.2)]
                if time.monotonic() > until:
                    return Read(records, "nothing came any more")
        except OttlaError as error:
            return Read(records, str(error))
    return Read(records)


def verdict(acknowledged: Mapping[TopicPartition, Records], found: Mapping[TopicPartition, Read]) -> Iterator[str]:
    """Yield the violations; `LOST` if records are missing without an error."""
    for place, (records, reported) in found.items():
        missing = [each for each in acknowledged[place] if each not in records]
        strange = [each for each in records if each not in acknowledged[place]]
        if strange or len(set(records)) < len(records):
            yield f"LOST {place}: {len(records)} records, of which {len(set(records))} are different, and {strange[:2]} were never committed"
        if missing and (not reported or reported == "nothing came any more"):
            yield f"LOST {place}: {len(missing)}, the first {missing[0]}; {reported}"
        elif reported:
            yield f"reported of {place}: {reported}"


def lead_all(cluster: Cluster, node: int) -> None:
    """Elect one node for every partition, if it joins the ISRs."""
    others = [each for each in cluster.nodes if each != node]
    with Admin(cluster.client_settings()) as admin, suppress(KafkaError, AssertionError):
        admin.alter_partition_reassignments({each: [node, *others] for each in PARTITIONS})
        eventually(lambda: in_sync(admin, "t") == {1, 2, 3})
        admin.elect_leaders("PREFERRED", PARTITIONS)


def afterwards(cluster: Cluster) -> Iterator[str]:
    """The group's offsets are there, and records are taken."""
    with Consumer(cluster.client_settings(), group_id="g") as consumer:
        known = consumer.committed(PARTITIONS, timeout=SECONDS)
        if known != {each: OffsetAndMetadata(COMMITTED) for each in PARTITIONS}:
            yield f"LOST the group's offsets: {known}"
    with Producer(cluster.client_settings(), acks="all") as producer:
        for each in PARTITIONS:
            producer.send("t", b"more", partition=each.partition).result(SECONDS)


def history(folder: Path, acknowledged: Mapping[TopicPartition, Records], node: int) -> list[str]:
    """Return the violations found in a damaged cluster."""
    said: list[str] = []
    try:
        with Cluster(data_dir=folder, **SETTINGS) as cluster:
            said += verdict(acknowledged, {each: read(cluster, each) for each in PARTITIONS})
            lead_all(cluster, node)
            said += verdict(acknowledged, {each: read(cluster, each) for each in PARTITIONS})
            said += afterwards(cluster)
    except OttlaError as error:
        said.append(f"reported: {error}")
    return said


def prepare(folder: Path, kept: Path) -> dict[TopicPartition, Records]:
    """A cluster's folder, as it was when all were killed, and when all had been stopped."""
    with Cluster(data_dir=folder, **SETTINGS) as cluster:
        acknowledged = fill(cluster)
        cluster.kill(*cluster.nodes)
        shutil.copytree(folder, kept / "killed")
        cluster.start(*cluster.nodes)
        cluster.stop(*cluster.nodes)
    shutil.copytree(folder, kept / "stopped")
    return acknowledged


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0, help="the first")
    parser.add_argument("--count", type=int, default=30, help="how many")
    asked = parser.parse_args(arguments)
    lost = 0
    with tempfile.TemporaryDirectory() as temporary:
        folder, kept = Path(temporary, "cluster"), Path(temporary, "kept")
        acknowledged = prepare(folder, kept)
        for seed in range(asked.seed, asked.seed + asked.count):
            chance = random.Random(seed)
            how, node = chance.choice(["killed", "stopped"]), chance.randint(1, 3)
            shutil.rmtree(folder)
            shutil.copytree(kept / how, folder)
            fault = draw(chance, folder / f"node-{node}")
            fault.happen(chance)
            said = history(folder, acknowledged, node)
            lost += any(each.startswith("LOST") for each in said)
            print(
                f"{seed} {how}, {fault.file.relative_to(folder)}, {fault.kind} at {fault.at}:",
                "; ".join(said) or "whole",
                flush=True,
            )
    return 1 if lost else 0


if __name__ == "__main__":
    sys.exit(main())
