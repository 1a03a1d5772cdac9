"""One group with consumers of all clients on our broker. Members join, leave, pause and are killed; invariants are
checked.

python -m interop.mixed_group SECONDS [SEED]
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from interop import node
from interop.java_programs import program
from ottla import Admin, Broker, Consumer, NewTopic, Producer, TopicPartition

TOPIC, GROUP = "mixed", "everybody"
PARTITIONS = 12
DEADLINE = 60.0
SETTINGS = {
    "group_min_session_timeout_ms": 1000,
    "group_consumer_heartbeat_interval_ms": 100,
    "group_consumer_session_timeout_ms": 2000,
}
LINE = re.compile(r"(\d+) (owned|got|committed)((?: \d+)*)\s*\n")
NAMES = ("confluent", "kafka_python", "aiokafka", "ours", "java", "kafkajs")
NEWER = ("confluent_newer", "ours_newer", "java_newer")
"""Clients that use the KIP-848 protocol."""


class MemberEvent(NamedTuple):
    """An event that a member printed."""

    time_ns: int
    kind: str
    numbers: tuple[int, ...]
    client: str


def parse_event(line: str, client: str) -> MemberEvent | None:
    """Parse one line of a member's output.

    Returns None for a line of the client's own log, which Java writes to the same stream, and for a line that a kill
    truncated.
    """
    match = LINE.fullmatch(line)
    if match is None:
        return None
    return MemberEvent(int(match[1]), match[2], tuple(map(int, match[3].split())), client)


class Member:
    """A consumer of any client, in a separate process."""

    def __init__(self, client: str, address: str) -> None:
        self.client = client
        self.reported: list[MemberEvent] = []
        self.owned: tuple[int, ...] = ()
        self.frozen_ns: list[int] = []
        """The times of its SIGSTOPs."""
        words = (address, TOPIC, GROUP)
        environment: dict[str, str] = {}
        if client.startswith("java"):
            protocol = "consumer" if client in NEWER else "classic"
            command = program("Member", *words, protocol)
        elif client == "kafkajs":
            command, environment = node.command("member.js", *words)
        else:
            command = [sys.executable, "-m", "interop.mixed_member", client, *words]
        self.process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=os.environ | environment
        )
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            reported = parse_event(line, self.client)
            if reported is None:
                continue
            self.reported.append(reported)
            if reported.kind == "owned":
                self.owned = reported.numbers

    def freeze(self) -> None:
        self.frozen_ns.append(time.monotonic_ns())
        self.process.send_signal(signal.SIGSTOP)

    def thaw(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()
        self._reader.join()
        if self.process.stdout is not None:
            self.process.stdout.close()
        self.owned = ()

    def reads(self) -> Iterator[MemberEvent]:
        """Yield the events of the member, without stale reads after a SIGSTOP.

        A stopped member returns the records that it had fetched before, until it detects that other members own the
        partitions. No client can prevent that.
        """
        frozen = iter([*self.frozen_ns, float("inf")])
        edge, stale = next(frozen), False
        for reported in self.reported:
            if reported.time_ns > edge:
                edge, stale = next(frozen), True
            if reported.kind == "owned":
                stale = False
            if not (stale and reported.kind == "got"):
                yield reported


class GroupUnderTest:
    """The broker, its members, and a producer that writes during the whole run."""

    def __init__(self, folder: Path, clients: Sequence[str]) -> None:
        self.folder = folder
        self.broker = self._broker("127.0.0.1:0")
        self.address = self.broker.bootstrap_servers
        with Admin(bootstrap_servers=self.address) as admin:
            admin.create_topics([NewTopic(TOPIC, PARTITIONS)])
        # librdkafka 2.16 looks up the first offset of a partition that has no committed offset, and seeks to it when
        # the response arrives. It does so even if the partition was revoked meanwhile, was assigned again, and was read
        # from an offset that another member had committed. The same happens with Apache Kafka. So an offset is
        # committed for every partition, and no client looks one up.
        with Consumer(bootstrap_servers=self.address, group_id=GROUP) as consumer:
            consumer.commit({TopicPartition(TOPIC, number): 0 for number in range(PARTITIONS)})
        self.written = [0] * PARTITIONS
        self._writing = threading.Event()
        self._writing.set()
        self._writer = threading.Thread(target=self._write, daemon=True)
        self._writer.start()
        self.gone: list[Member] = []
        self.members = [Member(client, self.address) for client in clients]

    def _broker(self, listen: str) -> Broker:
        return Broker(self.folder, listen=listen, process=True, **SETTINGS).start()

    def _write(self) -> None:
        with Producer(bootstrap_servers=self.address) as producer:
            for number in range(10**9):
                if not self._writing.is_set():
                    return
                partition = number % PARTITIONS
                producer.send(TOPIC, b"%d" % number, partition=partition).result(DEADLINE)
                self.written[partition] += 1
                time.sleep(0.002)

    def shared(self) -> bool:
        """True if each partition has one owner and every member owns at least one."""
        owned = [each for member in self.members for each in member.owned]
        return sorted(owned) == list(range(PARTITIONS)) and all(member.owned for member in self.members)

    def kill(self, member: Member) -> None:
        self.members.remove(member)
        self.gone.append(member)
        member.kill()

    def join(self, client: str) -> None:
        self.members.append(Member(client, self.address))

    def kill_broker(self) -> None:
        os.kill(self.broker.pid, signal.SIGKILL)
        self.broker.close()
        self.broker = self._broker(self.address)

    def finish(self) -> None:
        """Stop writing, and wait until everything is committed.

        A last record is written to every partition first: a member whose commit failed when a broker was killed commits
        again only with the next record.
        """
        before = self.ends()
        until(lambda: all(end > old for end, old in zip(self.ends(), before, strict=True)), self.state)
        self._writing.clear()
        self._writer.join()
        until(lambda: self.ends() == self.written, self.state)

    def ends(self) -> list[int]:
        """Return the committed offset of each partition."""
        ends = [0] * PARTITIONS
        for reported in self.list_events():
            if reported.kind == "committed":
                partition, end = reported.numbers
                ends[partition] = max(ends[partition], end)
        return ends

    def list_events(self) -> list[MemberEvent]:
        """Return the events of all members in order of time."""
        return sorted(reported for member in [*self.gone, *self.members] for reported in list(member.reads()))

    def missed(self) -> list[tuple[int, int]]:
        """Return the records that no member read.

        A member stopped for less than its session timeout continues at its position.
        """
        members = [*self.gone, *self.members]
        got = {reported.numbers for member in members for reported in list(member.reported) if reported.kind == "got"}
        return [(p, o) for p, count in enumerate(self.written) for o in range(count) if (p, o) not in got]

    def seen_after_commit(self) -> list[MemberEvent]:
        """Return the records that a member read after they had been committed."""
        ends, late = [0] * PARTITIONS, []
        for reported in self.list_events():
            if reported.kind == "committed":
                partition, end = reported.numbers
                ends[partition] = max(ends[partition], end)
            elif reported.kind == "got" and reported.numbers[1] < ends[reported.numbers[0]]:
                late.append(reported)
        return late

    def state(self) -> str:
        return f"{[(m.client, m.owned) for m in self.members]} {self.written} {self.ends()}"

    def close(self) -> None:
        self._writing.clear()
        for member in self.members:
            member.kill()
        self.broker.close()


def until(condition: Callable[[], bool], state: Callable[[], str]) -> None:
    deadline = time.monotonic() + DEADLINE
    while not condition():
        assert time.monotonic() < deadline, f"it does not happen: {state()}"
        time.sleep(0.02)


def main(seconds: float, seed: int) -> None:
    """Anything may happen to anybody for so long; then it must be quiet."""
    chance = random.Random(seed)
    clients = [name for name in (*NAMES, *NEWER) if name != "kafkajs" or not node.missing()]
    with tempfile.TemporaryDirectory() as folder:
        crowd = GroupUnderTest(Path(folder), clients)
        end, faults = time.monotonic() + seconds, 0
        while time.monotonic() < end:
            time.sleep(chance.uniform(0.5, 5))
            faults += 1
            kind, victim = chance.choice(["kill", "freeze", "freeze", "broker"]), chance.choice(crowd.members)
            if kind == "kill":
                crowd.kill(victim)
                crowd.join(victim.client)
            elif kind == "freeze":
                victim.freeze()
                time.sleep(chance.uniform(0.2, 6))
                victim.thaw()
            else:
                crowd.kill_broker()
        until(crowd.shared, crowd.state)
        crowd.finish()
        late = crowd.seen_after_commit()
        print(f"{faults} faults, {sum(crowd.written)} records, missed {crowd.missed()}, after commit {late}")
        crowd.close()


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if len(sys.argv) > 2 else 1)
