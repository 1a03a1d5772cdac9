"""Spark where Apache Kafka asks for TLS and a login: it reads, writes and keeps no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from interop.secured import JAAS, PASSWORD, USER, quoted
from interop.test_security import (  # the fixtures
    Clients,
    authority,
    clients,
    endpoint,
    fresh,
    kafka,
)
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition

pytestmark = pytest.mark.usefixtures("quick_drivers")
__all__ = ["authority", "clients", "endpoint", "kafka"]

ROWS = 20
SPARK_JOB = """
import json, sys
from pyspark.sql import SparkSession
options, topic, folder = json.loads(sys.argv[1]), sys.argv[2], sys.argv[3]
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.eventLog.enabled", "true").config("spark.eventLog.compress", "false")
    .config("spark.eventLog.dir", "file://" + folder + "/events").getOrCreate()
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
        assert b"s-secret" not in text  # of the password, what no JSON writes otherwise


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


def test_a_pipeline_goes_from_one_login_to_another_and_keeps_no_secret(
    clients: Clients, ours: dict[str, Any], tmp_path: Path
) -> None:
    theirs, into = clients.settings("SCRAM-SHA-512"), f"{JAAS}scram.ScramLoginModule required"
    source, target = fresh(), fresh()
    with Admin(theirs) as admin, Producer(theirs) as producer:
        admin.create_topics([NewTopic(source, 2, 1)])
        for n in range(ROWS):
            producer.send(source, b'{"n": %d}' % n)
    with Admin(ours) as admin:
        admin.create_topics([NewTopic(target, 1, 1)])
    secret = tmp_path / "secrets" / "line"
    secret.parent.mkdir()
    secret.write_text(f'{into} username="{USER}" password="{quoted(PASSWORD)}";\n')
    line = ours | {"sasl.jaas.config": "${file:secrets/line}"}
    pipeline = {
        "source": {
            "type": "topic",
            "topic": source,
            "valueFormat": "json",
            "valueSchema": "n int",
            "kafka": theirs | {"sasl.password": "${env:KAFKA_PASSWORD}"},
        },
        "transforms": [{"sql": "select n * 2 as twice from input"}],
        "sink": {
            "type": "topic",
            "topic": target,
            "deliveryGuarantee": "exactly_once",
            "kafka": {name: text for name, text in line.items() if name not in ("sasl.username", "sasl.password")},
        },
    }
    events = tmp_path / "events"
    events.mkdir()
    spark = {"spark.eventLog.enabled": "true", "spark.eventLog.compress": "false"}
    spark |= {"spark.eventLog.dir": events.as_uri(), "spark.log.level": "INFO"}
    file = tmp_path / "p.json"
    file.write_text(
        json.dumps({"settings": {"checkpoints": "state", "spark": spark}, "pipelines": {"twice": pipeline}})
    )
    command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file), "--once", "--master", "local[1]"]
    environment = os.environ | {"KAFKA_PASSWORD": PASSWORD}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=300, check=False)
    assert done.returncode == 0, done.stderr[-3000:]
    found = [json.loads(value)["twice"] for value in committed(ours, target)]
    assert sorted(found) == [2 * n for n in range(ROWS)]
    kept = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file() and path != secret}
    told = b"".join(text for path, text in kept.items() if path.is_relative_to(events))
    assert b"SparkListenerSQLExecutionStart" in told  # plans and all
    assert any(path.parent.name == "offsets" for path in kept)
    assert "s-secret" not in done.stdout + done.stderr
    for path, text in kept.items():
        assert b"s-secret" not in text, path


def committed(settings: dict[str, Any], topic: str) -> list[bytes]:
    """The values that readers of what is committed see."""
    with Consumer({**settings, "isolation.level": "read_committed"}) as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning()
        end, found = consumer.end_offsets([tp])[tp], []
        while consumer.position(tp) < end:
            found += [bytes(record.value or b"") for record in consumer.poll(10.0)]
        return found
