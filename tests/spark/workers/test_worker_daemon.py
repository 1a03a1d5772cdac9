"""How workers end when Spark does."""

from __future__ import annotations

import socket

import pytest
from pyspark.sql import SparkSession

from ottla.spark.workers.worker_daemon import ENDED, unless_spark_hung_up


def test_a_worker_that_spark_hangs_up_on_ends_in_silence() -> None:
    def work(channel: socket.socket, authenticated: bool) -> int:
        raise BrokenPipeError

    with socket.socket() as channel:
        assert unless_spark_hung_up(work)(channel, True) == ENDED


def test_what_else_goes_wrong_in_a_worker_is_told() -> None:
    def work(channel: socket.socket, authenticated: bool) -> int:
        raise ValueError("told")

    with socket.socket() as channel, pytest.raises(ValueError, match="told"):
        unless_spark_hung_up(work)(channel, True)


def test_a_session_of_one_machine_meets_its_workers_in_the_file_system(spark: SparkSession) -> None:
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert spark.sparkContext.parallelize(range(3), 1).map(lambda row: row + 1).collect() == [1, 2, 3]
