"""Spark's own Kafka connector at our broker: it reads records of our sink, and our source reads its records."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from ottla import Admin, NewTopic, read_table
from rivals.spark_connector import connector_jars, spark_python

pytestmark = [pytest.mark.behaviour("D4"), pytest.mark.usefixtures("quick_drivers")]
ROOT = Path(__file__).parents[1]
ROWS = 2_000
SCRIPT = """
import json, sys
import ottla.spark
servers, jars, checkpoint, rows = sys.argv[1:]
spark = ottla.spark.session("official", "local[2]", spark__driver__memory="1g", spark__jars=jars, spark__log__level="OFF")
kafka = {"kafka.bootstrap.servers": servers}
def read(form, topic, **more):
    return spark.read.format(form).options(**kafka, subscribe=topic, includeHeaders="true", **more).load()
def rows_of(frame):
    found = frame.selectExpr("hex(key) k", "hex(value) v", "topic", "partition", "offset", "unix_millis(timestamp) ms",
                             "timestampType", "to_json(headers) h").orderBy("partition", "offset").collect()
    return [tuple(row) for row in found]
made = spark.range(int(rows)).selectExpr(
    "cast(id as string) as key", "concat('value ', id) as value", "array(struct('n' as key, cast(cast(id as string) as binary) as value)) as headers")
made.write.format("kafka").options(**kafka, topic="theirs", includeHeaders="true").save()
made.write.format("ottla").mode("append").options(**kafka, topic="ours").save()
answer = {topic: rows_of(read("kafka", topic)) == rows_of(read("ottla", topic)) for topic in ("theirs", "ours")}
answer["counts"] = [read(form, topic).count() for form in ("kafka", "ottla") for topic in ("theirs", "ours")]
schemas = [read(form, "ours").schema for form in ("kafka", "ottla")]
answer["schemas"] = [[(field.name, field.dataType.simpleString()) for field in schema] for schema in schemas]
stream = spark.readStream.format("kafka").options(**kafka, subscribe="ours", startingOffsets="earliest", maxOffsetsPerTrigger="700").load()
query = stream.select("key", "value").writeStream.format("kafka").options(**kafka, topic="copied", checkpointLocation=checkpoint)
query = query.trigger(availableNow=True).start()
query.awaitTermination()
answer["batches"] = len([one for one in query.recentProgress if one.numInputRows])
ends = query.recentProgress[-1].sources[0].endOffset
answer["from their checkpoint"] = read("ottla", "ours", endingOffsets=ends).count()
print(json.dumps(answer))
"""


def run(servers: str, checkpoint: Path) -> dict[str, Any]:
    """Run the script under the newest Spark that has a released connector, and return its results."""
    python = spark_python()
    jars = ",".join(map(str, connector_jars(python)))
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src"), "PYSPARK_PYTHON": str(python)}
    command = [str(python), "-c", SCRIPT, servers, jars, str(checkpoint), str(ROWS)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        sys.stderr.write(done.stderr[-4000:])
    return json.loads(done.stdout.splitlines()[-1])  # type: ignore[no-any-return]


def test_both_connectors_read_and_write_the_same_topics_of_our_broker(ottla_broker: str, tmp_path: Path) -> None:
    with Admin(bootstrap_servers=ottla_broker) as admin:
        admin.create_topics([NewTopic(name, 3, 1) for name in ("theirs", "ours", "copied")])
    found = run(ottla_broker, tmp_path)
    assert found["counts"] == [ROWS] * 4
    assert found["theirs"]
    assert found["ours"]
    assert found["schemas"][0] == found["schemas"][1]
    assert found["batches"] == 3
    assert found["from their checkpoint"] == ROWS
    copied: Any = read_table("copied", bootstrap_servers=ottla_broker)["value"].to_pylist()
    assert sorted(copied) == sorted(b"value %d" % n for n in range(ROWS))
