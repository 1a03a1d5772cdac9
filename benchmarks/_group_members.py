"""A member of a group, of any client, that writes each delivered record to a file before the next poll.

It is a separate process, so that it can be killed: `python -m benchmarks._group_members CLIENT SERVERS GROUP TOPIC FILE
SESSION_MS COMMIT_MS`.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

MOST, WAIT_MS, HEARTBEAT_MS = 500, 100, 500


class Member(NamedTuple):
    """The topic that a member reads, and the file for its results."""

    servers: str
    group: str
    topic: str
    file: int
    session_ms: int
    commit_ms: int

    def note(self, values: Sequence[bytes | None]) -> None:
        """Write the delivered values to the file."""
        if values:
            os.write(self.file, b"".join(b"%s\n" % value for value in values))

    def settings(self) -> dict[str, Any]:
        """Return the settings under the names that kafka-python and aiokafka use."""
        return {
            "bootstrap_servers": self.servers,
            "group_id": self.group,
            "auto_offset_reset": "earliest",
            "session_timeout_ms": self.session_ms,
            "heartbeat_interval_ms": HEARTBEAT_MS,
            "auto_commit_interval_ms": self.commit_ms,
        }


def librdkafka(member: Member, over: list[int]) -> None:
    import confluent_kafka as ck

    settings = {name.replace("_", "."): value for name, value in member.settings().items()}
    consumer = ck.Consumer(settings)
    consumer.subscribe([member.topic])
    while not over:
        member.note([each.value() for each in consumer.consume(MOST, WAIT_MS / 1000) if each.error() is None])
    consumer.close()


def kafka_python(member: Member, over: list[int]) -> None:
    import kafka

    consumer = kafka.KafkaConsumer(member.topic, **member.settings())
    # A leader of kafka-python 3.0.12 that discovers its topic after the first rebalance joins again. If the rejoin
    # takes longer than one poll, it is lost: the member owns nothing and sends no heartbeat. See
    # `interop.group_member.learn`.
    consumer.partitions_for_topic(member.topic)
    while not over:
        fetched = consumer.poll(WAIT_MS, max_records=MOST)
        member.note([record.value for records in fetched.values() for record in records])
    consumer.close()


def aiokafka(member: Member, over: list[int]) -> None:
    import aiokafka as ak

    async def read() -> None:
        consumer = ak.AIOKafkaConsumer(member.topic, **member.settings())
        await consumer.start()
        while not over:
            fetched = await consumer.getmany(timeout_ms=WAIT_MS, max_records=MOST)
            member.note([record.value for records in fetched.values() for record in records])
        await consumer.stop()

    asyncio.run(read())


def ottla(member: Member, over: list[int]) -> None:
    from ottla import Consumer

    with Consumer({name.replace("_", "."): value for name, value in member.settings().items()}) as consumer:
        consumer.subscribe([member.topic])
        while not over:
            member.note([record.value for record in consumer.poll(WAIT_MS / 1000)])


CLIENTS: dict[str, Callable[[Member, list[int]], None]] = {
    "librdkafka": librdkafka,
    "kafka-python": kafka_python,
    "aiokafka": aiokafka,
    "ottla": ottla,
}


def main() -> None:
    over: list[int] = []
    signal.signal(signal.SIGTERM, lambda number, frame: over.append(number))
    client, servers, group, topic, path, session_ms, commit_ms = sys.argv[1:]
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    CLIENTS[client](Member(servers, group, topic, file, int(session_ms), int(commit_ms)), over)


if __name__ == "__main__":
    main()
