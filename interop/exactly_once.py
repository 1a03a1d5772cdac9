"""Count lost and repeated records of a foreign client's exactly-once processor while it and our broker are killed.

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
"""Progress is printed after this number of kills."""
NAMES = (*CLIENTS, "java")


class Tally(NamedTuple):
    """The outcome of a run."""

    lost: int
    doubled: int
    out_of_order: int
    kills: int


class Stage:
    """A broker or cluster, a filled source topic, an empty target topic, and a processor between them."""

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
        """Kill the processor and start the next one."""
        self.kills += 1
        self.processor.kill()
        self.processor.wait()
        self.processor = self._processor()

    def kill_broker(self) -> None:
        """Kill the broker, or nodes of the cluster, and start them again with their data."""
        self.kills += 1
        self.served.kill(self.until_more)

    def until_more(self) -> None:
        """Wait for progress, or for a few seconds: a client may be waiting for the killed node."""
        done, until = self.committed(), time.monotonic() + AWAY_SECONDS
        self.until(lambda: self.committed() > done or time.monotonic() > until)

    def until(self, condition: Callable[[], bool]) -> None:
        """Wait for the condition, and restart a processor that has ended by itself."""
        deadline = time.monotonic() + DEADLINE
        while not condition():
            assert time.monotonic() < deadline, "it does not happen"
            if self.processor.poll() is not None:
                self.processor = self._processor()
            time.sleep(0.05)

    def until_beyond(self, done: int, moment: float) -> None:
        """Wait until `moment`, and then until more than `done` records of the source are committed."""
        self.until(lambda: time.monotonic() >= moment and self.committed() > done)

    def committed(self) -> int:
        """Return the number of committed records of the source."""
        with Consumer(bootstrap_servers=self.address, group_id=GROUP, enable_auto_commit=False) as consumer:
            places = [TopicPartition("source", number) for number in range(PARTITIONS)]
            return sum(each.offset for each in consumer.committed(places).values() if each is not None)

    def tally(self) -> Tally:
        """Read the committed records of the target, and count errors."""
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
        """Stop the processor and the broker or cluster."""
        self.end_processor()
        self.served.close()


def main(client: str, records: int, seconds: float, nodes: str = "1") -> None:
    """Kill the processor or the broker every `seconds`, if there was progress, until all records are processed."""
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
