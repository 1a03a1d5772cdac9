"""Measure pipelines of a file: a transform by its name, idle pipelines, the first row, and a lookup in a table.

    python -m benchmarks.pipelines [transforms|idle|first|tables …]

A transform by its name is compared with the same DataFrame expression on rows that Spark generates. The others are
measured against a bound. Ten idle pipelines use less than 5 % of a core together (default triggers, one second). The
first row arrives 12 s after `ottla pipeline run`, and 1 s after a warm session receives a pipeline. A GET at 1,000 per
second takes 5 ms at most (p99).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection
from pathlib import Path
from statistics import median, quantiles
from tempfile import TemporaryDirectory
from typing import Any

import psutil
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import ottla.spark
from benchmarks.race import Contender, race
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from ottla.pipelines.file.pipeline_file import PipelineModel
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.control import serve_control
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.pipeline_context import PipelineContext
from ottla.spark.driver.class_archive import archive_path

ROWS = 4_000_000
IDLE, IDLE_SECONDS = 10, 20.0
LOOKS, PER_SECOND = 10_000, 1_000
COLD_ROUNDS, WARM_ROUNDS = 3, 5
PATIENCE = 600.0
COPY: dict[str, Any] = {"source": {"type": "topic", "topic": "in"}, "sink": {"type": "topic", "topic": "out"}}


def session() -> SparkSession:
    return ottla.spark.session("benchmark", "local[2]", spark__log__level="OFF")


def transforms(spark: SparkSession) -> None:
    """Compare transforms by name with hand-written expressions, in four steps."""
    rows = spark.range(ROWS).select(
        F.col("id"), F.concat(F.lit("4111-"), "id").alias("card"), (F.col("id") * 1.5).alias("amount")
    )
    steps = [
        {"type": "InsertField", "static.field": "shop", "static.value": "seoul"},
        {"type": "MaskField", "fields": "card"},
        {"type": "Cast", "spec": "amount:int64"},
        {"type": "ReplaceField", "renames": "amount:total"},
    ]
    given = {"source": {"type": "rate"}, "transforms": steps, "sink": {"type": "console"}}
    named = rows
    for step in PipelineModel.model_validate(given).transforms:
        named = step.apply(named, PipelineContext())
    masked = F.when(F.col("card").isNotNull(), F.lit(""))
    by_hand = rows.select(
        "id", masked.alias("card"), F.col("amount").cast("bigint").alias("total"), F.lit("seoul").alias("shop")
    )
    contenders = [Contender("by name", work(named)), Contender("by hand", work(by_hand))]
    race(f"Four transforms of {ROWS:,} rows", contenders, unit="rows/s")


def work(frame: DataFrame) -> Callable[[], int]:
    def run() -> int:
        frame.write.format("noop").mode("overwrite").save()
        return ROWS

    return run


@contextmanager
def managed(spark: SparkSession, servers: str, folder: Path, **pipelines: Any) -> Iterator[str]:
    """Start a manager that runs these pipelines, and yield its address."""
    text = json.dumps({"settings": {"bootstrap.servers": servers}, "pipelines": pipelines})
    manager = Manager(read_text(text.encode(), "benchmark", folder, {}), spark)
    with serve_control(manager) as address:
        thread = threading.Thread(target=manager.run)
        thread.start()
        try:
            yield address
        finally:
            manager.stop()
            thread.join()


def created(servers: str, *names: str) -> None:
    with Admin(bootstrap_servers=servers) as admin:
        admin.create_topics([NewTopic(name, 1, 1) for name in names])


def running(address: str) -> bool:
    return all(one["state"] == "running" for one in asked(address, "/pipelines"))


def asked(address: str, path: str) -> Any:
    connection = HTTPConnection(address, timeout=60)
    connection.request("GET", path)
    response = connection.getresponse()
    data = response.read()
    connection.close()
    return json.loads(data) if response.status == 200 else None


def wait(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def family_seconds() -> float:
    """Return the processor time of this process, its Java and their workers, without the broker."""
    family = [psutil.Process(), *psutil.Process().children(recursive=True)]
    return sum(sum(one.cpu_times()[:2]) for one in family if "ottla.broker" not in " ".join(one.cmdline()))


def idle(spark: SparkSession, servers: str, folder: Path) -> None:
    """Measure pipelines without input."""
    created(servers, "in", "out")
    pipelines = {f"p{number}": COPY for number in range(IDLE)}
    with managed(spark, servers, folder, **pipelines) as address:
        wait(lambda: running(address))
        time.sleep(5)
        began, clock = family_seconds(), time.monotonic()
        time.sleep(IDLE_SECONDS)
        used = (family_seconds() - began) / (time.monotonic() - clock)
    print(f"{IDLE} idle pipelines: {used:.1%} of a core (to reach: below 5 %)")


def first_row(servers: str, since: float) -> float:
    """Return the seconds until there is a committed record in `out`."""
    with Consumer(bootstrap_servers=servers, isolation_level="read_committed") as consumer:
        tp = TopicPartition("out", 0)
        consumer.assign([tp])
        consumer.seek_to_beginning(tp)
        wait(lambda: consumer.poll(timeout=0.05))
    return time.monotonic() - since


def first_cold(folder: Path) -> None:
    """Measure the time from the command to the first row including Spark's start, in first and later runs."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith(("PYSPARK", "SPARK"))}
    environment["XDG_CACHE_HOME"] = str(folder)
    print(f"first row, cold, first run: {cold(folder, environment):.1f} s")
    archive = archive_path(environment)
    wait(archive.exists)
    for _ in range(COLD_ROUNDS):
        print(f"first row, cold: {cold(folder, environment):.1f} s (to reach: below 12)")


def cold(folder: Path, environment: Mapping[str, str]) -> float:
    """Seconds from the command to the first row."""
    with TemporaryDirectory(dir=folder) as place, Broker(process=True) as broker:
        servers = broker.bootstrap_servers
        created(servers, "in", "out")
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("in", b"1")
        file = Path(place, "cold.yaml")
        file.write_text(json.dumps({"settings": {"bootstrap.servers": servers}, "pipelines": {"copy": COPY}}))
        began = time.monotonic()
        command = [sys.executable, "-m", "ottla.cli.main", "pipeline", "run", str(file)]
        process = subprocess.Popen(command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            return first_row(servers, began)
        finally:
            process.terminate()
            process.wait()


def first_warm(spark: SparkSession, folder: Path) -> None:
    """Measure the time from a manager's start in a warm session to the first row."""
    print(f"first row, to warm up: {warm(spark, folder):.2f} s")
    found = [warm(spark, folder) for _ in range(WARM_ROUNDS)]
    told = ", ".join(f"{seconds:.2f}" for seconds in found)
    print(f"first row, warm: {median(found):.2f} s, the median of {told} (to reach: below 1)")


def warm(spark: SparkSession, folder: Path) -> float:
    """Return the seconds from the manager's start to the first row."""
    with Broker(process=True) as broker, TemporaryDirectory(dir=folder) as place:
        servers = broker.bootstrap_servers
        created(servers, "in", "out")
        with Producer(bootstrap_servers=servers) as producer:
            producer.send("in", b"1")
        began = time.monotonic()
        with managed(spark, servers, Path(place), copy=COPY):
            return first_row(servers, began)


def tables(spark: SparkSession, servers: str, folder: Path) -> None:
    """Measure lookups in a table of 10,000 keys, a thousand per second on one connection."""
    created(servers, "rows")
    with Producer(bootstrap_servers=servers) as producer:
        for number in range(10_000):
            producer.send("rows", json.dumps({"n": number}).encode(), key=str(number).encode())
    pipeline = {
        "source": {"type": "topic", "topic": "rows"},
        "sink": {"type": "topic", "topic": "table", "table": True},
    }
    with managed(spark, servers, folder, table=pipeline) as address:
        wait(lambda: (known := asked(address, "/tables")) and known[0].get("keys") == 10_000)
        connection = HTTPConnection(address, timeout=60)
        spans, begin = [], time.perf_counter()
        for number in range(LOOKS):
            time.sleep(max(0.0, begin + number / PER_SECOND - time.perf_counter()))
            asked_at = time.perf_counter()
            connection.request("GET", f"/tables/table/{number}")
            assert json.loads(connection.getresponse().read()) == {"n": number}
            spans.append((time.perf_counter() - asked_at) * 1000)
        rate = LOOKS / (time.perf_counter() - begin)
        connection.close()
    cuts = quantiles(spans, n=100)
    print(f"GET /tables/…: {rate:,.0f}/s, p50 {cuts[49]:.2f} ms, p99 {cuts[98]:.2f} ms (to reach: below 5)")


def main() -> None:
    wanted = sys.argv[1:] or ["transforms", "idle", "first", "tables"]
    with TemporaryDirectory() as place:
        folder = Path(place)
        if "first" in wanted:
            first_cold(folder)
        spark = session()
        if "transforms" in wanted:
            transforms(spark)
        if "first" in wanted:
            first_warm(spark, folder)
        for name, measure in (("idle", idle), ("tables", tables)):
            if name in wanted:
                with Broker(process=True) as broker, TemporaryDirectory(dir=folder) as own:
                    measure(spark, broker.bootstrap_servers, Path(own))
        spark.stop()


if __name__ == "__main__":
    main()
