"""The inner half of `spark_source.py`: runs under pyspark 4.2 and prints a line of JSON for each measurement.

python -m benchmarks._spark_session BOOTSTRAP_SERVERS JARS RECORDS ROUNDS
"""

from __future__ import annotations

import json
import sys
import time

from pyspark.sql import DataFrame, SparkSession

import ottla.spark

READS = {"value only": ["value"], "all columns": ["*"]}
FORMATS = ("kafka", "ottla")


def topic(spark: SparkSession, form: str, servers: str, columns: list[str]) -> DataFrame:
    """The same query for both but for the name of the format."""
    options = {"kafka.bootstrap.servers": servers, "subscribe": "rows"}
    return spark.read.format(form).options(**options).load().select(*columns)


def seconds(frame: DataFrame) -> float:
    """How long Spark takes to read all of it."""
    started = time.perf_counter()
    frame.write.format("noop").mode("overwrite").save()
    return time.perf_counter() - started


def main() -> None:
    servers, jars, records, rounds = sys.argv[1:]
    memory = {"spark__driver__memory": "2g", "spark__jars": jars, "spark__log__level": "ERROR"}
    spark = ottla.spark.session("benchmark", "local[2]", **memory)
    for name, columns in READS.items():
        frames = {form: topic(spark, form, servers, columns) for form in FORMATS}
        for frame in frames.values():  # the first run of a path is two to three times slower
            seconds(frame)
            assert frame.count() == int(records)
        for _ in range(int(rounds)):
            for form, frame in frames.items():
                print(json.dumps({"read": name, "source": form, "seconds": seconds(frame)}), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
