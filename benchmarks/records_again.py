"""Count the repeated records of a group while members join, leave and are killed, at our broker and at Apache Kafka.

There is one group for each client, or for the named clients (`python -m benchmarks.records_again kafka-python`), all at
the same time on one broker. Each member is a process, so that it can be killed (`_group_members`). The repeated records
are those that a killed member had read and not committed. Their number depends on the time between commit and kill. So
there are several rounds, in turns, and the result is the sum over all.
"""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import count, repeat
from pathlib import Path
from tempfile import TemporaryDirectory

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from benchmarks._group_members import CLIENTS
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
"""Time in seconds, and event: a new member joins, or the oldest one leaves or is killed."""
serial = count()


class Group:
    """The members of a group, and the records that they received."""

    def __init__(self, client: str, server: Running, topic: str, folder: Path) -> None:
        self._about = [client, server.bootstrap, f"again-{next(serial)}", topic]
        self._folder = folder
        self._members: list[subprocess.Popen[bytes]] = []

    def join(self) -> None:
        path = self._folder / f"member-{next(serial)}"
        module = ["-m", "benchmarks._group_members"]
        command = [sys.executable, *module, *self._about, str(path), str(SESSION_MS), str(COMMIT_MS)]
        self._members.append(subprocess.Popen(command))

    def leave(self) -> None:
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def end(self) -> None:
        while self._members:
            self.leave()

    def delivered(self) -> Counter[bytes]:
        """Return the number of deliveries of each record."""
        return Counter(line for path in self._folder.iterdir() for line in path.read_bytes().splitlines())

    def _end(self, how: signal.Signals) -> None:
        member = self._members.pop(0)
        member.send_signal(how)
        member.wait(PATIENCE)


@contextmanager
def writing(server: Running, topic: str) -> Iterator[list[int]]:
    """Send distinct records at a constant rate. At the end the list has their number."""
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


def played(client: str, server: Running) -> tuple[int, int]:
    """Run the story with members of one client. Returns the number of delivered records, and of repeated deliveries."""
    topic = f"again-{next(serial)}"
    admin = AdminClient({"bootstrap.servers": server.bootstrap})
    (made,) = admin.create_topics([NewTopic(topic, PARTITIONS, 1)]).values()
    made.result(PATIENCE)
    with TemporaryDirectory() as folder:
        group = Group(client, server, topic, Path(folder))
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
    clients = sys.argv[1:] or list(CLIENTS)
    with ottla_broker() as ours, apache_kafka() as kafka, ThreadPoolExecutor() as pool:
        servers = [ours, *([kafka] if kafka else [])]
        totals: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for _ in range(ROUNDS):
            for server in servers:
                for client, (records, again) in zip(clients, pool.map(played, clients, repeat(server)), strict=True):
                    totals.setdefault((client, server.name), []).append((records, again))
                    print(f"{client} at {server.name}: {again} of {records} again ({again / records:.2%})", flush=True)
        for (client, name), rounds in sorted(totals.items()):
            records, again = map(sum, zip(*rounds, strict=True))
            print(f"{client} at {name}: {again} of {records}, {again / records:.2%} of all")


if __name__ == "__main__":
    main()
