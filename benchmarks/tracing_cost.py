"""What it costs a client that somebody listens to its events: beside itself without, a turn each, by the processor time of its process.

The settings are the clients' own (batches of 16 KiB), so that there are many events. `python -m benchmarks.tracing_cost 9` for other
than seven pairs of turns.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time
from collections.abc import Callable
from contextlib import nullcontext

from benchmarks.brokers import ottla_broker
from ottla import Admin, Consumer, NewTopic, Producer, TopicPartition

PAIRS = 7
RECORDS, SIZE = 1_000_000, 100
TOPIC = "traced"
WAIT = 120
Turn = Callable[[str, bool], None]
"""(bootstrap, whether somebody listens)."""


def produce(server: str, traced: bool) -> None:
    value = bytes(SIZE)
    with Producer(bootstrap_servers=server) as producer, producer.trace() if traced else nullcontext():
        for _ in range(RECORDS):
            producer.send(TOPIC, value)
        producer.flush(WAIT)


def consume(server: str, traced: bool) -> None:
    left = RECORDS
    with Consumer(bootstrap_servers=server) as consumer, consumer.trace() if traced else nullcontext():
        consumer.assign([TopicPartition(TOPIC, 0)])
        consumer.seek_to_beginning(TopicPartition(TOPIC, 0))
        while left > 0:
            left -= len(consumer.poll(timeout=WAIT))


def used(turn: Turn, server: str, traced: bool) -> float:
    """Seconds of processor time."""
    gc.collect()
    begin = time.process_time()
    turn(server, traced)
    return time.process_time() - begin


def main(pairs: int = PAIRS) -> None:
    with ottla_broker() as broker, Admin(bootstrap_servers=broker.bootstrap) as admin:
        admin.create_topics([NewTopic(TOPIC, 1)])
        for turn in (produce, consume):
            turn(broker.bootstrap, False)
            quiet, heard = [], []
            for _ in range(pairs):
                quiet.append(used(turn, broker.bootstrap, False))
                heard.append(used(turn, broker.bootstrap, True))
            ratios = sorted(on / off for on, off in zip(heard, quiet, strict=True))
            print(
                f"{turn.__name__}: {statistics.median(quiet):.3f} s of a processor, {statistics.median(heard):.3f} s listened to;"
                f" ratio {statistics.median(ratios):.3f} ({ratios[0]:.3f} to {ratios[-1]:.3f}; aim ≤ 1.05)",
                flush=True,
            )


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
