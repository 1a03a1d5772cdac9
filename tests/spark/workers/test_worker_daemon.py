"""How workers end when Spark does."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from ottla.spark.workers.worker_daemon import ENDED, unless_spark_hung_up


def test_a_worker_that_spark_hangs_up_on_ends_in_silence() -> None:
    def work(channel: socket.socket, authenticated: bool) -> int:
        raise BrokenPipeError

    with socket.socket() as channel:
        assert unless_spark_hung_up(work)(channel, True) == ENDED


HUNG_UP_ON = """
import os
from ottla.spark.workers.worker_daemon import unless_spark_hung_up

def work():
    read, write = os.pipe()
    stream = os.fdopen(write, "wb")
    stream.write(b"taken by nobody")
    os.close(read)
    raise BrokenPipeError

unless_spark_hung_up(work)()
"""


def test_what_it_had_still_to_say_is_no_traceback_either() -> None:
    each_python_tells = [sys.executable, "-X", "dev", "-W", "ignore", "-c", HUNG_UP_ON]
    ended = subprocess.run(each_python_tells, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stderr == ""


def test_what_else_goes_wrong_in_a_worker_is_told() -> None:
    def work(channel: socket.socket, authenticated: bool) -> int:
        raise ValueError("told")

    with socket.socket() as channel, pytest.raises(ValueError, match="told"):
        unless_spark_hung_up(work)(channel, True)


def test_a_session_of_one_machine_meets_its_workers_in_the_file_system(spark: SparkSession) -> None:
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert spark.sparkContext.parallelize(range(3), 1).map(lambda row: row + 1).collect() == [1, 2, 3]
