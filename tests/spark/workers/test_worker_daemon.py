"""How workers end when Spark does."""

from __future__ import annotations

import socket
import subprocess
import sys

import pytest
from pyspark.sql import SparkSession

from ottla.spark.workers.worker_daemon import ENDED, unless_disconnected


def test_a_worker_that_spark_hangs_up_on_ends_in_silence() -> None:
    def work(channel: socket.socket, authenticated: bool) -> int:
        raise BrokenPipeError

    with socket.socket() as channel:
        assert unless_disconnected(work)(channel, True) == ENDED


HUNG_UP_ON = """
import os
from ottla.spark.workers.worker_daemon import unless_disconnected

def work():
    read, write = os.pipe()
    stream = os.fdopen(write, "wb")
    stream.write(b"taken by nobody")
    os.close(read)
    raise BrokenPipeError

unless_disconnected(work)()
"""


def test_remaining_output_of_a_worker_is_not_a_traceback_either() -> None:
    each_python_tells = [sys.executable, "-X", "dev", "-W", "ignore", "-c", HUNG_UP_ON]
    ended = subprocess.run(each_python_tells, capture_output=True, text=True, timeout=120, check=True)
    assert ended.stderr == ""


def test_other_errors_in_a_worker_are_reported() -> None:
    def work(channel: socket.socket, authenticated: bool) -> int:
        raise ValueError("failed on purpose")

    with socket.socket() as channel, pytest.raises(ValueError, match="failed on purpose"):
        unless_disconnected(work)(channel, True)


def test_a_session_on_one_machine_connects_to_its_workers_through_the_file_system(spark: SparkSession) -> None:
    assert spark.conf.get("spark.python.unix.domain.socket.enabled") == "true"
    assert spark.sparkContext.parallelize(range(3), 1).map(lambda row: row + 1).collect() == [1, 2, 3]
