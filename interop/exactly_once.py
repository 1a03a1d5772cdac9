"""Counts what a foreign client's exactly once comes to, while its processor and our broker are killed.

python -m interop.exactly_once CLIENT RECORDS SECONDS_BETWEEN_KILLS
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from interop.processor import CLIENTS
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition
from rivals.apache_kafka import java

PARTITIONS = 3
GROUP = "exactly-once"
DEADLINE = 300.0
TOLD = 20
"""After so many kills it is told how far it is."""
SETTINGS = {"group_min_session_timeout_ms": 1000, "transaction_partition_verification_enable": True}
NAMES = (*CLIENTS, "java")


class Tally(NamedTuple):
    """What came out."""

    lost: int
    doubled: int
    out_of_order: int
    kills: int


class Stage:
    """A broker, a source that is full, a target that is empty, and a processor between them."""

    def __init__(self, folder: Path, client: str, records: int) -> None:
        self.folder, self.client, self.records = folder, client, records
        self.broker = self._broker("127.0.0.1:0")
        self.address = self.broker.bootstrap_servers
        self.kills = 0
        with Admin(bootstrap_servers=self.address) as admin:
            admin.create_topics([NewTopic("source", PARTITIONS), NewTopic("target", PARTITIONS)])
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(records):
                producer.send("source", b"%d" % number, partition=number % PARTITIONS)
        self.processor = self._processor()

    def _broker(self, listen: str) -> Broker:
        return Broker(self.folder, listen=listen, process=True, **SETTINGS).start()

    def _processor(self) -> subprocess.Popen[bytes]:
        words = (self.address, "source", "target", GROUP)
        if self.client == "java":
            command = java(str(Path(__file__).with_name("java") / "Processor.java"), *words)
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
        """Kill it, and start it again on its data."""
        self.kills += 1
        os.kill(self.broker.pid, signal.SIGKILL)
        self.broker.close()
        self.broker = self._broker(self.address)

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

    def close(self) -> None:
        """End the processor and the broker."""
        self.processor.kill()
        self.processor.wait()
        self.broker.close()


def main(client: str, records: int, seconds: float) -> None:
    """Kill one or the other every so many seconds, once anything was done since the last time, until all is done."""
    chance = random.Random(client)
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder), client, records)
        begun = time.monotonic()
        while (done := stage.committed()) < records:
            stage.until_beyond(done, time.monotonic() + seconds)
            chance.choice([stage.kill_processor, stage.kill_broker])()
            if stage.kills % TOLD == 0:
                print(f"{client}: {done} of {records} after {stage.kills} kills", flush=True)
        print(client, stage.tally(), f"{time.monotonic() - begun:.0f} s", flush=True)
        stage.close()


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), float(sys.argv[3]))
