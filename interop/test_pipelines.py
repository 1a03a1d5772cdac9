"""Spark's declarative pipelines, run by their own command: `examples/declarative` in two updates."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from deltalake import DeltaTable

from interop.test_spark_cluster import committed
from ottla import Admin, Broker, NewTopic, Producer

pytestmark = [pytest.mark.behaviour("P10", "D3"), pytest.mark.usefixtures("quick_drivers")]
EXAMPLE = Path(__file__).parent.parent / "examples" / "declarative"
LINES = 300


def pipeline(folder: Path) -> Path:
    """A copy of the example in a new folder, including its checkpoints."""
    copy = Path(shutil.copytree(EXAMPLE, folder / "pipeline"))
    spec = copy / "spark-pipeline.yml"
    text = spec.read_text("utf-8")
    assert "file:///tmp/words/storage" in text
    spec.write_text(text.replace("file:///tmp/words/storage", (folder / "storage").as_uri()))
    return spec


def update(spec: Path, servers: str, folder: Path) -> None:
    """Run the update with the command that a user types."""
    warehouse = f"spark.sql.warehouse.dir={folder / 'warehouse'}"
    command = ["spark-pipelines", "run", "--spec", str(spec), "--remote", "local[2]", "--conf", warehouse]
    tools = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = os.environ | {
        "PATH": tools,
        "PYSPARK_PYTHON": sys.executable,
        "PYSPARK_DRIVER_PYTHON": sys.executable,
        "SPARK_TESTING": "1",  # Spark Connect uses a free port instead of its default
        "WORDS_SERVERS": servers,
        "WORDS_LAKE": str(folder / "lake"),
    }
    log = folder / "pipeline.log"
    with log.open("wb") as out:
        status = subprocess.run(command, stdout=out, stderr=out, env=environment, cwd=folder, timeout=300).returncode
    assert status == 0, log.read_text(errors="replace")[-3000:]


def send(producer: Producer, first: int) -> None:
    for n in range(first, first + LINES):
        producer.send("lines", f"a{n} b{n} c{n}".encode())
    producer.flush()


def test_a_declarative_pipeline_reads_and_writes_topics_and_a_table(tmp_path: Path) -> None:
    spec = pipeline(tmp_path)
    with Broker() as broker, Producer(bootstrap_servers=broker.bootstrap_servers) as producer:
        servers = broker.bootstrap_servers
        with Admin(bootstrap_servers=servers) as admin:
            admin.create_topics([NewTopic("lines", 2, 1), NewTopic("words", 1, 1)])
        for first in (0, LINES):
            send(producer, first)
            update(spec, servers, tmp_path)
            words = {f"{letter}{n}": 1 for letter in "abc" for n in range(first + LINES)}
            table = DeltaTable(str(tmp_path / "lake" / "words")).to_pyarrow_table()
            assert Counter(table.column("value").to_pylist()) == words
            assert committed(servers, "words") == {word.encode(): 1 for word in words}
