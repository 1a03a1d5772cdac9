"""Spark at an Apache Kafka broker with TLS and SASL: it reads and writes, and stores no secret."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
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
from tests.certificates import Authority

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
    """Settings for a broker of ours with the same mechanisms."""
    with Broker(listen="SASL_SSL://127.0.0.1:0", users={USER: PASSWORD}, process=True) as broker:
        yield broker.client_settings(mechanism="SCRAM-SHA-512")


@pytest.mark.parametrize("whose", ["Apache Kafka's", "ours"])
def test_spark_reads_and_writes_over_sasl_ssl_and_stores_no_secret(
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
        assert b"s-secret" not in text  # a part of the password that no other JSON contains


def mistakes(clients: Clients, expired: Broker, folder: Path) -> dict[str, tuple[dict[str, Any], str]]:
    """Common mistakes in the options, each with the expected error."""
    trusted = {"ssl.truststore.location": clients.authority.file}
    by_tls = clients.settings("SSL")
    return {
        "a wrong password": (
            clients.settings("PLAIN") | {"sasl.password": "wr0ng-s3cret"},
            "rejected the login by PLAIN as 'alice'",
        ),
        "an unknown authority": (
            by_tls | {"ssl.truststore.location": Authority(folder).file},
            "add its certificate to ssl.truststore.location",
        ),
        "an expired certificate": (
            {"bootstrap.servers": expired.addresses["SSL"], "security.protocol": "SSL", **trusted},
            "has expired, or one in its chain has: renew it",
        ),
        "another host": (
            {"bootstrap.servers": expired.addresses["OTHER"], "security.protocol": "SSL", **trusted},
            "is not for '127.0.0.1': use a name that is in the certificate",
        ),
        "plaintext at a port for TLS": (
            {"bootstrap.servers": by_tls["bootstrap.servers"]},
            "set security.protocol=SSL, or SASL_SSL with a login",  # Kafka responds, ours closes the connection
        ),
        "TLS at a plaintext port": (
            {"bootstrap.servers": clients.kafka.bootstrap_servers, "security.protocol": "SSL", **trusted},
            "set security.protocol=PLAINTEXT",
        ),
    }


MISTAKES = """
import json, sys
from pyspark.sql import SparkSession
spark = (
    SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false").config("spark.log.level", "OFF")
    .getOrCreate()
)
row = spark.sql("select cast('a' as binary) as value")

def read(options):
    spark.read.format("ottla").options(**options).option("subscribe", "t").load().collect()

def write(options):
    row.write.mode("append").format("ottla").options(**options).option("topic", "t").save()

def write_once(options):
    write(options | {"deliveryGuarantee": "exactly_once", "kafka.max.block.ms": "600000"})

def read_on(options):
    rows = spark.readStream.format("ottla").options(**options).option("subscribe", "t")
    query = rows.load().writeStream.format("noop").option("checkpointLocation", sys.argv[2]).trigger(availableNow=True)
    query.start().awaitTermination()

for name, options in json.loads(sys.argv[1]).items():
    for way in (read, read_on, write, write_once):
        try:
            way(options)
            message = "nothing"
        except Exception as error:
            message = str(error)
        print(json.dumps([name, way.__name__, message]), flush=True)
"""


def test_each_mistake_is_the_same_sentence_in_the_driver(clients: Clients, tmp_path: Path) -> None:
    with with_bad_certificates(clients.authority) as expired:
        known = mistakes(clients, expired, tmp_path)
        options = {
            name: {f"kafka.{key}": value for key, value in settings.items()} for name, (settings, _) in known.items()
        }
        job = tmp_path / "job.py"
        job.write_text(MISTAKES)
        command = [sys.executable, str(job), json.dumps(options), str(tmp_path / "checkpoint")]
        done = subprocess.run(command, capture_output=True, text=True, timeout=400, check=False)
    printed = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("[")]
    assert len(printed) == 6 * 4, done.stderr[-3000:]
    for name, way, sentence in printed:
        assert known[name][1] in sentence, (name, way, sentence)
        assert "Traceback" not in sentence
        assert "deadLetterTopic" not in sentence
    assert "wr0ng-s3cret" not in done.stdout + done.stderr


@contextmanager
def with_bad_certificates(authority: Authority) -> Iterator[Broker]:
    """A broker with certificates that clients have to reject."""
    old, other = authority.certificate(expired=True), authority.certificate("other.example.org")
    with Broker(
        listen="SSL://127.0.0.1:0,OTHER://127.0.0.1:0",
        listener_security_protocol_map="SSL:SSL,OTHER:SSL",
        process=True,
        **{
            "listener.name.ssl.ssl.keystore.location": authority.write("old.pem", old.chain + old.key),
            "listener.name.other.ssl.keystore.location": authority.write("other.pem", other.chain + other.key),
        },
    ) as broker:
        yield broker


def test_a_pipeline_copies_between_two_logins_and_stores_no_secret(
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
    message = b"".join(text for path, text in kept.items() if path.is_relative_to(events))
    assert b"SparkListenerSQLExecutionStart" in message  # the log contains the plans
    assert any(path.parent.name == "offsets" for path in kept)
    assert "s-secret" not in done.stdout + done.stderr
    for path, text in kept.items():
        assert b"s-secret" not in text, path


def committed(settings: dict[str, Any], topic: str) -> list[bytes]:
    """Return the values that a read_committed consumer reads."""
    with Consumer({**settings, "isolation.level": "read_committed"}) as consumer:
        tp = TopicPartition(topic, 0)
        consumer.assign([tp])
        consumer.seek_to_beginning()
        end, found = consumer.end_offsets([tp])[tp], []
        while consumer.position(tp) < end:
            found += [bytes(record.value or b"") for record in consumer.poll(10.0)]
        return found
