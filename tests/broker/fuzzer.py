"""Requests of every kind and version, sensible, senseless and broken, for a broker that runs.

For a longer run than the tests have time for: `python -m tests.broker.fuzzer SECONDS [SEED]`.
"""

from __future__ import annotations

import random
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import psutil

from ottla.broker.apis.handlers import HANDLERS, Line
from ottla.protocol.codec import KINDS, Plan, Step
from ottla.protocol.conversation import encode_request
from ottla.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.plan import plan_of
from tests.broker.wire import Wire, batch, values

NAMES = {kind: name for name, kind in KINDS.items()}
TOPICS = ["t", "t", "u", "__consumer_offsets", "__cluster_metadata", "", ".", "new.topic", "new_topic", "\u00fc"]
EDGES = [0, 0, 0, 1, 1, 2, -1, -2, 100, 2**31 - 1, -(2**31)]
RECORDS = [b"", bytes(61), batch([b"a"]), batch([b"a"] * 50), batch([b"a"])[:-1], bytes(5000)]
FIELDS: dict[str, list[Any]] = {
    "max_wait_ms": [0, 0, 5, -1],
    "num_partitions": [-1, 0, 1, 2, 3, 2**31 - 1],
    "count": [0, 1, 2, 3],
    "resource_type": [2, 4, 16, 0],
    "resource_name": ["t", "u", "1", ""],
    "config_operation": [0, 1, 2, 3, 4],
    "session_epoch": [-1, 0, 1],
    "acks": [-1, 0, 1, 2],
    "name": [*TOPICS, "cleanup.policy", "retention.ms"],
    "topic": TOPICS,
    "topic_name": TOPICS,
    "topic_id": [UUID(int=0), UUID(int=1)],
    "records": RECORDS,
    "session_timeout_ms": [-1, 0, 6000, 45_000],
    "rebalance_timeout_ms": [-1, 0, 100],
    "group_id": ["g", "h", ""],
    "protocol_type": ["consumer", ""],
    "transactional_id": [None, None, "x"],
}
"""Values that get past the first check now and then."""
LENGTH = struct.Struct(">i")
GOOD = "good"
"""The topic of the client that behaves well: no name that is drawn above is this."""


def drawn(chance: random.Random, plan: Plan) -> Any:
    """A message of a plan."""
    parts = {step.name: value(chance, step) for step in plan.written}
    for _, step in plan.tags.values():
        if chance.random() < 0.5 and NAMES[step.kind] != "struct":
            parts[step.name] = value(chance, step)
    return plan.make(**parts)


def value(chance: random.Random, step: Step) -> Any:
    """A value of one field."""
    kind = NAMES[step.kind]
    if step.nullable and chance.random() < 0.2:
        return None
    if kind == "array":
        return [value(chance, step.item) for _ in range(chance.choice((0, 1, 1, 2, 3)))]
    if kind == "struct":
        return drawn(chance, step.item)
    chosen = FIELDS.get(step.name)
    if chosen is not None:
        found = chance.choice(chosen)
        if found is not None or step.nullable:
            return found
    return simple(chance, kind, step)


def simple(chance: random.Random, kind: str, step: Step) -> Any:
    """A value that no name narrows."""
    if kind == "bool":
        return chance.random() < 0.5
    if kind == "float64":
        return chance.choice((0.0, -1.5, float("inf")))
    if kind == "string":
        return chance.choice(("", "t", "1", "a" * 300, "\u00fc\u0000"))
    if kind in ("bytes", "records"):
        return chance.choice(RECORDS)
    if kind == "uuid":
        return UUID(int=chance.getrandbits(1))
    return min(max(chance.choice(EDGES), step.least), step.most)


def frame_of(chance: random.Random, line: Line, version: int) -> bytes:
    """A request, as it would be sent."""
    request = drawn(chance, plan_of(line.api.request, version))
    parts = encode_request(request, version, chance.randrange(1000), chance.choice((None, "fuzz", "")))
    return b"".join(bytes(part) for part in parts)  # type: ignore[arg-type]


Mutation = Callable[[random.Random, bytes], bytes]


def flipped(chance: random.Random, frame: bytes) -> bytes:
    """Some bytes are others."""
    data = bytearray(frame)
    for _ in range(chance.randint(1, 4)):
        data[chance.randrange(len(data))] = chance.randrange(256)
    return bytes(data)


def cut(chance: random.Random, frame: bytes) -> bytes:
    """The end is missing."""
    return frame[: chance.randrange(len(frame))]


def grown(chance: random.Random, frame: bytes) -> bytes:
    """A number in it is a large or a negative one: lengths and counts are the ones that hurt."""
    at = chance.randrange(len(frame))
    number = chance.choice(
        (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\x80\x00", b"\x01\x00\x00\x00")
    )
    return frame[:at] + number + frame[at + len(number) :]


def doubled(chance: random.Random, frame: bytes) -> bytes:
    """A piece of it is there twice."""
    at, end = sorted((chance.randrange(len(frame)), chance.randrange(len(frame))))
    return frame[:end] + frame[at:end] * chance.choice((1, 1, 200)) + frame[end:]


def untouched(chance: random.Random, frame: bytes) -> bytes:
    """Return the message unchanged."""
    return frame


MUTATIONS: list[Mutation] = [untouched, untouched, untouched, flipped, cut, grown, doubled]


def rounds(chance: random.Random) -> Iterator[bytes]:
    """Every request in every version, in any order, again and again; each with its length, true or not."""
    lines = [(each, v) for each in HANDLERS.values() for v in range(each.versions.first, each.versions.last + 1)]
    while True:
        chance.shuffle(lines)
        for line, version in lines:
            frame = chance.choice(MUTATIONS)(chance, frame_of(chance, line, version))
            length = len(frame) + (chance.choice((-1, 1, 1000, 2**30)) if chance.random() < 0.05 else 0)
            yield LENGTH.pack(max(length, 0)) + frame


def attack(address: str, frames: Iterator[bytes], count: int, chance: random.Random) -> None:
    """Send so many frames, a few on each connection; of the answers some are read."""
    host, _, port = address.rpartition(":")
    while count > 0:
        with socket.create_connection((host, int(port)), timeout=20) as sock:
            try:
                for _ in range(chance.randint(1, 8)):
                    count -= 1
                    sock.sendall(next(frames))
                sock.settimeout(0.005)
                while chance.random() < 0.9 and sock.recv(65536):
                    pass
            except OSError:  # it hung up, or has no answer yet
                pass


class Cost(NamedTuple):
    """The open descriptors and the memory of the broker process."""

    memory: int
    descriptors: int


class Fuzzed:
    """A broker in a process of its own, with a client that behaves well all the while."""

    def __init__(self, folder: Path) -> None:
        self.log = folder / "log"
        command = [sys.executable, "-m", "ottla.cli.main", "broker", "--listen", "127.0.0.1:0"]
        # Little enough memory for requests that it runs short now and then.
        settings = ["--set", "queued.max.request.bytes=1000000", "--data-dir", str(folder / "data")]
        with self.log.open("w") as log:
            self.process = subprocess.Popen([*command, *settings], stdout=subprocess.PIPE, stderr=log, text=True)
        assert self.process.stdout is not None
        self.address = self.process.stdout.readline().split()[1]
        self._ended = threading.Event()
        self.fault: BaseException | None = None
        self.served = 0
        self._good = threading.Thread(target=self._behave_well)
        self._good.start()

    def cost(self) -> Cost:
        """Once all topics of the attack are deleted."""
        with Wire(self.address) as wire:
            names = [topic.name for topic in wire.metadata_of_all().topics]
            unwanted = [DeleteTopicState(name) for name in names if name not in (GOOD, "t", "__consumer_offsets")]
            wire.ask(DeleteTopicsRequest(unwanted, timeout_ms=1000), 6)
        process = psutil.Process(self.process.pid)
        return Cost(process.memory_info().rss, process.num_fds())

    def end(self) -> str:
        """Have it end as it should, and return what it logged."""
        self._ended.set()
        self._good.join()
        self.process.terminate()
        try:
            assert self.process.wait(20) == 0
        finally:
            self.process.kill()
            self.process.communicate()
        if self.fault is not None:
            raise self.fault
        return self.log.read_text()

    def _behave_well(self) -> None:
        try:
            with Wire(self.address) as wire:
                wire.create(GOOD)
                while not self._ended.is_set():
                    sent = b"%d" % self.served
                    assert wire.produce(GOOD, sent).base_offset == self.served
                    assert values(wire.fetch(GOOD, self.served), self.served) == [sent]
                    self.served += 1
        except BaseException as error:
            self.fault = error


@contextmanager
def fuzzed() -> Iterator[Fuzzed]:
    """Such a broker, ended afterwards."""
    with tempfile.TemporaryDirectory() as folder:
        broker = Fuzzed(Path(folder))
        try:
            yield broker
        finally:
            if broker.process.poll() is None:
                broker.end()


def main(seconds: float, seed: int) -> None:
    """Run for a long time and print the descriptors and the memory of the broker."""
    chance = random.Random(seed)
    end = time.monotonic() + seconds
    with fuzzed() as broker:
        frames = rounds(chance)
        while time.monotonic() < end and broker.fault is None and broker.process.poll() is None:
            attack(broker.address, frames, 5000, chance)
            print(broker.cost(), broker.served, flush=True)
        log = broker.end()
    print(*tracebacks(log), sep="\n")


def tracebacks(log: str) -> list[str]:
    """Errors of the broker's own, from what it logged."""
    lines = log.splitlines()
    return ["\n".join(lines[at - 1 : at + 30]) for at, line in enumerate(lines) if line.startswith("Traceback")]


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]) if sys.argv[2:] else 1)
