"""The Spark job: from the topic `flights` to the topic `delays`, and to a Delta table of all flights.

    python -m examples.flights.job BOOTSTRAP_SERVERS CHECKPOINT_FOLDER TABLE_FOLDER

The topic gets one row per day, airport and carrier: how many flights, how many were cancelled, and how late the others
left. Both are written exactly once: whenever the job is killed and started again, it goes on where it was.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

import ottla.spark
from examples.flights.data import LOCAL_TIME, table

# A flight as the topic has it, in JSON. A cancelled flight has no delay.
FLIGHT = "carrier string, flight int, tailnum string, origin string, dest string, dep_delay int"


def read_flights(spark: SparkSession, servers: str) -> DataFrame:
    """The topic as a stream of rows, each with its place in the topic."""
    records = (
        spark.readStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("subscribe", "flights")
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 60_000)
        .load()
    )
    flight = F.from_json(F.col("value").cast("string"), FLIGHT).alias("flight")
    # A record's timestamp is the scheduled departure, an instant. A day, though, is a day at the airport: so the
    # clock is set to New York before flights are put into days (the session's own time zone is UTC).
    local = F.from_utc_timestamp("timestamp", LOCAL_TIME).alias("departure")
    return records.select("partition", "offset", local, flight).select("partition", "offset", "departure", "flight.*")


def daily_delays(flights: DataFrame, airlines: DataFrame) -> DataFrame:
    """Flights, cancellations and delays per day, airport and carrier."""
    return (
        # Each partition of the topic is in order of time, but one may be read days ahead of another. A day is
        # therefore finished only when a departure ten days later has been seen.
        flights.withWatermark("departure", "10 days")
        .join(F.broadcast(airlines), "carrier", "left")
        .groupBy(F.window("departure", "1 day"), "origin", "carrier", F.col("name").alias("airline"))
        .agg(
            F.count("*").alias("flights"),
            F.count_if(F.col("dep_delay").isNull()).alias("cancelled"),
            F.avg("dep_delay").alias("mean_delay"),
            F.max("dep_delay").alias("worst_delay"),
        )
        .withColumn("day", F.date_format("window.start", "yyyy-MM-dd"))
        .drop("window")
    )


def write_delays(delays: DataFrame, servers: str, checkpoint: str) -> StreamingQuery:
    """Send each finished day to the topic, once it is finished (append mode), and stop at the end of the input.

    `exactly_once` is all there is to say; who reads the topic asks for what is committed.
    """
    key = F.concat_ws(" ", "day", "origin", "carrier").alias("key")
    value = F.to_json(F.struct(*delays.columns)).alias("value")
    return (
        delays.select(key, value)
        .writeStream.format("ottla")
        .option("kafka.bootstrap.servers", servers)
        .option("topic", "delays")
        .option("deliveryGuarantee", "exactly_once")
        .option("checkpointLocation", checkpoint)
        .outputMode("append")
        .trigger(availableNow=True)
        .start()
    )


def keep_flights(flights: DataFrame, table: str, checkpoint: str) -> StreamingQuery:
    """Add every flight to the Delta table, with its place in the topic, and stop at the end of the input."""
    return (
        flights.where("carrier is not null")  # the closing records are no flights
        .writeStream.format("ottla_delta")
        .option("checkpointLocation", checkpoint)
        .trigger(availableNow=True)
        .start(table)
    )


def position(query: StreamingQuery) -> int:
    """How many records of the topic the query has read, in all of its lives."""
    last = query.lastProgress
    if last is None or last.sources[0].endOffset is None:
        return 0
    return sum(json.loads(last.sources[0].endOffset)["flights"].values())


def report(queries: dict[str, StreamingQuery]) -> None:
    """Print how far the queries are, a line of JSON every second or two, until all have ended."""
    running = dict(queries)
    while running:
        for name, query in list(running.items()):
            if query.awaitTermination(1):
                del running[name]
        print(json.dumps({"positions": {name: position(query) for name, query in queries.items()}}), flush=True)


def main() -> None:
    servers, checkpoints, table_folder = sys.argv[1:]
    # Spark logs warnings only, and to its standard error, which whoever starts this job can send elsewhere.
    quiet = f"-Dlog4j2.configurationFile={Path(__file__).with_name('log4j2.properties').as_uri()}"
    spark = ottla.spark.session("flights", spark__driver__memory="1g", spark__driver__extraJavaOptions=quiet)
    print(json.dumps({"spark": spark.version}), flush=True)
    airlines = spark.read.csv(str(table("airlines.csv")), header=True)
    flights = read_flights(spark, servers)
    delays = write_delays(daily_delays(flights, airlines), servers, f"{checkpoints}/delays")
    table_of_flights = keep_flights(flights, table_folder, f"{checkpoints}/flights")
    report({"topic": delays, "table": table_of_flights})
    spark.stop()


if __name__ == "__main__":
    main()
