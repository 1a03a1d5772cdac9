"""Spark where brokers ask for tickets of Kerberos: it reads from Apache Kafka and writes to ours, by a keytab."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from interop.kerberized import Places, apache, fresh, places
from interop.test_spark_security import committed
from ottla import Admin, NewTopic, Producer

pytestmark = pytest.mark.usefixtures("quick_drivers")
__all__ = ["apache", "places"]

ROWS = 20
JOB = """
import json, sys
from pyspark.sql import SparkSession
theirs, ours, wrong, topics, folder = json.loads(sys.argv[1])
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .getOrCreate()
)
rows = spark.readStream.format("ottla").options(**theirs).option("subscribe", topics[0])
query = (
    rows.option("startingOffsets", "earliest").load().select("value").writeStream.format("ottla").options(**ours)
    .option("topic", topics[1]).option("deliveryGuarantee", "exactly_once")
    .option("checkpointLocation", folder + "/checkpoint").trigger(availableNow=True).start()
)
query.awaitTermination()
print("COUNT", spark.read.format("ottla").options(**ours).option("subscribe", topics[1]).load().count())

def read():
    spark.read.format("ottla").options(**wrong).option("subscribe", topics[1]).load().collect()

def write():
    row = spark.sql("select cast('a' as binary) as value")
    row.write.mode("append").format("ottla").options(**wrong).option("topic", topics[1]).save()

for way in (read, write):
    try:
        way()
        told = "nothing"
    except Exception as error:
        told = str(error)
    print(json.dumps([way.__name__, told]), flush=True)
spark.stop()
"""


def options(settings: dict[str, Any]) -> dict[str, Any]:
    """Settings of a client as options of Spark's."""
    return {f"kafka.{name}": value for name, value in settings.items()}


def test_spark_reads_and_writes_by_a_keytab_and_says_what_is_wrong_with_one(
    places: Places, apache: str, tmp_path: Path
) -> None:
    places.brokers["apache"] = apache
    theirs, ours = places.by_keytab("apache"), places.by_keytab("ottla")
    source, target = fresh(), fresh()
    with Admin(theirs) as admin, Producer(theirs) as producer:
        admin.create_topics([NewTopic(source, 2, 1)])
        for n in range(ROWS):
            producer.send(source, b"%d" % n)
    with Admin(ours) as admin:
        admin.create_topics([NewTopic(target, 1, 1)])
    wrong = ours | {"sasl.kerberos.principal": "bob"}
    told = [options(theirs), options(ours), options(wrong), [source, target], str(tmp_path)]
    job = tmp_path / "job.py"
    job.write_text(JOB)
    command = [sys.executable, str(job), json.dumps(told)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert f"COUNT {ROWS}" in done.stdout, done.stderr[-3000:]
    assert sorted(committed(ours, target), key=int) == [b"%d" % n for n in range(ROWS)]
    sentences = dict(json.loads(line) for line in done.stdout.splitlines() if line.startswith("["))
    assert sorted(sentences) == ["read", "write"], done.stderr[-3000:]
    for sentence in sentences.values():
        assert "has no key of bob; look with `klist -k" in sentence
        assert "Traceback" not in sentence
