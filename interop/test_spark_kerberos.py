"""A Spark cluster with Kerberos: from Apache Kafka to ours and back with a keytab, beyond the brokers' sessions."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from interop.kerberized import SESSION_MS, Places, apache, fresh, places
from interop.spark_cluster import Cluster, spark_cluster
from interop.test_spark_security import committed
from ottla import Admin, NewTopic, Producer
from tests.patience import eventually

pytestmark = pytest.mark.usefixtures("quick_drivers")
__all__ = ["apache", "places"]

SESSIONS = 2
"""The minimum number of broker sessions during which rows are copied."""
PATIENCE = 240.0
JOB = """
import json, sys
import ottla.spark
master, theirs, ours, wrong, topics, folder = json.loads(sys.argv[1])
spark = ottla.spark.session(
    "kerberos", master, spark__driver__host="127.0.0.1", spark__driver__bindAddress="127.0.0.1",
    spark__executor__memory="512m", spark__executor__cores="1", spark__log__level="OFF",
)

def copy(source, sink, number):
    rows = spark.readStream.format("ottla").options(**source).option("subscribe", topics[number])
    return (
        rows.option("startingOffsets", "earliest").load().select("value").writeStream.format("ottla").options(**sink)
        .option("topic", topics[number + 1]).option("deliveryGuarantee", "exactly_once")
        .option("checkpointLocation", f"{folder}/{number}").trigger(processingTime="100 milliseconds").start()
    )

queries = [copy(theirs, ours, 0), copy(ours, theirs, 1)]
sys.stdin.readline()
for query in queries:
    query.stop()

def read():
    spark.read.format("ottla").options(**wrong).option("subscribe", topics[1]).load().collect()

def write():
    row = spark.sql("select cast('a' as binary) as value")
    row.write.mode("append").format("ottla").options(**wrong).option("topic", topics[1]).save()

for way in (read, write):
    try:
        way()
        message = "nothing"
    except Exception as error:
        message = str(error)
    print(json.dumps([way.__name__, message]), flush=True)
spark.stop()
"""


@pytest.fixture
def cluster(places: Places, tmp_path: Path) -> Iterator[Cluster]:
    """A standalone Spark cluster with Kerberos configuration for its workers."""
    with spark_cluster(tmp_path) as running:
        yield running


def options(settings: dict[str, Any]) -> dict[str, Any]:
    """Convert client settings to Spark options."""
    return {f"kafka.{name}": value for name, value in settings.items()}


@contextmanager
def running(arguments: list[Any], folder: Path) -> Iterator[subprocess.Popen[str]]:
    """Run the job. Its queries run until the test signals the end."""
    job, errors = folder / "job.py", folder / "errors"
    job.write_text(JOB)
    environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
    command = [sys.executable, str(job), json.dumps(arguments)]
    pipe = subprocess.PIPE
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=stderr, text=True, env=environment) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def test_rows_are_copied_with_a_keytab_beyond_the_sessions_and_a_wrong_keytab_is_a_one_line_error(
    places: Places, apache: str, cluster: Cluster, tmp_path: Path
) -> None:
    places.brokers["apache"] = apache
    theirs, ours = places.by_keytab("apache"), places.by_keytab("ottla")
    topics = [fresh() for _ in range(3)]
    for settings, names in ((theirs, topics[::2]), (ours, topics[1:2])):
        with Admin(settings) as admin:
            admin.create_topics([NewTopic(name, 1, 1) for name in names])
    wrong = ours | {"sasl.kerberos.principal": "bob"}
    arguments = [cluster.url, options(theirs), options(ours), options(wrong), topics, str(tmp_path)]
    with running(arguments, tmp_path) as job, Producer(theirs) as producer:
        sent = rounds(producer, theirs, topics)
        printed, _ = job.communicate("enough\n", timeout=PATIENCE)
    assert len(sent) > SESSIONS
    assert committed(theirs, topics[2]) == sent
    sentences = dict(json.loads(line) for line in printed.splitlines() if line.startswith("["))
    assert sorted(sentences) == ["read", "write"], (tmp_path / "errors").read_text()[-3000:]
    for sentence in sentences.values():
        assert "has no key of bob: check `klist -k" in sentence
        assert "Traceback" not in sentence


def rounds(producer: Producer, theirs: dict[str, Any], topics: list[str]) -> list[bytes]:
    """Send a row and wait until it returns, repeatedly, until enough sessions have passed."""
    sent: list[bytes] = []
    until = None
    while until is None or time.monotonic() < until:
        sent.append(b"%d" % len(sent))
        producer.send(topics[0], sent[-1]).result(60)
        eventually(lambda: len(committed(theirs, topics[2])) >= len(sent), timeout=PATIENCE)
        until = until or time.monotonic() + SESSIONS * SESSION_MS / 1000
    return sent
