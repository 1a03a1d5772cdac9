"""Source, sink and table on a Spark standalone cluster with two workers, of which one is killed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from interop.conftest import NewTopicName
from interop.spark_cluster import Cluster, shipped, spark_cluster
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from tests.client.conftest import fresh_name

pytestmark = [pytest.mark.behaviour("D3", "D4"), pytest.mark.usefixtures("quick_drivers")]
ROWS = 20_000


@pytest.fixture
def cluster(tmp_path: Path) -> Iterator[Cluster]:
    with spark_cluster(tmp_path) as running:
        yield running


def committed(servers: str, topic: str) -> Counter[bytes]:
    """Count the values that a read_committed consumer reads."""
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tps = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
        consumer.assign(tps)
        consumer.seek_to_beginning(*tps)
        ends = consumer.end_offsets(tps)
        found: Counter[bytes] = Counter()
        while any(consumer.position(tp) < ends[tp] for tp in tps):
            found.update(record.value for record in consumer.poll(timeout=5) if record.value is not None)
    return found


def test_a_cluster_that_loses_a_worker_writes_every_row_once(
    cluster: Cluster, ottla_broker: str, fresh_topic: NewTopicName, tmp_path: Path
) -> None:
    source, target = fresh_name(), fresh_topic(ottla_broker)
    with Admin(bootstrap_servers=ottla_broker) as admin:
        admin.create_topics([NewTopic(source, 4, 1)])
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for n in range(ROWS):
            producer.send(source, str(n).encode(), partition=n % 4)
    archive = shipped(tmp_path)
    arguments = [cluster.url, str(archive), ottla_broker, source, target, str(tmp_path)]
    reported = run_and_kill(arguments, cluster, tmp_path / "job.log")
    assert reported.places
    assert all(archive.name in place for place in reported.places)
    assert reported.killed_at is not None
    assert reported.killed_at < ROWS // 2_000 - 1
    topic = committed(ottla_broker, target)
    table = table_counts(tmp_path / "table")
    assert (len(topic), set(topic.values())) == (ROWS, {1})
    assert (len(table), set(table.values())) == (ROWS, {1})


@dataclass
class JobResult:
    """The output of the job, and the time of the kill."""

    places: list[str] = field(default_factory=list)
    """The paths from which tasks imported Ottla."""
    killed_at: int | None = None
    """The number of finished batches of the faster query when a worker was killed."""


def run_and_kill(arguments: list[str], cluster: Cluster, log: Path) -> JobResult:
    """Run the job to its end, and kill a worker with its executor after the second batch of both queries."""
    reported = JobResult()
    command = [sys.executable, "-m", "interop.cluster_job", *arguments]
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    with log.open("wb") as errors:
        job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, env=environment, start_new_session=True)
        try:
            assert job.stdout is not None
            for line in job.stdout:
                said = json.loads(line)
                reported.places += said.get("places", [])
                if reported.killed_at is None and min(said.get("batches", [-1])) >= 1:
                    cluster.workers[0].kill()
                    reported.killed_at = max(said["batches"])
            assert job.wait(60) == 0, log.read_text(errors="replace")[-3000:]
        finally:
            if job.poll() is None:
                os.killpg(job.pid, signal.SIGKILL)
                job.wait()
            assert job.stdout is not None
            job.stdout.close()
    return reported


def table_counts(folder: Path) -> Counter[int | None]:
    from deltalake import DeltaTable

    return Counter(DeltaTable(str(folder)).to_pyarrow_table(columns=["n"]).column("n").to_pylist())
