"""A source, a target, and a Spark job between them that is killed and started again: counts what arrives.

python -m interop.spark_stage ADDRESS [MODE/STEP/TASK …]     every step without one
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

ROOT = Path(__file__).parents[1]
PARTITIONS = 2
TASK_STEPS = ("begun", "inited", "entered", "read", "sent", "marked", "ended")
STOPS = (
    "announce/announcing/-",
    "announce/announced/commit",
    *(f"commit/{step}/1" for step in TASK_STEPS),
    "announce/announced/commit",  # or the next driver would find all done, and have nothing to hold
    *(f"hold/{step}/0" for step in TASK_STEPS),
    "hold/ending/0",
    "announce/announced/commit",  # for what was left of the driver may have ended everything
    "hold/committed/0",
    "finish/finishing/-",
    "finish/finished/-",
)
"""Between every pair of steps, of tasks that commit and of tasks that hold, and of the driver."""
DEADLINE = 300.0


class Stage:
    """Where it happens."""

    def __init__(self, folder: Path, address: str) -> None:
        self.folder, self.address = folder, address
        name = f"{folder.name}-{os.getpid()}"
        self.source, self.target = f"{name}-source", f"{name}-target"
        self.records = self.kills = 0
        with Admin(bootstrap_servers=address) as admin:
            admin.create_topics([NewTopic(self.source, PARTITIONS), NewTopic(self.target, PARTITIONS)])

    @property
    def stopped(self) -> Path:
        """The file that is there once the next stop was reached."""
        return self.folder / f"stopped-{self.kills}"

    def feed(self, records: int) -> None:
        """More records in the source."""
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(self.records, self.records + records):
                producer.send(self.source, b"%d" % number, partition=number % PARTITIONS)
        self.records += records

    def start(
        self, stop: str = "", whom: str = "driver", master: str = "local[2]", *settings: str
    ) -> subprocess.Popen[str]:
        """A driver, which will be killed at a step."""
        paths = [str(ROOT / "interop" / "spark_stops"), str(ROOT / "src"), str(ROOT)]
        more = {"PYTHONPATH": os.pathsep.join(paths), "OTTLA_STOP": stop, "OTTLA_STOP_WHOM": whom}
        more |= {"OTTLA_STOPPED": str(self.stopped), "OTTLA_DRIVER": str(self.folder / "driver")}
        words = (master, self.address, self.source, self.target, str(self.folder / "checkpoint"), *settings)
        command = [sys.executable, "-m", "interop.spark_job", *words]
        with (self.folder / "log").open("a") as log:
            return subprocess.Popen(command, env=os.environ | more, stdout=log, stderr=log, text=True)

    def run(self, stop: str = "", whom: str = "driver", master: str = "local[2]", *settings: str) -> bool:
        """A driver, and whether it came to its end."""
        job = self.start(stop, whom, master, *settings)
        finished = job.wait(DEADLINE) == 0
        if stop:
            assert self.stopped.exists(), f"it did not come to {stop}"
            self.kills += 1
        return finished

    def tally(self) -> Tally:
        """Read what is committed in the target, and count."""
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
    """Kill the driver at every step, each time with new records to copy, and let the last one come to its end."""
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
