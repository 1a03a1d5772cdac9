"""How many records a group gets again while its members come, leave and are killed: the same story at our broker and at Kafka.

Members are librdkafka's, each a process, so that it can be killed; each writes down what was delivered to it before it polls again.
What comes again is what was read and not committed by who was killed, so that is a matter of chance: the phase of a commit
against the kill. Hence several rounds, in turns, and the sum over all.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from tempfile import TemporaryDirectory

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks.brokers import Running, apache_kafka, ottla_broker

ROUNDS, PARTITIONS, RATE = 2, 6, 500
SESSION_MS, COMMIT_MS = 6_000, 1_000
PATIENCE = 60
STORY = (
    (0, "join"),
    (0, "join"),
    (4, "join"),
    (8, "leave"),
    (11, "join"),
    (15, "kill"),
    (25, "join"),
    (28, "kill"),
    (38, "leave"),
    (40, "join"),
    (44, "end"),
)
"""Seconds, and what happens: a new member joins, the one that is longest there leaves or is killed."""
MEMBER = """
import os, signal, sys
import confluent_kafka as ck

over = []
signal.signal(signal.SIGTERM, lambda *_: over.append(True))
servers, group, topic, path, session, commit = sys.argv[1:]
consumer = ck.Consumer({
    "bootstrap.servers": servers, "group.id": group, "auto.offset.reset": "earliest", "session.timeout.ms": int(session),
    "heartbeat.interval.ms": 500, "auto.commit.interval.ms": int(commit),
})
consumer.subscribe([topic])
fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
while not over:
    lines = [message.value() for message in consumer.consume(500, 0.1) if message.error() is None]
    if lines:
        os.write(fd, b"\\n".join([*lines, b""]))
consumer.close()
"""
serial = count()


class Group:
    """Its members, and what was delivered to them."""

    def __init__(self, server: Running, topic: str, folder: Path) -> None:
        self._about = [server.bootstrap, f"again-{next(serial)}", topic]
        self._folder = folder
        self._members: list[subprocess.Popen[bytes]] = []

    def join(self) -> None:
        path = self._folder / f"member-{next(serial)}"
        command = [sys.executable, "-c", MEMBER, *self._about, str(path), str(SESSION_MS), str(COMMIT_MS)]
        self._members.append(subprocess.Popen(command))

    def leave(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def end(self) -> None:
        while self._members:
            self.leave()

    def delivered(self) -> Counter[bytes]:
        """How often each record."""
        return Counter(line for path in self._folder.iterdir() for line in path.read_bytes().splitlines())

    def _end(self, how: signal.Signals) -> None:
        member = self._members.pop(0)
        member.send_signal(how)
        member.wait(PATIENCE)


@contextmanager
def writing(server: Running, topic: str) -> Iterator[list[int]]:
    """Records at a steady rate, each another; at the end the list has how many."""
    producer, stop, sent = ck.Producer({"bootstrap.servers": server.bootstrap}), threading.Event(), [0]

    def write() -> None:
        while not stop.wait(1 / 50):
            for _ in range(RATE // 50):
                producer.produce(topic, b"%d" % sent[0], partition=sent[0] % PARTITIONS)
                sent[0] += 1
            producer.poll(0)

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield sent
    finally:
        stop.set()
        thread.join()
        assert producer.flush(PATIENCE) == 0


def played(server: Running) -> tuple[int, int]:
    """The story once: how many records were delivered, and how many of these deliveries were another one's again."""
    topic = f"again-{next(serial)}"
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    made.result(PATIENCE)
    with TemporaryDirectory() as folder:
        group = Group(server, topic, Path(folder))
        with writing(server, topic) as sent:
            begin = time.monotonic()
            for second, what in STORY[:-1]:
                time.sleep(max(0.0, begin + second - time.monotonic()))
                getattr(group, what)()
            time.sleep(max(0.0, begin + STORY[-1][0] - time.monotonic()))
        deadline = time.monotonic() + PATIENCE
        while len(group.delivered()) < sent[0]:
            assert time.monotonic() < deadline, f"{sent[0] - len(group.delivered())} of {sent[0]} did not come"
            time.sleep(0.2)
        group.end()
        delivered = group.delivered()
    return sent[0], delivered.total() - len(delivered)


def main() -> None:
    with ottla_broker() as ours, apache_kafka() as kafka:
        servers = [ours, *([kafka] if kafka else [])]
        totals: dict[str, list[tuple[int, int]]] = {server.name: [] for server in servers}
        for _ in range(ROUNDS):
            for server in servers:
                records, again = played(server)
                totals[server.name].append((records, again))
                print(f"{server.name}: {again} of {records} again ({again / records:.2%})", flush=True)
        for name, rounds in totals.items():
            print(f"{name}: {sum(each[1] for each in rounds) / sum(each[0] for each in rounds):.2%} of all")


if __name__ == "__main__":
    main()
