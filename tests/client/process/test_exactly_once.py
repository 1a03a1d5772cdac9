"""Exactly once, counted: whoever is killed, each record comes through once and in order.

`OTTLA_RECORDS=1000000 OTTLA_KILLS=300 pytest tests/client/process/test_exactly_once.py` is the long run.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

import ottla
from tests.checker.victim import Victim

RECORDS = int(os.environ.get("OTTLA_RECORDS", "10000"))
KILLS = int(os.environ.get("OTTLA_KILLS", "3"))
PATIENCE = 60.0
PLACE = ottla.TopicPartition("out", 0)


def started(address: str) -> subprocess.Popen[bytes]:
    path = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    return subprocess.Popen([sys.executable, "-m", "tests.client.process.worker", address], env=path)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Victim]:
    """With `in` full and `out` empty."""
    with Victim(tmp_path) as victim:
        victim.start()
        with ottla.Admin(bootstrap_servers=victim.address) as admin:
            admin.create_topics([ottla.NewTopic("in", 1), ottla.NewTopic("out", 1)])
        with ottla.Producer(bootstrap_servers=victim.address) as producer:
            for number in range(RECORDS):
                producer.send("in", b"%d" % number)
        yield victim


def come_through(address: str, beyond: int) -> int:
    """Wait until more than so many offsets of `out` are stable; how many there are."""
    deadline = time.monotonic() + PATIENCE
    with ottla.Consumer(bootstrap_servers=address, isolation_level="read_committed") as consumer:
        while (end := consumer.end_offsets([PLACE])[PLACE]) <= beyond:
            assert time.monotonic() < deadline, f"only {end} offsets of out are there, not {beyond}"
    return end


def copied(address: str) -> list[bytes]:
    """All that readers of committed records are given, until it is as much as it should be."""
    found: list[bytes] = []
    deadline = time.monotonic() + PATIENCE + RECORDS / 1000
    with ottla.Consumer(
        bootstrap_servers=address, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([PLACE])
        while len(found) < RECORDS:
            found += [record.value for record in consumer.poll(timeout=0.5)]
            assert time.monotonic() < deadline, f"only {len(found)} came through"
        found += [record.value for record in consumer.poll(timeout=0.5)]
    return found


@pytest.mark.behaviour("P7", "P10")
def test_each_record_comes_through_once_whoever_is_killed(broker: Victim) -> None:
    worker, end = started(broker.address), 0
    try:
        for number in range(KILLS):
            end = come_through(broker.address, end + RECORDS // (2 * KILLS))
            if number % 2:
                broker.kill()
                broker.wait()
                broker.start()
            else:
                worker.kill()
                worker.wait()
                worker = started(broker.address)
        assert copied(broker.address) == [b"%d" % number for number in range(RECORDS)]
    finally:
        worker.terminate()
        worker.wait()
