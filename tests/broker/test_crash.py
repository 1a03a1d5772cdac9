"""A broker that is killed again and again while producers write to it.

The broker is a process with our own client in threads beside it; chance comes from a seed, and
`OTTLA_KILLS=300 OTTLA_SEED=7 pytest tests/broker/test_crash.py` is the long run.
"""

from __future__ import annotations

import os
import random
import signal
import struct
import threading
from pathlib import Path

import pytest

from ottla.broker.embedding.embedded_broker import Broker
from ottla.records.batch import iter_headers
from ottla.storage.inspection import find
from tests.broker.wire import Wire, batch, produce, values

pytestmark = pytest.mark.heavy

KILLS = int(os.environ.get("OTTLA_KILLS", "20"))
SEED = int(os.environ.get("OTTLA_SEED", "1"))
WRITERS = 2
VALUE = struct.Struct(">ii")
"""A writer's number and the count of its record."""


class Writer:
    """Appends numbered records to its own partition, one batch at a time, and remembers what was acknowledged."""

    def __init__(self, number: int, chance: random.Random) -> None:
        self.number = number
        self.chance = chance
        self.sent = 0
        self.attempts: list[tuple[int, int]] = []
        """First record and count of each batch, in the order of sending."""
        self.acknowledged: dict[int, tuple[int, int]] = {}
        """By base offset."""

    def run(self, address: str) -> None:
        """Write until the broker is killed."""
        try:
            with Wire(address) as wire:
                while True:
                    self.write(wire)
        except (OSError, EOFError):
            pass

    def write(self, wire: Wire) -> None:
        count = self.chance.randrange(1, 50)
        records = [VALUE.pack(self.number, self.sent + n) + bytes(self.chance.randrange(400)) for n in range(count)]
        attempt = (self.sent, count)
        self.attempts.append(attempt)
        self.sent += count
        request = produce("t", batch(records), self.number)
        result = wire.ask(request, 11).responses[0].partition_responses[0]
        assert result.error_code == 0, result.error_message
        self.acknowledged[result.base_offset] = attempt

    def check(self, stored: dict[int, tuple[int, int]]) -> None:
        """Every acknowledged record is at its offset; no record is duplicated or out of order."""
        assert self.acknowledged.items() <= stored.items()
        order = list(stored.values())
        assert order == sorted(set(order))
        assert set(order) <= set(self.attempts)


def stored_batches(folder: Path) -> dict[int, tuple[int, int]]:
    """First record and count of every batch in a partition's files, by base offset."""
    found = {}
    for path in sorted(folder.glob("*.log")):
        data = path.read_bytes()
        for position, header in iter_headers(data):
            piece = data[position : position + header.size_bytes]
            found[header.base_offset] = (first_number(piece), header.count)
    return found


def first_number(piece: bytes) -> int:
    from ottla.records.columns import decode

    value = decode(piece).value(0)
    assert value is not None
    number: int = VALUE.unpack_from(value)[1]
    return number


def killed_after(broker: Broker, seconds: float, writers: list[Writer]) -> None:
    """Let the writers write, and kill the broker at the given time."""
    threads = [threading.Thread(target=writer.run, args=(broker.bootstrap_servers,)) for writer in writers]
    for thread in threads:
        thread.start()
    death = threading.Timer(seconds, os.kill, (broker.pid, signal.SIGKILL))
    death.start()
    for thread in threads:
        thread.join()
    death.join()
    broker.close()


@pytest.mark.behaviour("P3")
def test_acknowledged_records_survive_a_kill_at_any_moment(tmp_path: Path) -> None:
    chance = random.Random(SEED)
    writers = [Writer(number, random.Random(chance.random())) for number in range(WRITERS)]
    for kill in range(KILLS):
        broker = Broker(tmp_path, process=True, log_segment_bytes=1_048_576).start()
        if not kill:
            with Wire(broker.bootstrap_servers) as wire:
                wire.create("t", partitions=WRITERS, index_interval_bytes=1000, flush_messages=100)
        killed_after(broker, chance.uniform(0.01, 0.15), writers)
    with Broker(tmp_path) as last, Wire(last.bootstrap_servers) as wire:
        assert values(wire.fetch("t"))
    for writer in writers:
        assert writer.acknowledged
        writer.check(stored_batches(tmp_path / f"t-{writer.number}"))
    assert [check.faults for check in find(tmp_path).run(lambda size: None) if check.faults] == []
