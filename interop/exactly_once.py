"""Counts what a foreign client's exactly once comes to, while its processor and our broker are killed.

python -m interop.exactly_once CLIENT RECORDS SECONDS_BETWEEN_KILLS [NODES]
"""

from __future__ import annotations

import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from interop.java_programs import program
from interop.processor import CLIENTS
from interop.served import OneBroker, Served, ThreeNodes
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition

PARTITIONS = 3
GROUP = "exactly-once"
DEADLINE = 300.0
AWAY_SECONDS = 5.0
TOLD = 20
"""After so many kills it is told how far it is."""
NAMES = (*CLIENTS, "java")


class Tally(NamedTuple):
    """What came out."""

    lost: int
    doubled: int
    out_of_order: int
    kills: int


class Stage:
    """Who answers, a source that is full, a target that is empty, and a processor between them."""

    def __init__(self, served: Served, client: str, records: int) -> None:
        self.served, self.client, self.records = served, client, records
        self.address = served.address
        self.kills = 0
        with Admin(bootstrap_servers=self.address) as admin:
            admin.create_topics([NewTopic("source", PARTITIONS), NewTopic("target", PARTITIONS)])
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(records):
                producer.send("source", b"%d" % number, partition=number % PARTITIONS)
        self.processor = self._processor()

    def _processor(self) -> subprocess.Popen[bytes]:
        words = (self.address, "source", "target", GROUP)
        if self.client == "java":
            command = program("Processor", *words)
        else:
            command = [sys.executable, "-m", "interop.processor", self.client, *words]
        return subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def kill_processor(self) -> None:
        """Kill it, and start the next."""
        self.kills += 1
        self.processor.kill()
        self.processor.wait()
        self.processor = self._processor()

    def kill_broker(self) -> None:
        """Kill it, or a part of it, and start it again on its data."""
        self.kills += 1
        self.served.kill(self.until_more)

    def until_more(self) -> None:
        """Wait until more is done, or for a moment: a client may wait for the very node that is away."""
        done, until = self.committed(), time.monotonic() + AWAY_SECONDS
        self.until(lambda: self.committed() > done or time.monotonic() > until)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait, and start a processor again that ended by itself."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, "it does not happen"
            if self.processor.poll() is not None:
                self.processor = self._processor()
            time.sleep(0.05)

    def until_beyond(self, done: int, moment: float) -> None:
        """Wait for a moment, and then until more of the source is done than that."""
        self.until(lambda: time.monotonic() >= moment and self.committed() > done)

    def committed(self) -> int:
        """Records of the source that are done."""
        with Consumer(bootstrap_servers=self.address, group_id=GROUP, enable_auto_commit=False) as consumer:
            places = [TopicPartition("source", number) for number in range(PARTITIONS)]
            return sum(each.offset for each in consumer.committed(places).values() if each is not None)

    def tally(self) -> Tally:
        """Read what is committed in the target, and count."""
        self.processor.kill()
        self.processor.wait()
        seen: dict[int, list[int]] = {}
        places = [TopicPartition("target", number) for number in range(PARTITIONS)]
        with Consumer(bootstrap_servers=self.address, isolation_level="read_committed") as consumer:
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends = consumer.end_offsets(places)
            while any(consumer.position(each) < ends[each] for each in places):
                for record in consumer.poll(1):
                    seen.setdefault(record.partition, []).append(int(record.value or b""))
        counts = Counter(number for numbers in seen.values() for number in numbers)
        disorder = sum(a > b for numbers in seen.values() for a, b in pairwise(numbers))
        return Tally(self.records - len(counts), counts.total() - len(counts), disorder, self.kills)

    def end_processor(self) -> None:
        self.processor.kill()
        self.processor.wait()

    def close(self) -> None:
        """End the processor and who answers it."""
        self.end_processor()
        self.served.close()


def main(client: str, records: int, seconds: float, nodes: str = "1") -> None:
    """Kill one or the other every so many seconds, once anything was done since the last time, until all is done."""
    chance = random.Random(client)
    with tempfile.TemporaryDirectory() as folder:
        served = OneBroker(Path(folder)) if nodes == "1" else ThreeNodes(Path(folder), client)
        stage = Stage(served, client, records)
        begun = time.monotonic()
        while (done := stage.committed()) < records:
            stage.until_beyond(done, time.monotonic() + seconds)
            chance.choice([stage.kill_processor, stage.kill_broker])()
            if stage.kills % TOLD == 0:
                print(f"{client}: {done} of {records} after {stage.kills} kills", flush=True)
        print(client, stage.tally(), f"{time.monotonic() - begun:.0f} s", flush=True)
        stage.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]), *sys.argv[4:])
