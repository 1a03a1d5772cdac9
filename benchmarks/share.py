"""Measure share consumers: records of 100 bytes, one and eight members, and the broker's processor time.

`python -m benchmarks.share [--records N] [--rounds N] [--members 1,8] [--only java|confluent]` runs in turns: our broker with our share consumer and
Apache Kafka with its Java client; then, on our broker, our share consumer and the one of confluent-kafka. Every turn has a
group of its own, which accepts all records of the same topic, and reads each value. Python members are processes, Java's
are threads of one process. The time is from the first record of any member to the last one.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
from argparse import ArgumentParser
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

import ottla
from benchmarks.brokers import Running, apache_kafka, ottla_broker
from benchmarks.consuming import fill
from benchmarks.race import cpu_seconds, show
from ottla import Admin, ConfigResource
from rivals import apache_kafka as rival

RECORDS = 2_000_000
ROUNDS = 3
MEMBERS = (1, 8)
JAVA = Path(__file__).parent / "java" / "ShareMembers.java"
serial = count()


class Turn(NamedTuple):
    """The result of one group in one turn."""

    rate: float
    """Records per second."""
    broker_seconds: float
    """Processor seconds of the broker for a million records."""
    client_seconds: float
    """Processor seconds of all members for a million records."""


class Process:
    """A process that runs one member, or several."""

    def __init__(self, command: Sequence[str]) -> None:
        environment = os.environ | {"PYTHONPATH": str(Path(ottla.__file__).parent.parent)}
        self.process = subprocess.Popen(
            command,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )

    def begin(self, *words: object) -> None:
        """Send a turn to the process."""
        assert self.process.stdin is not None
        self.process.stdin.write(" ".join(map(str, words)) + "\n")
        self.process.stdin.flush()

    def end(self) -> Mapping[str, float]:
        """Wait for the end of the turn, and return the result."""
        assert self.process.stdout is not None
        result: Mapping[str, float] | None = json.loads(self.process.stdout.readline() or "null")
        assert result is not None, "a member has ended"
        return result

    def close(self) -> None:
        """Close its input, and wait until it exits."""
        with self.process:
            assert self.process.stdin is not None
            self.process.stdin.close()


class Client:
    """A share consumer of one kind, on one broker."""

    def __init__(
        self, name: str, server: Running, topic: str, processes: Sequence[Process], *, in_threads: bool
    ) -> None:
        self.name = name
        self._server = server
        self._topic = topic
        self._processes = processes
        self._in_threads = in_threads

    def run(self, members: int, records: int) -> Turn:
        """Consume all records in a new group."""
        group = f"bench-{next(serial)}"
        with Admin(bootstrap_servers=self._server.bootstrap) as admin:
            admin.alter_configs({ConfigResource("group", group): {"share.auto.offset.reset": "earliest"}})
        processes = self._processes[: 1 if self._in_threads else members]
        spent = [cpu_seconds(each.process.pid) for each in processes]
        before = cpu_seconds(self._server.process)
        for each in processes:
            each.begin(self._server.bootstrap, self._topic, group, *([members] if self._in_threads else []))
        results = [each.end() for each in processes]
        broker = cpu_seconds(self._server.process) - before
        client = sum(cpu_seconds(each.process.pid) - used for each, used in zip(processes, spent, strict=True))
        found = sum(each["records"] for each in results)
        assert found >= records, f"{self.name} got {found:.0f} of {records} records"
        served = [each for each in results if each["records"]]
        span = max(each["last"] for each in served) - min(each["first"] for each in served)
        return Turn(records / span, broker / records * 1e6, client / records * 1e6)


def compare(title: str, clients: Sequence[Client], members: int, records: int, rounds: int) -> Table:
    """Run the clients in turns, the first round uncounted, and build the table of medians and ratios to the last one."""
    turns: list[list[Turn]] = [[] for _ in clients]
    for number in range(rounds + 1):
        for client, found in zip(clients, turns, strict=True):
            turn = client.run(members, records)
            if number:
                found.append(turn)
    shown = Table(title=f"{title}, members: {members}", title_justify="left")
    for heading in ("", "records/s", "ratio", "broker CPU s/million", "ratio", "client CPU s/million"):
        shown.add_column(heading, justify="right" if heading else "left")
    for client, found in zip(clients, turns, strict=True):
        pairs = list(zip(found, turns[-1], strict=True))
        shown.add_row(
            client.name,
            f"{statistics.median(each.rate for each in found):,.0f}",
            f"{statistics.median(ours.rate / theirs.rate for ours, theirs in pairs):.2f}",
            f"{statistics.median(each.broker_seconds for each in found):.2f}",
            f"{statistics.median(ours.broker_seconds / theirs.broker_seconds for ours, theirs in pairs):.2f}",
            f"{statistics.median(each.client_seconds for each in found):.2f}",
        )
    return shown


@contextmanager
def python_members(kind: str, most: int) -> Iterator[list[Process]]:
    """Start the processes of Python members."""
    processes = [Process([sys.executable, "-m", "benchmarks._share_members", kind]) for _ in range(most)]
    try:
        yield processes
    finally:
        for each in processes:
            each.close()


@contextmanager
def java_members() -> Iterator[list[Process]]:
    """Start the process of Java's members."""
    process = Process(rival.java(str(JAVA)))
    try:
        yield [process]
    finally:
        process.close()


def main() -> None:
    arguments = ArgumentParser(description=__doc__)
    arguments.add_argument("--records", type=int, default=RECORDS)
    arguments.add_argument("--rounds", type=int, default=ROUNDS)
    arguments.add_argument("--members", default=",".join(map(str, MEMBERS)), help="numbers of members")
    arguments.add_argument("--only", choices=("java", "confluent"))
    chosen = arguments.parse_args()
    numbers = [int(each) for each in chosen.members.split(",")]
    with ExitStack() as stack:
        server = stack.enter_context(ottla_broker())
        topic = fill(server, chosen.records)
        ours = Client(
            "ottla", server, topic, stack.enter_context(python_members("ottla_share", max(numbers))), in_threads=False
        )
        if chosen.only != "java":
            processes = stack.enter_context(python_members("confluent_share", max(numbers)))
            confluent = Client("confluent-kafka", server, topic, processes, in_threads=False)
            for members in numbers:
                show(compare("on our broker", [ours, confluent], members, chosen.records, chosen.rounds))
        if chosen.only != "confluent":
            kafka = stack.enter_context(apache_kafka())
            assert kafka is not None, "Apache Kafka's jars are not here: make interop fetches them"
            java = Client(
                "Apache Kafka, Java",
                kafka,
                fill(kafka, chosen.records),
                stack.enter_context(java_members()),
                in_threads=True,
            )
            for members in numbers:
                show(compare("each on its broker", [ours, java], members, chosen.records, chosen.rounds))


if __name__ == "__main__":
    main()
