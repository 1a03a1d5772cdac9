"""A pipeline file on a Spark standalone cluster of two workers.

Ottla is installed there, shipped as an archive, or part of a packed environment.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import venv
from collections.abc import Iterable, Iterator
from pathlib import Path
from site import getsitepackages
from typing import Any

import pytest

from interop.conftest import NewTopicName
from interop.spark_cluster import Cluster, shipped, spark_cluster
from interop.test_spark_cluster import committed
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.client.consumer.record import ConsumerRecord
from ottla.free_ports import free_port
from tests.broker.test_metrics import metrics
from tests.patience import eventually

pytestmark = [pytest.mark.behaviour("D4"), pytest.mark.usefixtures("quick_drivers")]
ROWS = 2_000
SESSION_MS = 3000
LOGINS = 6
PATIENCE = 240.0
LOGGED_IN_AGAIN = ("kafka_server_socket_server_metrics_successful_reauthentication_total", "SASL_SSL")
FAILED_TO = ("kafka_server_socket_server_metrics_failed_reauthentication_total", "SASL_SSL")
MODULE = """
from pyspark.sql import functions as F

def place(_):
    import sys
    import ottla.spark.sink
    return f"{sys.prefix} {ottla.spark.sink.__file__}"

def with_place(frame):
    return frame.withColumn("place", F.udf(place, "string")(F.lit(1)))
"""


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    with spark_cluster(tmp_path_factory.mktemp("cluster")) as running:
        yield running


@pytest.mark.parametrize("way", ["installed", pytest.param("archive", marks=pytest.mark.long), "packed"])
def test_a_pipeline_file_runs_on_a_cluster_with_its_own_functions(
    cluster: Cluster, ottla_broker: str, fresh_topic: NewTopicName, tmp_path: Path, way: str
) -> None:
    source, target = fresh_topic(ottla_broker), fresh_topic(ottla_broker)
    with Producer(bootstrap_servers=ottla_broker) as producer:
        for n in range(ROWS):
            producer.send(source, json.dumps({"n": n}).encode())
    (tmp_path / "own_place.py").write_text(MODULE, encoding="utf-8")
    settings: dict[str, Any] = {"bootstrap.servers": ottla_broker}
    if way == "archive":
        settings["spark"] = {"spark.submit.pyFiles": str(shipped(tmp_path))}
    if way == "packed":
        settings["spark"] = {"spark.archives": f"{packed(tmp_path)}#environment"}
    pipeline = {
        "source": {"type": "topic", "topic": source, "valueFormat": "json", "valueSchema": "n bigint"},
        "transforms": [{"function": "own_place:with_place"}],
        "sink": {"type": "topic", "topic": target},
    }
    file = tmp_path / "p.yaml"
    file.write_text(json.dumps({"settings": settings, "pipelines": {"copy": pipeline}}), encoding="utf-8")
    command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file), "--once", "--master", cluster.url]
    python = "./environment/bin/python" if way == "packed" else sys.executable
    environment = os.environ | {"PYSPARK_PYTHON": python}
    done = subprocess.run(
        command, capture_output=True, text=True, env=environment, cwd=tmp_path, timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    found = [json.loads(value) for value in committed(ottla_broker, target).elements()]
    assert sorted(one["n"] for one in found) == list(range(ROWS))
    places = {one["place"] for one in found}
    assert all(str(cluster.folder) in place.split()[0] for place in places) == (way == "packed"), places
    assert all(("ottla.zip" in place) == (way == "archive") for place in places), places


@pytest.mark.long
def test_expiring_sessions_are_renewed_on_the_same_connections(cluster: Cluster, tmp_path: Path) -> None:
    """The broker's own count of reauthentications proves that the connections stayed open.

    Reconnecting clients would deliver the same rows.
    """
    metrics_at = f"127.0.0.1:{free_port()}"
    secured: dict[str, Any] = {
        "listen": "SASL_SSL://127.0.0.1:0,PLAINTEXT://127.0.0.1:0",
        "users": {"alice": "s3cret"},
        "metrics_listen": metrics_at,
    }
    with Broker(**secured, connections_max_reauth_ms=SESSION_MS) as broker:
        settings = broker.client_settings(mechanism="SCRAM-SHA-256")
        mine = {"bootstrap.servers": broker.addresses["PLAINTEXT"], "isolation.level": "read_committed"}
        with Admin(bootstrap_servers=broker.addresses["PLAINTEXT"]) as admin:
            admin.create_topics([NewTopic("in", 1, 1), NewTopic("out", 1, 1)])
        ends = [{"type": "topic", "topic": name} for name in ("in", "out")]
        pipeline = {"source": ends[0], "sink": ends[1], "trigger": "100 milliseconds"}
        file = tmp_path / "p.yaml"
        file.write_text(json.dumps({"settings": {"kafka": settings}, "pipelines": {"copy": pipeline}}), "utf-8")
        command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file), "--master", cluster.url]
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable}
        with (
            (tmp_path / "said").open("wb") as said,
            subprocess.Popen(command, stdout=said, stderr=said, env=environment, cwd=tmp_path) as process,
            Producer(bootstrap_servers=broker.addresses["PLAINTEXT"]) as producer,
            Consumer(mine) as consumer,
        ):
            try:
                consumer.assign([TopicPartition("out", 0)])
                consumer.seek_to_beginning()
                sent, counts = 0, metrics(metrics_at)
                while counts[LOGGED_IN_AGAIN] < LOGINS:
                    producer.send("in", b"%d" % sent).result(PATIENCE)
                    eventually(lambda: b"%d" % sent in values_of(consumer.poll(1)), PATIENCE)  # noqa: B023
                    sent, counts = sent + 1, metrics(metrics_at)
            finally:
                process.terminate()
        assert process.returncode == 0, (tmp_path / "said").read_text()[-3000:]
        assert sent > 1
        assert counts[FAILED_TO] == 0


def values_of(records: Iterable[ConsumerRecord]) -> list[bytes | None]:
    return [record.raw_value for record in records]


def packed(folder: Path) -> Path:
    """Create an environment for the driver in `folder`, and pack it.

    It refers to the packages installed here, so it is small.
    """
    home = folder / "environment"
    venv.create(home, symlinks=True)
    (site,) = home.glob("lib/python*/site-packages")
    lines = "".join(f"import site; site.addsitedir({place!r})\n" for place in getsitepackages())
    (site / "elsewhere.pth").write_text(lines, encoding="utf-8")
    archive = folder / "environment.tar.gz"
    subprocess.run(["tar", "czf", archive, "-C", home, "."], check=True)
    return archive
