"""Spark Connect, where the server does the work: only the server needs Ottla, and the options are the same."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from interop.conftest import NewTopicName
from ottla import Producer, read_table

pytestmark = pytest.mark.usefixtures("quick_drivers")

PROGRAM = """
import sys
from pyspark.sql import SparkSession

servers, source, written, streamed, checkpoint = sys.argv[1:]
spark = SparkSession.builder.remote("local[1]").getOrCreate()
assert "connect" in type(spark).__module__
ottla = spark.read.format("ottla").option("kafka.bootstrap.servers", servers)
rows = ottla.option("subscribe", source).load()
print([(bytes(row.value), row.offset) for row in rows.collect()])
writer = rows.select("value").write.format("ottla").option("kafka.bootstrap.servers", servers)
writer.option("topic", written).mode("append").save()
stream = spark.readStream.format("ottla").option("kafka.bootstrap.servers", servers)
values = stream.option("subscribe", source).option("startingOffsets", "earliest").load().select("value")
query = values.writeStream.format("ottla").option("kafka.bootstrap.servers", servers).option("topic", streamed)
query = query.option("deliveryGuarantee", "exactly_once").option("checkpointLocation", checkpoint)
query.trigger(availableNow=True).start().awaitTermination()
"""


def test_a_client_without_java_reads_writes_and_streams(
    ottla_broker: str, fresh_topic: NewTopicName, tmp_path: Path
) -> None:
    topics = [fresh_topic(ottla_broker) for _ in range(3)]
    with Producer(bootstrap_servers=ottla_broker) as producer:
        producer.send(topics[0], b"one").result(60)
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ottla_broker, *topics, str(tmp_path / "checkpoint")],
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert "[(b'one', 0)]" in done.stdout, done.stderr
    assert done.returncode == 0, done.stderr
    for topic in topics[1:]:
        assert read_table(topic, bootstrap_servers=ottla_broker)["value"].to_pylist() == [b"one"]
