"""A step of the pipeline in Python: join the names of the airlines to the flights."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from examples.flights.data import table


def with_names(flights: DataFrame) -> DataFrame:
    """Return the flights with a column `airline`."""
    names = flights.sparkSession.read.csv(str(table("airlines.csv")), header=True)
    return flights.join(F.broadcast(names.withColumnRenamed("name", "airline")), "carrier", "left")
