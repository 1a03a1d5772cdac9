"""Topics, as tests of the Spark source and sink need them, on any broker."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
from confluent_kafka import TopicPartition as KafkaPartition
from confluent_kafka.admin import AdminClient, NewPartitions
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.pandas.types import to_arrow_schema

import ottla.spark
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from ottla.spark.columns.schema import spark_schema


def arrow_schema(include_headers: bool = False) -> pa.Schema:
    """Return the columns of a topic without decoding in Spark's Arrow types: microseconds, UTC."""
    return to_arrow_schema(spark_schema(include_headers), timezone="UTC")


def new_session(warehouse: str) -> SparkSession:
    """Return a quiet Spark on two threads, with a Java that does not optimize code that runs once."""
    return ottla.spark.session(
        "ottla-tests",
        "local[2]",
        spark__driver__memory="1g",
        spark__driver__extraJavaOptions="-XX:TieredStopAtLevel=1",
        spark__sql__warehouse__dir=warehouse,
        spark__log__level="OFF",
    )


class Topics:
    """Operations of tests on topics, and the options that connect Spark to them."""

    def __init__(self, spark: SparkSession, servers: str, prefix: str) -> None:
        self.spark, self.servers, self.prefix = spark, servers, prefix

    def create(self, suffix: str = "in", partitions: int = 1) -> str:
        name = f"{self.prefix}-{suffix}"
        with Admin(bootstrap_servers=self.servers) as admin:
            # Records of tests are of 1970: retention would take them.
            admin.create_topics([NewTopic(name, partitions, 1, {"retention.ms": "-1"})])
        return name

    def delete(self, topic: str) -> None:
        with Admin(bootstrap_servers=self.servers) as admin:
            admin.delete_topics([topic])

    def grow(self, topic: str, partitions: int) -> None:
        """Give a topic more partitions, by a client that can."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.create_partitions([NewPartitions(topic, partitions)]).values():
            future.result(30)

    def delete_before(self, topic: str, offset: int) -> None:
        """Delete the records of partition 0 below `offset`, as retention does in time."""
        admin = AdminClient({"bootstrap.servers": self.servers})
        for future in admin.delete_records([KafkaPartition(topic, 0, offset)]).values():
            assert future.result(30).low_watermark == offset

    def send(self, topic: str, *values: str | None, partition: int = 0, timestamp: int = 1000, **more: Any) -> None:
        with Producer(bootstrap_servers=self.servers) as producer:
            futures = [
                producer.send(
                    topic, None if value is None else value.encode(), partition=partition, timestamp=timestamp, **more
                )
                for value in values
            ]
            for future in futures:
                future.result(10)

    def send_bytes(self, topic: str, *values: bytes) -> None:
        with Producer(bootstrap_servers=self.servers) as producer:
            for value in values:
                producer.send(topic, value, partition=0)

    def records(self, topic: str) -> list[Any]:
        """Every record of a topic, partition by partition."""
        with Consumer(bootstrap_servers=self.servers) as consumer:
            tps = [TopicPartition(topic, info.partition) for info in consumer.partitions_for(topic)]
            consumer.assign(tps)
            consumer.seek_to_beginning(*tps)
            ends = consumer.end_offsets(tps)
            found: list[Any] = []
            while any(consumer.position(tp) < ends[tp] for tp in tps):
                found += consumer.poll(timeout=5)
        return sorted(found, key=lambda record: (record.partition, record.offset))

    def values(self, topic: str) -> list[str]:
        return [record.value.decode() for record in self.records(topic)]

    def read(self, **options: Any) -> DataFrame:
        return self.spark.read.format("ottla").options(**self.options(options)).load()

    def stream(self, **options: Any) -> DataFrame:
        return self.spark.readStream.format("ottla").options(**self.options(options)).load()

    def options(self, options: dict[str, Any]) -> dict[str, Any]:
        return {"kafka.bootstrap.servers": self.servers} | options


def values(rows: list[Row]) -> list[str]:
    return sorted(bytes(row.value).decode() for row in rows)
