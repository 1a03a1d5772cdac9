"""The inner half of `pipeline_race.py`: runs under pyspark 4.2 and prints a line of JSON for each run.

python -m benchmarks._pipeline_race_session CASE BOOTSTRAP_SERVERS DATABASE JARS ROWS ROUNDS FOLDER
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import psycopg
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

import ottla.spark
from benchmarks._processor_time import Meter
from ottla import Admin, NewTopic, TopicPartition
from ottla.pipelines.file.reading import read_text
from ottla.pipelines.manager.manager import Manager
from ottla.pipelines.manager.session import CHECKPOINTS
from ottla.spark.workers.worker_python import loaded_too

PARTITIONS = 2
WARM = 3
"""Warm-up rounds. During these the hand-written query, which runs in Java only, becomes faster with each round."""
LOADED_TOO = ("psycopg", "ottla.pipelines.feeds.feed_source", "ottla.pipelines.sources.database.model")
"""The modules that `ottla pipeline run` preloads before it forks workers if a file contains a database of this kind."""
SEED = 15
SCHEMA = "id bigint, card string, at timestamp, amount double"
QUERY = "select id, at, amount * 1.1 as amount, concat('shop-', id % 10) as shop from input where id % 4 != 0"
COLUMNS = (
    "concat('4111-', id) as card",
    "timestamp_seconds(1700000000 + id) as at",
    "cast(id * 1.5 as double) as amount",
)
LATEST = -1
KEPT = 0.75
"""The share of the rows that pass the query's filter."""
DELTA = {
    "spark__sql__extensions": "io.delta.sql.DeltaSparkSessionExtension",
    "spark__sql__catalog__spark_catalog": "org.apache.spark.sql.delta.catalog.DeltaCatalog",
}
"""The settings from Delta's guide."""
COPY = "select id, card, at, amount from input"


class Race:
    """The cases, each as a pipeline of ours and as a hand-written query. All read the data of `prepare`."""

    def __init__(self, spark: SparkSession, servers: str, database: str, rows: int, folder: Path) -> None:
        self.spark, self.servers, self.database, self.rows, self.folder = spark, servers, database, rows, folder
        self.admin = Admin(bootstrap_servers=servers)
        self.kafka = {"kafka.bootstrap.servers": servers}

    # What there is

    def made(self) -> DataFrame:
        return self.spark.range(0, self.rows, 1, PARTITIONS).selectExpr("id", *COLUMNS)

    def topic(self) -> str:
        """Create a topic and return its name."""
        name = f"rows-{uuid4()}"
        self.admin.create_topics([NewTopic(name, PARTITIONS, 1)])
        return name

    def fill(self) -> str:
        name = self.topic()
        rows = self.made().select(F.to_json(F.struct("*")).alias("value"))
        rows.write.format("ottla").mode("append").options(**self.kafka, topic=name).save()
        return name

    def place(self) -> str:
        return str(self.folder / str(uuid4()))

    def count(self, topic: str) -> int:
        """Return the number of records in a topic, including transaction markers."""
        parts = [TopicPartition(topic, number) for number in range(PARTITIONS)]
        return sum(self.admin.list_offsets(dict.fromkeys(parts, LATEST))[part].offset for part in parts)

    # Ours

    def run(self, **pipelines: Any) -> None:
        text = json.dumps({"settings": {"bootstrap.servers": self.servers}, "pipelines": pipelines})
        folder = Path(self.place())
        folder.mkdir()
        for (
            name,
            value,
        ) in CHECKPOINTS.items():  # as `ottla pipeline run` sets it; the hand-written query uses Spark's default
            self.spark.conf.set(name, value)
        assert Manager(read_text(text.encode(), "race", folder, {}), self.spark, once=True).run()
        for name in CHECKPOINTS:
            self.spark.conf.unset(name)

    def source(self, topic: str) -> dict[str, Any]:
        return {"type": "topic", "topic": topic, "valueFormat": "json", "valueSchema": SCHEMA}

    # By hand

    def read(self, topic: str) -> DataFrame:
        stream = self.spark.readStream.format("kafka").options(
            **self.kafka, subscribe=topic, startingOffsets="earliest"
        )
        return stream.load().select(F.from_json(F.col("value").cast("string"), SCHEMA).alias("v")).select("v.*")

    def queried(self, frame: DataFrame) -> DataFrame:
        frame.createOrReplaceTempView("input")
        return self.spark.sql(QUERY)

    def write(self, frame: DataFrame, topic: str) -> None:
        rows = frame.select(F.to_json(F.struct("*")).alias("value"))
        self.finish(rows.writeStream.format("kafka").options(**self.kafka, topic=topic))

    def finish(self, writer: Any) -> None:
        query = writer.option("checkpointLocation", self.place()).trigger(availableNow=True).start()
        query.awaitTermination()

    # The cases

    def sql(self) -> dict[str, Callable[[], None]]:
        filled, transforms = self.fill(), [{"sql": QUERY}]

        def ours() -> None:
            topic = self.topic()
            self.run(
                p={"source": self.source(filled), "transforms": transforms, "sink": {"type": "topic", "topic": topic}}
            )
            assert self.count(topic) >= int(self.rows * KEPT)

        def by_hand() -> None:
            topic = self.topic()
            self.write(self.queried(self.read(filled)), topic)
            assert self.count(topic) == int(self.rows * KEPT)

        return {"pipeline file": ours, "by hand": by_hand}

    def table(self) -> dict[str, Callable[[], None]]:
        filled = self.fill()

        def ours() -> None:
            path = self.place()
            step = {"sql": COPY}
            self.run(p={"source": self.source(filled), "transforms": [step], "sink": {"type": "delta", "path": path}})
            from deltalake import DeltaTable

            assert DeltaTable(path).count() == self.rows

        def by_hand() -> None:
            path = self.place()
            self.finish(self.read(filled).writeStream.format("parquet").option("path", path))
            assert self.spark.read.parquet(path).count() == self.rows

        def delta_by_hand() -> None:
            path = self.place()
            self.finish(self.read(filled).writeStream.format("delta").option("path", path))
            from deltalake import DeltaTable

            assert DeltaTable(path).count() == self.rows

        return {"pipeline file, Delta": ours, "by hand": by_hand, "by hand, Delta": delta_by_hand}

    def files(self) -> dict[str, Callable[[], None]]:
        path = self.place()
        self.made().write.csv(path)

        def ours() -> None:
            topic = self.topic()
            source = {"type": "files", "format": "csv", "path": path, "schema": SCHEMA}
            self.run(p={"source": source, "sink": {"type": "topic", "topic": topic}})
            assert self.count(topic) >= self.rows

        def by_hand() -> None:
            topic = self.topic()
            self.write(self.spark.readStream.schema(SCHEMA).csv(path), topic)
            assert self.count(topic) == self.rows

        return {"pipeline file": ours, "by hand": by_hand}

    def database_(self) -> dict[str, Callable[[], None]]:
        columns = "id bigint primary key, card text not null, at timestamptz not null, amount double precision not null"
        with psycopg.connect(self.database, autocommit=True) as connection:
            connection.execute(f"create table rows ({columns})")
            connection.execute(
                "insert into rows select n, '4111-' || n, to_timestamp(1700000000 + n), n * 1.5 "
                f"from generate_series(0, {self.rows - 1}) n"
            )
            connection.execute("analyze rows")

        def table() -> str:
            name = f"t{uuid4().hex}"
            with psycopg.connect(self.database, autocommit=True) as connection:
                connection.execute(f"create table {name} ({columns})")
            return name

        def check(name: str) -> None:
            with psycopg.connect(self.database, autocommit=True) as connection:
                assert connection.execute(f"select count(*) from {name}").fetchone() == (self.rows,)
                connection.execute(f"drop table {name}")

        def ours() -> None:
            topic, to = self.topic(), table()
            source: dict[str, Any] = {"type": "database", "url": self.database, "table": "rows", "incrementing": "id"}
            sink = {"type": "database", "url": self.database, "table": to}
            out = {"source": source, "sink": {"type": "topic", "topic": topic}}
            self.run(out=out, back={"source": self.source(topic), "transforms": [{"sql": COPY}], "sink": sink})
            check(to)

        def by_hand(tuned: bool) -> None:
            topic, to = self.topic(), table()
            reader = self.spark.read.format("jdbc").options(**self.jdbc(tuned), dbtable="rows")
            if tuned:
                split: dict[str, Any] = {
                    "partitionColumn": "id",
                    "lowerBound": 0,
                    "upperBound": self.rows,
                    "numPartitions": PARTITIONS,
                }
                reader = reader.options(**split, fetchsize=10_000)
            values = reader.load().select(F.to_json(F.struct("*")).alias("value"))
            values.write.format("kafka").options(**self.kafka, topic=topic).save()

            def write(batch: DataFrame, number: int) -> None:
                batch.write.format("jdbc").mode("append").options(**self.jdbc(tuned), dbtable=to).save()

            self.finish(self.read(topic).writeStream.foreachBatch(write))
            check(to)

        return {
            "pipeline file": ours,
            "by hand": lambda: by_hand(False),
            "by hand, tuned": lambda: by_hand(True),
        }

    def jdbc(self, tuned: bool) -> dict[str, Any]:
        place = urlsplit(self.database)
        quick = "?reWriteBatchedInserts=true" if tuned else ""
        url = f"jdbc:postgresql://{place.hostname}:{place.port}{place.path}{quick}"
        more = {"batchsize": 10_000} if tuned else {}
        return {
            "url": url,
            "user": place.username,
            "password": place.password,
            "driver": "org.postgresql.Driver",
            **more,
        }


def main() -> None:
    case, servers, database, jars, rows, rounds, folder = sys.argv[1:]
    loaded_too.update(LOADED_TOO)
    memory = {"spark__driver__memory": "3g", "spark__jars": jars, "spark__log__level": "OFF"}
    spark = ottla.spark.session("benchmark", "local[2]", **memory, **(DELTA if case == "table" else {}))
    race = Race(spark, servers, database, int(rows), Path(folder))
    contenders = (race.database_ if case == "database" else getattr(race, case))()
    order = Random(SEED)
    for number in range(-WARM, int(rounds)):
        for name in order.sample(list(contenders), len(contenders)):
            java: Any = spark.sparkContext._jvm
            java.System.gc()
            meter, began = Meter(), time.perf_counter()
            contenders[name]()
            taken = {"who": name, "seconds": time.perf_counter() - began, "cpu": meter.seconds()}
            if number >= 0:
                print(json.dumps(taken), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
