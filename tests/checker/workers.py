"""The senders, readers and copiers of a plan, each in a thread."""

from __future__ import annotations

import random
import threading
import time

import confluent_kafka as ck

from tests.checker.clients import PATIENCE, GaveUp, Sender, consumer_of, partition_of
from tests.checker.generator import Copying, End, Step
from tests.checker.history import History, Position, Promised, Read, Saw

POLL_SECONDS = 0.05
GROUP = "copiers"


def feed(address: str, history: History, name: str, steps: tuple[Step, ...]) -> None:
    """Send without transactions."""
    sender = Sender(address, history, name, transactional=False)
    for step in steps:
        for sends in step.sends:
            for _ in range(sends.count):
                sender.send(sends.place)
        sender.flush()


class Transactor:
    """Sends in transactions."""

    def __init__(self, address: str, history: History, name: str) -> None:
        self.address = address
        self.history = history
        self.name = name
        self.instances = 0
        self.sender = self.successor()
        self.forgotten: list[Sender] = []
        """Producers that were replaced but not closed, as if they ran on an unreachable machine."""

    def successor(self) -> Sender:
        """Return a new sender that takes over the transactional id."""
        self.instances += 1
        return Sender(self.address, self.history, self.name, instance=self.instances)

    def replace(self) -> Sender:
        """Have another producer take over; the old one."""
        old = self.sender
        self.forgotten.append(old)
        self.sender = self.successor()
        return old

    def run(self, steps: tuple[Step, ...]) -> None:
        """One transaction after another."""
        for step in steps:
            self.sender.begin()
            for sends in step.sends:
                for _ in range(sends.count):
                    self.sender.send(sends.place)
            self.end(step.end, step.sends[0].place)

    def end(self, end: End, place: str) -> bool:
        """End the transaction; return True if it was committed."""
        try:
            if end is End.COMMIT:
                return self.sender.commit()
            self.sender.flush()
            if end is End.ABORT:
                self.sender.abort()
        except (GaveUp, ck.KafkaException):
            self.replace()
            return False
        if end in (End.ABANDON, End.ZOMBIE):
            old = self.replace()
            if end is End.ZOMBIE:
                haunt(old, place)
        return False


def haunt(zombie: Sender, place: str) -> None:
    """Go on as if nothing had happened; a sound broker refuses it."""
    try:
        zombie.send(place)
        zombie.flush()
        zombie.commit()
    except (GaveUp, ck.KafkaException):
        pass


class Copier:
    """Copies one place to another, exactly once: what it sends says what it is a copy of."""

    def __init__(self, address: str, history: History, source: str, target: str) -> None:
        self.transactor = Transactor(address, history, f"copier-{source}")
        self.history = history
        self.source = source
        self.target = target
        self.consumer = consumer_of(address, **{"group.id": GROUP})
        self.position = 0
        self.start_over()

    def start_over(self) -> None:
        """Go on where the group is."""
        asked = len(self.history)
        place = ck.TopicPartition(*partition_of(self.source))
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                (found,) = self.consumer.committed([place], 5.0)
                break
            except ck.KafkaException:
                if time.monotonic() >= deadline:
                    raise
        offset = found.offset if found.offset >= 0 else -1
        self.history.add(Position(GROUP, self.source, offset, asked))
        self.position = max(offset, 0)
        self.consumer.assign([ck.TopicPartition(*partition_of(self.source), self.position)])

    def run(self, steps: tuple[Copying, ...], fed: threading.Event) -> None:
        """The steps, and then what is left, until all is copied that was fed."""
        plan = list(reversed(steps))
        while True:
            step = plan[-1] if plan else Copying(20, End.COMMIT)
            ready = fed.is_set()
            messages = self.consumer.consume(step.count, POLL_SECONDS)
            messages = [message for message in messages if message.error() is None]
            if messages:
                del plan[-1:]
                self.copy(messages, step.end)
            elif ready and self.is_at_end():
                self.start_over()
                self.consumer.close()
                return

    def is_at_end(self) -> bool:
        """True if there is no more input and will be none."""
        place = ck.TopicPartition(*partition_of(self.source))
        try:
            _, end = self.consumer.get_watermark_offsets(place, 5.0)
        except ck.KafkaException:
            return False
        return bool(self.position >= end)

    def copy(self, messages: list[ck.Message], end: End) -> None:
        """Run one transaction; repeat it if it is not committed."""
        sender = self.transactor.sender
        sender.begin()
        key = sender.transaction or ""
        offset = 0
        for message in messages:
            offset = message.offset() or 0
            self.history.add(Read(key, self.source, offset, (message.value() or b"").decode()))
            sender.send(self.target)
        self.position = offset + 1
        self.history.add(Promised(key, GROUP, self.source, offset + 1))
        committed = False
        try:
            sender.promise(self.source, offset + 1, self.consumer.consumer_group_metadata())
            committed = self.transactor.end(end, self.target)
        except (GaveUp, ck.KafkaException):
            self.transactor.replace()
        if not committed:
            self.start_over()


def watch(address: str, history: History, name: str, places: tuple[str, ...], over: threading.Event, seed: int) -> None:
    """Read committed records until it is over, now and then from the beginning."""
    chance = random.Random(seed)
    consumer = consumer_of(address)
    assigned = [ck.TopicPartition(*partition_of(place), 0) for place in places]
    consumer.assign(assigned)
    fresh = set(places)
    while not over.is_set():
        if chance.random() < 0.05:
            consumer.assign(assigned)
            fresh = set(places)
        rows: dict[str, list[tuple[int, str]]] = {}
        for message in consumer.consume(100, POLL_SECONDS):
            if message.error() is None:
                place = f"{message.topic()}-{message.partition()}"
                rows.setdefault(place, []).append((message.offset() or 0, (message.value() or b"").decode()))
        for place, found in rows.items():
            history.add(Saw(name, place, tuple(found), again=place in fresh, start=0))
            fresh.discard(place)
    consumer.close()
