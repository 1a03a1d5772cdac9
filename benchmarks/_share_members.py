"""One member of a share group in a process of its own, for `share.py`. It runs turns until its input ends.

Each line on stdin is a turn: bootstrap address, topic, group. The response is a line of JSON.
"""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

FIRST_SECONDS, NEXT_SECONDS = 20.0, 2.0
"""How long a member waits for its first record, and then for the next one."""


class Turn(NamedTuple):
    """The records to consume, and the group."""

    bootstrap: str
    topic: str
    group: str


class Found(NamedTuple):
    """The records that one member got."""

    records: int
    bytes: int
    first: float
    """When the first record came, in seconds since the epoch."""
    last: float
    """When the last one came."""


def ottla_share(turn: Turn) -> Iterator[Callable[[float], list[int]]]:
    """Yield a function that polls our share consumer once and returns the sizes of the values."""
    import ottla

    with ottla.ShareConsumer(bootstrap_servers=turn.bootstrap, group_id=turn.group) as consumer:
        consumer.subscribe([turn.topic])
        yield lambda timeout: [len(record.value or b"") for record in consumer.poll(timeout)]


def confluent_share(turn: Turn) -> Iterator[Callable[[float], list[int]]]:
    """Yield the same for the share consumer of confluent-kafka."""
    import confluent_kafka as ck

    def sizes(timeout: float) -> list[int]:
        messages = consumer.poll(timeout)
        for message in messages:
            assert message.error() is None, message.error()
        return [len(message.value() or b"") for message in messages]

    consumer: Any = ck.ShareConsumer({"bootstrap.servers": turn.bootstrap, "group.id": turn.group, "log_level": 3})
    consumer.subscribe([turn.topic])
    yield sizes
    consumer.close()


def consume(poll: Callable[[float], list[int]]) -> Found:
    """Poll until nothing comes for a while."""
    count = seen = 0
    first = last = 0.0
    while sizes := poll(NEXT_SECONDS if count else FIRST_SECONDS):
        last = time.time()
        first = first or last
        count += len(sizes)
        seen += sum(sizes)
    return Found(count, seen, first, last)


def main() -> None:
    start = globals()[sys.argv[1]]
    for line in sys.stdin:
        for poll in start(Turn(*line.split())):
            found = consume(poll)
        print(json.dumps(found._asdict()), flush=True)
        gc.collect()


if __name__ == "__main__":
    main()
