"""A source, a target, and a Spark job between them that is killed and restarted. Counts the records that arrive.

python -m interop.spark_stage ADDRESS [MODE/STEP/TASK …]    every step if none is given
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from interop.exactly_once import Tally
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition
from tests.client.conftest import fresh_name

ROOT = Path(__file__).parents[1]
PARTITIONS = 2
TASK_STEPS = ("begun", "inited", "entered", "read", "sent", "marked", "ended")
STOPS = (
    "announce/announcing/-",
    "announce/announced/commit",
    *(f"commit/{step}/1" for step in TASK_STEPS),
    "announce/announced/commit",  # otherwise the next driver would find a finished batch, and never wait
    *(f"hold/{step}/0" for step in TASK_STEPS),
    "hold/ending/0",
    "announce/announced/commit",  # because remaining processes of the driver may have finished the batch
    "hold/committed/0",
    "finish/finishing/-",
    "finish/finished/-",
)
"""All points between two steps: of tasks that commit, of tasks that wait, and of the driver."""
DEADLINE = 300.0


class Stage:
    """The broker, topics and folders of a test."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        name = fresh_name()
        self.source, self.target = f"{name}-source", f"{name}-target"
        self.records = self.kills = 0
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(self.source, PARTITIONS), NewTopic(self.target, PARTITIONS)])

    @property
    def stopped(self) -> Path:
        """The file that exists after the next stop has been reached."""
        return self.folder / f"stopped-{self.kills}"

    def feed(self, records: int) -> None:
        """Write more records to the source."""
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(self.records, self.records + records):
                producer.send(self.source, b"%d" % number, partition=number % PARTITIONS)
        self.records += records

    def start(
        self, stop: str = "", whom: str = "driver", master: str = "local[2]", *settings: str
    ) -> subprocess.Popen[str]:
        """Start a driver that is killed at a step."""
        paths = [str(ROOT / "interop" / "spark_stops"), str(ROOT / "src"), str(ROOT)]
        more = {"PYTHONPATH": os.pathsep.join(paths), "OTTLA_STOP": stop, "OTTLA_STOP_WHOM": whom}
        more |= {"OTTLA_STOPPED": str(self.stopped), "OTTLA_DRIVER": str(self.folder / "driver")}
        words = (master, self.address, self.source, self.target, str(self.folder / "checkpoint"), *settings)
        command = [sys.executable, "-m", "interop.spark_job", *words]
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(command, env=os.environ | more, stdout=log, stderr=log, text=True)

    def run(self, stop: str = "", whom: str = "driver", master: str = "local[2]", *settings: str) -> bool:
        """Run a driver. Returns True if it ends by itself without an error."""
        job = self.start(stop, whom, master, *settings)
        finished = job.wait(DEADLINE) == 0
        if stop:
            assert self.stopped.exists(), f"it did not come to {stop}"
            self.kills += 1
        return finished

    def tally(self) -> Tally:
        """Read the committed records of the target, and count errors."""
        counts: Counter[int] = Counter()
        places = [TopicPartition(self.target, number) for number in range(PARTITIONS)]
        with Consumer(bootstrap_servers=self.address, isolation_level="read_committed") as consumer:
            consumer.assign(places)
            consumer.seek_to_beginning(*places)
            ends, deadline = consumer.end_offsets(places), time.monotonic() + DEADLINE
            while any(consumer.position(each) < ends[each] for each in places):
                assert time.monotonic() < deadline, "the target cannot be read to its end"
                counts.update(int(record.value or b"") for record in consumer.poll(1))
        return Tally(self.records - len(counts), counts.total() - len(counts), 0, self.kills)


def main(address: str, *stops: str) -> None:
    """Kill the driver at every step, each time with new records to copy, and let the last driver finish."""
    with tempfile.TemporaryDirectory(prefix="spark-stage-") as folder:
        stage = Stage(Path(folder), address)
        begun = time.monotonic()
        for stop in stops or STOPS:
            stage.feed(180)
            stage.run(stop)
            print(f"{time.monotonic() - begun:5.0f} s  killed at {stop}", flush=True)
        assert stage.run(), (Path(folder) / "log").read_text()[-3000:]
        tally = stage.tally()
        print(
            f"{stage.records:,} records, {tally.kills} kills: {tally.lost} missing, {tally.doubled} twice", flush=True
        )


if __name__ == "__main__":
    main(*sys.argv[1:])
