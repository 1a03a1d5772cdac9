"""A plan played against a broker, and what came of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any

import confluent_kafka as ck
from confluent_kafka.admin import AdminClient, NewTopic

from tests.checker.clients import PATIENCE, QUICK, GaveUp, Sender, consumer_of, partition_of
from tests.checker.generator import Plan
from tests.checker.history import Event, Final, GivenUp, History
from tests.checker.victim import Keeper, Mortal
from tests.checker.workers import Copier, Transactor, feed, watch

LAST_INSTANCE = 1_000_000


def play(plan: Plan, victim: Mortal, copies: Sequence[Sequence[int]] = ()) -> list[Event]:
    """Do it all, put everything to rest, and look at what is there. `copies` of partitions are on these brokers, in turn."""
    history = History()
    victim.start(next(iter(plan.crashes), None))
    make_topics(victim.address, plan, copies)
    keeper = Keeper(victim, plan.crashes, history)
    keeper.start()
    fed, over = threading.Event(), threading.Event()
    address = victim.address
    feeders = [
        started(history, feed, address, history, f"feeder-{number}", steps) for number, steps in enumerate(plan.feeders)
    ]
    working = [
        started(history, lambda number=number, steps=steps: Transactor(address, history, f"tx-{number}").run(steps))
        for number, steps in enumerate(plan.transactors)
    ]
    working += [
        started(
            history,
            lambda source=source, target=target, steps=steps: Copier(address, history, source, target).run(steps, fed),
        )
        for source, target, steps in zip(plan.sources, plan.targets, plan.copiers, strict=False)
    ]
    readers = [
        started(history, watch, address, history, f"reader-{number}", plan.sources + plan.targets, over, number)
        for number in range(plan.readers)
    ]
    for thread in feeders:
        thread.join()
    fed.set()
    for thread in working:
        thread.join()
    keeper.stop()
    put_to_rest(address, history, plan)
    over.set()
    for thread in readers:
        thread.join()
    for place in plan.sources + plan.targets:
        history.add(final(address, place))
    return history.events


def started(history: History, work: Callable[..., Any], *arguments: Any) -> threading.Thread:
    """A worker; where it gives up the history says so."""

    def run() -> None:
        try:
            work(*arguments)
        except (GaveUp, ck.KafkaException) as error:
            history.add(GivenUp(str(error)))

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    return thread


def make_topics(address: str, plan: Plan, copies: Sequence[Sequence[int]]) -> None:
    """Create as many partitions as the plan names."""
    admin = AdminClient({"bootstrap.servers": address, **QUICK})
    counts = {"in": len(plan.sources), "out": len(plan.targets)}
    topics = [new_topic(name, count, copies) for name, count in counts.items() if count]
    for future in admin.create_topics(topics).values():
        future.result(PATIENCE)


def new_topic(name: str, count: int, copies: Sequence[Sequence[int]]) -> NewTopic:
    if not copies:
        return NewTopic(name, count, 1)
    return NewTopic(name, count, replica_assignment=[list(copies[number % len(copies)]) for number in range(count)])


def put_to_rest(address: str, history: History, plan: Plan) -> None:
    """After all writers stopped, a last producer of each transactional id aborts open transactions."""
    names = [f"tx-{number}" for number in range(len(plan.transactors))]
    for name in names + [f"copier-{source}" for source, _ in zip(plan.sources, plan.copiers, strict=False)]:
        Sender(address, history, name, instance=LAST_INSTANCE)


def final(address: str, place: str) -> Final:
    """All that can be read of a place."""
    consumer = consumer_of(address, **{"enable.partition.eof": True})
    topic, partition = partition_of(place)
    consumer.assign([ck.TopicPartition(topic, partition, 0)])
    rows: list[tuple[int, str]] = []
    stable = -1
    deadline = time.monotonic() + PATIENCE
    while stable < 0 and time.monotonic() < deadline:
        for message in consumer.consume(1000, 0.2):
            error = message.error()
            if error is None:
                rows.append((message.offset() or 0, (message.value() or b"").decode()))
            elif error.code() == ck.KafkaError._PARTITION_EOF:
                stable = message.offset() or 0
    consumer.close()
    return Final(place, tuple(rows), stable, end_of(address, place))


def end_of(address: str, place: str) -> int:
    """How much there is, stable or not."""
    consumer = consumer_of(address, **{"isolation.level": "read_uncommitted"})
    _, end = consumer.get_watermark_offsets(ck.TopicPartition(*partition_of(place)), PATIENCE)
    consumer.close()
    return int(end)
