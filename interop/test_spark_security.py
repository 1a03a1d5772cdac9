"""Spark where Apache Kafka asks for TLS and a login: it reads, writes and keeps no secret."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.secured import PASSWORD, USER
from interop.test_security import (  # the fixtures
    Clients,
    authority,
    clients,
    endpoint,
    fresh,
    kafka,
)
from ottla import Admin, Broker, NewTopic, Producer

pytestmark = pytest.mark.usefixtures("quick_drivers")
__all__ = ["authority", "clients", "endpoint", "kafka"]

SPARK_JOB = """
import json, sys
from pyspark.sql import SparkSession
options, topic, folder = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.dir", "file://" + folder + "/events").getOrCreate()
)
rows = spark.read.format("ottla").options(**options).option("subscribe", topic).load()
rows.explain(True)
rows.selectExpr("value").write.mode("append").format("ottla").options(**options).option("topic", topic).save()
query = (
    spark.readStream.format("ottla").options(**options).option("subscribe", topic).option("startingOffsets", "earliest")
    .load().writeStream.format("memory").queryName("t").option("checkpointLocation", folder + "/checkpoint")
    .trigger(availableNow=True).start()
)
query.awaitTermination()
print("COUNT", spark.table("t").count())
spark.stop()
"""


@pytest.fixture
def ours() -> Iterator[dict[str, Any]]:
    """Settings for a broker of ours that asks for the same."""
    with Broker(listen="SASL_SSL://127.0.0.1:0", users={USER: PASSWORD}, process=True) as broker:
        yield broker.client_settings(mechanism="SCRAM-SHA-512")


@pytest.mark.parametrize("whose", ["Apache Kafka's", "ours"])
def test_spark_reads_and_writes_over_sasl_ssl_and_keeps_no_secret(
    request: pytest.FixtureRequest, whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if whose == "ours":
        settings, topic = request.getfixturevalue("ours"), fresh()
    else:
        settings, topic = request.getfixturevalue("clients").settings("SCRAM-SHA-512"), fresh()
    with Admin(settings) as admin, Producer(settings) as producer:
        admin.create_topics([NewTopic(topic, 1, 1)])
        for n in range(10):
            producer.send(topic, b"%d" % n)
    (tmp_path / "events").mkdir()
    monkeypatch.setenv("KAFKA_PASSWORD", PASSWORD)
    options = {f"kafka.{name}": value for name, value in settings.items()}
    options["kafka.sasl.password"] = "${env:KAFKA_PASSWORD}"
    job = tmp_path / "job.py"
    job.write_text(SPARK_JOB)
    command = [sys.executable, str(job), json.dumps(options), topic, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert "COUNT 20" in done.stdout, done.stderr[-3000:]
    kept = [path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()]
    assert len(kept) > 3
    for text in (done.stdout.encode(), done.stderr.encode(), *kept):
        assert PASSWORD.encode() not in text


def test_a_wrong_password_is_the_same_sentence_in_the_driver(clients: Clients, tmp_path: Path) -> None:
    options = {f"kafka.{name}": value for name, value in clients.settings("PLAIN").items()}
    options["kafka.sasl.password"] = "wr0ng-s3cret"
    (tmp_path / "events").mkdir()
    job = tmp_path / "job.py"
    job.write_text(SPARK_JOB)
    command = [sys.executable, str(job), json.dumps(options), "t", str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    assert done.returncode != 0
    assert "refused the login by PLAIN as 'alice'" in done.stderr
    assert "wr0ng-s3cret" not in done.stdout + done.stderr
