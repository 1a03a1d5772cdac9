"""Exactly once, counted: after any kill, each record is processed once and in order.

`OTTLA_RECORDS=1000000 OTTLA_KILLS=300 pytest -s tests/client/process/test_exactly_once.py` is the long run, with one
random kill of the broker or the processor per second.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

import ottla
from tests.checker.victim import Victim

pytestmark = pytest.mark.heavy

RECORDS = int(os.environ.get("OTTLA_RECORDS", "10000"))
KILLS = int(os.environ.get("OTTLA_KILLS", "4"))
RHYTHM = 1.0 if KILLS >= 100 else 0.0
"""Seconds from one kill to the next, at least."""
PATIENCE = 120.0
PLACE = ottla.TopicPartition("out", 0)


class Tally(NamedTuple):
    """The faults found."""

    lost: int
    doubled: int
    out_of_order: int


def started(address: str) -> subprocess.Popen[bytes]:
    path = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    command = [sys.executable, "-m", "tests.client.process.worker", address]
    return subprocess.Popen(command, env=path, stdout=subprocess.DEVNULL)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Victim]:
    """A broker with the empty topics `in` and `out`."""
    with Victim(tmp_path) as victim:
        victim.start()
        with ottla.Admin(bootstrap_servers=victim.address) as admin:
            admin.create_topics([ottla.NewTopic("in", 1), ottla.NewTopic("out", 1)])
        yield victim


def wait_for_stable(address: str, beyond: int) -> int:
    """Wait until more than so many offsets of `out` are stable; how many there are."""
    deadline = time.monotonic() + PATIENCE
    with ottla.Consumer(bootstrap_servers=address, isolation_level="read_committed") as consumer:
        while (end := consumer.end_offsets([PLACE])[PLACE]) <= beyond:
            assert time.monotonic() < deadline, f"only {end} offsets of out are there, not more than {beyond}"
    return end


def copied(address: str) -> list[int]:
    """All that readers of committed records are given, until it is as much as it should be."""
    found: list[int] = []
    deadline = time.monotonic() + PATIENCE + RECORDS / 1000
    with ottla.Consumer(
        bootstrap_servers=address, isolation_level="read_committed", auto_offset_reset="earliest"
    ) as consumer:
        consumer.assign([PLACE])
        while len(found) < RECORDS:
            found += [int(record.value or b"") for record in consumer.poll(timeout=0.5)]
            assert time.monotonic() < deadline, f"only {len(found)} came through"
        found += [int(record.value or b"") for record in consumer.poll(timeout=0.5)]
    return found


def tally(found: list[int]) -> Tally:
    """Compare the records with all numbers below `RECORDS` in order."""
    counts = Counter(found)
    disorder = sum(after < previous_handlers for previous_handlers, after in pairwise(found))
    return Tally(RECORDS - len(counts), counts.total() - len(counts), disorder)


@pytest.mark.behaviour("P7", "P10")
def test_each_record_is_processed_once_whichever_process_is_killed(broker: Victim) -> None:
    worker, end, chance, pause, begun = started(broker.address), 0, Random(RECORDS), threading.Event(), time.monotonic()
    killed: Counter[str] = Counter()
    try:
        with ottla.Producer(bootstrap_servers=broker.address, delivery_timeout_ms=600_000) as feeder:
            for number in range(KILLS):
                again = time.monotonic() + RHYTHM
                for value in range(RECORDS * number // KILLS, RECORDS * (number + 1) // KILLS):
                    feeder.send("in", b"%d" % value)
                end = wait_for_stable(broker.address, end)
                pause.wait(again - time.monotonic())
                party = chance.choice(["broker", "processor"])
                killed[party] += 1
                if party == "broker":
                    broker.kill()
                    broker.wait()
                    broker.start()
                else:
                    worker.kill()
                    worker.wait()
                    worker = started(broker.address)
        found = copied(broker.address)
        print(f"{RECORDS} records, {dict(killed)}, {tally(found)}, {time.monotonic() - begun:.0f} s")
        assert tally(found) == Tally(0, 0, 0)
    finally:
        worker.terminate()
        worker.wait()
